"""Episodes on disk: read as they were written, or refused with the file and the field."""

import zlib
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from rlbench.actions import unpack
from rlbench.episodes import EpisodeError, Episodes, load

TOP = 2**64 - 1
BOTH = pytest.mark.parametrize("ending", [".npz", ".parquet"])
FIELDS = ("obs", "choice", "log_prob", "reward", "terminated", "truncated", "last_obs", "bounds")


def recorded() -> Episodes:
    """Ids at both ends of their range, one action and many, an episode that was broken off between two that were not."""
    first = [([0.1, -2.0], [TOP, 0, 2**63], 2**63, 0.0, -0.1), ([1.0, 1.0], [5], 5, 1.0, 0.0)]
    second = [([2.0, 3.0], [2**53 + 1, 2**63 - 1], 2**63 - 1, -1.0, -0.75, False, True, [9.5, 1e-30])]
    third = [([4.0, 4.0], list(range(1400)), 1399, 0.25, -7.0)]
    return Episodes.from_lists([first, second, third], alternating=True, game="my game")


def same(one: Episodes, other: Episodes) -> bool:
    equal = all(torch.equal(getattr(one, n), getattr(other, n)) for n in FIELDS)
    sets = all(torch.equal(a, b) for a, b in zip(one.legal, other.legal, strict=True))
    return equal and sets and all(getattr(one, n) == getattr(other, n) for n in ("alternating", "behaviour", "game"))


@BOTH
def test_back_as_it_was(tmp_path, ending):
    path = tmp_path / "deep" / f"games{ending}"
    assert recorded().save(path) == path and same(load(path), recorded())
    assert [file.name for file in path.parent.iterdir()] == [path.name]  # no temporary file
    fixed = Episodes.from_lists([[([1.0], [3, 4], 4, 1.0)]])
    fixed.save(path)  # over the old one
    assert same(load(str(path)), fixed) and not load(path).behaviour


@BOTH
def test_no_episodes(tmp_path, ending):
    empty = Episodes.from_lists([])
    assert same(load(empty.save(tmp_path / f"e{ending}")), empty)
    assert same(load(recorded()[:0].save(tmp_path / f"e{ending}")), recorded()[:0])


def test_parquet_is_legible(tmp_path):
    frame = pd.read_parquet(recorded().save(tmp_path / "g.parquet"))
    assert frame["episode"].tolist() == [0, 0, 1, 2] and frame["choice"].tolist() == [2, 0, 1, 1399]
    assert frame["legal"][0].tolist() == unpack(recorded().legal)[0] and frame["obs"][2].tolist() == [2.0, 3.0]
    assert frame["next_obs"].isna().tolist() == [True, True, False, True]


@BOTH
def test_every_cut_is_refused(tmp_path, ending):
    whole = recorded().save(tmp_path / f"g{ending}").read_bytes()
    cut = tmp_path / f"cut{ending}"
    for size in [0, 1, 10, *range(50, len(whole), 97), len(whole) - 1]:
        cut.write_bytes(whole[:size])
        with pytest.raises(EpisodeError, match=f"^{cut}: .*cannot be read"):
            load(cut)


@BOTH
def test_damage_is_refused_or_does_no_harm(tmp_path, ending):
    """One byte after another turned over: an error that names the file, or the very same episodes."""
    path = recorded().save(tmp_path / f"g{ending}")
    whole, refused = path.read_bytes(), 0
    places = range(0, len(whole), max(1, len(whole) // 300))
    for at in places:
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x5A]) + whole[at + 1 :])
        try:
            assert same(load(path), recorded()), at
        except EpisodeError as error:
            assert str(path) in str(error)
            refused += 1
    assert refused > len(places) / 2


def test_an_ending_that_is_no_format_and_a_file_that_is_not_there(tmp_path):
    with pytest.raises(EpisodeError, match="the ending '.csv' is no format of episodes; accepted: .npz, .parquet"):
        recorded().save(tmp_path / "g.csv")
    with pytest.raises(FileNotFoundError, match=r"g.npz: there is no such file"):
        load(tmp_path / "g.npz")


def changed_npz(path: Path, change: dict) -> Path:
    with np.load(recorded().save(path)) as archive:
        arrays = {**{name: archive[name] for name in archive.files}, **change}
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    return path


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"reward": None}, "reward: missing"),
        ({"game": None}, "game: found None; accepted: str"),
        ({"version": np.array(2)}, "version: found 2; accepted: 1"),
        ({"alternating": np.array(1)}, "alternating: found 1; accepted: bool"),
        ({"ids": np.arange(1406)}, "ids: of type int64; accepted: uint64"),
        ({"obs": np.zeros((4, 2))}, "obs: of type float64; accepted: float32"),
        ({"obs": np.zeros((4, 3), np.float32)}, r"last_obs: \(3, 2\) torch.float32 is refused"),
        ({"offsets": np.array([0, 3, 4, 6, 1405])}, "legal: offsets run from 0 to 1405; .* 1406"),
        ({"offsets": np.array([0, 4, 3, 6, 1406])}, "legal: offsets fall behind state 1"),
        ({"offsets": np.array([0, 3, 3, 6, 1406])}, "legal: episode 0, step 1: state 1 has no legal action"),
        ({"offsets": np.array([0, 3, 1406])}, "legal: offsets of 2 states; accepted: one a step, 4"),
        ({"bounds": np.array([0, 2, 3, 5])}, "bounds: from 0 to 5; accepted: from 0 to 4"),
        ({"bounds": np.array([0, 3, 2, 4])}, "bounds: episode 1 has no step"),
        ({"choice": np.array([2, 0, 2, 0])}, "choice: episode 1, step 0: a choice beyond"),
        ({"reward": np.full(4, np.nan, np.float32)}, "reward: episode 0, step 0"),
        ({"game": np.array(["x"], object)}, "game cannot be read"),  # pickled
    ],
)
def test_wrong_archives_are_refused(tmp_path, change, message):
    path = changed_npz(tmp_path / "g.npz", change)
    with pytest.raises(EpisodeError, match=f"^{path}: {message}"):
        load(path)


