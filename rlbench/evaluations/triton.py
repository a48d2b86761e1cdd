"""All states at once, their actions packed, encoded and scored by a Triton kernel that writes no bits to memory: on CUDA.

The softmax over each state's scores, and its backward pass, are those of `packed`.
"""

from __future__ import annotations

import importlib.util
import os
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rlbench import compile as compiling
from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.evaluations.packed import without_autocast
from rlbench.evaluations.views import Spans, View, view_of
from rlbench.models.action_scorer import ActionScorer

INTERPRETER = "TRITON_INTERPRET"  # set to 1 before Triton is imported: kernels then run on the CPU, slowly
KERNELS = 3


def why_not(device: torch.device) -> str | None:
    """Why the kernel cannot work on a device, or None."""
    if device.type == "cuda":
        return compiling.why_not("cuda")
    if os.environ.get(INTERPRETER) != "1":
        return f"Triton's kernels need CUDA, and this runs on {device.type}"
    return None if importlib.util.find_spec("triton") else f"{INTERPRETER} is set, and Triton is not installed"


class PackedTriton:
    """Asks about all states in one go; encoder and scores are one kernel, whatever encoding the model was given."""

    def __init__(self, model: ActionScorer) -> None:
        from rlbench.evaluations import triton_kernels  # needs Triton

        self.model, self.kernels = model, triton_kernels
        self._built = len(triton_kernels.builds_s)  # before this object

    @property
    def build_s(self) -> float:
        """Seconds that first launches of kernels took since this was made."""
        return sum(self.kernels.builds_s[self._built :])

    @property
    def recompiles(self) -> int:
        """First launches since this was made beyond one of each kernel: for another width, type or precision."""
        return max(0, len(self.kernels.builds_s) - self._built - KERNELS)

    @torch.no_grad()
    def log_probs(self, obs: Tensor, legal: ActionSets) -> tuple[Tensor, Tensor]:
        """Log-probabilities (A,) of all legal actions and values (B,) of states obs (B, D), without a gradient."""
        legal, view, states = laid_out(obs, legal)
        arrays, value = self.arrays(obs)
        scores = self.kernels.scores_of(*arrays, legal, states, precision_on(obs.device.type))
        return view.log_softmax(view.shape(scores)).flatten(), value

    def evaluate(self, obs: Tensor, legal: ActionSets, choice: Tensor) -> Evaluated:
        """Log-probabilities of the choices (B,), entropies and values (B,)."""
        legal, view, states = laid_out(obs, legal)
        arrays, value = self.arrays(obs)
        log_prob, entropy = ChosenByKernel.apply(*arrays, *legal, states, view, view.at(choice), self.kernels)
        return Evaluated(log_prob, entropy, value)

    def arrays(self, obs: Tensor) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
        """((a state's part (B, H), W (H, 64), v (H,)), values (B,))."""
        joint, value = self.model.states(obs)
        return (joint.contiguous(), self.model.action.contiguous(), self.model.score.contiguous()), value


class ChosenByKernel(torch.autograd.Function):
    """From a state's part (B, H), W (H, 64) and v (H,): the choices' log-probabilities (B,), and the entropies (B,).

    As `packed.Chosen`: with s the scores, p their softmax and E its entropy,
    d log p_c / d s_a = [a = c] - p_a  and  d E / d s_a = -p_a (log p_a + E).
    """

    @staticmethod
    def forward(ctx: Any, joint: Tensor, weight: Tensor, v: Tensor, *given: Any) -> tuple[Tensor, Tensor]:
        ids, offsets, states, view, at, kernels = given
        ctx.precision, ctx.view, ctx.kernels = precision_on(joint.device.type), view, kernels
        scores = kernels.scores_of(joint, weight, v, ActionSets(ids, offsets), states, ctx.precision)
        log_p = view.log_softmax(view.shape(scores))
        p = log_p.exp()
        entropy = view.sums(p * log_p).neg_()
        ctx.save_for_backward(joint, weight, v, ids, offsets, states, log_p, p, entropy, at)
        return log_p.flatten().index_select(0, at), entropy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_log_prob: Tensor, d_entropy: Tensor) -> tuple[Tensor | None, ...]:
        joint, weight, v, ids, offsets, states, log_p, p, entropy, at = ctx.saved_tensors
        view: View = ctx.view
        with without_autocast(joint.device.type):
            pull = torch.addcmul(d_log_prob, d_entropy, entropy).neg_()  # (B,)
            d_scores = torch.addcmul(view.spread(pull), view.spread(d_entropy), log_p, value=-1).mul_(p)
            d_scores = d_scores.flatten().index_add_(0, at, d_log_prob)  # (A,)
            legal = ActionSets(ids, offsets)
            d_joint, *others = ctx.kernels.gradients_of(joint, weight, v, legal, states, d_scores, ctx.precision)
        return d_joint.to(joint.dtype), *others, *[None] * 6


def laid_out(obs: Tensor, legal: ActionSets) -> tuple[ActionSets, View, Tensor]:
    """(the sets in contiguous arrays, how they are looked at, the state that each action belongs to (A,) int64)."""
    legal, view = ActionSets(legal.ids.contiguous(), legal.offsets.contiguous()), view_of(obs, legal)
    if isinstance(view, Spans):
        return legal, view, view.states
    return legal, view, torch.arange(len(legal.ids), device=obs.device).div_(view.count, rounding_mode="floor")


def precision_on(device_type: str) -> str:
    """How the kernels multiply: as exactly as float32 does, or in TF32 where it, or a type of 16 bits, was asked for.

    Ids' bits are exact in any type, so that under autocast TF32 rounds less than what was asked for.
    """
    if device_type != "cuda":
        return "ieee"
    rounded = torch.is_autocast_enabled(device_type) or torch.backends.cuda.matmul.fp32_precision == "tf32"
    return "tf32" if rounded else "ieee"
