"""Plans of a study: which ways to train are compared, and with which one.

A plan over Choices changes how it is computed, with `plain()` as the baseline. A plan over Configs changes what is learnt,
with the settings as given as the baseline.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rlbench.config import DQN_PRESETS, ConfigError, DQNConfig
from rlbench.speedups import SPEEDUPS, ChoiceError, Choices

BATCH_SIZES = (32, 128, 256)
WIDTHS = ((64, 64), (256, 256), (512, 512))
CHOICE_MODES = ("choices", "alone", "cumulative", "leave_one_out")
CONFIG_MODES = ("presets", "batch", "width")
MODES = CHOICE_MODES + CONFIG_MODES


@dataclass(frozen=True)
class Variant:
    """One way to train. `barred` is the reason why it cannot be used here, or None."""

    label: str
    choices: Choices
    config: DQNConfig
    barred: str | None = None


@dataclass(frozen=True)
class Plan:
    """Ways to train under one name; the first variant is the baseline of every ratio."""

    mode: str
    variants: tuple[Variant, ...]
    device: torch.device

    @property
    def baseline(self) -> Variant:
        return self.variants[0]


def plan(
    mode: str,
    config: DQNConfig,
    *,
    device: str | torch.device = "cpu",
    slots: Sequence[str] | None = None,
    choices: Choices | None = None,
) -> Plan:
    """The plan of that mode.

    Args:
        mode: "choices" (naive, plain, fast), "alone" (plain with one slot changed, every variant of it), "cumulative"
            (fast's variants added to plain one slot after another), "leave_one_out" (fast with one slot back at plain's);
            "presets" (the "fast" preset's changes), "batch" (batch_size) or "width" (hidden).
        config: the settings of all variants, or in the last three modes of the baseline.
        slots: the slots to change, in order; all where left out. For the three middle modes of Choices.
        choices: the Choices of every variant in the last three modes; plain() where left out.

    Raises:
        ConfigError, ChoiceError: for an unknown mode or slot, and for an argument that the mode would ignore.
    """
    where = torch.device(device)
    if mode not in MODES:
        raise ConfigError(f"study mode {mode!r} is unknown: accepted are {', '.join(MODES)}.")
    if slots is not None and mode not in CHOICE_MODES[1:]:
        raise ConfigError(f"study mode {mode!r} takes no slots: they belong to {', '.join(CHOICE_MODES[1:])}.")
    if choices is not None and mode not in CONFIG_MODES:
        raise ConfigError(f"study mode {mode!r} sets the choices itself: give them with {', '.join(CONFIG_MODES)}.")
    if mode in CONFIG_MODES:
        return Plan(mode, _config_variants(mode, config, choices or Choices.plain(where)), where)
    return Plan(mode, _choice_variants(mode, config, where, _checked_slots(slots)), where)


def _checked_slots(slots: Sequence[str] | None) -> tuple[str, ...]:
    for slot in slots or ():
        if slot not in SPEEDUPS:
            raise ChoiceError(f"there is no slot {slot!r}: slots are {', '.join(SPEEDUPS)}.")
    if slots is not None and not slots:
        raise ChoiceError(f"no slot is given: slots are {', '.join(SPEEDUPS)}; leave them out for all.")
    return tuple(SPEEDUPS) if slots is None else tuple(dict.fromkeys(slots))


def _choice_variants(mode: str, config: DQNConfig, device: torch.device, slots: Sequence[str]) -> tuple[Variant, ...]:
    plain, fast = Choices.plain(device), Choices.fast(device)
    made: list[tuple[str, Choices]] = [("plain", plain)]
    if mode == "choices":
        made += [("naive", Choices.naive()), ("fast", fast)]
    elif mode == "alone":
        for slot in slots:
            others = [variant for variant in SPEEDUPS[slot].variants if variant != plain.to_dict()[slot]]
            made += [(f"{slot}={variant}", plain.replace(**{slot: variant})) for variant in others]
    elif mode == "cumulative":
        made += _ladder(plain, fast, slots)
    else:
        made.append(("fast", fast))
        back = {slot: variant for slot, variant in plain.to_dict().items() if fast.to_dict()[slot] != variant}
        made += [(f"fast, {slot}={back[slot]}", fast.replace(**{slot: back[slot]})) for slot in slots if slot in back]
    if len(made) == 1:
        raise ChoiceError(f"study mode {mode!r}: fast() on {device} changes none of {', '.join(slots)}; name others.")
    return tuple(Variant(label, choices, config, _reason(choices, config, device)) for label, choices in made)


def _ladder(plain: Choices, fast: Choices, slots: Sequence[str]) -> list[tuple[str, Choices]]:
    rungs, choices = [], plain
    for slot in slots:
        variant = fast.to_dict()[slot]
        if variant != plain.to_dict()[slot]:
            choices = choices.replace(**{slot: variant})
            rungs.append((f"+ {slot}={variant}", choices))
    return rungs


def _reason(choices: Choices, config: DQNConfig, device: torch.device) -> str | None:
    try:
        choices.check("dqn", config, device)
    except ChoiceError as error:
        return str(error)
    return None


def _config_variants(mode: str, config: DQNConfig, choices: Choices) -> tuple[Variant, ...]:
    changes: list[dict[str, Any]]
    if mode == "presets":
        label: Callable[[dict], str] = lambda change: "preset fast"  # noqa: E731
        changes, base = [dict(DQN_PRESETS["fast"])], "as given"
    else:
        name, values = ("batch_size", BATCH_SIZES) if mode == "batch" else ("hidden", WIDTHS)
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


def changed(variant: Variant, baseline: Variant) -> dict[str, Any]:
    """What a variant changes against the baseline: settings and slots, with their values."""
    base = {**dataclasses.asdict(baseline.config), **baseline.choices.to_dict()}
    mine = {**dataclasses.asdict(variant.config), **variant.choices.to_dict()}
    return {name: value for name, value in mine.items() if value != base[name]}
