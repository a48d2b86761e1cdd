"""How it is computed: one variant a slot."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from rlbench.notices import say_once
from rlbench.speedups.named import FAST_CPU, FAST_CUDA, NAIVE, PLAIN_CPU, PLAIN_CUDA
from rlbench.speedups.speedup import Speedup


class ChoiceError(ValueError):
    """A choice that cannot be used; the message names the slot, the variant and what is accepted."""


class Choices:
    """Immutable mapping of slot to variant. Slots that are not named take plain()'s variant.

    `Choices(replay="deque").replay` is "deque"; `explicit` holds the slots that were named, which a trainer must either use
    or refuse.
    """

    _variants: dict[str, str]
    explicit: frozenset[str]

    def __init__(self, **variants: str) -> None:
        self._fill(PLAIN_CPU, variants)

    def _fill(self, base: Mapping[str, str], named: Mapping[str, str], explicit: frozenset[str] = frozenset()) -> None:
        for slot, variant in named.items():
            _check_name(slot, variant)
        object.__setattr__(self, "_variants", {**base, **named})
        object.__setattr__(self, "explicit", explicit | frozenset(named))

    @classmethod
    def _of(cls, base: Mapping[str, str], named: Mapping[str, str], explicit: frozenset[str] = frozenset()) -> Choices:
        choices = cls.__new__(cls)
        choices._fill(base, named, explicit)
        return choices

    @classmethod
    def naive(cls) -> Choices:
        """What the sources call "before"."""
        return cls._of(NAIVE, {})

    @classmethod
    def plain(cls, device: str | torch.device = "cpu") -> Choices:
        """What a competent author writes in eager PyTorch: the baseline of every headline ratio."""
        return cls._of(PLAIN_CUDA if torch.device(device).type == "cuda" else PLAIN_CPU, {})

    @classmethod
    def fast(cls, device: str | torch.device = "cpu") -> Choices:
        """The best valid combination for a device. None of its variants is a statistical one."""
        return cls._of(FAST_CUDA if torch.device(device).type == "cuda" else FAST_CPU, {})

    @classmethod
    def named(cls, name: str, device: str | torch.device = "cpu") -> Choices:
        """naive, plain or fast, or the path of a file that `save` wrote."""
        makers = {"naive": cls.naive, "plain": lambda: cls.plain(device), "fast": lambda: cls.fast(device)}
        if name in makers:
            return makers[name]()
        if Path(name).is_file():
            return cls.load(name)
        raise ChoiceError(f"choices {name!r}: neither naive, plain or fast, nor a file.")

    def replace(self, **variants: str) -> Choices:
        """These choices with some slots set explicitly."""
        return self._of(self._variants, variants, self.explicit)

    def __getattr__(self, slot: str) -> str:
        try:
            return object.__getattribute__(self, "_variants")[slot]
        except KeyError:
            raise AttributeError(f"there is no slot {slot!r}: slots are {', '.join(PLAIN_CPU)}.") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"Choices cannot be changed: use choices.replace({name}={value!r}).")

    def __iter__(self) -> Iterator[str]:
        return iter(self._variants)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Choices) and self._variants == other._variants

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._variants.items())))

    def __repr__(self) -> str:
        return f"Choices({', '.join(f'{slot}={variant!r}' for slot, variant in self._variants.items())})"

    def __reduce__(self) -> tuple:
        return Choices._of, (self._variants, {}, self.explicit)

    def to_dict(self) -> dict[str, str]:
        return dict(self._variants)

    def in_use(self, config: Any = None, device: str | torch.device = "cpu", env: Any = None) -> dict[str, str]:
        """The slots that a trainer uses on that device and env (an `EnvSource`), with their variants."""
        return {s: v for s, v in self._variants.items() if self.reason_against(s, v, config, device, env) is None}

    def reason_against(
        self, slot: str, variant: str, config: Any = None, device: str | torch.device = "cpu", env: Any = None
    ) -> str | None:
        """Why a variant cannot be used, or would be ignored, beside these choices; None where nothing speaks against it."""
        speedup, trainer = _speedups()[slot], getattr(config, "trainer", None)
        if trainer is not None and trainer not in speedup.workloads:
            return f"{trainer} has no such slot; leave it out"
        if _has_loops(speedup, trainer) and self.loop not in speedup.loops:
            return f"loop={self.loop!r} does this in its own way; leave this slot out"
        return speedup.requires(variant, self, config, torch.device(device), env)

    def usable(self, config: Any, device: str | torch.device, env: Any = None) -> Choices:
        """These choices, with plain()'s variant where one that was not set explicitly cannot be used here.

        Steps back are told once a process, those for one reason together.
        """
        where, told = torch.device(device), {}
        kept = self._without_idle_loop(told, config)

        def reason(slot: str, variant: str) -> str | None:
            return _speedups()[slot].requires(variant, None, config, where, env)

        trainer = getattr(config, "trainer", None)
        for slot, variant in kept.items():
            if slot in self.explicit or trainer not in (None, *_speedups()[slot].workloads):
                continue
            why = reason(slot, variant)
            speedup = _speedups()[slot]
            first = [Choices.plain(where)._variants[slot], *filter(None, [speedup.fallback])]
            others = [*first, *speedup.variants] if why else []
            usable = next((other for other in others if reason(slot, other) is None), None)
            if usable is not None:
                told.setdefault(why.partition("; accepted here")[0], []).append(
                    f"{slot}={usable!r} instead of {variant!r}"
                )
                kept[slot] = usable
        for why, steps in told.items():
            say_once(f"{', '.join(sorted(steps))}: {why}.")
        return self._of(kept, {}, self.explicit)

    def _without_idle_loop(self, told: dict[str, list[str]], config: Any) -> dict[str, str]:
        """The variants, with the Python loop in place of one that has no use for a slot that was set explicitly."""
        trainer, slots = getattr(config, "trainer", None), _speedups()
        own = [slot for slot in sorted(self.explicit) if _has_loops(slots[slot], trainer)]
        unused = [slot for slot in own if self.loop not in slots[slot].loops]
        if not unused or "loop" in self.explicit:
            return dict(self._variants)
        why = f"{', '.join(f'{slot}={self._variants[slot]!r}' for slot in unused)} would be ignored by it"
        told[why] = [f"loop='python' instead of {self.loop!r}"]
        return {**self._variants, "loop": "python"}

    def check(self, workload: str, config: Any, device: str | torch.device, env: Any = None) -> None:
        """Refuse what cannot work or would be ignored.

        Raises:
            ChoiceError: naming slot, variant, reason, and what is accepted.
        """
        for slot in sorted(self.explicit):
            if workload not in _speedups()[slot].workloads:
                raise ChoiceError(f"{slot}={self._variants[slot]!r}: {workload} has no such slot; leave it out.")
            reason = self.reason_against(slot, self._variants[slot], config, device, env)
            if reason:
                raise ChoiceError(f"{slot}={self._variants[slot]!r} cannot be used: {reason}.")

    def save(self, path: str | Path, config: Any = None, device: str | torch.device = "cpu", env: Any = None) -> None:
        """Write the slots in use for that config, device and env, as YAML that `load` and `--choices FILE` take."""
        from rlbench.files import write_text

        used = self.in_use(config, device, env)
        write_text(path, "".join(f"{slot}: {variant}\n" for slot, variant in used.items()))

    @classmethod
    def load(cls, path: str | Path) -> Choices:
        """Read `slot: variant` lines (YAML's simplest form) or a JSON object."""
        text = Path(path).read_text(encoding="utf-8")
        if text.lstrip().startswith("{"):
            try:
                return cls(**json.loads(text))
            except ChoiceError as error:
                raise ChoiceError(f"{path}: {error}") from error
            except (json.JSONDecodeError, TypeError) as error:
                raise ChoiceError(f"{path}: not a JSON object of slots and variants ({error}).") from error
        variants: dict[str, str] = {}
        for number, line in enumerate(text.splitlines(), start=1):
            line = line.split("#", 1)[0].strip()
            if not line:
                continue
            slot, colon, variant = (part.strip().strip("\"'") for part in line.partition(":"))
            if not colon or not variant:
                raise ChoiceError(f"{path}, line {number}: {line!r} is not of the form `slot: variant`.")
            if slot in variants:
                raise ChoiceError(f"{path}, line {number}: {slot} is set a second time; once is accepted.")
            variants[slot] = variant
        try:
            return cls(**variants)
        except ChoiceError as error:
            raise ChoiceError(f"{path}: {error}") from error


def _has_loops(speedup: Speedup, trainer: str | None) -> bool:
    """Whether a slot belongs to the trainer that has a choice of loops, as far as is known."""
    return trainer in (None, "dqn") and "dqn" in speedup.workloads


def _speedups() -> dict[str, Speedup]:
    from rlbench.speedups import SPEEDUPS  # the package imports this file

    return SPEEDUPS


def _check_name(slot: str, variant: Any) -> None:
    speedups = _speedups()
    if slot not in speedups:
        near = difflib.get_close_matches(slot, speedups, n=1)
        raise ChoiceError(
            f"there is no slot {slot!r}: {'did you mean ' + near[0] + '? ' if near else ''}slots are {', '.join(speedups)}."
        )
    if not isinstance(variant, str) or variant not in speedups[slot].variants:
        raise ChoiceError(f"{slot}={variant!r}: accepted are {', '.join(speedups[slot].variants)}.")
