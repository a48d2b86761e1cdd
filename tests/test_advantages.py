"""Generalised advantage estimation: hand-worked numbers, and every form against a recursion written out here."""

import pytest
import torch

from rlbench.advantages import CompiledGae, gae_loop, gae_rows, gae_scan

FORMS = {"loop": gae_loop, "rows": gae_rows, "scan": gae_scan, "compiled": CompiledGae(backend="eager")}
every_form = pytest.mark.parametrize("gae", FORMS.values(), ids=FORMS)


def column(*numbers):
    return torch.tensor(numbers, dtype=torch.float32).reshape(-1, 1)


def flags(*numbers):
    return torch.tensor(numbers, dtype=torch.bool).reshape(-1, 1)


def by_definition(reward, value, next_value, terminated, truncated, gamma, gae_lambda, turn):
    """The sum over future steps of the same episode: sum over k of (gamma lambda turn)^k delta_t+k, in Python floats."""
    steps, envs = reward.shape
    out = torch.zeros(steps, envs, dtype=torch.float64)
    for n in range(envs):
        for t in range(steps):
            total, weight = 0.0, 1.0
            for k in range(t, steps):
                bootstrap = 0.0 if terminated[k, n] else gamma * turn * float(next_value[k, n])
                total += weight * (float(reward[k, n]) + bootstrap - float(value[k, n]))
                if terminated[k, n] or truncated[k, n]:
                    break
                weight *= gamma * gae_lambda * turn
            out[t, n] = total
    return out.float()


def random_rollout(steps, envs, seed, share=0.15):
    generator = torch.Generator().manual_seed(seed)
    floats = [torch.randn(steps, envs, generator=generator) for _ in range(3)]
    terminated, truncated = (torch.rand(steps, envs, generator=generator) < share for _ in range(2))
    return *floats, terminated, truncated & ~terminated


@every_form
def test_the_handed_case(gae):
    """gamma 0.9, lambda 0.8: the action at t = 1 ends the episode, and its advantage knows nothing of the next one's value."""
    rollout = column(1, -5, 2), column(0, 0, 10), column(0, 10, 4), flags(0, 1, 0), flags(0, 0, 0)
    advantages = gae(*rollout, 0.9, 0.8, 1.0)
    torch.testing.assert_close(advantages, column(-2.6, -5.0, -4.4))
    late = gae(*rollout[:3], flags(0, 0, 1), flags(0, 0, 0), 0.9, 0.8, 1.0)
    assert not torch.allclose(late, advantages)  # a flag stored a slot late is another answer


@every_form
def test_a_truncated_episode_keeps_its_bootstrap_and_its_neighbour_does_not_leak(gae):
    """gamma 0.5, lambda 1. t=2: 3 + 0.5*8 - 0 = 7. t=1, truncated: 1 + 0.5*4 - 2 = 1. t=0: 0 + 0.5*2 - 1 + 0.5*1 = 0.5."""
    rollout = column(0, 1, 3), column(1, 2, 0), column(2, 4, 8)
    truncated = gae(*rollout, flags(0, 0, 0), flags(0, 1, 0), 0.5, 1.0, 1.0)
    torch.testing.assert_close(truncated, column(0.5, 1.0, 7.0))
    # Terminated instead: t=1: 1 - 2 = -1. t=0: 0 + 1 - 1 - 0.5 = -0.5.
    terminated = gae(*rollout, flags(0, 1, 0), flags(0, 0, 0), 0.5, 1.0, 1.0)
    torch.testing.assert_close(terminated, column(-0.5, -1.0, 7.0))
    # Neither: t=1: 1 + 0.5*7 = 4.5. t=0: 0 + 0.5*4.5 = 2.25.
    going_on = gae(*rollout, flags(0, 0, 0), flags(0, 0, 0), 0.5, 1.0, 1.0)
    torch.testing.assert_close(going_on, column(2.25, 4.5, 7.0))


@every_form
def test_ends_on_the_last_row(gae):
    rollout = column(1, 2), column(0, 0), column(0, 6)
    torch.testing.assert_close(gae(*rollout, flags(0, 1), flags(0, 0), 0.5, 0.5, 1.0), column(1.5, 2.0))
    torch.testing.assert_close(gae(*rollout, flags(0, 0), flags(0, 1), 0.5, 0.5, 1.0), column(2.25, 5.0))


