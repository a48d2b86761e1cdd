"""Episodes as a Parquet table, a row a step, as people and other tools like to read them.

Columns: `episode`, `obs` (a list of D numbers), `legal` (a list of ids), `choice`, `log_prob`, `reward`, `terminated`,
`truncated`, and `next_obs`, which is null but where an episode was truncated. What is known of all rows is metadata.
"""

from __future__ import annotations

import io
import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from rlbench.episodes.checks import EpisodeError

KEY, CHECKSUM = b"rlbench.episodes", b"rlbench.episodes.crc32"  # of metadata, which Parquet has no checksum for
PLAIN = {
    "choice": "int64",
    "log_prob": "float32",
    "reward": "float32",
    "terminated": "bool",
    "truncated": "bool",
}
COLUMNS = ("episode", "obs", "legal", *PLAIN, "next_obs")


def to_bytes(arrays: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> bytes:
    """The file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    bounds, obs = arrays["bounds"], arrays["obs"]
    rows, size = obs.shape
    truncated = arrays["truncated"]
    next_obs = np.repeat(arrays["last_obs"], np.diff(bounds), axis=0)[truncated]
    next_offsets = np.concatenate(([0], np.cumsum(truncated * size)))
    columns = {
        "episode": np.repeat(np.arange(len(bounds) - 1), np.diff(bounds)),
        "obs": _lists(obs, np.arange(rows + 1) * size),
        "legal": _lists(arrays["ids"], arrays["offsets"]),
        **{name: arrays[name] for name in PLAIN},
        "next_obs": _lists(next_obs, next_offsets, absent=~truncated),
    }
    kept = json.dumps({**about, "obs_size": size}).encode()
    table = pa.table({name: pa.array(column) for name, column in columns.items()}).replace_schema_metadata(
        {KEY: kept, CHECKSUM: _crc(kept)}
    )
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", write_page_checksum=True)
    return out.getvalue()


def _crc(data: bytes) -> bytes:
    return str(zlib.crc32(data)).encode()


def _metadata(kept: Mapping[bytes, bytes]) -> dict[str, Any]:
    """What is known beside the rows."""
    if KEY not in kept or kept.get(CHECKSUM) != _crc(kept[KEY]):
        raise EpisodeError(
            f"metadata: no whole entry {KEY.decode()}: the file is damaged, or another tool wrote it anew."
        )
    return json.loads(kept[KEY])


def _lists(values: np.ndarray, offsets: np.ndarray, absent: np.ndarray | None = None) -> Any:
    """Lists of `values`, row by row: those between neighbouring offsets, or null where `absent`."""
    import pyarrow as pa

    mask = None if absent is None else pa.array(absent)
    return pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), pa.array(values.reshape(-1)), mask=mask)


def read(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """(arrays, what else is known), or an EpisodeError that names the column."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with path.open("rb") as file:
            table = pq.read_table(file, page_checksum_verification=True)
        kept, columns = table.schema.metadata or {}, table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise EpisodeError(f"the file cannot be read: it is cut short, damaged, or no Parquet ({error}).") from error
    missing = [name for name in COLUMNS if name not in columns]
    if missing:
        raise EpisodeError(f"{missing[0]}: the column is missing; a file of episodes has {', '.join(COLUMNS)}.")
    about = _metadata(kept)
    size = about.pop("obs_size")
    arrays = {name: _plain(table, name, kind) for name, kind in PLAIN.items()}
    obs, obs_offsets = _packed(table, "obs", "float32")
    arrays["ids"], arrays["offsets"] = _packed(table, "legal", "uint64")
    next_obs, next_offsets = _packed(table, "next_obs", "float32", arrays["truncated"])
    _check_sizes("obs", obs_offsets, np.full(len(table), size))
    _check_sizes("next_obs", next_offsets, arrays["truncated"] * size)
    episode, cut = _plain(table, "episode", "int64"), arrays["truncated"]
    arrays["obs"], arrays["bounds"] = obs.reshape(len(table), size), _bounds(episode)
    arrays["last_obs"] = np.zeros((len(arrays["bounds"]) - 1, size), np.float32)
    arrays["last_obs"][episode[cut]] = next_obs.reshape(int(cut.sum()), size)
    return arrays, about


def _column(table: Any, name: str) -> Any:
    """One column in one piece."""
    column = table.column(name).combine_chunks()
    return column.combine_chunks() if hasattr(column, "combine_chunks") else column


def _plain(table: Any, name: str, kind: str) -> np.ndarray:
    column = _column(table, name)
    found = _kind(column.type)
    if found != kind or column.null_count:
        raise EpisodeError(f"{name}: of type {found} with {column.null_count} nulls; accepted: {kind} without.")
    return np.array(column.to_numpy(zero_copy_only=False), kind)


def _packed(table: Any, name: str, kind: str, present: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """(values, offsets (rows + 1,) int64) of a column of lists."""
    import pyarrow as pa

    column = _column(table, name)
    if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
        raise EpisodeError(f"{name}: of type {column.type}; accepted: lists of {kind}.")
    if _kind(column.type.value_type) != kind:
        raise EpisodeError(f"{name}: lists of {column.type.value_type}; accepted: lists of {kind}.")
    lengths = column.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    values = column.flatten()  # without what lies under nulls
    if values.null_count or (present is None and column.null_count):
        raise EpisodeError(f"{name}: there are nulls; accepted: numbers alone.")
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).astype(np.int64)
    return np.array(values.to_numpy(zero_copy_only=False), kind), offsets


def _kind(arrow: Any) -> str:
    """Arrow's name of a type in NumPy's words."""
    name = str(arrow)
    return {"float": "float32", "double": "float64"}.get(name, name)


def _check_sizes(name: str, offsets: np.ndarray, sizes: np.ndarray) -> None:
    wrong = np.flatnonzero(np.diff(offsets) != sizes)
    if len(wrong):
        row = int(wrong[0])
        raise EpisodeError(f"{name}: row {row} has {int(np.diff(offsets)[row])} numbers; accepted: {int(sizes[row])}.")


def _bounds(episode: np.ndarray) -> np.ndarray:
    """Where episodes begin, (E + 1,), from the episode of each row."""
    count = int(episode[-1]) + 1 if len(episode) else 0
    steps = np.diff(episode, prepend=-1 if count else 0)
    if len(steps) and (steps[0] != 1 or ((steps != 0) & (steps != 1)).any()):
        row = int(np.flatnonzero((steps != 0) & (steps != 1))[0]) if steps[0] == 1 else 0
        raise EpisodeError(f"episode: {int(episode[row])} in row {row}; accepted: 0, 1, 2, …, each in one piece.")
    return np.concatenate((np.flatnonzero(steps), [len(episode)])).astype(np.int64)
