"""Several iterations in one compiled call, on CUDA in one captured graph: `loop="fused"`."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

from rlbench.compile import Compiled
from rlbench.notices import say_once
from rlbench.speedups.loop import MOST_UNROLLED, period_of
from rlbench.trainers.iteration import Carry, Iteration, Seen
from rlbench.trainers.orders import Orders
from rlbench.trainers.tensor_loop import TensorLoop

if TYPE_CHECKING:
    from rlbench.trainers.dqn import DQN

AT_ONCE = 2  # iterations in a compiled call, where the period of the updates is shorter; more take minutes to compile
GRAPH_CALLS = 16  # compiled calls in one captured graph
WARM_UP_CALLS = 3  # before the capture, so that libraries have set themselves up
Chunk = Callable[[Carry, Orders], tuple[Carry, Seen]]


KEPT = 32  # most compiled functions that a process keeps
# The settings that become part of a compiled iteration; others reach it as data, or not at all.
SETTINGS = ("gamma", "n_step", "buffer_size", "batch_size", "gradient_steps", "double_dqn", "huber", "max_grad_norm")
NETWORK = ("network", "hidden")

_kept: dict[Hashable, Compiled] = {}  # the last used one last


def compiled_for(iteration: Iteration, rounds: tuple[int, ...]) -> Compiled:
    """The compiled call of iterations with these rounds: the one that an equal training had before in this process, if any."""
    env, settings = iteration.env, tuple(getattr(iteration.config, name) for name in SETTINGS + NETWORK)
    own = tuple((name, _built_in(value)) for name, value in sorted(vars(env).items()) if name != "seed")
    key = (settings, type(env), own, str(env.device), rounds, torch.get_num_threads())
    found = _kept.pop(key, None) or Compiled(lambda iteration, carry, orders: iteration(carry, orders, rounds))
    _kept[key] = found
    while len(_kept) > KEPT:
        del _kept[next(iter(_kept))]
    return found


def _built_in(value: Any) -> Hashable:
    """What of an env's attribute becomes part of the compiled function: of a tensor its layout, of other data nothing."""
    if isinstance(value, Tensor):
        return tuple(value.shape), value.stride(), value.dtype
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return tuple(map(_built_in, value))
    return value if isinstance(value, int | float | str | None) else None


