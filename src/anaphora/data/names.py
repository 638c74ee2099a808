"""Names replaced by others throughout a text, so that nothing known about a name can help."""

from __future__ import annotations

from collections.abc import Sequence

from anaphora.data.example import Example, Span


def renamed(example: Example, names: Sequence[str]) -> Example:
    """The same example with all mentions of each candidate written as another name.

    Candidates, antecedents and order stay; spans move with the lengths of the names. What a text says about a candidate
    without naming it, such as a first name alone, is not found and stays.

    Args:
        example: its candidates are names.
        names: one for each candidate.
    """
    written = {span: name for spans, name in zip(example.candidates, names, strict=True) for span in spans}
    marked = sorted([example.pronoun, *written])
    pieces: list[str] = []
    moved: dict[Span, Span] = {}
    read, length = 0, 0
    for start, end in marked:
        before, words = example.text[read:start], written.get((start, end), example.text[start:end])
        length += len(before)
        moved[start, end] = (length, length + len(words))
        length += len(words)
        pieces += [before, words]
        read = end
    return Example(
        text="".join([*pieces, example.text[read:]]),
        language=example.language,
        pronoun=moved[example.pronoun],
        candidates=tuple(tuple(moved[span] for span in spans) for spans in example.candidates),
        antecedents=example.antecedents,
        group=example.group,
        twin=example.twin,
        factors=example.factors,
    )


def with_exchanged_names(example: Example) -> Example:
    """The same example in which every candidate bears the name of the next one, the last that of the first."""
    names = [example.words(index) for index in range(len(example.candidates))]
    return renamed(example, [*names[1:], *names[:1]])
