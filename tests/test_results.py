import json
import math
import os
import subprocess
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
import torch

from rlbench import results
from rlbench.machine import StealMeter, describe
from rlbench.results import append, command, load, new_row, record, source_version


@pytest.fixture(scope="module")
def machine():
    return describe(steal_interval_s=0)


def test_a_row_carries_its_circumstances(machine):
    row = new_row("measure", device="cpu", seeds=[3, 4], machine=machine, slot="replay", ratio=1.5)
    expected = "kind slot ratio machine cpu gpu threads device load steal versions commit dirty seeds time command"
    assert list(row) == expected.split()
    assert row["machine"] == machine.slug and row["threads"] == torch.get_num_threads() and row["seeds"] == [3, 4]
    assert set(row["versions"]) == {"python", "torch", "numpy", "pandas", "gymnasium", "rlbench"}
    assert row["versions"]["torch"] == torch.__version__ and row["versions"]["pandas"] == pd.__version__
    age = datetime.now(UTC) - datetime.fromisoformat(row["time"])
    assert 0 <= age.total_seconds() < 60


def test_steal_comes_from_the_meter(machine):
    class Meter(StealMeter):
        def percent(self):
            return 12.5

    assert new_row("x", machine=machine, meter=Meter())["steal"] == 12.5


def test_a_field_does_not_hide_a_circumstance(machine):
    with pytest.raises(ValueError, match="commit, load"):
        new_row("x", machine=machine, load=1, commit="abc")


def test_missing_packages_are_none(monkeypatch):
    real = results.metadata.version

    def version(package):
        if package in ("gymnasium", "rlbench"):
            raise results.metadata.PackageNotFoundError
        return real(package)

    monkeypatch.setattr(results.metadata, "version", version)
    found = results.versions.__wrapped__()
    assert found["gymnasium"] is None and found["numpy"] == np.__version__


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_commit_and_dirty(tmp_path):
    version = source_version.__wrapped__  # without the cache
    package = tmp_path / "repo" / "package"
    package.mkdir(parents=True)
    (package / "a.py").write_text("1\n")
    git(tmp_path / "repo", "init", "-q")
    git(package, "add", ".")
    git(package, "commit", "-qm", "one")
    commit, dirty = version(package)
    assert len(commit) == 40 and dirty is False
    (tmp_path / "repo" / "result.json").write_text("{}")  # beside the package: not the code
    assert version(package) == (commit, False)
    (package / "b.py").write_text("2\n")
    assert version(package) == (commit, True)
    (package / "b.py").unlink()
    (package / "a.py").write_text("3\n")
    assert version(package) == (commit, True)
    installed = tmp_path / "repo" / "site-packages"  # in someone's repository, but not part of it
    installed.mkdir()
    (installed / "a.py").write_text("1\n")
    assert version(installed) == (None, None)


