"""A policy over sets of actions on the CPU: a Python face for policy.c, and where its parameters lie."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rlbench.actions import BITS
from rlbench.models.action_scorer import ActionScorer
from rlbench.native.build import BuildError, check_layout, load
from rlbench.native.dqn import WIDE, padded

MOST_LAYERS = 16  # kept in step with policy.h
POINTER, WHOLE = ctypes.c_void_p, ctypes.c_int64
LIBRARIES = ("policy", "ppo_update")


class Shape(ctypes.Structure):
    """Kept in step with `struct policy` in policy.h."""

    _fields_ = (
        ("layers", WHOLE),
        ("widths", WHOLE * (MOST_LAYERS + 1)),
        ("state", WHOLE * MOST_LAYERS),
        *((name, WHOLE) for name in ["join", "value", "action", "score", "size"]),
    )

    @classmethod
    def of(cls, model: ActionScorer) -> Shape:
        """Where each layer's parameters begin in one vector: weights (inputs, outputs) in padded rows, then the bias."""
        layers = [layer for layer in model.state if isinstance(layer, nn.Linear)]
        widths = [layers[0].in_features, *(layer.out_features for layer in layers)]
        wide = padded(widths[-1])
        shape = cls(layers=len(layers))
        shape.widths[: len(widths)] = widths
        end = 0
        for i, layer in enumerate(layers):
            shape.state[i] = end
            end += (layer.in_features + 1) * padded(layer.out_features)
        shape.join, end = end, end + (widths[-1] + 1) * wide
        shape.value, end = end, end + wide + WIDE
        shape.action, end = end, end + (BITS + 1) * wide  # a row of zeros behind those of the bits
        shape.score, shape.size = end, end + wide
        return shape

    def parts(self) -> Iterator[tuple[str, int, int, int]]:
        """(parameter, where it begins, rows, columns) of each, in the order of `ActionScorer.named_parameters()`."""
        h = self.widths[self.layers]
        wide = padded(h)
        yield "action", self.action, BITS, h
        yield "score", self.score, 1, h
        for i in range(self.layers):
            inputs, outputs = self.widths[i], self.widths[i + 1]
            yield f"state.{2 * i}.weight", self.state[i], inputs, outputs
            yield f"state.{2 * i}.bias", self.state[i] + inputs * padded(outputs), 1, outputs
        yield "value.weight", self.value, 1, h
        yield "value.bias", self.value + wide, 1, 1
        yield "join.weight", self.join, h, h
        yield "join.bias", self.join + h * wide, 1, h

    def views(self, vector: Tensor) -> dict[str, Tensor]:
        """Each parameter, in the shape that the module knows, as a view of the vector."""
        found = {}
        for name, at, rows, columns in self.parts():
            part = vector.as_strided((rows, columns), (padded(columns), 1), at)
            one = name in ("score", "value.bias") or name.endswith(".bias")
            found[name] = part[0] if one else part if name == "value.weight" else part.t()
        return found


class Parameters:
    """Finds the parameters of a model as one vector, at every call anew: they may have been replaced."""

    def __init__(self, model: ActionScorer) -> None:
        if reason := why_no_policy(model=model):
            raise TypeError(f"{reason}.")
        self.library = library("policy")
        self.model, self.shape = model, Shape.of(model)
        self.names = [name for name, *_ in self.shape.parts()]
        self.shapes = [parameter.shape for parameter in _parameters(model, self.names)]
        self.own = torch.zeros(self.shape.size)
        self.places = np.zeros((len(self.names), 7), np.int64)  # kept in step with `struct part` in policy.c
        self.places[:, :4] = [(at, rows, columns, padded(columns)) for _, at, rows, columns in self.shape.parts()]

    def tensors(self) -> list[Tensor]:
        """The model's parameters.

        Raises:
            TypeError: where they are no longer what the model was made with.
        """
        found = _parameters(self.model, self.names)
        for name, parameter, shape in zip(self.names, found, self.shapes, strict=True):
            if parameter.dtype != torch.float32 or not parameter.is_cpu or parameter.shape != shape:
                raise TypeError(
                    f"{name} is now {tuple(parameter.shape)} {parameter.dtype} on {parameter.device}; accepted by native "
                    f"code: {tuple(shape)} torch.float32 on cpu, as it was."
                )
        return found

    def address(self, tensors: list[Tensor]) -> int:
        """Where the parameters lie as one vector: where they are if they are one, else where they were copied to."""
        self._point_at(tensors)
        return self.library.policy_parameters(len(tensors), self.places.ctypes.data, self.own.data_ptr())

    def hand_out(self, vector: Tensor) -> list[Tensor]:
        """A vector's numbers (P,) as new tensors in the shapes of the parameters."""
        tensors = [torch.empty(shape) for shape in self.shapes]
        self._point_at(tensors)
        self.library.policy_hand_out(len(tensors), self.places.ctypes.data, vector.data_ptr())
        return tensors

    def _point_at(self, tensors: list[Tensor]) -> None:
        self.places[:, 4:] = [(t.data_ptr(), *_strides(t, name)) for t, name in zip(tensors, self.names, strict=True)]

    @torch.no_grad()
    def adopt(self) -> Tensor:
        """Move the model's parameters into one vector (P,), of which they become views."""
        vector = torch.zeros(self.shape.size)
        for parameter, view in zip(self.tensors(), self.shape.views(vector).values(), strict=True):
            view.copy_(parameter)
            parameter.data = view
        return vector


