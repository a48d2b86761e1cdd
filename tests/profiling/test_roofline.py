import io
from dataclasses import replace

import pytest

from rlbench.profiling.evidence import Evidence
from rlbench.profiling.light import speed_of_light
from rlbench.profiling.limits import Peaks
from rlbench.profiling.records import Counted, PhaseTime, Work
from rlbench.profiling.roofline import gigabytes, has_roofline, per_second, roofline

CPU = Peaks("cpu", {"float32": 2e11, "bfloat16": 4e11}, copy=2e10, launch_s=1e-6, python_s=1e-8, cache=1e11)
CUDA = Peaks("cuda:0", {"float32": 5e13, "tf32": 4e14}, copy=4e12, launch_s=4e-6, python_s=1e-8)


def evidence(work, seconds=0.5, peaks=CPU, machine=None):
    counted = Counted(1, 1, 1.0, 5.0, (), (), (), tuple(work))
    phases = tuple(PhaseTime(each.phase, seconds, 0.1, 1) for each in work)
    light = speed_of_light(phases, counted, 1, peaks) if peaks else ()
    about = machine or {"cpu": "Some CPU", "torch_threads": 2}
    device = peaks.device if peaks else "cpu"
    return Evidence(
        "dqn", "a run", device, 1.0, 1, 1, 1, phases, counted=counted, peaks=peaks, light=light, machine=about
    )


FORWARD = Work("forward", 1_000_000, 100_000, 10)
BACKWARD = Work("backward", 2_000_000, 200_000, 10, "bfloat16")
OPTIMIZER = Work("optimizer", 0, 200_000, 10)


def marks(figure):
    [axis] = figure.axes
    return [(line.get_xdata()[0], line.get_ydata()[0]) for line in axis.lines if line.get_linestyle() == "None"]


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def test_a_mark_for_each_phase_with_products_and_one_for_all():
    figure = roofline(evidence([FORWARD, BACKWARD, OPTIMIZER]))
    # 10 operations a byte; 1 and 2 million operations in half a second, 3 million and 0.5 million bytes in one and a half.
    assert marks(figure) == [(10.0, pytest.approx(0.002)), (10.0, pytest.approx(0.004)), (6.0, pytest.approx(0.002))]
    assert {text.split(" ")[0] for text in texts(figure)} >= {"forward", "backward", "all"}
    assert "optimizer" in figure._supxlabel.get_text()
    assert figure.axes[0].get_xscale() == figure.axes[0].get_yscale() == "log"
    figure.savefig(io.BytesIO(), format="png")


def test_the_roofs_are_those_of_the_types_in_use():
    said = " ".join(texts(roofline(evidence([FORWARD]))))
    assert "float32 200 GFLOP/s" in said and "memory 20 GB/s" in said and "cache 100 GB/s" in said
    assert "bfloat16" not in said
    assert "bfloat16 400 GFLOP/s" in " ".join(texts(roofline(evidence([FORWARD, BACKWARD]))))


def test_the_title_names_the_part_of_the_machine():
    assert roofline(evidence([FORWARD])).axes[0].get_title("left").endswith("Some CPU (cpu, 2 threads)")
    gpu = roofline(evidence([FORWARD], peaks=CUDA, machine={"cpu": "Some CPU", "gpus": ("Some GPU",)}))
    assert gpu.axes[0].get_title("left").endswith("Some GPU (cuda:0)")
    assert "cache" not in " ".join(texts(gpu)) and "GPU" in gpu._supxlabel.get_text()
    assert "TFLOP/s" in gpu.axes[0].get_ylabel()


def test_tf32_has_a_roof_where_a_run_is_faster_than_float32():
    fast = Work("forward", 10**14, 10**12, 10)
    assert "tf32 400 TFLOP/s" in " ".join(texts(roofline(evidence([fast], peaks=CUDA))))
    assert "tf32" not in " ".join(texts(roofline(evidence([FORWARD], peaks=CUDA))))


def test_a_report_will_do_as_well():
    class Filled:
        evidence = evidence([FORWARD])

    assert len(marks(roofline(Filled()))) == 2


@pytest.mark.parametrize("found", [evidence([OPTIMIZER]), evidence([]), evidence([FORWARD], peaks=None)])
def test_without_arithmetic_there_is_no_roofline(found):
    assert not has_roofline(found)
    with pytest.raises(ValueError, match="no phase with counted arithmetic"):
        roofline(found)


@pytest.mark.parametrize("seconds", [1e-5, 1e-3, 1e6])
def test_marks_of_any_size_are_within_the_axes(seconds):
    figure = roofline(evidence([FORWARD], seconds))
    low, high = figure.axes[0].get_ylim()
    assert all(low < y < high for _, y in marks(figure))
    assert figure.axes[0].get_yticks().size


def test_rates_read_as_text():
    assert (per_second(2.05e11), per_second(3e13), per_second(950.0)) == ("205 GFLOP/s", "30 TFLOP/s", "950 FLOP/s")
    assert (gigabytes(2.93e10), gigabytes(4.8e12)) == ("29.3 GB/s", "4,800 GB/s")


def test_a_dollar_in_a_name_is_no_mathematics():
    figure = roofline(replace(evidence([FORWARD]), name=r"a$\frac$.py"))
    assert figure.axes[0].get_title("left").startswith(r"a\$\frac\$.py: ")
    figure.savefig(io.BytesIO(), format="png")
