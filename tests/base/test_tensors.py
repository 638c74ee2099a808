from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from anaphora.base.errors import UserError
from anaphora.base.tensors import read_arrays, write_arrays

ARRAYS = {
    "b": np.arange(6, dtype=np.float32).reshape(2, 3),
    "a": np.array([7], dtype=np.int32),
    "empty": np.empty((0, 2), dtype=np.float32),
}


def test_what_is_read_is_what_was_written_with_the_digests_of_further_files(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", ARRAYS, {"tokenizer.json": "12ab"})
    arrays, digests = read_arrays(tmp_path / "x")
    assert digests == {"tokenizer.json": "12ab"}
    assert arrays.keys() == ARRAYS.keys()
    for name, values in ARRAYS.items():
        assert arrays[name].dtype == values.dtype and np.array_equal(arrays[name], values)


def test_equal_arrays_are_equal_files(tmp_path: Path) -> None:
    write_arrays(tmp_path / "x", ARRAYS, {"b": "1", "a": "2"})
    write_arrays(tmp_path / "y", dict(reversed(ARRAYS.items())), {"a": "2", "b": "1"})
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()


def test_every_bit_that_is_changed_is_noticed_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    write_arrays(path, ARRAYS)
    content = path.read_bytes()
    refused = 0
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        try:
            arrays, _ = read_arrays(path, "write it again")
        except UserError as error:
            message = str(error)
            refused += message.startswith(f"{path}: ") and message.endswith("write it again")
            continue
        assert {name: values.tobytes() for name, values in arrays.items()} == {
            name: values.tobytes() for name, values in ARRAYS.items()
        }
    assert refused > len(content) * 0.8


def test_a_file_without_a_digest_is_read_as_it_is(tmp_path: Path) -> None:
    save_file({"a": ARRAYS["b"]}, tmp_path / "x")
    arrays, digests = read_arrays(tmp_path / "x")
    assert np.array_equal(arrays["a"], ARRAYS["b"]) and digests == {}


@pytest.mark.parametrize("content", [b"", b"\0" * 8, b"\xff" * 40, b"{}", b"\x02" + b"\0" * 7 + b"{}"])
def test_what_is_no_such_file_is_refused_or_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    if content.endswith(b"\0{}"):
        assert read_arrays(tmp_path / "x") == ({}, {})
        return
    with pytest.raises(UserError, match="broken or cut off"):
        read_arrays(tmp_path / "x")