def test_what_is_no_archive_of_episodes(tmp_path):
    path = tmp_path / "g.npz"
    path.write_bytes(b"not an archive at all")
    with pytest.raises(EpisodeError, match="the file cannot be read"):
        load(path)
    with path.open("wb") as file:
        np.save(file, np.arange(3))
    with pytest.raises(EpisodeError, match="the file cannot be read"):
        load(path)


def changed_parquet(path: Path, column: str, value: pa.Array | None) -> Path:
    table = pq.read_table(recorded().save(path))
    place = table.column_names.index(column)
    table = table.remove_column(place) if value is None else table.set_column(place, column, value)
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("legal", None, "legal: the column is missing"),
        ("choice", pa.array([2, 0, 1, 1399], pa.int32()), "choice: of type int32 with 0 nulls; accepted: int64"),
        ("reward", pa.array([0, 1, None, 0], pa.float32()), "reward: of type float32 with 1 nulls"),
        (
            "legal",
            pa.array([[1], [2], [3], [4]], pa.list_(pa.int64())),
            "legal: lists of int64; accepted: lists of uint64",
        ),
        ("legal", pa.array([1, 2, 3, 4]), "legal: of type int64; accepted: lists"),
        ("legal", pa.array([[1, 2, 3], None, [3, 4], [5]], pa.list_(pa.uint64())), "legal: there are nulls"),
        (
            "legal",
            pa.array([[1, 2, 3], [], [3, 4], [5]], pa.list_(pa.uint64())),
            "legal: episode 0, step 1: state 1 has no",
        ),
        ("choice", pa.array([2, 0, 1, 1400]), "choice: episode 2, step 0: a choice beyond"),
        ("obs", pa.array([[1.0, 2.0]] * 3 + [[1.0]], pa.list_(pa.float32())), "obs: row 3 has 1 numbers; accepted: 2"),
        ("next_obs", pa.array([None] * 4, pa.list_(pa.float32())), "next_obs: row 2 has 0 numbers; accepted: 2"),
        ("episode", pa.array([0, 0, 2, 2]), "episode: 2 in row 2; accepted: 0, 1, 2"),
        ("episode", pa.array([1, 1, 2, 3]), "episode: 1 in row 0"),
        ("episode", pa.array([0, 1, 0, 2]), "episode: 0 in row 2"),
        ("episode", pa.array([0, 0, 0, 1]), "terminated: episode 0, step 1: an end before"),
        ("episode", pa.array([0, 0, 1, 1]), "terminated: episode 1, step 0: an end before"),
    ],
)
def test_wrong_tables_are_refused(tmp_path, column, value, message):
    path = changed_parquet(tmp_path / "g.parquet", column, value)
    with pytest.raises(EpisodeError, match=f"^{path}: ({message})"):
        load(path)


def test_metadata_that_another_tool_dropped_or_changed(tmp_path):
    path = recorded().save(tmp_path / "g.parquet")
    table = pq.read_table(path)
    pq.write_table(table.replace_schema_metadata({}), path)
    with pytest.raises(EpisodeError, match="metadata: no whole entry rlbench.episodes"):
        load(path)
    kept = dict(table.schema.metadata)
    kept[b"rlbench.episodes"] = kept[b"rlbench.episodes"].replace(b"true", b"null")
    pq.write_table(table.replace_schema_metadata(kept), path)
    with pytest.raises(EpisodeError, match="metadata: no whole entry"):
        load(path)
    kept[b"rlbench.episodes.crc32"] = str(zlib.crc32(kept[b"rlbench.episodes"])).encode()
    pq.write_table(table.replace_schema_metadata(kept), path)
    with pytest.raises(EpisodeError, match="alternating: found None; accepted: bool"):
        load(path)
    path.write_text("not parquet", encoding="utf-8")
    with pytest.raises(EpisodeError, match="the file cannot be read"):
        load(path)


def test_other_tools_lists_are_read(tmp_path):
    """Ordinary lists in several row groups, as another writer makes them."""
    path = recorded().save(tmp_path / "g.parquet")
    table = pq.read_table(path)
    small = table.cast(
        pa.schema(
            [f.with_type(pa.list_(f.type.value_type)) if pa.types.is_large_list(f.type) else f for f in table.schema],
            metadata=table.schema.metadata,
        )
    )
    pq.write_table(small, path, row_group_size=1)
    assert same(load(path), recorded())
