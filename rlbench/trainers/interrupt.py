"""Ctrl-C as a request: the loop finishes its iteration and returns what was learnt."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def interrupt_calls(stop: Callable[[], None]) -> Iterator[None]:
    """While open, the first interrupt calls `stop`; a second one raises KeyboardInterrupt as usual.

    An exception in the middle of an update could leave weights and replay half-written. Outside the main thread, where
    Python delivers no signals, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)

    def handle(number: int, frame: object) -> None:
        signal.signal(signal.SIGINT, before)
        stop()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
