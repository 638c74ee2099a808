"""Measurements by language and kind of cue, labelled for figures and tables."""

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
    """Measurement of one language and kind of cue; `kind` is "all" for the whole language."""

    language: str
    kind: str
    cell: T

    @property
    def label(self) -> str:
        """Return the group in words: "English, role cues"."""
        return group_label(self.language, self.kind)


def kind_groups(part: Groups[T] | None) -> Iterator[Group[T]]:
    """Yield a group per language and kind of cue, or per language if its kinds were not measured separately."""
    return (Group(language, kind, cell) for language, kind, cell in claim_groups(part))


def all_groups(part: Groups[T] | None) -> Iterator[Group[T]]:
    """Yield each language as a whole, followed by its kinds of cue."""
    return (Group(language, kind, cell) for language, kind, cell in every_group(part))
