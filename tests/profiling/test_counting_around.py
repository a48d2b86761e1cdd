"""Counting in company: starts and stops, other modes, compiled functions, threads, exceptions."""

import threading

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from rlbench.profiling.counting import Counting


class OwnFunctions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class OwnOperators(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def read():
    return torch.ones(2).sum().item()


def total(counting):
    return sum(sync.count for sync in counting.counted(None).syncs)


@pytest.fixture(autouse=True)
def compiling_is_allowed():
    """Whatever a test that failed has left."""
    yield
    torch.compiler.set_stance("default")


def nothing_is_left():
    return (
        torch.overrides._get_current_function_mode() is None
        and torch.utils._python_dispatch._get_current_dispatch_mode() is None
        and torch.empty(2).add(1).shape == (2,)  # torch looks for no mode any more
    )


def test_it_goes_on_adding():
    counting = Counting(lambda: "sync")
    for _ in range(2):
        counting.start()
        counting.start()
        for _ in range(3):
            read()
            counting.step()
        assert counting.stop() and counting.stop()
        read()
    found = counting.counted(1.0)
    assert (found.steps, found.syncs[0].count, found.syncs[0].per_step) == (6, 6, 1.0)
    assert found.slowdown == pytest.approx(found.seconds / 6)
    assert found.syncs[0].phase == "sync" and counting.counted(None).slowdown is None
    assert nothing_is_left()


def test_rates_are_of_updates_where_there_are_no_steps():
    counting = Counting(lambda: "p")
    counting.start()
    for _ in range(4):
        read()
    counting.update()
    counting.update()
    counting.stop()
    assert counting.counted(None).syncs[0].per_step == 2.0
    assert Counting(lambda: "p").counted(1.0).syncs == ()


@pytest.mark.parametrize("own", [OwnFunctions, OwnOperators, lambda: torch.device("cpu")])
def test_a_mode_of_the_reader_is_left_alone(own):
    counting, x = Counting(lambda: "forward"), torch.ones(2)
    counting.start()
    with own():  # ends after it
        read()
        assert counting.stop()
        assert not nothing_is_left()
        read()
    assert total(counting) == 1 and nothing_is_left()
    with own():  # ends in the midst of it
        counting.start()
        read()
    x.sum().item()
    assert counting.stop() and total(counting) == 3 and nothing_is_left()
    with own():  # around it
        counting.start()
        read()
        assert counting.stop()
        assert not nothing_is_left()
    assert total(counting) == 4 and nothing_is_left()
    (place,) = {sync.place.function for sync in counting.counted(None).syncs} - {"read"}
    assert place == "test_a_mode_of_the_reader_is_left_alone", (
        "the line that calls, not the mode that passes the call on"
    )


def test_contexts_of_torch():
    counting = Counting(lambda: "forward")
    counting.start()
    with torch.device("cpu"), torch.autocast("cpu", dtype=torch.bfloat16), torch.no_grad():
        read()
        assert counting.stop()
        counting.start()
    torch.set_default_device("cpu")
    read()
    torch.set_default_device(None)
    assert counting.stop() and total(counting) == 2 and nothing_is_left()
    torch.set_default_device("cpu")
    counting.start()
    read()
    torch.set_default_device(None)
    read()
    assert counting.stop() and total(counting) == 4 and nothing_is_left()


def test_with_other_counters_of_torch():
    counting, net = Counting(lambda: "forward"), nn.Linear(3, 2)
    with FlopCounterMode(display=False) as flops:
        counting.start()
        net(torch.ones(4, 3)).sum().backward()
        assert counting.stop()
    with FakeTensorMode():
        counting.start()
        net_of_none = nn.Linear(3, 2)(torch.ones(4, 3))
        assert counting.stop()
    assert net_of_none.shape == (4, 2) and nothing_is_left()
    assert flops.get_total_flops() == 2 * (2 * 4 * 3 * 2)
    assert counting.counted(None).work[0].flops >= flops.get_total_flops()


def test_a_border_in_the_midst_of_a_counted_call():
    """An optimizer that steps in backward: torch has taken the mode away while it works."""
    counting, stopped = Counting(lambda: "p"), []
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda _: stopped.append(counting.stop()))
    counting.start()
    x.sum().backward()
    assert stopped == [False] and counting.stop() and nothing_is_left()


@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad, torch.enable_grad])
def test_under_grad_modes(mode):
    counting = Counting(lambda: "forward")
    with mode():
        counting.start()
        read()
        assert counting.stop()
    assert total(counting) == 1 and nothing_is_left()


