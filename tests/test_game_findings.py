"""What is said of trainings on a game, and of the measured guide."""

import pandas as pd

from rlbench import game_findings
from rlbench.experiments.game_training import CHANCE


def end(label, opponent, share, steps, seconds=3.0, seeds=3):
    games = {"games": 300, "wins": round(300 * share), "draws": 0, "losses": 300 - round(300 * share)}
    interval = {"win_share": share, "win_low": share - 0.05, "win_high": share + 0.05, "score": share}
    return {
        "opponent": opponent,
        "label": label,
        "seeds": seeds,
        "env_steps": steps,
        "seconds": seconds,
        **games,
        **interval,
    }


ENDS = pd.DataFrame(
    [
        end("plain", "random", 0.7, 9_000.0), end("fast", "random", 0.8, 60_000.0), end(CHANCE, "random", 0.5, 0.0, 0.0, 0),
        end("plain", "alpha_beta_2", 0.4, 9_000.0), end("fast", "alpha_beta_2", 0.6, 60_000.0),
        end(CHANCE, "alpha_beta_2", 0.3, 0.0, 0.0, 0),
    ]
)  # fmt: skip


def test_the_answer_names_time_steps_shares_and_chance():
    assert game_findings.answer(ENDS, "fast", "Othello 6x6") == (
        "Othello 6x6: after 3 s of training under fast, 60,000 env steps, PPO wins 80% [75%, 85%] against random (random moves "
        "50%), 60% [55%, 65%] against alpha beta 2 (random moves 30%); 300 games each, of 3 seeds; Wilson's 95 % interval."
    )


def test_ways_are_set_side_by_side_an_opponent_each():
    first, second = game_findings.strengths(ENDS)
    assert first == (
        "Games won against random: plain 70% [65%, 75%] after 9,000 env steps in 3 s; fast 80% [75%, 85%] after 60,000 env "
        "steps in 3 s.",
        "note",
    )
    assert second[0].startswith("Games won against alpha beta 2: plain 40%") and CHANCE not in second[0]


def test_pace_against_plain_where_it_was_trained():
    speeds = pd.DataFrame({"label": ["plain", "fast"], "sps": [2_500.0, 20_000.0]})
    ((text, tone),) = game_findings.pace(speeds)
    assert "plain 2,500, fast 20,000; times those of plain: fast 8 (" in text and tone == "note"
    ((alone, _),) = game_findings.pace(speeds.tail(1))
    assert alone.startswith("Env steps a second, self-play and updates together: fast 20,000 (medians")


def same(verdict, equal_until):
    return {
        "opponent": "greedy", "env_steps": 4_096, "seeds": 3, "chance": 0.4, "base": 0.70, "other": 0.72, "difference": 0.02,
        "low": -0.01, "high": 0.05, "verdict": verdict, "equal_until": equal_until,
    }  # fmt: skip


def test_the_verdict_on_learning_is_said_without_its_stamp():
    said = list(game_findings.sameness(pd.DataFrame([same("not shown to learn the same (quick: do not cite)", 2_048)])))
    assert said == [
        ("Up to 2,048 env steps fast and plain win, draw and lose as many games in every match.", "none"),
        (
            "Against greedy, after 4,096 env steps each, fast scores 72% and plain 70%, a difference of 2.0 [-1.0, 5.0] points "
            "over 3 seeds: not shown to learn the same.",
            "note",
        ),
    ]  # fmt: skip
    ((_, tone),) = game_findings.sameness(pd.DataFrame([same("learns less", 0)]))
    assert tone == "slower"
    ((text, tone),) = game_findings.sameness(pd.DataFrame())
    assert "no mark in common" in text and tone == "not measured"


def test_ratios_that_are_exact_are_said_to_be():
    logs = pd.DataFrame(
        {"label": ["plain", "plain", "fast"], "first_ratio_error": [2e-7, 1e-7, 0.0], "approx_kl": [0.01, 0.03, 0.02]}
    )
    ((text, _),) = game_findings.ratios(logs)
    assert "plain 2.0e-07 (KL at most 0.03); fast nothing at all (KL at most 0.02)." in text


def change(label, axis, speed, steps, seconds, **more):
    numbers = {
        f"by_{name}{end}": value
        for name in ("steps", "seconds")
        for end, value in (("", 0.1), ("_low", -0.1), ("_high", 0.2))
    }
    ratio = {"sps_ratio": 1.5, "sps_ratio_low": 1.4, "sps_ratio_high": 1.6, "seeds": 6}
    verdicts = {"speed": speed, "steps_verdict": steps, "seconds_verdict": seconds}
    return {"label": f"{axis}={label}", "axis": axis, "value": label, **numbers, **ratio, **verdicts, **more}


BASE = change("", "base", "baseline", "no difference seen", "no difference seen")


def test_each_setting_and_then_what_to_make_of_it():
    table = pd.DataFrame(
        [
            BASE,
            change("32", "batch_size", "faster", "no difference seen", "better"),
            change("1", "update_epochs", "faster", "worse", "no difference seen"),
            change("8", "update_epochs", "slower", "better", "worse"),
        ]
    )
    batch, epochs, better, worse, free, dear = game_findings.guide(table)
    assert batch == (
        "batch_size (samples in a minibatch): 32 runs 1.50 [1.40, 1.60] times as fast as the base (faster), after as many env "
        "steps its return differs by +0.100 [-0.100, +0.200] (no difference seen), after as many seconds by +0.100 [-0.100, "
        "+0.200] (better).",
        "faster",
    )
    assert epochs[1] == "none" and "; 8 runs" in epochs[0]
    assert better[0] == "Better than the base after as many seconds: batch_size=32."
    assert worse[0] == "Worse after as many seconds: update_epochs=8."
    assert free[0] == "Faster, and no difference seen after as many seconds: update_epochs=1."
    assert dear[0] == "Faster, and worse after as many env steps: speed that costs return: update_epochs=1."


def test_too_few_seeds_are_said_to_be():
    few = "too few seeds"
    table = pd.DataFrame([BASE, change("8", "update_epochs", few, few, few)]).assign(seeds=2)
    *_, (text, tone) = game_findings.guide(table)
    assert text.startswith("With 2 seeds nothing is said") and tone == "not measured"


def test_what_was_not_evaluated_has_no_number():
    no = "not evaluated"
    (text, _), *_ = game_findings.guide(pd.DataFrame([BASE, change("8", "hidden", "faster", no, no)]))
    assert "after as many env steps it was not evaluated, after as many seconds by it was not evaluated" not in text
    assert "after as many env steps it was not evaluated" in text and "nan" not in text
