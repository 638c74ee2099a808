"""Examples, each a text with one pronoun, its candidates and its antecedents: checks, conversion and sampling."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from unicodedata import normalize

from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES, NUL
from anaphora.base.translation import N_
from anaphora.data.grouping import indices_by
from anaphora.data.offsets import check_offsets, fitting_unit

Span = tuple[int, int]  # start and exclusive end of a span of text, in code points from 0
Question = tuple[str, int]  # text of an example and character offset at which its pronoun starts
_OLDER_MINIMAL_PAIR = "twin"
_COUNTS = tuple(str(count) for count in range(1, 10))
_LONGEST_NUMBER = 9  # maximum number of digits of a distance or a character offset


@dataclass(frozen=True, kw_only=True, slots=True)
class Example:
    """A text with one pronoun, the entities to which it may refer (candidates), and the antecedents among them.

    Raises:
        UserError: a field is invalid or does not fit the text; the message names field, value and what is allowed.
    """

    text: str
    language: str  # "en" or "zh"
    pronoun: Span
    candidates: tuple[tuple[Span, ...], ...]  # the mentions of each entity, in text order; () if unknown
    antecedents: tuple[int, ...]  # indices into `candidates`; () if no candidate is an antecedent
    group: str = ""  # shared by items that must stay in one split; "" for an item on its own
    minimal_pair: str = ""  # shared by items that differ only in the cue; "" for an item without a minimal pair
    factors: Mapping[str, str] = field(default_factory=dict, hash=False)  # properties such as the type of cue

    def __post_init__(self) -> None:
        if not self.text:
            raise UserError(N_("text: it is empty; a sentence with a pronoun is needed"))
        if NUL in self.text:
            raise UserError(f"text: {self.text[:60]!r} holds a NUL character, which no text has")
        if self.language not in LANGUAGES:
            raise UserError(f"language: {self.language!r} must be one of {', '.join(LANGUAGES)}")
        if not self._spans_fit():
            self._explain_spans()
        for index in self.antecedents:
            if not 0 <= index < len(self.candidates):
                raise UserError(f"antecedents: {index} is not a candidate; allowed: 0 to {len(self.candidates) - 1}")
        if len(set(self.antecedents)) != len(self.antecedents):
            raise UserError(f"antecedents: {list(self.antecedents)} lists a candidate twice")

    def _spans_fit(self) -> bool:
        """Return whether all spans are inside the text, in order, and do not overlap."""
        spans = [self.pronoun]
        before = -1
        for mentions in self.candidates:
            if not mentions or mentions[0][0] <= before:
                return False
            before = mentions[0][0]
            if len(mentions) > 1 and list(mentions) != sorted(mentions):
                return False
            spans += mentions
        spans.sort()
        free = 0
        for start, end in spans:
            if not free <= start < end:
                return False
            free = end
        return free <= len(self.text)

    def _explain_spans(self) -> None:
        """Raise a `UserError` about the first invalid span."""
        _check_span("pronoun", self.pronoun, len(self.text))
        taken = [(*self.pronoun, "")]
        for index, mentions in enumerate(self.candidates):
            name = f"candidates[{index}]"
            if not mentions:
                raise UserError(N_("{name}: it has no span; every candidate needs at least one"), name=name)
            for start, end in mentions:
                _check_span(name, (start, end), len(self.text))
                for low, high, other in taken:
                    if overlap((start, end), (low, high)):
                        message = (
                            N_("{name}: {span} overlaps {other} at {place}; spans must not overlap")
                            if other
                            else N_("{name}: {span} overlaps the pronoun at {place}; spans must not overlap")
                        )
                        raise UserError(message, name=name, span=[start, end], other=other, place=[low, high])
                taken.append((start, end, name))
        written = [[list(span) for span in mentions] for mentions in self.candidates]
        raise UserError(f"candidates: {written} must be in the order of the text, each candidate's mentions too")

    @property
    def focal(self) -> tuple[int, ...]:
        """Return the indices of the candidates among which the cue (deciding words) chooses; by default all."""
        listed = self.factors.get("focal")
        if listed is None:
            return tuple(range(len(self.candidates)))
        return tuple(int(index) for index in listed.split(","))

    @property
    def is_main(self) -> bool:
        """Return whether main results include the example: its `stratum` (subset of a split) is "main" or missing."""
        return self.factors.get("stratum") in (None, "", "main")

    @property
    def spans(self) -> list[Span]:
        """Return the span of the pronoun, followed by those of all candidate mentions."""
        return [self.pronoun, *(span for mentions in self.candidates for span in mentions)]

    @property
    def question(self) -> Question:
        """Return the text and the character offset at which the pronoun starts."""
        return self.text, self.pronoun[0]

    @property
    def distance(self) -> int | None:
        """Return the number of words between antecedent and pronoun, from the factor `distance`; None if unknown."""
        written = self.factors.get("distance", "")
        return int(written) if written.isdecimal() and len(written) <= _LONGEST_NUMBER else None

    def words(self, index: int) -> str:
        """Return the text of the first mention of candidate `index`."""
        start, end = self.candidates[index][0]
        return self.text[start:end]


_ASSIGN = {name: getattr(Example, name).__set__ for name in Example.__slots__}  # a frozen example refuses `setattr`


def unchecked_example(*fields: Any) -> Example:
    """Build an example from the values of all its fields, in order, without the checks of `Example`, which are slow."""
    example = object.__new__(Example)
    for assign, value in zip(_ASSIGN.values(), fields, strict=True):
        assign(example, value)
    return example


def unchecked_examples(columns: Mapping[str, Sequence[Any]]) -> list[Example]:
    """Build examples from a list of values for each field, without checks; faster than calls of `unchecked_example`."""
    examples = [object.__new__(Example) for _ in columns["text"]]
    for name, values in columns.items():
        assign = _ASSIGN[name]
        for example, value in zip(examples, values, strict=True):
            assign(example, value)
    return examples


def overlap(one: Span, other: Span) -> bool:
    """Return whether two spans share a character."""
    return one[0] < other[1] and other[0] < one[1]


def overlapping(spans: Sequence[Span], span: Span) -> list[int]:
    """Return the indices of the spans that overlap a given span."""
    return [number for number, each in enumerate(spans) if overlap(each, span)]


def _check_span(name: str, span: Span, length: int) -> None:
    start, end = span
    if not 0 <= start < end <= length:
        raise UserError(
            f"{name}: {[start, end]} must be [start, end] with 0 <= start < end <= {length}, the text's length"
        )


def in_text_order(
    candidates: tuple[tuple[Span, ...], ...], antecedents: tuple[int, ...]
) -> tuple[tuple[tuple[Span, ...], ...], tuple[int, ...], tuple[int, ...]]:
    """Sort candidates by first mention, and mentions by start, as `Example` requires.

    Return the sorted candidates, the new indices of the antecedents, and the new index of each given candidate.
    """
    ordered = [tuple(sorted(spans)) for spans in candidates]
    order = sorted(range(len(ordered)), key=lambda index: ordered[index][:1])
    new_indices = [0] * len(order)
    for new, index in enumerate(order):
        new_indices[index] = new
    return (
        tuple(ordered[index] for index in order),
        tuple(sorted(new_indices[index] for index in antecedents)),
        tuple(new_indices),
    )


def sample_quads(examples: Sequence[Example], most: int | None) -> list[Example]:
    """Return approximately `most` examples, in evenly spaced whole groups; all examples if `most` is None.

    Most groups of the built-in corpus are quads: four sentences that combine two cues (deciding words) with both orders
    of the candidates. Types of cue that are equally frequent in `examples` may differ in frequency in the sample.
    """
    if most is None:
        return list(examples)
    return [examples[number] for number in sample_groups([example.group for example in examples], most)]


def sample_groups(groups: Sequence[str], most: int) -> list[int]:
    """Return the indices of about `most` items, in evenly spaced whole groups; an item with group "" forms a group."""
    members = list(items_by_group(groups).values())
    kept = min(len(members), max(1, len(members) * most // max(1, len(groups))))
    return [item for number in range(kept) for item in members[number * len(members) // kept]]


def items_by_group(groups: Sequence[str]) -> dict[str, list[int]]:
    """Return the item indices of each group, in order of first occurrence; an item with group "" forms a group."""
    return indices_by(group or f"alone {number}" for number, group in enumerate(groups))


def shared_questions(questions: Iterable[Question], others: Iterable[Question]) -> int:
    """Count the (text, pronoun start) pairs in `questions` that `others` also contains, after Unicode normalisation."""

    def composed(question: Question) -> Question:
        text, start = question
        return normalize("NFC", text), len(normalize("NFC", text[:start]))

    known = set(map(composed, others))
    return sum(composed(question) in known for question in questions)


def to_record(example: Example) -> dict[str, Any]:
    """Convert an example to a JSON-serialisable dictionary."""
    return {
        "text": example.text,
        "language": example.language,
        "pronoun": list(example.pronoun),
        "candidates": [[list(span) for span in spans] for spans in example.candidates],
        "antecedents": list(example.antecedents),
        "group": example.group,
        "minimal_pair": example.minimal_pair,
        "factors": dict(example.factors),
    }


def from_record(record: Mapping[str, Any]) -> Example:
    """Build an example from a dictionary that was parsed from JSON.

    A candidate in `record` may be one span [start, end] or a list of spans, and candidates may come in any order.
    `minimal_pair` may have its older name `twin`.

    Raises:
        UserError: a field is missing, unknown, of the wrong type or invalid, or does not fit the text.
    """
    if _OLDER_MINIMAL_PAIR in record and "minimal_pair" not in record:
        record = {"minimal_pair" if name == _OLDER_MINIMAL_PAIR else name: record[name] for name in record}
    allowed = ("text", "language", "pronoun", "candidates", "antecedents", "group", "minimal_pair", "factors")
    for name in record:  # before the check for missing fields, which would report a misspelt field as missing
        if name not in allowed:
            meant = "".join(f"; did you mean {close}?" for close in difflib.get_close_matches(str(name), allowed, n=1))
            written = name if name == name.strip() else repr(name)  # blanks at its ends would not be seen
            raise UserError(f"{written}: unknown field{meant} (allowed: {', '.join(allowed)}; in a file also split)")
    for name in allowed[:5]:
        if record.get(name) is None:
            raise UserError(f"{name}: it is missing; required: {', '.join(allowed[:5])}")
    candidates = record["candidates"]
    if not isinstance(candidates, list | tuple) or not candidates:
        raise UserError(f"candidates: {candidates!r} must be a list of [start, end] or of lists of those")
    spans = tuple(_spans_of(f"candidates[{index}]", mentions) for index, mentions in enumerate(candidates))
    antecedents = record["antecedents"]
    if not isinstance(antecedents, list | tuple) or not all(_is_integer(index) for index in antecedents):
        raise UserError(f"antecedents: {antecedents!r} must be a list of candidate indices, e.g. [0]")
    for index in antecedents:
        if not 0 <= index < len(spans):
            raise UserError(f"antecedents: {index} is not a candidate; allowed: 0 to {len(spans) - 1}")
    factors = record.get("factors")
    if factors is None or (isinstance(factors, list | str) and not factors):
        factors = {}
    if not isinstance(factors, Mapping):
        raise UserError(f"factors: {factors!r} must map names to words, e.g. {{'type': 'gender'}}")
    ordered, in_order, new_indices = in_text_order(spans, tuple(antecedents))
    factors = {str(name): str(value) for name, value in factors.items() if value is not None}
    if "focal" in factors:
        factors["focal"] = _reindexed("factors.focal", factors["focal"], new_indices)
    if "subject" in factors:
        if "," in factors["subject"] or not set(factors["subject"]) <= set("0123456789"):
            raise _reserved_factor("subject", factors, "the index of a candidate")
        factors["subject"] = _reindexed("factors.subject", factors["subject"], new_indices)
    if factors.get("kind", "") not in ("", "set", "role"):  # it determines which shortcut baselines apply
        raise _reserved_factor("kind", factors, "set or role")
    for name in ("pronouns", "voices"):  # the number of items of a quad that share cue and order
        if name in factors and factors[name] not in _COUNTS:
            raise _reserved_factor(name, factors, f"a number from 1 to {len(_COUNTS)}")
    if "extent" in factors or "extents" in factors:
        factors |= _checked_extents(factors, len(str(record["text"])), spans, new_indices)
    if "event_names" in factors:
        _check_starts("event_names", factors, spans)
    pronoun = _span_of("pronoun", record["pronoun"])
    if "word_parts" in factors:
        _check_starts("word_parts", factors, [(pronoun,), *spans])
    text = _string("text", record["text"])
    fields = [
        ("pronoun", pronoun),
        *((f"candidates[{index}]", one) for index, each in enumerate(spans) for one in each),
    ]
    try:
        example = Example(
            text=text,
            language=_string("language", record["language"]),
            pronoun=pronoun,
            candidates=ordered,
            antecedents=in_order,
            group=_string("group", "" if record.get("group") is None else record["group"]),
            minimal_pair=_string("minimal_pair", "" if record.get("minimal_pair") is None else record["minimal_pair"]),
            factors=factors,
        )
    except UserError as error:
        unit = fitting_unit(text, [span for _, span in fields])
        raise UserError(f"{error}; {unit}" if unit else str(error)) from None
    for place, span in fields:
        if not text[slice(*span)].strip():
            raise UserError(f"{place}: {list(span)} covers nothing but blanks; it must cover words of the text")
    check_offsets(text, fields, {int(start) for start in factors.get("word_parts", "").split(",") if start})
    return example


def _reserved_factor(name: str, factors: Mapping[str, str], allowed: str) -> UserError:
    """Return the error for an invalid value of a factor (attribute of an example) whose name has a fixed meaning."""
    return UserError(
        f"factors.{name}: {factors.get(name, '')[:80]!r} must be {allowed}; give a label of your own another name"
    )


def _check_starts(name: str, factors: Mapping[str, str], entities: Iterable[Sequence[Span]]) -> None:
    """Check that the factor (attribute) `name` is a comma-separated list of offsets at which mentions start."""
    starts = {str(start) for mentions in entities for start, _ in mentions}
    if not set(factors[name].split(",")) <= starts:
        raise _reserved_factor(name, factors, "starts of mentions, as in '0,13'")


def parse_span(written: str) -> Span:
    """Parse a span written as "start:end"; return (0, 0) for any other string."""
    parts = written.split(":")
    if len(parts) != 2 or not all(part.isdecimal() and len(part) <= _LONGEST_NUMBER for part in parts):
        return 0, 0
    return int(parts[0]), int(parts[1])


def format_span(span: Span) -> str:
    """Return a span as "start:end", the notation in the factors (attributes) of an example."""
    return f"{span[0]}:{span[1]}"


def _checked_extents(
    factors: Mapping[str, str], length: int, candidates: Sequence[Sequence[Span]], new_indices: Sequence[int]
) -> dict[str, str]:
    """Check the factors (attributes) `extent` and `extents`, which are the spans of whole mentions, and return them.

    `length` is the number of characters of the text. `candidates` and `factors` are in the order of a user's record;
    the result is in text order. `new_indices` has the new index of each candidate.
    """

    def is_span(written: str) -> bool:
        start, end = parse_span(written)
        return start < end <= length

    own, listed = factors.get("extent", ""), factors.get("extents", "")
    if not is_span(own):
        raise _reserved_factor("extent", factors, f"start:end with 0 <= start < end <= {length}")
    entities = [entity.split(",") for entity in listed.split(";")]
    if [*map(len, entities)] != [*map(len, candidates)] or not all(is_span(one) for each in entities for one in each):
        raise _reserved_factor("extents", factors, "one start:end for each mention, as in '0:5,9:14;20:24'")
    ordered = [""] * len(candidates)
    for new, entity, heads in zip(new_indices, entities, candidates, strict=True):
        ordered[new] = ",".join(entity[mention] for mention in sorted(range(len(heads)), key=heads.__getitem__))
    return {"extent": own, "extents": ";".join(ordered)}


def _reindexed(name: str, listed: str, new_indices: tuple[int, ...]) -> str:
    known = {str(index): new for index, new in enumerate(new_indices)}
    chosen = [index.strip() for index in listed.split(",")]
    if not set(chosen) <= known.keys() or len(set(chosen)) < len(chosen):
        raise UserError(
            f"{name}: {listed[:80]!r} must be candidate indices from 0 to {len(new_indices) - 1}, each once, e.g. '0,1'"
        )
    return ",".join(str(new) for new in sorted(known[index] for index in chosen))


def _string(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UserError(f"{name}: {value!r} must be text")
    return value


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _span_of(name: str, value: Any) -> Span:
    if isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_integer, value)):
        return (value[0], value[1])
    raise UserError(f"{name}: {value!r} must be [start, end], two whole numbers")


def _spans_of(name: str, value: Any) -> tuple[Span, ...]:
    if isinstance(value, list | tuple) and value and isinstance(value[0], list | tuple):
        return tuple(_span_of(name, span) for span in value)
    return (_span_of(name, value),)
