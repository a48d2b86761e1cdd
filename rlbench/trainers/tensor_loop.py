"""The iteration on tensors alone, called eagerly: `loop="tensors"`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from rlbench.envs.batch import check_kept
from rlbench.phases import phase
from rlbench.trainers.finite import check_outcome
from rlbench.trainers.iteration import Iteration, Seen
from rlbench.trainers.orders import Orders, orders_of
from rlbench.trainers.plan import Plan, make_plan
from rlbench.uncopied import Uncopied
from rlbench.updates.functional import FlatNetwork

if TYPE_CHECKING:
    from rlbench.trainers.dqn import DQN
    from rlbench.trainers.logbook import Logbook


# In one go, whatever the log wants: what each iteration lets see is kept until then, 17 bytes an env and step.
MOST_ITERATIONS, MOST_STEPS = 8_192, 2**25


class TensorLoop(Uncopied):
    """Runs up to the next point at which the log wants to look, and reads nothing on the host before.

    The trainer's networks become views of the vectors that the iteration works on; its replay has the rows.
    """

    build_s, recompiles = 0.0, 0

    def __init__(self, trainer: DQN) -> None:
        self.trainer, env = trainer, trainer.collector.core
        self.num_envs = env.num_envs
        network = FlatNetwork(trainer.online)
        self.parameters, self.target = network.adopt(trainer.online), network.adopt(trainer.target)
        self.iteration = Iteration(trainer.config, env, network, trainer.spec)
        self.carry = self.iteration.start(self.parameters, self.target, trainer.replay.with_spare_row())

    def advance(self, log: Logbook) -> None:
        trainer = self.trainer
        wanted = min(-(-log.room() // self.num_envs), MOST_ITERATIONS, max(1, MOST_STEPS // self.num_envs))
        plan = self._plan(wanted)
        orders, rounds = orders_of(plan, trainer.config.gradient_steps, trainer.config.tau, trainer.device)
        with phase("iterations"):
            seen = self.run(orders, rounds)
            done, first = sum(len(part.ended) for part in seen), trainer.env_steps
            # Within, so that counters are up to date where the phase ends.
            trainer.follow(plan if done == wanted else self._plan(done))
        self._hand_over(seen)
        log.episodes_at(episodes_of(seen, first, self.num_envs))

    def _plan(self, iterations: int) -> Plan:
        trainer = self.trainer
        return make_plan(trainer.config, self.num_envs, trainer.env_steps, trainer.target_sync.last, iterations)

    def run(self, orders: Orders, rounds: tuple[int, ...]) -> list[Seen]:
        """All iterations, or those up to a `stop()`, but one call at least: what each call lets see."""
        seen, done, before, steps = [], 0, 0, self.trainer.config.gradient_steps
        while done < len(rounds) and not (seen and self.trainer.stopping):
            piece = self.piece(rounds[done:])
            seen.append(self.call(orders.part(done, piece, before, steps), piece))
            done, before = done + len(piece), before + sum(piece)
        return seen

    def piece(self, rounds: tuple[int, ...]) -> tuple[int, ...]:
        """How many of the coming iterations go into one call."""
        return rounds[:1]

    def call(self, orders: Orders, rounds: tuple[int, ...]) -> Seen:
        before = self.carry.obs
        self.carry, seen = self.iteration(self.carry, orders, rounds)
        check_kept(before, self.carry.obs, self.trainer.collector.name)
        return seen

    def _hand_over(self, seen: list[Seen]) -> None:
        """Leave networks, replay and losses in the trainer as the Python loop would."""
        trainer, carry = self.trainer, self.carry
        self.parameters.copy_(carry.parameters)
        self.target.copy_(carry.target)
        self.carry = carry._replace(parameters=self.parameters, target=self.target)
        # Whatever a reward was, the sums that it went into are finite or not as it was.
        fine = torch.cat([part.returns for part in seen]).isfinite().all() & carry.obs.isfinite().all()
        numbers = torch.stack((carry.head, carry.size, fine.long())).tolist()  # sync: for the log
        trainer.replay.head, trainer.replay.size, good = numbers
        check_outcome(bool(good), trainer.collector.name, trainer.env_steps)
        losses = torch.cat([part.losses for part in seen])
        if len(losses):
            trainer.losses.add(losses)
            trainer.last_target = next(part.target for part in reversed(seen) if len(part.target))


def episodes_of(seen: list[Seen], env_steps: int, num_envs: int) -> list[tuple[int, float, int]]:
    """(env step, return, length) of the episodes that ended, counted from `env_steps` on."""
    ended, returns, lengths = (torch.cat([part[k] for part in seen]) for k in range(3))
    which = ended.nonzero()  # sync: for the log
    if not len(which):
        return []
    steps = env_steps + (which[:, 0] + 1) * num_envs
    columns: list[Tensor] = [steps, returns[ended], lengths[ended]]
    return list(zip(*(column.tolist() for column in columns), strict=True))  # sync: for the log
