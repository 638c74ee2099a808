"""Checks of the TOML files of the controlled corpus.

A check raises a `ValueError` that names file, entry, value and what is allowed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from anaphora.data.controlled import compositions, lexicon, templates
from anaphora.data.controlled.compositions import DISTRACTOR_POSITIONS, PARTICIPANTS, PARTS, VOICES
from anaphora.data.controlled.lexicon import AGREEMENT_CLASSES, COSETS, FOLDERS, GENDERS, SELECTION_CLASSES
from anaphora.data.controlled.templates import POOLS, SLOT, STOPS, Scenario, Template
from anaphora.settings.cue_types import COMPOSITION, SHORT_TEXT, cue_types_of, role_cue_types
from anaphora.settings.data import SPLITS

LEAST_CLASSES = 2
"""Minimum number of classes in which a state picks each participant; with fewer, the state alone would be a cue."""


def check_file(language: str, name: str, folder: Path) -> None:
    """Check the file <language's folder>/<name>.toml of `folder`."""
    if name == "lexicon":
        check_lexicon(language, folder)
    elif name == COMPOSITION:
        check_compositions(language, folder)
    elif name == SHORT_TEXT:
        check_texts(language, folder)
    elif name in cue_types_of(language):
        check_cue_type(language, name, folder)
    else:
        raise ValueError(f"{folder / FOLDERS[language]}: {name}.toml is no file of the corpus")


def read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: not TOML: {error}") from None


def words(path: Path, entry: str, value: Any, least: int) -> list[str]:
    """Check and return the texts of an entry: at least `least` distinct texts of tokens separated by single spaces."""
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise ValueError(f"{path}, {entry}: {value!r} must be a list of texts")
    if len(value) < least:
        raise ValueError(f"{path}, {entry}: it has {len(value)}, and at least {least} are needed")
    for number, text in enumerate(value):
        if not text or " ".join(text.split()) != text:
            raise ValueError(f"{path}, {entry}: {text!r} must be tokens separated by single spaces")
        if text in value[:number]:
            raise ValueError(f"{path}, {entry}: {text!r} appears twice")
    return value


def section(path: Path, entry: str, value: Any) -> dict[str, Any]:
    """Check and return the TOML section [entry]."""
    if not isinstance(value, dict):
        raise ValueError(f"{path}, [{entry}]: the section is missing")
    return value


def tables(path: Path, table: Mapping[str, Any], entry: str) -> list[dict[str, Any]]:
    """Check and return the tables of a TOML array of tables, written [[entry]]."""
    entries = table.get(entry)
    if not isinstance(entries, list) or not entries or not all(isinstance(each, dict) for each in entries):
        raise ValueError(f"{path}, {entry}: must be written [[{entry}]], at least once")
    return entries


def check_keys(path: Path, entry: str, section: Mapping[str, Any], allowed: set[str]) -> None:
    for name in section:
        if name not in allowed:
            raise ValueError(f"{path}, {entry}: unknown entry {name!r}; allowed: {', '.join(sorted(allowed))}")


def name_of(path: Path, entry: str, written: Mapping[str, Any]) -> str:
    name = written.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{path}, {entry}: name is {name!r}; each {entry} needs a text")
    return name


def check_noun(path: Path, language: str, entry: str, written: str) -> None:
    first, slash, second = written.partition("/")
    if not slash or not first or "/" in second or " " in written or (language == "en" and not second):
        form = "singular/plural" if language == "en" else "noun/classifier"
        raise ValueError(f"{path}, {entry}: {written!r} must be written {form}")


