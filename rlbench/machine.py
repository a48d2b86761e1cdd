"""What this machine is, what disturbs a measurement on it, and why CUDA can or cannot be used."""

from __future__ import annotations

import math
import platform
import re
import sys
from dataclasses import asdict, dataclass, field

import torch

from rlbench.probe import Probe, StealMeter

REMEDIES = {
    "cuda": "CUDA is ready: nothing to do.",
    "no_gpu": "No NVIDIA GPU is visible: everything runs on the CPU, and what needs a GPU says so.",
    "no_driver": "There is an NVIDIA GPU but CUDA cannot reach it: install or update NVIDIA's driver until "
    "`nvidia-smi` lists the GPU (a container must be given the GPU; an empty CUDA_VISIBLE_DEVICES hides it).",
    "cpu_only_torch": "There is an NVIDIA GPU but this torch was built without CUDA: install the CUDA build with the "
    "command that https://pytorch.org/get-started/locally/ shows for this system.",
}
__all__ = ["REMEDIES", "Machine", "Probe", "StealMeter", "describe", "resolve_device"]
HIGH_LOAD = 0.5  # runnable tasks a core, before we add our own
HIGH_STEAL = 1.0  # percent


@dataclass(frozen=True)
class Machine:
    """A machine as seen by one process. `load` is runnable tasks a core over the last minute, `steal` percent."""

    system: str
    cpu: str
    cores: int
    usable_cores: float
    memory_gb: float | None
    torch_threads: int
    python: str
    torch: str
    cuda: str
    gpus: tuple[str, ...]
    mps: bool
    on_battery: bool | None
    load: float | None
    steal: float | None
    remedy: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "remedy", REMEDIES[self.cuda])

    @property
    def has_cuda(self) -> bool:
        """CUDA can be used now."""
        return self.cuda == "cuda"

    @property
    def slug(self) -> str:
        """A name for folders and columns, like "amd-epyc-2c" or "amd-epyc-2c-h200"."""
        words = _plain_words(re.sub(r"\((R|TM)\)|\bCPU\b|\bProcessor\b", " ", self.cpu, flags=re.IGNORECASE))
        parts = [*words[:2], f"{max(1, math.floor(self.usable_cores))}c"]
        for gpu in self.gpus[:1]:
            parts.append((f"{len(self.gpus)}x-" if len(self.gpus) > 1 else "") + _gpu_slug(gpu))
        return "-".join(parts)

    def to_dict(self) -> dict[str, object]:
        """All fields, the slug and the warnings: plain values that JSON can hold."""
        return {**asdict(self), "gpus": list(self.gpus), "slug": self.slug, "warnings": self.warnings()}

    def warnings(self) -> list[str]:
        """What would disturb or limit a measurement now, a sentence each."""
        found = []
        if self.on_battery:
            found.append("Running on battery: the clock speed is held down; plug in before measuring.")
        if self.load is not None and self.load > HIGH_LOAD:
            found.append(
                f"Load over the last minute is {self.load:.2f} a core: something else is running, "
                "or your last run has just ended; measure when it is quiet."
            )
        if self.steal is not None and self.steal > HIGH_STEAL:
            found.append(f"{self.steal:.1f} % of the CPU time is stolen by other guests: expect wide intervals.")
        if self.usable_cores < self.cores:
            found.append(f"Only {self.usable_cores:g} of {self.cores} cores may be used (affinity or container limit).")
        if self.torch_threads > max(1, self.usable_cores):
            found.append(
                f"torch uses {self.torch_threads} threads on {self.usable_cores:g} usable cores: "
                f"call torch.set_num_threads({max(1, math.floor(self.usable_cores))})."
            )
        return found

    def card(self) -> str:
        """A short text for the head of a report."""
        memory = f", {self.memory_gb:g} GB memory" if self.memory_gb else ""
        lines = [
            f"machine  {self.slug} ({self.system})",
            f"cpu      {self.cpu}, {self.usable_cores:g} of {self.cores} cores usable{memory}",
            f"gpu      {', '.join(self.gpus) or self.remedy}",
            f"torch    {self.torch}, {self.torch_threads} thread(s), Python {self.python}",
        ]
        if self.mps:
            lines.append("mps      Apple's GPU (MPS) is there but not used: rlbench runs on CPU and CUDA.")
        return "\n".join(lines + [f"warning  {text}" for text in self.warnings()])


def _plain_words(text: str) -> list[str]:
    return [word for word in re.split(r"[^a-z0-9]+", text.lower()) if word]


def _gpu_slug(name: str) -> str:
    """The model: "NVIDIA GeForce RTX 4090" gives "rtx-4090", "NVIDIA A100-SXM4-80GB" gives "a100"."""
    words = [word for word in _plain_words(name) if word not in ("nvidia", "geforce", "tesla", "quadro")]
    for i, word in enumerate(words):
        if any(letter.isdigit() for letter in word):
            return "-".join(words[: i + 1])
    return "-".join(words[:2]) or "gpu"


def describe(probe: Probe | None = None, *, steal_interval_s: float = 0.2) -> Machine:
    """Look at the machine now; takes `steal_interval_s` seconds, during which stolen time is counted."""
    probe = probe or Probe()
    meter = StealMeter(probe)
    if meter.start is not None and steal_interval_s > 0:
        probe.sleep(steal_interval_s)
    cores = probe.cpu_count() or 1
    usable = min(x for x in (cores, probe.affinity(), probe.quota_cores()) if x is not None)
    load = probe.load()
    status = probe.cuda_status()
    return Machine(
        system=f"{platform.system()} {platform.release()}",
        cpu=probe.cpu_name(),
        cores=cores,
        usable_cores=usable,
        memory_gb=probe.memory_gb(),
        torch_threads=probe.torch_threads(),
        python=platform.python_version(),
        torch=torch.__version__,
        cuda=status,
        gpus=probe.gpus() if status == "cuda" else (),
        mps=probe.mps(),
        on_battery=probe.on_battery(),
        load=None if load is None else round(load / max(1, usable), 2),
        steal=meter.percent(),
    )


_said: set[str] = set()  # lines already printed by this process


def resolve_device(name: str | torch.device = "auto", probe: Probe | None = None) -> torch.device:
    """ "auto" (CUDA if it is there), "cpu", "cuda" or "cuda:N" as a torch device.

    CUDA asked for and absent: the CPU, with one line on standard error once a process. Raises ValueError for any other
    name and for a GPU number that does not exist. "cuda" is GPU 0.
    """
    probe = probe or Probe()
    text = str(name)
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", text):
        hint = " (Apple's MPS is not used by rlbench)" if text.startswith("mps") else ""
        raise ValueError(f"device {text!r} is not known; accepted: 'auto', 'cpu', 'cuda', 'cuda:N'{hint}")
    if text == "cpu":
        return torch.device("cpu")
    status = probe.cuda_status()
    if status != "cuda":
        line = f"rlbench: device {text!r} was asked for, running on the CPU instead. {REMEDIES[status]}"
        if text != "auto" and line not in _said:
            _said.add(line)
            print(line, file=sys.stderr)
        return torch.device("cpu")
    number = int(text.partition(":")[2] or 0)
    count = len(probe.gpus())
    if number >= count:
        raise ValueError(f"device {text!r}: this machine has {count} GPU(s), numbered from 0")
    return torch.device("cuda", number)
