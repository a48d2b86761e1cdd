"""How much faster a run gets when a part of it does (Amdahl's law)."""

from __future__ import annotations

LARGEST = 1e4  # a share of 1 has no bound; numbers beyond this say nothing


def gain(share: float, left: float = 0.0) -> float:
    """Times as fast when a part with this share of the time takes `left` of what it took."""
    return min(LARGEST, 1.0 / max(1.0 - share * (1.0 - left), 1.0 / LARGEST))


def bound(share: float) -> float:
    """Times as fast when the part costs nothing at all."""
    return gain(share)


def percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.1 else f"{100 * share:.1f} %"


def duration(seconds: float) -> str:
    """Seconds in a unit that suits: "31 ms", "2.4 µs"."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
