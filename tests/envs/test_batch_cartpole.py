"""The batched CartPole against Gymnasium's, step by step, and what makes it a batch env."""

import math

import gymnasium
import numpy as np
import pytest
import torch

from rlbench.envs.batch_cartpole import BatchCartPole, CartPoleState, start_value

# One rounding of a sine reaches a velocity through two multiplications and sums: at most some units of 2^-52 at |v| <= 1.
FEW_ULP = {"rtol": 4 * 2.0**-52, "atol": 2.0**-52}


def values(state, i):
    return [float(component[i]) for component in state[:4]]


def gym_from(start):
    """CartPole-v1 as Gymnasium makes it, at (x, x_dot, theta, theta_dot)."""
    env = gymnasium.make("CartPole-v1")
    env.reset(seed=0)
    env.unwrapped.state = np.array(start, np.float64)
    return env


def balance(state):
    """Pushes that keep a pole up: towards the side to which it falls or drifts."""
    lean = state.theta + 0.5 * state.theta_dot + 0.03 * state.x + 0.06 * state.x_dot
    return (lean > 0).long()


@pytest.mark.parametrize(("count", "seed", "skill"), [(1, 0, 0.0), (6, 1, 0.0), (4, 2, 0.9), (3, 3, 1.0)])
def test_step_by_step_as_gymnasium(count, seed, skill):
    batch = BatchCartPole(count, seed=seed)
    rng = np.random.default_rng(seed)
    state, _ = batch.reset()
    envs = [gym_from(values(state, i)) for i in range(count)]
    same_bits = terminations = truncations = 0
    for _ in range(600):
        wise = torch.from_numpy(rng.random(count) < skill)
        action = torch.where(wise, balance(state), torch.from_numpy(rng.integers(0, 2, count)))
        last_steps, angles = state.steps, state.theta.numpy()
        rounded_alike = (torch.sin(state.theta).numpy() == np.sin(angles)) & (
            torch.cos(state.theta).numpy() == np.cos(angles)
        )
        state, step = batch.step(state, action)
        assert step.reward.dtype == torch.float64 and step.obs.dtype == step.next_obs.dtype == torch.float32
        for i, env in enumerate(envs):
            after, reward, terminated, truncated, _ = env.step(int(action[i]))
            assert (step.reward[i], step.terminated[i], step.truncated[i]) == (reward, terminated, truncated)
            np.testing.assert_allclose(step.next_obs[i], after, rtol=2.0**-23, atol=1e-15)
            same_bits += np.array_equal(step.next_obs[i].numpy(), after)
            terminations, truncations = terminations + terminated, truncations + truncated
            if terminated or truncated:
                assert state.steps[i] == 0
                env.reset()
            else:
                few_ulp = {"rtol": 0, "atol": 0} if rounded_alike[i] else FEW_ULP
                np.testing.assert_allclose(values(state, i), env.unwrapped.state, **few_ulp)
                np.testing.assert_array_equal(step.obs[i], step.next_obs[i])
                assert state.steps[i] == last_steps[i] + 1
            env.unwrapped.state = np.array(values(state, i))  # so that differences of a bit do not grow
            np.testing.assert_array_equal(step.obs[i], env.unwrapped.state.astype(np.float32))
    assert same_bits >= 0.999 * 600 * count  # float32 hides a last bit of float64 but at a boundary
    assert terminations > 20 * count if skill == 0.0 else truncations >= 1


def step_once(start, action, steps=0, most=500):
    """One step of one pole from `start`, after `steps` others."""
    batch = BatchCartPole(1, max_episode_steps=most)
    state, _ = batch.reset(torch.tensor([start], dtype=torch.float64))
    return batch.step(state._replace(steps=torch.tensor([steps])), torch.tensor([action]))


X, ANGLE = 2.4, 12 * 2 * math.pi / 360


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize(("x", "theta"), [(X, 0.0), (0.0, ANGLE)])
def test_thresholds_are_crossed_not_touched(x, theta, sign):
    bit_further = [math.nextafter(value, math.inf) if value else value for value in (x, theta)]
    for (far, lean), beyond in (((x, theta), False), (bit_further, True)):
        start = [sign * far, 0.0, sign * lean, 0.0]  # at rest, so that one step changes velocities alone
        for action in (0, 1):
            _, step = step_once(start, action)
            _, _, terminated, truncated, _ = gym_from(start).step(action)
            assert bool(step.terminated) == terminated == beyond
            assert not bool(step.truncated) and not truncated


@pytest.mark.parametrize("falls", [False, True])
def test_a_step_at_the_time_limit_has_gymnasiums_flags(falls):
    start = [0.0, 0.0, ANGLE, 1.0] if falls else [0.0] * 4
    env = gymnasium.make("CartPole-v1", max_episode_steps=3)
    env.reset(seed=0)
    for _ in range(2):
        env.unwrapped.state = np.zeros(4)
        assert env.step(1)[2:4] == (False, False)
    env.unwrapped.state = np.array(start)
    expected = env.step(1)[2:4]
    assert expected == (falls, True)
    state, step = step_once(start, 1, steps=2, most=3)
    assert (bool(step.terminated), bool(step.truncated)) == expected and state.steps.tolist() == [0]
    _, earlier = step_once(start, 1, steps=1, most=3)
    assert (bool(earlier.terminated), bool(earlier.truncated)) == (falls, False)


def test_the_limit_is_500_steps():
    for steps, truncated in ((498, False), (499, True)):
        assert bool(step_once([0.0] * 4, 0, steps)[1].truncated) == truncated


