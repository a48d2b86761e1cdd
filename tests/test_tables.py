import pytest

from rlbench.tables import format_table


def line_of(**changes):
    row = {
        "slot": "s",
        "variant": "v",
        "size": 8,
        "device": "cpu",
        "median_us": 1234.5,
        "ratio": 12.345,
        "ratio_low": 0.98765,
        "ratio_high": 20.0,
        "aa_low": 0.99,
        "aa_high": 1.01,
        "same": True,
        "verdict": "faster",
        "rounds": 20,
        "quick": False,
        "not_measured": None,
        "error": None,
    }
    return {**row, **changes}


def test_table_by_hand():
    table = format_table([line_of(), line_of(variant="a long name", median_us=2.5e6, same=False, verdict="slower")])
    assert table.splitlines() == [
        "slot  variant      size  device   a call  ratio  95 % interval        A/A band  same  verdict",
        "----  -----------  ----  ------  -------  -----  -------------  --------------  ----  -------",
        "s     v               8  cpu     1.23 ms  12.3x  [0.988, 20.0]  [0.990, 1.010]  yes   faster",
        "s     a long name     8  cpu       2.5 s  12.3x  [0.988, 20.0]  [0.990, 1.010]  NO    slower",
    ]


@pytest.mark.parametrize(
    "microseconds, ratio, shown",
    [
        (0.0123, 0.00041, "0.0123 us  0.00041x"),
        (999.6, 99.94, "1,000 us  99.9x"),
        (123456, 1234.5, "123 ms  1,234x"),
        (7.25e8, 9.9994, "725 s  9.999x"),
    ],
)
def test_units_of_short_and_long(microseconds, ratio, shown):
    line = format_table([line_of(median_us=microseconds, ratio=ratio)]).splitlines()[2]
    assert " ".join(shown.split()) in " ".join(line.split())


def test_table_stamps_what_is_not_to_be_cited():
    assert format_table([line_of()]).splitlines()[-1].endswith("faster")
    assert format_table([line_of(), line_of(quick=True)]).splitlines()[-1] == "quick: do not cite"
    assert format_table([line_of(rounds=19)]).splitlines()[-1] == "fewer than 20 rounds: do not cite"
    assert len(format_table([]).splitlines()) == 2


def test_table_of_a_failure_shows_the_first_line_of_its_error():
    empty = dict.fromkeys(("median_us", "ratio", "ratio_low", "ratio_high", "aa_low", "aa_high"))
    row = line_of(**empty, same=False, verdict="failed", rounds=0, error="Boom: one\ntwo")
    line = format_table([row]).splitlines()[2]
    assert line.endswith("NO    failed: Boom: one") and line.count(" -") >= 4
