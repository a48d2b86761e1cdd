"""What readers hand over as an env, and the one sentence for what cannot be used."""

import gymnasium
import numpy as np
import pytest

from rlbench import envs
from rlbench.envs.make import factory_of, make_collector
from rlbench.envs.old_style import OldStyle
from rlbench.envs.one_by_one import OneByOne
from rlbench.envs.spaces import EnvError
from rlbench.envs.vector import VectorCollector


class Old:
    """An environment from before Gym 0.26, with a time limit of two steps."""

    observation_space = gymnasium.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self):
        self.t = 0
        return np.zeros(2, np.float32)

    def step(self, action):
        self.t += 1
        return np.full(2, self.t / 10, np.float32), 1.0, self.t == 2, {"TimeLimit.truncated": self.t == 2}


class OldStep(Old):
    """Half-converted: reset as Gymnasium has it, step as before."""

    def reset(self, seed=None):
        return super().reset(), {}


def make_cartpole():
    return gymnasium.make("CartPole-v1")


def test_ids_factories_envs_and_vector_envs():
    for env in ("CartPole-v1", make_cartpole, make_cartpole(), f"{__name__}:make_cartpole"):
        if isinstance(env, str) and ":" in env:
            import sys

            sys.modules.setdefault(__name__, sys.modules[make_cartpole.__module__])
        collector = make_collector(env, 3, seed=1)
        assert isinstance(collector, OneByOne) and collector.obs.shape == (3, 4)
        assert len(np.unique(collector.obs, axis=0)) == 3  # each has a seed of its own
        assert collector.name == "CartPole-v1"
    vector = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    assert isinstance(make_collector(vector, 1, seed=1), VectorCollector)
    assert isinstance(factory_of(vector)().observation_space, gymnasium.spaces.Box)


def test_one_env_is_used_itself_and_copied_for_evaluation():
    env = make_cartpole()
    assert make_collector(env, 1, seed=0).envs[0].unwrapped is env.unwrapped  # around it, a wrapper that chooses starts
    other = gymnasium.make("MountainCar-v0")
    assert make_collector(other, 1, seed=0).envs[0] is other
    assert factory_of(env)() is not env


def test_the_trading_env_is_found_by_its_id():
    with pytest.raises(TypeError, match="market"):  # found, and asks for its market
        factory_of("rlbench/Trading-v0")()


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ("NoSuchEnv-v1", ["NoSuchEnv", "module:factory"]),
        ("no_such_module:make", ["no_such_module", "import"]),
        ("Pendulum-v1", ["Box actions", "Discrete", "ActionWrapper"]),
        (7, ["7", "an id, a factory"]),
    ],
)
def test_what_cannot_be_used_is_refused(env, words):
    with pytest.raises(EnvError) as error:
        make_collector(env, 1, seed=0)
    assert all(word in str(error.value) for word in words), str(error.value)


def test_gymnasiums_own_vectorised_envs():
    """They take one seed for all, and have no factories; their id makes the evaluation envs."""
    vector = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="vector_entry_point")
    collector = make_collector(vector, 1, seed=1)
    assert collector.obs.shape == (3, 4) and len(np.unique(collector.obs, axis=0)) == 3
    assert factory_of(vector)().spec.id == "CartPole-v1"


def test_a_factory_that_gives_no_env_or_always_the_same():
    with pytest.raises(EnvError, match="gave 5, which is no environment"):
        make_collector(lambda: 5, 1, seed=0)
    one = make_cartpole()
    with pytest.raises(EnvError, match="the same environment twice"):
        make_collector(lambda: one, 2, seed=0)


def test_a_reward_that_is_no_number_is_named():
    class Listed(Old):
        def reset(self, seed=None):
            return super().reset(), {}

        def step(self, action):
            return np.zeros(2, np.float32), np.array([1.0]), False, False, {}

    with pytest.raises(EnvError, match=r"gave the reward array\(\[1\.\]\); accepted is one number"):
        make_collector(Listed(), 1, seed=0).step(np.zeros(1, np.int64))


def test_dict_observations_are_refused_with_the_wrapper_line():
    class Dicts(gymnasium.Env):
        observation_space = gymnasium.spaces.Dict({"x": gymnasium.spaces.Discrete(2)})
        action_space = gymnasium.spaces.Discrete(2)

    with pytest.raises(EnvError, match=r"Dict observations.*gymnasium\.wrappers\.FlattenObservation\(env\)"):
        make_collector(Dicts(), 1, seed=0)


def test_num_envs_that_contradicts_the_vector_env_is_refused():
    vector = gymnasium.make_vec("CartPole-v1", num_envs=3, vectorization_mode="sync")
    with pytest.raises(EnvError, match="num_envs=4, but the vector env has 3"):
        make_collector(vector, 4, seed=0)


@pytest.mark.parametrize(("env", "call"), [(Old, "reset"), (OldStep, "step")])
def test_an_old_style_env_gets_one_sentence_and_the_wrapper_line(env, call):
    with pytest.raises(EnvError, match=rf"{call} returned .*rlbench\.envs\.OldStyle\(env\)"):
        make_collector(env(), 1, seed=0).step(np.zeros(1, np.int64))


def test_the_wrapper_makes_it_usable():
    assert envs.OldStyle is OldStyle
    collector = make_collector(OldStyle(Old()), 1, seed=0)
    flags = []
    for _ in range(3):
        collected = collector.step(np.zeros(1, np.int64))
        flags.append((bool(collected.terminated[0]), bool(collected.truncated[0])))
    assert flags == [(False, False), (False, True), (False, False)]


def test_an_observation_of_another_shape_is_named():
    class Wrong(Old):
        def reset(self, seed=None):
            return np.zeros(3, np.float32), {}

    with pytest.raises(EnvError, match=r"shape \(3,\); its observation_space says \(2,\)"):
        make_collector(Wrong(), 1, seed=0)