def _parameters(model: ActionScorer, names: list[str]) -> list[Tensor]:
    """As get_parameter, without the search through each module's attributes."""
    found = []
    for name in names:
        *path, last = name.split(".")
        module: Any = model
        for part in path:
            module = module._modules[part]
        found.append(module._parameters[last])
    return found


def _strides(parameter: Tensor, name: str) -> tuple[int, int]:
    """(from row to row, from column to column) of a parameter as `Shape.parts` has it."""
    strides = parameter.stride()
    if len(strides) == 1:
        return 0, strides[0]
    return strides if name == "value.weight" else (strides[1], strides[0])


def library(name: str) -> ctypes.CDLL:
    """policy.c or ppo_update.c, built, with the types of its functions."""
    found = load(name)
    if name == "policy":
        check_layout(found, "shape", Shape)
        found.policy_parameters.restype, found.policy_parameters.argtypes = WHOLE, (WHOLE, POINTER, POINTER)
        found.policy_hand_out.restype, found.policy_hand_out.argtypes = None, (WHOLE, POINTER, POINTER)
        found.policy_check.restype, found.policy_check.argtypes = WHOLE, (WHOLE, POINTER, WHOLE, POINTER)
        for size in (found.policy_kept_size, found.policy_work_size):
            size.restype, size.argtypes = WHOLE, (POINTER, WHOLE)
    else:
        found.ppo_work_size.restype, found.ppo_work_size.argtypes = WHOLE, (POINTER, WHOLE)
        found.ppo_check_order.restype, found.ppo_check_order.argtypes = WHOLE, (WHOLE, POINTER, WHOLE)
        found.ppo_updates.restype, found.ppo_updates.argtypes = None, (POINTER, POINTER, POINTER, WHOLE, POINTER)
    return found


def why_no_policy(model: Any = None, hidden: Any = None, device: torch.device | None = None) -> str | None:
    """The reason why native code cannot compute a policy, or None; what is left out is not looked at.

    Args:
        hidden: widths of the state network.
    """
    if device is not None and device.type != "cpu":
        return f"native code runs on the CPU, and this runs on {device.type}"
    if hidden is not None and len(hidden) > MOST_LAYERS:
        return f"native code has room for {MOST_LAYERS} hidden layers, and hidden has {len(hidden)}"
    if model is not None and (reason := _why_no_model(model)):
        return reason
    try:
        for name in LIBRARIES:
            library(name)
    except BuildError as error:
        return str(error)
    return None


def _why_no_model(model: Any) -> str | None:
    if type(model) is not ActionScorer:
        return f"native code computes an ActionScorer, not a {type(model).__name__}"
    layers = list(model.state)
    if (
        not layers
        or len(layers) % 2
        or any(type(x) is not (nn.ReLU if i % 2 else nn.Linear) for i, x in enumerate(layers))
    ):
        return "native code computes a state network of Linear and ReLU layers, in turn"
    if len(layers) // 2 > MOST_LAYERS:
        return f"native code has room for {MOST_LAYERS} hidden layers, and the model has {len(layers) // 2}"
    for name, parameter in model.named_parameters():
        if parameter.dtype != torch.float32 or parameter.device.type != "cpu":
            return f"native code computes in float32 on the CPU, and {name} is {parameter.dtype} on {parameter.device}"
    return None
