"""The modes of a study that compare Choices, with `plain()` as the baseline.

No two of their variants compute the same: a slot that is not used here, and a rung that changes nothing that is used, are
left out with a line that says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch

from rlbench.config import Config
from rlbench.envs.source import EnvSource
from rlbench.speedups import SPEEDUPS, ChoiceError, Choices
from rlbench.study.variants import Plan, Variant

# The last slots of a ladder: an update may have an Adam of its own, and a loop has its own way of everything.
LAST = ("optimizer", "update", "ppo_update", "loop")


def slots_of(trainer: str) -> tuple[str, ...]:
    """The slots that a trainer has, in the order in which a transition passes them."""
    return tuple(name for name, slot in SPEEDUPS.items() if trainer in slot.workloads)


def choice_plan(
    mode: str, config: Config, device: torch.device, source: EnvSource | None, slots: Sequence[str] | None
) -> Plan:
    """The plan of mode "choices", "alone", "cumulative" or "leave_one_out"; `slots` None changes all of the trainer's.

    Raises ChoiceError where nothing is left to compare.
    """
    ways = _Ways(config, device, source)
    fast, every = Choices.fast(device), slots_of(config.trainer)
    ways.add("plain", ways.plain)
    if mode == "choices":
        ways.add("naive", Choices.naive())
        ways.add("fast", fast)
    elif mode == "alone":
        ways.alone(slots or every)
    elif mode == "cumulative":
        in_order = sorted(every, key=lambda slot: LAST.index(slot) if slot in LAST else -1)
        ways.cumulative(fast.usable(config, device, source), slots or in_order)
    else:
        ways.add("fast", fast)
        ways.leave_one_out(fast.usable(config, device, source), slots or every)
    left_out = ways.left_out()
    if len(ways.made) == 1:
        why = "; ".join(left_out) or f"fast() on {device} changes none of {', '.join(slots or every)}"
        raise ChoiceError(f"study mode {mode!r} has nothing to compare: {why}; name other slots.")
    return Plan(mode, tuple(ways.made), device, left_out)


@dataclass
class _Ways:
    """Ways to train on one device and env, gathered."""

    config: Config
    device: torch.device
    source: EnvSource | None
    made: list[Variant] = field(default_factory=list)
    same: list[str] = field(default_factory=list)  # sentences about those that compute as another does
    idle: dict[str, list[str]] = field(default_factory=dict)  # slots without use here, by reason

    @property
    def plain(self) -> Choices:
        return Choices.plain(self.device)

    def add(self, label: str, choices: Choices) -> None:
        """One more variant, unless it computes as an earlier one does."""
        variant = Variant(label, choices, self.config)
        reason = variant.reason(self.device, self.source)
        mine = None if reason else variant.in_use(self.device, self.source)
        for other in self.made:
            if mine is not None and other.barred is None and mine == other.in_use(self.device, self.source):
                self.same.append(f"{label}: computes as {other.label} does here")
                return
        self.made.append(Variant(label, choices, self.config, reason))

    def alone(self, slots: Sequence[str]) -> None:
        """plain() with one slot changed."""
        for slot in slots:
            if reason := self._no_use(slot, self.plain):
                self._is_idle(slot, reason)
                continue
            for variant in SPEEDUPS[slot].variants:
                if variant != self.plain.to_dict()[slot]:
                    self.add(f"{slot}={variant}", self.plain.replace(**{slot: variant}))

    def cumulative(self, fast: Choices, slots: Sequence[str]) -> None:
        """fast's variants added to plain() one after another."""
        variants = self.plain.to_dict()
        for slot in slots:
            if fast.to_dict()[slot] == variants[slot]:
                continue
            if reason := self._no_use(slot, self.plain):
                self._is_idle(slot, reason)
            else:
                variants[slot] = fast.to_dict()[slot]
                self.add(f"+ {slot}={variants[slot]}", self._setting_what_is_used(variants))

    def leave_one_out(self, fast: Choices, slots: Sequence[str]) -> None:
        """fast with one slot back at plain's variant."""
        for slot in slots:
            back, variant = self.plain.to_dict()[slot], fast.to_dict()[slot]
            if back == variant:
                continue
            reason = fast.reason_against(slot, variant, self.config, self.device, self.source)
            if reason:
                self._is_idle(slot, reason)
            else:
                self.add(f"fast, {slot}={back}", fast.replace(**{slot: back}))

    def _no_use(self, slot: str, choices: Choices) -> str | None:
        """Why no variant of a slot would be used beside these choices, or None."""
        where = (self.config, self.device, self.source)
        reasons = [choices.reason_against(slot, variant, *where) for variant in SPEEDUPS[slot].variants]
        return reasons[0] if all(reasons) else None

    def _setting_what_is_used(self, variants: Mapping[str, str]) -> Choices:
        """plain() with those variants set that are used beside the others: a trainer refuses the rest."""
        used = Choices(**variants).in_use(self.config, self.device, self.source)
        return self.plain.replace(**{s: v for s, v in used.items() if v != self.plain.to_dict()[s]})

    def _is_idle(self, slot: str, reason: str) -> None:
        self.idle.setdefault(reason.partition(";")[0], []).append(slot)

    def left_out(self) -> tuple[str, ...]:
        return (*(f"{', '.join(slots)}: {reason}" for reason, slots in self.idle.items()), *self.same)
