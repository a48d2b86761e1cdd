"""Which calls count as synchronisations, by what name, at which line."""

import inspect
import random
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from rlbench.profiling.counting import Counting


def counted(function, *args, phase="forward"):
    counting = Counting(lambda: phase)
    counting.start()
    try:
        function(*args)
        counting.step()
    finally:
        assert counting.stop()
    return counting.counted(None)


def calls(function, *args):
    return Counter({sync.call: sync.count for sync in counted(function, *args).syncs})


def everything_that_waits(t, mask, i):
    t.item()
    float(t)
    int(t)
    complex(t)
    t.tolist()
    t.numpy()
    t.clone().cpu()
    t.clone().to("cpu")
    t.clone().to(device=torch.device("cpu"))
    np.asarray(t)
    bool(t > 0)
    if t > 0:
        pass
    assert t > 0
    _ = t > 0 and t < 9
    print(f"{t:.2f}")
    repr(mask)
    mask.nonzero()
    torch.where(mask)
    mask[mask]
    mask[[True, False]]
    mask[mask] = mask[mask]
    mask[i]
    mask[i, None] = True
    torch.masked_select(mask, mask)
    torch.equal(t, t)
    torch.allclose(t, t)
    torch.unique(mask)
    _ = 1.0 in mask
    range(i)
    [0, 1][i]
    torch.tensor([[t], [t]])
    functional.one_hot(i)
    torch.zeros(i)
    torch.normal(t, t)
    torch.bincount(i[None])
    torch.repeat_interleave(t, i[None])
    torch.linalg.inv(torch.eye(2))


# By line, in the order of the function above; None: the line has none.
WAITS = [
    *(".item()", "float(t)", "int(t)", "complex(t)", ".tolist()", ".numpy()", ".cpu()", ".cpu()", ".cpu()", ".numpy()"),
    *("bool(t)", "if t", None, "if t", "if t", "print(t)", "print(t)", "nonzero", "nonzero", "t[mask]", "t[mask]"),
    *(("t[mask]", "t[mask] = x"), "t[i]", "t[i] = x", "masked_select", "torch.equal", "torch.allclose", "unique"),
    *("x in t", "int(t)", "int(t)", "torch.tensor(x)", "one_hot", ".item()", "torch.normal", "bincount"),
    *("repeat_interleave", "torch.linalg"),
]


def test_each_kind_is_found_once_at_its_line():
    given = torch.tensor(1.0), torch.tensor([True, False]), torch.tensor(1)
    first = inspect.getsourcelines(everything_that_waits)[1] + 1
    expected = {}
    for line, found in enumerate(WAITS, start=first):
        for call in (found,) if isinstance(found, str) else found or ():
            expected[line, call] = 1
    found = counted(everything_that_waits, *given).syncs
    assert {(sync.place.line, sync.call): sync.count for sync in found} == expected
    assert all(sync.per_step == 1.0 and sync.wait_s is None and sync.confirmed is None for sync in found)
    assert {sync.place.function for sync in found} == {"everything_that_waits"}
    assert {sync.place.whose for sync in found} == {"yours"}
    assert {sync.place.source for sync in found} >= {"t.item()", "if t > 0:"}
    assert all(sync.place.file.endswith("test_counting.py") for sync in found)


def test_what_does_not_wait_is_not_found():
    device = torch.device("cpu")

    def calm(t):
        t[torch.tensor([0, 1])], t[0], t[1:], t[[0, 1]], t[None, ..., 1]
        t.to(device), t.to("cpu", non_blocking=True), t.to(torch.float64), t.double()
        torch.where(t > 0, t, -t)
        t[t > 5] = 0.0  # fills
        t.masked_fill(t > 0, 1.0)
        first, *rest = t  # views
        for row in t:
            row + first
        t.sum().detach(), len(rest), t.shape, t.numel(), t.requires_grad, t.dim(), t.is_cuda
        functional.one_hot(torch.tensor([0, 1]), 3)  # its checks are of the CPU alone
        torch.multinomial(t, 1)
        torch.tensor([1.0, 2.0]), torch.tensor(3.0), torch.stack([t, t]), torch.histc(t, min=0, max=1)
        torch.repeat_interleave(t, 2), torch.normal(t, 1.0), torch.quantile(t, 0.5)

    assert calls(calm, torch.ones(3)) == {}


def test_reading_each_item_waits_for_each():
    def read(t):
        return [float(item) for item in t]

    assert calls(read, torch.ones(5)) == {"float(t)": 5}
    assert calls(lambda t: max(t), torch.ones(4)) == {"bool(t)": 3}


