"""`rlbench train dqn|ppo`: train on any env or game, and keep the run where asked to."""

from __future__ import annotations

import argparse
from contextlib import closing
from pathlib import Path
from typing import Any

from rlbench.cli.arguments import (
    add_choices,
    add_config,
    add_device,
    add_env,
    add_output,
    choices_of,
    device_of,
    given,
    output_of,
)
from rlbench.cli.output import DONE, refusing
from rlbench.config import DQNConfig, PPOConfig

DOCUMENT = (
    "With --json: env, preset, env_steps, updates, target_syncs, train_s and total_s (seconds of training; with set-up and "
    "evaluations), compile_s (of them for compiling), recompiles (beyond the first of each function; there should be none), "
    "skipped_updates (for infinite gradients under loss scaling), sps (env steps a second after warm-up), mean_return (of "
    "the final policy over eval_episodes episodes), interrupted, seed, config, choices (the slots in use), network (kind, "
    "hidden widths, parameters, forward_flops of a row, update_flops of a minibatch; of a game's policy action_flops of each "
    "legal action), machine, weights_sha256; on a market test (the test part, beside buy and hold); on a game strength (games, "
    "wins, draws and losses against fixed opponents)."
)
STRENGTH = {"optimum": "share of the optimum"}
ABOUT = {
    "dqn": "DQN, on any env with Box observations and Discrete actions",
    "ppo": "PPO, on a game with sets of legal actions, or on any env with Box observations and Discrete actions",
}


def add(commands: Any) -> None:
    parser = commands.add_parser("train", help="train an agent")
    trainers = parser.add_subparsers(metavar="TRAINER", required=True, parser_class=type(parser))
    for name, cls in (("dqn", DQNConfig), ("ppo", PPOConfig)):
        one = trainers.add_parser(name, help=ABOUT[name], epilog=DOCUMENT)
        add_env(one)
        add_device(one, "cpu")
        one.add_argument("--out", type=Path, metavar="DIR", help="keep the run: settings, choices, history, weights")
        one.add_argument("--force", action="store_true", help="let --out write into a folder that is not empty")
        one.add_argument("--tensorboard", metavar="DIR", help="write TensorBoard scalars")
        add_output(one)
        add_choices(one)
        add_config(one, cls)
        one.set_defaults(run=run, parser=one, config_class=cls)


def run(args: argparse.Namespace) -> int:
    from rlbench.cli.keep import check_folder, keep
    from rlbench.trainers.make import make_trainer
    from rlbench.workloads import workload

    output, cls = output_of(args), args.config_class
    with refusing():
        changes = given(args, cls)
        cls.preset(args.preset or "default", **changes)  # before prices are read, which may take a while
        device = device_of(args)
        choices = choices_of(args, device)
        work = workload(args.env, prices=args.prices, ticker=args.ticker)
        preset = args.preset or work.preset_for(cls.trainer)
        config = work.config(preset, cls.trainer, **changes)
        check_tensorboard(args.tensorboard)
        check_folder(args.out, args.force)
    trainer = make_trainer(config, choices, work.env, str(device), work.eval_env)
    output.say(effective(cls, preset, changes))
    if work.splits is not None:
        output.say(work_text(work))
    with closing(trainer):
        history = trainer.train(output.progress, tensorboard=args.tensorboard)
    summary = {**history.summary(), "env": work.name, "preset": preset}
    if work.test_env is not None:
        summary["test"] = None if history.interrupted else tested(work, trainer)
    if args.out is not None:
        keep(args.out, history, summary, trainer)
        output.say(f"kept in {args.out}")
    output.result(text(summary), summary)
    return DONE


def tested(work: Any, trainer: Any) -> dict[str, Any] | None:
    """The greedy policy on the test part; None where that is interrupted, so that the training is not lost."""
    try:
        return work.test(trainer.greedy, trainer.config.eval_episodes, trainer.config.seed)
    except KeyboardInterrupt:
        return None


def check_tensorboard(folder: str | None) -> None:
    import importlib.util

    if folder is not None and importlib.util.find_spec("tensorboard") is None:
        raise ValueError("--tensorboard needs TensorBoard, which is not installed: pip install tensorboard")


def effective(cls: type, preset: str, changes: dict[str, Any]) -> str:
    """Which settings differ from the defaults, and who set them."""

    def listed(values: dict[str, Any]) -> str:
        return ", ".join(f"{name}={value}" for name, value in values.items()) or "nothing"

    from_preset = {name: value for name, value in cls.PRESETS[preset].items() if name not in changes}
    return f"settings: preset {preset} sets {listed(from_preset)}; the command line sets {listed(changes)}"


def work_text(work: Any) -> str:
    parts = zip(("train", "validation", "test"), work.splits, strict=True)
    return f"{work.splits.train.name}: " + ", ".join(f"{name} {len(part):,} bars" for name, part in parts)


def text(summary: dict[str, Any]) -> str:
    """The summary for people."""

    def number(value: float | None) -> str:
        return "-" if value is None else f"{value:,.4g}"

    network = summary["network"]
    rate = "-" if summary["sps"] is None else f"{summary['sps']:,.0f}"
    lines = [
        f"{summary['env']}, seed {summary['seed']}{' (interrupted)' if summary['interrupted'] else ''}",
        f"  env steps    {summary['env_steps']:,} ({summary['updates']:,} updates)",
        f"  time         {summary['train_s']:.2f} s of training, {summary['total_s']:.2f} s in all{compiling(summary)}",
        f"  speed        {rate} env steps a second after warm-up",
        f"  mean return  {number(summary['mean_return'])} over {summary['eval_episodes']} episodes",
    ]
    test = summary.get("test")
    if test:
        lines[-1] += " of the validation part"
        hold = f", buy and hold {number(test['buy_and_hold'])}" if test["buy_and_hold"] is not None else ""
        lines.append(f"  test part    {number(test['mean_return'])} over {test['episodes']} episodes{hold}")
    for name, met in summary.get("strength", {}).items():
        lines.append(f"  {STRENGTH[name] if name in STRENGTH else 'against ' + name:<20} {met_text(met)}")
    choices = ", ".join(f"{slot}={variant}" for slot, variant in summary["choices"].items())
    if summary["skipped_updates"]:
        lines.append(f"  skipped      {summary['skipped_updates']:,} updates, for infinite gradients")
    lines.append(
        f"  network      {network['network']} {network['hidden']}, {network['parameters']:,} parameters, "
        f"{network['forward_flops']:,} FLOPs a row forward, {network['update_flops']:,} an update"
        + (f", and {network['action_flops']:,} forward for each action" if "action_flops" in network else "")
    )
    return "\n".join([*lines, f"  choices      {choices}", f"  weights      sha256 {summary['weights_sha256'][:16]}"])


def met_text(met: dict[str, Any]) -> str:
    if "share" in met:
        return f"{met['share']:.2%}"
    return f"{met['wins']} won, {met['draws']} drawn, {met['losses']} lost of {met['games']}"


def compiling(summary: dict[str, Any]) -> str:
    """What was spent on compiling, where anything was."""
    if not summary["compile_s"] and not summary["recompiles"]:
        return ""
    again = f", {summary['recompiles']} compiled again" if summary["recompiles"] else ""
    return f", {summary['compile_s']:.2f} s of it compiling{again}"
