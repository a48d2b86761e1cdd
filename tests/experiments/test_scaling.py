"""Curves over sizes: rows are complete, times are per unit, what differs or does not fit is not timed, and sentences by hand."""

import math

import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure

from rlbench import plot_scaling, scaling_findings
from rlbench.experiments import scaling, scaling_point
from rlbench.experiments.free_memory import free_bytes, why_not_fit
from rlbench.experiments.scaling_point import Case, Curve, Setting, trace
from rlbench.probe import Probe

NAN = float("nan")
SMALL = Setting("cpu", rounds=1, quick=True, progress=False)
CURVE = Curve("c", "slot", "row", "batch_size", "rows")


def named(rows):
    return [(row["size"], row["variant"]) for row in rows]


def equal(expected, actual):
    assert expected == actual, f"{actual} is not {expected}"


def test_environments_are_stepped_up_to_where_the_loop_is_timed():
    rows = scaling.environments([1, 3, 7], most_single=3, setting=SMALL)
    names = ["one_by_one", "batched", "native"]
    assert named(rows) == [(size, name) for size in (1, 3, 7) for name in names]
    assert [row["units"] for row in rows if row["variant"] == "one_by_one"] == [1, 3, 3]
    assert [row["units"] for row in rows if row["variant"] == "batched"] == [1, 3, 7]
    assert [row["extrapolated"] for row in rows if row["variant"] == "one_by_one"] == [False, False, True]
    assert all(row["same"] in (True, None) for row in rows)


def test_updates_have_a_row_a_variant_and_size():
    for rows in (scaling.batch([1, 5], setting=SMALL), scaling.width([8, 9], batch_size=3, setting=SMALL)):
        sizes = sorted({row["size"] for row in rows})
        assert named(rows) == [(size, name) for size in sizes for name in ("eager", "native")]
        assert all(row["same"] in (True, None) for row in rows)
    assert [row["units"] for row in rows if row["variant"] == "eager"] == [
        3,
        3,
    ]  # rows of a minibatch, whatever the width


def test_a_round_is_counted_in_updates_and_one_update_is_no_chunk():
    rows = scaling.gradient_steps([1, 3], batch_size=2, hidden=8, variants=["cuda_graph", "native"], setting=SMALL)
    assert named(rows) == [(1, "eager"), (1, "native"), (3, "eager"), (3, "cuda_graph"), (3, "native")]
    assert [row["units"] for row in rows if row["variant"] == "eager"] == [1, 3]
    graph = next(row for row in rows if row["variant"] == "cuda_graph")
    assert graph["not_measured"] == "needs CUDA: not measured on this machine" and graph["verdict"] == "not measured"
    assert math.isnan(graph["unit_ns"])


def test_full_rings_are_sampled():
    rows = scaling.capacity([1, 10_007], batch_size=4, setting=SMALL)
    assert named(rows) == [(size, name) for size in (1, 10_007) for name in ("ring_numpy", "ring_torch")]
    assert all(row["same"] is True and row["units"] == 4 for row in rows)
    assert rows[0]["megabytes"] == pytest.approx((4 * (16 + 16 + 4) + 8) / 1e6)
    assert rows[1]["megabytes"] == pytest.approx(4 * 37 / 1e6)


def test_a_ring_that_does_not_fit_is_left_out_and_said_to_be(monkeypatch):
    monkeypatch.setattr("rlbench.experiments.free_memory.free_bytes", lambda device, probe: 3 * 300 * 50)
    rows = pd.DataFrame(scaling.capacity([50, 51], batch_size=4, setting=SMALL))  # 300 bytes a row in both rings
    assert rows["unit_ns"].isna().tolist() == [False, False, True, True]
    (text,) = scaling_findings.left_out(rows)
    assert text.startswith("buffer_size 51 with ring_numpy, ring_torch: not measured on this machine (it takes")
    assert [name for name, _ in scaling_findings.variants(rows)] == ["replay=ring_torch"]


def test_memory_is_what_is_free_and_what_the_container_grants(tmp_path):
    probe = Probe(root=tmp_path)
    assert free_bytes("cpu", probe) is None
    assert why_not_fit({"cpu": 333_000_000}, probe) is None
    assert "since this system does not say" in why_not_fit({"cpu": 334_000_000}, probe)
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/meminfo").write_text("MemTotal: 9000 kB\nMemAvailable:   3000 kB\n")
    assert free_bytes("cpu", probe) == 3_072_000
    assert why_not_fit({"cpu": 1_024_000}, probe) is None and why_not_fit({"cpu": 1_024_001}, probe)
    group = tmp_path / "sys/fs/cgroup"
    group.mkdir(parents=True)
    for name, text in (("max", "max"), ("current", "500"), ("stat", "anon 1\ninactive_file 200\n")):
        (group / f"memory.{name}").write_text(text)
    assert free_bytes("cpu", probe) == 3_072_000  # no limit
    (group / "memory.max").write_text("1000")
    assert free_bytes("cpu", probe) == 700


