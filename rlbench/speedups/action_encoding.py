"""Action encoding: how 64-bit ids become the numbers that a network sees.

The sources extract bit after bit, 64 times for a batch, and stack what comes of it; their "after" shifts once and broadcasts
(claim B1). A table of the 256 bytes finds eight bits at a time. What comes next is a linear layer: what it makes of each byte
can be looked up as well, so that bits are not written at all and a product becomes a sum of eight rows. That pays from some
hundred ids on; for fewer the tables are not made. Where the rest of an update is large, none of this is seen.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rlbench.models.encodings import Encode, encode_byte_table, encode_fused, encode_loop, encode_shift
from rlbench.speedups.speedup import Speedup

VARIANTS = {"loop": encode_loop, "shift": encode_shift, "byte_table": encode_byte_table, "fused": encode_fused}
WIDTH = 128
OWN = ("packed_compiled", "packed_native", "packed_triton")  # evaluators that encode by themselves


def make_inputs(size: int, seed: int, device: str) -> tuple[Tensor, Tensor, Tensor]:
    """`size` ids, of which half have bit 63, a weight of width 128, and a gradient of what comes out."""
    generator = torch.Generator().manual_seed(seed)
    ids = torch.randint(-(2**63), 2**63 - 1, (size,), generator=generator)
    weight = torch.empty(WIDTH, 64).uniform_(-0.125, 0.125, generator=generator)
    gradient = torch.randn(size, WIDTH, generator=generator)
    return ids.to(device), weight.to(device), gradient.to(device)


def bind(variant: Encode, inputs: tuple[Tensor, Tensor, Tensor]) -> Callable[[], list[Tensor]]:
    """The call goes through the layer and back, and hands out its output and the weight's gradient."""
    ids, weight, gradient = inputs
    weight = weight.clone().requires_grad_()

    def there_and_back() -> list[Tensor]:
        out = variant(ids, weight)
        return [out.detach(), *torch.autograd.grad(out, weight, gradient)]

    return there_and_back


def check(expected: list[Tensor], actual: list[Tensor]) -> None:
    """Equal but for rounding: sums of up to 64 weights, or of one number an id, to 1e-5 of the largest of them."""
    for one, other in zip(expected, actual, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-5, atol=1e-5 * float(one.abs().max()))


def requires(variant: str, choices: Any, config: Any, device: torch.device, env: Any) -> str | None:
    if env is not None and env.game is None:
        return "the environment has no sets of legal actions; leave it out"
    evaluate = getattr(choices, "evaluate", None)
    if evaluate in OWN:
        return f"evaluate={evaluate!r} has an encoding of its own; leave this slot out"
    return None


SPEEDUP = Speedup(
    name="action_encoding",
    question="What does it cost to turn ids into bits?",
    summary="Look up bytes instead of extracting bits, and a layer's sums instead of bytes. Matters where sets are many.",
    variants=VARIANTS,
    make_inputs=make_inputs,
    bind=bind,
    check=check,
    requires=requires,
    sameness="close",
    sizes=(16, 1024, 16384),
    size_means=f"ids, through a layer of width {WIDTH} and back",
    workloads=("ppo",),
    claims=("B1",),
)
