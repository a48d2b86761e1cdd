"""Othello as a Gymnasium environment: spaces, masks, opponents, colours, rewards, refusals."""

import copy
import json
import subprocess
import sys
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.utils.env_checker import check_env

from rlbench.envs.othello_env import ENV_ID, OthelloEnv
from rlbench.envs.othello_one import legal_ids, play, start_of
from rlbench.envs.players import PlayerError, greedy, player_of, random_player
from rlbench.envs.spaces import describe_spaces
from rlbench.models.action_scorer import ActionScorer


def last(obs, legal):
    return legal.ids[legal.offsets[1:] - 1]


def boards(obs, size):
    """(mine, theirs) as Python ints of an observation."""
    squares = [1 << (8 * r + c) for r in range(size) for c in range(size)]
    planes = obs.reshape(2, -1)
    return tuple(sum(square for square, disc in zip(squares, plane, strict=True) if disc) for plane in planes)


def action_of(action_id, theirs, size):
    if not action_id:
        return size * size
    placed = (action_id & ~theirs).bit_length() - 1
    return placed // 8 * size + placed % 8


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"size": 4, "opponent": "alpha_beta_2", "opening_plies": 3, "reward": "discs"},
        {"size": 6, "opponent": greedy, "render_mode": "ansi"},
    ],
)
def test_gymnasiums_checker_is_content(arguments):
    check_env(OthelloEnv(**arguments))
    check_env(gymnasium.make(ENV_ID, **arguments).unwrapped)


def test_spaces():
    env = OthelloEnv(size=6)
    assert env.observation_space == gymnasium.spaces.Box(0, 1, (72,), np.float32)
    assert env.action_space == gymnasium.spaces.Discrete(37)
    assert describe_spaces(env.observation_space, env.action_space, "Othello").num_actions == 37


@pytest.mark.parametrize(("size", "opponent"), [(4, "random"), (6, "greedy"), (8, last), (4, "alpha_beta_3")])
@pytest.mark.parametrize("reward", ["win", "discs"])
def test_episodes_are_games(size, opponent, reward):
    env = OthelloEnv(size, opponent, opening_plies=2, reward=reward)
    draws, passes, colours = np.random.default_rng(0), 0, []
    obs, info = env.reset(seed=3)
    for _ in range(12):
        colours.append(info["colour"])
        ended = False
        while not ended:
            mine, theirs = boards(obs, size)
            ids = legal_ids(mine, theirs, size)
            want = {action_of(action_id, theirs, size): action_id for action_id in ids}
            assert np.flatnonzero(info["action_mask"]).tolist() == sorted(want)
            assert info["action_mask"].shape == (size**2 + 1,)
            action = int(draws.choice(list(want)))
            passes += action == size**2
            theirs, mine = play(mine, theirs, want[action])  # seen by the agent
            obs, gained, ended, truncated, info = env.step(action)
            assert not truncated
            after = boards(obs, size)
            if ids := legal_ids(theirs, mine, size):
                assert after in [play(theirs, mine, action_id) for action_id in ids]
            else:
                assert ended
                assert after == (mine, theirs)
            if not ended:
                assert gained == 0
        mine, theirs = after
        assert legal_ids(mine, theirs, size) == []
        assert not info["action_mask"].any()
        lead = mine.bit_count() - theirs.bit_count()
        assert gained == (lead / size**2 if reward == "discs" else (lead > 0) - (lead < 0))
        obs, info = env.reset()
    assert all(a != b for a, b in pairwise(colours))
    assert passes or size > 4


def test_the_colour_is_who_began():
    env = OthelloEnv(4)
    seen = set()
    for seed in range(8):
        obs, info = env.reset(seed=seed)
        first = boards(obs, 4) == start_of(4)
        assert info["colour"] == ("black" if first else "white")
        assert obs.sum() == (4 if first else 5)
        seen.add(first)
    assert seen == {True, False}


def test_a_seed_fixes_everything():
    def play_out(env, seed):
        seen, (_, info) = [], env.reset(seed=seed)
        for _ in range(100):
            obs, reward, ended, _, info = env.step(int(info["action_mask"].argmax()))
            seen.append((obs.tolist(), reward))
            if ended:
                _, info = env.reset()
        return seen

    env = OthelloEnv(6, "random", opening_plies=3)
    assert play_out(env, 5) == play_out(OthelloEnv(6, "random", opening_plies=3), 5)
    assert play_out(env, 5) != play_out(env, 6)


def test_a_copy_goes_its_own_way():
    env = OthelloEnv(6, greedy)
    _, info = env.reset(seed=1)
    twin = copy.deepcopy(env)
    before = env.action_mask()
    twin.step(int(info["action_mask"].argmax()))
    assert np.array_equal(env.action_mask(), before)
    assert not np.array_equal(twin.action_mask(), before)
    assert twin.action_mask()[twin.action_space.sample()]


def test_samples_are_legal():
    env = OthelloEnv(4, "random")
    env.action_space.seed(9)
    for episode in range(20):
        env.reset(seed=episode)
        ended = False
        while not ended:
            _, _, ended, _, _ = env.step(env.action_space.sample())
    mask = np.zeros(17, np.int8)
    mask[5] = 1
    assert env.action_space.sample(mask) == 5


