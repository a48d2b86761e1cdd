"""The plain DQN trainer beside Stable-Baselines3's, in paired rounds. `python -m benchmarks.run` from the repository root."""
