"""The lines that a panel offers to copy are accepted by the commands that they name."""

import shlex

import nbformat
import pytest

from rlbench.cli.app import parse
from rlbench.cli.arguments import choices_of, given
from rlbench.config import DQNConfig
from rlbench.panel.bench import Bench
from rlbench.panel.lines import command_line, env_name, flag, notebook_lines


def make_env():
    """An env's factory in a module."""


def test_command_line_holds_what_is_not_the_presets():
    preset = DQNConfig()
    config = preset.replace(total_timesteps=500, hidden=(8, 4), double_dqn=False)
    line = command_line("dqn", "CartPole-v1", config, preset, ["--choices", "fast"], "cuda:1")
    expected = "rlbench train dqn --env CartPole-v1 --choices fast --total-timesteps 500 --double-dqn false "
    assert line == expected + "--hidden 8,4 --seed 1 --device cuda:1"


def test_an_env_without_a_name_gets_a_sentence():
    assert command_line("dqn", lambda: None, DQNConfig(), DQNConfig(), [], "cpu").startswith("# The env is an object")


def test_names_of_envs():
    assert env_name("CartPole-v1") == "CartPole-v1"
    assert env_name(make_env) == f"{__name__}:make_env"
    assert env_name(lambda: None) is None
    assert env_name(object()) is None


def test_names_with_blanks_are_quoted():
    line = command_line("dqn", "my env:make", DQNConfig(), DQNConfig(), [], "cpu")
    assert "--env 'my env:make'" in line


@pytest.mark.parametrize(
    ("value", "words"),
    [(True, "true"), (0.5, "0.5"), (3, "3"), ((64,), "64"), ((64, 32), "64,32")],
)
def test_flags_in_the_forms_of_the_command_line(value, words):
    assert flag("a_b", value) == ["--a-b", words]


def notebook(tmp_path, source):
    cell = nbformat.v4.new_code_cell(source, metadata={"tags": ["parameters"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), tmp_path / "03_x.ipynb")
    return tmp_path


def test_notebook_lines_name_only_parameters_that_are_declared(tmp_path):
    folder = notebook(tmp_path, 'steps: int = 10  # env steps\nreplay: str = "deque"  # variant\n')
    papermill, report = notebook_lines("03_x", {"steps": 500, "optimizer": "fused", "replay": "ring_torch"}, folder)
    assert papermill == "papermill notebooks/03_x.ipynb out.ipynb -p steps 500 -p replay ring_torch"
    assert report == "rlbench report 03 -p steps 500 -p replay ring_torch"


def test_the_panels_of_the_stored_notebooks_get_lines_that_hold_their_whole_state():
    start = Bench(choices="replay=deque", steps=500, notebook="00_start_here")
    replay = Bench(choices="replay=deque", slots=["replay"], steps=500, notebook="03_replay_buffer")
    assert (
        start.notebook_lines()[1]
        == "rlbench report 00 -p env CartPole-v1 -p steps 500 -p seed 1 -p choices replay=deque"
    )
    assert replay.notebook_lines()[1] == "rlbench report 03 -p steps 500 -p seed 1 -p replay deque"


def test_a_notebook_that_is_not_there_gets_a_sentence(tmp_path):
    assert notebook_lines("99_none", {}, tmp_path) == ("# There is no notebook 99_none.ipynb beside the package.",) * 2


def used_by_the_command(args, bench):
    """The slots that a training in that line's terms uses."""
    where = (bench.config, bench.device, bench.source)
    usable = choices_of(args, args.device).usable(*where)
    usable.check("dqn", *where)
    return usable.in_use(*where)


@pytest.mark.parametrize(
    "choices",
    ["naive", "plain", "fast", "replay=ring_torch", "loop=tensors", "conversion=preallocated,metrics=item_each_step"],
)
@pytest.mark.parametrize("config", [{}, {"hidden": (8, 4), "double_dqn": False, "tau": 0.5, "learning_rate": 1e-05}])
def test_the_command_line_understands_its_line(choices, config):
    bench = Bench(choices=choices, config=config, steps=700)
    args = parse(shlex.split(bench.command_line())[1:])
    assert bench.preset.replace(**given(args, DQNConfig)) == bench.config
    assert used_by_the_command(args, bench) == bench.in_use()
    assert (args.env, args.device) == ("CartPole-v1", "cpu")


@pytest.mark.parametrize("env", ["CartPole-v1", "Acrobot-v1", "ou"])
@pytest.mark.parametrize("name", ["naive", "plain", "fast"])
@pytest.mark.parametrize("then", [{}, {"replay": "ring_torch"}, {"metrics": "item_each_step", "optimizer": "foreach"}])
def test_the_line_computes_as_the_panel_does_after_any_choice(env, name, then):
    bench = Bench(env=env)
    bench.use(name)
    for slot, variant in then.items():
        bench.select(slot, variant)
    assert bench.problem() is None
    assert used_by_the_command(parse(shlex.split(bench.command_line())[1:]), bench) == bench.in_use()
