"""Parsing of the brackets around mentions in CoNLL-U, such as `Entity=(e12-person-1-`, and of their fields.

A line `# global.Entity = eid-etype-head-other` declares the hyphen-separated fields, and is checked against the
brackets. If a file lacks this line, as GUM before version 8, the field with the entity's id is inferred from the
brackets (`undeclared_entity`). If this fails, a `UserError` names the first bracket.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anaphora.base.errors import UserError
from anaphora.data.corpora.word_classes import word_set

ENTITY_TYPES = word_set("abstract animal event object organization person place plant quantity substance time")
"""Entity types of GUM, which stand next to the entity's id in a bracket: person-1, or 1-person."""

HEAD_FIELDS, SPAN_FIELDS = ("head",), ("minspan", "min")
"""Names of the fields with the head word, and of those with the minimal span, which lists the head word first."""

_ENTITY_FIELDS = ("eid", "grp")
_FREE_FIELDS = ("identity", "other")  # fields that may contain hyphens if they are last
_BRACKET = re.compile(r"\([^()]+\)?|[^()]+\)")
_PIECE = re.compile(r"(.*)\[(\d+)/(\d+)\]")
_EXAMPLE = "# global.Entity = eid-etype-head-other"


@dataclass(frozen=True)
class Bracket:
    """Opening or closing bracket of a mention in a file, or both for a mention of one word."""

    where: str  # file and line
    row: int  # index of the token's row in the document, from 0, empty nodes included
    fields: tuple[str, ...]  # the hyphen-separated fields of the bracket
    opens: bool  # whether a mention begins at the row
    closes: bool  # whether a mention ends at the row

    def __str__(self) -> str:
        return f"{'(' * self.opens}{'-'.join(self.fields)}{')' * self.closes}"

    def entity(self, place: int) -> str:
        """Return the entity's id, which is the field at index `place`, or the only field of a closing bracket."""
        return self.fields[place if self.opens or len(self.fields) > 1 else 0]

    def has_field(self, place: int) -> bool:
        """Return whether the field at index `place` exists; True for a closing bracket with only the entity's id."""
        return place < len(self.fields) or (not self.opens and len(self.fields) == 1)


Brackets = Sequence[Bracket | None]  # brackets in the order of the file, with None at the end of each sentence


@dataclass(frozen=True)
class BracketFields:
    """Names of the fields of a bracket, as declared in a line `# global.Entity`."""

    where: str  # file and line
    names: tuple[str, ...]  # of the fields of an opening bracket, in lower case
    entity: int  # index of the field with the entity's id

    def head(self, bracket: Bracket, names: Sequence[str]) -> int:
        """Return the row number of a mention's head word, from 1 within the mention, as the opening bracket gives it.

        The number is read from the field that has one of the `names`. If this field is a list, such as `minspan`, the
        first number in the list is returned. The result is 0 if no field with these names is declared, or if all such
        fields are empty.

        Raises:
            UserError: such a field is neither empty nor a number from 1.
        """
        for name in names:
            place = self.names.index(name) if name in self.names else len(bracket.fields)
            written = bracket.fields[place] if place < len(bracket.fields) else ""
            first = written.partition(",")[0]
            if first.isascii() and first.isdecimal() and 0 < len(first) < 6 and int(first):
                return int(first)
            if written:
                raise UserError(
                    f"{bracket.where}, Entity: {name} {written!r} in {bracket} must be the number of a word, from 1"
                )
        return 0


def parse_fields(where: str, written: str) -> BracketFields:
    """Parse a declaration of bracket fields in CoNLL-U, such as "eid-etype-head-other" after `# global.Entity =`."""
    names = tuple(name.strip().lower() for name in written.split("-"))
    for name in _ENTITY_FIELDS:
        if name in names:
            return BracketFields(where, names, names.index(name))
    raise UserError(f"{where}, global.Entity: {written!r} names no eid (or GRP), the entity of a mention")


def parse_brackets(where: str, row: int, written: str) -> list[Bracket]:
    """Parse the brackets in the value of a row's attribute `Entity=`."""
    found = _BRACKET.findall(written)
    if "".join(found) != written or not found:
        raise UserError(f"{where}, Entity: {written[:60]!r} must be made of (e1-..., e1) and (e1-...)")
    return [
        Bracket(where, row, tuple(one.strip("()").split("-")), one.startswith("("), one.endswith(")")) for one in found
    ]


