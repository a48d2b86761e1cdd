"""A script that trains, advanced a block of env steps at a time, so that what is compared is one training a moment later.

It runs as it is, on a thread of its own: the env that it makes with `gymnasium.make` counts steps, and at the end of a block
waits until it is asked for the next.
"""

from __future__ import annotations

import contextlib
import io
import queue
import runpy
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import gymnasium

from rlbench.profiling.script import as_main

Watch = Callable[[], AbstractContextManager]
_over = SystemExit("no more blocks")


class ScriptInBlocks:
    """Its first `warm_up` steps are in no block.

    Args:
        arguments: the script's own; it must not end by itself.

    Attributes:
        env_steps: so far.
    """

    def __init__(self, path: str, arguments: Sequence[str], warm_up: int) -> None:
        self.path, self.arguments, self.left = path, arguments, warm_up
        self.asked: queue.SimpleQueue[tuple[int, Watch] | None] = queue.SimpleQueue()
        self.told: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.steps, self.env_steps, self.watching = 0, 0, contextlib.ExitStack()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def block(self, steps: int, watch: Watch = contextlib.nullcontext) -> tuple[float, Any]:
        """Seconds of so many env steps within `watch`, without opening and closing it, and what it is as `with ... as` tells.

        Raises:
            RuntimeError: the script has ended.
        """
        self.asked.put((steps, watch))
        answer = self.told.get()
        if isinstance(answer, BaseException):
            raise RuntimeError(f"{self.path} ended: {answer!r}") from answer
        return answer

    def close(self) -> None:
        self.asked.put(None)
        self.thread.join()

    def step(self) -> None:
        """A step of its env begins."""
        if self.left == 0:
            self._turn()
        self.left -= 1
        self.env_steps += 1

    def _turn(self) -> None:
        """Tell of the block that is over, and wait for the next."""
        if self.steps:
            spent = time.perf_counter() - self.begun
            self.watching.close()
            self.told.put((spent, self.watched))
        asked = self.asked.get()
        if asked is None:
            self.steps = 0
            raise _over
        self.steps, watch = asked
        self.left = self.steps
        self.watched = self.watching.enter_context(watch())
        self.begun = time.perf_counter()

    def _run(self) -> None:
        make, counted = gymnasium.make, self

        class Counted(gymnasium.Wrapper):
            def step(self, action: Any) -> Any:
                counted.step()
                return self.env.step(action)

        def making(*args: Any, **kwargs: Any) -> gymnasium.Env:
            gymnasium.make = make
            return Counted(make(*args, **kwargs))

        gymnasium.make = making
        try:
            with as_main(self.path, self.arguments, False), contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(self.path, run_name="__main__")
            ended: BaseException = SystemExit("its last line was run")
        except BaseException as error:
            ended = error
        finally:
            gymnasium.make = make
        if ended is not _over:
            self.told.put(ended)
