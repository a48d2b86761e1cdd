"""What a search found, as text and as the file that `train --choices` takes."""

from __future__ import annotations

import dataclasses
import math
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch

from rlbench.files import write_text
from rlbench.machine import describe
from rlbench.stats import CITABLE_SEEDS
from rlbench.tuning.race import Standing
from rlbench.tuning.tuned import FIELDS, Tuned

COMPILED_S = 0.1  # less is not told of


def summary(tuned: Tuned) -> str:
    """The races, what was left out, and the winner."""
    lines = ["ratio to the first of each race     rounds  verdict             candidate"]
    lines += [_line(standing) for standing in tuned.standings]
    lines += [f"left out: {text}" for text in tuned.left_out]
    lines += [
        f"rejected, since it learns something else: {label}; its weights {_apart(d)}" for label, d in tuned.rejected
    ]
    return "\n".join([*lines, "", *winner(tuned)])


def _line(standing: Standing) -> str:
    if standing.why_not:
        return f"{'-':<36}{standing.rounds:>6}  {'not measured':<20}{standing.candidate.label}: {standing.why_not}"
    ratio = f"{standing.ratio:.2f}x [{standing.low:.2f}, {standing.high:.2f}]"
    took = f", compiled in {standing.compile_s:.1f} s" if standing.compile_s > COMPILED_S else ""
    verdict = standing.verdict + (", out" if standing.dropped else "")
    return f"{ratio:<36}{standing.rounds:>6}  {verdict:<20}{standing.candidate.label}{took}"


def winner(tuned: Tuned) -> list[str]:
    """The result in a few sentences, a line each."""
    final, early = tuned.final, ["The search was ended early."] if tuned.interrupted else []
    if not final.candidate.changed:
        return ["Nothing was found that is faster than plain().", *early]
    threads = f"{tuned.threads} torch {'thread' if tuned.threads == 1 else 'threads'}"
    lines = [
        f"{final.candidate.label}: {final.ratio:.2f}x [{final.low:.2f}, {final.high:.2f}] plain() in env steps a second "
        f"({final.verdict}; {final.rounds} rounds, A/A band [{final.aa_low:.2f}, {final.aa_high:.2f}], {threads}).",
        f"Set-up and first updates took {final.first_s:.1f} s, {final.compile_s:.1f} s of compiling in all.",
        f"After a few updates its weights {_apart(tuned.distance)}.",
    ]
    if tuned.returns is not None:
        plain, own = tuned.returns
        lines.append(
            f"Return after {tuned.return_steps:,} env steps: {own:.4g}, plain() {plain:.4g}; one seed, which says little: "
            f"`rlbench study` with {CITABLE_SEEDS} seeds compares what is learnt."
        )
    return [*lines, *early]


def _apart(distance: float) -> str:
    """How the weights compare with plain()'s after a few updates."""
    if not math.isfinite(distance):
        return "cannot be compared with plain()'s: it failed, or there are none"
    if distance == 0:
        return "are plain()'s to the last bit"
    return f"differ from plain()'s by {100 * distance:.2g} % of how far plain() moved them"


def document(tuned: Tuned) -> dict[str, Any]:
    """For JSON."""
    return {
        "choices": dict(tuned.used),
        "threads": tuned.threads,
        "settings": dict(tuned.settings),
        "final": {name: getattr(tuned.final, name) for name in (*FIELDS, "verdict")},
        "distance": tuned.distance,
        "returns": None if tuned.returns is None else dict(zip(("plain", "tuned"), tuned.returns, strict=True)),
        "return_steps": tuned.return_steps,
        "rejected": [{"label": label, "distance": distance} for label, distance in tuned.rejected],
        "left_out": tuned.left_out,
        "seed": tuned.config.seed,
        "config": dataclasses.asdict(tuned.config),
        "budget_s": tuned.budget_s,
        "seconds": tuned.seconds,
        "interrupted": tuned.interrupted,
        "rows": tuned.rows,
    }


def usage(tuned: Tuned, file: str) -> str:
    """The command that trains by what was found."""
    settings = "".join(f" --{name.replace('_', '-')} {value}" for name, value in tuned.settings.items())
    return f"rlbench train {tuned.config.trainer} --choices {file} --threads {tuned.threads}{settings}"


def check_free(path: str | Path, force: bool) -> None:
    """Raises FileExistsError where a file would be replaced unasked."""
    if Path(path).exists() and not force:
        raise FileExistsError(f"{path} is there already; give another --choices-file, or --force to replace it.")


def save_choices(tuned: Tuned, path: str | Path, force: bool = False) -> None:
    """The choices in use as YAML, the evidence as comments. Raises FileExistsError, unless `force`."""
    check_free(path, force)
    machine = describe(steal_interval_s=0)
    comments = [
        f"Found by `rlbench tune {tuned.config.trainer}` on {machine.cpu}, {tuned.device}, torch {torch.__version__}, "
        f"{datetime.now(UTC):%Y-%m-%d}, seed {tuned.config.seed}, in {tuned.seconds:.0f} s.",
        *winner(tuned),
        f"torch threads: {tuned.threads}",
        *(f"{name}: {value}" for name, value in tuned.settings.items()),
        f"Use with: {usage(tuned, Path(path).name)}",
        "It holds for this machine and these settings.",
    ]
    head = "".join(f"# {line}\n" for line in comments)
    write_text(path, head + "".join(f"{slot}: {variant}\n" for slot, variant in tuned.used.items()))
