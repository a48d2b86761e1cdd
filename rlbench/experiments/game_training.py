"""PPO on a game for two under several Choices: how strong it gets, against the clock and against env steps.

A training stops at marks, which are the same for all and lie twice as far each time; plays matches there, while its clock
stands still; and goes on, until its time is over.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from rlbench.config import ConfigError, PPOConfig
from rlbench.envs.games import Player
from rlbench.envs.matches import play_match
from rlbench.envs.players import player_of, random_player
from rlbench.machine import Machine, StealMeter, describe
from rlbench.progress import Progress
from rlbench.results import Row, new_row
from rlbench.speedups import Choices
from rlbench.trainers.ppo import PPO
from rlbench.trainers.strength import SHOWN
from rlbench.workloads import GAMES, workload

CHANCE = "random moves"  # the label of rows about whoever has learnt nothing
MATCH_SEED = 1  # all play the same openings
KIND = "game_training"
SMALL = {"num_envs": 32, "num_steps": 16, "batch_size": 128}  # rounds that are over soon, however they are computed


def settings(name: str, quick: bool = False, **changes: Any) -> tuple[Any, PPOConfig]:
    """The rules of a game by its name, and what is learnt there.

    Games begin with random plies, in training as in matches: on a small board self-play from one position settles on one
    game, and learns nothing of the others. The step size does not fall, so that a training that is stopped is what a shorter
    one would have been.

    Raises:
        ConfigError: for a game that is not for two players.
    """
    for_two = [known for known in GAMES if GAMES[known]]
    if name not in for_two:
        raise ConfigError(f"game={name!r} is refused: there is nobody to beat. Accepted: {', '.join(for_two)}.")
    work = workload(name)
    own = {"anneal_lr": False, "eval_episodes": 0, "eval_frequency": 0, "log_frequency": 1, **(SMALL if quick else {})}
    return work.env, work.config(trainer="ppo", **{**own, **changes})


@dataclass
class Training:
    """One training under way, or over. Its clock leaves out matches and compilation.

    Attributes:
        label: of the Choices.
        points: what was found at each mark, in order: env_steps, seconds, compile_s, and by opponent the match's result.
    """

    label: str
    seed: int
    trainer: PPO
    limit_s: float
    seconds: float = 0.0
    compile_s: float = 0.0
    points: list[dict[str, Any]] = field(default_factory=list)
    late: bool = False  # its time is over
    stopped: bool = False  # from outside
    logs: list[pd.DataFrame] = field(default_factory=list)
    steal: float | None = None  # percent, while it ran

    @property
    def over(self) -> bool:
        done = self.trainer.env_steps >= self.trainer.config.total_timesteps
        return done or self.stopped or self.late

    @property
    def player(self) -> Player:
        """The policy as it is: the action of the highest score."""
        return player_of(self.trainer.model)

    @property
    def log(self) -> pd.DataFrame:
        """A row a round: env_step, seconds, approx_kl, first_ratio_error, and all else that the trainer notes."""
        return pd.concat(self.logs, ignore_index=True).assign(label=self.label, seed=self.seed)

    def go_on(self, mark: int, told: Callable[[float], bool]) -> None:
        """Train on to the mark in env steps, or until the time is over. `told` gets the seconds; True stops everything."""
        before, began = self.seconds, time.perf_counter()

        def on_log(state: dict) -> None:
            seconds = before + time.perf_counter() - began
            self.stopped, self.late = told(seconds), seconds >= self.limit_s
            if state["step"] >= mark or self.late or self.stopped:
                self.trainer.stop()

        history = self.trainer.train(progress=False, on_log=on_log)
        frame = history.to_frame()
        self.logs.append(frame.assign(seconds=frame["seconds"] + before))
        self.seconds, self.compile_s = before + history.train_s, self.compile_s + history.compile_s
        # An interrupt stops the trainer, too: what it was on the way to is then not reached.
        self.stopped = self.stopped or not (self.over or self.trainer.env_steps >= mark)

    def look(self, matches: Mapping[str, Any]) -> None:
        """Play the matches."""
        where = {"env_steps": self.trainer.env_steps, "seconds": self.seconds, "compile_s": self.compile_s}
        self.points.append({**where, "matches": {name: play(self.player) for name, play in matches.items()}})


def train(
    game: Any,
    config: PPOConfig,
    ways: Mapping[str, Choices],
    seeds: Sequence[int],
    *,
    seconds: Mapping[str, float],
    once: Collection[str] = (),
    games: int = 200,
    device: str = "cpu",
    progress: bool | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> list[Training]:
    """Train every way with every seed, one after another, each seed beginning with another way.

    Args:
        ways: Choices by label.
        seconds: how long each way trains, by label; a round that has begun is finished.
        once: labels of ways that are trained with the first seed alone.
        games: of a match, at each mark against each opponent.
        should_stop: asked after every round; True ends everything. What has been reached by then comes back.
    """
    should_stop = should_stop or (lambda: False)
    runs = [
        (label, seed) for i, seed in enumerate(seeds) for label in _turned(list(ways), i) if not i or label not in once
    ]
    round_steps, done = config.num_envs * config.num_steps, []
    for label in ways:
        if label not in once:  # thrown away: the first training that is kept does not pay for loading libraries
            PPO(config.replace(total_timesteps=round_steps), ways[label], game, device).train(progress=False)
    with Progress(round(sum(seconds[label] for label, _ in runs)), f"PPO on {game.name}", "seconds", progress) as bar:
        for label, seed in runs:
            one = Training(label, seed, PPO(config.replace(seed=seed), ways[label], game, device), seconds[label])
            done.append(one)
            before, meter, mark = bar.done, StealMeter(), round_steps

            def told(now: float, one: Training = one, before: int = before) -> bool:
                bar.advance(before + int(min(now, one.limit_s)) - bar.done, f"{one.label}, seed {one.seed}")
                return should_stop()

            while not one.over:
                one.go_on(mark, told)
                one.look(_matches(game, games, device))
                mark *= 2
            one.steal = meter.percent()
            bar.advance(before + round(one.limit_s) - bar.done)
            if one.stopped:
                break
    return done


def _turned(labels: list[str], by: int) -> list[str]:
    by %= len(labels)
    return labels[by:] + labels[:by]


def _matches(game: Any, games: int, device: str) -> dict[str, Callable[[Player], Any]]:
    """By opponent, what plays the match against it."""

    def against(name: str) -> Callable[[Player], Any]:
        opponent = game.opponents[name](MATCH_SEED)
        return lambda who: play_match(game, who, opponent, games, MATCH_SEED, device=device, progress=False)

    return {name: against(name) for name in SHOWN}


def rows(
    game: Any, trainings: Sequence[Training], *, games: int = 200, device: str = "cpu", quick: bool = False
) -> list[Row]:
    """A row for each training, mark and opponent, and for each opponent one of somebody who moves at random.

    Fields: label, seed, game, opponent, env_steps, seconds, compile_s, limit_s, last (whether it is the training's last mark),
    games, wins, draws, losses, win_share with win_low and win_high (95 %, Wilson), score (a draw is half a win), mean_lead,
    choices, config, quick, and what `results.new_row` adds.
    """
    machine = describe(steal_interval_s=0)
    made = []
    for one in trainings:
        for point in one.points:
            where = {name: point[name] for name in ("env_steps", "seconds", "compile_s")}
            where |= {"limit_s": one.limit_s, "last": point is one.points[-1], "choices": one.trainer.choices.in_use(
                one.trainer.config, one.trainer.device, one.trainer.source
            )}  # fmt: skip
            config = dataclasses.asdict(one.trainer.config)
            for name, result in point["matches"].items():
                made.append(_row(one.label, one.seed, game, name, result, machine, device, **where, config=config))
    nothing = {
        "env_steps": 0,
        "seconds": 0.0,
        "compile_s": 0.0,
        "limit_s": 0.0,
        "last": True,
        "choices": {},
        "config": {},
    }
    for name, play in _matches(game, games, device).items():
        result = play(random_player(MATCH_SEED + 1))  # other draws than those of the opponent who moves at random
        made.append(_row(CHANCE, None, game, name, result, machine, device, **nothing))
    return [{**row, "quick": quick} for row in made]


def _row(
    label: str, seed: int | None, game: Any, name: str, result: Any, machine: Machine, device: str, **fields: Any
) -> Row:
    numbers = ("games", "wins", "draws", "losses", "win_share", "win_low", "win_high", "score", "mean_lead")
    summary = result.summary()
    own = {"label": label, "seed": seed, "game": game.name, "opponent": name, **fields}
    return new_row(
        KIND, device=device, seeds=[] if seed is None else [seed], machine=machine, **own,
        **{number: summary[number] for number in numbers},
    )  # fmt: skip
