"""Sentence templates of the built-in corpus, and scenarios (sets of texts for their slots), loaded from TOML files."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from anaphora.data.controlled import lexicon

POOLS = ("intro", "gap", "aside")

SLOT = re.compile(r"\{([A-Za-z_]+)(?::([12]))?\}")
STOPS = frozenset(".?!。？！")
_BREAKS = frozenset(",;:，；：、")
CLOSERS = STOPS | _BREAKS
_COMMA = {"en": ",", "zh": "，"}


@dataclass(frozen=True, kw_only=True)
class Template:
    """Text of one or more sentences as tokens, some of which are slots (placeholders) such as {A}."""

    name: str  # language/type/index in the file, from 0
    split: str
    cataphora: bool  # whether the pronoun comes before the candidates
    tokens: tuple[str, ...]

    @cached_property
    def slots(self) -> frozenset[str]:
        """Return the names of the slots, such as "A" and "B" for candidates, or "x" for another person (distractor)."""
        return frozenset(match[1] for match in slot_matches(self.tokens))

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """Return the forms of the pronouns in the template, such as "he" for the subject form.

        There are two forms if the template has numbered pronoun slots, such as {he:1} and {he:2}. Otherwise there is
        one form, or none if the scenario determines the form.
        """
        forms = {match[2] or "1": match[1] for match in slot_matches(self.tokens) if match[1] in lexicon.PRONOUN_FORMS}
        return tuple(forms[key] for key in sorted(forms))


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Texts for the slots of a template, in two versions: one makes the candidate {A} the antecedent, the other {B}."""

    name: str  # index in the file, from 0
    shared: Mapping[str, tuple[str, ...]]  # slots with the same words for both antecedents
    first: Mapping[str, tuple[str, ...]]  # slots whose words make {A} the antecedent
    second: Mapping[str, tuple[str, ...]]  # the same slots, with words that make {B} the antecedent


@dataclass(frozen=True, kw_only=True)
class CueTypeContent:
    """Templates and scenarios of one cue type in one language; the types in `SET_CUE_TYPES` have no scenarios."""

    type: str
    templates: tuple[Template, ...]
    scenarios: tuple[Scenario, ...]

    def of(self, split: str, cataphora: bool) -> tuple[Template, ...]:
        """Return the templates of a split in which the pronoun precedes (`cataphora`) or follows the candidates."""
        return tuple(each for each in self.templates if each.split == split and each.cataphora == cataphora)


def load(language: str, kind: str, folder: Path = lexicon.CONTENT_FOLDER) -> CueTypeContent:
    """Load the templates and scenarios of a cue type from `folder`/<folder of the language>/<type>.toml."""
    with lexicon.toml_table(folder / lexicon.FOLDERS[language] / f"{kind}.toml") as table:
        templates = tuple(
            Template(
                name=f"{language}/{kind}/{index}",
                split=written["split"],
                cataphora=written.get("cataphora", False),
                tokens=tuple(written["text"].split()),
            )
            for index, written in enumerate(table["template"])
        )
        scenarios = tuple(_scenario(index, written) for index, written in enumerate(table.get("scenario", ())))
        return CueTypeContent(type=kind, templates=templates, scenarios=scenarios)


def _scenario(index: int, written: Mapping[str, Any]) -> Scenario:
    shared = {slot: value for slot, value in written.items() if slot not in ("first", "second")}
    return Scenario(
        name=str(index),
        shared=_alternatives(shared),
        first=_alternatives(written["first"]),
        second=_alternatives(written["second"]),
    )


def _alternatives(written: Mapping[str, str | list[str]]) -> dict[str, tuple[str, ...]]:
    return {slot: (value,) if isinstance(value, str) else tuple(value) for slot, value in written.items()}


def slot_matches(tokens: Sequence[str]) -> list[re.Match[str]]:
    """Return a match for each token that is a slot: group 1 is its name, group 2 the number as in {he:2}, or None."""
    return [match for match in map(SLOT.fullmatch, tokens) if match]


def fill_scenario(tokens: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Fill the slots for which a scenario has a value; values may contain further slots.

    The value for the slot {form} is a pronoun, such as "himself". This slot is replaced by the slot for all pronouns of
    the same form, such as {himself}.
    """
    result: list[str] = []
    for token in tokens:
        match = SLOT.fullmatch(token) if token[0] == "{" else None
        value = values.get(match[1]) if match else None
        if match is None or value is None:
            result.append(token)
        elif match[1] == "form":
            result.append(f"{{{lexicon.FORM_WORDS[value]}}}")
        else:
            result.extend(value.split())
    return result


def fill_pools(tokens: Sequence[str], pools: Mapping[str, str], language: str) -> list[str]:
    """Fill the slots {intro}, {gap} and {aside} for optional phrases from `pools`; a slot with the text "" is removed.

    {gap} is put between commas. Of adjacent punctuation marks, only the strongest remains (see `_tidy`).
    """
    fillers = {f"{{{name}}}": pools[name].split() for name in POOLS}
    if fillers["{gap}"]:
        fillers["{gap}"] = [_COMMA[language], *fillers["{gap}"], _COMMA[language]]
    result: list[str] = []
    for token in tokens:
        if token in fillers:
            result += fillers[token]
        else:
            result.append(token)
    return _tidy(result)


def _tidy(tokens: Sequence[str]) -> list[str]:
    """Keep the strongest of adjacent punctuation marks: a stop, else a colon or semicolon, else a comma.

    Marks at the beginning are removed.
    """
    result: list[str] = []
    for token in tokens:
        if token not in CLOSERS or (result and result[-1] not in CLOSERS):
            result.append(token)
        elif result and _strength(token) > _strength(result[-1]):
            result[-1] = token
    return result


def _strength(mark: str) -> int:
    return 2 if mark in STOPS else 0 if mark in ",，、" else 1


def list_tokens(count: int, language: str) -> list[str]:
    """Return the tokens for {list}: the slots {0} to {`count` - 1}, with commas (、) and a final "and" (和) between."""
    between, last = (",", "and") if language == "en" else ("、", "和")
    tokens = ["{0}"]
    for index in range(1, count):
        tokens += [last if index == count - 1 else between, f"{{{index}}}"]
    return tokens
