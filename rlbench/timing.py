"""Paired timing: which of several callables is faster, and is the difference more than noise?

Machines drift (clock speed, neighbours, caches), so one side is never timed after the other. Every round times the
baseline, every variant and the baseline a second time ("baseline again", the A/A control), in a random order drawn
from the seed. A ratio is the median over rounds of the log-ratio within a round, with a percentile-bootstrap interval.

Two things must hold before a ratio reads as a difference: its 95 % interval excludes 1, and it lies outside the A/A
band, i.e. it is larger than what the same code timed twice shows in the same rounds. Knows nothing of RL.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import torch

from rlbench.stats import bootstrap_interval

BASELINE = "baseline"
BASELINE_AGAIN = "baseline again"
MIN_ROUNDS = 5  # with fewer, all log-ratios agree in sign by chance more often than 1 in 16
VERDICTS = ("faster", "slower", "no difference seen", "too few rounds")


class VariantError(RuntimeError):
    """A callable raised while it was timed; `name` says which, the cause is chained."""

    def __init__(self, name: str, error: BaseException) -> None:
        super().__init__(f"{name!r} failed while it was timed: {type(error).__name__}: {error}")
        self.name = name


@dataclass(frozen=True)
class Ratio:
    """Baseline time / variant time, so above 1 is faster, with its 95 % interval, the A/A band and the verdict.

    The A/A band is symmetric around 1 on the log scale and as wide as the farther end of the A/A pair's interval.
    """

    ratio: float
    low: float
    high: float
    aa_low: float
    aa_high: float
    verdict: str

    def fields(self) -> dict[str, float | str]:
        """As rows name them: ratio, ratio_low, ratio_high, aa_low, aa_high, verdict."""
        interval = {"ratio": self.ratio, "ratio_low": self.low, "ratio_high": self.high}
        return {**interval, "aa_low": self.aa_low, "aa_high": self.aa_high, "verdict": self.verdict}


@dataclass(frozen=True)
class Paired:
    """Every round's time: `seconds[r, i]` is the time of one call of `names[i]` in round r. # (rounds, names)

    `calls[i]` calls made up one timing; `first_call_s[name]` is the first call of all, compilation included;
    `stopped` says that `should_stop` ended the measurement early (only complete rounds are kept).
    """

    names: tuple[str, ...]
    seconds: np.ndarray  # (rounds, names)
    calls: tuple[int, ...]
    first_call_s: dict[str, float]
    stopped: bool = False

    @property
    def rounds(self) -> int:
        return self.seconds.shape[0]

    def times(self, name: str) -> np.ndarray:
        """Seconds a call of `name`, one a round. # (rounds,)"""
        if name not in self.names:
            raise KeyError(f"{name!r} was not timed; timed: {', '.join(self.names)}")
        return self.seconds[:, self.names.index(name)]

    def median_s(self, name: str) -> float:
        """Median seconds a call, NaN without a complete round."""
        times = self.times(name)
        return float(np.median(times)) if len(times) else math.nan

    def ratio(self, name: str) -> Ratio:
        """The ratio of `name` to the baseline; `ratio("baseline again")` is the A/A pair itself."""
        base = self.times(BASELINE)
        return compare(base, self.times(name), self.times(BASELINE_AGAIN))

    def rows(self) -> list[dict[str, object]]:
        """One dict for each timing: round, name, seconds."""
        return [
            {"round": r, "name": name, "seconds": float(self.seconds[r, i])}
            for r in range(self.rounds)
            for i, name in enumerate(self.names)
        ]


def compare(base: np.ndarray, variant: np.ndarray, again: np.ndarray) -> Ratio:
    """The verdict on three columns of times of the same rounds. # (rounds,) each"""
    if not len(base) == len(variant) == len(again):
        raise ValueError(f"times of different numbers of rounds: {len(base)}, {len(variant)}, {len(again)}")
    if len(base) == 0:
        return Ratio(*[math.nan] * 5, verdict="too few rounds")
    logs, aa_logs = np.log(base / variant), np.log(base / again)
    centre = float(np.median(logs))
    low, high = bootstrap_interval(logs, np.median)
    aa_low, aa_high = bootstrap_interval(aa_logs, np.median)
    band = max(abs(aa_low), abs(aa_high))
    if len(base) < MIN_ROUNDS:
        verdict = "too few rounds"
    elif low <= 0 <= high or abs(centre) <= band:
        verdict = "no difference seen"
    else:
        verdict = "faster" if centre > 0 else "slower"
    return Ratio(math.exp(centre), math.exp(low), math.exp(high), math.exp(-band), math.exp(band), verdict)


