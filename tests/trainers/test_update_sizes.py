"""Out of memory in PPO: the error names what a rollout and an update take, and settings that PPO has."""

import pytest
import torch

from rlbench import Choices, PPOConfig
from rlbench.envs.bandit import IdBandit
from rlbench.envs.othello import Othello
from rlbench.trainers.memory import OutOfMemory, explain_out_of_memory, largest
from rlbench.trainers.ppo import PPO

CONFIG = PPOConfig(
    total_timesteps=240,
    num_envs=3,
    num_steps=10,
    batch_size=16,
    update_epochs=1,
    hidden=(8, 6),
    eval_episodes=0,
    log_frequency=30,
)
CUDA_SAYS = "CUDA out of memory. Tried to allocate 20.00 GiB."


def pieces_of(trainer):
    return {piece.name: piece for piece in largest(trainer)}


def test_sizes_of_what_an_update_takes_by_hand():
    """A bandit of 4 features with 5 ids in every state: a sample is 4 + 2 * 5 + 6 numbers; the layers give 8, 6, 1 and 6
    numbers a state, and 64 bits and twice 6 numbers for each of 5 actions."""
    trainer = PPO(CONFIG.replace(gradient_accumulation=3), Choices.plain(), IdBandit(least=5, most=5))
    found = pieces_of(trainer)
    assert found["minibatch"].shape == (16, 20) and found["minibatch"].nbytes == 16 * 20 * 4
    assert found["activations"].shape == (6, 8 + 6 + 1 + 6 + 5 * (64 + 12))
    assert found["rollout"].shape == (10, 3, 24)


def test_sizes_with_a_fixed_number_of_actions_by_hand():
    """CartPole: 4 features and 6 numbers a sample, the next observation in a rollout; two networks 4-8-6-(2 or 1)."""
    found = pieces_of(PPO(CONFIG.replace(batch_size=10**6), env="CartPole-v1"))
    assert found["minibatch"].shape == (30, 10)  # a rollout has no more
    assert found["activations"].shape == (30, 2 * 14 + 2 + 1) and found["rollout"].shape == (10, 3, 14)


@pytest.mark.parametrize("env", [Othello(4), "CartPole-v1"])
@pytest.mark.parametrize("error", [torch.OutOfMemoryError(CUDA_SAYS), MemoryError()])
def test_the_error_names_settings_that_ppo_has_and_training_goes_on(env, error):
    trainer = PPO(CONFIG, Choices.plain(), env)
    update, left = trainer.apply_update, [5]

    def run_out(batch, learning_rate):
        left[0] -= 1
        if left[0] == 0:
            raise error
        return update(batch, learning_rate)

    run_out.skipped = 0
    trainer.apply_update = run_out
    with pytest.raises(OutOfMemory) as caught:
        trainer.train(progress=False)
    text = str(caught.value)
    assert "out of memory on cpu at env step 90. Largest there: " in text and "\n" not in text
    for setting in ("num_steps=10 (", "batch_size=16 (", "hidden=(8, 6) (", "num_envs=3 ("):
        assert f" {setting}" in text
    assert ", or raise gradient_accumulation=1, the parts in which a minibatch is computed; or give" in text
    history = caught.value.history
    assert history.interrupted and history.env_steps == 90 and len(history.weights) > 0
    history = trainer.train(progress=False)
    assert (history.env_steps, history.interrupted) == (240, False)


def test_only_what_lies_on_the_device_counts_and_the_largest_comes_first():
    trainer = PPO(CONFIG.replace(num_steps=1000, hidden=(64,)), Choices.plain("cuda"), "CartPole-v1")
    trainer.device = torch.device(
        "meta"
    )  # a device of another kind, with nothing on it but what is computed from sizes
    trainer.choices = trainer.choices.replace(upload="whole_rollout_once")
    with pytest.raises(OutOfMemory) as caught, explain_out_of_memory(trainer):
        raise torch.OutOfMemoryError(CUDA_SAYS)
    text = str(caught.value)
    assert "Largest there: rollout.there (1000, 3, 10) 0.12 MB; activations (16, 131) " in text
    assert "save most: num_steps=1000 (0.12 MB), batch_size=16 (" in text and "num_envs=3 (0 MB)" in text


@pytest.mark.skipif(Choices.fast().ppo_update != "native", reason="fast has another update")
def test_a_native_update_computes_in_parts_as_it_is():
    trainer = PPO(CONFIG, Choices.fast(), Othello(4))
    if trainer.choices.ppo_update != "native":
        pytest.skip("there is no compiler")
    with pytest.raises(OutOfMemory) as caught, explain_out_of_memory(trainer):
        raise MemoryError
    assert "gradient_accumulation" not in str(caught.value) and "hidden=(8, 6) (" in str(caught.value)
