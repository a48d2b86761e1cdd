"""`rlbench measure`: rows for programs, a table for people, a failed check for the exit code."""

import json

import pytest

import rlbench.measure as measuring

KEYS = [
    "slot",
    "variant",
    "baseline",
    "size",
    "device",
    "median_us",
    "ratio",
    "ratio_low",
    "ratio_high",
    "aa_low",
    "aa_high",
    "compile_s",
    "same",
]


def row(**changes):
    empty = dict.fromkeys(KEYS)
    return {**empty, "kind": "measure", "machine": "m", "verdict": "faster", "rounds": 20, "slot": "s", **changes}


def test_rows_are_measured_printed_and_appended(cli, tmp_path):
    ran = cli("measure", "metrics", "--quick", "--rounds", 2, "--sizes", "64", "--device", "cpu", "--json", "--quiet")
    assert ran.code == 0
    rows = ran.document["rows"]
    assert [r["variant"] for r in rows] == ["item_each_step", "on_device"]
    assert [key for key in KEYS if key not in rows[0]] == []
    assert all(r["same"] is True and r["size"] == 64 and r["rounds"] == 2 for r in rows)
    lines = (tmp_path / "runs/measure.jsonl").read_text().splitlines()
    assert [json.loads(line)["variant"] for line in lines] == ["item_each_step", "on_device"]


def test_slots_of_ppo_are_measured_too(cli):
    slots = ["games", "action_encoding", "minibatch", "old_log_probs"]
    ran = cli("measure", *slots, "--quick", "--rounds", 1, "--device", "cpu", "--json", "--quiet")
    assert ran.code == 0
    rows = ran.document["rows"]
    assert list(dict.fromkeys(row["slot"] for row in rows)) == slots
    assert all(row["same"] is True or row["not_measured"] for row in rows)
    assert {row["size"] for row in rows if row["slot"] == "games"} == {1}


@pytest.fixture
def fake(monkeypatch):
    """`measure` that hands out given rows and keeps what it was called with."""
    calls = {}

    def set_rows(rows):
        def measure(slots, *, on_row, **arguments):
            calls.update(slots=slots, **arguments)
            for each in rows:
                on_row(each)
            return rows

        monkeypatch.setattr(measuring, "measure", measure)
        return calls

    return set_rows


def test_arguments_arrive(cli, fake, tmp_path):
    calls = fake([row(same=True)])
    ran = cli(
        "measure", "replay", "metrics", "--sizes", "32,128", "--rounds", 30, "--out", "deep/rows.jsonl", "--record"
    )
    assert ran.code == 0
    assert calls["slots"] == ["replay", "metrics"]
    assert (calls["sizes"], calls["rounds"], calls["quick"], calls["device"]) == ((32, 128), 30, False, "auto")
    assert (tmp_path / "deep/rows.jsonl").exists()
    assert len(list((tmp_path / "reports/measurements/m").glob("*-measure.json"))) == 1


def test_no_slot_means_all(cli, fake):
    assert fake([row(same=True)]) is not None
    calls = fake([row(same=True)])
    cli("measure")
    assert calls["slots"] is None


def test_a_variant_that_differs_is_a_failed_check(cli, fake):
    fake([row(same=True), row(same=False, error="differs", verdict="not the same")])
    ran = cli("measure", "--json")
    assert ran.code == 1
    assert len(ran.document["rows"]) == 2


def test_not_measured_is_not_a_failure(cli, fake):
    fake([row(same=None, not_measured="needs CUDA: not measured on this machine")])
    ran = cli("measure")
    assert ran.code == 0
    assert "not measured on this machine" in ran.out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["reply"], "did you mean replay"),
        (["--sizes", "0"], "from 1"),
        (["--rounds", "0"], "from 1"),
        (["--round", "5"], "--rounds"),
        (["--device", "gpu"], "cuda"),
        (["--out", "."], "folder"),
    ],
)
def test_refusals(cli, words, says):
    ran = cli("measure", *words)
    assert ran.code == 2 and says in ran.err and len(ran.err.splitlines()) == 1


def test_rows_that_could_not_be_written_are_refused_before_measuring(cli, tmp_path):
    (tmp_path / "file").write_text("")
    ran = cli("measure", "metrics", "--quick", "--out", "file/rows.jsonl")
    assert ran.code == 2 and ran.out == "" and len(ran.err.splitlines()) == 1
    assert cli("measure", "metrics", "--quick", "--rounds", 0, "--out", "rows.jsonl").code == 2
    assert not (tmp_path / "rows.jsonl").exists()