@every_form
def test_a_value_behind_a_termination_need_not_be_a_number(gae):
    rollout = column(1, 2), column(0, 0), column(torch.nan, torch.inf)
    torch.testing.assert_close(gae(*rollout, flags(1, 1), flags(0, 0), 0.9, 0.9, 1.0), column(1.0, 2.0))


@every_form
@pytest.mark.parametrize(("steps", "envs"), [(1, 1), (1, 5), (2, 1), (3, 2), (7, 1), (8, 3), (33, 4), (64, 1)])
@pytest.mark.parametrize("turn", [1.0, -1.0])
def test_every_form_agrees_with_the_definition(gae, steps, envs, turn):
    rollout = random_rollout(steps, envs, seed=steps * 10 + envs)
    expected = by_definition(*rollout, 0.97, 0.9, turn)
    before = [field.clone() for field in rollout]
    actual = gae(*rollout, 0.97, 0.9, turn)
    torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)
    assert actual.shape == (steps, envs) and actual.dtype == torch.float32
    assert all(torch.equal(a, b) for a, b in zip(before, rollout, strict=True))  # nothing that was given is written to


@every_form
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_no_end_at_all_and_nothing_but_ends(gae, share):
    rollout = random_rollout(40, 3, seed=1, share=share)
    torch.testing.assert_close(gae(*rollout, 1.0, 1.0), by_definition(*rollout, 1.0, 1.0, 1.0), rtol=1e-5, atol=1e-4)


def two_players(rewards, values, last_value, terminated, gamma, gae_lambda):
    """One game between players 0 and 1, who move in turn: everything is kept as player 0 sees it, and turned at the end.

    `values[t]` is to the mover of step t, `last_value` to the one who would move next.
    """
    sign = [1 if t % 2 == 0 else -1 for t in range(len(rewards) + 1)]
    values_0 = [sign[t] * v for t, v in enumerate([*values, last_value])]
    after, out = 0.0, [0.0] * len(rewards)
    for t in reversed(range(len(rewards))):
        going_on = 0.0 if terminated[t] else 1.0
        delta = sign[t] * rewards[t] + gamma * going_on * values_0[t + 1] - values_0[t]
        after = delta + gamma * gae_lambda * going_on * after
        out[t] = sign[t] * after
    return out


@every_form
def test_two_players_who_move_in_turn(gae):
    rewards, values, last = [0.0, 0.5, 0.0, -1.0, 0.25], [0.3, -0.2, 0.6, 0.1, -0.4], 0.7
    for ended in ([0, 0, 0, 0, 1], [0, 0, 0, 0, 0], [0, 1, 0, 0, 0]):
        expected = two_players(rewards, values, last, ended, 0.9, 0.8)
        rollout = column(*rewards), column(*values), column(*values[1:], last), flags(*ended), flags(*[0] * 5)
        torch.testing.assert_close(gae(*rollout, 0.9, 0.8, -1.0), column(*expected))


def test_compiled_once_a_shape_whatever_the_numbers():
    gae = CompiledGae(backend="eager")
    small, large = random_rollout(4, 2, 0), random_rollout(5, 2, 0)
    for gamma, turn in ((0.9, 1.0), (0.8, -1.0), (0.7, 1.0)):
        for rollout in (small, large):
            torch.testing.assert_close(gae(*rollout, gamma, 0.9, turn), gae_loop(*rollout, gamma, 0.9, turn))
    assert gae.recompiles == 0 and len(gae._kept) == 2 and gae.build_s > 0
    for envs in range(3, 24):  # more shapes than torch.compile allows a function
        rollout = random_rollout(2, envs, 0)
        torch.testing.assert_close(gae(*rollout, 0.9, 0.9, 1.0), gae_loop(*rollout, 0.9, 0.9, 1.0))
    spent = gae.build_s
    gae.forget()
    assert not gae._kept and gae.build_s == spent > 0


def test_no_environment_and_no_step():
    for shape in ((0, 3), (4, 0)):
        empty = [torch.zeros(shape)] * 3 + [torch.zeros(shape, dtype=torch.bool)] * 2
        for gae in (gae_loop, gae_rows, gae_scan):
            assert gae(*empty, 0.9, 0.9, 1.0).shape == shape
