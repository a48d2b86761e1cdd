"""What may be tried: valid Choices that differ from others in one slot, and numbers of torch threads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from rlbench.envs.source import EnvSource
from rlbench.profiling.thread_probe import physical_cores
from rlbench.speedups import SPEEDUPS, ChoiceError, Choices
from rlbench.tuning.contender import Candidate

# Worth trying first: what most of a training goes through.
ORDER = (
    *(
        "loop",
        "update",
        "ppo_update",
        "environments",
        "games",
        "evaluate",
        "optimizer",
        "replay",
        "conversion",
        "minibatch",
    ),
    *(
        "features",
        "market_io",
        "gae",
        "old_log_probs",
        "upload",
        "action_encoding",
        "priorities",
        "metrics",
        "transfer",
    ),
)
# Left out unless asked for: they change numbers by more than rounding, or are slow by design, or start processes.
STATISTICAL = {("precision", "bfloat16"), ("precision", "float16_scaled"), ("precision", "tf32")}
PROCESSES = {("environments", "async")}
NEVER = {
    ("metrics", "item_each_step"),
    ("backend", "empty_cache_each_epoch"),
    ("market_io", "read_each_episode"),
    ("features", "per_step"),
}


class Space:
    """All that may be tried for one training.

    Args:
        slots: the slots that may be changed; all of the trainer's where left out.
        statistical: whether variants that change numbers by more than rounding may be tried.
        threads: numbers of torch threads; 1 and the physical cores where left out.
    """

    def __init__(
        self,
        config: Any,
        source: EnvSource,
        device: torch.device,
        *,
        slots: Sequence[str] | None = None,
        statistical: bool = False,
        threads: Sequence[int] | None = None,
    ) -> None:
        self.config, self.source, self.device = config, source, device
        own = [name for name, slot in SPEEDUPS.items() if config.trainer in slot.workloads]
        unknown = set(slots or ()) - set(own)
        if unknown:
            raise ChoiceError(f"{config.trainer} has no slot {', '.join(sorted(unknown))}: slots are {', '.join(own)}.")
        wanted = own if slots is None else [name for name in own if name in slots]
        self.slots = sorted(wanted, key=lambda name: ORDER.index(name) if name in ORDER else len(ORDER))
        self.left_out = set() if statistical else STATISTICAL
        self.left_out = self.left_out | NEVER | (set() if slots and "environments" in slots else PROCESSES)
        self.threads = tuple(dict.fromkeys(threads or (1, physical_cores())))
        self.plain = Choices.plain(device)

    def candidate(self, choices: Choices, threads: int) -> Candidate:
        """With what it changes in the slots in use, against plain()."""
        used, plain = self.in_use(choices), self.in_use(self.plain)
        changed: dict[str, Any] = {slot: variant for slot, variant in used.items() if plain.get(slot) != variant}
        if threads != torch.get_num_threads():
            changed["threads"] = threads
        return Candidate(choices, threads, self.config, changed)

    def in_use(self, choices: Choices) -> dict[str, str]:
        usable = choices.usable(self.config, self.device, self.source)
        return usable.in_use(self.config, self.device, self.source)

    def neighbours(self, choices: Choices, slot: str) -> Iterator[Choices]:
        """Valid choices with another variant in that slot."""
        for variant in SPEEDUPS[slot].variants:
            if variant == choices.to_dict()[slot] or (slot, variant) in self.left_out:
                continue
            changed = self.of({**choices.to_dict(), slot: variant})
            if changed is not None and self.in_use(changed).get(slot) == variant:
                yield changed

    def of(self, variants: dict[str, str]) -> Choices | None:
        """These variants as choices; None where the trainer could not run by them as they are."""
        plain = self.plain.to_dict()
        choices = self.plain.replace(**{slot: v for slot, v in variants.items() if plain[slot] != v})
        loop = choices.loop
        if self.config.trainer == "dqn" and loop != "python":  # what the loop does in its own way is left at plain's
            own = {s: v for s, v in variants.items() if loop in SPEEDUPS[s].loops or s == "loop"}
            choices = self.plain.replace(**{slot: v for slot, v in own.items() if plain[slot] != v})
        for slot in choices.explicit:
            if choices.reason_against(slot, choices.to_dict()[slot], self.config, self.device, self.source):
                return None
        return choices
