"""The record of one optimization, from which its test, its measurement, its notebook section and its dropdown follow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from rlbench.speedups.choices import Choices

Requires = Callable[[str, "Choices | None", Any, torch.device, Any], "str | None"]


@dataclass(frozen=True)
class Speedup:
    """A slot of the trainers and the variants that can fill it.

    Attributes:
        name: the slot's name, a keyword of `Choices`.
        question: what a reader asks.
        summary: what it does, why it helps and when it does not, in a sentence or two.
        variants: by name, plainest first; all have one signature.
        make_inputs: (size, seed, device) -> what `bind` takes; the same for the same arguments.
        bind: (variant, inputs) -> a call without arguments. State is built once; the call is what is timed.
        check: (expected, actual) of two calls' outcomes; raises AssertionError where they differ.
        requires: (variant name, choices or None, config or None, device, `EnvSource` or None) -> the reason why it cannot be
            used, or None. What is None is not known yet and gives no reason.
        sameness: "bitwise", "close" or "statistical".
        sizes: what `make_inputs` is measured at.
        size_means: what a size counts.
        workloads: the trainers that have this slot.
        loops: the variants of the slot `loop` that leave this to a slot of its own.
        claims: the claims that it tests.
        fallback: what stands in where neither a variant nor plain()'s can be used; the plainest one where left out.
    """

    name: str
    question: str
    summary: str
    variants: Mapping[str, Callable[..., Any]]
    make_inputs: Callable[[int, int, str], Any]
    bind: Callable[[Callable[..., Any], Any], Callable[[], Any]]
    check: Callable[[Any, Any], None]
    requires: Requires
    sameness: str
    sizes: tuple[int, ...]
    size_means: str
    workloads: tuple[str, ...] = ("dqn",)
    loops: tuple[str, ...] = ("python",)
    claims: tuple[str, ...] = ()
    fallback: str = ""

    @property
    def plainest(self) -> str:
        return next(iter(self.variants))

    def exercise(self, variant: Callable[..., Any], inputs: Any) -> Any:
        """One call's outcome, to be compared."""
        return self.bind(variant, inputs)()


def no_needs(variant: str, choices: Choices | None, config: Any, device: torch.device, env: Any) -> str | None:
    """For slots whose variants work everywhere."""
    return None


def check_equal(expected: Any, actual: Any) -> None:
    """Bitwise sameness of two (nested sequences of) tensors: values, shapes and types."""
    if expected is None or actual is None:
        assert expected is actual, f"one is None: {expected!r}, {actual!r}"
    elif isinstance(expected, torch.Tensor):
        torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    else:
        assert len(expected) == len(actual), f"{len(expected)} parts against {len(actual)}"
        for one, other in zip(expected, actual, strict=True):
            check_equal(one, other)