def check_lexicon(language: str, folder: Path) -> None:
    path = folder / FOLDERS[language] / "lexicon.toml"
    table = read_toml(path)
    least = {"intro": 1, "gap": 1, "aside": 3, "syllables": 10}
    check_keys(path, "the file", table, {*least, "classes", "names"})
    for entry, number in least.items():
        words(path, entry, table.get(entry), number)
    classes = section(path, "classes", table.get("classes"))
    check_keys(path, "classes", classes, {*SELECTION_CLASSES, *AGREEMENT_CLASSES})
    for kind in (*AGREEMENT_CLASSES, *SELECTION_CLASSES):
        entries = section(path, f"classes.{kind}", classes.get(kind))
        named = ("nouns", "predicates") if kind in SELECTION_CLASSES else ("nouns",)
        check_keys(path, f"classes.{kind}", entries, set(named))
        for entry in named:
            for written in words(path, f"classes.{kind}.{entry}", entries.get(entry), COSETS):
                if entry == "nouns":
                    check_noun(path, language, f"classes.{kind}.nouns", written)
    names = section(path, "names", table.get("names"))
    check_keys(path, "names", names, set(GENDERS))
    for gender in GENDERS:
        least_names = 3 * lexicon.NAME_COSETS + lexicon.DISTRACTOR_ONLY_NAMES
        for name in words(path, f"names.{gender}", names.get(gender), least_names):
            if gender == "female" and name in names["male"]:
                raise ValueError(f"{path}, names: {name!r} is listed as both male and female")
    content = lexicon.load(language, folder)
    forms = {
        kind: [form for noun in nouns for form in (noun.singular, noun.plural)] for kind, nouns in content.nouns.items()
    }
    for entry, by_class in (("nouns", forms), ("predicates", content.predicates)):
        owners: dict[str, str] = {}
        for kind, listed in by_class.items():
            for text in listed:
                if owners.setdefault(text, kind) != kind:
                    raise ValueError(f"{path}, classes.{kind}.{entry}: {text!r} is also in classes.{owners[text]}")


def check_cue_type(language: str, kind: str, folder: Path) -> None:
    path = folder / FOLDERS[language] / f"{kind}.toml"
    table = read_toml(path)
    check_keys(path, "the file", table, {"template", "scenario"})
    role = kind in role_cue_types(language)
    if role != bool(table.get("scenario")):
        raise ValueError(f"{path}: a {kind} file must {'have' if role else 'not have'} scenarios")
    for index, written in enumerate(tables(path, table, "scenario") if role else []):
        _check_scenario(path, f"scenario {index}", written)
    places = []
    for index, written in enumerate(tables(path, table, "template")):
        entry = f"template {index} ({written.get('text', '')!r})"
        check_keys(path, entry, written, {"split", "text", "cataphora"})
        _check_template(f"{path}, {entry}", written)
        places.append(f"{path}, {entry}")
    content = templates.load(language, kind, folder)
    patterns = _slot_patterns(content.scenarios)
    for place, template in zip(places, content.templates, strict=True):
        if role:
            _check_role_template(place, template, patterns)
        else:
            _check_set_template(place, kind, template)
    for split in SPLITS:
        if not content.of(split, cataphora=False):
            raise ValueError(f"{path}: no plain template has split = {split!r}; every split needs one")


def _check_template(place: str, written: Mapping[str, Any]) -> None:
    text, split, cataphora = written.get("text"), written.get("split"), written.get("cataphora", False)
    if not isinstance(text, str) or not text or " ".join(text.split()) != text:
        raise ValueError(f"{place}: text must be tokens separated by single spaces")
    if split not in SPLITS:
        raise ValueError(f"{place}: split is {split!r}; allowed: {', '.join(SPLITS)}")
    if not isinstance(cataphora, bool):
        raise ValueError(f"{place}: cataphora is {cataphora!r}; allowed: true, false")
    for token in text.split():
        if ("{" in token or "}" in token) and not SLOT.fullmatch(token):
            raise ValueError(f"{place}: {token!r} is neither a word nor a slot; put a space on each side of every slot")


def _check_scenario(path: Path, place: str, written: Mapping[str, Any]) -> None:
    sides: dict[str, Mapping[str, Any]] = {}
    for side in ("first", "second"):
        sides[side] = written.get(side, {})
        if not isinstance(sides[side], dict):
            raise ValueError(f"{path}, {place}, {side}: write {side}.<slot> = [...]")
    first, second = sides["first"], sides["second"]
    if not first or first.keys() != second.keys():
        raise ValueError(
            f"{path}, {place}: first has {sorted(first)} and second {sorted(second)};"
            " both need the same slots, at least one"
        )
    shared = {slot: value for slot, value in written.items() if slot not in sides}
    for slot in first.keys() & shared.keys():
        raise ValueError(f"{path}, {place}: {slot} is both shared and different; write it once")
    for prefix, options in (("", shared), ("first.", first), ("second.", second)):
        for slot, value in options.items():
            for word in words(path, f"{place}, {prefix}{slot}", [value] if isinstance(value, str) else value, 1):
                if slot == "form" and word not in lexicon.FORM_WORDS:
                    allowed = ", ".join(lexicon.FORM_WORDS)
                    raise ValueError(f"{path}, {place}, form: {word!r} must be one of {allowed}")