@pytest.mark.parametrize("seed", range(6))
def test_samples_after_a_seed_are_for_the_episode_of_that_seed(seed):
    env = OthelloEnv(6, "random", opening_plies=4)
    env.reset(seed=100)
    env.step(env.action_space.sample())
    env.action_space.seed(seed)
    action = env.action_space.sample()
    _, info = env.reset(seed=seed)
    assert info["action_mask"][action]


def test_actions_that_are_not_legal_are_named():
    env = OthelloEnv(8, "greedy")
    with pytest.raises(RuntimeError, match=r"call reset\(\) before step"):
        env.step(19)
    seed = next(s for s in range(9) if env.reset(seed=s)[1]["colour"] == "black")
    env.reset(seed=seed)
    for action in (0, 64, 65, -1):
        with pytest.raises(
            ValueError, match=rf"action={action} is not legal here; accepted: 20, 29, 34, 43|accepted: 19, 26, 37, 44"
        ):
            env.step(action)
    with pytest.raises(TypeError):
        env.step(1.5)
    assert env.reset(seed=seed)[0].sum() == 4


def test_a_game_that_has_ended_takes_no_step():
    env = OthelloEnv(4)
    env.reset(seed=1)
    ended = False
    while not ended:
        _, _, ended, _, _ = env.step(env.action_space.sample())
    with pytest.raises(RuntimeError, match="The episode has ended"):
        env.step(0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 5}, "size=5 is refused; accepted"),
        ({"opponent": "strong"}, "opponent 'strong' is refused; accepted: random, greedy"),
        ({"opponent": None}, "opponent=None is refused; accepted: random, greedy"),
        ({"opponent": 3}, "opponent=3 is refused"),
        ({"reward": "money"}, "reward='money' is refused"),
        ({"opening_plies": -1}, "opening_plies=-1 is refused"),
        ({"render_mode": "human"}, "render_mode='human' is refused; accepted: None or 'ansi'"),
    ],
)
def test_arguments_that_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        OthelloEnv(**arguments)


def test_reset_has_no_options():
    with pytest.raises(ValueError, match=r"reset options \['start'\] are unknown"):
        OthelloEnv().reset(options={"start": 1})


@pytest.mark.parametrize("answer", [7, torch.tensor([7]), torch.tensor([1, 2]), torch.tensor([7.0]), None])
def test_an_opponent_that_cheats_is_named(answer):
    env = OthelloEnv(4, lambda obs, legal: answer)
    with pytest.raises(PlayerError, match=r"the opponent gave .*; accepted: one of the legal ids \["):
        for seed in range(9):  # until the opponent is first
            env.reset(seed=seed)


def test_a_saved_policy_and_a_function_play_alike(tmp_path):
    model = ActionScorer(32, (8,), torch.Generator().manual_seed(1))
    (tmp_path / "config.json").write_text(json.dumps({"hidden": [8]}))
    torch.save(model.state_dict(), tmp_path / "weights.pt")
    envs = [OthelloEnv(4, tmp_path), OthelloEnv(4, str(tmp_path)), OthelloEnv(4, player_of(model))]
    states = [env.reset(seed=2) for env in envs]
    for _ in range(30):
        action = int(states[0][1]["action_mask"].argmax())
        steps = [env.step(action) for env in envs]
        assert all(np.array_equal(step[0], steps[0][0]) for step in steps)
        states = [env.reset() if steps[0][2] else (step[0], step[4]) for env, step in zip(envs, steps, strict=True)]
    with pytest.raises(PlayerError, match="a 6x6 board has 72"):
        OthelloEnv(6, tmp_path)


def test_an_opponent_that_draws():
    env = OthelloEnv(6, random_player(4))
    env.reset(seed=1)
    ended = False
    while not ended:
        _, _, ended, _, _ = env.step(env.action_space.sample())


def test_the_board_as_text():
    env = OthelloEnv(4, render_mode="ansi")
    seed = next(s for s in range(9) if env.reset(seed=s)[1]["colour"] == "black")
    env.reset(seed=seed)
    assert env.render() == " a b c d\n1 . * . .\n2 * O X .\n3 . X O *\n4 . . * .\nblack to move\n"
    assert OthelloEnv(4).render() is None
    other = next(s for s in range(9) if env.reset(seed=s)[1]["colour"] == "white")
    env.reset(seed=other)
    text = env.render()
    assert (text.count("X"), text.count("O")) == (4, 1)
    assert text.endswith("white to move\n")
    ended = False
    while not ended:
        *_, ended, _, _ = env.step(env.action_space.sample())
    lead = env.render().count("O") - env.render().count("X")
    assert env.render().endswith(f"over, white's lead: {lead}\n")


def test_it_is_made_by_its_module_and_id_in_a_new_process():
    code = (
        "import gymnasium; env = gymnasium.make('rlbench.envs.othello_env:rlbench/Othello-v0', size=4); "
        "print(env.reset(seed=1)[0].shape, env.unwrapped.spec.id)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "(32,) rlbench/Othello-v0"
