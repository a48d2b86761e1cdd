"""Trainings on a game under several Choices: marks, time limits, stops; and tables whose numbers are worked out by hand."""

import pandas as pd
import pytest
import torch

from rlbench import Choices, ConfigError
from rlbench.envs.bandit import IdBandit
from rlbench.envs.othello import Othello
from rlbench.envs.players import greedy, random_player
from rlbench.envs.spaces import EnvError
from rlbench.experiments import game_training, one_game, strength_tables
from rlbench.experiments.game_training import CHANCE

SMALL = {"num_envs": 4, "num_steps": 8, "batch_size": 16, "hidden": (8,), "update_epochs": 1}
PLAIN = Choices.plain()


def trained(ways=("plain",), seeds=(1,), seconds=60.0, steps=128, **more):
    game, config = game_training.settings("othello4", total_timesteps=steps, **SMALL)
    limits = dict.fromkeys(ways, seconds)
    made = dict.fromkeys(ways, PLAIN)
    return game, game_training.train(game, config, made, seeds, seconds=limits, games=4, progress=False, **more)


def test_games_begin_with_random_plies_and_the_step_size_stays():
    game, config = game_training.settings("othello6", quick=True, learning_rate=0.5)
    assert game == Othello(6, opening_plies=20, least_opening_plies=0)
    assert (config.anneal_lr, config.eval_episodes, config.log_frequency) == (False, 0, 1)
    assert (config.num_envs, config.num_steps, config.learning_rate) == (32, 16, 0.5)
    with pytest.raises(ConfigError, match=r"bandit.*nobody to beat.*othello, othello6, othello4"):
        game_training.settings("bandit")


def test_marks_lie_twice_as_far_each_time_up_to_the_end():
    """A round is 4 · 8 = 32 env steps: marks at 32, 64, 128, and the end at 160."""
    game, (one,) = trained(steps=160)
    assert [point["env_steps"] for point in one.points] == [32, 64, 128, 160]
    assert list(one.log["env_step"]) == [32, 64, 96, 128, 160] and not one.stopped
    assert one.log["seconds"].is_monotonic_increasing and one.seconds >= one.log["seconds"].iloc[-1]
    made = game_training.rows(game, [one], games=4, quick=True)
    assert len(made) == 4 * 3 + 3 and {row["kind"] for row in made} == {"game_training"}
    assert [row["last"] for row in made] == [False] * 9 + [True] * 6
    assert all(row["wins"] + row["draws"] + row["losses"] == row["games"] == 4 for row in made)
    assert [row["label"] for row in made[-3:]] == [CHANCE] * 3 and made[-1]["env_steps"] == 0
    assert made[0]["choices"]["ppo_update"] == "eager" and made[0]["config"]["hidden"] == (8,) and made[0]["quick"]


