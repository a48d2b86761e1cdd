"""What the table says, and what was recorded elsewhere."""

from rlbench import results
from rlbench.gpu_check import recorded, summary


def checked(check, section, **fields):
    check.section = section
    return check.row(fields.pop("name", "n"), **fields)


def test_failures_are_named_and_reasons_said_once(check):
    rows = [
        checked(check, "same", name="a=b", same=True, verdict="same"),
        checked(check, "same", name="a=c", same=True, verdict="same but for rounding"),
        checked(
            check, "same", name="a=d", same=False, verdict="NOT the same", error="AssertionError: off\nby one", size=32
        ),
        *[checked(check, "same", name=f"n{i}", verdict="not measured", not_measured="because") for i in range(7)],
    ]
    text = summary(rows)
    assert "2 of 3 agree, 1 of them but for rounding" in text
    assert "a=d, size 32: NOT the same: AssertionError: off by one" in text
    assert "because: n0, n1, n2, n3, n4 and 2 more" in text
    assert "1 check failed, no measurements broke, 10 rows." in text


def test_sizes_are_shown_in_order_with_both_rates(check):
    rows = [
        checked(check, "loop", num_envs=65_536, cpu_sps=1e6, gpu_sps=2.5e7, ratio=25.0, verdict="faster"),
        checked(check, "loop", num_envs=1, cpu_sps=1e5, gpu_sps=None, verdict="not measured", not_measured="why"),
    ]
    lines = [line.split() for line in summary(rows).splitlines()]
    assert ["1", "100,000", "-", "-", "-", "-", "not", "measured"] in lines
    assert lines.index(["1", "100,000", "-", "-", "-", "-", "not", "measured"]) + 1 == lines.index(
        ["65,536", "1,000,000", "25,000,000", "25.00", "-", "-", "faster"]
    )


def test_games_and_sets_have_tables(check):
    rows = [
        checked(check, "boards", num_envs=16_384, cpu_sps=4e6, gpu_sps=6e7, ratio=15.0, verdict="faster"),
        checked(check, "boards", num_envs=16, cpu_sps=1e5, gpu_sps=1e4, ratio=0.1, verdict="slower"),
        checked(
            check, "sets", slot="evaluate", variant="packed", size=4_096, median_us=1234.5, ratio=2.0, verdict="faster"
        ),
    ]
    lines = [line.split() for line in summary(rows).splitlines()]
    small, large = (lines.index(line) for line in lines if line[:1] in (["16"], ["16,384"]))
    assert small + 1 == large and lines[large][:4] == ["16,384", "4,000,000", "60,000,000", "15.00"]
    assert ["packed", "4,096", "1,234.5", "2.00", "-", "-", "faster"] in lines


def test_what_broke_is_in_plain_view(check):
    rows = [checked(check, "use", name="plain", verdict="failed", error="RuntimeError: x")]
    assert "plain: failed: RuntimeError: x" in summary(rows) and "1 measurement broke" in summary(rows)


def test_recorded_rows_are_the_newest_of_each_other_machine(check, tmp_path):
    def write(machine, stamp, ratio, gpu="H"):
        row = checked(check, "loop", ratio=ratio) | {"machine": machine, "gpu": gpu}
        results.append(tmp_path / machine / f"{stamp}-gpu-check.json", [row])

    write("one", "20260101T000000Z", 1.0)
    write("one", "20260201T000000Z", 2.0)
    write("other", "20260101T000000Z", 3.0)
    write("without", "20260101T000000Z", 4.0, gpu=None)
    found = recorded("loop", tmp_path)
    assert list(zip(found["machine"], found["ratio"], strict=True)) == [("one", 2.0), ("other", 3.0)]
    assert list(recorded("loop", tmp_path, besides="one")["machine"]) == ["other"]
    assert recorded("use", tmp_path).empty and recorded("loop", tmp_path / "none").empty
