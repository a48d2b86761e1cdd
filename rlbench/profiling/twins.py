"""Twins of the network that learns: its matrix products rebuilt as layers and timed here, at other widths and minibatches.

A twin of a step reads a minibatch from arrays, acts and updates, as a training does. What the reader's loop does besides is left
out. Ratios and differences of twins are used, never their times alone. All parts are timed within whole steps, because what one
part leaves in the caches is what the next one finds: around a wide network, or after a wait, the same Python takes several times
as long.
"""

from __future__ import annotations

import math
import statistics
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rlbench.profiling.limits import Twins
from rlbench.profiling.minibatch import Gather
from rlbench.profiling.records import Product
from rlbench.timing import synchronize

DIVISORS = (2, 4, 10)
BATCHES = (1, 32, 64, 128, 256, 512)
TURNS = 3  # steps of a block, after a first one that is not kept
LEAST_WAIT_S = 1e-3  # of an env, from which on what comes after it is timed after such a wait too
Shape = tuple[int, int]  # inputs, outputs


@dataclass(frozen=True)
class StepTimes:
    """Median seconds of the parts of a step."""

    reading: float
    acting: float
    update: float

    @property
    def whole(self) -> float:
        return self.reading + self.acting + self.update


def make_twins(
    products: Sequence[Product],
    batch: int,
    device: str | torch.device = "cpu",
    seconds: float = 1.5,
    wait_s: float = 0.0,
) -> Twins | None:
    """Time them for about `seconds`, in turns; None where no dense product learns. The reader's random state is left as it is.

    `wait_s`: what the env waits in a step; it is waited here too.
    """
    shapes = layers_of(products)
    if not shapes or batch < 1:
        return None
    where = torch.device(device)
    sizes = sorted({batch, *(size for size in BATCHES if size <= max(512, batch))})
    acting = acting_batch(products)
    mine = [where] if where.type == "cuda" else []
    with torch.random.fork_rng(devices=mine), torch.inference_mode(False), torch.enable_grad():
        torch.manual_seed(0)
        steps = {("narrower", by): Step(narrower(shapes, by), batch, acting, where) for by in (1, *DIVISORS)}
        steps |= {("batch", size): Step(shapes, size, acting, where) for size in sizes if size != batch}
        if wait_s >= LEAST_WAIT_S:
            steps["wait", 0] = Step(shapes, batch, acting, where, wait_s=min(wait_s, 0.1))
        times = in_turns(steps, seconds)
    own = times["narrower", 1]
    return Twins(
        narrower={by: times["narrower", by].update / own.update for by in (1, *DIVISORS)},
        acting={by: times["narrower", by].acting / own.acting for by in (1, *DIVISORS)},
        around={by: times["narrower", by].reading / own.reading for by in (1, *DIVISORS)},
        batches={size: own.update if size == batch else times["batch", size].update for size in sizes},
        hidden=hidden_of(shapes),
        batch=batch,
        reading_s=own.reading,
        after_wait=times["wait", 0].whole / own.whole if ("wait", 0) in times else None,
        fused_s=statistics.median(steps["narrower", 1].stepping),
    )


def layers_of(products: Sequence[Product]) -> tuple[Shape, ...]:
    """Shapes of the layers that learn, in the order in which they were seen, each as often as it occurs in a pass."""
    calls: dict[Shape, int] = {}
    for product in products:
        if product.learning and not product.convolution and product.phase != "action":
            shape = product.inputs, product.outputs
            calls[shape] = calls.get(shape, 0) + product.calls
    if not calls:
        return ()
    once = min(calls.values())
    return tuple(shape for shape, count in calls.items() for _ in range(max(1, round(count / once))))


def acting_batch(products: Sequence[Product]) -> int:
    """Rows in a forward pass that chooses actions, as most of them are; 1 where none was seen."""
    calls: Counter[int] = Counter()
    for product in products:
        if product.phase == "action" and not product.convolution:
            calls[product.batch] += product.calls
    return max(calls, key=lambda batch: calls[batch], default=1)


