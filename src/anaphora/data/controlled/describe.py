"""Counts of the items of a corpus, in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from anaphora.data.example import Example

Row = dict[str, str | int | float | None]


def corpus_table(corpus: Mapping[str, Sequence[Example]]) -> list[Row]:
    """Count items by split, language, kind, type and stratum.

    Args:
        corpus: examples by split.

    Returns:
        One row per combination that occurs, sorted by split, language, kind and type: the numbers of items, of items
        without an antecedent, of groups (items without a group count as one each) and of templates; chance (mean of 1 /
        number of focal candidates, 0 to 1); and the mean and the largest distance between antecedent and pronoun in
        words. Templates and distances are None if no item has the factor.
    """
    cells: dict[tuple[str, ...], list[Example]] = {}
    for split, examples in corpus.items():
        for example in examples:
            names = (example.factors.get(factor, "") for factor in ("kind", "type", "stratum"))
            cells.setdefault((split, example.language, *names), []).append(example)
    rows: list[Row] = []
    for (split, language, kind, cue_type, stratum), examples in cells.items():
        distances = [each.distance for each in examples if each.distance is not None]
        templates = {example.factors["template"] for example in examples if "template" in example.factors}
        rows.append(
            {
                "split": split,
                "language": language,
                "kind": kind,
                "type": cue_type,
                "stratum": stratum,
                "items": len(examples),
                "no_antecedent": sum(not example.antecedents for example in examples),
                "groups": len({example.group for example in examples if example.group})
                + sum(not example.group for example in examples),
                "templates": len(templates) or None,
                "chance": sum(1 / max(1, len(example.focal)) for example in examples) / len(examples),
                "mean_distance": sum(distances) / len(distances) if distances else None,
                "largest_distance": max(distances, default=None),
            }
        )
    order = list(corpus)
    rows.sort(
        key=lambda row: (order.index(str(row["split"])), *(str(row[name]) for name in ("language", "kind", "type")))
    )
    return rows
