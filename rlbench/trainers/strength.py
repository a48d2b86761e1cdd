"""How good a policy for a game is: matches against fixed opponents, or, where there is nobody to beat, what it earns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rlbench.actions import ActionSets
from rlbench.envs.alpha_beta import first_of_largest
from rlbench.envs.matches import MatchResult, added, make_games, play_match
from rlbench.envs.players import random_player
from rlbench.notices import say_once
from rlbench.random import Purpose, random_bits

if TYPE_CHECKING:
    from rlbench.trainers.ppo import PPO

SHOWN = ("random", "greedy", "alpha_beta_2")  # whom a final policy is told to have met
MOST_GAMES = 64  # side by side, where episodes are counted
OPTIMUM_STATES = 1_000


def greedy_player(trainer: PPO) -> Any:
    """The trainer's policy as a `Player`: the most probable action."""
    evaluator = getattr(trainer.evaluator, "for_any_size", trainer.evaluator)

    @torch.inference_mode()
    def play(obs: Tensor, legal: ActionSets) -> Tensor:
        log_p, _ = evaluator.log_probs(obs, legal)
        return first_of_largest(log_p, legal)

    return play


def opponents_of(game: Any) -> dict[str, Any]:
    """Who can be played against, by name: those that the game knows, and one that moves at random in every game for two."""
    known = dict(getattr(game, "opponents", {}))
    return {"random": random_player, **known} if known or game.alternating else {}


def rules_of(trainer: PPO) -> Any:
    """The rules of the games that an evaluation plays. Where N games were given instead of rules, those of a copy of them."""
    return getattr(trainer.source.game, "to_evaluate_on", trainer.source.game)


def match(trainer: PPO, name: str, games: int, seed: int) -> MatchResult:
    """Games of the greedy policy against an opponent, both colours, randomised openings; an even number of them.

    Where N games were given, each half of a match is all of them: some more games may be played than were asked for.
    """
    rules, policy = rules_of(trainer), greedy_player(trainer)
    opponent, given = opponents_of(rules)[name](seed), getattr(rules, "num_envs", None)

    def play(count: int, openings: int) -> MatchResult:
        shown = getattr(trainer, "progress", False)
        return play_match(
            rules,
            policy,
            opponent,
            count,
            openings,
            device=trainer.device,
            progress=shown,
            should_stop=lambda: trainer.stopping,
        )

    if given is None:
        return play(games + games % 2, seed)
    return added([play(2 * given, seed + k) for k in range(-(-games // (2 * given)))])


def evaluate_game(trainer: PPO, episodes: int, seed: int) -> list[float]:
    """A return an episode: +1, 0 or -1 a match's game against `eval_opponent`; in a game for one, what was earned. None at all
    after `stop()`, since the games that have ended then are the short ones.
    """
    known, wanted = opponents_of(trainer.source.game), trainer.config.eval_opponent
    if episodes < 1:
        return []
    if not known:
        return _earned(trainer, episodes, seed)
    if wanted not in known:
        say_once(f"{trainer.source.name} has no opponent {wanted!r}: evaluations are against 'random'.")
        wanted = "random"
    result = match(trainer, wanted, episodes, seed)
    if result.interrupted:
        return []
    return [1.0] * result.wins + [0.0] * result.draws + [-1.0] * result.losses


def strength_of(trainer: PPO, games: int) -> dict[str, dict[str, Any]]:
    """Wins, draws and losses of the greedy policy against each fixed opponent; its share of the optimum where that is known."""
    game, known = trainer.source.game, opponents_of(trainer.source.game)
    if hasattr(game, "optimum_share"):
        states = max(games, OPTIMUM_STATES)
        share = game.optimum_share(greedy_player(trainer), states, trainer.config.seed, device=trainer.device)
        return {"optimum": {"share": share}}
    found = {name: match(trainer, name, games, trainer.config.seed) for name in SHOWN if name in known}
    return {name: {"games": r.games, "wins": r.wins, "draws": r.draws, "losses": r.losses} for name, r in found.items()}


def _earned(trainer: PPO, episodes: int, seed: int) -> list[float]:
    """Returns of whole episodes, each game having its own number of them to finish."""
    count = min(episodes, MOST_GAMES)
    rules = rules_of(trainer)
    count = getattr(rules, "num_envs", count)
    games = make_games(rules, count, int(random_bits(seed, Purpose.EVALUATION, 0, 0)), trainer.device)
    quota = [episodes // count + (i < episodes % count) for i in range(count)]
    play, (obs, legal), running = greedy_player(trainer), games.reset(), torch.zeros(count)
    returns: list[list[float]] = [[] for _ in range(count)]
    while any(len(found) < wanted for found, wanted in zip(returns, quota, strict=True)):
        if trainer.stopping:
            return []
        step = games.step(play(obs, legal))
        obs, legal = step.obs, step.legal
        running += step.reward.cpu()  # sync: an evaluation reads what was earned
        for i in (step.terminated | step.truncated).cpu().nonzero().flatten().tolist():  # sync: as above
            if len(returns[i]) < quota[i]:
                returns[i].append(float(running[i]))
            running[i] = 0.0
    return [value for each in returns for value in each]
