import pytest
import torch

from rlbench.profiling import device_use
from rlbench.profiling.device_use import DeviceSampler, allocator


class Values:
    def __init__(self, **values):
        vars(self).update(values)


class Nvml:
    """A device that is at 30 and then at 50 percent, its memory a quarter full."""

    def __init__(self):
        self.asked, self.rates = [], [50, 30]

    def nvmlInit(self): ...

    def nvmlShutdown(self):
        self.asked.append("shutdown")

    def nvmlDeviceGetHandleByIndex(self, index):
        self.asked.append(index)
        return "handle"

    def nvmlDeviceGetHandleByUUID(self, uuid):
        self.asked.append(uuid)
        return "handle"

    def nvmlDeviceGetUtilizationRates(self, handle):
        return Values(gpu=self.rates.pop() if len(self.rates) > 1 else self.rates[0])

    def nvmlDeviceGetMemoryInfo(self, handle):
        return Values(used=25, total=100)


@pytest.fixture
def cuda(monkeypatch):
    stats = {"allocated_bytes.all.peak": 30, "reserved_bytes.all.peak": 40, "num_alloc_retries": 2}
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", lambda device: None)
    monkeypatch.setattr(torch.cuda, "memory_stats", lambda device: stats)
    monkeypatch.setattr(device_use, "INTERVAL_S", 1e9)


def test_on_the_cpu_it_says_why_there_is_nothing():
    sampler = DeviceSampler("cpu")
    sampler.start()
    sampler.stop()
    use = sampler.use()
    assert use.why_not == "the run is on the CPU"
    assert {use.utilisation, use.memory, use.allocated, use.reserved, use.fragmentation, use.retries} == {None}


@pytest.mark.parametrize(("visible", "asked"), [("", 1), ("4,6", 6), ("GPU-aa,GPU-bb", b"GPU-bb")])
def test_the_device_that_torch_means(cuda, monkeypatch, visible, asked):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    nvml = Nvml()
    sampler = DeviceSampler("cuda:1", nvml)
    sampler.start()
    sampler.stop()
    assert nvml.asked == [asked, "shutdown"]


def test_what_was_sampled(cuda):
    sampler = DeviceSampler("cuda", Nvml())
    sampler.handle = "handle"
    sampler.look()
    sampler.look()
    use = sampler.use()
    assert (use.utilisation, use.memory) == (pytest.approx(0.4), 0.25)
    assert (use.allocated, use.reserved, use.fragmentation, use.retries) == (30, 40, 0.25, 2)


def test_without_the_library_the_install_line(cuda, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr(device_use.importlib, "import_module", absent)
    sampler = DeviceSampler("cuda")
    sampler.start()
    sampler.stop()
    assert "pip install nvidia-ml-py" in sampler.use().why_not and sampler.use().utilisation is None


def test_an_allocator_that_did_nothing():
    assert allocator({}) == {"allocated": 0, "reserved": 0, "fragmentation": 0.0, "retries": 0}
