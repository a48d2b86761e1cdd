"""Update: one step of Adam on the temporal-difference loss.

Eager PyTorch spends most of a small network's update on calls: a hundred operations of a few microseconds each, for arithmetic
that one core does in a tenth of that. `compiled` fuses what lies between the matrix products into a few loops (claim B19); it
costs seconds to tens of seconds once, and products are called as before. `chunked` takes all updates of a round
(`gradient_steps`) in one such call. `cuda_graph` captures the same and replays it: on a GPU the host then gives one order
instead of one for each kernel (claim C4). `native` does the whole update in one call of a C function on the CPU (claim B20):
products whose tiles stay in vector registers, then gradient, clipping and Adam in one pass over flat storage. All gain most on
small networks and batches; on large ones products are what takes the time.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.compile import why_not
from rlbench.config import DQNConfig
from rlbench.models import mlp
from rlbench.native.build import BuildError, load
from rlbench.native.dqn import why_no_network
from rlbench.speedups.optimizer import for_loop
from rlbench.speedups.speedup import Speedup
from rlbench.updates.compiled import ChunkedUpdate, CompiledUpdate, forget_compiled
from rlbench.updates.eager import EagerUpdate
from rlbench.updates.graph import GraphUpdate
from rlbench.updates.native import Native

VARIANTS = {
    "eager": EagerUpdate,
    "compiled": CompiledUpdate,
    "chunked": ChunkedUpdate,
    "cuda_graph": GraphUpdate,
    "native": Native,
}
UPDATES = 4  # a call of a measurement, and what is asked of a chunk


def make_inputs(size: int, seed: int, device: str) -> tuple:
    """Two 16-64-64-3 networks and minibatches of `size` rows, one after another."""
    generator = torch.Generator().manual_seed(seed)
    online, target = (mlp(16, (64, 64), 3, generator).to(device) for _ in range(2))
    rows = size * UPDATES
    wide = [torch.randn((rows, 16), generator=generator).to(device) for _ in range(2)]
    action = torch.randint(0, 3, (rows,), generator=generator).to(device)
    reward = torch.randn(rows, generator=generator).to(device)
    ends = [(torch.rand(rows, generator=generator) < 0.1).float().to(device) for _ in range(2)]
    discount = torch.full((rows,), 0.99, device=device)
    return online, target, Transitions(wide[0], action, reward, wide[1], *ends, discount)


def bind(variant: Callable[..., Any], inputs: tuple) -> Callable[[], list[Tensor]]:
    """The call does a few updates, each on its minibatch, and hands out losses and parameters."""
    online, target, rows = inputs
    online = copy.deepcopy(online)
    forget_compiled()  # so that the first call shows what compiling costs
    config = DQNConfig(batch_size=len(rows.action) // UPDATES, gradient_steps=UPDATES)
    update = variant(online, copy.deepcopy(target), config, for_loop)
    batches = split(rows, config.batch_size * update.chunk)

    def updates() -> list[Tensor]:
        losses = [update(batch, 1e-3).loss.reshape(-1) for batch in batches]
        return [torch.cat(losses), *(parameter.detach() for parameter in online.parameters())]

    return updates


def split(rows: Transitions, size: int) -> list[Transitions]:
    """Minibatches of `size` rows."""
    parts = (None if field is None else field.split(size) for field in rows)
    count = len(rows.action) // size
    return [Transitions(*batch) for batch in zip(*(p or (None,) * count for p in parts), strict=True)]


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """Equal but for rounding: Adam moves each parameter by about the step size, 1e-3, at every update."""
    for one, other in zip(expected, actual, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=2e-5)


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if variant == "eager":
        return None
    if variant == "native":
        return _native_requires(config, device)
    if variant == "cuda_graph":
        reason = None if device.type == "cuda" else f"a graph needs CUDA, and this runs on {device.type}"
        return f"{reason}; accepted here: eager, compiled" if reason else _chunk_requires(config)
    if reason := why_not(device.type):
        return f"{reason}; accepted here: eager"
    if variant == "chunked" and config is not None and config.gradient_steps == 1:
        return "a round has one update (gradient_steps=1), and chunked joins those of a round; accepted here: compiled"
    return _chunk_requires(config) if variant == "chunked" else None


def _chunk_requires(config: Any) -> str | None:
    if config is None or config.gradient_steps == 1 or not config.prioritized_replay_alpha:
        return None
    return (
        f"prioritised replay samples by the errors of the update before, and the {config.gradient_steps} updates of a round "
        "would be sampled at once; accepted here: eager, compiled"
    )


def _native_requires(config: Any, device: torch.device) -> str | None:
    if device.type != "cpu":
        return f"native code runs on the CPU, and this runs on {device.type}; accepted here: eager, compiled"
    if config is not None and (reason := why_no_network(config)):
        return f"{reason}; accepted here: eager, compiled"
    try:
        load("dqn_update")
    except BuildError as error:
        return f"{error}; accepted here: eager"
    return None


SPEEDUP = Speedup(
    name="update",
    question="What does one update cost?",
    summary="One call instead of a hundred small operations. Matters most for small networks and batches.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(32, 128, 1024),
    size_means="rows in a batch",
    claims=("B19", "B20", "C4"),
)
