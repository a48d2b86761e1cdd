"""One updater compiled in a process of its own, which prints what that took: `python -m rlbench.experiments.compile_once …`."""

from __future__ import annotations

import json
import sys
from typing import Any

import torch

from rlbench.speedups.update import SPEEDUP, bind, make_inputs


def seconds_to_compile(variant: str, batch_size: int, device: str, threads: int) -> dict[str, Any]:
    """Of the first few updates of a 16-64-64-3 network: seconds of compilation as the updater counts them."""
    torch.set_num_threads(threads)
    made: list[Any] = []

    def make(*given: Any) -> Any:
        made.append(SPEEDUP.variants[variant](*given))
        return made[-1]

    call = bind(make, make_inputs(batch_size, 0, device))
    call()
    call()
    return {"compile_s": made[0].build_s}


if __name__ == "__main__":
    name, rows, where, count = sys.argv[1:]
    print(json.dumps(seconds_to_compile(name, int(rows), where, int(count))))