def test_no_git_and_no_repository(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert source_version.__wrapped__(tmp_path) == (None, None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert source_version.__wrapped__(tmp_path) == (None, None)


def test_command_tells_of_no_folder():
    root = os.path.abspath(os.sep)
    there = os.path.join(root, "home", "me", "prices.csv")
    program = os.path.join(root, "x", "bin", "rlbench")
    words = [program, "train", "--prices", there, f"--out={there}", "--seed", "1", "a b"]
    assert command(words) == "rlbench train --prices prices.csv --out=prices.csv --seed 1 'a b'"
    assert command([os.path.join(root, "x", "rlbench", "__main__.py"), "machine"]) == "rlbench machine"
    assert command(["runs/x.py"]) == "x.py"


def test_append_keeps_what_is_there(tmp_path):
    path = tmp_path / "deep" / "log.jsonl"
    append(path, [{"kind": "a", "n": 1}, {"kind": "a", "n": 2}])
    append(path, [])
    append(path, [{"kind": "a", "n": 3}])
    assert [json.loads(line)["n"] for line in path.read_text().splitlines()] == [1, 2, 3]


def test_append_after_a_half_written_line_loses_that_line_only(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"kind": "a", "n": 1}\n{"kind": "a", "n"')
    append(path, [{"kind": "a", "n": 3}])
    lines = path.read_text().splitlines()
    assert lines[1:] == ['{"kind": "a", "n"', '{"kind": "a", "n": 3}']
    with pytest.raises(ValueError, match=r"log\.jsonl, line 2: not JSON"):
        load(path)


def test_what_json_cannot_hold_is_converted_or_refused(tmp_path):
    row = {
        "kind": "a",
        "nan": math.nan,
        "inf": np.float32(math.inf),
        "int": np.int64(2**62),
        "flag": np.True_,
        "array": np.array([1.5, math.nan]),
        "nested": {"pair": (1, 2)},
    }
    path = append(tmp_path / "log.jsonl", [row])
    assert json.loads(path.read_text()) == {
        "kind": "a",
        "nan": None,
        "inf": None,
        "int": 2**62,
        "flag": True,
        "array": [1.5, None],
        "nested": {"pair": [1, 2]},
    }
    with pytest.raises(TypeError, match=r"field 'nested\.x' holds a object"):
        append(path, [{"kind": "ok"}, {"nested": {"x": object()}}])
    assert len(path.read_text().splitlines()) == 1, "nothing of a refused batch is written"


def test_record_never_overwrites(tmp_path, monkeypatch):
    class Frozen(datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(2031, 5, 6, 7, 8, 9, tzinfo=tz)

    monkeypatch.setattr(results, "datetime", Frozen)
    path = record([{"kind": "measure", "n": 1}, {"kind": "measure", "n": 2}], "amd-epyc-2c", folder=tmp_path)
    assert path == tmp_path / "amd-epyc-2c" / "20310506T070809Z-measure.json"
    assert [row["n"] for row in json.loads(path.read_text())] == [1, 2]
    with pytest.raises(FileExistsError, match="not overwritten"):
        record([{"kind": "measure", "n": 3}], "amd-epyc-2c", folder=tmp_path)
    assert [row["n"] for row in json.loads(path.read_text())] == [1, 2]


def test_record_refuses_nothing_mixtures_and_paths(tmp_path):
    with pytest.raises(ValueError, match="no rows"):
        record([], "m", folder=tmp_path)
    with pytest.raises(ValueError, match="different kinds"):
        record([{"kind": "a"}, {"kind": "b"}], "m", folder=tmp_path)
    for slug, kind in (("../m", "a"), ("..", "a"), ("m", "a/b"), ("", "a")):
        with pytest.raises(ValueError, match="file name"):
            record([{"kind": kind}], slug, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_load_gives_one_tidy_frame(tmp_path):
    early, late = "2031-01-01T00:00:00+00:00", "2031-01-02T00:00:00+00:00"
    record([{"kind": "measure", "time": late, "ratio": None, "versions": {"torch": "2"}}], "m", folder=tmp_path)
    append(tmp_path / "m" / "log.jsonl", [{"kind": "train", "time": early, "ratio": None, "round_times": [1.0, 2.0]}])
    (tmp_path / "config.json").write_text('{"seed": 1}')
    frame = load(tmp_path)
    assert frame["kind"].tolist() == ["train", "measure"]
    assert frame["time"].tolist() == [pd.Timestamp(early), pd.Timestamp(late)]
    assert frame["versions.torch"].tolist()[1] == "2" and frame["round_times"][0] == [1.0, 2.0]
    assert frame["ratio"].dtype == np.float64 and frame["ratio"].isna().all()
    assert frame["file"][0] == "log.jsonl" and not any("/" in name for name in frame["file"])
    assert len(load(tmp_path, tmp_path / "m" / "log.jsonl")) == 3


def test_load_of_nothing_and_of_the_wrong_things(tmp_path):
    assert load().empty and load(tmp_path).empty
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load(tmp_path / "nowhere")
    config = tmp_path / "config.json"
    config.write_text('{"seed": 1}')
    with pytest.raises(ValueError, match=r"config\.json: not a result row"):
        load(config)
    log = tmp_path / "log.jsonl"
    log.write_text('{"kind": "a"}\n\n[1]\n')
    with pytest.raises(ValueError, match=r"log\.jsonl, line 3: not a result row"):
        load(log)


def test_a_new_row_survives_the_way_to_the_frame(tmp_path, machine):
    path = append(tmp_path / "log.jsonl", [new_row("measure", machine=machine, ratio=0.5)])
    frame = load(path)
    assert frame["ratio"].tolist() == [0.5] and frame["versions.torch"].tolist() == [torch.__version__]
