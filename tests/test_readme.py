"""The README's table, from planted rows whose numbers are worked out by hand."""

import json

import pytest

from rlbench import readme


def row(label, role, seed, sps, value, **changes):
    planted = {
        "kind": "training",
        "study": "20260101T000000Z-choices",
        "mode": "choices",
        "machine": "box-2c",
        "cpu": "Box",
        "threads": 1,
        "device": "cpu",
        "versions": {"torch": "2.0"},
        "time": "2026-01-01T00:00:00+00:00",
        "command": "rlbench study",
        "env": "E-v0",
        "label": label,
        "baseline": "plain",
        "role": role,
        "rung": 0 if label.startswith("plain") else 1,
        "seed": seed,
        "env_steps": 3000,
        "sps": sps,
        "train_s": 1.0,
        "total_s": 1.0,
        "compile_s": 0.0,
        "mean_return": value,
        "random_return": 0.0,
        "evaluations": [],
        "weights_sha256": f"{label}{seed}",
        "not_measured": None,
    }
    return {**planted, **changes}


def study(seeds, factor=2.0, **changes):
    """plain at 100, 110, … steps a second with a return of 50; its control at the same; other `factor` times as fast."""
    made = []
    for seed in range(seeds):
        sps = 100.0 + 10 * seed
        made.append(row("plain", "baseline", seed, sps, 50.0, **changes))
        made.append(row("plain again", "again", seed, sps, 50.0, **changes))
        made.append(row("other", "variant", seed, factor * sps, 50.0, **changes))
    return made


def record(folder, rows, name="20260101T000000Z-training.json", machine="box-2c"):
    (folder / machine).mkdir(parents=True, exist_ok=True)
    (folder / machine / name).write_text(json.dumps(rows))


def cells(text):
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]


def test_a_line_for_each_way_and_where_it_was_measured(tmp_path):
    record(tmp_path, study(10))
    text = readme.table(tmp_path)
    head, rule, *lines = cells(text)
    assert len(head) == len(rule) == 6 and set("".join(rule)) == {"-"}
    assert lines == [
        ["E-v0", "plain", "145", "1 (baseline)", "50 [50, 50]", "baseline"],
        ["E-v0", "plain again", "145", "1.00 [1.00, 1.00], no difference seen", "50 [50, 50]", "learns the same"],
        ["E-v0", "other", "290", "2.00 [2.00, 2.00]", "50 [50, 50]", "learns the same"],
    ]
    assert text.splitlines()[-1] == (
        "E-v0: measured on box-2c (Box), 1 torch thread(s), torch 2.0, 10 seeds of 3,000 env steps, interleaved in pairs; "
        "medians with 95 % bootstrap intervals, returns as interquartile means. "
        "Rows: [reports/measurements](reports/measurements); command: `rlbench study`."
    )


def test_the_newest_study_of_each_env_counts(tmp_path):
    record(tmp_path, study(10, factor=8.0))
    record(tmp_path, study(10, factor=4.0, study="20270101T000000Z-choices"), "20270101T000000Z-training.json")
    record(
        tmp_path, study(10, factor=0.5, study="20250101T000000Z-choices", env="F-v0"), "20250101T000000Z-training.json"
    )
    ratios = {(line[0], line[3]) for line in cells(readme.table(tmp_path)) if line[1] == "other"}
    assert ratios == {("E-v0", "4.00 [4.00, 4.00]"), ("F-v0", "0.50 [0.50, 0.50]")}


def test_each_machine_has_its_own_line_of_where(tmp_path):
    record(tmp_path, study(10))
    other = study(
        10, study="20260102T000000Z-choices", machine="tower-8c", cpu="Tower", command="rlbench study --seeds 10"
    )
    record(tmp_path, other, machine="tower-8c")
    where = [line for line in readme.table(tmp_path).splitlines() if "measured on" in line]
    assert len(where) == 2 and "box-2c (Box)" in where[0] and "tower-8c (Tower)" in where[1]
    assert "--seeds 10" in where[1] and "--seeds 10" not in where[0]


def test_few_seeds_carry_the_stamp_and_what_was_not_measured_says_so(tmp_path):
    barred = row("fused", "variant", None, None, None, env_steps=None, not_measured="it needs CUDA", rung=2)
    record(tmp_path, [*study(3), barred])
    text = readme.table(tmp_path)
    assert ["E-v0", "fused", "-", "not measured: it needs CUDA", "-", "-"] in cells(text)
    assert "nan" not in text and "3 seeds are too few to cite." in text