def pair_brackets(brackets: Brackets, entity: int = 0) -> tuple[list[tuple[Bracket, Bracket, str]], int, int]:
    """Pair each closing bracket with the latest open bracket of its entity in the same sentence.

    The field at index `entity` of a bracket is the entity's id. Discontinuous mentions (`e5[1/2]`) are left out.

    Returns:
        (opening bracket, closing bracket, entity) of each mention, ordered by closing bracket; and the numbers of
            unmatched brackets and of discontinuous mentions.
    """
    pairs: list[tuple[Bracket, Bracket, str]] = []
    unbalanced = in_pieces = 0
    waiting: dict[str, list[Bracket]] = {}
    begun: set[str] = set()  # entities of discontinuous mentions without their last part so far
    for bracket in [*brackets, None]:
        if bracket is None:
            unbalanced += sum(map(len, waiting.values()))
            in_pieces += len(begun)
            waiting, begun = {}, set()
            continue
        name = bracket.entity(entity)
        if piece := _PIECE.fullmatch(name):
            begun.add(piece[1])
            if bracket.closes and piece[2] == piece[3]:
                begun.remove(piece[1])
                in_pieces += 1
            continue
        if bracket.opens:
            waiting.setdefault(name, []).append(bracket)
        if bracket.closes and waiting.get(name):
            pairs.append((waiting[name].pop(), bracket, name))
        elif bracket.closes:
            unbalanced += 1
    return pairs, unbalanced, in_pieces


def undeclared_entity(brackets: Brackets) -> int:
    """Infer which field of a bracket is the entity's id, for a file without a declaration, and return its index.

    If this field is the id, every closing bracket must have an opening bracket of the same entity, and vice versa. If
    brackets have several fields, the field must also be next to one of GUM's entity types; without such types, at least
    one mention must have separate opening and closing brackets.

    Raises:
        UserError: no field, or more than one field, meets these conditions.
    """
    opening = [bracket for bracket in brackets if bracket is not None and bracket.opens]
    closing = [bracket for bracket in brackets if bracket is not None and not bracket.opens]
    places = range(min((len(bracket.fields) for bracket in opening), default=1))
    fitting = [place for place in places if not _unbalanced(brackets, place)]
    if max((len(bracket.fields) for bracket in (*opening, *closing)), default=1) > 1:
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
    """Check the declared fields against the brackets of a document.

    Raises:
        UserError: a bracket has the wrong number of fields, or the declared field does not seem to be the entity's id,
            because another field is next to an entity type or would leave fewer brackets unmatched.
    """
    declared = "-".join(fields.names)
    opening = [bracket for bracket in brackets if bracket is not None and bracket.opens]
    for bracket in brackets:
        if bracket is None:
            continue
        has_more = len(bracket.fields) > len(fields.names)
        if not bracket.has_field(fields.entity) or (
            has_more and fields.entity > 0 and fields.names[-1] not in _FREE_FIELDS
        ):
            raise UserError(
                f"{bracket.where}, Entity: {bracket} has {len(bracket.fields)} parts, not those that global.Entity "
                f"declares: {declared} ({fields.where})"
            )
    typed = _entity_beside_type(opening)
    unbalanced = _unbalanced(brackets, fields.entity)
    places = range(min((len(bracket.fields) for bracket in opening), default=0))
    others = [place for place in places if unbalanced and _unbalanced(brackets, place) < unbalanced]
    if (opening and typed == 1 - fields.entity) or others:
        shown = opening[0] if opening else next(bracket for bracket in brackets if bracket)
        entity = (others[0] if others else typed) or 0
        raise UserError(
            f"{fields.where}, global.Entity: {declared!r} names part {fields.entity + 1} of a bracket as the entity, "
            f"but by the brackets it is part {entity + 1} (as in {shown}, {shown.where.rpartition(', ')[2]})"
        )


def _unbalanced(brackets: Brackets, place: int) -> int:
    """Count the unmatched brackets if the field at index `place` is taken as the entity's id.

    If a bracket lacks this field, all brackets count as unmatched.
    """
    if not all(bracket is None or bracket.has_field(place) for bracket in brackets):
        return len(brackets)
    return pair_brackets(brackets, place)[1]


def _entity_beside_type(opening: Sequence[Bracket]) -> int | None:
    """Return the index, 0 or 1, of the field that is next to an entity type in every opening bracket.

    The result is None unless exactly one of the first two fields is an entity type in all of them.
    """
    pairs = [bracket.fields[:2] for bracket in opening if len(bracket.fields) > 1]
    if not pairs or len(pairs) < len(opening):
        return None
    is_type: Mapping[int, bool] = {place: all(pair[place] in ENTITY_TYPES for pair in pairs) for place in (0, 1)}
    return next((1 - place for place in (0, 1) if is_type[place] and not is_type[1 - place]), None)
