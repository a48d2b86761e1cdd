"""A DQN in one file, as one writes it by hand: torch, numpy, gymnasium. `--fault` plants one thing that makes it slow.

The last line of its output is one JSON object with what it reached after learning began.
"""

import argparse
import copy
import csv
import json
import random
import tempfile
import time
from collections import deque
from pathlib import Path

import gymnasium as gym
import numpy as np
import pandas as pd
import torch
from torch import nn

FAULTS = (
    "none", "env_waits", "sync_each_step", "loop_over_samples", "stacked_replay", "recomputed_features", "file_each_episode",
    "round_trip", "too_many_threads", "too_wide", "small_batch",
)  # fmt: skip
MARKET = ("recomputed_features", "file_each_episode")


def parse():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fault", choices=FAULTS, default="none")
    parser.add_argument("--env", choices=("cartpole", "market"), help="default: what the fault needs")
    parser.add_argument("--seconds", type=float, default=10.0, help="stop after so long")
    parser.add_argument("--steps", type=int, default=10**9, help="or after so many env steps")
    parser.add_argument("--learning-starts", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def write_prices(path, bars=300_000, seed=0):
    close = 100 * np.exp(np.cumsum(0.001 * np.random.default_rng(seed).standard_normal(bars)))
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["close"])
        writer.writerows([f"{price:.6f}"] for price in close)


def make_features(close):
    frame = pd.DataFrame({"close": close})
    change = frame["close"].pct_change()
    columns = [
        change,
        change.rolling(10).mean(),
        change.rolling(10).std(),
        frame["close"].ewm(span=20).mean() / frame["close"] - 1,
    ]
    return np.nan_to_num(pd.concat(columns, axis=1).to_numpy(np.float32)) * 100


class MarketEnv(gym.Env):
    """Long or flat; 200 bars an episode."""

    action_space = gym.spaces.Discrete(2)
    observation_space = gym.spaces.Box(-np.inf, np.inf, (5,), np.float32)

    def __init__(self, path, reload, recompute):
        self.path, self.reload, self.recompute = path, reload, recompute
        self.load()

    def load(self):
        self.close = pd.read_csv(self.path)["close"].to_numpy()
        self.features = make_features(self.close)
        self.returns = np.diff(np.log(self.close))

    def observe(self):
        if self.recompute:
            window = self.close[max(0, self.t - 100) : self.t + 1]
            row = make_features(window)[-1]
        else:
            row = self.features[self.t]
        return np.append(row, np.float32(self.position))

    def reset(self, seed=None, options=None):
        super().reset(seed=seed)
        if self.reload:
            self.load()
        self.t = int(self.np_random.integers(100, len(self.close) - 210))
        self.end, self.position = self.t + 200, 0
        return self.observe(), {}

    def step(self, action):
        self.position = int(action)
        reward = float(self.position * self.returns[self.t])
        self.t += 1
        return self.observe(), reward, False, self.t >= self.end, {}


class Slow(gym.Wrapper):
    def step(self, action):
        time.sleep(0.03)  # waits for a simulator
        return self.env.step(action)


class Replay:
    """Arrays of a fixed size."""

    def __init__(self, size, obs_size):
        self.obs, self.next_obs = np.zeros((2, size, obs_size), np.float32)
        self.action = np.zeros(size, np.int64)
        self.reward, self.done = np.zeros((2, size), np.float32)
        self.size, self.count = size, 0

    def add(self, obs, action, reward, next_obs, done):
        i = self.count % self.size
        self.obs[i], self.action[i], self.reward[i], self.next_obs[i], self.done[i] = (
            obs,
            action,
            reward,
            next_obs,
            done,
        )
        self.count += 1

    def __len__(self):
        return min(self.count, self.size)

    def sample(self, batch_size):
        i = np.random.randint(0, len(self), batch_size)
        rows = self.obs[i], self.action[i], self.reward[i], self.next_obs[i], self.done[i]
        return tuple(torch.from_numpy(row) for row in rows)


