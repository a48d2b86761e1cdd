import inspect

import numpy as np
import pytest
import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from rlbench.profiling.counting import Counting
from rlbench.profiling.records import Product, Work


def counted(function, *args, phase="forward"):
    counting = Counting(lambda: phase)
    counting.start()
    try:
        function(*args)
        counting.step()
    finally:
        assert counting.stop()
    return counting.counted(None)


def everything_that_waits(t, mask):
    t.item()
    float(t)
    int(t)
    t.tolist()
    t.numpy()
    t.cpu()
    np.asarray(t)
    bool(t > 0)
    if t > 0:
        pass
    assert t > 0
    f"{t:.2f}"
    repr(t)
    mask.nonzero()
    torch.where(mask)
    mask[mask]
    mask[mask] = False
    torch.masked_select(mask, mask)
    torch.equal(t, t)
    torch.unique(mask)


WAITS = [
    *(".item()", "float(t)", "int(t)", ".tolist()", ".numpy()", ".cpu()", ".numpy()", "bool(t)", "if t", None, "if t"),
    *("print(t)", "print(t)", "nonzero", "nonzero", "t[mask]", "t[mask] = x", "masked_select", "torch.equal", "unique"),
]


def test_each_kind_is_found_once_at_its_line():
    found = counted(everything_that_waits, torch.tensor(1.0), torch.tensor([True, False])).syncs
    first = inspect.getsourcelines(everything_that_waits)[1] + 1
    expected = {(first + place, call) for place, call in enumerate(WAITS) if call}
    assert {(sync.place.line, sync.call) for sync in found} == expected
    assert all(sync.count == 1 and sync.per_step == 1.0 and sync.wait_s is None for sync in found)
    assert all(sync.place.function == "everything_that_waits" and sync.place.whose == "yours" for sync in found)
    assert {sync.place.source for sync in found} >= {"t.item()", "if t > 0:"}


def test_what_does_not_wait_is_not_found():
    def calm(t):
        t[torch.tensor([0, 1])]
        t.to("cpu")
        torch.where(t > 0, t, -t)
        t.sum().detach()
        t.shape, t.numel(), t.requires_grad

    assert counted(calm, torch.ones(3)).syncs == ()


def test_reads_in_torch_code_count_for_the_reader_s_line():
    def clip(net):
        net(torch.ones(2, 3)).sum().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)

    (sync,) = counted(clip, nn.Linear(3, 1)).syncs
    assert sync.place.source.startswith("torch.nn.utils.clip_grad_norm_")


def test_an_exception_in_a_read_leaves_the_count_whole():
    counting = Counting(lambda: "gap")
    counting.start()
    with pytest.raises(RuntimeError):
        torch.ones(2).item()
    torch.ones(1).item()
    assert counting.stop()
    assert [(sync.call, sync.count) for sync in counting.counted(None).syncs] == [(".item()", 1), (".item()", 1)]


def test_arithmetic_of_an_update_by_hand():
    net = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2))
    batch = torch.ones(4, 3)
    forward = counted(lambda: net(batch))
    assert forward.products == (
        Product("forward", 4, 3, 5, 1, True),
        Product("forward", 4, 5, 2, 1, True),
    )
    # addmm: bias, input, weight, output; relu: input, output (float32)
    first, relu, second = 4 * (5 + 4 * 3 + 3 * 5 + 4 * 5), 4 * 2 * 4 * 5, 4 * (2 + 4 * 5 + 5 * 2 + 4 * 2)
    assert forward.work == (Work("forward", 2 * 4 * (3 * 5 + 5 * 2), first + relu + second, 3),)
    loss = net(batch).sum()
    backward = counted(loss.backward, phase="backward")
    # weights of both layers, inputs of the second
    assert backward.work[0].flops == 2 * 4 * (3 * 5 + 5 * 2 + 5 * 2)
    assert backward.products == ()
    with torch.no_grad():
        assert not any(product.learning for product in counted(lambda: net(batch)).products)


def test_a_convolution_counts_a_patch_at_every_place():
    conv = nn.Conv2d(2, 3, kernel_size=2, bias=False)
    (product,) = counted(lambda: conv(torch.ones(5, 2, 4, 4))).products
    assert product == Product("forward", 5 * 3 * 3, 2 * 2 * 2, 3, 1, True, True)


def test_operators_are_counted_by_line_without_views():
    def loop(t):
        for i in range(7):
            t[i].add(1)

    (line,) = counted(loop, torch.ones(8)).op_lines
    assert (line.place.source, line.ops, line.per_step) == ("t[i].add(1)", 7, 7.0)


def test_it_goes_on_adding():
    counting = Counting(lambda: "sync")
    for _ in range(2):
        counting.start()
        for _ in range(3):
            torch.ones(()).item()
            counting.step()
        counting.stop()
        torch.ones(()).item()
    found = counting.counted(1.0)
    assert (found.steps, found.syncs[0].count, found.syncs[0].per_step) == (6, 6, 1.0)
    assert found.slowdown == pytest.approx(found.seconds / 6)


def test_a_mode_of_the_reader_on_top_is_not_taken_away():
    class Own(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            return function(*args, **(kwargs or {}))

    counting = Counting(lambda: "forward")
    counting.start()
    with Own():
        assert not counting.stop()
        torch.ones(()).item()
    assert counting.stop() and counting.stop()
    assert len(counting.counted(None).syncs) == 1
    with torch.device("cpu"):
        counting.start()
        torch.ones(()).item()
        assert counting.stop()
    assert sum(sync.count for sync in counting.counted(None).syncs) == 2


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_under_grad_modes(mode):
    with mode():
        assert len(counted(lambda: torch.ones(2).sum().item()).syncs) == 1


def test_an_inference_mode_that_begins_in_the_middle_keeps_it_open():
    counting = Counting(lambda: "forward")
    counting.start()
    with torch.inference_mode():
        torch.ones(()).item()
        assert not counting.stop()
    assert counting.stop()
    assert torch.empty(2).add(1).shape == (2,), "torch looks for no mode any more"
    with torch.inference_mode():
        counting.start()
        torch.ones(()).item()
        assert counting.stop()
    assert torch.empty(2).add(1).shape == (2,)
    assert sum(sync.count for sync in counting.counted(None).syncs) == 2


def test_under_compile_nothing_breaks():
    torch._dynamo.reset()
    calls = []

    def backend(graph, inputs):
        calls.append(graph)
        return graph.forward

    compiled = torch.compile(lambda x: (x * 2).relu().sum(), backend=backend)
    x = torch.ones(3)
    assert compiled(x) == 6
    for _ in range(3):
        assert counted(lambda: compiled(x).item()).syncs[0].call == ".item()"
        assert compiled(x) == 6
    assert len(calls) <= 2, "compiled at most once more"
