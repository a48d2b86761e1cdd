"""What a search found, as text and as the file that `train --choices` takes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rlbench.files import write_text
from rlbench.machine import describe
from rlbench.tuning.race import Standing
from rlbench.tuning.search import Tuned


def summary(tuned: Tuned) -> str:
    """The races, what was left out, and the winner."""
    lines = ["ratio to the first of each race     rounds  verdict             candidate"]
    for standing in tuned.standings:
        lines.append(_line(standing))
    lines += [f"left out: {text}" for text in dict.fromkeys(tuned.left_out)]
    lines += [f"rejected, since it learns something else: {label} ({_apart(d)})" for label, d in tuned.rejected]
    lines += ["", winner(tuned)]
    return "\n".join(lines)


def _line(standing: Standing) -> str:
    if standing.why_not:
        return f"{'-':<36}{standing.rounds:>6}  {'not measured':<20}{standing.candidate.label}: {standing.why_not}"
    ratio = f"{standing.ratio:.2f}x [{standing.low:.2f}, {standing.high:.2f}]"
    return f"{ratio:<36}{standing.rounds:>6}  {standing.verdict:<20}{standing.candidate.label}"


def winner(tuned: Tuned) -> str:
    """The result in a sentence or two."""
    final = tuned.final
    if not final.candidate.changed:
        return "Nothing was found that is faster than plain()."
    early = " The search was ended early." if tuned.interrupted else ""
    return (
        f"{final.candidate.label}: {final.ratio:.2f}x [{final.low:.2f}, {final.high:.2f}] plain() in env steps a second, "
        f"{final.rounds} rounds, A/A band [{final.aa_low:.2f}, {final.aa_high:.2f}], {tuned.threads} torch "
        f"{'thread' if tuned.threads == 1 else 'threads'}; set-up and first updates {final.first_s:.1f} s. After a few updates "
        f"its weights are {_apart(tuned.distance)} from plain()'s.{early}"
    )


def _apart(distance: float) -> str:
    """A distance as a share of what plain() moved."""
    return "nothing apart" if distance == 0 else f"{100 * distance:.2g} % of the way that plain() moved"


def document(tuned: Tuned) -> dict[str, Any]:
    """For JSON."""
    used = tuned.choices.in_use(tuned.config, tuned.device)
    final = tuned.final
    names = ("rate", "ratio", "low", "high", "aa_low", "aa_high", "rounds", "first_s", "compile_s", "verdict")
    return {
        "choices": used,
        "threads": tuned.threads,
        "final": {name: getattr(final, name) for name in names},
        "distance": tuned.distance,
        "rejected": [{"label": label, "distance": distance} for label, distance in tuned.rejected],
        "left_out": list(dict.fromkeys(tuned.left_out)),
        "seconds": tuned.seconds,
        "interrupted": tuned.interrupted,
        "rows": tuned.rows,
    }


def save_choices(tuned: Tuned, path: str | Path, source: Any = None) -> None:
    """The choices in use as YAML, the evidence as comments."""
    machine = describe(steal_interval_s=0)
    used = tuned.choices.in_use(tuned.config, tuned.device, source)
    comments = [
        f"Found by `rlbench tune {tuned.config.trainer}` on {machine.cpu}, {tuned.device}, {datetime.now(UTC):%Y-%m-%d}.",
        winner(tuned),
        f"Use with: rlbench train {tuned.config.trainer} --choices {Path(path).name} --threads {tuned.threads}",
        "It holds for this machine and these settings.",
    ]
    head = "".join(f"# {line}\n" for line in comments)
    write_text(path, head + "".join(f"{slot}: {variant}\n" for slot, variant in used.items()))
