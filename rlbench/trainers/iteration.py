"""An iteration of DQN as one pure function of tensors: act, step, store, sample, update, sync the target.

Nothing is read on the host, and nothing but the rows of replay is written in place, so that it can be called eagerly, compiled,
or captured in a graph, on the CPU and on CUDA alike. What is due when comes as tensors (`Orders`) from a plan; random numbers
come from the hash: it does what the Python loop does, transition by transition.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from rlbench.batch import Transitions
from rlbench.buffers import RowSpec
from rlbench.buffers.n_step_tensors import Held, hold, nothing_held
from rlbench.buffers.packed import pack, unpack
from rlbench.config import DQNConfig
from rlbench.envs.batch import BatchEnv, BatchStep
from rlbench.random import Purpose, random_bits, to_below, to_uniform
from rlbench.trainers.orders import Orders
from rlbench.updates.functional import FlatNetwork, Moments, Settings, td_update


class Carry(NamedTuple):
    """Everything that one iteration hands to the next."""

    env: Any  # state of the batch env
    obs: Tensor  # (N, D) where to act
    parameters: Tensor  # (P,) of the online network
    target: Tensor  # (P,)
    moments: Moments
    updates: Tensor  # () int64 so far
    iteration: Tensor  # () int64 so far
    rows: Tensor  # (capacity + 1, W) replay; the last row takes what is thrown away
    head: Tensor  # () int64: the next slot
    size: Tensor  # () int64: slots filled
    held: Held | None  # steps whose sums are not complete, with n-step returns
    returns: Tensor  # (N,) float64 of the episodes under way
    lengths: Tensor  # (N,) int64


class Seen(NamedTuple):
    """What I iterations let the log see, on the device."""

    ended: Tensor  # (I, N) bool
    returns: Tensor  # (I, N) float64, of episodes that ended
    lengths: Tensor  # (I, N) int64
    losses: Tensor  # (U,)
    target: Tensor  # (B,) Bellman targets of the last update; empty without one


class Iteration:
    """The rules of an iteration; a call goes from one `Carry` to another, one or more iterations on."""

    def __init__(self, config: DQNConfig, env: BatchEnv, network: FlatNetwork, spec: RowSpec) -> None:
        self.config, self.env, self.network, self.spec = config, env, network, spec
        self.seed: int | Tensor = config.seed
        self.settings = Settings.of(config)
        self.capacity = config.buffer_size
        self.envs = torch.arange(env.num_envs, device=env.device)  # (N,)
        # Python's powers, as in NStep: torch's may differ in the last bit.
        powers = [config.gamma**k for k in range(config.n_step + 1)]
        self.powers = torch.tensor(powers, dtype=torch.float64, device=env.device)
        self.batch = torch.arange(config.batch_size, device=env.device)  # (B,)

    def start(self, parameters: Tensor, target: Tensor, rows: Tensor) -> Carry:
        """Before the first iteration, on the parameters of both networks and the (capacity + 1, W) rows of an empty replay."""
        state, obs = self.env.reset()
        n, moments = len(self.envs), self.network.start(parameters)
        zero = self.envs.new_zeros(())
        held = nothing_held(n, self.config.n_step, self.spec.obs_size, obs.device) if self.config.n_step > 1 else None
        sums = torch.zeros(n, dtype=torch.float64, device=obs.device)
        numbers = [zero.clone() for _ in range(4)]
        return Carry(
            state, obs, parameters, target, moments, *numbers[:2], rows, *numbers[2:], held, sums, 0 * self.envs
        )

    @torch.no_grad()
    def __call__(self, carry: Carry, orders: Orders, rounds: tuple[int, ...]) -> tuple[Carry, Seen]:
        """As many iterations as `rounds` has numbers, each with that many rounds of updates."""
        rates, shares = iter(orders.learning_rate.unbind(0)), iter(orders.sync.unbind(0))
        ends, losses, target = [], [], carry.parameters.new_empty(0)
        for epsilon, count in zip(orders.epsilon.unbind(0), rounds, strict=True):
            carry, end = self.collect(carry, epsilon)
            ends.append(end)
            for _ in range(count):
                carry = sync_target(carry, next(shares))
                for _ in range(self.config.gradient_steps):
                    carry, loss, target = self.update(carry, next(rates))
                    losses.append(loss)
            carry = sync_target(carry, next(shares))
        stacked = torch.stack(losses) if losses else carry.parameters.new_empty(0)
        return carry, Seen(*map(torch.stack, zip(*ends, strict=True)), stacked, target)

    def collect(self, carry: Carry, epsilon: Tensor) -> tuple[Carry, tuple[Tensor, Tensor, Tensor]]:
        """A step of every env, stored; also which episodes ended, with their returns and lengths."""
        action = self.act(carry, epsilon)
        env, step = self.env.step(carry.env, action)
        carry = self.store(carry, action, step)
        ended = step.terminated | step.truncated
        returns, lengths = carry.returns + step.reward, carry.lengths + 1
        after = carry._replace(
            env=env,
            obs=step.obs,
            iteration=carry.iteration + 1,
            returns=torch.where(ended, 0.0, returns),
            lengths=torch.where(ended, 0, lengths),
        )
        return after, (ended, returns, lengths)

    def act(self, carry: Carry, epsilon: Tensor) -> Tensor:
        """Epsilon-greedy actions (N,) int64, as `EpsilonGreedy` draws them."""
        seed, step = self.seed, carry.iteration
        explores = to_uniform(random_bits(seed, Purpose.EXPLORE, step, self.envs)) < epsilon
        random = to_below(random_bits(seed, Purpose.ACTION, step, self.envs), self.spec.num_actions)
        return torch.where(explores, random, self.network(carry.parameters, carry.obs).argmax(1))

    def store(self, carry: Carry, action: Tensor, step: BatchStep) -> Carry:
        """Complete rows go to the slots after the newest."""
        if carry.held is None:
            discount = torch.full_like(step.reward, self.config.gamma)
            flags = step.terminated, step.truncated
            rows = pack(Transitions(carry.obs, action, step.reward, step.next_obs, *flags, discount), self.spec)
            held, kept, place, count = None, None, self.envs, len(self.envs)
        else:
            held, rows, kept = hold(carry.held, carry.obs, action, step, self.powers, self.spec)
            place, count = torch.cumsum(kept, 0) - 1, kept.sum()
        if len(rows) > self.capacity:  # the last ones stay: of two that go to one slot, either might
            last = place >= count - self.capacity
            kept = last if kept is None else kept & last
        slots = (carry.head + place) % self.capacity
        carry.rows.index_copy_(0, slots if kept is None else torch.where(kept, slots, self.capacity), rows)
        size = torch.clamp(carry.size + count, max=self.capacity)
        return carry._replace(held=held, head=(carry.head + count) % self.capacity, size=size)

    def update(self, carry: Carry, learning_rate: Tensor) -> tuple[Carry, Tensor, Tensor]:
        """One update on a minibatch drawn with replacement; also its loss and targets."""
        bits = random_bits(self.seed, Purpose.REPLAY, carry.updates, self.batch)
        batch = unpack(carry.rows.index_select(0, (bits * carry.size) >> 32), self.spec)
        updates = carry.updates + 1
        parameters, moments, updated = td_update(
            self.network, carry.parameters, carry.target, carry.moments, updates, batch, learning_rate, self.settings
        )
        carry = carry._replace(parameters=parameters, moments=moments, updates=updates)
        return carry, updated.loss, updated.target


def sync_target(carry: Carry, share: Tensor) -> Carry:
    """Move the target towards the online network; a share of 0 leaves it as it is."""
    return carry._replace(target=torch.lerp(carry.target, carry.parameters, share))
