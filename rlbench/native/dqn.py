"""The native DQN update for a multi-layer perceptron on the CPU: a Python face for dqn_update.c."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from rlbench.batch import Transitions, Updated
from rlbench.native.build import check_layout, load, take_build_seconds
from rlbench.uncopied import Uncopied

WIDE = 16  # floats in a vector of dqn_update.c
MOST_LAYERS = 16  # kept in step with dqn_update.c
POINTER = ctypes.c_void_p


class Job(ctypes.Structure):
    """Kept in step with `struct job` in dqn_update.c."""

    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in ["layers", "batch", "obs_stride", "next_stride", "mask_stride", "double_dqn", "huber", "step"]
        ),
        ("widths", ctypes.c_int64 * (MOST_LAYERS + 1)),
        *((name, ctypes.c_float) for name in ["learning_rate", "beta1", "beta2", "eps", "max_norm"]),
        *(
            (name, POINTER)
            for name in [
                "obs",
                "next_obs",
                "reward",
                "terminated",
                "discount",
                "next_mask",
                "weight",
                "action",
                "scalar_strides",
            ]
        ),
        *(
            (name, POINTER)
            for name in ["online", "gradient", "moment1", "moment2", "work", "target_out", "error_out", "target"]
        ),
    )


def padded(width: int) -> int:
    """The width of a row in storage: the next multiple of a vector."""
    return -(-width // WIDE) * WIDE


def linears(network: nn.Module) -> list[nn.Linear] | None:
    """The layers of a network that is Linear, ReLU, Linear, … Linear in float32 on the CPU; None for any other."""
    layers = list(network) if isinstance(network, nn.Sequential) else []
    fits = len(layers) % 2 == 1 and len(layers) < 2 * MOST_LAYERS
    fits = fits and all(type(layer) is (nn.ReLU if i % 2 else nn.Linear) for i, layer in enumerate(layers))
    found = [layer for layer in layers if isinstance(layer, nn.Linear)]
    own = [parameter for layer in found for parameter in layer.parameters()]
    plain = all(p.device.type == "cpu" and p.dtype == torch.float32 for p in own) and len(own) == 2 * len(found)
    return found if fits and plain else None


def flatten(layers: Sequence[nn.Linear]) -> Tensor:
    """Move the parameters of `layers` into one array, of which they become views; the array is returned.

    Weights lie there as (inputs, outputs) with padded rows, each followed by its bias.
    """
    sizes = [(layer.in_features + 1) * padded(layer.out_features) for layer in layers]
    storage = torch.zeros(sum(sizes), dtype=torch.float32)
    for layer, part in zip(layers, storage.split(sizes), strict=True):
        rows = part.view(layer.in_features + 1, padded(layer.out_features))[:, : layer.out_features]
        with torch.no_grad():
            rows[:-1].copy_(layer.weight.t())
            rows[-1].copy_(layer.bias)
        layer.weight.data, layer.bias.data = rows[:-1].t(), rows[-1]
    return storage


def why_no_network(config: Any) -> str | None:
    """The reason why the network of these settings is not one that native code computes, or None."""
    if config.network != "mlp":
        return f"native code has no network={config.network!r}"
    if len(config.hidden) >= MOST_LAYERS:
        return f"native code has room for {MOST_LAYERS - 1} hidden layers, and hidden has {len(config.hidden)}"
    return None


class NativeUpdate(Uncopied):
    """One call an update. The networks keep their modules, whose parameters become views of flat storage.

    Rounding differs from PyTorch's, whose products add in another order; nothing else does.
    """

    def __init__(
        self, online: nn.Module, target: nn.Module, double_dqn: bool, huber: bool, max_grad_norm: float, eps: float
    ) -> None:
        layers, slow = linears(online), linears(target)
        if layers is None or slow is None:
            raise TypeError("the native update takes Linear and ReLU layers in float32 on the CPU.")
        library = load("dqn_update")
        check_layout(library, "job", Job)
        self.build_s = take_build_seconds()
        self._update, self._work_size = library.dqn_update, library.dqn_work_size
        self._update.restype, self._work_size.restype = ctypes.c_float, ctypes.c_int64
        self.online, self.target = flatten(layers), flatten(slow)
        self.gradient, self.moment1, self.moment2 = (torch.zeros_like(self.online) for _ in range(3))
        widths = [layers[0].in_features, *(layer.out_features for layer in layers)]
        self.job = Job(layers=len(layers), double_dqn=double_dqn, huber=huber, max_norm=max_grad_norm)
        self.job.beta1, self.job.beta2, self.job.eps = 0.9, 0.999, eps
        self.job.widths[: len(widths)] = widths
        self._strides = (ctypes.c_int64 * 4)()
        self.job.scalar_strides = ctypes.cast(self._strides, POINTER)
        for name in ("online", "gradient", "moment1", "moment2", "target"):
            setattr(self.job, name, getattr(self, name).data_ptr())
        self.work = torch.empty(0)

    def __call__(self, batch: Transitions, learning_rate: float) -> Updated:
        """Update the online network on a minibatch."""
        job, rows = self.job, len(batch.action)
        if job.batch != rows:
            job.batch = rows
            self.work = torch.empty(self.work_size(job), dtype=torch.float32)
            job.work = self.work.data_ptr()
        kept = [_rows(batch.obs), _rows(batch.next_obs), None if batch.next_mask is None else _rows(batch.next_mask)]
        obs, next_obs, mask = kept
        targets, errors = torch.empty(rows), torch.empty(rows)
        job.obs, job.next_obs, job.target_out = obs.data_ptr(), next_obs.data_ptr(), targets.data_ptr()
        job.error_out, job.weight = errors.data_ptr(), None if batch.weight is None else batch.weight.data_ptr()
        job.obs_stride, job.next_stride = obs.stride(0), next_obs.stride(0)
        job.next_mask, job.mask_stride = (None, 0) if mask is None else (mask.data_ptr(), mask.stride(0))
        for i, name in enumerate(("action", "reward", "terminated", "discount")):
            column = getattr(batch, name)
            setattr(job, name, column.data_ptr())
            self._strides[i] = column.stride(0)
        job.learning_rate = learning_rate
        job.step += 1
        return Updated(torch.tensor(self._update(ctypes.byref(job))), targets, errors)

    def work_size(self, job: Job) -> int:
        """Floats of memory that an update needs to work in."""
        return self._work_size(ctypes.byref(job))


def _rows(tensor: Tensor) -> Tensor:
    """The tensor as rows whose numbers lie side by side; a view of packed rows is one already."""
    return tensor if tensor.stride(1) == 1 or tensor.shape[1] == 1 else tensor.contiguous()
