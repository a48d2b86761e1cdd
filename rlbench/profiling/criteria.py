"""The success criteria of the source text, each with where it misleads. Nothing passes on missing data."""

from __future__ import annotations

from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Criterion

PASSED, FAILED, NOT_MEASURED = "passed", "failed", "not measured"
COMPUTE = ("action", "forward", "backward", "optimizer", "update", "iterations", "old_log_probs", "advantages")
NOTES = {
    "GPU utilisation": "NVML's utilisation counts any kernel: one block on one multiprocessor reads as 100 %. Look at the share "
    "of the speed of light.",
    "GPU memory": "A full memory is no goal: it is what the networks, the replay and the minibatch need, and no faster for "
    "being more.",
    "transfers": "Of the host's time. A transfer that overlaps with computing costs nothing; a small one waits for the queue "
    "before it.",
    "compute": "A share: it rises too when computing gets slower, and falls when it gets faster.",
    "speed-up": "A ratio has a baseline; against a slow one any number is easy. Only pairs on this machine tell, never a "
    "profiled run against another.",
}


def criteria(evidence: Evidence, speed_up: float | None = None) -> tuple[Criterion, ...]:
    """The table. `speed_up`: of paired runs without a profile, where there are some."""
    use, on_device = evidence.device_use, evidence.device.startswith("cuda")
    why = use.why_not or "no samples"
    seen = bool(evidence.seconds and any(phase.calls for phase in evidence.phases))
    transfers = evidence.share("transfer", "sync") if on_device and seen else None
    return (
        _above("GPU utilisation", 0.75, use.utilisation, why),
        _above("GPU memory", 0.70, use.memory, why),
        _share("transfers", "< 15 %", transfers, lambda share: share < 0.15, "no device to transfer to"),
        _share(
            "compute",
            "> 60 %",
            evidence.share(*COMPUTE) if seen else None,
            lambda share: share > 0.60,
            "nothing was on the clock",
        ),
        _speed_up(speed_up),
    )


def _above(name: str, least: float, value: float | None, why: str) -> Criterion:
    return _share(name, f"> {least:.0%}".replace("%", " %"), value, lambda share: share > least, why)


def _share(name: str, asked: str, value: float | None, passes, why: str) -> Criterion:
    if value is None:
        return Criterion(name, asked, why, NOT_MEASURED, NOTES[name])
    return Criterion(name, asked, f"{100 * value:.0f} %", PASSED if passes(value) else FAILED, NOTES[name])


def _speed_up(ratio: float | None) -> Criterion:
    name, asked = "speed-up", "2x to 5x"
    if ratio is None:
        return Criterion(name, asked, "no pairs were run: profile --apply, tune", NOT_MEASURED, NOTES[name])
    return Criterion(name, asked, f"{ratio:.2f}x", PASSED if ratio >= 2 else FAILED, NOTES[name])
