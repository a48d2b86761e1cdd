import textwrap

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
