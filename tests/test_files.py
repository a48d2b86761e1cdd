import os
import stat

import pytest

from rlbench import files


def test_text_is_written_as_utf8_with_its_own_line_ends_and_parents_made(tmp_path):
    path = files.write_text(tmp_path / "a" / "b" / "note.txt", "é\r\nx\n")
    assert path.read_bytes() == b"\xc3\xa9\r\nx\n"
    assert os.listdir(path.parent) == ["note.txt"]


def test_bytes_replace_what_was_there_and_keep_its_permissions(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(b"old")
    path.chmod(0o600)
    files.write_bytes(path, b"")
    assert path.read_bytes() == b""
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("broken", ["fsync", "replace"])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, broken):
    path = tmp_path / "data.txt"
    files.write_text(path, "old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr(files.os, broken, fail)
    with pytest.raises(OSError, match="disk full"):
        files.write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["data.txt"]
