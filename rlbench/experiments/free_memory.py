"""How much memory a measurement may take: never more than a share of what is free now."""

from __future__ import annotations

import re
from collections.abc import Mapping

import torch

from rlbench.probe import Probe

SHARE = 1 / 3
ASSUMED = 1_000_000_000  # bytes taken for free where the system does not say


def free_bytes(device: str | torch.device = "cpu", probe: Probe | None = None) -> int | None:
    """Bytes that are free now on a device; on the host within what the container grants. None where the system does not say."""
    if torch.device(device).type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    probe = probe or Probe()
    match = re.search(r"^MemAvailable:\s*(\d+) kB", probe.read("proc/meminfo") or "", re.MULTILINE)
    known = [int(match[1]) * 1024] if match else []
    granted, used = (probe.read(f"sys/fs/cgroup/memory.{name}") or "" for name in ("max", "current"))
    if granted.isdigit() and used.isdigit():
        kept = re.search(r"^inactive_file (\d+)$", probe.read("sys/fs/cgroup/memory.stat") or "", re.MULTILINE)
        known.append(max(0, int(granted) - int(used) + (int(kept[1]) if kept else 0)))  # files can be read again
    return min(known, default=None)


def why_not_fit(needs: Mapping[str, int], probe: Probe | None = None) -> str | None:
    """Why bytes by device ("cpu", "cuda:0") would take more than `SHARE` of what is free there, or None."""
    for device, need in needs.items():
        free = free_bytes(device, probe)
        said = "" if free is not None else ", taken for free since this system does not say"
        if need > SHARE * (ASSUMED if free is None else free):
            share = (
                f"more than a third of the {(ASSUMED if free is None else free) / 1e9:.1f} GB free on {device}{said}"
            )
            return f"it takes {need / 1e9:.1f} GB, {share}"
    return None
