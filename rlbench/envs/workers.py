"""Gymnasium's AsyncVectorEnv, an environment a process, so that a worker's death is told at once and none is left behind.

Gymnasium's own waits for every other worker before it tells of one that failed, says only EOFError where one was killed or
could not make its environment, and leaves the others running. Children are spawned, run torch with one thread, leave
interrupts to their parent, and do not run its script again.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import connection, parent_process
from time import monotonic
from typing import Any

from gymnasium.vector import AsyncVectorEnv, AutoresetMode
from gymnasium.vector.async_vector_env import _async_worker  # the worker that Gymnasium's documentation builds on

GRACE_S = 1.0  # between a worker's end and that of the others, in which answers that are on their way arrive
CLOSE_S = 5.0  # for environments to close themselves
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


@dataclass(frozen=True)
class InProcess:
    """The factory of environment `index`, for the process that steps it. What it needs is imported there."""

    code: bytes = field(repr=False)
    seed: int
    index: int
    hashed: bool  # whether its starts can be

    def __call__(self) -> Any:
        env = pickle.loads(self.code)()
        if not self.hashed:
            return env
        from rlbench.envs.starts import HashedStarts  # needs torch, which other environments do without

        return HashedStarts(env, self.seed, self.index)


class Workers(AsyncVectorEnv):
    """One process for each factory, in DISABLED autoreset mode. Whatever goes wrong in a step or reset ends all of them.

    Raises:
        EnvError: with the child's traceback where an environment fails, with the exit code where its process dies.
    """

    def __init__(self, factories: Sequence[Any], name: str) -> None:
        self.name, self.processes, self.parent_pipes = name, [], []
        self._closing, self._died, self._first = threading.Event(), threading.Event(), []
        with self._ending_on_error(), _one_thread_each(), _without_main():
            super().__init__(
                factories, copy=False, context="spawn", worker=_work, autoreset_mode=AutoresetMode.DISABLED
            )

    def reset(self, **arguments: Any) -> Any:
        with self._ending_on_error():
            return super().reset(**arguments)

    def step(self, actions: Any) -> Any:
        with self._ending_on_error():
            return super().step(actions)

    def _check_spaces(self) -> None:
        """The first exchange with the children, and so the time to begin watching them."""
        watched = self.processes, self._closing, self._died, self._first
        threading.Thread(target=_watch, args=watched, daemon=True, name="rlbench-watch").start()
        super()._check_spaces()

    def _raise_if_errors(self, successes: Any) -> None:
        if not all(successes):
            raise self._fault()

    @contextmanager
    def _ending_on_error(self) -> Iterator[None]:
        try:
            yield
        except (EOFError, BrokenPipeError, ConnectionResetError):  # what a pipe says whose other end has gone
            fault = self._fault()
            self.close(terminate=True)
            raise fault from None
        except BaseException:  # an interrupt, too: answers may be left in the pipes
            self.close(terminate=True)
            raise

    def _fault(self) -> Exception:
        from rlbench.envs.spaces import EnvError  # which the children need not load

        with suppress(queue.Empty, OSError, EOFError):
            index, trace = self.error_queue.get(timeout=2.0)
            return EnvError(f"{self.name}: environment {index} failed in its process:\n{trace}")
        self._died.wait(2.0)
        index = self._first[0] if self._first else 0
        self.processes[index].join(2.0)
        code = self.processes[index].exitcode
        how = f"was killed by {signal.Signals(-code).name}" if code and code < 0 else f"ended with exit code {code}"
        return EnvError(f"{self.name}: the process of environment {index} {how}; there is nothing to step any more.")

    def close_extras(self, timeout: float | None = CLOSE_S, terminate: bool = False) -> None:
        """End all processes: ask them to close their environments, unless `terminate`, then do not ask."""
        self._closing.set()
        started = [process for process in self.processes if process.pid is not None]
        for pipe in () if terminate else self.parent_pipes:
            with suppress(OSError):
                pipe.send(("close", None))
        end = monotonic() + (0.0 if terminate else CLOSE_S if timeout is None else timeout)
        for act in ("terminate", "kill"):
            for process in started:
                process.join(max(0.0, end - monotonic()))
            for process in started:
                if process.is_alive():
                    getattr(process, act)()
            end = monotonic() + CLOSE_S
        for process in started:
            process.join()
        for pipe in self.parent_pipes:
            pipe.close()


def _watch(processes: list[Any], closing: threading.Event, died: threading.Event, first: list[int]) -> None:
    """Wait for the first process to end; unless that was asked for, end the others, so that nobody waits for ever."""
    ends = [process.sentinel for process in processes]
    ended = connection.wait(ends)
    if closing.is_set():
        return
    first.append(ends.index(ended[0]))
    died.set()
    if not closing.wait(GRACE_S):
        for process in processes:
            process.terminate()


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Numerical libraries that children load read their number of threads as they start."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the parent's script from children that start: they need nothing of it, and one without a guard starts children."""
    main = sys.modules["__main__"].__dict__
    kept = {name: main.pop(name) for name in ("__file__", "__spec__") if name in main}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(kept)


class _Traces:
    """The queue of errors, for texts alone: not every exception survives the way."""

    def __init__(self, errors: Any) -> None:
        self.errors = errors

    def put(self, error: tuple[int, Any, Any, str]) -> None:
        self.errors.put((error[0], error[3]))


def _work(index: int, make: Any, pipe: Any, parent_pipe: Any, memory: Any, errors: Any, mode: Any, gate: Any) -> None:
    """Runs in the child: Gymnasium's worker, with an environment whose making may fail."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    traces = _Traces(errors)
    try:
        env = make()
    except BaseException:
        traces.put((index, None, None, traceback.format_exc()))
        parent_pipe.close()
        pipe.send((None, False))
        return
    _async_worker(index, lambda: env, pipe, parent_pipe, memory, traces, mode, gate)


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
