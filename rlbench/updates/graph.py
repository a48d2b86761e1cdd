"""The updates of a round captured in a CUDA graph, and replayed: the host gives one order instead of one for each kernel.

What is captured is the compiled function. Without a compiler it is the same function as PyTorch runs it, and one line says so.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from rlbench.batch import Transitions, Updated
from rlbench.compile import why_not
from rlbench.notices import say_once
from rlbench.updates.compiled import ChunkedUpdate, InPlace, in_place

WARM_UP_CALLS = 3  # before the capture, so that libraries have set themselves up


class GraphUpdate(ChunkedUpdate):
    """A graph reads and writes the same memory at every replay: minibatches are copied in, what is handed out is cloned.

    Parameters are updated in place; the learning rate and the count of steps are tensors on the device.
    """

    replay: Callable[[], None] | None = None
    inputs: Transitions
    outputs: Updated
    capture_s = 0.0
    captures = True  # until a capture fails

    def run(self, batch: Transitions) -> Updated:
        if not self.captures:
            return super().run(batch)
        given = [t for t in batch if t is not None]
        if self.replay is None:
            self.inputs = Transitions(*(None if t is None else t.clone() for t in batch))
            start = time.perf_counter()
            try:
                self.replay = self.capture()
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:  # the driver's or PyTorch's; the compiled call does without
                say_once(f"update='cuda_graph' goes on without a graph, which could not be captured ({error}).")
                self.captures = False
                return super().run(batch)
            self.capture_s = time.perf_counter() - start
        torch._foreach_copy_([t for t in self.inputs if t is not None], given)
        self.replay()
        return Updated(*(t.clone() for t in self.outputs))

    def capture(self) -> Callable[[], None]:
        """A call that repeats the round on `inputs` and leaves what it finds in `outputs`. Changes nothing itself."""
        before = [t.clone() for t in self.changing()]
        with torch.cuda.device(self.parameters.device):
            side, current = torch.cuda.Stream(), torch.cuda.current_stream()
            side.wait_stream(current)
            try:
                with torch.cuda.stream(side):
                    for _ in range(WARM_UP_CALLS):
                        super().run(self.inputs)
            finally:  # where memory runs out, too, nothing has been learnt
                current.wait_stream(side)
                torch._foreach_copy_(self.changing(), before)
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                self.outputs = super().run(self.inputs)
        return graph.replay

    def changing(self) -> list[Tensor]:
        """What an update writes."""
        return [self.parameters, *self.moments, self.steps]

    def function(self, count: int, batch: Transitions) -> InPlace:
        reason = why_not("cuda")
        if reason is None:
            return super().function(count, batch)
        say_once(f"update='cuda_graph' captures what PyTorch runs eagerly: {reason}.")
        return in_place(self.network, self.settings, count)

    @property
    def build_s(self) -> float:
        """Seconds of compilation and capture."""
        return self.capture_s
