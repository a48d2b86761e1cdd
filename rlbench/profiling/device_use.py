"""How busy and how full the device is: NVML asked every tenth of a second, and torch's allocator at the end."""

from __future__ import annotations

import importlib
import os
import threading
from typing import Any

import torch

from rlbench.profiling.records import DeviceUse

INTERVAL_S = 0.1
INSTALL = "the package nvidia-ml-py is not installed: pip install nvidia-ml-py"


class DeviceSampler:
    """Samples between `start` and `stop`; without a device, or without NVML, it says why not.

    Args:
        device: the run's.
        nvml: the module pynvml; imported where left out.
    """

    def __init__(self, device: str | torch.device, nvml: Any = None) -> None:
        self.device, self.nvml, self.why_not = torch.device(device), nvml, ""
        self.utilisation: list[float] = []
        self.memory: list[float] = []
        self._thread: threading.Thread | None = None
        self._done = threading.Event()

    def start(self) -> None:
        if self.device.type != "cuda":
            self.why_not = "the run is on the CPU"
            return
        torch.cuda.reset_peak_memory_stats(self.device)
        try:
            self.nvml = self.nvml or importlib.import_module("pynvml")
            self.nvml.nvmlInit()
            self.handle = self._handle()
        except ImportError:
            self.why_not = INSTALL
        except Exception as error:  # NVML's errors are classes of its own, of a library that may be absent
            self.why_not = f"NVML says: {error}"
        if not self.why_not:
            self._thread = threading.Thread(target=self._run, name="rlbench NVML", daemon=True)
            self._thread.start()

    def _handle(self) -> Any:
        """The device that torch calls cuda:N, which CUDA_VISIBLE_DEVICES may have renumbered."""
        index = self.device.index or 0
        visible = [part.strip() for part in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if part.strip()]
        chosen = visible[index] if index < len(visible) else str(index)
        if chosen.isdigit():
            return self.nvml.nvmlDeviceGetHandleByIndex(int(chosen))
        return self.nvml.nvmlDeviceGetHandleByUUID(chosen.encode())

    def _run(self) -> None:
        while not self._done.is_set():
            self.look()
            self._done.wait(INTERVAL_S)

    def look(self) -> None:
        """One sample."""
        memory = self.nvml.nvmlDeviceGetMemoryInfo(self.handle)
        self.utilisation.append(self.nvml.nvmlDeviceGetUtilizationRates(self.handle).gpu / 100)
        self.memory.append(memory.used / memory.total)

    def stop(self) -> None:
        if self._thread is not None:
            self._done.set()
            self._thread.join()
            self._thread = None
            self.nvml.nvmlShutdown()

    def use(self) -> DeviceUse:
        """What was seen; None for each number that was not."""
        seen = self.utilisation
        return DeviceUse(
            utilisation=sum(seen) / len(seen) if seen else None,
            memory=max(self.memory, default=None),
            why_not=self.why_not,
            **(allocator(torch.cuda.memory_stats(self.device)) if self.device.type == "cuda" else {}),
        )


def allocator(stats: dict[str, int]) -> dict[str, Any]:
    """allocated, reserved, fragmentation and retries from torch's statistics."""
    allocated, reserved = stats.get("allocated_bytes.all.peak", 0), stats.get("reserved_bytes.all.peak", 0)
    return {
        "allocated": allocated,
        "reserved": reserved,
        "fragmentation": 1 - allocated / reserved if reserved else 0.0,
        "retries": stats.get("num_alloc_retries", 0),
    }
