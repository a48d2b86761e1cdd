"""Faults of environments: waiting, computing again what is known, reading again what was read."""

from __future__ import annotations

import re
from pathlib import Path

from rlbench.profiling.advice.gains import bound, duration, gain, percent
from rlbench.profiling.advice.scopes import Scope, Scopes, called, only
from rlbench.profiling.evidence import Evidence
from rlbench.profiling.findings import Advice
from rlbench.profiling.records import PhaseTime

WAITS_ABOVE = 0.5  # of the env's time without the processor
LEAST_WAIT_S = 1e-3  # of a call: less is a thread that lost its core for a moment
WORTH = 1.03  # times as fast: what a rule must promise
READERS = (
    *(
        "read_csv",
        "read_parquet",
        "read_feather",
        "read_json",
        "read_excel",
        "read_hdf",
        "read_pickle",
        "read_sql",
        "read_table",
    ),
    *(
        "loadtxt",
        "genfromtxt",
        "fromfile",
        "open",
        "imread",
        "read_text",
        "read_bytes",
        "safe_load",
        "scan_csv",
        "DictReader",
    ),
)
READER_CALLS = (
    "np.load",
    "numpy.load",
    "torch.load",
    "json.load",
    "pickle.load",
    "joblib.load",
    "csv.reader",
    "sqlite3.connect",
)
WINDOWS = (
    *(
        "rolling",
        "ewm",
        "expanding",
        "pct_change",
        "diff",
        "shift",
        "rank",
        "quantile",
        "percentile",
        "convolve",
        "correlate",
    ),
    *(
        "polyfit",
        "cumsum",
        "cumprod",
        "gradient",
        "lfilter",
        "rfft",
        "fft",
        "sliding_window_view",
        "concat",
        "resample",
    ),
)
# Outside an env, where sums and differences are part of learning, only what is made for series says so.
SERIES = ("rolling", "ewm", "expanding", "pct_change", "resample", "lfilter", "sliding_window_view")
BETWEEN = ("store", "sample", "action", "transfer", "python", "other")
FEATURES = re.compile(r"feature|indicator|signal|technical|\b(sma|ema|rsi|macd|atr)\b", re.IGNORECASE)
WAITING = (
    "sleep",
    "wait",
    "recv",
    "recv_bytes",
    "get",
    "poll",
    "accept",
    "urlopen",
    "request",
    "run",
    "communicate",
    "join",
    "acquire",
)
WORKERS = re.compile(r"vec_env|vector|async|subproc|worker", re.IGNORECASE)


def env_phase(evidence: Evidence) -> PhaseTime | None:
    return next((phase for phase in evidence.phases if phase.name == "env" and not phase.part_of), None)


def env_waits(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """The env's time is far more than the processor's: it sleeps, or waits for a disk, a network, another process."""
    env = env_phase(evidence)
    if env is None or env.cpu_s is None or not env.seconds:
        return []
    waiting = max(0.0, 1 - env.cpu_s / env.seconds)
    share = env.share * waiting
    wait_s = waiting * env.seconds / max(env.calls, 1)
    if waiting < WAITS_ABOVE or wait_s < LEAST_WAIT_S or gain(share) < WORTH:
        return []
    lines = [line for line in evidence.lines if line.phase == "env" and line.own > 0.02]
    if any(WORKERS.search(line.place.file) for line in lines):
        return []  # worker processes: waiting for them is how they work
    for scope in scopes.where(lambda scope: scope.phase == "env" and bool(called(scope.calls, WAITING))):
        scopes.claim(scope)
    calls = max(env.calls, 1)
    cold = max(1.0, (evidence.twins.after_wait if evidence.twins else None) or 1.0)
    return [
        Advice(
            "env_waits",
            "fault",
            f"The environment waits: a call takes {duration(env.seconds / calls)}, {duration(env.cpu_s / calls)} of it work.",
            f"{percent(env.share)} of the time is the env's, {percent(waiting)} of that without the processor."
            + (
                f" After such a wait the rest of a step takes {cold:.2f} times as long here as without."
                if cold > WORTH
                else ""
            ),
            "Take the wait out; where something must be waited for, step many envs at once in worker processes "
            '(`gymnasium.make_vec(..., vectorization_mode="async")`), so that they wait together.',
            gain(share) * cold,
            bound(env.share) * cold,
            places=tuple(line.place for line in lines[:3]),
            notebook="05",
        )
    ]


def reads_a_file(calls: tuple[str, ...]) -> bool:
    return bool(called(calls, READERS)) or any(call in READER_CALLS for call in calls)


def file_each_episode(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """A file is read in the loop."""
    found = scopes.where(lambda scope: reads_a_file(scope.calls) and scope.phase != "other")
    if not found:
        return []
    scope = scopes.resetting(_outermost_reader(found[0], scopes))
    if gain(scope.share) < WORTH:
        return []
    scopes.claim(scope)
    scope = only(scope, lambda statement: reads_a_file(statement.calls))
    call = next(iter([*called(scope.calls, READERS), *(c for c in scope.calls if c in READER_CALLS)]), "the file")
    return [
        Advice(
            "file_each_episode",
            "fault",
            f"`{call}` runs again and again in the loop, with what follows from it {percent(scope.share)} of the time.",
            f"Seen in {scope.function}() and what it brings on, by samples of the stack.",
            "Read it once, before the loop, and hand the arrays to every env: `data = load(path)` then `Env(data)`.",
            gain(scope.share),
            bound(scope.share),
            places=scope.places,
            notebook="05",
        )
    ]


def _outermost_reader(scope: Scope, scopes: Scopes) -> Scope:
    """The function that reads, as it is; its callers hold the episode's other work."""
    return max((s for s in scopes.all if s.function == scope.function and s.places[0].file == scope.places[0].file),
               key=lambda s: s.share if reads_a_file(s.calls) else 0.0)  # fmt: skip


def computes_features(scope: Scope) -> bool:
    if scope.phase in BETWEEN:
        return bool(called(scope.calls, SERIES))
    if scope.phase != "env":
        return False
    named = FEATURES.search(scope.function) or FEATURES.search(Path(scope.places[0].file).stem)
    return bool(called(scope.calls, WINDOWS)) or (bool(named) and scope.function != "__init__")


def recomputed_features(evidence: Evidence, scopes: Scopes) -> list[Advice]:
    """Windows over the past are computed again at every step, in the env or beside it."""
    found = scopes.where(computes_features)
    if not found or gain(found[0].share) < WORTH:
        return []
    scope = scopes.with_callers(found[0])
    for each in found:
        scopes.claim(each)
    scope = only(scope, lambda statement: bool(called(statement.calls, WINDOWS)))
    return [
        Advice(
            "recomputed_features",
            "fault",
            f"Features are computed anew at every step: {scope.function}() takes {percent(scope.share)} of the time.",
            f"In it: {', '.join(called(scope.calls, WINDOWS)[:5]) or scope.function}. The past stays as it is between two steps.",
            "Compute them once for all bars, before training, and read a row: `self.features = compute(prices)`, then "
            "`self.features[t]`.",
            gain(scope.share),
            bound(scope.share),
            places=scope.places,
            notebook="05",
        )
    ]
