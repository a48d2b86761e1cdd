"""When the target network moves, and by how much."""

import torch
from torch import nn

from rlbench.config import DQNConfig
from rlbench.trainers.target import TargetSync


class Updater:
    taken = 0


def networks(online=8.0, target=0.0):
    pair = nn.Linear(1, 1, bias=False), nn.Linear(1, 1, bias=False)
    for network, value in zip(pair, (online, target), strict=True):
        nn.init.constant_(network.weight, value)
    return pair


def test_once_for_each_period_crossed():
    online, target = networks()
    sync = TargetSync(
        online, target, DQNConfig(target_network_frequency=10, learning_starts=10, tau=0.5), Updater(), False
    )
    sync.up_to(19)
    assert (target.weight.item(), sync.count) == (0.0, 0)
    sync.up_to(20)
    assert (target.weight.item(), sync.count) == (4.0, 1)
    sync.up_to(45)  # 30 and 40
    assert (target.weight.item(), sync.count, sync.last) == (7.0, 3, 45)


def test_no_share_where_every_update_was_skipped():
    """The case of a scaled loss: a step with infinite gradients must not move the target either."""
    online, target = networks()
    updater = Updater()
    sync = TargetSync(online, target, DQNConfig(target_network_frequency=1, learning_starts=0, tau=0.5), updater, True)
    sync.up_to(1)
    assert target.weight.item() == 0.0
    updater.taken = torch.tensor(1)
    sync.up_to(2)
    assert target.weight.item() == 4.0
    sync.up_to(3)
    assert target.weight.item() == 4.0 and sync.count == 3
