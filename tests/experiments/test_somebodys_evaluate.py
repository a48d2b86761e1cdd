"""The lines that replace an `evaluate()` are those of the documentation, and give the same."""

import inspect

import rlbench.evaluations
from rlbench.experiments import somebodys_evaluate as somebodys


def statements(text):
    """Lines without what surrounds them and without comments."""
    lines = [line.split("  #")[0].strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(("import", "from", "#", '"""', "return"))]


def test_the_lines_are_those_of_the_documentation():
    documented = rlbench.evaluations.__doc__.split("yours:\n\n")[1].replace("rlbench.pack", "pack")
    body = inspect.getsource(somebodys.at_once).split('"""')[2]
    assert statements(body) == statements(documented)


def test_both_give_the_same():
    rows = somebodys.recipe([1, 30], device="cpu", quick=True, rounds=1, progress=False)
    assert [(row["variant"], row["size"], row["same"]) for row in rows] == [
        ("sample by sample", 1, True),
        ("at once", 1, True),
        ("sample by sample", 30, True),
        ("at once", 30, True),
    ]
