"""What a study compares: ways to train, the first of them the baseline."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import torch

from rlbench.config import Config
from rlbench.envs.source import EnvSource
from rlbench.speedups import ChoiceError, Choices


@dataclass(frozen=True)
class Variant:
    """One way to train. `barred` is the reason why it cannot be used here, or None."""

    label: str
    choices: Choices
    config: Config
    barred: str | None = None

    def in_use(self, device: torch.device, source: EnvSource | None) -> dict[str, str]:
        """The slots that a training on that device and env uses, with their variants."""
        return self.choices.usable(self.config, device, source).in_use(self.config, device, source)

    def reason(self, device: torch.device, source: EnvSource | None) -> str | None:
        """Why it cannot be used on that device and env, or None."""
        try:
            self.choices.usable(self.config, device, source).check(self.config.trainer, self.config, device, source)
        except ChoiceError as error:
            return str(error)
        return None


@dataclass(frozen=True)
class Plan:
    """Ways to train under one name; the first variant is the baseline of every ratio.

    `left_out` names, a sentence each, what the mode would have compared and what would have changed nothing.
    """

    mode: str
    variants: tuple[Variant, ...]
    device: torch.device
    left_out: tuple[str, ...] = ()

    @property
    def baseline(self) -> Variant:
        return self.variants[0]

    def on(self, source: EnvSource | None) -> Plan:
        """This plan, with those variants barred that cannot be used on the env.

        The baseline is left for the trainer to refuse: without it there is no study.
        """
        others = (
            dataclasses.replace(variant, barred=variant.barred or variant.reason(self.device, source))
            for variant in self.variants[1:]
        )
        return dataclasses.replace(self, variants=(self.baseline, *others))


def changed(variant: Variant, baseline: Variant, device: torch.device, source: EnvSource | None) -> dict[str, Any]:
    """What a variant changes against the baseline: settings and slots in use, with their values."""

    def values(way: Variant) -> dict[str, Any]:
        asked = {slot: way.choices.to_dict()[slot] for slot in way.choices.explicit}  # what is barred is not in use
        return {**dataclasses.asdict(way.config), **asked, **way.in_use(device, source)}

    base = values(baseline)
    return {name: value for name, value in values(variant).items() if name not in base or value != base[name]}
