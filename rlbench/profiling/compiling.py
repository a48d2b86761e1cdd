"""What torch.compile has taken so far: it compiles within the call that needs it, where a clock cannot tell it from the work."""

from __future__ import annotations

import sys

# Of forward passes, and of backward passes, which are compiled when the first of them is called.
WHOLE = ("_compile.compile_inner", "backward._backward_impl")


def compile_seconds() -> float:
    """Seconds in this process; 0 where nothing was compiled, or where torch keeps no such times."""
    utils = sys.modules.get("torch._dynamo.utils")
    times = getattr(utils, "compilation_time_metrics", {})
    return sum(sum(times.get(name, ())) for name in WHOLE)
