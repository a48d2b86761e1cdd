"""Settings are checked at construction, and errors name what is wrong (handed case 37)."""

import dataclasses

import numpy as np
import pytest

from rlbench.config import DQN_PRESETS, ConfigError, DQNConfig, make_config


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("batch_size", 0, ["batch_size", "at least 1", "0"]),
        ("batch_size", 32.0, ["batch_size", "whole number", "32.0", "float"]),
        ("batch_size", "32", ["batch_size", "whole number", "'32'", "str"]),
        ("batch_size", True, ["batch_size", "whole number", "bool"]),
        ("learning_rate", "1e-4", ["learning_rate", "a number", "'1e-4'"]),
        ("learning_rate", float("nan"), ["learning_rate", "nan"]),
        ("gamma", 1.5, ["gamma", "from 0 to 1", "1.5"]),
        ("double_dqn", "false", ["double_dqn", "True or False", "'false'"]),
        ("double_dqn", 0, ["double_dqn", "True or False"]),
        ("hidden", "64", ["hidden", "(64, 64)", "'64'"]),
        ("hidden", (64, 0), ["hidden", "at least 1"]),
        ("hidden", 64, ["hidden", "sequence"]),
        ("start_e", 0.01, ["start_e", "end_e"]),
        ("seed", -1, ["seed"]),
    ],
)
def test_wrong_values_are_refused(setting, value, words):
    with pytest.raises(ConfigError) as error:
        DQNConfig(**{setting: value})
    for word in words:
        assert word in str(error.value)


def test_unknown_setting_is_refused_with_the_nearest_name():
    with pytest.raises(ConfigError, match="total_stepz.*total_timesteps"):
        make_config(DQNConfig, {"total_stepz": 100})
    with pytest.raises(ConfigError, match="n_envs.*num_envs"):
        DQNConfig().replace(n_envs=8)


def test_values_take_their_declared_type():
    config = DQNConfig(learning_rate=1, batch_size=np.int64(8), hidden=[32, np.int32(16)], gamma=np.float32(0.5))
    assert config.learning_rate == 1.0 and type(config.learning_rate) is float
    assert type(config.batch_size) is int and config.hidden == (32, 16) and type(config.gamma) is float


def test_presets_are_valid_and_changeable():
    for name in DQN_PRESETS:
        assert isinstance(DQNConfig.preset(name), DQNConfig)
    assert DQNConfig.preset("fast", num_envs=2).num_envs == 2
    with pytest.raises(ConfigError, match="preset 'quick' is unknown: choose one of default"):
        DQNConfig.preset("quick")


def test_config_is_frozen_and_documented():
    with pytest.raises(dataclasses.FrozenInstanceError):
        DQNConfig().seed = 2
    assert all(field.metadata["help"] for field in dataclasses.fields(DQNConfig))
    with pytest.raises(ConfigError):  # a failed change leaves nothing behind
        DQNConfig().replace(batch_size=0)


def test_the_limits_in_a_refusal_are_exact():
    with pytest.raises(ConfigError, match="seed must be from 0 to 9223372036854775807, not 9223372036854775808"):
        DQNConfig(seed=2**63)
    with pytest.raises(ConfigError, match=r"learning_rate must be from 0 to 1e\+06, not 1e\+300"):
        DQNConfig(learning_rate=1e300)
    assert DQNConfig(seed=2**63 - 1).seed == 2**63 - 1
