"""Helpers shared by the tests of corpus readers."""

from __future__ import annotations

from anaphora.data.example import Example

Splits = dict[str, list[Example]]


def everything(splits: Splits) -> list[Example]:
    return [example for examples in splits.values() for example in examples]


def words(example: Example) -> list[list[str]]:
    """Return the mentions of each candidate as in the text."""
    return [[example.text[start:end] for start, end in spans] for spans in example.candidates]


def pronoun(example: Example) -> str:
    return example.text[slice(*example.pronoun)]


def right(example: Example) -> list[str]:
    return [example.words(index) for index in example.antecedents]


def pairs_in_one_split(splits: Splits) -> bool:
    """Return whether each group has items in only one split."""
    groups = [{example.group for example in examples} for examples in splits.values()]
    return sum(map(len, groups)) == len(set().union(*groups))