def mixed(x):
    """The hash's mixer, in Python ints."""
    x = ((x ^ (x >> 16)) * 0x7FEB352D) % 2**32
    x = ((x ^ (x >> 15)) * 0x846CA68B) % 2**32
    return x ^ (x >> 16)


def start_by_hand(seed, episode, cell):
    low = mixed(seed % 2**32 ^ 4 * 0x9E3779B1 % 2**32)  # 4: the purpose RESET
    high = mixed((seed >> 32) % 2**32 ^ mixed((low + 0x85EBCA77) % 2**32))
    bits = mixed(mixed((episode * 0x9E3779B1 + low) % 2**32) ^ (mixed((cell * 0x85EBCA77 + high) % 2**32)))
    return (bits // 256) / 2**24 * 0.1 - 0.05


@pytest.mark.parametrize("seed", [0, 7, 2**40 + 3])
def test_starts_are_the_hash(seed):
    batch = BatchCartPole(3, seed=seed)
    state, obs = batch.reset()
    fallen = state._replace(theta=torch.tensor([0.0, 0.3, 0.0], dtype=torch.float64))
    for expected, found in (([0, 0, 0], state), ([0, 1, 0], batch.step(fallen, torch.zeros(3, dtype=torch.int64))[0])):
        assert found.episode.tolist() == expected
        for i in range(3):
            if found is state or i == 1:
                by_hand = [start_by_hand(seed, expected[i], 4 * i + d) for d in range(4)]
                assert values(found, i) == by_hand
                assert [start_value(seed, expected[i], 4 * i + d) for d in range(4)] == by_hand
    np.testing.assert_array_equal(obs, np.array([values(state, i) for i in range(3)], np.float32))


def test_starts_depend_on_seed_episode_and_index_alone():
    few, many = (BatchCartPole(n, seed=3).reset()[1] for n in (2, 1000))
    assert torch.equal(few, many[:2]) and not torch.equal(few, BatchCartPole(2, seed=4).reset()[1])
    assert len(many.unique()) > 3900 and many.abs().max() <= 0.05 and many.mean().abs() < 0.002
    # The second start is the same however the first episode went.
    seconds = []
    for action in (0, 1):
        batch = BatchCartPole(2, seed=3)
        state, _ = batch.reset()
        while int(state.episode[1]) == 0:
            state, step = batch.step(state, torch.full((2,), action))
        seconds.append(step.obs[1])
    assert torch.equal(*seconds)


def test_a_given_start_is_taken():
    start = torch.linspace(-0.2, 0.2, 12, dtype=torch.float64).view(3, 4)
    batch = BatchCartPole(3)
    state, obs = batch.reset(start)
    assert torch.equal(torch.stack(state[:4], 1), start) and torch.equal(obs, start.float())
    assert torch.equal(batch.observe(state), obs)
    start += 1.0
    assert float(state.x[0]) == -0.2  # its own memory
    for wrong in (start[:2], start.T, start * math.nan):
        with pytest.raises(ValueError, match=r"start.*\(3, 4\) finite"):
            batch.reset(wrong)


@pytest.mark.parametrize("arguments", [{"num_envs": 0}, {"num_envs": 2.5}, {"max_episode_steps": 0}])
def test_wrong_arguments_are_named(arguments):
    with pytest.raises(ValueError, match=next(iter(arguments))):
        BatchCartPole(**arguments)


def test_step_changes_nothing_that_was_handed_out():
    batch = BatchCartPole(5, max_episode_steps=4)
    state, obs = batch.reset()
    kept, copies = [*state, obs], [tensor.clone() for tensor in (*state, obs)]
    for _ in range(10):
        state, step = batch.step(state, torch.ones(5, dtype=torch.int64))
        kept += [*state, *step]
        copies += [tensor.clone() for tensor in (*state, *step)]
    assert all(torch.equal(a, b) for a, b in zip(kept, copies, strict=True))


def test_a_step_reads_nothing_on_the_host():
    """On the meta device there are no values to read; and the whole step can be traced into one graph."""
    batch = BatchCartPole(8, device="meta")
    state, obs = batch.reset()
    state, step = batch.step(state, torch.zeros(8, dtype=torch.int64, device="meta"))
    assert obs.device.type == step.next_obs.device.type == "meta" and step.obs.shape == (8, 4)
    from torch.fx.experimental.proxy_tensor import make_fx

    batch = BatchCartPole(8, seed=2)
    state, _ = batch.reset()
    action = torch.arange(8) % 2
    graph = make_fx(lambda *tensors: batch.step(CartPoleState(*tensors[:-1]), tensors[-1]))(*state, action)
    for traced, eager in zip(graph(*state, action), batch.step(state, action), strict=True):
        assert all(torch.equal(a, b) for a, b in zip(traced, eager, strict=True))


@pytest.mark.slow
def test_compiled_agrees():
    """Within the rounding of one step, from the same states; the flags are the same, and so are the starts in float32."""
    batch = BatchCartPole(64, seed=1, max_episode_steps=30)
    compiled = torch.compile(batch.step, fullgraph=True)
    state, _ = batch.reset()
    rng = np.random.default_rng(0)
    ends = 0
    for _ in range(100):
        action = torch.from_numpy(rng.integers(0, 2, 64))
        expected, step = batch.step(state, action)
        found, fast = compiled(state, action)
        for a, b in zip((*found, *fast), (*expected, *step), strict=True):
            tolerance = {torch.float64: FEW_ULP, torch.float32: {"rtol": 2.0**-23, "atol": 1e-15}}
            torch.testing.assert_close(a, b, **tolerance.get(b.dtype, {"rtol": 0, "atol": 0}))
        ends += int((step.terminated | step.truncated).sum())
        state = found
    assert ends > 100
