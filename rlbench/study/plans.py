"""Plans of a study: which ways to train are compared, and with which one.

A plan over Choices changes how it is computed, with `plain()` as the baseline. A plan over Configs changes what is learnt,
with the settings as given as the baseline.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rlbench.config import Config, ConfigError
from rlbench.envs.source import EnvSource, env_source
from rlbench.speedups import ChoiceError, Choices
from rlbench.study.choice_modes import choice_plan, slots_of
from rlbench.study.variants import Plan, Variant
from rlbench.trainers.takes import check_takes

# The modes that change one setting: its name and its values, by trainer.
WIDTHS = ((64, 64), (256, 256), (512, 512))
SWEPT: dict[str, dict[str, tuple[str, tuple[Any, ...]]]] = {
    "batch": {"dqn": ("batch_size", (32, 128, 256)), "ppo": ("batch_size", (128, 256, 1024))},
    "width": {"dqn": ("hidden", WIDTHS), "ppo": ("hidden", WIDTHS)},
    "epochs": {"ppo": ("update_epochs", (2, 4, 8))},
    "rollout": {"ppo": ("num_steps", (32, 128, 512))},
}
CHOICE_MODES = ("choices", "alone", "cumulative", "leave_one_out")
CONFIG_MODES = ("presets", *SWEPT)
MODES = CHOICE_MODES + CONFIG_MODES


def plan(
    mode: str,
    config: Config,
    *,
    device: str | torch.device = "cpu",
    slots: Sequence[str] | None = None,
    choices: Choices | None = None,
    env: Any = None,
) -> Plan:
    """The plan of that mode.

    Args:
        mode: "choices" (naive, plain, fast), "alone" (plain with one slot changed, every variant of it), "cumulative"
            (fast's variants added to plain one slot after another), "leave_one_out" (fast with one slot back at plain's);
            "presets" (the "fast" preset's changes), "batch" (batch_size) or "width" (hidden); of PPO also "epochs"
            (update_epochs) and "rollout" (num_steps).
        config: the settings of all variants, or in the modes of settings of the baseline; a `DQNConfig` or a `PPOConfig`, which
            says what trains.
        slots: the slots to change, in order; all that the trainer has where left out. For the three middle modes of Choices.
        choices: the Choices of every variant in the modes of settings; plain() where left out.
        env: what will be trained on, as for `DQN` or `PPO`, or its `EnvSource`. Where left out, it is `study` that bars what its
            env cannot use, and a slot that would change nothing there is not known.

    Raises:
        ConfigError, ChoiceError: for an unknown mode or slot, or one that the trainer does not have, for an argument that the
            mode would ignore, for choices that cannot be used, and where nothing is left to compare.
        EnvError: for an env that the trainer does not take.
    """
    where = torch.device(device)
    if mode not in MODES:
        raise ConfigError(f"study mode {mode!r} is unknown: accepted are {', '.join(MODES)}.")
    if mode in SWEPT and config.trainer not in SWEPT[mode]:
        own = [name for name in MODES if name not in SWEPT or config.trainer in SWEPT[name]]
        raise ConfigError(f"study mode {mode!r} is not for {config.trainer}: accepted are {', '.join(own)}.")
    if slots is not None and mode not in CHOICE_MODES[1:]:
        raise ConfigError(f"study mode {mode!r} takes no slots: they belong to {', '.join(CHOICE_MODES[1:])}.")
    if choices is not None and mode not in CONFIG_MODES:
        raise ConfigError(f"study mode {mode!r} sets the choices itself: give them with {', '.join(CONFIG_MODES)}.")
    source = env if env is None or isinstance(env, EnvSource) else env_source(env)
    check_takes(config.trainer, source)
    if mode not in CONFIG_MODES:
        return choice_plan(mode, config, where, source, _checked_slots(slots, config.trainer))
    made = Plan(mode, _config_variants(mode, config, choices or Choices.plain(where)), where)
    if reason := made.baseline.reason(where, source):
        raise ChoiceError(reason)
    return made.on(source)


def _checked_slots(slots: Sequence[str] | None, trainer: str) -> tuple[str, ...] | None:
    known = slots_of(trainer)
    for slot in slots or ():
        if slot not in known:
            raise ChoiceError(f"{trainer} has no slot {slot!r}: slots are {', '.join(known)}.")
    if slots is not None and not slots:
        raise ChoiceError(f"no slot is given: slots are {', '.join(known)}; leave them out for all.")
    return None if slots is None else tuple(dict.fromkeys(slots))


def _config_variants(mode: str, config: Config, choices: Choices) -> tuple[Variant, ...]:
    changes: list[dict[str, Any]]
    if mode == "presets":
        label: Callable[[dict], str] = lambda change: "preset fast"  # noqa: E731
        changes, base = [dict(config.PRESETS["fast"])], "as given"
    else:
        name, values = SWEPT[mode][config.trainer]
        label = lambda change: f"{name}={_short(change[name])}"  # noqa: E731
        changes, base = [{name: value} for value in values], label({name: getattr(config, name)})
    made = [Variant(base, choices, config)]
    for change in changes:
        other = config.replace(**change)
        if other != config:
            made.append(Variant(label(change), choices, other))
    if len(made) == 1:
        raise ConfigError(
            f"study mode {mode!r}: the settings given are those of the preset, nothing is left to compare."
        )
    return tuple(made)


def _short(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
