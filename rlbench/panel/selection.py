"""What the panel has chosen: the variants in its slots, what else could fill them, and whether that can be run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from rlbench.config import Config
from rlbench.envs.source import EnvSource
from rlbench.speedups import SPEEDUPS, ChoiceError, Choices
from rlbench.trainers.takes import why_not

NAMED = ("naive", "plain", "fast")


@dataclass(frozen=True)
class Slot:
    """What a dropdown shows.

    Attributes:
        offered: the variants that can be chosen.
        selected: the one chosen.
        left_out: the others, with the reason against each.
        unused: why the selected one is not used, or None.
        fixed: whether the slot would stay without use whatever were chosen in it.
    """

    name: str
    question: str
    offered: tuple[str, ...]
    selected: str
    left_out: Mapping[str, str]
    unused: str | None
    fixed: bool

    def remark(self) -> tuple[str, str]:
        """(what to show beside the dropdown, the same at length)."""
        if self.unused:
            return f"not used: {_first_clause(self.unused)}", self.unused
        if self.left_out:
            return _left_out_remark(self.left_out), "\n".join(self.left_out.values())
        return self.question, self.question


class Selection:
    """Choices for one workload on one env, edited slot by slot.

    `shown` has a variant for every slot; `choices` set those explicitly that are used, and those that the reader picked
    though they cannot be used, which `problem` tells.

    Args:
        workload: a trainer's name ("dqn", "ppo").
        choices: Choices, a mapping of slot to variant, naive, plain or fast, "slot=variant,...", or None for plain.
        slots: the slots that may be edited; all of the workload's where left out.
        source: the env, or None where it is not known: then nothing is said against a variant because of it.
    """

    def __init__(
        self,
        workload: str,
        choices: Choices | Mapping[str, str] | str | None,
        slots: Sequence[str] | None,
        config: Config,
        device: torch.device,
        source: EnvSource | None = None,
    ) -> None:
        self.workload, self.config, self.device, self.source = workload, config, device, source
        self.slots = _slots_of(workload, slots)
        self._memory: dict[Hashable, Any] = {}  # asking takes milliseconds, which would disturb a comparison
        given = choices_of(choices, device)
        self.plain = Choices.plain(device).usable(config, device, source)
        self.choices = given.usable(config, device, source)
        self.shown = self.choices.to_dict()
        self.picked = set(self.choices.explicit)
        self._used_by: dict[str, dict[str, str]] = {}  # named Choices that were asked for: what they use here
        for name in NAMED:
            if not given.explicit and given == Choices.named(name, device):
                self._used_by[name] = self.in_use()

    def select(self, slot: str, variant: str) -> None:
        """Fill a slot. Slots that this leaves without a use are no longer set explicitly."""
        if slot not in self.slots:
            raise ChoiceError(f"there is no slot {slot!r} in this panel: slots are {', '.join(self.slots)}.")
        self.picked.add(slot)
        self._fill({slot: variant})

    def use(self, name: str) -> None:
        """Fill the panel's slots as naive, plain or fast does, as far as each can be used here."""
        if name not in NAMED:
            raise ChoiceError(f"choices {name!r}: accepted are {', '.join(NAMED)}.")
        named = Choices.named(name, self.device).usable(self.config, self.device, self.source)
        self._used_by[name] = self.in_use(named)
        self.picked -= set(self.slots)
        self._fill({slot: named.to_dict()[slot] for slot in self.slots})

    def _fill(self, changes: Mapping[str, str]) -> None:
        """Change what is shown. A loop that has no use for the slots changed gives way to the Python loop."""
        shown = {**self.shown, **changes}
        if "loop" not in changes and any(self._in_the_way(shown["loop"], slot) for slot in changes):
            shown["loop"] = "python"
        wanted = Choices(**shown)

        def is_set(slot: str) -> bool:
            picked = slot in self.picked and not self._useless(slot, wanted)
            return picked or self._reason(slot, shown[slot], wanted) is None

        self.shown, self.choices = shown, Choices(**{slot: shown[slot] for slot in shown if is_set(slot)})

    def _in_the_way(self, loop: str, slot: str) -> bool:
        """Whether a loop does in its own way what a slot is about; not all trainers have a choice of loops."""
        return self.workload in SPEEDUPS["loop"].workloads and loop not in SPEEDUPS[slot].loops

    def _once(self, question: Hashable, ask: Callable[[], Any]) -> Any:
        """The answer to a question that config, device and env, which stay what they are, leave one answer to."""
        if question not in self._memory:
            self._memory[question] = ask()
        return self._memory[question]

    def _reason(self, slot: str, variant: str, choices: Choices | None) -> str | None:
        """Why a variant cannot be used beside these choices, or beside any for None; None where nothing speaks against it."""
        if choices is None:
            where = (self.config, self.device, self.source)
            return self._once((slot, variant), lambda: SPEEDUPS[slot].requires(variant, None, *where))
        question = (slot, variant, choices)
        return self._once(
            question, lambda: choices.reason_against(slot, variant, self.config, self.device, self.source)
        )

    def _useless(self, slot: str, choices: Choices) -> bool:
        """Whether no variant of the slot would be used beside these choices."""
        return all(self._reason(slot, variant, choices) for variant in SPEEDUPS[slot].variants)

    def slot(self, name: str) -> Slot:
        """What a dropdown shows. A variant that cannot be used here is offered only while it is selected."""
        speedup, selected, wanted = SPEEDUPS[name], self.shown[name], Choices(**self.shown)
        alone = {variant: self._reason(name, variant, None) for variant in speedup.variants}
        left_out = {variant: reason for variant, reason in alone.items() if reason}
        offered = tuple(v for v in speedup.variants if v not in left_out or v == selected)
        unused, in_the_way = self._reason(name, selected, wanted), self._in_the_way(wanted.loop, name)
        if name in self.choices.explicit and not self._useless(name, wanted):
            unused = None  # a problem, which has a sentence of its own
        fixed = self._useless(name, wanted.replace(loop="python") if in_the_way else wanted)
        if unused and len(left_out) == len(speedup.variants):
            unused = left_out[selected]  # whatever the loop
        elif unused and in_the_way and not fixed:
            unused = f"{_first_clause(unused)}; choosing a variant here takes loop='python'"
        return Slot(name, speedup.question, offered, selected, left_out, unused, fixed)

    def problem(self) -> str | None:
        """Why these choices cannot be run, in a sentence, or None."""
        return self._once((self.choices, self.choices.explicit), lambda: self._problem(self.choices))

    def _problem(self, choices: Choices) -> str | None:
        if reason := why_not(self.workload, self.source):
            return reason
        try:
            choices.check(self.workload, self.config, self.device, self.source)
        except ChoiceError as error:
            return str(error)
        return None

    def in_use(self, choices: Choices | None = None) -> dict[str, str]:
        asked = choices or self.choices
        return dict(self._once(asked, lambda: asked.in_use(self.config, self.device, self.source)))

    @property
    def name(self) -> str | None:
        """naive, plain or fast where these choices compute the same way here, else None."""
        mine = self.in_use()
        used = {name: self.in_use(Choices.named(name, self.device)) for name in NAMED}
        used |= {"plain": self.in_use(self.plain), **self._used_by}
        return next((name for name in NAMED if mine == used[name]), None)

    def changes(self) -> dict[str, str]:
        """The variants in use that are not plain's."""
        plain = self.plain.to_dict()
        return {slot: variant for slot, variant in self.in_use().items() if variant != plain[slot]}

    @property
    def label(self) -> str:
        return self.name or ", ".join(f"{slot}={variant}" for slot, variant in self.changes().items())

    def choices_table(self) -> pd.DataFrame:
        """One row a slot: the variant selected, plain's, and a remark where the slot is not used or variants are missing."""
        plain = self.plain.to_dict()
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


def _left_out_remark(left_out: Mapping[str, str]) -> str:
    """The variants left out with the reason; reasons that differ in the variant's name alone are told once."""
    groups: dict[str, list[str]] = {}
    for variant, reason in left_out.items():
        groups.setdefault(_first_clause(reason).removeprefix(variant), []).append(variant)
    told = (f"without {', '.join(names)}: {_first_clause(left_out[names[0]])}" for names in groups.values())
    return "; ".join(told)


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