def test_legs_learn_what_one_training_learns():
    game, (one,) = trained(steps=128)
    from rlbench import PPO

    whole = PPO(one.trainer.config.replace(log_frequency=1_000), PLAIN, game)
    whole.train(progress=False)
    for mine, theirs in zip(one.trainer.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_time_ends_a_training_after_the_round_that_has_begun():
    _, (one,) = trained(seconds=0.0)
    assert [point["env_steps"] for point in one.points] == [32] and one.late and not one.stopped


def test_a_way_may_be_trained_once_and_the_order_turns_with_the_seed():
    _, made = trained(("slow", "plain", "other"), (5, 6, 7), steps=32, once=("slow",))
    assert [(one.label, one.seed) for one in made] == [
        ("slow", 5), ("plain", 5), ("other", 5), ("plain", 6), ("other", 6), ("other", 7), ("plain", 7),
    ]  # fmt: skip


def test_what_was_reached_before_a_stop_is_kept():
    asked = iter([False, False, True])
    _, made = trained(seeds=(1, 2), should_stop=lambda: next(asked))
    (one,) = made
    assert one.stopped and [point["env_steps"] for point in one.points] == [32, 64, 96]


def test_an_interrupt_ends_everything():
    """The trainer stops of itself on the way to a mark: the first round is not followed by another."""
    game, config = game_training.settings("othello4", total_timesteps=1_000, **SMALL)
    from rlbench import PPO

    one = game_training.Training("plain", 1, PPO(config, PLAIN, game), 60.0)
    one.go_on(320, lambda seconds: one.trainer.stop() or False)
    assert one.stopped and one.over and one.trainer.env_steps == 32


def row(label, seed, opponent, env_steps, wins, losses, last=False, seconds=1.0):
    return {
        "label": label, "seed": seed, "opponent": opponent, "env_steps": env_steps, "wins": wins, "losses": losses,
        "draws": 10 - wins - losses, "games": 10, "score": (wins + (10 - wins - losses) / 2) / 10, "last": last,
        "win_share": wins / 10, "seconds": seconds,
    }  # fmt: skip


def made_rows():
    """Plain reaches 200 env steps, fast 400, and with one seed 800; up to 100 all games end alike."""
    rows = []
    for opponent in ("random", "greedy"):
        for seed in (1, 2, 3):
            for label, gain in (("plain", 0), ("fast", 1)):
                rows.append(row(label, seed, opponent, 100, 5, 5))
                rows.append(row(label, seed, opponent, 200, 6 + gain, 2, last=label == "plain", seconds=4.0))
            rows.append(row("fast", seed, opponent, 400, 8, 2, last=seed != 3, seconds=2.0))
        rows.append(row("fast", 3, opponent, 800, 9, 0, last=True, seconds=4.0))
        rows.append(row(CHANCE, None, opponent, 0, 2, 6, last=True, seconds=0.0))
    return rows


def test_the_ends_by_hand():
    """Fast wins 8 + 8 + 9 of 30, with one draw: (25 + 1/2) / 30. Wilson for 18 of 30: 0.423 to 0.754."""
    table = strength_tables.ends(made_rows())
    assert list(table["opponent"]) == ["random"] * 3 + ["greedy"] * 3
    plain, fast, chance = table.head(3).to_dict("records")
    assert (plain["label"], plain["seeds"], plain["games"], plain["wins"]) == ("plain", 3, 30, 18)
    assert plain["win_low"] == pytest.approx(0.4232, abs=1e-3) and plain["win_high"] == pytest.approx(0.7541, abs=1e-3)
    assert fast["score"] == pytest.approx(25.5 / 30) and fast["env_steps"] == 400
    assert chance["label"] == CHANCE and chance["win_share"] == 0.2


def test_speeds_by_hand():
    """Fast: 400 / 2 twice and 800 / 4; plain 200 / 4."""
    table = strength_tables.speeds(made_rows()).set_index("label")
    assert table.loc["fast", "sps"] == 200 and table.loc["plain", "sps"] == 50 and list(table["seeds"]) == [3, 3]


def test_the_same_strength_is_asked_at_the_last_mark_that_all_have_seen():
    """After 200: 6 wins, 2 draws (0.7) and 7 wins, 1 draw (0.75); chance is 2 wins and 2 draws, 0.3."""
    rows = made_rows()
    assert strength_tables.shared_marks(rows, ["plain", "fast"]) == [100, 200]
    table = strength_tables.same_strength(rows)
    first = table.iloc[0]
    assert (first["env_steps"], first["seeds"], first["equal_until"]) == (200, 3, 100)
    assert first["base"] == pytest.approx(0.7) and first["other"] == pytest.approx(0.75) and first["chance"] == 0.3
    assert first["difference"] == pytest.approx(0.05) and first["verdict"].startswith("learns the same")


def test_without_a_shared_mark_nothing_is_compared():
    rows = [row("plain", 1, "random", 10, 5, 5, True), row("fast", 1, "random", 20, 5, 5, True)]
    assert not len(strength_tables.same_strength(rows)) and not len(strength_tables.same_strength(rows[:1]))
    assert not len(strength_tables.same_strength(pd.DataFrame(rows), "plain", "naive"))


def test_a_game_is_played_to_its_end_in_turns():
    moves = one_game.play_one(Othello(4), [("a", random_player(1)), ("b", greedy)], seed=3, opening_plies=2)
    assert [move.by for move in moves[:5]] == ["opening", "opening", "a", "b", "a"]
    assert all(move.chosen in move.legal for move in moves[:-1])
    end = moves[-1]
    assert end.legal == [] and end.chosen is None and end.ply == len(moves) - 1
    # Discs: four at the start and one more at every ply but a pass.
    assert int(end.obs.sum()) == 4 + sum(move.chosen != 0 for move in moves[:-1])
    with pytest.raises(EnvError, match="two players"):
        one_game.play_one(IdBandit(), [("a", greedy), ("b", greedy)])


def test_some_positions_are_spread_and_keep_both_ends():
    assert one_game.some_of(list(range(11)), 3) == [0, 5, 10] and one_game.some_of([1, 2], 3) == [1, 2]
