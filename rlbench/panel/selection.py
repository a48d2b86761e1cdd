"""What the panel has chosen: the variants in its slots, what else could fill them, and whether that can be run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from rlbench.config import DQNConfig
from rlbench.speedups import SPEEDUPS, ChoiceError, Choices

NAMED = ("naive", "plain", "fast")


@dataclass(frozen=True)
class Slot:
    """A dropdown: the variants offered, the one selected, why others are left out, and why the slot is not used."""

    name: str
    question: str
    offered: tuple[str, ...]
    selected: str
    left_out: Mapping[str, str]
    unused: str | None

    def remark(self) -> tuple[str, str]:
        """(what to show beside the dropdown, the same at length)."""
        if self.unused:
            return f"not used: {_first_clause(self.unused)}", self.unused
        if self.left_out:
            reason = next(iter(self.left_out.values()))
            names = ", ".join(self.left_out)
            return f"without {names}: {_first_clause(reason)}", "\n".join(self.left_out.values())
        return self.question, self.question


class Selection:
    """Choices for one workload, edited slot by slot.

    Args:
        workload: a trainer's name ("dqn").
        choices: Choices, a mapping of slot to variant, naive, plain or fast, "slot=variant,...", or None for plain.
        slots: the slots that may be edited; all of the workload's where left out.
    """

    def __init__(
        self,
        workload: str,
        choices: Choices | Mapping[str, str] | str | None,
        slots: Sequence[str] | None,
        config: DQNConfig,
        device: torch.device,
    ) -> None:
        self.workload, self.config, self.device = workload, config, device
        self.slots = _slots_of(workload, slots)
        self.choices = choices_of(choices, device)

    def select(self, slot: str, variant: str) -> None:
        """Fill a slot. Slots that this leaves without a use are no longer set explicitly."""
        if slot not in self.slots:
            raise ChoiceError(f"there is no slot {slot!r} in this panel: slots are {', '.join(self.slots)}.")
        self._set({**self.choices.to_dict(), slot: variant})

    def use(self, name: str) -> None:
        """Fill the panel's slots as naive, plain or fast does."""
        if name not in NAMED:
            raise ChoiceError(f"choices {name!r}: accepted are {', '.join(NAMED)}.")
        named = Choices.named(name, self.device).to_dict()
        self._set({**self.choices.to_dict(), **{slot: named[slot] for slot in self.slots}})

    def _set(self, variants: Mapping[str, str]) -> None:
        wanted = Choices(**variants)
        self.choices = Choices(**{s: v for s, v in variants.items() if self._unused(s, wanted) is None})

    def _reason(self, slot: str, variant: str, choices: Choices | None) -> str | None:
        if choices is None:
            return SPEEDUPS[slot].requires(variant, None, self.config, self.device, None)
        return choices.reason_against(slot, variant, self.config, self.device)

    def _unused(self, slot: str, choices: Choices) -> str | None:
        """Why no variant of the slot would be used beside these choices, or None."""
        reasons = [self._reason(slot, variant, choices) for variant in SPEEDUPS[slot].variants]
        return reasons[0] if all(reasons) else None

    def slot(self, name: str) -> Slot:
        """What a dropdown shows. A variant that this machine cannot run is offered only while it is selected."""
        speedup, selected = SPEEDUPS[name], self.choices.to_dict()[name]
        barred = {variant: self._reason(name, variant, None) for variant in speedup.variants}
        left_out = {variant: reason for variant, reason in barred.items() if reason}
        offered = tuple(v for v in speedup.variants if v not in left_out or v == selected)
        return Slot(name, speedup.question, offered, selected, left_out, self._unused(name, self.choices))

    def problem(self) -> str | None:
        """Why these choices cannot be run, in a sentence, or None."""
        try:
            self.choices.check(self.workload, self.config, self.device)
        except ChoiceError as error:
            return str(error)
        return None

    def in_use(self, choices: Choices | None = None) -> dict[str, str]:
        return (choices or self.choices).in_use(self.config, self.device)

    @property
    def name(self) -> str | None:
        """naive, plain or fast where these choices compute the same way, else None."""
        mine = self.in_use()
        return next((n for n in NAMED if mine == self.in_use(Choices.named(n, self.device))), None)

    def changes(self) -> dict[str, str]:
        """The variants in use that are not plain's."""
        plain = Choices.plain(self.device).to_dict()
        return {slot: variant for slot, variant in self.in_use().items() if variant != plain[slot]}

    @property
    def label(self) -> str:
        return self.name or ", ".join(f"{slot}={variant}" for slot, variant in self.changes().items())

    def choices_table(self) -> pd.DataFrame:
        """One row a slot: the variant selected, plain's, and a remark where the slot is not used or variants are missing."""
        plain = Choices.plain(self.device).to_dict()
        rows = [(name, variant, plain[name], remark) for name, variant, _, remark in self.state_rows()]
        return pd.DataFrame(rows, columns=["slot", "selected", "plain", "remark"])

    def state_rows(self) -> list[tuple[str, str, bool, str]]:
        """(slot, variant or "not used", True where it is not plain's, remark), a row each."""
        changes, rows = self.changes(), []
        for slot in map(self.slot, self.slots):
            remark = slot.remark()[0] if slot.unused or slot.left_out else ""
            shown = "not used" if slot.unused else slot.selected
            rows.append((slot.name, shown, slot.name in changes, remark.removeprefix("not used: ")))
        return rows


def _first_clause(reason: str) -> str:
    """Reasons say why, then what to do instead; the latter is there to be seen in the dropdown."""
    return reason.split(";", 1)[0]


def choices_of(choices: Choices | Mapping[str, str] | str | None, device: torch.device) -> Choices:
    """Choices from what a parameters cell may hold: a text names them, or lists "slot=variant" between commas."""
    if choices is None:
        return Choices.plain(device)
    if isinstance(choices, Choices):
        return choices
    if isinstance(choices, str):
        if "=" not in choices:
            return Choices.named(choices, device)
        pairs = [part.partition("=")[::2] for part in choices.split(",") if part.strip()]
        choices = {slot.strip(): variant.strip() for slot, variant in pairs}
    return Choices.plain(device).replace(**choices)


def _slots_of(workload: str, slots: Sequence[str] | None) -> tuple[str, ...]:
    workloads = sorted({name for speedup in SPEEDUPS.values() for name in speedup.workloads})
    if workload not in workloads:
        raise ChoiceError(f"there is no workload {workload!r}: workloads are {', '.join(workloads)}.")
    known = tuple(name for name, speedup in SPEEDUPS.items() if workload in speedup.workloads)
    for slot in slots or ():
        if slot not in known:
            raise ChoiceError(f"there is no slot {slot!r} of {workload}: slots are {', '.join(known)}.")
    return known if slots is None else tuple(slots)
