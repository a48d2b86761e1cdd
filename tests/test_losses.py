"""Bellman targets and losses against hand-worked numbers (handed case 23)."""

import pytest
import torch

from rlbench.losses import next_values, td_error, td_loss, td_target

Q = torch.tensor([[100.0, 1.0, 2.0]])
LEGAL = torch.tensor([[0.0, 1.0, 1.0]])
ONLINE = [
    torch.tensor([[5.0, 0.0, 1.0]]),  # prefers the illegal action, then the third
    torch.tensor([[-9.0, -9.0, -1.0]]),
]


def target(mask, online=None):
    value = next_values(Q, online, mask)
    return td_target(torch.zeros(1), torch.tensor([0.9]), torch.zeros(1), value).item()


@pytest.mark.parametrize("online", [None, *ONLINE])
def test_target_takes_the_best_legal_action(online):
    assert target(LEGAL, online) == pytest.approx(1.8)


def test_without_a_mask_all_actions_count():
    assert target(None) == pytest.approx(90.0)


def test_double_dqn_values_the_online_networks_choice_with_the_target():
    online = torch.tensor([[0.0, 7.0, 1.0]])
    assert target(None, online) == pytest.approx(0.9)
    assert target(LEGAL, online) == pytest.approx(0.9)


@pytest.mark.parametrize("online", [None, *ONLINE])
def test_a_state_without_legal_actions_is_worth_nothing(online):
    value = next_values(Q, online, torch.zeros(1, 3))
    assert value.tolist() == [0.0]


def test_termination_stops_the_bootstrap_even_of_a_value_that_is_not_finite():
    value = torch.tensor([10.0, 10.0, float("nan")])
    got = td_target(torch.tensor([1.0, 1.0, 1.0]), torch.full((3,), 0.5), torch.tensor([0.0, 1.0, 1.0]), value)
    assert got.tolist() == [6.0, 1.0, 1.0]


def test_one_legal_action_in_every_state():
    q = torch.tensor([[3.0, -7.0], [4.0, 5.0]])
    mask = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    assert next_values(q, None, mask).tolist() == [-7.0, 4.0]
    assert next_values(q, q.flip(0), mask).tolist() == [-7.0, 4.0]


def test_loss_is_the_mean_over_rows_of_the_chosen_actions():
    q = torch.tensor([[1.0, 5.0], [2.0, 0.0]], requires_grad=True)
    action, goal = torch.tensor([1, 0]), torch.tensor([2.0, 2.5])
    assert td_loss(td_error(q, action, goal)).item() == pytest.approx((9.0 + 0.25) / 2)
    # Huber's loss: 3 - 0.5 beyond the knee, 0.125 within.
    loss = td_loss(td_error(q, action, goal), huber=True)
    assert loss.item() == pytest.approx((2.5 + 0.125) / 2)
    loss.backward()
    assert q.grad.tolist() == [[0.0, 0.5], [-0.25, 0.0]]


def test_a_column_of_targets_is_refused():
    """One of the sources compares (B,) predictions with (B, 1) targets: broadcasting makes that a (B, B) loss.

    For q = targets = (1, 2) the right loss is 0; the literal one is the mean of (0, 1, 1, 0), and its gradient pulls the
    predictions together.
    """
    q, goal = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([[1.0], [2.0]])
    with pytest.warns(UserWarning, match="broadcast"):
        literal = torch.nn.functional.mse_loss(q, goal)
    literal.backward()
    assert literal.item() == 0.5 and q.grad.tolist() == [-0.5, 0.5]
    assert td_loss(td_error(q[:, None], torch.tensor([0, 0]), goal[:, 0])).item() == 0.0
    with pytest.raises(ValueError, match=r"\(2, 1\); accepted is \(2,\)"):
        td_error(q[:, None], torch.tensor([0, 0]), goal)
