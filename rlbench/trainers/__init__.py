"""Trainers: `DQN` of `rlbench.trainers.dqn` and `PPO` of `rlbench.trainers.ppo`, loaded on first use."""
