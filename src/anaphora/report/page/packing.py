"""Attention maps in a page: one byte per weight, in base64."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anaphora.base.errors import UserError


def pack_map(weights: ArrayLike) -> dict[str, Any]:
    """Encode a map for an explorer entry, with weights rounded to multiples of 1 / 255.

    Args:
        weights: (L, H, W, W), or (L, 1, W, W) for a map without heads; finite, clipped to [0, 1].

    Returns:
        "shape", a list of four sizes, and "data", base64 of uint8.

    Raises:
        UserError: weights of another shape.
    """
    array = np.asarray(weights, dtype=np.float32)
    if array.ndim != 4 or array.shape[2] != array.shape[3]:
        raise UserError(f"a map must be layers x heads x words x words, got {' x '.join(map(str, array.shape))}")
    scaled = array * 255.0
    np.rint(scaled, out=scaled)
    data = scaled.clip(0, 255).astype(np.uint8)
    return {"shape": list(array.shape), "data": base64.b64encode(data.tobytes()).decode("ascii")}


def unpack_map(stored: Mapping[str, Any]) -> NDArray[np.float64]:
    """Decode a map encoded by `pack_map`: (L, H, W, W) in [0, 1].

    Raises:
        UserError: a shape without four axes, or a number of bytes that does not match it.
    """
    data = np.frombuffer(base64.b64decode(stored["data"]), dtype=np.uint8)
    shape = tuple(int(size) for size in stored["shape"])
    if len(shape) != 4 or data.size != prod(shape):
        raise UserError(f"a map of {data.size} weights has shape {shape}; expected layers x heads x words x words")
    weights: NDArray[np.float64] = data.reshape(shape) / 255.0
    return weights


def compress_map(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Compress the data of an encoded map as in RFC 1950 (Deutsch and Gailly 1996), for pages with many weights.

    Returns:
        The encoded map with its "data" compressed and "encoding" set to "deflate"; `unpack_map` cannot read it.
    """
    # Weights rarely repeat, so a search for repetitions is slow and gains nothing over Huffman codes.
    packer = zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY)
    data = packer.compress(base64.b64decode(stored["data"])) + packer.flush()
    return {**stored, "data": base64.b64encode(data).decode("ascii"), "encoding": "deflate"}
