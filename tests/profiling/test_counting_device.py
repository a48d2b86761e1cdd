"""What is counted on a device, as far as a machine without one can show."""

import contextlib
import warnings

import pytest
import torch
from torch.overrides import TorchFunctionMode

from rlbench.profiling import mode_stacks
from rlbench.profiling.counting import Counting
from rlbench.profiling.sync_debug import SyncDebug

MESSAGE = "called a synchronizing CUDA operation (Triggered internally)"


class Loud(TorchFunctionMode):
    """Warns as torch does for some calls, from below what counts."""

    loud = (torch.exp, torch.Tensor.item, torch.Tensor.to)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function in self.loud:
            warnings.warn(MESSAGE, UserWarning, stacklevel=2)
        return function(*args, **(kwargs or {}))


@contextlib.contextmanager
def loud():
    mode = Loud()
    mode_stacks.put_functions(mode)
    yield
    assert mode_stacks.take_functions(mode)


@pytest.fixture
def modes(monkeypatch):
    seen = ["default"]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: seen[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", seen.append)
    return seen


def test_torch_is_heard_and_others_are_shown(modes, recwarn):
    debug, filters, show = SyncDebug(), list(warnings.filters), warnings.showwarning
    for _ in range(2):
        debug.start()
        for _ in range(3):
            warnings.warn(MESSAGE, UserWarning, stacklevel=1)
        warnings.warn("another", UserWarning, stacklevel=1)
        debug.stop()
    assert debug.heard == 6 and {str(w.message) for w in recwarn} == {"another"}
    assert modes == ["default", "warn", "default", "warn", "default"]
    assert (warnings.filters, warnings.showwarning) == (filters, show)


def test_a_reader_s_own_warnings_are_left_alone(modes):
    debug = SyncDebug()
    debug.start()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warnings.warn("mine", UserWarning, stacklevel=1)
        debug.stop()
    assert [str(w.message) for w in seen] == ["mine"]
    with pytest.warns(UserWarning, match="late"):
        warnings.warn("late", UserWarning, stacklevel=1)


def test_tensors_on_the_host_do_not_wait(modes):
    counting = Counting(lambda: "p", "cuda")
    counting.start()
    torch.ones(2).sum().item(), repr(torch.ones(2)), torch.ones(2).cpu()
    assert counting.stop() and counting.counted(None).syncs == ()


def test_what_torch_alone_knows_is_counted_too(modes):
    counting = Counting(lambda: "p", "cuda:0")
    counting.start()
    with loud():
        for _ in range(3):
            torch.exp(torch.ones(2))
        torch.ones(2).to(torch.float64)
        torch.ones(2) + 1
    assert counting.stop()
    found = {sync.call: sync for sync in counting.counted(None).syncs}
    assert {call: (sync.count, sync.confirmed) for call, sync in found.items()} == {
        "exp": (3, 3),
        ".to(device)": (1, 1),
    }
    assert all(sync.wait_s > 0 for sync in found.values())


def test_named_calls_are_confirmed_once(modes, monkeypatch):
    monkeypatch.setattr(Counting, "_far", lambda self, tensor: True)  # as if it lay on the device
    counting = Counting(lambda: "p", "cuda")
    counting.start()
    with loud():
        for _ in range(2):
            torch.ones(1).item()
        float(torch.ones(1))
    assert counting.stop()
    found = {sync.call: (sync.count, sync.confirmed) for sync in counting.counted(None).syncs}
    assert found == {".item()": (2, 2), "float(t)": (1, 0)}
