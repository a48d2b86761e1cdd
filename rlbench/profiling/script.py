"""A reader's script, run as Python would run it, and watched."""

from __future__ import annotations

import ctypes
import importlib.util
import runpy
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import torch

from rlbench.profiling.block import fill
from rlbench.profiling.frames import YOURS, is_own, whose
from rlbench.profiling.gather import evidence_of
from rlbench.profiling.report import Report
from rlbench.profiling.session import Plan, Session

WAS_INTERRUPTED = "it was interrupted"
GRACE_S = 5.0  # after the time is up, for the next step to be over; then the script is stopped wherever it is


class TimeUp(BaseException):
    """The time of a profile is up. No Exception, so that `except Exception` in the script lets it through."""


def profile_script(
    path: str | Path, args: Sequence[str] = (), seconds: float = 60.0, *, module: bool = False, threads: bool = True
) -> Report:
    """Run a script, or a module as `python -m` does, for at most `seconds`, and report.

    It is stopped at the end of a step, by an exception that passes `finally` clauses and context managers. What it prints and
    writes is its own. An exception of its own ends the profile; the report names it.

    Args:
        path: the file, or with `module` the dotted name.
        args: the script's own arguments.
        threads: try other numbers of torch threads for some of the time.

    Raises:
        FileNotFoundError: there is no such script or module.
    """
    check_script(path, module)
    where = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    plan = Plan.within(seconds, threads)

    def over() -> None:
        raise TimeUp

    session = Session(where, plan, deadline_s=seconds, over=over)
    load_gymnasium()
    with as_main(str(path), args, module):
        try:
            with session, _Watch(seconds + GRACE_S):
                if module:
                    runpy.run_module(str(path), run_name="__main__", alter_sys=True)
                else:
                    runpy.run_path(str(path), run_name="__main__")
        except TimeUp:
            session.error = ""
        except SystemExit as leaving:
            session.error = f"sys.exit({leaving.code!r})" if leaving.code not in (None, 0) else ""
        except KeyboardInterrupt:
            session.error = WAS_INTERRUPTED
        except Exception as error:
            traceback.print_exception(type(error), error, theirs(error.__traceback__))
    report = Report()
    fill(report, session, evidence_of(session, "script", f"-m {path}" if module else Path(path).name))
    return report


def theirs(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the script's own first frame on."""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if whose(file) == YOURS and not is_own(file):
            break
        trace = trace.tb_next
    return trace


def check_script(path: str | Path, module: bool) -> None:
    """Refuse what cannot be run before anything is loaded."""
    if module:
        try:
            there = importlib.util.find_spec(str(path)) is not None
        except (ImportError, ValueError):
            there = False
        if not there:
            raise FileNotFoundError(
                f"there is no module {str(path)!r} to profile; accepted is a dotted name that `python -m` takes"
            )
    elif not Path(path).is_file():
        raise FileNotFoundError(f"there is no script {str(path)!r}; accepted: dqn, ppo, or the path of a Python file")


def load_gymnasium() -> None:
    """Its base class must be there before the script derives from it."""
    if importlib.util.find_spec("gymnasium") is not None:
        importlib.import_module("gymnasium")


@contextmanager
def as_main(path: str, args: Sequence[str], module: bool) -> Iterator[None]:
    """sys.argv and sys.path as the script would find them, for as long as it runs."""
    argv, search = sys.argv, list(sys.path)
    sys.argv = [path, *args]
    sys.path.insert(0, "" if module else str(Path(path).resolve().parent))
    try:
        yield
    finally:
        sys.argv, sys.path[:] = argv, search


class _Watch:
    """Stops this thread by `TimeUp` after `seconds`, wherever it is: for scripts that never come to the end of a step."""

    def __init__(self, seconds: float) -> None:
        thread = ctypes.c_ulong(threading.get_ident())

        def stop() -> None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(thread, ctypes.py_object(TimeUp))

        self.timer = threading.Timer(seconds, stop)
        self.timer.daemon = True

    def __enter__(self) -> None:
        self.timer.start()

    def __exit__(self, *exc: object) -> None:
        self.timer.cancel()
