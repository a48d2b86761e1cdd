import linecache
import textwrap
import warnings

import pytest

from rlbench.profiling.frames import place_of
from rlbench.profiling.source import describe

SOURCE = textwrap.dedent(
    """\
    import numpy as np

    class Replay:
        def sample(self, size):
            batch = random.sample(self.rows, size)
            obs = np.stack([row[0] for row in batch])
            for i in range(size):
                total = self.frame.rolling(5).mean()[
                    i
                ]
            return obs, total

    def main():
        while step < 10:
            env.step(f(x))
        with open("a") as file, lock:
            pass
        try:
            g()
        except ValueError:
            h()

    pick = lambda x: q(x)
    """
)


@pytest.fixture
def at(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(SOURCE)
    return lambda line: describe(place_of(str(file), line, "f"))


def test_calls_names_and_loops_of_a_statement(at):
    assert at(5).calls == ("random.sample",) and at(5).assigned == ("batch",) and at(5).loop is None
    stacked = at(6)
    assert stacked.calls == ("np.stack",) and stacked.function == "sample" and stacked.lines == (6, 6)
    assert (stacked.loop.target, stacked.loop.iterable) == ("row", "batch")
    inner = at(9)
    assert inner.lines == (8, 10) and inner.calls == ("self.frame.rolling.mean", "self.frame.rolling")
    assert (inner.loop.target, inner.loop.iterable, inner.loop.line) == ("i", "range(size)", 7)
    assert inner.loop.calls == ("range", "self.frame.rolling.mean", "self.frame.rolling")
    assert at(5).function_calls == (
        "random.sample", "np.stack", "range", "self.frame.rolling.mean", "self.frame.rolling",
    )  # fmt: skip


def test_heads_of_compound_statements_stand_for_themselves(at):
    assert at(7).calls == ("range",) and at(13).calls == ()
    assert at(15).calls == ("env.step", "f") and at(15).loop.iterable == "step < 10" and at(15).loop.target == ""
    assert at(16).calls == ("open",)
    assert at(19).calls == ("g",) and at(21).calls == ("h",)
    assert at(23).calls == ("q",)


def test_without_source_there_is_nothing(at, tmp_path):
    assert at(2) is None and at(99) is None
    assert describe(place_of(str(tmp_path / "gone.py"), 1, "f")) is None
    broken = tmp_path / "broken.py"
    broken.write_text("def f(:\n")
    assert describe(place_of(str(broken), 1, "f")) is None


MORE = textwrap.dedent(
    """\
    @deco(1)
    def f(
        a=g(1),
    ):
        return re.sub("\\d", ", ".join(a))

    async def poll():
        async for x in source():
            await x.go()
        else:
            last()
        async with lock() as held:
            first(); second()

    def outer(rows):
        for row in rows:
            def inner():
                return deep(row)
            use(lambda: [m(t) for t in row])
        match kind():
            case 1 if guard():
                one()
    """
)


@pytest.fixture
def more_at(tmp_path):
    file = tmp_path / "more.py"
    file.write_text(MORE)
    return lambda line, function="<module>": describe(place_of(str(file), line, function))


@pytest.mark.parametrize("line", [1, 2, 3])
def test_the_head_of_a_function_is_its_maker_s_or_its_own(more_at, line):
    made, entered = more_at(line), more_at(line, "f")
    assert (made.calls, made.function, made.lines) == (("deco", "g"), "", (1, 5))
    assert (entered.calls, entered.function, entered.loop) == ((), "f", None)
    assert set(entered.function_calls) == {"deco", "g", "re.sub", "join"}
    assert made.text == "def f(a=g(1)):"


def test_async_loops_and_what_is_outside_their_turns(more_at):
    assert more_at(8).function == "poll" and more_at(8).calls == ("source",)
    assert more_at(9).calls == ("x.go",) and more_at(9).loop.iterable == "source()"
    assert more_at(11).calls == ("last",) and more_at(11).loop is None
    assert more_at(12).calls == ("lock",) and more_at(12).assigned == ("held",)


def test_statements_on_one_line_stand_together(more_at):
    assert more_at(13).calls == ("first", "second") and more_at(13).text == "first(); second()"


def test_loops_do_not_reach_into_other_functions(more_at):
    assert more_at(18).function == "inner" and more_at(18).loop is None
    around, within = more_at(19, "outer"), more_at(19, "<lambda>")
    assert (around.calls, around.function, around.loop.target) == (("use", "m"), "outer", "row")
    assert (within.calls, within.function, within.loop.target) == (("m",), "<lambda>", "t")


def test_guards_belong_to_the_match(more_at):
    assert more_at(21).calls == ("kind", "guard") and more_at(22).calls == ("one",)


def test_reading_a_source_warns_of_nothing_in_it(more_at):
    with warnings.catch_warnings():  # "\d" in it
        warnings.simplefilter("error")
        assert more_at(5).calls == ("re.sub", "join")


def test_cells_of_a_notebook_lie_in_the_line_cache(monkeypatch):
    for file, text in (("/tmp/ipykernel_7/1.py", "train(1)\n"), ("/tmp/ipykernel_7/2.py", "act(2)\n")):
        monkeypatch.setitem(linecache.cache, file, (len(text), None, [text], file))
    places = [place_of(f"/tmp/ipykernel_7/{n}.py", 1, "<module>") for n in (1, 2)]
    assert {place.file for place in places} == {"a notebook's cell"}  # shown alike, and told apart
    assert [describe(place).calls for place in places] == [("train",), ("act",)]
