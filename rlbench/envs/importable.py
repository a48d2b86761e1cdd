"""Can a factory be sent to another process, which finds functions and classes by importing them?"""

from __future__ import annotations

import pickle
from types import FunctionType
from typing import Any

from rlbench.envs.spaces import EnvError

ADVICE = (
    "a process of its own imports what it runs: write the factory as a function of a module, import it from there, and give "
    "it its arguments with functools.partial"
)


class _Refused(Exception):
    """What is found nowhere to be imported."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, type | FunctionType):
            where, name = thing.__module__, thing.__qualname__
            if "<lambda>" in name:
                raise _Refused("a lambda")
            if "<locals>" in name:
                raise _Refused(f"{name.rsplit('.', 1)[-1]}, defined inside a function")
            if where == "__main__":
                raise _Refused(f"{name}, defined in the script or notebook itself")
        return NotImplemented


class _Sink:
    """Takes bytes and keeps none."""

    def write(self, data: Any) -> int:
        return len(data)


def why_not_importable(make: Any) -> str | None:
    """The reason why a factory cannot be sent to another process, with what to do; None where it can."""
    try:
        _Pickler(_Sink()).dump(make)
    except _Refused as error:
        return f"the factory is or holds {error}; {ADVICE}"
    except Exception as error:  # whatever an object's own pickling raises
        return f"the factory cannot be pickled ({type(error).__name__}: {error}); {ADVICE}"
    return None


def pickled(make: Any, name: str) -> bytes:
    """A factory as bytes for another process. Raises EnvError with the reason where that cannot be."""
    reason = why_not_importable(make)
    if reason:
        raise EnvError(f"{name} cannot be stepped in processes: {reason}.")
    return pickle.dumps(make, protocol=pickle.HIGHEST_PROTOCOL)
