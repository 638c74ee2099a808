"""The examples of a stored split, decoded on demand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

from anaphora.data.example import Example, Question
from anaphora.data.store import Corpus


class StoredExamples(Sequence[Example]):
    """The examples of a stored split, which are decoded when one of them is first read.

    Args:
        corpus: where they are stored.
        split: which of its splits.
        numbers: of the examples; by default all.
    """

    def __init__(self, corpus: Corpus, split: str, numbers: Sequence[int] | None = None) -> None:
        self._corpus, self._split, self._numbers = corpus, split, numbers

    @overload
    def __getitem__(self, index: int) -> Example: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Example]: ...

    def __getitem__(self, index: int | slice) -> Example | Sequence[Example]:
        return self._examples[index]

    def __iter__(self) -> Iterator[Example]:
        return iter(self._examples)

    def __len__(self) -> int:
        return len(self._corpus.splits[self._split]) if self._numbers is None else len(self._numbers)

    @cached_property
    def _examples(self) -> list[Example]:
        return self._corpus.examples(self._split, self._numbers)

    def questions(self) -> list[Question]:
        """Return the text and the first character of the pronoun of each example."""
        return self._corpus.questions(self._split, self._numbers)


def questions_of(examples: Sequence[Example]) -> list[Question]:
    """Return the text and the first character of the pronoun of each example; stored ones are not decoded for it."""
    if isinstance(examples, StoredExamples):
        return examples.questions()
    return [example.question for example in examples]
