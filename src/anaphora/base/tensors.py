"""Reading and writing of arrays in safetensors files, with a hash by which a damaged file is recognised."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from anaphora.base.errors import UserError
from anaphora.base.files import atomic_write

_DIGESTS = "digests"
_ARRAYS = "arrays"


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], files: Mapping[str, str] | None = None) -> None:
    """Write arrays atomically, with metadata: the hash of the arrays, and `files`, the hashes of related files."""
    # One metadata entry: the format does not keep the order of entries, and equal arrays should give equal bytes.
    digests = json.dumps({_ARRAYS: arrays_digest(arrays), **(files or {})}, sort_keys=True)
    content = save({name: np.ascontiguousarray(values) for name, values in arrays.items()}, {_DIGESTS: digests})
    with atomic_write(path) as draft:
        # `save_file` would replace the draft by a new file with other permissions.
        draft.write_bytes(content)


def read_arrays(path: Path, way_out: str = "") -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    """Read arrays, and compare their hash with the stored hash if the file has one.

    Args:
        way_out: advice in the error message about a damaged file.

    Returns:
        The arrays by name, and the stored hashes of related files by name.

    Raises:
        FileNotFoundError: the file does not exist.
        UserError: the file cannot be read, is damaged, or has a data type that NumPy lacks.
    """
    advice = f"; {way_out}" if way_out else ""
    try:
        with safe_open(path, framework="numpy") as file:
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # not a mapping
            digests = json.loads((file.metadata() or {}).get(_DIGESTS, "{}"))
    except FileNotFoundError:
        raise
    except (SafetensorError, OSError, ValueError) as error:
        raise UserError(f"{path}: broken or cut off ({error}){advice}") from None
    except TypeError as error:  # such as bfloat16
        raise UserError(f"{path}: its numbers are of another type ({error}){advice}") from None
    if not isinstance(digests, dict) or (digests and digests.pop(_ARRAYS, None) != arrays_digest(arrays)):
        raise UserError(f"{path}: damaged: its contents are not what was written{advice}")
    return arrays, digests


def arrays_digest(arrays: Mapping[str, NDArray[Any]]) -> str:
    """Return the SHA-256 of arrays, including names, data types and shapes, in hexadecimal."""
    total = hashlib.sha256()
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        total.update(f"{name} {values.dtype.str} {values.shape} ".encode())
        total.update(values.reshape(-1).view(np.uint8).data)
    return total.hexdigest()
