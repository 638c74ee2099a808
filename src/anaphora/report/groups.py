"""Parts of the evidence by group with labels, for figures and tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from anaphora.analysis.evidence.evidence import claim_groups, every_group
from anaphora.analysis.results.scores import Groups
from anaphora.report.wording import group_label

T = TypeVar("T")


@dataclass(frozen=True)
class Group(Generic[T]):
    """The measurements of a language and kind of cue; the kind is "all" for the whole language."""

    language: str
    kind: str
    cell: T

    @property
    def label(self) -> str:
        """Return language and kind of cue in words."""
        return group_label(self.language, self.kind)


def kind_groups(part: Groups[T] | None) -> Iterator[Group[T]]:
    """Return every language by kind of cue; as a whole where its kinds were not measured separately."""
    return (Group(language, kind, cell) for language, kind, cell in claim_groups(part))


def all_groups(part: Groups[T] | None) -> Iterator[Group[T]]:
    """Return every language as a whole, then by kind of cue."""
    return (Group(language, kind, cell) for language, kind, cell in every_group(part))
