"""Where the facts about a machine come from: /proc, /sys and torch, each replaceable.

A test plants a situation that the machine at hand does not have by giving another root folder or other functions.
Where a system lacks a source (macOS, Windows) the answer is None.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch


def _has(name: str) -> bool:
    return hasattr(os, name)


def _gpus() -> tuple[str, ...]:
    return tuple(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count()))


def _cuda_available() -> bool:
    with warnings.catch_warnings():  # a driver too old is reported by a warning; our remedy says it once
        warnings.simplefilter("ignore")
        return torch.cuda.is_available()


def _mps() -> bool:
    return torch.backends.mps.is_available()


@dataclass(frozen=True)
class Probe:
    """Where the facts come from. `root` is the folder that holds proc and sys."""

    root: Path = Path("/")
    torch_cuda: Callable[[], str | None] = lambda: torch.version.cuda
    cuda_available: Callable[[], bool] = _cuda_available
    gpus: Callable[[], tuple[str, ...]] = _gpus
    mps: Callable[[], bool] = _mps
    torch_threads: Callable[[], int] = torch.get_num_threads
    which: Callable[[str], str | None] = shutil.which
    cpu_count: Callable[[], int | None] = os.cpu_count
    affinity: Callable[[], int | None] = lambda: len(os.sched_getaffinity(0)) if _has("sched_getaffinity") else None
    load: Callable[[], float | None] = lambda: os.getloadavg()[0] if _has("getloadavg") else None
    sleep: Callable[[float], None] = time.sleep

    def read(self, path: str) -> str | None:
        """The text of a file below the root, or None if it cannot be read."""
        try:
            return (self.root / path).read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            return None

    def nvidia_hardware(self) -> bool:
        """An NVIDIA display device on the PCI bus, or a driver or tool that only such a device brings."""
        if (self.root / "proc/driver/nvidia").exists() or (self.root / "dev/nvidiactl").exists():
            return True
        for device in self.root.glob("sys/bus/pci/devices/*"):
            where = f"sys/bus/pci/devices/{device.name}"
            # Class 03: display and 3D controllers. NVIDIA also makes bridges and network cards.
            if self.read(f"{where}/vendor") == "0x10de" and (self.read(f"{where}/class") or "0x03").startswith("0x03"):
                return True
        return self.which("nvidia-smi") is not None

    def cpu_ticks(self) -> tuple[int, int] | None:
        """(stolen, all) clock ticks of all cores since the start of the machine."""
        words = (self.read("proc/stat") or "").split("\n")[0].split()
        if len(words) < 9 or words[0] != "cpu":
            return None
        ticks = [int(word) for word in words[1:9]]  # user nice system idle iowait irq softirq steal
        return ticks[7], sum(ticks)

    def quota_cores(self) -> float | None:
        """Cores that the control group grants, or None without a limit."""
        words = (self.read("sys/fs/cgroup/cpu.max") or "").split()
        if len(words) != 2:  # version 1 of the control groups
            names = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            words = [self.read(f"sys/fs/cgroup/cpu/{name}") or "" for name in names]
        quota, period = words
        return int(quota) / int(period) if quota.isdigit() and period.isdigit() and int(period) else None

    def on_battery(self) -> bool | None:
        """True when a battery is discharging, False on mains, None where there is no battery or no way to know."""
        states = []
        for supply in self.root.glob("sys/class/power_supply/*"):
            where = f"sys/class/power_supply/{supply.name}"
            if self.read(f"{where}/type") == "Battery" and self.read(f"{where}/scope") != "Device":
                states.append(self.read(f"{where}/status"))
        return "Discharging" in states if states else None

    def cpu_name(self) -> str:
        """The processor's marketing name, or the architecture."""
        match = re.search(r"^model name\s*:\s*(.+)$", self.read("proc/cpuinfo") or "", re.MULTILINE)
        return match[1] if match else platform.processor() or platform.machine() or "unknown CPU"

    def memory_gb(self) -> float | None:
        """Main memory in units of 1e9 bytes."""
        match = re.search(r"^MemTotal:\s*(\d+) kB", self.read("proc/meminfo") or "", re.MULTILINE)
        return round(int(match[1]) * 1024 / 1e9, 1) if match else None

    def cuda_status(self) -> str:
        """One of "cuda", "no_gpu", "no_driver", "cpu_only_torch"."""
        if self.cuda_available():
            return "cuda"
        if not self.nvidia_hardware():
            return "no_gpu"
        return "cpu_only_torch" if self.torch_cuda() is None else "no_driver"


class StealMeter:
    """Percent of the CPU time that the hypervisor gave to others since the meter was made; None if unknown."""

    def __init__(self, probe: Probe | None = None) -> None:
        self.probe = probe or Probe()
        self.start = self.probe.cpu_ticks()

    def percent(self) -> float | None:
        """Steal so far; 0.0 before the counters have moved."""
        now = self.probe.cpu_ticks()
        if now is None or self.start is None:
            return None
        stolen, ticks = now[0] - self.start[0], now[1] - self.start[1]
        return round(100 * stolen / ticks, 2) if ticks > 0 else 0.0