def test_times_are_per_unit_and_what_differs_is_not_timed(monkeypatch):
    """A call of either takes 1 ms in every round; the variant does four units in it, and the baseline two."""
    made = []

    def timed(baseline, variants, **given):
        made.append(list(variants))
        names = ("baseline", *variants, "baseline again")
        seconds = torch.full((6, len(names)), 1e-3, dtype=torch.float64).numpy()
        return scaling_point.Paired(names, seconds, (1,) * len(names), {})

    monkeypatch.setattr(scaling_point, "time_paired", timed)
    cases = {"plain": Case(int, 2, 7), "good": Case(int, 4, 7), "bad": Case(int, 4, 8), "absent": "no compiler"}
    plain, good, bad, absent = trace(CURVE, [10], lambda size: cases, equal, SMALL, more="x")
    assert made == [["good"]]
    assert (plain["unit_ns"], plain["verdict"], plain["ratio"]) == (pytest.approx(5e5), "baseline", 1.0)
    assert good["unit_ns"] == good["unit_ns_low"] == good["unit_ns_high"] == pytest.approx(2.5e5)
    assert (good["ratio"], good["verdict"]) == (pytest.approx(2.0), "faster")
    assert bad["verdict"] == "not the same" and bad["same"] is False and math.isnan(bad["unit_ns"])
    assert absent["not_measured"] == "no compiler" and absent["more"] == "x" and absent["baseline"] == "plain"


def test_losses_of_an_update_that_learns_otherwise_are_told_apart():
    config = scaling.DQNConfig(batch_size=8, hidden=(8, 8))
    right = scaling._round("eager", config, 8, SMALL).outcome
    other = scaling._round("eager", config.replace(double_dqn=False), 8, SMALL).outcome
    still = right[:1].expand(len(right))  # weights that do not move
    for wrong in (other, still):
        with pytest.raises(AssertionError):
            scaling._check_losses(right, wrong)


def made(verdicts, **fields):
    """Rows of one variant from verdicts by size, with a ratio of 2, 0.5 or 1."""
    ratios = {"faster": 2.0, "slower": 0.5, "no difference seen": 1.0}
    row = {
        "curve": "c",
        "slot": "s",
        "variant": "v",
        "baseline": "b",
        "unit": "row",
        "size_name": "n",
        "size_means": "rows",
    }
    rows = []
    for size, verdict in verdicts.items():
        ratio = ratios.get(verdict, NAN)
        span = {"ratio": ratio, "ratio_low": ratio, "ratio_high": ratio, "aa_low": 0.9, "aa_high": 1.1}
        times = {"unit_ns": 10 / ratio, "unit_ns_low": 10 / ratio, "unit_ns_high": 10 / ratio}
        reason = None if ratio == ratio else "no compiler"
        rows.append({**row, "size": size, "verdict": verdict, "not_measured": reason, **span, **times, **fields})
    return pd.DataFrame(rows)


F, S, N = "faster", "slower", "no difference seen"


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        ({1: F, 10: F, 1000: F}, "at every n measured (1 to 1,000)"),
        ({1: S, 10: N}, "at no n measured (1 to 10)"),
        ({8: F}, "at every n measured (8 alone)"),
        ({1: S, 10: F, 1000: F}, "from n 10 on"),
        ({1: F, 10: F, 1000: N}, "up to n 10"),
        ({1: N, 2: F, 4: F, 8: S}, "from n 2 to 4"),
        ({1: N, 2: F, 4: S}, "at n 2 alone"),
        ({1: F, 2: N, 4: F, 8: S}, "at n 1 and 4, but not at 2 and 8"),
        ({1: F, 2: F, 4: "not measured"}, "at every n measured (1 to 2)"),
    ],
)
def test_where_it_pays(verdicts, words):
    assert scaling_findings.where(made(verdicts)) == words


def test_sentences_say_where_it_begins_and_stops_to_pay():
    text, tone = scaling_findings.sentence("s=v", made({1: S, 2: F, 4: N}))
    assert text == (
        "s=v against b pays at n 2 alone; at 1 it is 0.50 [0.50, 0.50] times as fast; it stops paying at 4, where it is 1.00 "
        "[1.00, 1.00] times as fast, no difference seen (the same code timed twice reads 0.90 to 1.10); at best, at 2, it is "
        "2.00 [2.00, 2.00] times as fast."
    )
    assert tone == "note"
    tones = [scaling_findings.sentence("s=v", made(dict(enumerate(v, 1))))[1] for v in ([F, F], [S, S], [S, N])]
    assert tones == ["faster", "slower", "none"]


