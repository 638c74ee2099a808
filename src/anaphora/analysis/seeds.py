"""How alike the rows of several seeds are on the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.cells import clusters, interval, rounded
from anaphora.analysis.record import AttentionRecord
from anaphora.analysis.scores import Head, is_main
from anaphora.analysis.study import Measurement
from anaphora.analysis.words import word_weights
from anaphora.errors import UserError


def divergences(runs: Mapping[str, Measurement]) -> list[dict[str, Any]]:
    """How far the pronoun rows of every two runs' chosen heads are apart, by language; main items that all runs scored.

    Args:
        runs: by name, two or more that were measured on the same items.

    Returns:
        A row for each pair and language: "run", "other", "language", "items", the mean "divergence" in bits, from 0 for
        the same rows to 1 for rows that share no word, and its 95 % bootstrap "interval" over templates. None where a
        chosen head is silenced.

    Raises:
        UserError: the runs differ in items, or cut a sentence into different words.
    """
    names, found = list(runs), list(runs.values())
    if len({len(each.seen.records) for each in found}) > 1:
        counts = ", ".join(str(len(each.seen.records)) for each in found)
        raise UserError(f"runs: they have {counts} items; expected the same")
    scored = set.intersection(*({int(place) for place in each.measured.kept} for each in found))
    examples = [record.example for record in found[0].seen.records]
    main = [place for place in sorted(scored) if is_main([examples[place]])[0]]
    records = [[each.seen.records[place] for place in main] for each in found]
    apart = row_divergence(records, [each.head for each in found])
    labels = clusters([examples[place] for place in main])
    rows = []
    for pair, (one, other) in enumerate(combinations(names, 2)):
        for language in sorted({examples[place].language for place in main}):
            spoken = [number for number, place in enumerate(main) if examples[place].language == language]
            values = apart[pair, spoken]
            rows.append(
                {
                    "run": one,
                    "other": other,
                    "language": language,
                    "items": len(spoken),
                    "divergence": rounded(values.mean()),
                    "interval": interval(values, [labels[number] for number in spoken]),
                }
            )
    return rows


def row_divergence(runs: Sequence[Sequence[AttentionRecord]], heads: Sequence[Head]) -> NDArray[np.float64]:
    """The Jensen-Shannon divergence between the word rows of every two runs' chosen heads, in bits (Lin 1991).

    Heads are not aligned across seeds: each run enters with the head that its own development split chose.

    Args:
        runs: R >= 2 runs' records of the same N items in the same order.
        heads: the R chosen heads.

    Returns:
        (P, N) for the P = R (R - 1) / 2 pairs in the order of `itertools.combinations`; 0 where two rows are the same,
        1 where they share no word; NaN where a head is silenced.

    Raises:
        UserError: the runs are fewer than two, differ in items, or cut a sentence into different words.
    """
    from scipy.spatial.distance import jensenshannon

    if len(runs) < 2 or len(heads) != len(runs):
        raise UserError(f"runs: there are {len(runs)} with {len(heads)} heads; expected two or more, a head for each")
    if len({len(records) for records in runs}) != 1:
        raise UserError(f"runs: they have {', '.join(str(len(records)) for records in runs)} items; expected the same")
    pairs = list(combinations(range(len(runs)), 2))
    found = np.empty((len(pairs), len(runs[0])))
    for item, records in enumerate(zip(*runs, strict=True)):
        rows = [word_weights(record) for record in records]
        if any(
            (record.example.text, row.spans) != (records[0].example.text, rows[0].spans)
            for record, row in zip(records, rows, strict=True)
        ):
            raise UserError(f"item {item}: the runs differ in its text or its words; expected runs on the same data")
        weights = [row.weights[head.layer, head.head] for row, head in zip(rows, heads, strict=True)]
        for place, (one, other) in enumerate(pairs):
            # scipy gives the distance, the root of the divergence.
            found[place, item] = jensenshannon(weights[one], weights[other], base=2) ** 2
    return found
