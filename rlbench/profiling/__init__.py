"""Why is it slow? Where the time goes, what waits for the device, what the machine could do, and what to change."""

from __future__ import annotations

from typing import Any

# Loaded on first use: `rlbench.phase` must be as light as the code that it names.
_LAZY = {
    "Report": "rlbench.profiling.report",
    "profile": "rlbench.profiling.block",
    "profile_script": "rlbench.profiling.script",
    "profile_trainer": "rlbench.profiling.trainer",
}

__all__ = ["Report", "profile", "profile_script", "profile_trainer"]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'rlbench.profiling' has no attribute {name!r}")