class FusedLoop(TensorLoop):
    """Iterations whose rounds of updates follow the usual rhythm go through the compiled call; others, as those before the
    first update, one by one as `TensorLoop` has them.
    """

    def __init__(self, trainer: DQN) -> None:
        super().__init__(trainer)
        config, iteration = trainer.config, self.iteration
        period = period_of(config, self.num_envs)
        weight = len(period) + sum(period) * config.gradient_steps
        repeats = max(1, min(AT_ONCE // len(period), MOST_UNROLLED // weight))
        self.rounds = rounds = period * repeats
        # As a tensor the seed is data: trainings that differ in it alone share what is compiled.
        iteration.seed = iteration.env.seed = torch.tensor(config.seed, device=trainer.device)
        # An env's first state may name one tensor several times, its later ones do not: compiled code tells these apart.
        self.carry = self.carry._replace(env=_clones(self.carry.env))
        self.compiled = compiled_for(iteration, rounds)
        self.compilations, self.compile_s = self.compiled.compilations, self.compiled.compile_s  # before this trainer
        self.graph: Graph | None = None
        self.calls = GRAPH_CALLS if trainer.device.type == "cuda" else 1

    def piece(self, rounds: tuple[int, ...]) -> tuple[int, ...]:
        for wanted in (self.rounds * self.calls, self.rounds):
            if rounds[: len(wanted)] == wanted:
                return wanted
        return rounds[:1]

    def call(self, orders: Orders, rounds: tuple[int, ...]) -> Seen:
        if rounds == self.rounds:
            self.carry, seen = self.compiled(self.iteration, self.carry, orders)
            return seen
        if len(rounds) > len(self.rounds):
            return self.replay(orders)
        return super().call(orders, rounds)

    def replay(self, orders: Orders) -> Seen:
        """The captured graph, which works on memory of its own; what it lets see is copied out."""
        if self.graph is None:
            iterations, n = self.calls * len(self.rounds), self.trainer.config.n_step
            try:
                self.graph = Graph(self._calls, self.carry, orders, (iterations + n - 1) * self.num_envs)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:  # the driver's or PyTorch's; the compiled calls do without
                say_once(f"loop='fused' goes on call by call: they could not be captured in a graph ({error}).")
                self.carry, seen = self._calls(self.carry, orders)
                self.calls = 1
                return seen
        self.carry, seen = self.graph(self.carry, orders)
        return seen

    def _calls(self, carry: Carry, orders: Orders) -> tuple[Carry, Seen]:
        """What is captured: the compiled call, again and again."""
        seen, before, steps = [], 0, self.trainer.config.gradient_steps
        for k in range(self.calls):
            part = orders.part(k * len(self.rounds), self.rounds, before, steps)
            carry, one = self.compiled(self.iteration, carry, part)
            seen.append(one)
            before += sum(self.rounds)
        *columns, target = zip(*seen, strict=True)
        return carry, Seen(*map(torch.cat, columns), target[-1])

    @property
    def build_s(self) -> float:
        """Seconds of compilation and capture so far."""
        return max(0.0, self.compiled.compile_s - self.compile_s) + (
            0.0 if self.graph is None else self.graph.capture_s
        )

    @property
    def recompiles(self) -> int:
        """Compilations beyond the first."""
        return max(0, self.compiled.compilations - max(1, self.compilations))


class Graph:
    """A function of a carry and orders captured in a CUDA graph, which always reads and writes the same memory.

    The rows of replay are written where they lie, at most `writes` a call.
    """

    seen: Seen

    def __init__(self, function: Chunk, carry: Carry, orders: Orders, writes: int) -> None:
        start = time.perf_counter()
        self.carry = carry._replace(**{name: _clones(part) for name, part in carry._asdict().items() if name != "rows"})
        self.orders = Orders(*map(torch.clone, orders))
        self.replay = self.capture(function, writes)
        self.capture_s = time.perf_counter() - start

    def capture(self, function: Chunk, writes: int) -> Callable[[], None]:
        """A call that goes from `carry` on and leaves in it, and in `seen`, what comes out. Changes nothing itself."""
        with torch.cuda.device(self.carry.obs.device):
            side, current = torch.cuda.Stream(), torch.cuda.current_stream()
            side.wait_stream(current)
            with torch.cuda.stream(side):
                warm_up(function, self.carry, self.orders, writes)
            current.wait_stream(side)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                after, self.seen = function(self.carry, self.orders)
                _copy(self.carry, after)
        return graph.replay

    def __call__(self, carry: Carry, orders: Orders) -> tuple[Carry, Seen]:
        if carry is not self.carry:
            _copy(self.carry, carry)
        _copy(self.orders, orders)
        self.replay()
        return self.carry, Seen(*map(torch.clone, self.seen))


def warm_up(function: Chunk, carry: Carry, orders: Orders, writes: int) -> None:
    """Call it a few times, and put back the rows that it wrote over: until they are written anew, updates may draw them."""
    capacity = len(carry.rows) - 1
    slots = (carry.head + torch.arange(min(writes, capacity), device=carry.head.device)) % capacity
    before = carry.rows.index_select(0, slots)
    for _ in range(WARM_UP_CALLS):
        function(carry, orders)
    carry.rows.index_copy_(0, slots, before)


def _clones(part: Any) -> Any:
    return pytree.tree_map(lambda leaf: leaf.clone() if isinstance(leaf, Tensor) else leaf, part)


def _copy(to: Any, source: Any) -> None:
    """Every tensor of `source` over that of `to`, but those that are one already."""
    pairs = zip(pytree.tree_leaves(to), pytree.tree_leaves(source), strict=True)
    for old, new in pairs:
        if isinstance(old, Tensor) and old is not new:
            old.copy_(new)
