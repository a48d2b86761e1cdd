"""Games played here and kept whole: by a policy that draws its actions, or by a fixed player."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rlbench.actions import ActionSets, cat
from rlbench.envs.games import GameStep
from rlbench.envs.one_by_one_games import OneByOneGames
from rlbench.episodes.checks import EpisodeError
from rlbench.episodes.container import Episodes
from rlbench.evaluations.packed import Packed
from rlbench.progress import Progress
from rlbench.random import Purpose, random_bits, to_uniform
from rlbench.segments import pick

MOST_GAMES = 256  # side by side, where nothing else is asked for
# (obs (N, D), legal, number of the step) -> (choice (N,), log-probability (N,))
Act = Callable[[Tensor, ActionSets, int], tuple[Tensor, Tensor]]


class _Kept(NamedTuple):
    """One step of N games."""

    obs: Tensor
    legal: ActionSets
    choice: Tensor
    log_prob: Tensor
    reward: Tensor
    terminated: Tensor
    truncated: Tensor
    episode: Tensor  # (N,) int64: which of the recorded episodes this is a step of; E where of none


def record(
    game: Any,
    player: Any,
    episodes: int,
    seed: int,
    device: str | torch.device = "cpu",
    num_envs: int | None = None,
    progress: bool | None = None,
) -> Episodes:
    """Play `episodes` whole episodes of a game and keep them.

    Game i of N plays its episodes 0, 1, …; they are kept in the order (episode, game), so that long episodes are not rarer than
    short ones. In self-play the one player moves for both sides.

    Args:
        game: a `rlbench.envs.games.Game`; one without `batched` is stepped in plain Python.
        player: an `ActionScorer`, or an evaluator of one, which draws its actions and whose log-probabilities are kept; or a
            `Player`, whose log-probabilities are not known (`Episodes.behaviour` is False, `log_prob` is 0).
        seed: of the games and of the draws.
        device: where games are stepped and the episodes lie; a model must be there.
        num_envs: games side by side, N; as many as episodes, and at most 256, where left out.
        progress: False hides it.

    Raises:
        EpisodeError: for numbers below 1, something that cannot play, and a player that takes what is not legal.
    """
    games_asked = min(episodes, MOST_GAMES) if num_envs is None else num_envs
    for name, value in (("episodes", episodes), ("num_envs", games_asked)):
        if value < 1:
            raise EpisodeError(f"{name}={value} is refused; accepted: 1 or more.")
    act, behaviour = _act_of(player, seed)
    games = _games(game, min(games_asked, episodes), seed, device)
    with torch.no_grad():
        kept, last_obs = _play(games, act, episodes, progress)
        return _packed(kept, last_obs, games, behaviour, getattr(game, "name", type(game).__name__))


def _games(game: Any, num_envs: int, seed: int, device: str | torch.device) -> Any:
    if hasattr(game, "batched"):
        return game.batched(num_envs, seed, device)
    return OneByOneGames(game.one, num_envs, seed, device)


def _act_of(player: Any, seed: int) -> tuple[Act, bool]:
    """How actions are chosen, and whether their log-probabilities are known."""
    if isinstance(player, nn.Module):
        player = Packed(player)
    if hasattr(player, "log_probs"):

        def draw(obs: Tensor, legal: ActionSets, step: int) -> tuple[Tensor, Tensor]:
            log_p, _ = player.log_probs(obs, legal)
            index = torch.arange(len(obs), device=obs.device)
            choice = pick(log_p, legal.offsets, to_uniform(random_bits(seed, Purpose.ACTION, step, index)))
            return choice, log_p[legal.offsets[:-1] + choice].float()

        return draw, True
    if not callable(player):
        raise EpisodeError(f"{player!r} cannot play; accepted: an ActionScorer, an evaluator of one, or a Player.")

    def ask(obs: Tensor, legal: ActionSets, step: int) -> tuple[Tensor, Tensor]:
        return place_in(legal, player(obs, legal), step), obs.new_zeros(len(obs))

    return ask, False


def place_in(legal: ActionSets, ids: Tensor, step: int) -> Tensor:
    """The place (N,) of ids (N,) in their states' lists."""
    state, none = legal.states(), len(legal.ids)
    place = torch.arange(none, device=state.device) - legal.offsets[state]
    place = torch.where(legal.ids == ids.to(state.device)[state], place, none)
    choice = torch.full_like(legal.counts, none).scatter_reduce(0, state, place, "amin")
    if bool((choice == none).any()):  # sync: a check
        game = int((choice == none).int().argmax())
        raise EpisodeError(f"game {game}, step {step}: the player took {int(ids[game])}, which is not legal there.")
    return choice


def _play(games: Any, act: Act, episodes: int, progress: bool | None) -> tuple[list[_Kept], Tensor]:
    """All steps until every game has played its episodes, and where truncated episodes led (E, D)."""
    obs, legal = games.reset()
    index = torch.arange(games.num_envs, device=obs.device)
    played = torch.zeros_like(index)  # episodes of each game that have ended
    last_obs, kept, done = obs.new_zeros((episodes, obs.shape[1])), [], 0
    with Progress(episodes, f"record {games.name}", "episodes", progress) as bar:
        while done < episodes:
            episode = (played * games.num_envs + index).clamp(max=episodes)
            choice, log_prob = act(obs, legal, len(kept))
            step: GameStep = games.step(legal.ids[legal.offsets[:-1] + choice])
            kept.append(_Kept(obs, legal, choice, log_prob, step.reward, step.terminated, step.truncated, episode))
            cut = step.truncated & (episode < episodes)
            if bool(cut.any()):  # sync: few games have time limits
                last_obs[episode[cut]] = step.next_obs[cut]
            ended = step.terminated | step.truncated
            finished = int((ended & (episode < episodes)).sum())  # sync: whether to go on
            done += finished
            bar.advance(finished)
            played = played + ended
            obs, legal = step.obs, step.legal
    return kept, last_obs


def _packed(kept: list[_Kept], last_obs: Tensor, games: Any, behaviour: bool, name: str) -> Episodes:
    """Step-major rows of games in the order of episodes."""
    episodes = len(last_obs)
    episode = torch.cat([step.episode for step in kept])  # (T N,)
    rows = episode.argsort(stable=True)[: int((episode < episodes).sum())]  # sync: the size of what is made
    lengths = torch.bincount(episode[rows], minlength=episodes)
    fields = ("obs", "choice", "log_prob", "reward", "terminated", "truncated")
    return Episodes(
        legal=cat([step.legal for step in kept]).take(rows),
        last_obs=last_obs,
        bounds=torch.cat((lengths.new_zeros(1), lengths.cumsum(0))),
        alternating=bool(games.alternating),
        behaviour=behaviour,
        game=name,
        **{field: torch.cat([getattr(step, field) for step in kept])[rows] for field in fields},
    )
