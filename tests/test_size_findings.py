"""What is said and drawn of a study over sizes."""

import pandas as pd

from rlbench import size_findings

BASE = {
    "label": "as given", "axis": "as given", "network": "mlp", "batch_size": 128, "hidden": "64-64", "parameters": 500,
    "seconds": 2.0, "seconds_low": 1.9, "seconds_high": 2.1, "samples_per_s": 1e5, "share": 0.4, "share_low": 0.3,
    "share_high": 0.5, "share_difference": 0.0, "share_difference_low": 0.0, "share_difference_high": 0.0,
    "gain_per_sample": 2.0, "time_ratio": 1.0, "time_ratio_low": 1.0, "time_ratio_high": 1.0, "speed": "baseline",
    "update": "eager",
}  # fmt: skip


def row(label, axis, difference, speed, **changes):
    low, centre, high = difference
    numbers = {"share_difference": centre, "share_difference_low": low, "share_difference_high": high}
    return {**BASE, "label": label, "axis": axis, "speed": speed, **numbers, **changes}


TABLE = pd.DataFrame(
    [
        BASE,
        row("batch 32", "batch", (-0.3, -0.2, -0.1), "faster", batch_size=32, samples_per_s=4e4, gain_per_sample=8.0),
        row("batch 512", "batch", (-0.1, 0.02, 0.1), "slower", batch_size=512, samples_per_s=2e5, time_ratio=1.5),
        row("width 256", "width", (0.1, 0.2, 0.3), "slower", hidden="256-256", parameters=9_000, time_ratio=2.5),
        row("conv", "network", (0.0, 0.1, 0.2), "no difference seen", network="conv", update="native"),
    ]
)


def test_the_answer_is_about_more_not_less():
    assert size_findings.answer(TABLE) == (
        "batch 512 against 128: slower, no difference seen in return; width 256 against 64-64: slower, better."
    )
    assert size_findings.answer(TABLE.head(2)).startswith("No batch is larger")


def test_sentences_by_axis():
    batch, width, network, samples = size_findings.sentences(TABLE)
    assert batch == (
        "Another batch size than 128, at as many env steps and updates: batch 32 takes 1.00 [1.00, 1.00] times as long, its "
        "share of the best return differs by -20 [-30, -10] points (faster, worse); batch 512 takes 1.50 [1.00, 1.00] times "
        "as long, its share of the best return differs by 2 [-10, 10] points (slower, no difference seen in return).",
        "none",
    )
    assert width[1] == "slower" and "than 64-64" in width[0] and "(slower, better)" in width[0]
    assert "as long, update native and not eager, its" in network[0] and network[1] == "none"
    assert "(no difference seen in time, no difference seen in return)" in network[0]
    # From 32 to 512: 2e5 / 4e4 samples a second; 2 against 8 for each sample.
    assert samples == (
        "From a batch of 32 to one of 512, samples a second change 5-fold, and what each sample brings in return above "
        "chance 0.25-fold.",
        "note",
    )


def test_a_gain_of_nothing_is_not_divided():
    table = TABLE.assign(gain_per_sample=[2.0, -1.0, 1.0, 1.0, 1.0])
    assert "no gain a sample to compare" in list(size_findings.sentences(table))[-1][0]


def test_what_was_not_studied_is_not_spoken_of():
    assert list(size_findings.sentences(TABLE.head(1))) == []


def test_every_configuration_is_a_mark_with_its_name():
    figure = size_findings.return_against_seconds(TABLE, "title")
    (axis,) = figure.axes
    assert {text.get_text() for text in axis.texts} == set(TABLE["label"])
    _, labels = axis.get_legend_handles_labels()
    assert labels == [
        "another batch size", "another width of the hidden layers", "another network", "as given",
    ]  # fmt: skip