def test_one_answer_and_what_is_left_out():
    rows = pd.concat(
        [
            made({1: F, 2: F}),
            made({1: F, 2: S}, curve="d", size_name="m"),
            made({1: "not measured", 2: "not measured"}, variant="w"),
            made({1: "not measured", 2: "not measured"}, variant="w", curve="d", size_name="m"),
        ]
    )
    text, tone = scaling_findings.answer(rows)
    assert text == "These pay here, against the plain variant: s=v at every n measured (1 to 2) and up to m 1."
    assert tone == "note"
    assert list(scaling_findings.left_out(rows)) == ["s=w over n and m: not measured on this machine (no compiler)."]
    nothing, tone = scaling_findings.answer(made({1: "not measured"}))
    assert "No speed-up could be measured" in nothing and tone == "not measured"


def test_seconds_of_compilation_are_said_where_there_were_any():
    rows = pd.concat(
        [made({1: F, 2: F}, compile_s=2.5), made({1: F}, variant="w", compile_s=0.0), made({1: F}, slot="t")]
    )
    assert list(scaling_findings.compiling(rows)) == [
        "s=v over n took 5 s of compilation, 2.5 s at most for one size; no time above has a share of it."
    ]
    assert list(scaling_findings.compiling(made({1: F}))) == []


def test_steps_on_another_device_may_round_otherwise_and_no_more():
    rows = scaling._stepping(scaling.env_source("CartPole-v1"), "batched", 2, 2, SMALL).outcome
    near = [row._replace(obs=row.obs * (1 + 1e-7)) for row in rows.rows]
    far = [row._replace(obs=row.obs + 1e-5) for row in rows.rows]
    other = [row._replace(truncated=~row.truncated) for row in rows.rows]
    scaling._check_nearly(rows, scaling.slot.Steps([row._replace(obs=row.obs.astype("f4")) for row in near]))
    for wrong in (far, other):
        with pytest.raises(AssertionError):
            scaling._check_nearly(rows, scaling.slot.Steps(wrong))


def test_the_size_beyond_which_a_unit_is_no_cheaper():
    """Times of 20, 10 and 10 ns: the second size is as cheap as the third; without it the third is the cheapest."""
    rows = made({1: S, 10: N, 100: N})
    assert scaling_findings.cheapest(rows) == 10
    assert list(scaling_findings.growth(rows)) == [
        "Time per row over n, sizes timed one after another: v is no cheaper beyond 10 (10 ns there, 10 ns at 100)."
    ]
    assert list(scaling_findings.growth(rows[rows["size"] != 10])) == [
        "Time per row over n, sizes timed one after another: v is cheapest at the largest (10 ns at 100)."
    ]


def test_the_picture_has_a_panel_a_curve_and_hollow_marks_where_it_does_not_pay():
    plain = made({1: S, 1000: S}, variant="b", unit_ns=20.0, unit_ns_low=19.0, unit_ns_high=22.0, verdict="baseline")
    plain["extrapolated"] = [False, True]
    rows = pd.concat([plain, made({1: F, 1000: S}), made({1: F, 7: N}, curve="gradient_steps", size_means="updates")])
    figure = plot_scaling.small_multiples(rows, "title")
    assert isinstance(figure, Figure)
    figure.canvas.draw()
    assert [axis.get_title(loc="left") for axis in figure.axes] == ["c: time per row", "gradient steps: time per row"]
    first, second = figure.axes
    assert (first.get_xscale(), first.get_yscale(), second.get_xlabel()) == ("log", "log", "updates")
    assert [label.get_text() for label in first.get_xticklabels()] == ["1", "1k"]
    hollow = [list(line.get_xdata()) for line in first.lines if line.get_markerfacecolor() == "white"]
    assert hollow == [[1000]]
    assert any(line.get_linestyle() == ":" for line in first.lines)


@pytest.mark.parametrize(("low", "high"), [(100, 105), (100, 200), (1, 1e6), (7e8, 9e8), (0.02, 0.2)])
def test_every_panel_has_ticks_of_time(low, high):
    figure = Figure()
    axis = figure.subplots()
    axis.set_yscale("log")
    axis.set_ylim(low, high)
    plot_scaling._times(axis)
    assert 2 <= len(axis.get_yticks()) <= 12
    assert all(axis.get_ylim()[0] <= tick <= axis.get_ylim()[1] for tick in axis.get_yticks())