class ListReplay:
    """A deque of tuples."""

    def __init__(self, size):
        self.rows = deque(maxlen=size)

    def add(self, obs, action, reward, next_obs, done):
        self.rows.append((obs, action, reward, next_obs, done))

    def __len__(self):
        return len(self.rows)

    def sample(self, batch_size):
        batch = random.sample(self.rows, batch_size)
        obs = torch.stack([torch.tensor(row[0], dtype=torch.float32) for row in batch])
        action = torch.tensor([row[1] for row in batch])
        reward = torch.tensor([row[2] for row in batch], dtype=torch.float32)
        next_obs = torch.stack([torch.tensor(row[3], dtype=torch.float32) for row in batch])
        done = torch.tensor([float(row[4]) for row in batch])
        return obs, action, reward, next_obs, done


def make_env(args, folder):
    if (args.env or ("market" if args.fault in MARKET else "cartpole")) == "market":
        path = Path(folder) / "prices.csv"
        write_prices(path)
        return MarketEnv(path, args.fault == "file_each_episode", args.fault == "recomputed_features")
    env = gym.make("CartPole-v1")
    return Slow(env) if args.fault == "env_waits" else env


def loss_of(online, target, batch, gamma=0.99):
    obs, action, reward, next_obs, done = batch
    with torch.no_grad():
        goal = reward + gamma * (1 - done) * target(next_obs).max(dim=1).values
    q = online(obs).gather(1, action[:, None])[:, 0]
    return nn.functional.smooth_l1_loss(q, goal)


def loss_by_sample(online, target, batch, gamma=0.99):
    total = 0.0
    for obs, action, reward, next_obs, done in zip(*batch):  # noqa: B905
        with torch.no_grad():
            goal = reward + gamma * (1 - done) * target(next_obs).max()
        q = online(obs)[action]
        total = total + nn.functional.smooth_l1_loss(q, goal)
    return total / len(batch[0])


def main():
    args = parse()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if args.fault == "round_trip" and device.type != "cuda":
        raise SystemExit("--fault round_trip needs CUDA: on the CPU there is nowhere to copy to")
    random.seed(args.seed)
    np.random.seed(args.seed)
    torch.manual_seed(args.seed)
    if args.fault == "too_many_threads":
        torch.set_num_threads(8)
    hidden = 1280 if args.fault == "too_wide" else 128
    batch_size = 1 if args.fault == "small_batch" else 128
    folder = tempfile.TemporaryDirectory()
    env = make_env(args, folder.name)
    obs_size, actions = env.observation_space.shape[0], env.action_space.n
    online = nn.Sequential(
        nn.Linear(obs_size, hidden), nn.ReLU(), nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, actions)
    ).to(device)
    target = copy.deepcopy(online).requires_grad_(False)
    optimizer = torch.optim.Adam(online.parameters(), lr=1e-3, fused=True)
    replay = ListReplay(50_000) if args.fault == "stacked_replay" else Replay(50_000, obs_size)
    compute_loss = loss_by_sample if args.fault == "loop_over_samples" else loss_of

    obs, _ = env.reset(seed=args.seed)
    start = begun = time.perf_counter()
    step = updates = first = 0
    losses = []
    while step < args.steps and time.perf_counter() - start < args.seconds:
        if random.random() < 0.05:
            action = random.randrange(actions)
        else:
            with torch.no_grad():
                action = int(online(torch.from_numpy(obs).to(device)).argmax())
        next_obs, reward, terminated, truncated, _ = env.step(action)
        replay.add(obs, action, reward, next_obs, terminated)
        obs = next_obs
        if terminated or truncated:
            obs, _ = env.reset()
        step += 1
        if step == args.learning_starts:
            begun, first = time.perf_counter(), step
        if step >= args.learning_starts:
            batch = tuple(part.to(device) for part in replay.sample(batch_size))
            if args.fault == "round_trip":
                batch = tuple(part.cpu().to(device) for part in batch)
            loss = compute_loss(online, target, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            updates += 1
            if args.fault == "sync_each_step":
                losses.append(loss.item())
            if step % 200 == 0:
                target.load_state_dict(online.state_dict())
    seconds = time.perf_counter() - begun
    folder.cleanup()
    reached = {"fault": args.fault, "steps": step - first, "updates": updates, "transitions": updates * batch_size}
    rates = {"seconds": seconds, "sps": (step - first) / seconds, "learnt_per_s": updates * batch_size / seconds}
    print(json.dumps({**reached, **rates}))


if __name__ == "__main__":
    main()
