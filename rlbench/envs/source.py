"""What a reader gave as an environment, and the forms in which a trainer can have it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from rlbench.batch import Layout
from rlbench.envs.batch import BatchEnv
from rlbench.envs.factories import CopyOf
from rlbench.envs.given_games import as_game, game_made_by
from rlbench.envs.make import MakeEnv, factory_of, is_single, is_vector
from rlbench.envs.spaces import EnvError, layout_of

MakeBatch = Callable[..., BatchEnv]  # (num_envs, seed, device)
CHANGES_NOTHING = ("PassiveEnvChecker", "OrderEnforcing", "TimeLimit")  # what `gymnasium.make` wraps an env in


@dataclass(frozen=True)
class EnvSource:
    """An environment before it is made.

    Attributes:
        given: as the reader wrote it.
        name: for people.
        make: a factory of fresh single environments; None for a vector env that has none.
        vector: whether a vector env was given, which is stepped as it is.
        batch: (num_envs, seed, device) -> the same environment as a `BatchEnv`; None where there is none.
        trading: the arguments of the `TradingEnv` that it is; None for any other.
        layout: of its observations, where it says.
        game: the rules (`rlbench.envs.games.Game`) of a game with a set of legal actions in every state; None for any other env.
    """

    given: Any
    name: str
    make: MakeEnv | None
    vector: bool = False
    batch: MakeBatch | None = None
    trading: dict[str, Any] | None = None
    layout: Layout | None = None
    game: Any = None

    @property
    def num_envs(self) -> int | None:
        """How many environments were given together; None where a trainer may have as many as it likes."""
        if self.game is not None:
            return getattr(self.game, "num_envs", None)
        return self.given.num_envs if self.vector or is_batch(self.given) else None


def env_source(env: Any) -> EnvSource:
    """Look at an id, a factory, an env, a vector env or a `BatchEnv`; one environment of a factory is made and closed."""
    game = as_game(env)
    if game is not None:
        return EnvSource(env, game.name, None, game=game)
    if is_batch(env):
        return EnvSource(env, env.name, None, batch=_same_batch(env), layout=env.layout)
    if is_vector(env):
        batch = _same_batch(env.core) if gives_what_its_core_gives(env) else None
        return EnvSource(env, type(env).__name__, _factory_or_none(env), True, batch, layout=layout_of(env))
    # An env that is given may not let itself be copied: that is asked of it when a copy is needed.
    make = CopyOf(env) if is_single(env) else factory_of(env)
    probe = env if is_single(env) else make()
    game = game_made_by(probe, make)
    if game is not None:
        return EnvSource(env, game.name, None, game=game)
    trading = trading_arguments(probe)
    spec = getattr(probe, "spec", None)
    name = spec.id if spec is not None else type(getattr(probe, "unwrapped", probe)).__name__
    source = EnvSource(env, name, make, False, _batch_of(probe, trading), trading, layout_of(probe))
    if probe is not env and hasattr(probe, "close"):
        probe.close()
    return source


def is_batch(env: Any) -> bool:
    """Whether something is a `BatchEnv`: rules of many environments, not a vector env that steps them."""
    needed = ("num_envs", "num_actions", "obs_size", "device", "layout", "reset", "step")
    return not isinstance(env, type) and all(hasattr(env, name) for name in needed) and not is_vector(env)


def gives_what_its_core_gives(env: Any) -> bool:
    """Whether a vector env is the Gymnasium face of a `BatchEnv` and nothing more, so that the core can be stepped instead."""
    from rlbench.envs.batch_vector_env import BatchVectorEnv  # needs Gymnasium, as `env` does

    kind, own = type(env), ("reset", "step", "_checked", "_finals")
    if not isinstance(env, BatchVectorEnv) or any(name in vars(env) for name in own):
        return False
    inherited = all(getattr(kind, name) is getattr(BatchVectorEnv, name) for name in own)
    return inherited and not int(env.single_action_space.start)


def _same_batch(given: BatchEnv) -> MakeBatch:
    """Hands out a copy of a batch env with another seed, where number and device are those that are asked for."""

    def make(num_envs: int, seed: int, device: Any) -> BatchEnv:
        if num_envs not in (1, given.num_envs):
            raise EnvError(f"num_envs={num_envs}, but {given.name} has {given.num_envs}: leave num_envs out.")
        if torch.device(device).type != torch.device(given.device).type:
            raise EnvError(f"{given.name} lies on {given.device}, the trainer on {device}: make both on one device.")
        twin = copy.copy(given)  # tensors are shared: nothing writes to them
        twin.seed = seed
        return twin

    return make


def _factory_or_none(env: Any) -> MakeEnv | None:
    try:
        return factory_of(env)
    except EnvError:
        return None


def is_bare(env: Any) -> bool:
    """Whether an env is wrapped in nothing that changes what it gives."""
    while hasattr(env, "env") and env is not getattr(env, "unwrapped", env):
        if type(env).__name__ not in CHANGES_NOTHING:
            return False
        env = env.env
    return True


def trading_arguments(env: Any) -> dict[str, Any] | None:
    """What the `TradingEnv` inside was made with; None for any other env, and for one wrapped in something else."""
    from rlbench.envs.trading import TradingEnv  # needs Gymnasium

    inner = getattr(env, "unwrapped", env)
    kind = type(inner)
    same = kind is TradingEnv or "equals_trading_env" in vars(kind)  # the same numbers, computed otherwise
    return dict(inner.spec.kwargs) if same and is_bare(env) else None


def _batch_of(env: Any, trading: dict[str, Any] | None) -> MakeBatch | None:
    if trading is not None:
        return None if trading["reward"] is not None else _batch_trading(trading)
    if is_cart_pole(env):
        from rlbench.envs.batch_cartpole import BatchCartPole

        return lambda num_envs, seed, device: BatchCartPole(num_envs, device, seed=seed)
    return None


def _batch_trading(arguments: dict[str, Any]) -> MakeBatch:
    from rlbench.envs.batch_trading import BatchTrading

    kept = {name: v for name, v in arguments.items() if name not in ("reward", "render_mode", "seed")}
    return lambda num_envs, seed, device: BatchTrading(num_envs=num_envs, device=device, seed=seed, **kept)


def is_cart_pole(env: Any) -> bool:
    """Whether an env is Gymnasium's CartPole-v1 as `gymnasium.make` gives it."""
    spec = getattr(env, "spec", None)
    known = spec is not None and spec.id == "CartPole-v1" and not spec.kwargs and spec.max_episode_steps == 500
    return known and is_bare(env)
