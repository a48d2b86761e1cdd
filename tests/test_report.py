"""The report runner: parameters by their declared types, one kernel, failures kept apart, an index without a network."""

import json
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat import v4

from rlbench import report
from rlbench.reporting import parameters as p
from rlbench.reporting.execute import ProgressLines, Run, drop_progress, tail
from rlbench.reporting.findings import Finding, findings, outputs
from rlbench.reporting.index import Report, render
from rlbench.reporting.pages import page
from rlbench.reporting.stream import Stream

CELL = """quick: bool = True  # short
steps: int = 3  # env steps
rate: float = 0.5  # step size
use_amp: bool = True  # mixed precision
name: str = "plain"  # choices
sizes: list[int] = [1, 2]  # of batches"""
WORK = """import sys
from rlbench import notebook as nb
from rlbench.results import new_row
nb.start(quick)
nb.keep([new_row("test", steps_seen=steps)])
nb.verdict(f"{name} {steps * 2} {use_amp} {rate * 2} {sum(sizes)}", "slower", lead=True)
nb.finding(sys.executable)
print("working: 1 of 3 steps (33 %), 2/s, 0:01 left", file=sys.stderr)"""


def notebook(*sources, parameters=CELL):
    cells = [v4.new_markdown_cell("# Does <b>it</b> work?")]
    cells.append(v4.new_code_cell(parameters, metadata={"tags": ["parameters"]}))
    cells += [v4.new_code_cell(source) for source in sources]
    kernel = {"name": "a-stray-kernel", "display_name": "x", "language": "python"}
    return v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Notebooks: one that works, one that fails after a finding, one that takes too long, and one after it."""
    where = tmp_path_factory.mktemp("notebooks")
    nbformat.write(notebook(WORK), where / "00_good.ipynb")
    failing = 'from rlbench import notebook as nb\nnb.finding("before")\nraise ValueError("<i>broken</i>")'
    nbformat.write(
        notebook(failing, parameters="quick: bool = True  # short\nonly: int = 1  # here"), where / "01_bad.ipynb"
    )
    nbformat.write(
        notebook("import time\ntime.sleep(60)", parameters="quick: bool = True  # short"), where / "02_slow.ipynb"
    )
    nbformat.write(notebook("1", parameters="quick: bool = True  # short"), where / "03_after.ipynb")
    return where


@pytest.fixture(scope="module")
def finished(folder, tmp_path_factory):
    """A report over the good and the failing notebook, with parameters from a YAML file."""
    out = tmp_path_factory.mktemp("report") / "made" / "here"
    given = folder / "given.yaml"
    given.write_text("quick: true\n")
    code = report.run(["00", "1"], given, out, progress=False, notebooks=folder)
    return code, out


def test_a_failing_notebook_gives_1_and_keeps_the_others(finished):
    code, out = finished
    assert code == 1
    names = {path.name for path in out.iterdir()}
    assert names == {"00_good.ipynb", "00_good.html", "01_bad.ipynb", "01_bad.html", "index.html", "rows.jsonl"}
    index = (out / "index.html").read_text()
    assert "Of 2 notebooks 1 failed" in index
    assert "ValueError" in index and "&lt;i&gt;broken&lt;/i&gt;" in index and "<i>broken" not in index
    assert "before" in index  # what the failing one had found


def test_the_kernel_is_this_python_whatever_the_notebook_names(finished):
    executed = nbformat.read(finished[1] / "00_good.ipynb", as_version=4)
    assert findings(executed)[-1].text == sys.executable


def test_the_index_begins_with_the_verdict_and_needs_nothing_from_outside(finished):
    index = (finished[1] / "index.html").read_text()
    assert "<h1>plain 6 True 1.0 3</h1>" in index
    assert "quick: do not cite" in index
    assert "Does &lt;b&gt;it&lt;/b&gt; work?" in index
    for path in finished[1].glob("*.html"):
        text = path.read_text()
        assert "<script" not in text and 'src="http' not in text and "@import" not in text, path.name
    assert "OMP_NUM_THREADS" in (finished[1] / "00_good.html").read_text()


def test_rows_lie_beside_the_report_and_progress_is_dropped(finished):
    (row,) = [json.loads(line) for line in (finished[1] / "rows.jsonl").read_text().splitlines()]
    assert row["kind"] == "test" and row["steps_seen"] == 3
    executed = nbformat.read(finished[1] / "00_good.ipynb", as_version=4)
    streams = [output for output in outputs(executed) if output.output_type == "stream"]
    assert streams == []


def test_good_parameters_arrive_with_their_types(folder, tmp_path):
    given = {"steps": "0010", "use_amp": "false", "rate": "1e-4", "name": "<b>", "sizes": "4,5"}
    assert report.run([0], given, tmp_path / "r", progress=False, notebooks=folder) == 0
    index = (tmp_path / "r" / "index.html").read_text()
    assert "<h1>&lt;b&gt; 20 False 0.0002 9</h1>" in index
    assert "<b>injected</b>" in index and "steps to 00_good" in index


@pytest.mark.parametrize(
    ("numbers", "given", "says"),
    [
        (["00"], {"stepz": 1}, "did you mean steps?"),
        (["00"], {"steps": "1e3"}, "takes a whole number, not '1e3'"),
        (["00"], {"steps": True}, "takes a whole number, not True"),
        (["00"], {"use_amp": "maybe"}, "takes true or false"),
        (["00"], {"rate": "nan"}, "takes a number"),
        (["00", "01"], {"steps": 1}, "is not declared by 01_bad"),
        (None, {"n_envs": 8}, "is not declared by"),
        (["07"], {}, "there is no notebook '07'"),
        (["00"], "no/such/file.yaml", "not a readable file"),
    ],
)
def test_bad_input_gives_2_and_runs_nothing(folder, tmp_path, capsys, numbers, given, says):
    assert report.run(numbers, given, tmp_path / "r", progress=False, notebooks=folder) == 2
    said = capsys.readouterr().err
    assert says in said and said.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_a_report_is_not_written_over_another(folder, finished, capsys):
    assert report.run(["00"], {}, finished[1], progress=False, notebooks=folder) == 2
    assert "holds a report already" in capsys.readouterr().err


def test_the_limit_is_of_the_whole_notebook(folder, tmp_path, capsys):
    begin = time.monotonic()
    assert report.run(["02"], {}, tmp_path / "r", notebooks=folder, limit_s=4) == 1
    assert time.monotonic() - begin < 50  # not the sixty seconds that the cell sleeps
    assert "longer than its limit" in (tmp_path / "r" / "index.html").read_text()
    said = capsys.readouterr().err
    assert "notebook 1 of 1: 02_slow" in said and "FAILED" in said


@pytest.mark.skipif(sys.platform == "win32", reason="interrupts are sent in another way there")
def test_an_interrupt_leaves_an_index_of_what_was_finished_and_130(folder, tmp_path):
    out = tmp_path / "r"
    run = f"sys.exit(report.run(['00', '02', '03'], out={str(out)!r}, notebooks={str(folder)!r}))"
    command = [sys.executable, "-c", f"import sys; from rlbench import report; {run}"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        for line in process.stderr:
            if "02_slow" in line:
                time.sleep(2)  # in its first cells, or already asleep: either will do
                process.send_signal(signal.SIGINT)
                break
        assert "Traceback" not in process.stderr.read()
        assert process.wait(30) == 130
    index = (out / "index.html").read_text()
    assert "<h1>plain 6 True 1.0 3</h1>" in index
    assert "Of 3 notebooks 1 interrupted, 1 not run." in index
    assert (out / "02_slow.html").exists() and not (out / "03_after.html").exists() and "03_after.html" not in index


def test_the_index_is_there_after_every_notebook(folder, tmp_path, monkeypatch):
    seen = []
    execute = report.execute
    monkeypatch.setattr(report, "execute", lambda *a: seen.append((tmp_path / "r/index.html").exists()) or execute(*a))
    assert report.run(["00", "03"], {}, tmp_path / "r", progress=False, notebooks=folder) == 0
    assert seen == [False, True]


def test_a_full_run_asked_for_by_parameter_gets_the_time_of_a_full_run(folder, tmp_path, monkeypatch):
    limits = []
    execute = report.execute
    monkeypatch.setattr(report, "execute", lambda *a: limits.append(a[3]) or execute(*a))
    assert report.run(["03"], {"quick": "false"}, tmp_path / "r", progress=False, notebooks=folder) == 0
    assert limits == [report.FULL_LIMIT_S]


def test_an_unreadable_notebook_and_an_empty_folder_are_refused(tmp_path, capsys):
    assert report.run(notebooks=tmp_path) == 2
    (tmp_path / "00_x.ipynb").write_text("{")
    assert report.run(notebooks=tmp_path) == 2
    assert "00_x.ipynb is not a readable notebook" in capsys.readouterr().err


KINDS = {"quick": "bool", "steps": "int", "rate": "float", "use_amp": "bool", "name": "str", "sizes": "list[int]"}


def test_declared_parameters():
    known = p.declared(CELL)
    assert {name: parameter.kind for name, parameter in known.items()} == KINDS
    assert known["steps"].default == 3 and known["steps"].help == "env steps"


@pytest.mark.parametrize("source", ["x = 1", "x: int", "x: int = f()", "x: dict = {}", "x: int = 1.5", "print()"])
def test_anything_else_in_a_parameters_cell_is_refused(source):
    with pytest.raises(p.ParameterError):
        p.declared(source)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        ("int", " 0010 ", 10), ("int", "-3", -3), ("int", "1_000", 1000), ("int", 7, 7),
        ("float", "1e-4", 0.0001), ("float", "2", 2.0), ("float", 2, 2.0),
        ("bool", "FALSE", False), ("bool", "no", False), ("bool", "1", True), ("bool", False, False),
        ("str", "false", "false"), ("str", "", ""),
        ("list[int]", "[1, 2]", [1, 2]), ("list[int]", "", []), ("list[int]", (3,), [3]),
        ("list[str]", "['a', \"b\"]", ["a", "b"]), ("list[float]", "1,2e0", [1.0, 2.0]),
    ],
)  # fmt: skip
def test_conversion(kind, text, value):
    found = p.converted("x", kind, text, "here")
    assert found == value and type(found) is type(value)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", "0x10"), ("int", "1.0"), ("int", 1.0), ("int", True), ("int", None), ("float", True), ("float", "inf"),
        ("float", "x"), ("bool", 1), ("bool", "2"), ("str", 3), ("list[int]", 3), ("list[int]", "1,x"), ("list[int]", [True]),
    ],
)  # fmt: skip
def test_conversion_refuses(kind, value):
    with pytest.raises(p.ParameterError, match="parameter x of here takes"):
        p.converted("x", kind, value, "here")


def test_yaml_values_stay_text_until_the_declared_type_reads_them(tmp_path):
    (tmp_path / "a.yaml").write_text("rate: 1e-4\nsteps: 0010\nuse_amp: no\nsizes: [032, 64]\n")
    read = p.read_file(tmp_path / "a.yaml")
    known = {"n": p.declared(CELL)}
    assert p.assign(read, known, False)["n"] == {"rate": 0.0001, "steps": 10, "use_amp": False, "sizes": [32, 64]}


def test_a_parameter_goes_to_all_selected_or_to_those_that_have_it_when_all_run():
    one, two = p.declared("a: int = 1  # x\nb: int = 1  # x"), p.declared("b: int = 1  # x")
    assert p.assign({"a": 5}, {"one": one, "two": two}, everything=True) == {"one": {"a": 5}, "two": {}}
    with pytest.raises(p.ParameterError, match=r"not declared by two \(it is by one\)"):
        p.assign({"a": 5}, {"one": one, "two": two}, everything=False)
    with pytest.raises(p.ParameterError, match="takes a whole number"):
        p.assign({"b": "x"}, {"one": one, "two": two}, everything=True)


def test_a_page_drops_scripts_and_a_finding_escapes():
    finding = Finding("a <script>alert(1)</script>", "verdict", "slower", quick=True)
    executed = notebook("1")
    output = v4.new_output("display_data", data=finding.data())
    bad = v4.new_output("display_data", data={"text/html": "<script src='https://x.org/a.js'></script><p>kept</p>"})
    executed.cells[-1]["outputs"] = [output, bad]
    text = page(executed, "x")
    assert "<script" not in text and "x.org" not in text and "kept" in text and "&lt;script&gt;" in text
    index = render(Report([Run("00_x", executed, executed=executed)], True, "now", "<card>"))
    assert "<script" not in index and "&lt;card&gt;" in index and "do not cite" in index
    assert findings(executed) == [finding]


def test_progress_lines_go_and_other_errors_stay():
    executed = notebook("1")
    text = "DQN on x: 5 of 10 steps (50 %), 3/s, 0:02 left\nreal trouble\n"
    executed.cells[-1]["outputs"] = [v4.new_output("stream", name="stderr", text=text)]
    drop_progress(executed)
    assert executed.cells[-1]["outputs"][0].text == "real trouble\n"


def test_the_end_of_a_traceback_has_no_colours():
    assert tail("\n".join([f"\x1b[0;31mline {i}\x1b[0m" for i in range(40)])).splitlines()[-1] == "line 39"


def test_progress_says_notebook_n_of_m_with_rate_and_time_left(capsys):
    with Stream([2, 4]) as stream:
        stream.begin("00_a")
        stream.last_line = -1e9
        stream.cell(1, 2)
        ProgressLines(stream.within).write("a warning\nDQN on x: 5 of 10 steps (50 %), 3/s, 0:02 left, seed 1\n")
        stream.end(1.0, None)
        stream.begin("01_b")
    said = capsys.readouterr().err
    assert "notebook 1 of 2: 00_a, cell 1 of 2" in said and "cells/s" in said
    assert "notebook 1 of 2: 00_a, DQN on x: 5 of 10 steps (50 %), 3/s, 0:02 left, seed 1\n" in said
    assert "a warning" not in said
    assert "notebook 2 of 2: 01_b; about" in said and "00_a done in 0:01" in said
