"""A training with Stable-Baselines3's DQN, as its users write it. `--fault` plants one thing that makes it slow.

The last line of its output is one JSON object with what it reached after learning began.
"""

import argparse
import csv
import json
import random
import tempfile
import time
from pathlib import Path

import gymnasium as gym
import numpy as np
import pandas as pd
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import ReplayBufferSamples

FAULTS = (
    "none", "env_waits", "sync_each_step", "loop_over_samples", "stacked_replay", "recomputed_features", "file_each_episode",
    "too_many_threads", "too_wide", "small_batch",
)  # fmt: skip
MARKET = ("recomputed_features", "file_each_episode")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--env", choices=("cartpole", "market"), help="default: what the fault needs")
    parser.add_argument("--seconds", type=float, default=10.0, help="stop after so long")
    parser.add_argument("--steps", type=int, default=10**8, help="or after so many env steps")
    parser.add_argument("--learning-starts", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def write_prices(path, bars=300_000, seed=0):
    close = 100 * np.exp(np.cumsum(0.001 * np.random.default_rng(seed).standard_normal(bars)))
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["close"])
        writer.writerows([f"{price:.6f}"] for price in close)


def indicators(prices):
    change = prices.pct_change()
    table = pd.DataFrame(
        {
            "change": change,
            "mean": change.rolling(10).mean(),
            "spread": change.rolling(10).std(),
            "trend": prices.ewm(span=20).mean() / prices - 1,
        }
    )
    return table.fillna(0.0).to_numpy(np.float32) * 100


class Market(gym.Env):
    """Long or flat; 200 bars an episode."""

    def __init__(self, path, reload=False, recompute=False):
        self.action_space = gym.spaces.Discrete(2)
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (5,), np.float32)
        self.path, self.reload, self.recompute = path, reload, recompute
        self.read()

    def read(self):
        self.prices = pd.read_csv(self.path)["close"]
        self.table = indicators(self.prices)
        self.gains = np.diff(np.log(self.prices.to_numpy()))

    def look(self):
        row = (
            indicators(self.prices.iloc[self.now - 100 : self.now + 1])[-1] if self.recompute else self.table[self.now]
        )
        return np.append(row, np.float32(self.held))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.reload:
            self.read()
        self.now = int(self.np_random.integers(100, len(self.prices) - 210))
        self.last, self.held = self.now + 200, 0
        return self.look(), {}

    def step(self, action):
        self.held = int(action)
        reward = float(self.held * self.gains[self.now])
        self.now += 1
        return self.look(), reward, False, self.now >= self.last, {}


class Simulator(gym.Wrapper):
    def step(self, action):
        time.sleep(0.03)
        return self.env.step(action)


class ListBuffer(ReplayBuffer):
    """Transitions in a list, stacked when they are sampled."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.items = []

    def add(self, obs, next_obs, action, reward, done, infos):
        self.items.append((obs[0].copy(), next_obs[0].copy(), int(action[0]), float(reward[0]), float(done[0])))
        if len(self.items) > self.buffer_size:
            self.items.pop(0)

    def size(self):
        return len(self.items)

    def sample(self, batch_size, env=None):
        chosen = random.sample(self.items, batch_size)
        obs = torch.stack([torch.tensor(item[0], dtype=torch.float32) for item in chosen])
        next_obs = torch.stack([torch.tensor(item[1], dtype=torch.float32) for item in chosen])
        actions = torch.tensor([[item[2]] for item in chosen])
        rewards = torch.tensor([[item[3]] for item in chosen], dtype=torch.float32)
        dones = torch.tensor([[item[4]] for item in chosen], dtype=torch.float32)
        return ReplayBufferSamples(obs, actions, next_obs, dones, rewards)


class OneByOne(DQN):
    """Its loss is summed over the samples."""

    def train(self, gradient_steps, batch_size=100):
        self.policy.set_training_mode(True)
        for _ in range(gradient_steps):
            data = self.replay_buffer.sample(batch_size)
            loss = 0.0
            for i in range(batch_size):
                with torch.no_grad():
                    best = self.q_net_target(data.next_observations[i : i + 1]).max()
                    goal = data.rewards[i, 0] + (1 - data.dones[i, 0]) * self.gamma * best
                value = self.q_net(data.observations[i : i + 1])[0, data.actions[i, 0]]
                loss = loss + torch.nn.functional.smooth_l1_loss(value, goal)
            self.policy.optimizer.zero_grad()
            (loss / batch_size).backward()
            torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.max_grad_norm)
            self.policy.optimizer.step()
        self._n_updates += gradient_steps


class Until(BaseCallback):
    """Stops after so many seconds; notes when learning began."""

    def __init__(self, seconds, read):
        super().__init__()
        self.seconds, self.read, self.seen = seconds, read, []

    def _on_training_start(self):
        self.start, self.begun, self.first = time.perf_counter(), None, 0

    def _on_step(self):
        if self.begun is None and self.num_timesteps >= self.model.learning_starts:
            self.begun, self.first = time.perf_counter(), self.num_timesteps
        if self.read:  # follow a parameter as the training goes
            self.seen.append(next(self.model.q_net.parameters()).mean().item())
        return time.perf_counter() - self.start < self.seconds


def make_env(args, folder):
    if (args.env or ("market" if args.fault in MARKET else "cartpole")) == "market":
        path = Path(folder) / "prices.csv"
        write_prices(path)
        return Market(path, reload=args.fault == "file_each_episode", recompute=args.fault == "recomputed_features")
    env = gym.make("CartPole-v1")
    return Simulator(env) if args.fault == "env_waits" else env


def main():
    args = parse()
    random.seed(args.seed)
    if args.fault == "too_many_threads":
        torch.set_num_threads(8)
    width = 1280 if args.fault == "too_wide" else 128
    batch_size = 1 if args.fault == "small_batch" else 128
    with tempfile.TemporaryDirectory() as folder:
        model = (OneByOne if args.fault == "loop_over_samples" else DQN)(
            "MlpPolicy",
            make_env(args, folder),
            learning_rate=1e-3,
            buffer_size=50_000,
            learning_starts=args.learning_starts,
            batch_size=batch_size,
            train_freq=1,
            target_update_interval=200,
            exploration_fraction=1e-6,
            exploration_final_eps=0.05,
            replay_buffer_class=ListBuffer if args.fault == "stacked_replay" else None,
            policy_kwargs={"net_arch": [width, width]},
            seed=args.seed,
            device="cpu",
        )
        until = Until(args.seconds, args.fault == "sync_each_step")
        model.learn(args.steps, callback=until)
    seconds = time.perf_counter() - (until.begun or time.perf_counter())
    steps, updates = model.num_timesteps - until.first if until.begun else 0, model._n_updates
    reached = {"fault": args.fault, "steps": steps, "updates": updates, "transitions": updates * batch_size}
    rates = {
        "seconds": seconds,
        "sps": steps / max(seconds, 1e-9),
        "learnt_per_s": updates * batch_size / max(seconds, 1e-9),
    }
    print(json.dumps({**reached, **rates}))


if __name__ == "__main__":
    main()