def test_an_inference_mode_that_begins_in_the_middle_keeps_it_open():
    counting = Counting(lambda: "forward")
    counting.start()
    with torch.inference_mode():
        read()
        assert not counting.stop()
    assert counting.stop() and nothing_is_left()
    assert total(counting) == 1


def test_an_inference_mode_that_ends_in_the_middle():
    counting, net = Counting(lambda: "forward"), nn.Linear(3, 2)
    with torch.inference_mode():
        counting.start()
        net(torch.ones(4, 3))
    net(torch.ones(4, 3))
    assert counting.stop() and nothing_is_left()
    assert counting.counted(None).work[0].flops == 2 * (2 * 4 * 3 * 2)
    with torch.inference_mode():
        counting.start()
    assert counting.stop() and nothing_is_left()


def test_a_transform_keeps_it_open():
    counting, stopped = Counting(lambda: "forward"), []

    def double(x):
        stopped.append(counting.stop())
        return (x * 2).sum()

    counting.start()
    torch.func.vmap(double)(torch.ones(3, 2))
    torch.func.grad(double)(torch.ones(3))
    assert stopped == [False, False] and counting.stop() and nothing_is_left()


def test_control_flow_operators_pass():
    counting = Counting(lambda: "forward")
    x = torch.ones(3)
    counting.start()
    out = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))
    assert counting.stop() and out.tolist() == [2.0, 2.0, 2.0]


def test_exceptions_pass():
    counting = Counting(lambda: "forward")
    counting.start()
    with pytest.raises(RuntimeError):
        torch.ones(2).item()
    with pytest.raises(RuntimeError):
        torch.ones(2, 3) @ torch.ones(2, 3)
    with pytest.raises(TypeError):
        torch.ones(2) + "x"
    read()
    assert counting.stop() and total(counting) == 1 and nothing_is_left()


def test_other_threads_do_not_count():
    counting, outcomes = Counting(lambda: "forward"), []
    counting.start()
    other = threading.Thread(target=lambda: outcomes.extend([read(), counting.stop()]))
    other.start()
    other.join()
    read()
    assert outcomes == [2.0, False], "only its own thread can end it"
    assert counting.stop() and total(counting) == 1 and nothing_is_left()


def test_one_within_another():
    outer, inner = Counting(lambda: "outer"), Counting(lambda: "inner")
    outer.start()
    read()
    inner.start()
    read()
    assert outer.stop()
    read()
    assert inner.stop() and (total(outer), total(inner)) == (2, 2) and nothing_is_left()


def test_autograd_s_own_functions_and_checkpoints():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            grad.sum().item()
            return grad * 2

    counting = Counting(lambda: "p")
    x = torch.ones(2, 3, requires_grad=True)
    counting.start()
    Double.apply(x).sum().backward()
    torch.utils.checkpoint.checkpoint(nn.Linear(3, 2), x, use_reentrant=False).sum().backward()
    assert counting.stop()
    found = counting.counted(None)
    assert [(sync.call, sync.count, sync.place.function) for sync in found.syncs] == [(".item()", 1, "backward")]
    assert [(product.calls, product.learning) for product in found.products] == [(1, True)]


@pytest.mark.parametrize("fullgraph", [False, True])
def test_compiled_functions_run_uncompiled_and_stay_compiled(fullgraph):
    torch._dynamo.reset()
    graphs = []

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    def make():
        return torch.compile(lambda x: (x * 2).relu().sum(), backend=backend, fullgraph=fullgraph)

    before, x, counting = make(), torch.ones(3), Counting(lambda: "p")
    assert before(x) == 6 and len(graphs) == 1
    for _ in range(12):
        counting.start()
        assert before(x).item() == 6
        assert counting.stop()
        assert before(x) == 6
    assert len(graphs) == 1, "compiled no second time"
    found = counting.counted(None)
    assert (total(counting), found.work[0].ops) == (12, 12 * 3)
    torch._dynamo.reset()
    after = make()
    counting.start()
    after(x)
    counting.stop()
    after(x)
    assert len(graphs) == 2, "and one first called in the pass is compiled afterwards"


def test_begun_in_the_midst_of_a_compiled_function():
    counting = Counting(lambda: "p")

    @torch.compiler.disable
    def border():
        return counting.stop() if counting._running else counting.start()

    @torch.compile(backend="eager")
    def loop(x):
        y = x * 2
        border()
        y = y + 1
        border()
        return y.sum()

    for _ in range(3):
        assert loop(torch.ones(3)) == 9
    assert counting.stop() and nothing_is_left()