def hidden_of(shapes: Sequence[Shape]) -> tuple[int, ...]:
    """Widths of the hidden layers of one network, the widest if there are several: from an input that no layer gives, from layer
    to layer. Layers from a width to itself are shared out among the networks."""
    left = Counter(shapes)
    given = {outputs for inputs, outputs in left if inputs != outputs}
    first = [shape for shape in left if shape[0] not in given]
    networks = max(1, sum(left[shape] for shape in first if shape[0] != shape[1]))
    path = [(first or list(shapes))[0][0]]
    while True:
        width = path[-1]
        path += [width] * math.ceil(left.pop((width, width), 0) / networks)
        onwards = [shape for shape in left if shape[0] == width]
        if not onwards:
            return tuple(path[1:-1])
        goes_on = {inputs for inputs, _ in left}
        chosen = max(onwards, key=lambda shape: (shape[1] in goes_on, shape[1]))
        del left[chosen]
        path.append(chosen[1])


def hidden_widths(shapes: Sequence[Shape]) -> set[int]:
    """Widths that one layer gives and another takes."""
    return {outputs for _, outputs in shapes} & {inputs for inputs, _ in shapes}


def narrower(shapes: Sequence[Shape], by: int) -> tuple[Shape, ...]:
    """Hidden widths divided by `by`, at least 1; what is observed and what is chosen stay. An observation as wide as a hidden
    layer is told apart by being seen first, the last layer by being last."""
    hidden = hidden_widths(shapes)
    last = len(shapes) - 1

    def width(value: int, outer: bool) -> int:
        return value if outer or value not in hidden else max(1, value // by)

    return tuple((width(inputs, i == 0), width(outputs, i == last)) for i, (inputs, outputs) in enumerate(shapes))


class Twin(nn.Module):
    """Layers in a row, ReLU between those that fit; one that does not fit the layer before it reads rows of its own."""

    def __init__(self, shapes: Sequence[Shape], device: torch.device) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(*shape, device=device, dtype=torch.float32) for shape in shapes)

    def forward(self, rows: Sequence[Tensor]) -> Tensor:
        loss: Tensor | float = 0.0
        x: Tensor | None = None
        for layer, own in zip(self.layers, rows, strict=True):
            fits = x is not None and x.shape[1] == own.shape[1]
            if x is not None and not fits:
                loss = loss + x.square().mean()
            x = layer(x.relu() if fits else own)
        return loss + x.square().mean()


class Step:
    """Reads a minibatch from arrays, chooses an action, updates by Adam."""

    def __init__(
        self, shapes: Sequence[Shape], batch: int, acting: int, device: torch.device, wait_s: float = 0.0
    ) -> None:
        self.device, self.wait_s = device, wait_s
        self.twin = Twin(shapes, device)
        self.gather = Gather(batch, shapes[0][0])
        self.rows, self.seen = (
            [torch.randn(count, inputs, device=device, dtype=torch.float32) for inputs, _ in shapes]
            for count in (batch, acting)
        )
        self.adam = torch.optim.Adam(self.twin.parameters(), lr=1e-4, fused=True)
        self.kept: list[tuple[float, float, float]] = []
        self.stepping: list[float] = []  # seconds of the host

    def run(self, keep: bool) -> None:
        if self.wait_s:
            time.sleep(self.wait_s)
        times = [self._timed(part) for part in (self.gather, self.act, self.update)]
        if keep:
            self.kept.append(tuple(times))

    def act(self) -> None:
        with torch.no_grad():
            self.twin(self.seen)

    def update(self) -> None:
        loss = self.twin(self.rows)
        self.adam.zero_grad()
        loss.backward()
        start = time.perf_counter()
        self.adam.step()
        self.stepping.append(time.perf_counter() - start)

    def times(self) -> StepTimes:
        return StepTimes(*(statistics.median(part) for part in zip(*self.kept, strict=True)))

    def _timed(self, part: Callable[[], object]) -> float:
        synchronize(self.device)
        start = time.perf_counter()
        part()
        synchronize(self.device)
        return time.perf_counter() - start


def in_turns(steps: Mapping[tuple[str, int], Step], seconds: float) -> dict[tuple[str, int], StepTimes]:
    """Times of each, in blocks of a few steps that take turns until the time is up; two turns at least, one of those that take
    long."""
    end = time.perf_counter() + seconds
    turn, going = 0, list(steps.values())
    while going and (turn < 2 or time.perf_counter() < end):
        slow = []
        for step in going:
            start = time.perf_counter()
            for i in range(TURNS + 1):
                step.run(keep=i > 0)
            if time.perf_counter() - start > seconds / 4:
                slow.append(step)
        going = [step for step in going if step not in slow]
        turn += 1
    return {name: step.times() for name, step in steps.items()}
