"""What is learnt: frozen, flat settings with the field's names (CleanRL's), checked at construction."""

from __future__ import annotations

import dataclasses
import math
import numbers
import typing
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from rlbench.presets import DQN_PRESETS, PPO_PRESETS


class ConfigError(ValueError):
    """A setting that cannot be used; the message names it, what was found and what is accepted."""


def option(
    default: Any, help: str, low: float = -math.inf, high: float = math.inf, one_of: tuple[str, ...] | None = None
) -> Any:
    """A dataclass field with its one line of documentation, and its closed range or the words that it accepts."""
    return dataclasses.field(default=default, metadata={"help": help, "low": low, "high": high, "one_of": one_of})


NETWORKS = ("mlp", "dueling", "conv")
OLD_LOG_PROBS = ("behaviour", "recomputed")
OPPONENTS = ("random", "greedy", "alpha_beta_1", "alpha_beta_2", "alpha_beta_3", "alpha_beta_4")


@dataclass(frozen=True)
class Config:
    """What the trainers' settings have in common: they are checked, copied and made from presets alike."""

    trainer: ClassVar[str]
    PRESETS: ClassVar[dict[str, dict[str, Any]]]

    def __post_init__(self) -> None:
        for field, kind in fields_of(type(self)):
            object.__setattr__(self, field.name, checked(field, kind, getattr(self, field.name)))

    def replace(self, **changes: Any) -> Self:
        """A copy with some settings changed. Unknown names are refused."""
        return make_config(type(self), {**dataclasses.asdict(self), **changes})

    @classmethod
    def preset(cls, name: str, **changes: Any) -> Self:
        """The settings of a named preset, with some changed."""
        if name not in cls.PRESETS:
            raise ConfigError(f"preset {name!r} is unknown: choose one of {', '.join(cls.PRESETS)}.")
        return make_config(cls, {**cls.PRESETS[name], **changes})


