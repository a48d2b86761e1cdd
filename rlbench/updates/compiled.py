"""The pure update compiled: one call an update, or one for all updates of a round."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

import torch
from torch import Tensor, nn

from rlbench.batch import Transitions, Updated
from rlbench.compile import Compiled
from rlbench.config import DQNConfig
from rlbench.phases import phase
from rlbench.uncopied import Uncopied
from rlbench.updates.functional import FlatNetwork, Moments, Settings, td_updates
from rlbench.updates.precision import FLOAT32, Precision
from rlbench.updates.stepper import MakeOptimizer

UNROLLED = 8  # most updates in one compiled call: each adds seconds to its compilation
KEPT = 32  # most compiled functions that a process keeps
InPlace = Callable[..., Updated]
_kept: OrderedDict[Hashable, Compiled] = OrderedDict()  # the last used one last


def in_place(network: FlatNetwork, settings: Settings, count: int) -> InPlace:
    """`count` updates whose results are written over the tensors that they were read from.

    (parameters, target_parameters, moments, step, batch, learning_rate) -> Updated; `step` is the number of updates so far.
    """

    def update(
        parameters: Tensor, target: Tensor, moments: Moments, step: Tensor, batch: Transitions, learning_rate: Tensor
    ) -> Updated:
        after, stepped, updated = td_updates(
            network, parameters, target, moments, step + 1, batch, learning_rate, settings, count
        )
        parameters.copy_(after)
        moments.first.copy_(stepped.first)
        moments.second.copy_(stepped.second)
        step.add_(count)
        return updated

    return update


def compiled_for(network: FlatNetwork, settings: Settings, count: int, batch: Transitions) -> Compiled:
    """The compiled form of `in_place`: the one that an equal network, setting and batch had before in this process, if any."""
    layout = tuple(None if t is None else (t.shape, t.stride(), t.dtype, str(t.device)) for t in batch)
    key = (network.key, settings, count, layout, torch.get_num_threads())
    if key not in _kept:
        _kept[key] = Compiled(in_place(network, settings, count))
    _kept.move_to_end(key)
    while len(_kept) > KEPT:
        _kept.popitem(last=False)
    return _kept[key]


def forget_compiled() -> None:
    """Let the next updates compile anew, as in a new process; what lies on disk stays."""
    _kept.clear()


class CompiledUpdate(Uncopied):
    """One compiled call an update. The networks keep their modules, whose parameters become views of one vector.

    Weights that are loaded in place, as `load_state_dict` does, take effect at once.
    """

    skipped = 0

    def __init__(
        self,
        online: nn.Module,
        target: nn.Module,
        config: DQNConfig,
        make_optimizer: MakeOptimizer,
        precision: Precision = FLOAT32,
    ) -> None:
        del make_optimizer  # the pure function has its own Adam; `requires` of the optimizer slot says so
        if precision.scaled:
            raise TypeError(f"{type(self).__name__} does not scale losses; {precision.name} needs EagerUpdate.")
        self.chunk = self.updates_of(config)
        self.network = FlatNetwork(online)
        self.settings = Settings.of(config, precision)
        self.parameters, self.target = self.network.adopt(online), self.network.adopt(target)
        self.moments = self.network.start(self.parameters)
        self.steps = torch.zeros((), dtype=torch.int64, device=self.parameters.device)
        self.learning_rate = torch.zeros((), dtype=torch.float64, device=self.parameters.device)
        self.rate = 0.0  # what learning_rate holds
        self.taken = 0
        self.functions: dict[int, tuple[Compiled, int, float]] = {}  # by count, with compilations and seconds before

    @staticmethod
    def updates_of(config: DQNConfig) -> int:
        return 1

    @torch.no_grad()
    def __call__(self, batch: Transitions, learning_rate: float) -> Updated:
        """Update the online network on `chunk` minibatches, one after another."""
        with phase("update"):
            self.taken += self.chunk
            if learning_rate != self.rate:  # a tensor's value: another one compiles nothing anew
                self.learning_rate.fill_(learning_rate)
                self.rate = learning_rate
            return self.run(batch)

    def run(self, batch: Transitions) -> Updated:
        return self.apply(self.function(self.chunk, batch), batch)

    def apply(self, function: InPlace, batch: Transitions) -> Updated:
        return function(self.parameters, self.target, self.moments, self.steps, batch, self.learning_rate)

    def function(self, count: int, batch: Transitions) -> InPlace:
        """The compiled function of `count` updates."""
        if count not in self.functions:
            found = compiled_for(self.network, self.settings, count, batch)
            self.functions[count] = found, found.compilations, found.compile_s
        return self.functions[count][0]

    @property
    def build_s(self) -> float:
        """Seconds of compilation that this object's calls have cost so far."""
        return sum(max(0.0, function.compile_s - before) for function, _, before in self.functions.values())

    @property
    def recompiles(self) -> int:
        """Compilations beyond the first of each function."""
        return sum(max(0, function.compilations - max(1, before)) for function, before, _ in self.functions.values())


class ChunkedUpdate(CompiledUpdate):
    """The updates of a round in one compiled call; in several of like length where there are more than `UNROLLED`."""

    @staticmethod
    def updates_of(config: DQNConfig) -> int:
        return config.gradient_steps

    def run(self, batch: Transitions) -> Updated:
        rows, done, found = len(batch.action) // self.chunk, 0, []
        for count in parts_of(self.chunk):
            part = Transitions(*(None if t is None else t[done * rows : (done + count) * rows] for t in batch))
            found.append(self.apply(self.function(count, part), part))
            done += count
        return found[0] if len(found) == 1 else Updated(*map(torch.cat, zip(*found, strict=True)))


def parts_of(count: int, most: int = UNROLLED) -> list[int]:
    """`count` split into as few parts as `most` allows, which differ by one at most."""
    calls = -(-count // most)
    return [count // calls + (k < count % calls) for k in range(calls)]
