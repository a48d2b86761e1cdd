"""What a RecordingClock has counted: seconds by phase, steps, updates."""

from __future__ import annotations

from collections.abc import Mapping

from rlbench.phases import OTHER
from rlbench.profiling.accounts import Account
from rlbench.profiling.gaps import ACTING, ENV, FORWARD, LEARNING, OPTIMIZER, PYTHON, SET_UP, TO_SPLIT, split
from rlbench.profiling.records import PHASES

RESET = "reset"  # found unaided: of the phase env, but no step
UPDATES = (OPTIMIZER, "update")
BORDERS = (ENV, OPTIMIZER, "update", "iterations")  # at the end of these a step is over, or a good part of one
# Parts of a step: begun and over again within it, so that looking away cannot lose one that stays open.
SHORT = {*PHASES, ACTING, LEARNING, "advantages", "old_log_probs"} - {*BORDERS, PYTHON, OTHER, SET_UP}
UNSEEN = "unseen"  # time outside the ends of steps while the clock looked away


class Totals(dict[str, Account]):
    """Accounts by phase; time that was not looked at is spread over the parts of a step."""

    def __init__(self, accounts: Mapping[str, Account]) -> None:
        super().__init__(accounts)
        self.setdefault(OTHER, Account(OTHER))
        spread(self)

    def of(self, name: str) -> Account:
        """The account of a phase, an empty one where there is none."""
        return self.get(name) or Account(name)

    @property
    def counts(self) -> dict[str, int]:
        """How often each phase was entered."""
        return {name: account.calls for name, account in self.items() if account.calls}

    @property
    def steps(self) -> int:
        return self.of(ENV).steps

    @property
    def episodes(self) -> int:
        """Calls of `reset`, as far as they were found unaided."""
        return self.of(ENV).resets

    @property
    def updates(self) -> int:
        return sum(self.of(name).steps for name in UPDATES)

    @property
    def env_cpu_s(self) -> float | None:
        """Processor seconds of the thread in the env, from one call in every few; None where there was none."""
        env = self.of(ENV)
        return None if not env.looked_ns else env.cpu_ns / env.looked_ns * env.ns / 1e9

    def seconds(self, seen: Mapping[str, int]) -> dict[str, float]:
        """By phase, "other" last. `seen`: how many samples fell into gaps, by what their functions are named for."""
        return split(self, seen)


def spread(totals: dict[str, Account]) -> None:
    """Time that was not looked at goes to the parts of a step as they shared it while the clock looked; long pauses as those that
    were seen, where any were."""
    unseen = totals.pop(UNSEEN, Account(UNSEEN))
    sampled = [account for name, account in totals.items() if name in SHORT or name in (PYTHON, OTHER, TO_SPLIT)]
    pauses = sum(account.long_ns for account in sampled)
    long_ns = unseen.long_ns if pauses else 0
    usual_ns, usual = unseen.ns - long_ns, sum(account.ns - account.long_ns for account in sampled)
    if not usual:
        totals[OTHER].ns += unseen.ns
        return
    for account in sampled:
        own = account.ns - account.long_ns
        account.ns += round(usual_ns * own / usual) + (round(long_ns * account.long_ns / pauses) if pauses else 0)
        account.calls = round(account.calls * (usual + usual_ns) / usual)


def shown(name: str) -> str:
    """A phase's name in a trace."""
    return {ACTING: FORWARD, LEARNING: FORWARD, RESET: ENV}.get(name, name)
