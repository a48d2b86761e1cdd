"""Sections in order: one that breaks leaves the others, one without time says so, rows are handed on as they come."""

import pytest

from rlbench.gpu_check import run
from rlbench.gpu_check.run import Section, gpu_check, has_failed


def section(name, share, rows):
    def found(check):
        for each in rows:
            if isinstance(each, Exception):
                raise each
            yield check.row(each, left=check.deadline)

    return Section(name, f"{name}?", share, found)


@pytest.fixture
def sections(monkeypatch):
    def plant(*planted):
        monkeypatch.setattr(run, "SECTIONS", planted)

    return plant


def check_now(**changes):
    return gpu_check(device="cpu", progress=False, **changes)


def test_a_section_that_breaks_is_a_row_and_the_rest_goes_on(sections):
    sections(section("loop", 1, ["a", OSError("gone")]), section("use", 1, ["b"]))
    rows = check_now()
    assert [(row["section"], row["name"], row["error"]) for row in rows] == [
        ("loop", "a", None),
        ("loop", "loop?", "OSError: gone"),
        ("use", "b", None),
    ]
    assert has_failed(rows) and rows[1]["same"] is None


def test_a_check_that_breaks_is_a_failed_check(sections):
    sections(section("same", 1, [OSError("gone")]))
    assert check_now()[0]["same"] is False


def test_rows_are_handed_on_as_they_come_and_a_stop_is_heard(sections):
    sections(section("loop", 1, ["a", "b"]), section("use", 1, ["c"]))
    seen = []
    check_now(on_row=lambda row: seen.append(row["name"]), should_stop=lambda: len(seen) == 2)
    assert seen == ["a", "b"]


def test_a_section_has_its_share_of_what_is_left(sections, monkeypatch):
    """Of 54 s, which is 60 without the reserve: a quarter for the first, which takes none of it; then all that is left."""
    now = [1000.0]
    monkeypatch.setattr(run.time, "perf_counter", lambda: now[0])
    sections(section("loop", 1, ["a"]), section("use", 3, ["b"]), section("price", 0, ["c"]))
    rows = check_now(minutes=1)
    assert [row["left"] - 1000.0 for row in rows] == pytest.approx([13.5, 54.0, 54.0])


@pytest.mark.parametrize("bad", [{"minutes": 0}, {"price": -1.0}, {"price": 1.0, "cpu_price": float("inf")}])
def test_refusals(bad):
    with pytest.raises(ValueError, match="above 0"):
        check_now(**bad)


def test_nothing_wrong_has_not_failed(sections):
    sections(section("loop", 1, ["a"]))
    assert not has_failed(check_now())
