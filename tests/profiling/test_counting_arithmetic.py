"""Operations, bytes, operators and products, against numbers worked out by hand."""

import contextlib

import pytest
import torch
from torch import nn

from rlbench.profiling.counting import Counting
from rlbench.profiling.records import Product, Work

FLOAT = 4  # bytes


def counted(function, *args, phase="forward"):
    counting = Counting(lambda: phase)
    counting.start()
    try:
        function(*args)
        counting.step()
    finally:
        assert counting.stop()
    return counting.counted(None)


def two_layers():
    return nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)), torch.ones(4, 3)


def forward_work(phase="forward"):
    # bias, input, weight and output of a layer; input and output of ReLU
    first, relu, second = (5 + 4 * 3 + 3 * 5 + 4 * 5), 2 * 4 * 5, (2 + 4 * 5 + 5 * 2 + 4 * 2)
    return Work(phase, 2 * 4 * (3 * 5 + 5 * 2), FLOAT * (first + relu + second), 3)


@pytest.mark.parametrize(
    ("around", "learning"),
    [(contextlib.nullcontext, True), (torch.no_grad, False), (torch.inference_mode, False)],
)
def test_a_forward_pass_by_hand(around, learning):
    net, batch = two_layers()
    with around():
        found = counted(lambda: net(batch))
    assert found.work == (forward_work(),)
    assert found.products == (
        Product("forward", 4, 3, 5, 1, learning),
        Product("forward", 4, 5, 2, 1, learning),
    )


def test_an_inference_mode_within():
    net, batch = two_layers()

    def act():
        with torch.inference_mode():
            return net(batch).sum().item()

    found = counted(act, phase="action")
    assert found.work[0].flops == forward_work().flops
    assert [(product.inputs, product.learning) for product in found.products] == [(3, False), (5, False)]
    assert [(sync.call, sync.count) for sync in found.syncs] == [(".item()", 1)]


def test_an_update_by_hand():
    net, batch = two_layers()
    steps = torch.optim.SGD(net.parameters(), lr=0.1)
    where = ["forward"]
    counting = Counting(lambda: where[0])
    counting.start()
    out = net(batch)
    where[0] = "loss"
    loss = out.sum()
    where[0] = "backward"
    loss.backward()
    where[0] = "optimizer"
    steps.step()
    steps.zero_grad()
    assert counting.stop()
    found = counting.counted(None)
    # Weights of both layers and the input of the second. The gradient of a sum is one number that all places share.
    flops = 2 * 4 * (3 * 5 + 5 * 2 + 5 * 2)
    seed, relu = 1, 3 * 4 * 5
    second = (1 + 4 * 5 + 5 * 2) + (1 + 2 * 5 + 4 * 5) + (1 + 2)  # weight, input, bias
    first = (4 * 5 + 4 * 3 + 5 * 3) + (4 * 5 + 5)
    parameters = 3 * 5 + 5 + 5 * 2 + 2
    assert {work.phase: work for work in found.work} == {
        "forward": forward_work(),
        "loss": Work("loss", 0, FLOAT * (4 * 2 + 1), 1),
        "backward": Work("backward", flops, FLOAT * (seed + relu + second + first), 7),
        "optimizer": Work("optimizer", 0, FLOAT * 3 * parameters, 4),  # parameter and gradient read, parameter written
    }
    assert {product.phase for product in found.products} == {"forward"}, "those of backward are not listed"


def test_products_of_backward_are_not_listed_under_any_phase():
    net, batch = two_layers()
    found = counted(lambda: net(batch).sum().backward(), phase="update")
    assert [(p.inputs, p.outputs, p.calls, p.learning) for p in found.products] == [(3, 5, 1, True), (5, 2, 1, True)]


def test_lists_of_tensors_are_read_and_written():
    def scale(tensors):
        torch._foreach_mul_(tensors, 2.0)

    assert counted(scale, [torch.ones(3), torch.ones(2)]).work == (Work("forward", 0, 2 * FLOAT * 5, 1),)


def test_a_convolution_counts_a_patch_at_every_place():
    conv = nn.Conv2d(2, 3, kernel_size=2, bias=False)
    for around in (contextlib.nullcontext, torch.inference_mode):
        with around():
            found = counted(lambda: conv(torch.ones(5, 2, 4, 4)))
        (product,), places = found.products, 5 * 3 * 3
        assert (product.batch, product.inputs, product.outputs, product.convolution) == (places, 2 * 2 * 2, 3, True)
        assert sum(work.flops for work in found.work) == 2 * places * 8 * 3


def test_other_products():
    def some():
        torch.ones(4, 3) @ torch.ones(3, 2)
        torch.bmm(torch.ones(2, 4, 3), torch.ones(2, 3, 5))

    found = counted(some)
    assert [(p.batch, p.inputs, p.outputs) for p in found.products] == [(4, 3, 2), (8, 3, 5)]
    assert found.work[0].flops == 2 * 4 * 3 * 2 + 2 * 2 * 4 * 3 * 5
    half = counted(lambda: torch.ones(4, 3, dtype=torch.bfloat16) @ torch.ones(3, 2, dtype=torch.bfloat16))
    assert half.work[0].dtype == "bfloat16"


def test_views_and_empty_memory_are_free():
    def free(t):
        t.view(-1), t[0], t.T, t.detach(), t.reshape(3, 2), t.expand(4, 2, 3), torch.empty(9), t.split(1), t.shape
        with torch.profiler.record_function("mark"):
            t.unsqueeze(0).squeeze_(0)

    found = counted(free, torch.ones(2, 3))
    assert (found.work, found.op_lines) == ((), ())


def test_a_few_rows_of_a_large_table():
    table, rows = torch.ones(100, 8), torch.tensor([3, 4])
    read = 2 * 8  # index, two words each
    assert counted(lambda: table[rows]).work[0].bytes == read + 2 * FLOAT * 2 * 8

    def write(new):
        table[rows] = new

    assert counted(write, torch.zeros(2, 8)).work[0].bytes == read + FLOAT * 2 * 8


def test_operators_are_counted_by_line_without_views():
    def loop(t):
        for i in range(7):
            t[i].add(1)

    (line,) = counted(loop, torch.ones(8)).op_lines
    assert (line.place.source, line.ops, line.per_step) == ("t[i].add(1)", 7, 7.0)


def test_a_mask_is_an_operator_and_a_print_is_none():
    found = counted(lambda t: (t[t > 0], repr(t), t.sum().item()), torch.ones(3))
    assert sum(line.ops for line in found.op_lines) == 3  # compare, index, sum


def test_odd_tensors_do_not_break_it():
    jagged = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    with torch.inference_mode():
        counted(lambda: torch.ones(0, 3) @ torch.ones(3, 2))
    found = counted(lambda: (jagged.sin(), torch.eye(3).to_sparse() @ torch.ones(3, 2), torch.ones(0).sum()))
    assert sum(line.ops for line in found.op_lines) > 0
