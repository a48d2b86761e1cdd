"""Reversi (Othello) as a Gymnasium environment: an agent against an opponent, one game at a time.

Importing this file also registers it, so that `gymnasium.make("rlbench.envs.othello_env:rlbench/Othello-v0")` works anywhere.
"""

from __future__ import annotations

from operator import index
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import seeding

from rlbench.actions import pack, to_unsigned
from rlbench.envs.games import Player
from rlbench.envs.othello import Othello
from rlbench.envs.othello_one import OneOthello, lead_of, planes, rays_of
from rlbench.envs.players import NAMES, PlayerError, opponent_named

ENV_ID = "rlbench/Othello-v0"
COLOURS = ("black", "white")  # black has the first move from the start position
ENTRY = "rlbench.envs.othello_env:OthelloEnv"


class Discrete(spaces.Discrete):
    """Squares and the pass; `sample()` without a mask draws among the legal ones.

    Seeded in the middle of an episode it draws for the one that `reset(seed=)` of the same seed would start, as Gymnasium's
    `check_env` does.
    """

    def __init__(self, env: OthelloEnv) -> None:
        super().__init__(env.size**2 + 1)
        self._env = env
        self._seeded: tuple[int, int] | None = None  # (seed, when)

    def seed(self, seed: int | None = None) -> Any:
        self._seeded = None if seed is None else (seed, self._env.clock)
        return super().seed(seed)

    def sample(self, mask: Any = None, probability: Any = None) -> np.int64:
        if mask is None and probability is None:
            ahead = self._seeded is not None and self._seeded[1] == self._env.clock and self._env.in_midgame
            mask = self._env.first_mask(self._seeded[0]) if ahead else self._env.action_mask()
        return super().sample(mask, probability)