def test_without_an_evaluation_there_is_no_return(tmp_path):
    record(tmp_path, [{**each, "mean_return": None} for each in study(10)])
    assert {line[4] for line in cells(readme.table(tmp_path))[2:]} == {"-"}


def test_no_rows_are_refused_with_the_command_that_makes_them(tmp_path):
    with pytest.raises(FileNotFoundError, match="rlbench study --record"):
        readme.table(tmp_path)
    record(tmp_path, [{"kind": "measure"}], "20260101T000000Z-measure.json")
    with pytest.raises(FileNotFoundError):
        readme.table(tmp_path)


def test_only_what_stands_between_the_marks_is_rewritten(tmp_path):
    file = tmp_path / "README.md"
    file.write_text(f"before\n{readme.BEGIN}\nold\n{readme.END}\nafter\n")
    assert readme.rewrite(file, "new") is True
    assert file.read_text() == f"before\n{readme.BEGIN}\nnew\n{readme.END}\nafter\n"
    assert readme.rewrite(file, "new") is False


@pytest.mark.parametrize("text", ["", "{b}", "{e}", "{e} {b} tail", "{b} {e} {b} {e}"])
def test_marks_that_are_missing_or_crossed_are_refused_and_the_file_is_kept(tmp_path, text):
    file = tmp_path / "README.md"
    file.write_text(text.format(b=readme.BEGIN, e=readme.END))
    before = file.read_text()
    with pytest.raises(ValueError, match="README.md must hold the marks"):
        readme.rewrite(file, "new")
    assert file.read_text() == before


def test_the_peers_table_is_of_the_newest_benchmark(tmp_path):
    def side(name, sps, ratio, verdict="faster"):
        numbers = {"ratio": ratio, "ratio_low": ratio and ratio - 0.1, "ratio_high": ratio and ratio + 0.1}
        fixed = {"kind": "benchmark-sb3-dqn", "machine": "box-2c", "threads": 1, "rounds": 20, "peer": "sb3 1.0"}
        return {**fixed, "workload": "W", "side": name, "median_sps": sps, **numbers, "verdict": verdict}

    rows = [side("sb3", 1234.4, None, "baseline"), side("plain", 2000.0, 1.5), side("fast", 100.0, 0.5, "slower")]
    assert readme.peers(tmp_path) == []
    other = {**side("sb3", 5.0, None), "workload": "V"}
    record(tmp_path, [side("sb3", 1.0, None), other], "20250101T000000Z-benchmark-sb3-dqn.json")
    record(tmp_path, rows, "20260101T000000Z-benchmark-sb3-dqn.json")
    first, line = cells("\n".join(readme.peers(tmp_path)))[2:]
    assert first == ["V", "5", "-", "-", "-"]  # measured once, earlier
    assert line == ["W", "1,234", "-", "1.50 [1.40, 1.60]", "0.50 [0.40, 0.60]"]


def test_the_picture_is_drawn_from_the_same_rows(tmp_path):
    record(tmp_path, study(10))
    path = readme.draw(tmp_path / "sample" / "ladder.png", tmp_path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_benchmarks_of_sets_say_which_side_is_meant(tmp_path):
    numbers = {"ratio_low": 2.5, "ratio_high": 3.5, "verdict": "faster", "target": 2.0, "file": ""}

    def write(kind, rows):
        folder = tmp_path / "machine"
        folder.mkdir(exist_ok=True)
        text = json.dumps([{"kind": kind, "workload": "w", **numbers, **row} for row in rows])
        (folder / f"20260101T000000Z-{kind}.json").write_text(text)

    assert readme.sets(tmp_path) == []
    beside = {"workload": "nothing asked", "side": "loop", "baseline": "packed", "ratio": 9.0, "target": "not slower"}
    write("benchmark-evaluate-sets", [{"side": "loop", "baseline": "packed", "ratio": 3.0}, beside])
    write(
        "benchmark-othello-steps",
        [
            {"side": "masks, native", "baseline": "pgx", "ratio": 3.25},
            {"side": "pgx again", "baseline": "pgx", "ratio": 1.0},
            {"side": "pgx", "baseline": "pgx", "ratio": None},
        ],
    )
    assert readme.sets(tmp_path)[3:5] == [
        "| w | packed | loop | 3.00 [2.50, 3.50] |",
        "| w | masks, native | pgx | 3.25 [2.50, 3.50] |",
    ]
    assert len(readme.sets(tmp_path)) == 7
