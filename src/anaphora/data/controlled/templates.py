"""Templates and scenarios of the controlled corpus: loading from <type>.toml, checks, and filling of slots."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.data.controlled import lexicon
from anaphora.settings.cue_types import role_cue_types
from anaphora.settings.data import SPLITS

POOLS = ("intro", "gap", "aside")

_SLOT = re.compile(r"\{([A-Za-z_]+)(?::([12]))?\}")
STOPS = frozenset(".?!。？！")
_BREAKS = frozenset(",;:，；：、")
CLOSERS = STOPS | _BREAKS
_COMMA = {"en": ",", "zh": "，"}


@dataclass(frozen=True, kw_only=True)
class Template:
    """One or more sentences as tokens, with slots such as {A}."""

    name: str  # language/type/index in the file, from 0
    split: str
    cataphora: bool  # whether the pronoun comes before the candidates
    tokens: tuple[str, ...]

    @cached_property
    def slots(self) -> frozenset[str]:
        """Return the names of the slots; {x} is a distractor, a third person that no cue picks."""
        return frozenset(_slot_names(self.tokens))

    @cached_property
    def forms(self) -> tuple[str, ...]:
        """Return the form of each pronoun slot of the template: two if it has {he:1} and {he:2}, else at most one."""
        forms = {match[2] or "1": match[1] for match in _slots(self.tokens) if match[1] in lexicon.PRONOUN_FORMS}
        return tuple(forms[key] for key in sorted(forms))


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """Words of one situation for the named slots of templates: alternatives by slot."""

    name: str  # index in the file, from 0
    shared: Mapping[str, tuple[str, ...]]  # slots with the same words for both antecedents
    first: Mapping[str, tuple[str, ...]]  # slots whose words make {A} the antecedent
    second: Mapping[str, tuple[str, ...]]  # the same slots, with words that make {B} the antecedent


@dataclass(frozen=True, kw_only=True)
class CueTypeContent:
    """Templates and scenarios of one cue type in one language; set cues have no scenarios."""

    type: str
    templates: tuple[Template, ...]
    scenarios: tuple[Scenario, ...]

    def of(self, split: str, cataphora: bool) -> tuple[Template, ...]:
        """Return the templates of a split that are, or are not, cataphoric."""
        return tuple(each for each in self.templates if each.split == split and each.cataphora == cataphora)


def load(language: str, kind: str, folder: Path) -> CueTypeContent:
    """Load the templates and scenarios of a cue type from `folder`/<language's folder>/<type>.toml.

    Raises:
        UserError: the file is missing, an entry is invalid, or a split has no template that is not cataphoric; the
            message names file, entry and what is allowed.
    """
    path = folder / lexicon.FOLDERS[language] / f"{kind}.toml"
    table = lexicon.read_toml(path)
    lexicon.check_keys(path, "the file", table, {"template", "scenario"})
    listed = lexicon.tables(path, table, "scenario") if "scenario" in table else []
    scenarios = tuple(_scenario(path, index, written) for index, written in enumerate(listed))
    role = kind in role_cue_types(language)
    if role != bool(scenarios):
        raise UserError(f"{path}: a {kind} file must {'have' if role else 'not have'} scenarios")
    patterns = _slot_patterns(scenarios)
    templates = []
    for index, written in enumerate(lexicon.tables(path, table, "template")):
        entry = f"template {index} ({written.get('text', '')!r})"
        lexicon.check_keys(path, entry, written, {"split", "text", "cataphora"})
        place = f"{path}, {entry}"
        template = _template(place, f"{language}/{kind}/{index}", written)
        if role:
            _check_role_template(place, template, patterns)
        else:
            _check_set_template(place, kind, template)
        templates.append(template)
    content = CueTypeContent(type=kind, templates=tuple(templates), scenarios=scenarios)
    for split in SPLITS:
        if not content.of(split, cataphora=False):
            raise UserError(f"{path}: no plain template has split = {split!r}; every split needs one")
    return content


def _template(place: str, name: str, written: Mapping[str, Any]) -> Template:
    text, split, cataphora = written.get("text"), written.get("split"), written.get("cataphora", False)
    if not isinstance(text, str) or not text or " ".join(text.split()) != text:
        raise UserError(f"{place}: text must be tokens separated by single spaces")
    if split not in SPLITS:
        raise UserError(f"{place}: split is {split!r}; allowed: {', '.join(SPLITS)}")
    if not isinstance(cataphora, bool):
        raise UserError(f"{place}: cataphora is {cataphora!r}; allowed: true, false")
    for token in text.split():
        if ("{" in token or "}" in token) and not _SLOT.fullmatch(token):
            raise UserError(f"{place}: {token!r} is neither a word nor a slot; put a space on each side of every slot")
    return Template(name=name, split=split, cataphora=cataphora, tokens=tuple(text.split()))


def _scenario(path: Path, index: int, written: Mapping[str, Any]) -> Scenario:
    place = f"scenario {index}"
    sides: dict[str, dict[str, tuple[str, ...]]] = {"shared": {}, "first": {}, "second": {}}
    for key, value in written.items():
        if key in ("first", "second"):
            if not isinstance(value, dict):
                raise UserError(f"{path}, {place}, {key}: write {key}.<slot> = [...]")
            for slot, alternatives in value.items():
                sides[key][slot] = _alternatives(path, f"{place}, {key}.{slot}", alternatives)
        else:
            sides["shared"][key] = _alternatives(path, f"{place}, {key}", value)
    if not sides["first"] or sides["first"].keys() != sides["second"].keys():
        raise UserError(
            f"{path}, {place}: first has {sorted(sides['first'])} and second {sorted(sides['second'])};"
            " both need the same slots, at least one"
        )
    for slot in sides["first"].keys() & sides["shared"].keys():
        raise UserError(f"{path}, {place}: {slot} is both shared and different; write it once")
    form = [*sides["first"].get("form", ()), *sides["second"].get("form", ()), *sides["shared"].get("form", ())]
    for word in form:
        if word not in lexicon.FORM_WORDS:
            raise UserError(f"{path}, {place}, form: {word!r} must be one of {', '.join(lexicon.FORM_WORDS)}")
    return Scenario(name=str(index), **sides)


def _alternatives(path: Path, entry: str, value: Any) -> tuple[str, ...]:
    return lexicon.words(path, entry, [value] if isinstance(value, str) else value, 1)


def _check_slots(place: str, names: Sequence[str], allowed: set[str]) -> None:
    for name in names:
        if name not in allowed:
            written = ", ".join(f"{{{each}}}" for each in sorted(allowed))
            raise UserError(f"{place}: unknown slot {{{name}}}; allowed: {written}")


def _check_set_template(place: str, kind: str, template: Template) -> None:
    forms = {lexicon.SUBJECT} if kind == "selection" else {lexicon.SUBJECT, lexicon.POSSESSIVE}
    allowed = {*POOLS, "list", "A", "B", *forms}
    if kind == "selection":
        allowed.add("cue")
    names = _slot_names(template.tokens)
    _check_slots(place, names, allowed)
    if not (
        (names.count("list") == 1 and not {"A", "B"} & set(names)) or ({"A", "B"} <= set(names) and "list" not in names)
    ):
        raise UserError(f"{place}: the candidates must be one {{list}}, or {{A}} and {{B}}")
    if kind == "selection" and names.count("cue") != 1:
        raise UserError(f"{place}: exactly one {{cue}} is needed")
    _check_pronouns(place, template.tokens, most=1 if kind == "selection" else 2)
    if template.split != "train" and len(set(template.forms)) > 1:
        raise UserError(
            f"{place}: both pronouns of a {template.split} template must have the same form, since a held-out "
            "noun is held out in one form"
        )
    _check_positions(place, template, template.tokens)


def _slot_patterns(scenarios: Sequence[Scenario]) -> dict[tuple[tuple[str, str], ...], str]:
    """Return the name of the first scenario for each distinct filling of slots, as (slot, `_slot_pattern`) pairs."""
    patterns: dict[tuple[tuple[str, str], ...], str] = {}
    for scenario in scenarios:
        for side in (scenario.first, scenario.second):
            options = {**scenario.shared, **side}
            bare = [sorted({_slot_pattern(slot, option) for option in options[slot]}) for slot in options]
            for choice in product(*bare):
                patterns.setdefault(tuple(zip(options, choice, strict=True)), scenario.name)
    return patterns


def _slot_pattern(slot: str, option: str) -> str:
    """Return the words of a filling that matter for checks: inner slots and stops, or the whole word for {form}."""
    return option if slot == "form" else " ".join(word for word in option.split() if word[0] == "{" or word in STOPS)


def _check_role_template(place: str, template: Template, patterns: Mapping[tuple[tuple[str, str], ...], str]) -> None:
    allowed = {*POOLS, "A", "B", "x", *lexicon.PRONOUN_FORMS}
    for pattern, scenario in patterns.items():
        place_too = f"{place} with scenario {scenario}"
        values = dict(pattern)
        _check_slots(place_too, sorted(template.slots), {*allowed, *values})
        tokens = fill_scenario(template.tokens, values)
        names = _slot_names(tokens)
        _check_slots(place_too, names, allowed)
        if not {"A", "B"} <= set(names):
            raise UserError(f"{place_too}: {{A}} and {{B}} are needed")
        _check_pronouns(place_too, tokens, most=1)
        _check_positions(place_too, template, tokens)


def _check_pronouns(place: str, tokens: Sequence[str], most: int) -> None:
    numbers = [each[2] for each in _slots(tokens) if each[1] in lexicon.PRONOUN_FORMS]
    if numbers != [None] and not (most == 2 and sorted(each or "" for each in numbers) == ["1", "2"]):
        wanted = "one pronoun" if most == 1 else "one pronoun, or two written {he:1} and {he:2}"
        raise UserError(f"{place}: {wanted} is needed, not {len(numbers)}")


def _check_positions(place: str, template: Template, tokens: Sequence[str]) -> None:
    names = _slot_names(tokens)
    first_pronoun = min(place for place, name in enumerate(names) if name in lexicon.PRONOUN_FORMS)
    last_candidate = max(place for place, name in enumerate(names) if name in ("list", "A", "B"))
    if (first_pronoun < last_candidate) != template.cataphora:
        raise UserError(
            f"{place}: cataphora is {str(template.cataphora).lower()}, but the pronoun comes"
            f" {'before' if first_pronoun < last_candidate else 'after'} the candidates"
        )
    for before, token in zip(("", *tokens), tokens, strict=False):
        if token == "{aside}" and before not in STOPS:
            raise UserError(f"{place}: {{aside}} must come after a full stop, not after {before!r}")


def _slots(tokens: Sequence[str]) -> list[re.Match[str]]:
    return [match for match in map(_SLOT.fullmatch, tokens) if match]


def _slot_names(tokens: Sequence[str]) -> list[str]:
    return [match[1] for match in _slots(tokens)]


def fill_scenario(tokens: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Fill the slots that have a value; values may contain further slots.

    The value of {form}, a pronoun, becomes the slot of its form.
    """
    result: list[str] = []
    for token in tokens:
        match = _SLOT.fullmatch(token) if token[0] == "{" else None
        value = values.get(match[1]) if match else None
        if match is None or value is None:
            result.append(token)
        elif match[1] == "form":
            result.append(f"{{{lexicon.FORM_WORDS[value]}}}")
        else:
            result.extend(value.split())
    return result


def fill_pools(tokens: Sequence[str], pools: Mapping[str, str], language: str) -> list[str]:
    """Fill {intro}, {gap} (between commas) and {aside}, or remove them if their text in `pools` is "".

    Other slots are kept, and superfluous punctuation is removed.
    """
    comma = _COMMA[language]
    result: list[str] = []
    for token in tokens:
        if token[0] == "{" and token[1:-1] in POOLS:
            filler = pools[token[1:-1]].split()
            result.extend([comma, *filler, comma] if token == "{gap}" and filler else filler)
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