def synchronize(device: str | torch.device) -> None:
    """Wait until the device has done all it was given: nothing to do on the CPU, cuda's synchronize on CUDA."""
    device = torch.device(device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type != "cpu":
        raise ValueError(f"device {str(device)!r} cannot be timed; accepted: 'cpu', 'cuda', 'cuda:N'")


def time_paired(
    baseline: Callable[[], object],
    variants: Mapping[str, Callable[[], object]],
    *,
    rounds: int = 20,
    min_round_s: float = 0.02,
    device: str | torch.device = "cpu",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> Paired:
    """Time `baseline` and `variants` in interleaved rounds.

    Each timing makes as many calls as last `min_round_s` seconds (found for each callable). `progress(done, rounds)`
    is called after each round, `should_stop()` before each timing. `clock` returns nanoseconds. Raises ValueError for
    a reserved name or no rounds, VariantError when a callable raises.
    """
    for name in (BASELINE, BASELINE_AGAIN):
        if name in variants:
            raise ValueError(f"variant name {name!r} is reserved for the control; choose another name")
    if rounds < 1 or min_round_s <= 0:
        raise ValueError(f"rounds={rounds}, min_round_s={min_round_s}: rounds must be at least 1, seconds above 0")
    functions = {BASELINE: baseline, **variants, BASELINE_AGAIN: baseline}
    timer = _Timer(torch.device(device), clock)
    should_stop = should_stop or (lambda: False)
    first, calls = timer.prepare({BASELINE: baseline, **variants}, min_round_s, should_stop)
    names = tuple(functions)
    kept: list[list[float]] = []
    order = np.random.default_rng(seed)
    for done in range(-1, rounds):  # round -1 is the warm-up: timed like the others, not kept
        times = timer.one_round(functions, calls, order.permutation(len(names)), should_stop) if calls else None
        if times is None:
            break
        if done >= 0:
            kept.append(times)
            if progress:
                progress(done + 1, rounds)
    seconds = np.array(kept, dtype=np.float64).reshape(len(kept), len(names))
    return Paired(names, seconds, tuple(calls.get(n, 0) for n in names), first, stopped=len(kept) < rounds)


class _Timer:
    """One stopwatch: the device it waits for and the clock it reads."""

    def __init__(self, device: torch.device, clock: Callable[[], int]) -> None:
        self.device, self.clock = device, clock

    def prepare(
        self, functions: Mapping[str, Callable[[], object]], min_s: float, should_stop: Callable[[], bool]
    ) -> tuple[dict[str, float], dict[str, int]]:
        """First-call seconds and calls a timing of each; no calls at all if it was stopped."""
        first: dict[str, float] = {}
        calls: dict[str, int] = {}
        for name, function in functions.items():
            if should_stop():
                return first, {}
            first[name] = self.seconds(name, function, 1)
            calls[name] = self.calibrate(name, function, min_s)
        calls[BASELINE_AGAIN] = calls[BASELINE]
        return first, calls

    def calibrate(self, name: str, function: Callable[[], object], min_s: float) -> int:
        """The number of calls that last `min_s` seconds; doubles as the warm-up of the callable."""
        calls = 1
        while True:
            elapsed = self.seconds(name, function, calls)
            if elapsed >= min_s:
                return calls
            # At most tenfold a time: the first short timings are the least trustworthy. 1.1 to pass min_s for sure.
            growth = 10.0 if elapsed <= 0 else min(10.0, 1.1 * min_s / elapsed)
            calls = max(calls + 1, math.ceil(calls * growth))

    def one_round(
        self,
        functions: Mapping[str, Callable[[], object]],
        calls: Mapping[str, int],
        order: np.ndarray,
        should_stop: Callable[[], bool],
    ) -> list[float] | None:
        """Seconds a call of each, in the order of `functions`; None if it was stopped in mid-round."""
        names = list(functions)
        times = [0.0] * len(names)
        for i in order:
            if should_stop():
                return None
            times[i] = self.seconds(names[i], functions[names[i]], calls[names[i]]) / calls[names[i]]
        return times

    def seconds(self, name: str, function: Callable[[], object], calls: int) -> float:
        """Seconds of `calls` calls, the device idle at both ends, the garbage collector off."""
        collecting = gc.isenabled()
        gc.disable()
        try:
            synchronize(self.device)
            start = self.clock()
            for _ in repeat(None, calls):
                function()
            synchronize(self.device)
            return (self.clock() - start) / 1e9
        except Exception as error:
            raise VariantError(name, error) from error
        finally:
            if collecting:
                gc.enable()
