"""What may be tried: valid Choices that differ from others in one slot, numbers of torch threads, and settings that are chunks.

A chunk is how much is done in one call. Of DQN's `update="chunked"` it is the updates of a round (`gradient_steps`): part of what
is learnt, and no free choice. Free are the env steps between two looks of the log (`log_frequency`), which the loops other than
Python's take in one call, and the parts in which PPO computes a minibatch (`gradient_accumulation`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from rlbench.envs.source import EnvSource
from rlbench.profiling.thread_probe import physical_cores
from rlbench.speedups import SPEEDUPS, ChoiceError, Choices
from rlbench.speedups.named import NAIVE, PLAIN_CPU
from rlbench.tuning.contender import Candidate

# They change numbers by more than rounding.
STATISTICAL = {
    (name, variant)
    for name, slot in SPEEDUPS.items()
    if slot.sameness == "statistical"
    for variant in slot.variants
    if variant != slot.plainest
}
LOG_FACTORS = (4, 16)  # times the rows of the history apart
PARTS = (1, 2, 4)  # of a PPO minibatch
# Left out unless asked for: they start processes, or are slow by design.
NAIVE_ONES = set(NAIVE.items()) - set(PLAIN_CPU.items())  # the slowest as a rule, tried when all else has been
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
        slots: the slots that may be changed; all of the trainer's, and the chunks, where left out.
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
        self.slots = [name for name in own if slots is None or name in slots]
        self.chunks = slots is None
        self.left_out = NEVER | (set() if slots and "environments" in slots else PROCESSES)
        self.left_out |= set() if statistical else STATISTICAL
        self.threads = tuple(dict.fromkeys(threads or (1, physical_cores())))
        self.plain, self.own_threads = Choices.plain(device), torch.get_num_threads()

    def starts(self) -> list[Choices]:
        """plain(), fast(), fast() but for its loop, and the loops, as far as they are free to be chosen."""
        fast, starts = Choices.fast(self.device), [self.plain]
        for named in (fast, fast.replace(loop="python")):
            own = {slot: variant for slot, variant in self.in_use(named).items() if slot in self.slots}
            choices = self.of({**self.plain.to_dict(), **own})
            starts += [] if choices is None else [choices]
        starts += list(self.neighbours(self.plain, "loop")) if "loop" in self.slots else []
        return list(dict.fromkeys(starts))

    def candidate(self, choices: Choices, threads: int, config: Any = None) -> Candidate:
        """With what it changes in the slots in use, threads and settings, against plain() and the run's."""
        config = self.config if config is None else config
        used, plain = self.in_use(choices), self.in_use(self.plain)
        changed: dict[str, Any] = {slot: variant for slot, variant in used.items() if plain.get(slot) != variant}
        if threads != self.own_threads:
            changed["threads"] = threads
        return Candidate(choices, threads, config, changed | settings_of(config, self.config))

    def exact(self, candidate: Candidate) -> bool:
        """Whether all that it changes leaves every bit of a DQN as it is.

        In PPO a slot's outcome may be the same and its rows be taken up in another order later, which rounds otherwise.
        """
        slots = {SPEEDUPS[name].sameness for name in candidate.changed if name in SPEEDUPS}
        return self.config.trainer == "dqn" and slots <= {"bitwise"} and "threads" not in candidate.changed

    def statistical(self, candidate: Candidate) -> bool:
        """Whether it has a variant that changes numbers by more than rounding."""
        return bool(set(self.in_use(candidate.choices).items()) & STATISTICAL)

    def chunked(self, candidate: Candidate) -> Iterator[Candidate]:
        """The same with other chunks."""
        config, choices = candidate.config, candidate.choices
        if not self.chunks:
            return
        if config.trainer == "ppo":
            parts = PARTS if choices.ppo_update != "native" else ()  # which cuts minibatches itself
            changes = [{"gradient_accumulation": n} for n in parts if n != config.gradient_accumulation]
        else:
            every = self.config.log_frequency
            wanted = [every, *(every * factor for factor in LOG_FACTORS)] if choices.loop != "python" else []
            most = max(every, self.config.total_timesteps // 10)
            changes = [{"log_frequency": n} for n in wanted if n <= most and n != config.log_frequency]
        for change in changes:
            yield self.candidate(choices, candidate.threads, config.replace(**change))

    def in_use(self, choices: Choices) -> dict[str, str]:
        usable = choices.usable(self.config, self.device, self.source)
        return usable.in_use(self.config, self.device, self.source)

    def neighbours(self, choices: Choices, slot: str, naive: bool = False) -> Iterator[Choices]:
        """Valid choices with another variant in that slot: naive()'s, or the others."""
        for variant in SPEEDUPS[slot].variants:
            if variant == choices.to_dict()[slot] or (slot, variant) in self.left_out:
                continue
            if ((slot, variant) in NAIVE_ONES) != naive:
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


def settings_of(config: Any, base: Any) -> dict[str, Any]:
    """The settings that differ from those of `base`."""
    names = [field.name for field in dataclasses.fields(base)]
    return {name: getattr(config, name) for name in names if getattr(config, name) != getattr(base, name)}
