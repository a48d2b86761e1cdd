"""Packed sets in one call of C on the CPU: no operation of PyTorch, no array that is longer than a block of states needs.

An action's bits are few, so that its part of the joint layer is a sum of a few rows of the action's weights; softmax, entropy and
their derivatives are computed a state at a time, while its numbers are in the cache (`rlbench/native/policy.c`). Gradients come
through autograd, so that any loss and any optimizer go with it.
"""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.models.action_scorer import ActionScorer
from rlbench.native.build import take_build_seconds
from rlbench.native.policy import POINTER, WHOLE, Parameters, library
from rlbench.native.policy_batch import check_tensor, column, rows_of, sets_of
from rlbench.uncopied import Uncopied


class States(ctypes.Structure):
    """Kept in step with `struct states` in policy.c."""

    _fields_ = (
        *((name, POINTER) for name in ["obs", "parameters"]),
        *((name, WHOLE) for name in ["stride", "count", "most"]),
        *((name, POINTER) for name in ["ids", "offsets", "choice"]),
    )


class PackedNative(Uncopied):
    """Asks about all states in one call. Parameters are read at every call, wherever they lie then.

    Raises:
        TypeError: for a model that native code does not compute.
    """

    recompiles = 0

    def __init__(self, model: ActionScorer) -> None:
        self.model, self.parameters = model, Parameters(model)
        self.library, self.shape = library("policy"), self.parameters.shape
        self.build_s = take_build_seconds()
        self.width = self.shape.widths[0]  # D
        self.work, self.room = torch.empty(0), 0
        self._shape = ctypes.addressof(self.shape)

    def log_probs(self, obs: Tensor, legal: ActionSets) -> tuple[Tensor, Tensor]:
        """Log-probabilities (A,) of all legal actions and values (B,) of states obs (B, D), without a gradient."""
        question = self.ask(obs, legal)
        log_p, value = torch.empty(len(question.sets.ids)), torch.empty(question.count)
        question.call(self.library.policy_log_probs, log_p, value, self.work)
        return log_p, value

    def act(self, obs: Tensor, legal: ActionSets, uniform: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Choices (B,), their log-probabilities (B,) and the states' values (B,), without a gradient.

        Args:
            uniform: (B,) float32 in [0, 1); the choice is that of `segments.pick`.
        """
        question = self.ask(obs, legal)
        uniform = column("uniform", uniform, question.count)
        choice = torch.empty(question.count, dtype=torch.int64)
        log_prob, value = torch.empty(question.count), torch.empty(question.count)
        question.call(self.library.policy_act, uniform, choice, log_prob, value, self.work)
        return choice, log_prob, value

    def evaluate(self, obs: Tensor, legal: ActionSets, choice: Tensor) -> Evaluated:
        """Log-probabilities of the choices (B,), entropies and values (B,), with gradients for the model's parameters."""
        check_tensor("choice", choice)
        return Evaluated(*Chosen.apply(self, obs, legal, choice, *self.parameters.tensors()))

    def ask(self, obs: Tensor, legal: ActionSets, choice: Tensor | None = None, tensors: Any = None) -> Question:
        obs = rows_of(obs, legal, self.width)
        choice = None if choice is None else column("choice", choice, len(obs), torch.int64)
        sets, most = sets_of(legal, choice)
        if most > self.room:
            self.room = most
            self.work = torch.empty(self.library.policy_work_size(self._shape, most))
        at = self.parameters.address(self.parameters.tensors() if tensors is None else tensors)
        return Question(self._shape, at, obs, sets, choice, most)


class Question:
    """Arrays by address, and the arrays themselves, so that they live as long."""

    def __init__(
        self, shape: int, parameters: int, obs: Tensor, sets: ActionSets, choice: Tensor | None, most: int
    ) -> None:
        self.shape, self.obs, self.sets, self.choice, self.count = shape, obs, sets, choice, len(obs)
        chosen = None if choice is None else choice.data_ptr()
        self.states = States(
            obs.data_ptr(),
            parameters,
            obs.stride(0),
            len(obs),
            most,
            sets.ids.data_ptr(),
            sets.offsets.data_ptr(),
            chosen,
        )

    def call(self, function: Any, *arrays: Tensor) -> None:
        function(POINTER(self.shape), ctypes.byref(self.states), *(POINTER(array.data_ptr()) for array in arrays))


class Chosen(torch.autograd.Function):
    """One call forward, one call backward. What the layers of the state network give is kept between the two."""

    @staticmethod
    def forward(
        ctx: Any, evaluator: PackedNative, obs: Tensor, legal: ActionSets, choice: Tensor, *parameters: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        question = evaluator.ask(obs, legal, choice, parameters)
        library = evaluator.library
        kept = torch.empty(library.policy_kept_size(question.shape, question.count))
        found = tuple(torch.empty(question.count) for _ in range(3))
        question.call(library.policy_evaluate, *found, kept, evaluator.work)
        ctx.question, ctx.evaluator = question, evaluator
        ctx.save_for_backward(question.obs, *question.sets, question.choice, kept, *parameters)
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *by: Tensor) -> tuple[Tensor | None, ...]:
        evaluator, question = ctx.evaluator, ctx.question
        kept, parameters = ctx.saved_tensors[4], ctx.saved_tensors[5:]  # refused if they have changed since
        question.states.parameters = evaluator.parameters.address(parameters)
        if question.states.most > evaluator.room:
            evaluator.ask(question.obs, question.sets)
        gradient = torch.empty(evaluator.shape.size)
        by = tuple(slope.contiguous() for slope in by)
        question.call(evaluator.library.policy_gradient, *by, kept, gradient, evaluator.work)
        return None, None, None, None, *evaluator.parameters.hand_out(gradient)