def _check_slots(place: str, names: Sequence[str], allowed: set[str]) -> None:
    for name in names:
        if name not in allowed:
            written = ", ".join(f"{{{each}}}" for each in sorted(allowed))
            raise ValueError(f"{place}: unknown slot {{{name}}}; allowed: {written}")


def _check_set_template(place: str, kind: str, template: Template) -> None:
    selection = kind == "selection"
    forms = {lexicon.SUBJECT} if selection else {lexicon.SUBJECT, lexicon.POSSESSIVE}
    names = _slot_names(template.tokens)
    _check_slots(place, names, {*POOLS, "list", "A", "B", *forms, *(["cue"] if selection else [])})
    if not (
        (names.count("list") == 1 and not {"A", "B"} & set(names)) or ({"A", "B"} <= set(names) and "list" not in names)
    ):
        raise ValueError(f"{place}: the candidates must be one {{list}}, or {{A}} and {{B}}")
    if selection and names.count("cue") != 1:
        raise ValueError(f"{place}: exactly one {{cue}} is needed")
    _check_pronouns(place, template.tokens, most=1 if selection else 2)
    if template.split != "train" and len(set(template.forms)) > 1:
        raise ValueError(
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
        tokens = templates.fill_scenario(template.tokens, values)
        names = _slot_names(tokens)
        _check_slots(place_too, names, allowed)
        if not {"A", "B"} <= set(names):
            raise ValueError(f"{place_too}: {{A}} and {{B}} are needed")
        _check_pronouns(place_too, tokens, most=1)
        _check_positions(place_too, template, tokens)


def _check_pronouns(place: str, tokens: Sequence[str], most: int) -> None:
    numbers = [each[2] for each in templates.slot_matches(tokens) if each[1] in lexicon.PRONOUN_FORMS]
    if numbers != [None] and not (most == 2 and sorted(each or "" for each in numbers) == ["1", "2"]):
        wanted = "one pronoun" if most == 1 else "one pronoun, or two written {he:1} and {he:2}"
        raise ValueError(f"{place}: {wanted} is needed, not {len(numbers)}")


def _check_positions(place: str, template: Template, tokens: Sequence[str]) -> None:
    names = _slot_names(tokens)
    first_pronoun = min(place for place, name in enumerate(names) if name in lexicon.PRONOUN_FORMS)
    last_candidate = max(place for place, name in enumerate(names) if name in ("list", "A", "B"))
    if (first_pronoun < last_candidate) != template.cataphora:
        raise ValueError(
            f"{place}: cataphora is {str(template.cataphora).lower()}, but the pronoun comes"
            f" {'before' if first_pronoun < last_candidate else 'after'} the candidates"
        )
    for before, token in zip(("", *tokens), tokens, strict=False):
        if token == "{aside}" and before not in STOPS:
            raise ValueError(f"{place}: {{aside}} must come after a full stop, not after {before!r}")


def _slot_names(tokens: Sequence[str]) -> list[str]:
    return [match[1] for match in templates.slot_matches(tokens)]


def check_compositions(language: str, folder: Path) -> None:
    path = folder / FOLDERS[language] / "composition.toml"
    table = read_toml(path)
    check_keys(path, "the file", table, {"forms", "frame", "class", "state", *SPLITS})
    forms = words(path, "forms", table.get("forms"), 1)
    for written in tables(path, table, "frame"):
        _check_frame(path, written, forms)
    frames = [name_of(path, "frame", written) for written in table["frame"]]
    for written in tables(path, table, "class"):
        _check_class(path, written, forms, frames)
    kinds = [name_of(path, "class", written) for written in table["class"]]
    for written in tables(path, table, "state"):
        _check_state(path, written, kinds)
    for split in SPLITS:
        parts = section(path, split, table.get(split))
        check_keys(path, f"[{split}]", parts, set(PARTS))
        for name in PARTS:
            texts = parts.get(name)
            if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
                raise ValueError(f"{path}, [{split}], {name}: {texts!r} must be a list of texts")
    content = compositions.load(language, folder)
    predicates, states = [each.name for each in content.predicates], [each.text for each in content.states]
    for what, names in (("frame", frames), ("class", kinds), ("predicate", predicates), ("state", states)):
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{path}, {what}: {name!r} appears twice")
    for split, name in product(SPLITS, PARTS):
        slots = {"x", "he"} if name == "third" else {"x"} if name in DISTRACTOR_POSITIONS else set()
        for text in content.texts(split, name):
            if set(_inner_slots(text)) - set(POOLS) != slots:
                wanted = " and ".join(f"{{{slot}}}" for slot in sorted(slots, reverse=True)) or "no slot"
                raise ValueError(f"{path}, [{split}], {name}: {text!r} must hold {wanted}, apart from pools")
    for kind, participant in product(kinds, PARTICIPANTS):
        if len(content.states_of(kind, participant)) < 3:
            raise ValueError(
                f"{path}, class {kind!r}: fewer than 3 states pick its {participant}; one is withheld, one is "
                "shown in one voice, and at least one in both"
            )


def _inner_slots(text: str) -> list[str]:
    """Return the names of the slots of a text, in which slots need no blanks around them."""
    return [match[1] for match in SLOT.finditer(text)]


def _check_frame(path: Path, written: Mapping[str, Any], forms: Sequence[str]) -> None:
    name = written.get("name", "")
    check_keys(path, f"frame {name!r}", written, {"name", *VOICES})
    for voice in VOICES:
        text = written.get(voice)
        slots = _inner_slots(text) if isinstance(text, str) else []
        once = slots.count("agent") == slots.count("patient") == 1
        if not once or set(slots) - {"agent", "patient", "inside", *forms}:
            raise ValueError(
                f"{path}, frame {name!r}, {voice}: {text!r} must hold {{agent}} and {{patient}} once; other slots are "
                f"{{inside}} and {', '.join(f'{{{form}}}' for form in forms)}"
            )
        if (slots.index("agent") < slots.index("patient")) != (voice == "agent_first"):
            raise ValueError(f"{path}, frame {name!r}: {text!r} is not {voice}")


def _check_class(path: Path, written: Mapping[str, Any], forms: Sequence[str], frames: Sequence[str]) -> None:
    place = f"class {written.get('name', '')!r}"
    check_keys(path, place, written, {"name", "frames", "predicates"})
    for name in words(path, f"{place}, frames", written.get("frames"), 1):
        if name not in frames:
            raise ValueError(f"{path}, {place}: unknown frame {name!r}; allowed: {', '.join(frames)}")
    for text in words(path, f"{place}, predicates", written.get("predicates"), 4):
        given = text.split("/")
        if len(given) > len(forms) or not given[0].strip():
            raise ValueError(f"{path}, {place}: {text!r} must be {' / '.join(forms)}")


def _check_state(path: Path, written: Mapping[str, Any], kinds: Sequence[str]) -> None:
    check_keys(path, "state", written, {"texts", *PARTICIPANTS})
    place = f"state {words(path, 'state, texts', written.get('texts'), 1)[0]!r}"
    picked = []
    for participant in PARTICIPANTS:
        picked.append(words(path, f"{place}, {participant}", written.get(participant), LEAST_CLASSES))
        for kind in picked[-1]:
            if kind not in kinds:
                raise ValueError(f"{path}, {place}: unknown class {kind!r}; allowed: {', '.join(kinds)}")
    if both := sorted(set(picked[0]) & set(picked[1])):
        raise ValueError(f"{path}, {place}: of {', '.join(both)} it picks both participants")


def check_texts(language: str, folder: Path) -> None:
    path = folder / FOLDERS[language] / f"{SHORT_TEXT}.toml"
    table = read_toml(path)
    check_keys(path, "the file", table, set(SPLITS))
    for split in SPLITS:
        words(path, f"[{split}]", table.get(split), 1)
    once, any_number = {"{event}", "{he}", "{state}"}, {"{first}", "{second}", "{x}"}
    pools = {f"{{{name}}}" for name in POOLS}
    for split, lines in compositions.load_texts(language, folder).items():
        for text in (text for line in lines for text in line):
            held = [token for token in text.split() if "{" in token or "}" in token]
            slots = [token for token in held if token not in pools]
            if any(slots.count(slot) != 1 for slot in once) or set(slots) - once - any_number:
                raise ValueError(
                    f"{path}, [{split}]: {text!r} must hold {{event}}, {{he}} and {{state}} once, and no slots beside "
                    "them but {first}, {second}, {x} and pools, blanks around each"
                )
