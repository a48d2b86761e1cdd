"""Pictures of trainings on a game: what is drawn, not how it looks."""

import pandas as pd

from rlbench import plot_strength
from rlbench.experiments.game_training import CHANCE


def row(label, seed, opponent, steps, share):
    return {"label": label, "seed": seed, "opponent": opponent, "env_steps": steps, "seconds": steps / 100,
            "compile_s": 0.0, "win_share": share}  # fmt: skip


def test_a_column_an_opponent_and_the_middle_over_seeds_at_marks_that_all_reached():
    rows = [row(CHANCE, None, name, 0, 0.4) for name in ("random", "alpha_beta_2")]
    for name in ("random", "alpha_beta_2"):
        rows += [row("fast", seed, name, steps, 0.5) for seed in (1, 2) for steps in (100, 200)]
        rows += [row("fast", 1, name, 400, 0.9), row("naive", 1, name, 100, 0.5)]
    figure = plot_strength.strength(pd.DataFrame(rows), "title")
    assert [axis.get_title() for axis in figure.axes] == ["against random", "against alpha beta 2", "", ""]
    *_, last = figure.axes
    thick = {line.get_label(): line for line in last.lines if not line.get_label().startswith("_")}
    assert set(thick) == {"fast", "naive", CHANCE}
    assert list(thick["fast"].get_xdata()) == [100, 200] and list(thick["naive"].get_xdata()) == [100]


def test_the_log_is_drawn_by_way_for_the_first_seed():
    logs = pd.DataFrame(
        {"label": ["plain", "plain", "plain", "fast"], "seed": [1, 1, 2, 1], "env_step": [10, 20, 10, 10],
         "first_ratio_error": [0.0, 1e-7, 0.0, 0.0], "approx_kl": [0.1, 0.2, 0.3, 0.1]}
    )  # fmt: skip
    above, below = plot_strength.log_of_ppo(logs).axes
    assert [list(line.get_ydata()) for line in above.lines] == [[0.1, 0.2], [0.1]]
    assert list(below.lines[0].get_ydata()) == [plot_strength.LEAST_ERROR, 1e-7]


def test_the_guide_has_a_line_a_change_and_fills_marks_of_differences():
    names = ("sps_ratio", "by_steps", "by_seconds")
    numbers = {f"{name}{end}": 1.0 for name in names for end in ("", "_low", "_high")}
    verdicts = {"speed": "faster", "steps_verdict": "no difference seen", "seconds_verdict": "worse"}
    table = pd.DataFrame(
        [{"label": name, "axis": name, **numbers, **verdicts} for name in ("base", "hidden", "preset")]
    )
    figure = plot_strength.guide(table)
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["hidden", "preset"]
    faces = [axis.lines[-1].get_markerfacecolor() for axis in figure.axes]
    assert faces == [plot_strength.COLOURS[2], "white", plot_strength.COLOURS[5]]