class OthelloEnv(gymnasium.Env):
    """Gymnasium env of one game after another; the agent has the first move in every other episode.

    Action: a square, counted row by row from the upper left, or size² for a pass; `info["action_mask"]` has a 1 for those that
    are legal, and `action_space.sample()` draws one of them. A pass is legal only where nothing else is.

    Observation: float32 (2 size²,): 1 where the agent has a disc, then 1 where the opponent has one, row by row.

    Reward: 0 until the end; then 1, 0 or -1 for a game won, drawn or lost ("win"), or the agent's lead in discs over size²
    ("discs"). `terminated` where neither can move; never `truncated`. `info["colour"]` is the agent's, "black" or "white".

    Randomness: `reset(seed=s)` fixes the openings, a random opponent, and who has the first move in the first episode.

    Args:
        size: of the board: 4, 6 or 8.
        opponent: "random"; "greedy" (the most discs flipped); "alpha_beta_1" to "alpha_beta_4" (minimax on disc lead); the
            folder of a policy saved by `rlbench train ppo --out`; or a function (features (1, 2 size²), legal sets) -> ids (1,).
        opening_plies: plies drawn at random before the first move.
        reward: "win" or "discs".
        render_mode: "ansi": `render()` gives the board as text.

    Raises:
        ValueError: naming the argument, what was found, and what is accepted.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 4}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        size: int = 8,
        opponent: str | Path | Player = "random",
        opening_plies: int = 0,
        reward: str = "win",
        render_mode: str | None = None,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        if render_mode not in (None, "ansi"):
            raise ValueError(f"render_mode={render_mode!r} is refused; accepted: None or 'ansi'.")
        named = opponent if isinstance(opponent, str) and opponent in NAMES else None
        self._rules = Othello(size=size, reward=reward, opening_plies=opening_plies, opponent=named)
        self._player = None if named else player_from(opponent, size)
        self.size, self.render_mode = size, render_mode
        self._game = self._new_game()
        self._key: tuple[int, int] | None = None  # (seed, index) of the episodes since the last seeded reset
        self._episode = self._side = 0
        self._going = self.in_midgame = False
        self.clock = 0  # resets and steps so far
        self.observation_space = spaces.Box(0.0, 1.0, (2 * size**2,), np.float32)
        self.action_space = Discrete(self)
        self.spec = EnvSpec(ENV_ID, entry_point=ENTRY, kwargs=arguments)

    def _new_game(self) -> OneOthello:
        return OneOthello(self._rules, self._answer if self._player else None)

    def _answer(self, mine: int, theirs: int, ids: list[int]) -> int:
        """What an opponent that is a player does in one position."""
        obs = torch.tensor([planes(mine, theirs, self.size)])
        chosen = self._player(obs, pack([ids]))
        if isinstance(chosen, torch.Tensor) and chosen.shape == (1,) and chosen.dtype == torch.int64:
            (answer,) = to_unsigned(chosen)
            if answer in ids:
                return answer
        raise PlayerError(
            f"the opponent gave {chosen!r}; accepted: one of the legal ids {ids}, as a tensor (1,) int64."
        )

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start an episode, up to the agent's first move. There are no options."""
        super().reset(seed=seed)
        if options:
            raise ValueError(f"reset options {sorted(options)} are unknown; there are none.")
        if seed is not None or self._key is None:
            self._key, self._episode = key_from(self.np_random), 0
        else:
            self._episode += 1
        self._game.reset(self._key[0], self._episode, self._key[1])
        self._side = self._game.plies % 2
        self._going, self.in_midgame = True, False
        self.clock += 1
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Place a disc on square `action`, or pass with size²; the opponent's answer follows."""
        action = index(action)
        if not self._going:
            raise RuntimeError("The episode has ended or has not begun; call reset() before step().")
        legal = legal_of(self._game)
        if action not in legal:
            accepted = ", ".join(map(str, legal))
            raise ValueError(
                f"action={action} is not legal here; accepted: {accepted} (info['action_mask'] has a 1 for each)."
            )
        reward, ended = self._game.step(legal[action])
        self._going = self.in_midgame = not ended
        self.clock += 1
        return self._observation(), reward, ended, False, self._info()

    def action_mask(self) -> np.ndarray:
        """1 for the legal actions, (size² + 1,) int8; all 0 where the game has ended."""
        return mask_of(self._game)

    def first_mask(self, seed: int) -> np.ndarray:
        """The mask of the state that `reset(seed=seed)` gives."""
        game, (game_seed, side) = self._new_game(), key_from(seeding.np_random(seed)[0])
        game.reset(game_seed, 0, side)
        return mask_of(game)

    def _observation(self) -> np.ndarray:  # (2 size²,)
        return np.array(self._game.features(), np.float32)

    def _info(self) -> dict[str, Any]:
        return {"action_mask": self.action_mask(), "colour": COLOURS[self._side]}

    def render(self) -> str | None:
        """The board as text: X is black, O is white, * a legal move of the agent; below, whose turn it is, or the result."""
        if self.render_mode is None:
            return None
        agent, other = "XO" if self._side == 0 else "OX"
        moves = {action_id & ~self._game.theirs for action_id in self._game.ids}
        marks = [
            agent
            if square & self._game.mine
            else other
            if square & self._game.theirs
            else "*"
            if square in moves
            else "."
            for square in rays_of(self.size)
        ]
        lines = [" ".join(["", *"abcdefgh"[: self.size]])]
        for row in range(self.size):
            lines.append(" ".join([str(row + 1), *marks[row * self.size : (row + 1) * self.size]]))
        lead, colour = lead_of(self._game.mine, self._game.theirs), COLOURS[self._side]
        status = f"{colour} to move" if self._game.ids else f"over, {colour}'s lead: {lead}"
        return "\n".join([*lines, f"{status}\n"])


def legal_of(game: OneOthello) -> dict[int, int]:
    """The legal actions, each with its id."""
    found = {}
    for action_id in game.ids:
        row, column = divmod((action_id & ~game.theirs).bit_length() - 1, 8)  # of the disc placed
        found[row * game.size + column if action_id else game.size**2] = action_id
    return found


def mask_of(game: OneOthello) -> np.ndarray:
    mask = np.zeros(game.size**2 + 1, np.int8)
    mask[list(legal_of(game))] = 1
    return mask


def key_from(generator: np.random.Generator) -> tuple[int, int]:
    """(seed of the draws, 1 where the opponent has the first move in the first episode) of a run of episodes."""
    return int(generator.integers(2**63)), int(generator.integers(2))


def player_from(opponent: Any, size: int) -> Player:
    """The player of a folder, or the one that was given."""
    if isinstance(opponent, str | Path):
        return opponent_named(opponent, 0, size)
    if not callable(opponent):
        raise PlayerError(f"opponent={opponent!r} is refused; accepted: {', '.join(NAMES)}, a folder, or a function.")
    return opponent


if ENV_ID not in gymnasium.registry:
    gymnasium.register(id=ENV_ID, entry_point=ENTRY)