@dataclass(frozen=True)
class DQNConfig(Config):
    """Settings of a DQN. Every count of time is in real env steps, whatever the number of envs."""

    trainer: ClassVar[str] = "dqn"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = DQN_PRESETS

    total_timesteps: int = option(100_000, "env steps to train for", low=1)
    num_envs: int = option(1, "environments stepped together", low=1)
    learning_rate: float = option(2.5e-4, "step size of Adam", low=0.0, high=1e6)
    anneal_lr: bool = option(False, "let the step size fall linearly to 0 at total_timesteps")
    buffer_size: int = option(10_000, "transitions that replay holds", low=1)
    gamma: float = option(0.99, "discount of one step", low=0.0, high=1.0)
    tau: float = option(1.0, "share of the online weights that a target sync takes; 1 copies them", low=0.0, high=1.0)
    target_network_frequency: int = option(500, "env steps between target syncs", low=1)
    batch_size: int = option(128, "transitions in a minibatch", low=1)
    start_e: float = option(1.0, "exploration rate at the start", low=0.0, high=1.0)
    end_e: float = option(0.05, "exploration rate at the end of the schedule", low=0.0, high=1.0)
    exploration_fraction: float = option(0.5, "share of total_timesteps over which it falls", low=0.0, high=1.0)
    learning_starts: int = option(1_000, "env steps before the first update", low=0)
    train_frequency: int = option(10, "env steps between rounds of updates", low=1)
    gradient_steps: int = option(1, "updates in a round", low=1)
    double_dqn: bool = option(True, "let the online network choose the next action (Double DQN)")
    n_step: int = option(1, "steps of reward before the bootstrap", low=1)
    huber: bool = option(False, "Huber loss with its knee at 1 instead of squared error")
    max_grad_norm: float = option(10.0, "largest norm of a gradient; 0 clips nothing", low=0.0)
    hidden: tuple[int, ...] = option((120, 84), "widths of the hidden layers", low=1)
    network: str = option("mlp", "mlp, dueling, or conv: 1x1 convolutions over a window of bars", one_of=NETWORKS)
    prioritized_replay_alpha: float = option(
        0.0, "exponent of priorities in replay; 0 samples uniformly", low=0.0, high=1.0
    )
    prioritized_replay_beta: float = option(
        0.4, "exponent of importance weights; rises linearly to 1", low=0.0, high=1.0
    )
    prioritized_replay_eps: float = option(1e-6, "added to the size of an error to make a priority", low=0.0)
    eval_frequency: int = option(0, "env steps between evaluations while training; 0 evaluates at the end alone", low=0)
    eval_episodes: int = option(100, "episodes of an evaluation of the greedy policy; 0 evaluates nothing", low=0)
    log_frequency: int = option(1_000, "env steps between rows of the history", low=1)
    seed: int = option(1, "seed of weights, exploration, replay and environments", low=0, high=2**63 - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.start_e < self.end_e:
            raise ConfigError(f"start_e={self.start_e} is below end_e={self.end_e}: exploration may only fall.")


@dataclass(frozen=True)
class PPOConfig(Config):
    """Settings of PPO. Counts are of real env steps; in a game each decision is one, whoever takes it."""

    trainer: ClassVar[str] = "ppo"
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = PPO_PRESETS

    total_timesteps: int = option(500_000, "env steps to train for", low=1)
    num_envs: int = option(8, "environments or games stepped together", low=1)
    num_steps: int = option(128, "steps of each env between rounds of updates", low=1)
    learning_rate: float = option(2.5e-4, "step size of Adam", low=0.0, high=1e6)
    anneal_lr: bool = option(True, "let the step size fall linearly to 0 at total_timesteps")
    gamma: float = option(0.99, "discount of one step", low=0.0, high=1.0)
    gae_lambda: float = option(0.95, "lambda of generalised advantage estimation", low=0.0, high=1.0)
    batch_size: int = option(256, "samples in a minibatch, at most: a round is cut into like parts", low=1)
    gradient_accumulation: int = option(1, "parts in which a minibatch is computed, to save memory", low=1)
    update_epochs: int = option(4, "passes over the samples of a round", low=1)
    norm_adv: bool = option(True, "normalise advantages in each minibatch")
    clip_coef: float = option(0.2, "how far a probability ratio may move from 1 before it is clipped", low=0.0)
    clip_vloss: bool = option(False, "clip the change of a value to clip_coef, too")
    ent_coef: float = option(0.01, "weight of the entropy bonus", low=0.0)
    vf_coef: float = option(0.5, "weight of the value loss", low=0.0)
    max_grad_norm: float = option(0.5, "largest norm of a gradient; 0 clips nothing", low=0.0)
    target_kl: float = option(0.0, "end a round of updates after an epoch beyond this approximate KL; 0 never", low=0.0)
    old_log_probs: str = option(
        "behaviour", "of ratios: those of the acting policy, or recomputed before a round", one_of=OLD_LOG_PROBS
    )
    hidden: tuple[int, ...] = option((64, 64), "widths of the hidden layers", low=1)
    eval_opponent: str = option("greedy", "what a game's policy is evaluated against", one_of=OPPONENTS)
    eval_frequency: int = option(0, "env steps between evaluations while training; 0 evaluates at the end alone", low=0)
    eval_episodes: int = option(100, "episodes of an evaluation of the greedy policy; 0 evaluates nothing", low=0)
    log_frequency: int = option(10_000, "env steps between rows of the history", low=1)
    seed: int = option(1, "seed of weights, actions, minibatches and environments", low=0, high=2**63 - 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.hidden:
            raise ConfigError("hidden=() has no layer; accepted is at least one width, such as (64, 64).")


def fields_of(cls: type) -> list[tuple[dataclasses.Field, Any]]:
    """The fields of a config class with their resolved types."""
    kinds = typing.get_type_hints(cls)
    return [(field, kinds[field.name]) for field in dataclasses.fields(cls)]


def make_config(cls: type, values: dict[str, Any]) -> Any:
    """Build a config from a mapping, with an error that names unknown settings and what comes nearest."""
    known = [field.name for field in dataclasses.fields(cls)]
    unknown = [name for name in values if name not in known]
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0], known, n=1)
        hint = f" Did you mean {near[0]}?" if near else f" Accepted are {', '.join(known)}."
        raise ConfigError(f"{cls.__name__} has no setting {unknown[0]!r}.{hint}")
    return cls(**values)


def checked(field: dataclasses.Field, kind: Any, value: Any) -> Any:
    """The value in its declared type, or a ConfigError. Whole numbers pass as floats; nothing else is converted."""
    if kind == tuple[int, ...]:
        if isinstance(value, (str, bytes)) or not hasattr(value, "__iter__"):
            raise ConfigError(f"{field.name} must be a sequence of whole numbers, such as (64, 64), not {value!r}.")
        return tuple(checked_number(field, int, item) for item in value)
    if kind is str:
        if value not in field.metadata["one_of"]:
            raise ConfigError(f"{field.name} must be one of {', '.join(field.metadata['one_of'])}, not {value!r}.")
        return value
    if kind is bool:
        if not isinstance(value, bool):
            raise ConfigError(f"{field.name} must be True or False, not {value!r} ({type(value).__name__}).")
        return value
    return checked_number(field, kind, value)


def checked_number(field: dataclasses.Field, kind: type, value: Any) -> Any:
    accepted = numbers.Integral if kind is int else numbers.Real
    what = "a whole number" if kind is int else "a number"
    if isinstance(value, bool) or not isinstance(value, accepted):
        raise ConfigError(f"{field.name} must be {what}, not {value!r} ({type(value).__name__}).")
    low, high = field.metadata["low"], field.metadata["high"]
    if not low <= value <= high or value == math.inf:
        top = str(high) if kind is int else f"{high:g}"
        limits = f"at least {low:g}" if high == math.inf else f"from {low:g} to {top}"
        raise ConfigError(f"{field.name} must be {limits}, not {value!r}.")
    return kind(value)
