"""One sentence's attention row laid over another sentence that differs from it in a few words.

T tokens of the sentence that lends the row, S of the one that takes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray


def lay_over(rows: NDArray[np.float32], lender: Sequence[int], taker: Sequence[int]) -> NDArray[np.float32]:
    """Rows of attention over one sentence as rows over another, so that patching needs no equal lengths.

    Tokens that both have in common keep their weight. What lies on a stretch of the lender that the taker has in other
    words goes to those words in equal parts; where the taker has none, to its common tokens in proportion.

    Args:
        rows: (..., T) that sum to 1.
        lender, taker: token ids, T and S of them.

    Returns:
        (..., S) that sum to 1.
    """
    laid = np.zeros((*rows.shape[:-1], len(taker)), dtype=np.float64)
    kept = np.zeros(len(taker), dtype=bool)
    homeless = np.zeros(rows.shape[:-1], dtype=np.float64)
    for kind, start, end, first, last in SequenceMatcher(None, lender, taker, autojunk=False).get_opcodes():
        if kind == "equal":
            laid[..., first:last] = rows[..., start:end]
            kept[first:last] = True
        elif last > first:
            laid[..., first:last] = rows[..., start:end].sum(axis=-1, keepdims=True, dtype=np.float64) / (last - first)
        else:
            homeless += rows[..., start:end].sum(axis=-1, dtype=np.float64)
    common = laid[..., kept].sum(axis=-1)
    share = np.divide(homeless, common, out=np.zeros_like(homeless), where=common > 0)
    laid[..., kept] *= 1 + share[..., None]
    return laid.astype(np.float32)
