"""The README's tables and picture, made from recorded rows: no number in them is typed by hand.

`python -m rlbench.readme` reads reports/measurements/, rewrites what stands between the two marks in README.md, and draws
reports/sample/ladder.png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from rlbench import results
from rlbench.files import write_bytes, write_text
from rlbench.stats import CITABLE_SEEDS
from rlbench.study import summarise

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- table: begin -->", "<!-- table: end -->"
PEERS_HEAD = "| beside Stable-Baselines3 | its env steps a second | naive() | plain() | fast() |"
SETS_HEAD = "| games and sets of actions | this | against | times as fast |"
# Recorded benchmarks of PPO and its parts, by kind: what a row is about, and what it is held against.
SETS_KINDS = {
    "benchmark-evaluate-sets": ("{baseline}", "{side}"),
    "benchmark-othello-steps": ("{side}", "{baseline}"),
    "benchmark-sb3-ppo": ("{side}()", "MaskablePPO of sb3-contrib"),
    "benchmark-ppo-run": ("{baseline}()", "{side}"),
}
PICTURE = ROOT / "reports" / "sample" / "ladder.png"
HEAD = "| env | choices | env steps a second | time, plain over this | return of the final policy | learns the same? |"


def newest_studies(folder: Path = ROOT / "reports" / "measurements") -> pd.DataFrame:
    """Rows of the newest recorded study of each env and machine.

    Raises:
        FileNotFoundError: where nothing was recorded.
    """
    files = sorted(folder.glob("*/*-training*.json"))
    if not files:
        raise FileNotFoundError(f"{folder} holds no recorded study: run `rlbench study --record` first.")
    rows = results.load(*files)
    return rows[rows["study"] == rows.groupby(["env", "machine"])["study"].transform("max")]


def table(folder: Path = ROOT / "reports" / "measurements") -> str:
    """Markdown of the newest studies, and where their rows are; then the newest comparison with the peer, if there is one."""
    newest = newest_studies(folder)
    lines = [HEAD, "|" + "---|" * HEAD.count(" | ") + "---|"]
    lines += [_line(row) for _, row in summarise(newest).iterrows()]
    sources = [_source(study) for _, study in newest.groupby("study", sort=True)]
    return "\n".join([*lines, "", *sources, *peers(folder), *sets(folder)])


def peers(folder: Path = ROOT / "reports" / "measurements") -> list[str]:
    """Lines of a table of recorded benchmarks: time of the peer over ours, for each workload as it was measured last."""
    files = sorted(folder.glob("*/*-benchmark-sb3-dqn*.json"), key=lambda file: file.name)
    if not files:
        return []
    rows = results.load(*files)
    stamp = rows["file"].map(lambda file: Path(file).name)  # names begin with the time
    rows = rows[stamp == stamp.groupby(rows["workload"]).transform("max")].sort_values("workload", kind="stable")
    lines = ["", PEERS_HEAD, "|---|---|---|---|---|"]
    for name, group in rows.groupby("workload", sort=False):
        sides = group.set_index("side")
        ratios = [_ratio(sides.loc[side]) if side in sides.index else "-" for side in ("naive", "plain", "fast")]
        lines.append(f"| {' | '.join([str(name), format(sides.loc['sb3'].median_sps, ',.0f'), *ratios])} |")
    first = rows.iloc[0]
    return [
        *lines,
        "",
        f"Time of {first['peer']} over ours, at equal network, batch, envs and updates: {first['rounds']} interleaved rounds on "
        f"{first['machine']}, {first['threads']} torch thread(s); command: `make benchmark`.",
    ]


def sets(folder: Path = ROOT / "reports" / "measurements") -> list[str]:
    """Lines of a table of recorded benchmarks of PPO and its parts, each as it was measured last.

    Shown are those in which a ratio was to be reached; the A/A control is left out.
    """
    lines = ["", SETS_HEAD, "|---|---|---|---|"]
    for kind, (this, against) in SETS_KINDS.items():
        files = sorted(folder.glob(f"*/*-{kind}*.json"), key=lambda file: file.name)
        if not files:
            continue
        rows = results.load(*files)
        stamp = rows["file"].map(lambda file: Path(file).name)  # names begin with the time
        rows = rows[stamp == stamp.groupby(rows["workload"]).transform("max")]
        asked = rows.loc[pd.to_numeric(rows["target"], errors="coerce").notna(), "workload"]
        rows = rows[rows["workload"].isin(asked) & rows["ratio"].notna() & ~rows["side"].str.endswith("again")]
        for _, row in rows.iterrows():
            sides = [text.format(side=row.side, baseline=row.baseline) for text in (this, against)]
            lines.append(f"| {' | '.join([row.workload, *sides, _ratio(row)])} |")
    if len(lines) == 3:
        return []
    return [
        *lines,
        "",
        "Times of the other over this one, in interleaved rounds, one core each; commands: `benchmarks/README.md`.",
    ]


def _ratio(row: pd.Series) -> str:
    same = ", no difference seen" if row.verdict == "no difference seen" else ""
    return f"{row.ratio:.2f} [{row.ratio_low:.2f}, {row.ratio_high:.2f}]{same}"


def draw(path: Path = PICTURE, folder: Path = ROOT / "reports" / "measurements") -> Path:
    """The ladder of the newest studies as a picture."""
    import io

    from rlbench.plots import ladder

    sums = summarise(newest_studies(folder)).rename(columns={"sps_ratio": "ratio", "speed": "verdict"})
    sums = sums.rename(columns={"sps_ratio_low": "ratio_low", "sps_ratio_high": "ratio_high"})
    sums = sums[(sums["verdict"] != "baseline") & sums["not_measured"].isna()]
    sums["label"] = sums["env"] + ": " + sums["label"]
    out = io.BytesIO()
    ladder(sums, "Time of a whole DQN training: plain over this").savefig(out, format="png", dpi=110)
    return write_bytes(path, out.getvalue())


def _line(row: pd.Series) -> str:
    if isinstance(row.not_measured, str):
        return f"| {row.env} | {row.label} | - | not measured: {row.not_measured} | - | - |"
    ratio = f"{row.sps_ratio:.2f} [{row.sps_ratio_low:.2f}, {row.sps_ratio_high:.2f}]"
    if row.speed == "baseline":
        ratio = "1 (baseline)"
    elif row.speed == "no difference seen":
        ratio += ", no difference seen"
    returns = "-"
    if row.return_iqm == row.return_iqm:  # not NaN
        returns = f"{row.return_iqm:.4g} [{row.return_low:.4g}, {row.return_high:.4g}]"
    return f"| {row.env} | {row.label} | {row.sps:,.0f} | {ratio} | {returns} | {row.learns} |"


def _source(rows: pd.DataFrame) -> str:
    """Where, how and with what the rows of one study were measured."""
    first = rows.iloc[0]
    steps = ", ".join(f"{n:,.0f}" for n in sorted(rows["env_steps"].dropna().unique()))
    seeds = rows["seed"].nunique()
    quick = f" {seeds} seeds are too few to cite." if seeds < CITABLE_SEEDS else ""
    return (
        f"{first['env']}: measured on {first['machine']} ({first['cpu']}), {first['threads']} torch thread(s), "
        f"torch {first['versions.torch']}, {seeds} seeds of {steps} env steps, interleaved in pairs; medians with 95 % "
        f"bootstrap intervals, returns as interquartile means.{quick} "
        f"Rows: [reports/measurements](reports/measurements); command: `{first['command']}`."
    )


def rewrite(readme: Path = ROOT / "README.md", text: str | None = None) -> bool:
    """Put the table between the marks; returns whether that changed the file."""
    old = readme.read_text(encoding="utf-8")
    if old.count(BEGIN) != 1 or old.count(END) != 1 or old.index(BEGIN) > old.index(END):
        raise ValueError(f"{readme.name} must hold the marks {BEGIN} and {END}, once each and in this order.")
    before, _, rest = old.partition(BEGIN)
    after = rest.partition(END)[2]
    new = f"{before}{BEGIN}\n{table() if text is None else text}\n{END}{after}"
    if new != old:
        write_text(readme, new)
    return new != old


if __name__ == "__main__":
    draw()
    print("README.md rewritten" if rewrite() else "README.md was up to date", file=sys.stderr)
