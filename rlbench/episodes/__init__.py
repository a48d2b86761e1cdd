"""Recorded games: a buffer of whole episodes, how they come in, lie on disk, and go out in minibatches.

games = record(rlbench.envs.othello.Othello(), model, episodes=1000, seed=1)      # played here, or
games = Episodes.from_lists(mine)                                                 # by somebody's own recorder
games.save("games.parquet")
games = load("games.parquet")                                                     # checked: as it was, or an error
"""

from rlbench.episodes.checks import EpisodeError
from rlbench.episodes.container import Episodes
from rlbench.episodes.dataset import ORDERS, Bucketed, GroupedByCount, Shuffled
from rlbench.episodes.files import load
from rlbench.episodes.recording import record

__all__ = ["ORDERS", "Bucketed", "EpisodeError", "Episodes", "GroupedByCount", "Shuffled", "load", "record"]
