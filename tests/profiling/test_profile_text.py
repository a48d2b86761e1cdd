import planted
import pytest
from planted import evidence, place

from rlbench.profiling.advice import advise
from rlbench.profiling.criteria import criteria
from rlbench.profiling.findings import Advice, Applied
from rlbench.profiling.records import PhaseTime, Sync, ThreadProbe
from rlbench.profiling.report import Report
from rlbench.profiling.text_parts import WIDTH, bar, fill, shortened, table, where

NAMES = [planted.EVIL, "x" * 300, "word " * 60, r"a$\frac$.py", "模型.py", "a\udce9.py", "two\nlines"]


def report(made=None, advice=None):
    made = evidence() if made is None else made
    filled = Report()
    filled.fill(made, advise(made) if advice is None else advice, criteria(made), None)
    return filled


@pytest.mark.parametrize("name", NAMES)
def test_it_fits_a_terminal_whatever_a_reader_calls_things(name):
    text = report(planted.rich(name)).text()
    assert max(map(len, text.splitlines())) <= 100
    assert text.encode("utf-8")


def test_long_names_of_phases_keep_their_column():
    phases = (PhaseTime("a phase with a very long name of its own", 1.0, 1.0, 3),)
    line = next(line for line in report(evidence(phases=phases)).text().splitlines() if line.startswith("a phase"))
    assert line.startswith("a phase with a v…  ") and "100.0 %" in line and "█" * 30 in line


def test_the_answer_comes_first():
    text = report(evidence(threads=ThreadProbe(8, 2, {1: 0.004, 8: 0.010}))).text()
    assert text.index("goes into forward") < text.index("What to change first") < text.index("Where the time goes")
    assert "[predicted 2.50x]" in text and "1. torch computes on 8 threads" in text
    assert "1 4 ms, 8 (as it is) 10 ms" in text


def test_parts_of_a_fused_call_say_where_they_come_from():
    lines = report(planted.rich()).text().splitlines()
    at = next(i for i, line in enumerate(lines) if line.startswith("iterations"))
    assert "measured under loop=python" in lines[at + 1]
    assert lines[at + 2].startswith("  env ") and "25.0 %" in lines[at + 2]
    assert lines[at + 5].startswith("Python overhead")  # of the run itself again


def test_advice_against_is_in_plain_view():
    against = Advice("no", "against", "Workers would slow it.", "A call takes 10 µs.", "", 0.73, None)
    text = report(advice=[against] * 5).text()
    assert text.count("- Workers would slow it. [predicted 0.73x] A call takes 10 µs.") == 5


def test_three_faults_with_evidence_lines_and_what_to_write():
    fault = Advice(
        "x", "fault", "It waits.", "Much.", "`y = 2`", 2.0, 4.0, (place("x = 1", 7),), choice={"replay": "ring"}, notebook="03"
    )  # fmt: skip
    text = report(advice=[fault] * 5).text()
    assert "3. It waits. [predicted 2.00x, at most 4.00x]" in text and "4. It waits" not in text
    for said in ("Much.", "train.py:7  x = 1", "Instead: `y = 2`", "replay=ring", "notebook 03"):
        assert said in text


def test_what_is_missing_says_why():
    text = report(planted.empty()).text()
    for said in (
        "Synchronisations: not measured",
        "Speed of light: not measured",
        "Device: not measured, the run is on",
    ):
        assert said in text
    assert "Where the time goes" not in text and "No fault" not in text


def test_a_gpu():
    text = report(planted.on_cuda()).text()
    assert "80 kernels a step of 2.5 µs" in text and "busy 31 %" in " ".join(text.split())  # 4,000 in 50 steps
    assert "host waited 120 µs" in " ".join(text.split())  # 6 ms in 50 steps
    assert "Copies host to device: 100, 3,200,000 bytes, 5.0 % of the time, not pinned." in text
    assert "1.00    int(t)  train.py:41" in text and "NVML: utilisation 40 %, memory in use 6.2 %" in text


def test_counts_without_steps_are_no_counts_a_step():
    sync = (Sync(place("x"), ".item()", "python", 7, 7.0),)
    text = report(evidence(counted=planted.counted(sync, steps=0))).text()
    assert "Synchronisations, counted for 500 ms, in which no single step was seen" in " ".join(text.split())
    assert any(line.startswith("7      .item()") for line in text.splitlines()) and "7.00" not in text


def test_intervals_are_never_cut():
    choice = {f"slot_{i}": "variant" for i in range(12)}
    long = "could not run: " + "y" * 200
    filled = report()
    filled.applied = tuple(
        Applied("a" * 60, choice, 1.4, 0.9, 0.85, 0.95, 0.99, 1.01, said) for said in ("slower", long)
    )
    text = filled.text()
    assert text.count("0.90x [0.85, 0.95]") == 2 and "[0.99, 1.01]" in text and "slot_11=variant" in text
    assert max(map(len, text.splitlines())) <= 100


def test_what_each_pass_cost():
    text = " ".join(report().text().split())
    assert "On the clock for 10.00 s. The clock itself took 0.5 % of that, the sampler 1.0 %." in text
    assert "Counting: 100 steps in 0.50 s, 5.0 times as slow. Trace: 50 steps in 0.60 s, 1.2 times as slow." in text


def test_bars_are_eighths():
    assert [bar(share, 2) for share in (0.0, 1 / 16, 0.5, 9 / 16, 1.0, 7.0)] == ["", "▏", "█", "█▏", "██", "██"]


def test_parts():
    assert shortened("a/b/c/d.py:12", 8) == "…d.py:12" and shortened("abcdefgh", 4) == "abc…"
    assert len(where(place("z" * 300, 5, file="p/" * 100 + "q.py"))) == WIDTH and "q.py:5  zzz" in where(
        place("z" * 300, 5, file="p/" * 100 + "q.py")
    )
    assert all(not line.lstrip().startswith("%") for line in fill("10 % " * 60).splitlines())
    lines = table(("a", "b"), [("x" * 200, "kept")], cut=(0,))
    assert max(map(len, lines)) == WIDTH and lines[1].endswith("…  kept")
