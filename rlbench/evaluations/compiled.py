"""Packed states and actions by a compiled function, forward and backward, for shapes out of few.

The compiler makes one loop of what lies between the matrix products: extracting bits, gathering each action's state, adding,
the activation, the segments' softmax. Each shape costs seconds to tens of seconds once; shapes are bucketed, so that they stay
few as the numbers of actions change. With several threads of the CPU sums over a state's actions are taken in an order that
differs from call to call, unless `torch.use_deterministic_algorithms` asks for one.
"""

from __future__ import annotations

import copy
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from rlbench.actions import ActionSets
from rlbench.batch import Evaluated
from rlbench.compile import Compiled
from rlbench.evaluations.buckets import Bucketed, bucketed, fill_up, row_bucket
from rlbench.evaluations.packed import Packed
from rlbench.evaluations.views import counts_of
from rlbench.models.action_scorer import ActionScorer, encode_shift
from rlbench.segments import entropy, log_softmax
from rlbench.updates.functional import FlatNetwork

KEPT = 64  # most compiled functions that a process keeps
_kept: OrderedDict[Hashable, Compiled] = OrderedDict()  # the last used one last


class PackedPolicy(nn.Module):
    """A scorer of actions as a function of bucketed sets."""

    def __init__(self, model: ActionScorer) -> None:
        super().__init__()
        self.model = model

    def forward(self, obs: Tensor, legal: Bucketed, choice: Tensor | None) -> Any:
        """(log-probabilities (A,), values (R,)), or an `Evaluated` of R choices where these are given."""
        rows = len(obs)
        joint, value = self.model.states(obs)
        of_action = joint[legal.states.clamp(max=rows - 1)]  # what fills up borrows the last row's
        scores = self.model.score_of(of_action, encode_shift(legal.ids, self.model.action))
        log_p = log_softmax(scores, legal.states, rows + 1)
        if choice is None:
            return log_p, value
        index = (legal.first + choice).clamp(max=len(legal.ids) - 1)  # rows that fill up have no action
        return Evaluated(log_p[index], entropy(log_p, legal.states, rows + 1)[:rows], value)


def packed_network(model: ActionScorer) -> FlatNetwork:
    """The structure of `PackedPolicy(model)`, equal for equal models however these encode."""
    bare = copy.copy(model)  # shares parameters and layers
    bare.encode = encode_shift
    return FlatNetwork(PackedPolicy(bare))


class Functions:
    """The compiled functions that one object uses, of those that its process keeps, and what they have cost since."""

    def __init__(self) -> None:
        self.used: dict[Hashable, tuple[Compiled, int, float]] = {}  # with compilations and seconds before

    def get(self, key: Hashable, make: Callable[[], Callable[..., Any]]) -> Compiled:
        """The compiled form of what `make` makes: the one that an equal key had before in this process, if any."""
        if key not in self.used:
            if key not in _kept:
                _kept[key] = Compiled(make())
            _kept.move_to_end(key)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
            self.used[key] = _kept[key], _kept[key].compilations, _kept[key].compile_s
        return self.used[key][0]

    @property
    def build_s(self) -> float:
        """Seconds of compilation since each was first used here."""
        return sum(max(0.0, function.compile_s - before) for function, _, before in self.used.values())

    @property
    def recompiles(self) -> int:
        """Compilations beyond the first of each."""
        return sum(max(0, function.compilations - max(1, before)) for function, before, _ in self.used.values())


def forget_compiled() -> None:
    """Let the next functions be compiled anew, as in a new process; what lies on disk stays."""
    _kept.clear()


def layout(value: Any) -> Hashable:
    """What a compiled function knows of its tensors, in any depth of tuples."""
    if isinstance(value, Tensor):
        return value.shape, value.stride(), value.dtype, str(value.device)
    return tuple(map(layout, value)) if isinstance(value, tuple) else value


def settings_of_process(device: torch.device) -> Hashable:
    """The settings of PyTorch that become part of what is compiled."""
    autocast = torch.is_autocast_enabled(device.type) and torch.get_autocast_dtype(device.type)
    products = torch.backends.cuda.matmul.fp32_precision if device.type == "cuda" else None
    deterministic = torch.are_deterministic_algorithms_enabled()
    return torch.get_num_threads(), torch.is_grad_enabled(), autocast, deterministic, products


class PackedCompiled:
    """Asks a scorer of actions in compiled calls, one compiled function for each bucketed shape.

    Weights that are loaded in place, as `load_state_dict` does, take effect at once.
    """

    def __init__(self, model: ActionScorer) -> None:
        self.network = packed_network(model)
        self.key = self.network.key
        self.parameters = tuple(model.parameters())
        self.functions = Functions()
        self.for_any_size = Packed(model)  # of states fewer and fewer, as in a match: each number would be compiled

    @torch.no_grad()
    def log_probs(self, obs: Tensor, legal: ActionSets) -> tuple[Tensor, Tensor]:
        """Log-probabilities (A,) and values (B,), without a gradient."""
        log_p, value = self._call(obs, legal, None)
        return log_p[: len(legal.ids)], value[: len(obs)]

    def evaluate(self, obs: Tensor, legal: ActionSets, choice: Tensor) -> Evaluated:
        return Evaluated(*(part[: len(obs)] for part in self._call(obs, legal, choice)))

    def _call(self, obs: Tensor, legal: ActionSets, choice: Tensor | None) -> Any:
        counts_of(obs, legal)
        rows = row_bucket(len(obs))
        args = (fill_up(obs, rows), bucketed(legal, rows), None if choice is None else fill_up(choice, rows))
        strides = tuple(parameter.stride() for parameter in self.parameters)  # updates may lay them out anew
        key = (self.key, strides, layout(args), settings_of_process(obs.device))
        function = self.functions.get(key, lambda: asked(self.network))
        if not function.compilations and torch.is_grad_enabled():
            self._compile_backward(function, args)
        return function(self.parameters, *args)

    def _compile_backward(self, function: Compiled, args: tuple) -> None:
        """Call forward and backward once: the latter is compiled when it is first called, which is to be counted, too."""
        outcome = function(self.parameters, *args)
        start = time.perf_counter()
        torch.autograd.grad(sum(part.sum() for part in outcome), list(learnt(self.parameters)))
        function.spent_s += time.perf_counter() - start

    @property
    def build_s(self) -> float:
        return self.functions.build_s

    @property
    def recompiles(self) -> int:
        return self.functions.recompiles


def learnt(parameters: tuple[Tensor, ...]) -> Iterator[Tensor]:
    return (parameter for parameter in parameters if parameter.requires_grad)


def asked(network: FlatNetwork) -> Callable[..., Any]:
    """(parameters, obs, sets, choice or None) -> what the policy says, as a function to be compiled."""

    def ask(parameters: tuple[Tensor, ...], obs: Tensor, legal: Bucketed, choice: Tensor | None) -> Any:
        views = dict(zip(network.names, parameters, strict=True))
        return functional_call(network.module, views, (obs, legal, choice))

    return ask
