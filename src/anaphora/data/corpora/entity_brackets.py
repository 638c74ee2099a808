"""Brackets around mentions, and which part of a bracket `Entity=(e12-person-1-` of CoNLL-U names the entity.

A line `# global.Entity = eid-etype-head-other` declares the parts. What it declares is checked against the brackets of
the file. Files without such a line, as GUM had before version 8, are read only if the file itself shows which part is
the entity: brackets that close repeat it, and GUM's entity types are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from anaphora.base.errors import UserError

_TYPE_NAMES = "abstract animal event object organization person place plant quantity substance time"
ENTITY_TYPES = frozenset(_TYPE_NAMES.split())
"""The entity types of GUM, which stand beside the entity in a bracket: person-1, or 1-person."""

HEAD_FIELDS, SPAN_FIELDS = ("head",), ("minspan", "min")
"""The parts that give the head word, and those that give the words that matter most, the head first."""

_ENTITY_FIELDS = ("eid", "grp")
_FREE_FIELDS = ("identity", "other")  # the last part, in which hyphens may stand
_BRACKET = re.compile(r"\([^()]+\)?|[^()]+\)")
_PIECE = re.compile(r"(.*)\[(\d+)/(\d+)\]")
_EXAMPLE = "# global.Entity = eid-etype-head-other"


@dataclass(frozen=True)
class Bracket:
    """A bracket of CoNLL-U around a mention.

    Attributes:
        where: its file and line.
        row: of the document, words and empty nodes counted from 0.
        parts: what stands in it, separated by hyphens.
        opens, closes: whether a mention begins with the row, and whether one ends with it.
    """

    where: str
    row: int
    parts: tuple[str, ...]
    opens: bool
    closes: bool

    def __str__(self) -> str:
        return f"{'(' * self.opens}{'-'.join(self.parts)}{')' * self.closes}"

    def entity(self, place: int) -> str:
        """Return the entity, which is the part at a place; a bracket that only closes may hold the entity alone."""
        return self.parts[place if self.opens or len(self.parts) > 1 else 0]

    def has_part(self, place: int) -> bool:
        """Return whether the entity may be the part at a place."""
        return place < len(self.parts) or (not self.opens and len(self.parts) == 1)


Brackets = Sequence[Bracket | None]
"""Brackets in the order of the file; None ends a sentence."""


@dataclass(frozen=True)
class BracketFields:
    """The declaration `# global.Entity`.

    Attributes:
        where: file and line of the declaration.
        names: of the parts of an opening bracket, in lower case.
        entity: the place of the part that names the entity.
    """

    where: str
    names: tuple[str, ...]
    entity: int

    def head(self, bracket: Bracket, names: Sequence[str]) -> int:
        """Return which row of a mention its bracket gives as the head, from 1, in the part of one of some names.

        0 if no such part is declared or it is empty. Of several rows, as in `minspan`, the first counts.

        Raises:
            UserError: the part holds no number.
        """
        for name in names:
            place = self.names.index(name) if name in self.names else len(bracket.parts)
            written = bracket.parts[place] if place < len(bracket.parts) else ""
            first = written.partition(",")[0]
            if first.isascii() and first.isdecimal() and 0 < len(first) < 6 and int(first):
                return int(first)
            if written:
                raise UserError(
                    f"{bracket.where}, Entity: {name} {written!r} in {bracket} must be the number of a word, from 1"
                )
        return 0


def parse_fields(where: str, written: str) -> BracketFields:
    """Parse the field names in a declaration `# global.Entity = eid-etype-head-other` of CoNLL-U.

    Args:
        where: file and line, for the error.
        written: the field names, separated by hyphens.

    Raises:
        UserError: there is no field `eid` or `GRP`.
    """
    names = tuple(name.strip().lower() for name in written.split("-"))
    for name in _ENTITY_FIELDS:
        if name in names:
            return BracketFields(where, names, names.index(name))
    raise UserError(f"{where}, global.Entity: {written!r} names no eid (or GRP), the entity of a mention")


def parse_brackets(where: str, row: int, written: str) -> list[Bracket]:
    """Read the brackets of a row, the value of `Entity=`.

    Raises:
        UserError: something stands next to the brackets.
    """
    found = _BRACKET.findall(written)
    if "".join(found) != written or not found:
        raise UserError(f"{where}, Entity: {written[:60]!r} must be made of (e1-..., e1) and (e1-...)")
    return [
        Bracket(where, row, tuple(one.strip("()").split("-")), one.startswith("("), one.endswith(")")) for one in found
    ]


def pair_brackets(brackets: Iterable[tuple[str, bool, bool] | None]) -> tuple[list[tuple[int, int, str]], int]:
    """Pair brackets that open with those that close, the latest of an entity first.

    Sentences close every mention, so that a lost bracket spoils no other sentence.

    Args:
        brackets: of each the entity, and whether it opens and closes; None ends a sentence.

    Returns:
        (place of the bracket that opens, of the one that closes, entity) of every mention in the order of their ends;
        and how many brackets have no partner.
    """
    pairs: list[tuple[int, int, str]] = []
    unbalanced = 0
    waiting: dict[str, list[int]] = {}
    for place, bracket in enumerate([*brackets, None]):
        if bracket is None:
            unbalanced += sum(map(len, waiting.values()))
            waiting = {}
            continue
        entity, opens, closes = bracket
        if opens:
            waiting.setdefault(entity, []).append(place)
        if closes and waiting.get(entity):
            pairs.append((waiting[entity].pop(), place, entity))
        elif closes:
            unbalanced += 1
    return pairs, unbalanced


def entity_brackets(brackets: Brackets, entity: int) -> tuple[list[tuple[str, bool, bool] | None], int]:
    """Return what `pair_brackets` needs if the part at the place `entity` is the entity, in as many places.

    Mentions in several parts, `e5[1/2]`, are left out.

    Returns:
        the brackets, and how many mentions are in several parts.
    """
    named: list[tuple[str, bool, bool] | None] = []
    in_pieces = 0
    for bracket in brackets:
        if bracket is None:
            named.append(None)
        elif piece := _PIECE.fullmatch(bracket.entity(entity)):
            in_pieces += bracket.closes and piece[2] == piece[3]
            named.append(("", False, False))
        else:
            named.append((bracket.entity(entity), bracket.opens, bracket.closes))
    return named, in_pieces


def undeclared_entity(brackets: Brackets) -> int:
    """Return which part of a bracket is the entity, in a file that does not declare it.

    Raises:
        UserError: the brackets do not show it.
    """
    opening = [bracket for bracket in brackets if bracket is not None and bracket.opens]
    closing = [bracket for bracket in brackets if bracket is not None and not bracket.opens]
    places = range(min((len(bracket.parts) for bracket in opening), default=1))
    fitting = [place for place in places if not _unbalanced(brackets, place)]
    if max((len(bracket.parts) for bracket in (*opening, *closing)), default=1) > 1:
        typed = _entity_beside_type(opening)
        fitting = [place for place in fitting if typed in (None, place)]
        if not closing and typed is None:
            fitting = []
    if len(fitting) != 1:
        first = (opening or closing)[0]
        raise UserError(
            f"{first.where}, Entity: no line '# global.Entity = ...' says which part of {first} is the entity, and the "
            f"brackets do not show it; write the line below '# newdoc', such as '{_EXAMPLE}'"
        )
    return fitting[0]


def check_fields(brackets: Brackets, fields: BracketFields) -> None:
    """Check the declared parts against the brackets of a document.

    Raises:
        UserError: a bracket has other parts, or another part than the declared one is the entity.
    """
    declared = "-".join(fields.names)
    opening = [bracket for bracket in brackets if bracket is not None and bracket.opens]
    for bracket in brackets:
        if bracket is None:
            continue
        has_more = len(bracket.parts) > len(fields.names)
        if not bracket.has_part(fields.entity) or (
            has_more and fields.entity > 0 and fields.names[-1] not in _FREE_FIELDS
        ):
            raise UserError(
                f"{bracket.where}, Entity: {bracket} has {len(bracket.parts)} parts, not those that global.Entity "
                f"declares: {declared} ({fields.where})"
            )
    typed = _entity_beside_type(opening)
    unbalanced = _unbalanced(brackets, fields.entity)
    places = range(min((len(bracket.parts) for bracket in opening), default=0))
    others = [place for place in places if unbalanced and _unbalanced(brackets, place) < unbalanced]
    if (opening and typed == 1 - fields.entity) or others:
        shown = opening[0] if opening else next(bracket for bracket in brackets if bracket)
        entity = (others[0] if others else typed) or 0
        raise UserError(
            f"{fields.where}, global.Entity: {declared!r} names part {fields.entity + 1} of a bracket as the entity, "
            f"but by the brackets it is part {entity + 1} (as in {shown}, {shown.where.rpartition(', ')[2]})"
        )


def _unbalanced(brackets: Brackets, place: int) -> int:
    """Return how many brackets have no partner if the part at a place is the entity."""
    if not all(bracket is None or bracket.has_part(place) for bracket in brackets):
        return len(brackets)
    return pair_brackets(entity_brackets(brackets, place)[0])[1]


def _entity_beside_type(opening: Sequence[Bracket]) -> int | None:
    """Return the place of the part next to one that is always a type of `ENTITY_TYPES`; None if there is none."""
    pairs = [bracket.parts[:2] for bracket in opening if len(bracket.parts) > 1]
    if not pairs or len(pairs) < len(opening):
        return None
    is_type: Mapping[int, bool] = {place: all(pair[place] in ENTITY_TYPES for pair in pairs) for place in (0, 1)}
    return next((1 - place for place in (0, 1) if is_type[place] and not is_type[1 - place]), None)
