"""What the tests of several readers share."""

from __future__ import annotations

from anaphora.data.example import Example

Splits = dict[str, list[Example]]


def everything(splits: Splits) -> list[Example]:
    return [example for examples in splits.values() for example in examples]


def words(example: Example) -> list[list[str]]:
    """The mentions of every candidate, as the text writes them."""
    return [[example.text[start:end] for start, end in spans] for spans in example.candidates]


def pronoun(example: Example) -> str:
    return example.text[slice(*example.pronoun)]


def right(example: Example) -> list[str]:
    return [example.words(index) for index in example.antecedents]


def pairs_in_one_split(splits: Splits) -> bool:
    """Whether no group has items in two splits."""
    groups = [{example.group for example in examples} for examples in splits.values()]
    return sum(map(len, groups)) == len(set().union(*groups))
