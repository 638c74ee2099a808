"""Examples of a cached split, decoded on first access."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import overload

from anaphora.data.example import Example, Question
from anaphora.data.store import DECODED_AT_ONCE, Corpus


class StoredExamples(Sequence[Example]):
    """Sequence of the examples of a cached split; all are decoded when the first is accessed.

    Args:
        corpus: the cached corpus.
        split: "train", "dev" or "test".
        numbers: indices of the examples in the split; None for all.
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
        """Return the text and the start of the pronoun of each example, without decoding the examples."""
        return self._corpus.questions(self._split, self._numbers)


class StreamedExamples(StoredExamples):
    """Sequence of all examples of a cached split, which are decoded in parts whenever they are read, and not kept."""

    @overload
    def __getitem__(self, index: int) -> Example: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Example]: ...

    def __getitem__(self, index: int | slice) -> Example | Sequence[Example]:
        numbers = range(len(self))[index]
        if isinstance(numbers, range):
            return self._corpus.examples(self._split, numbers)
        return self._corpus.examples(self._split, [numbers])[0]

    def __iter__(self) -> Iterator[Example]:
        for start in range(0, len(self), DECODED_AT_ONCE):
            yield from self[start : start + DECODED_AT_ONCE]


def questions_of(examples: Sequence[Example]) -> list[Question]:
    """Return the text and the start of the pronoun of each example; cached examples are not decoded."""
    if isinstance(examples, StoredExamples):
        return examples.questions()
    return [example.question for example in examples]