def test_what_came_from_cpu_is_not_read_again():
    def chained(t):
        t.detach().cpu().numpy().tolist()

    def kept(t):
        here = t.cpu()
        here.numpy(), [float(item) for item in here], here[here > 0]

    def computed(t):
        here = t.cpu().double()
        (here * here).sum().item()

    def computed_with_another(t, other):
        (t.cpu() + other).sum().item()

    def back_on_the_device(t, device):
        t.cpu().to(device).item()

    def written(t):
        here = t.cpu()
        here += 1
        here.item()

    assert calls(chained, torch.ones(2)) == {".cpu()": 1}
    assert calls(kept, torch.ones(3)) == {".cpu()": 1}
    assert calls(computed, torch.ones(3)) == {".cpu()": 1}
    assert calls(computed_with_another, torch.ones(3), torch.ones(3)) == {".cpu()": 1, ".item()": 1}
    assert calls(back_on_the_device, torch.ones(1), torch.device("cpu")) == {".cpu()": 1, ".item()": 1}
    assert calls(written, torch.ones(1)) == {".cpu()": 1, ".item()": 1}
    assert calls(lambda t: (t.cpu(), t.cpu()), torch.ones(1)) == {".cpu()": 2}
    with torch.inference_mode():
        assert calls(chained, torch.ones(2)) == {".cpu()": 1}


def test_numpy_reads_a_tensor_of_a_list_once():
    assert calls(lambda ts: np.array(ts), [torch.ones(()) for _ in range(3)]) == {".numpy()": 3}
    assert calls(lambda ts: np.mean(ts), [torch.ones(()) for _ in range(3)]) == {".numpy()": 3}

    def both(ts):
        for _ in range(2):
            np.array(ts)
            float(ts[0])

    assert calls(both, [torch.ones(())]) == {".numpy()": 2, "float(t)": 2}


def test_printing_a_list_prints_each():
    assert calls(lambda ts: str(ts), [torch.ones(3)] * 4) == {"print(t)": 4}
    assert calls(lambda net: repr(net), nn.Linear(2, 2)) == {}


def test_a_read_that_fails_is_none():
    def wrong(t):
        for read in (lambda: t.item(), lambda: bool(t), lambda: float(t)):
            with pytest.raises((RuntimeError, ValueError)):
                read()
        t[0].item()

    assert calls(wrong, torch.ones(2)) == {".item()": 1}


def test_reads_in_torch_code_count_for_the_reader_s_line():
    def clip(net):
        net(torch.ones(2, 3)).sum().backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, error_if_nonfinite=True)

    (sync,) = counted(clip, nn.Linear(3, 1)).syncs
    assert (sync.call, sync.count) == ("bool(t)", 1)
    assert sync.place.source.startswith("torch.nn.utils.clip_grad_norm_")

    def check(logits):
        torch.distributions.Categorical(logits=logits, validate_args=True).sample()

    (sync,) = counted(check, torch.zeros(3)).syncs
    assert (sync.call, sync.count, sync.place.function) == ("bool(t)", 1, "check")
    assert calls(lambda x: torch.distributions.Categorical(logits=x, validate_args=False).sample(), torch.ones(3)) == {}


OPTIMIZERS = [torch.optim.SGD, torch.optim.Adam, torch.optim.AdamW, torch.optim.NAdam, torch.optim.RMSprop]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("foreach", [False, True])
def test_an_optimizer_s_own_counters_lie_on_the_host(optimizer, foreach):
    net = nn.Linear(3, 2)
    steps = optimizer(net.parameters(), lr=0.1, foreach=foreach)

    def update():
        net(torch.ones(2, 3)).sum().backward()
        steps.step()
        steps.zero_grad()

    assert calls(update) == {}


def test_names_of_a_truth_value_by_its_line():
    def truths(t):
        while t > 5:
            t = t - 1
        here = 1 if t > 0 else 0
        there = not t
        some = any([t > 9, t > 8])
        plain = filter(None, [t])  # if there are any
        return here, there, some, list(plain)

    found = counted(truths, torch.tensor(6.0)).syncs
    first = inspect.getsourcelines(truths)[1]
    by_line = {(sync.place.line - first, sync.call): sync.count for sync in found}
    expected = {(1, "if t"): 2, (3, "if t"): 1, (4, "if t"): 1, (5, "if t"): 2, (7, "bool(t)"): 1}
    assert by_line == expected


def test_a_subclass_is_read_like_any_tensor():
    class Named(torch.Tensor):
        pass

    t = torch.ones(2).as_subclass(Named)
    assert calls(lambda: (float(t.sum()), repr(t), t.tolist())) == {"float(t)": 1, "print(t)": 1, ".tolist()": 1}


@pytest.mark.parametrize("seed", range(5))
def test_any_order_of_reads_and_of_starts(seed):
    t, mask = torch.tensor(2.0), torch.tensor([True, False])
    reads = {
        ".item()": t.item,
        "float(t)": lambda: float(t),
        "print(t)": lambda: str(t),
        "nonzero": mask.nonzero,
        "t[mask]": lambda: mask[mask],
        ".cpu()": lambda: t.clone().cpu().numpy(),
        ".tolist()": mask.tolist,
        "": lambda: t * 2,
    }
    draw = random.Random(seed)
    counting, expected, running, steps = Counting(lambda: "p"), Counter(), False, 0
    for _ in range(60):
        if draw.random() < 0.2:
            running = not running
            counting.start() if running else counting.stop()
        call = draw.choice(list(reads))
        reads[call]()
        if running:
            expected[call] += bool(call)
            counting.step()
            steps += 1
    assert counting.stop()
    found = Counter()
    for sync in counting.counted(None).syncs:
        found[sync.call] += sync.count
    assert (+found, counting.steps) == (+expected, steps)
