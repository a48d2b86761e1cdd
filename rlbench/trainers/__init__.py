"""Trainers. `DQN` is loaded from `rlbench.trainers.dqn` on first use."""
