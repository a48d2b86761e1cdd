"""PPO's update in native code on the CPU: one call a minibatch, or one for all minibatches of an epoch."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from rlbench.actions import ActionError
from rlbench.batch import Decisions, PPOUpdated
from rlbench.config import PPOConfig
from rlbench.models.action_scorer import ActionScorer
from rlbench.native.build import check_layout, take_build_seconds
from rlbench.native.policy import POINTER, WHOLE, Parameters, library
from rlbench.native.policy_batch import check_tensor, column, rows_of, sets_of
from rlbench.phases import phase
from rlbench.uncopied import Uncopied
from rlbench.updates.functional import BETA1, BETA2, EPS
from rlbench.updates.precision import FLOAT32, Precision
from rlbench.updates.stepper import MakeOptimizer

COLUMNS = ("log_prob", "value", "advantage", "target")


class Job(ctypes.Structure):
    """Kept in step with `struct ppo` in ppo_update.c."""

    _fields_ = (
        *(
            (name, POINTER)
            for name in ["policy", "parameters", "gradient", "moment1", "moment2", "work", "obs", *COLUMNS]
        ),
        *((name, POINTER) for name in ["ids", "offsets", "choice"]),
        *((name, WHOLE) for name in ["obs_stride", "most", "norm_adv", "clip_vloss", "step"]),
        *((name, ctypes.c_double) for name in ["learning_rate", "beta1", "beta2"]),
        *((name, ctypes.c_float) for name in ["eps", "max_norm", "clip_coef", "ent_coef", "vf_coef"]),
    )


class PPONative(Uncopied):
    """Forward, loss, backward, clipping and Adam in one call. The model keeps its modules, whose parameters become views.

    A minibatch is computed a few hundred rows at a time, whatever its size, so that `gradient_accumulation` has nothing to save.
    Rounding differs from PyTorch's, whose products add in another order; nothing else does.

    Raises:
        TypeError: for a model that native code does not compute, and for another precision than float32.
    """

    recompiles = skipped = 0

    def __init__(
        self,
        model: ActionScorer,
        config: PPOConfig,
        evaluator: Any,
        make_optimizer: MakeOptimizer,
        precision: Precision = FLOAT32,
    ) -> None:
        del evaluator, make_optimizer  # it has a policy and an Adam of its own
        if precision.autocast is not None:
            raise TypeError(f"the native update computes in float32, not in {precision.name}.")
        self.source = Parameters(model)
        self.shape, self.library = self.source.shape, library("ppo_update")
        check_layout(self.library, "ppo", Job)
        self.build_s = take_build_seconds()
        self.parameters = self.source.adopt()  # (P,)
        self.gradient, self.moment1, self.moment2 = (torch.zeros_like(self.parameters) for _ in range(3))
        self.work, self.room = torch.empty(0), 0
        job = Job(ctypes.addressof(self.shape), beta1=BETA1, beta2=BETA2, eps=EPS, max_norm=config.max_grad_norm)
        for name in ("parameters", "gradient", "moment1", "moment2"):
            setattr(job, name, getattr(self, name).data_ptr())
        for name in ("norm_adv", "clip_vloss", "clip_coef", "ent_coef", "vf_coef"):
            setattr(job, name, getattr(config, name))
        self.job = job

    @property
    def taken(self) -> int:
        """Steps of Adam so far."""
        return self.job.step

    def __call__(self, batch: Decisions, learning_rate: float) -> PPOUpdated:
        """Update the policy on a minibatch."""
        check_tensor("choice", batch.choice)
        return PPOUpdated(*(number[0] for number in self._run(batch, None, [len(batch.choice)], learning_rate)))

    def epoch(self, decisions: Decisions, order: Tensor, sizes: Sequence[int], learning_rate: float) -> PPOUpdated:
        """Update the policy on one minibatch after another, whose rows are read where they lie among M decisions.

        Args:
            order: (R,) int64, the rows of the first minibatch, then those of the next.
            sizes: rows of each minibatch, R in sum.

        Returns:
            Each field (K,), one number a minibatch.
        """
        check_tensor("choice", decisions.choice)
        order = column("order", order, sum(sizes), torch.int64)
        if bad := self.library.ppo_check_order(len(order), order.data_ptr(), len(decisions.choice)):
            raise ActionError(
                f"order[{bad - 1}] is {int(order[bad - 1])}; accepted: rows 0 to {len(decisions.choice) - 1} of the decisions."
            )
        return PPOUpdated(*self._run(decisions, order, sizes, learning_rate))

    def _run(
        self, decisions: Decisions, order: Tensor | None, sizes: Sequence[int], learning_rate: float
    ) -> Sequence[Tensor]:
        if min(sizes, default=1) < 1:
            raise ActionError(f"minibatches of {list(sizes)} rows are refused; accepted: 1 row or more in each.")
        with phase("update"):
            kept = self._point_at(decisions)
            self.job.learning_rate = learning_rate
            numbers = torch.empty((len(PPOUpdated._fields), len(sizes)))
            rows = (ctypes.c_int64 * len(sizes))(*map(int, sizes))
            place = None if order is None else order.data_ptr()
            self.library.ppo_updates(ctypes.addressof(self.job), place, rows, len(sizes), numbers.data_ptr())
            del kept
        return numbers.unbind()

    def _point_at(self, decisions: Decisions) -> list[Tensor]:
        """Enter the decisions' arrays into the job; returned are those that must live while it runs."""
        job = self.job
        if self.source.address(self.source.tensors()) != job.parameters:
            raise TypeError(
                "the model's parameters were moved out of the memory that the native update works on; load weights in place "
                "(load_state_dict without assign=True), or make a new trainer."
            )
        obs = rows_of(decisions.obs, decisions.legal, self.shape.widths[0])
        rows = len(obs)
        choice = column("choice", decisions.choice, rows, torch.int64)
        sets, most = sets_of(decisions.legal, choice)
        columns = [column(name, getattr(decisions, name), rows) for name in COLUMNS]
        if most > self.room:
            self.room = most
            self.work = torch.empty(self.library.ppo_work_size(job.policy, most))
            job.work = self.work.data_ptr()
        job.most = self.room
        job.obs, job.obs_stride, job.choice = obs.data_ptr(), obs.stride(0), choice.data_ptr()
        job.ids, job.offsets = sets.ids.data_ptr(), sets.offsets.data_ptr()
        for name, values in zip(COLUMNS, columns, strict=True):
            setattr(job, name, values.data_ptr())
        return [obs, choice, *sets, *columns]
