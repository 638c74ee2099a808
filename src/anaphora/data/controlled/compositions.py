"""Content of compositions (composition.toml) and short texts (short_text.toml).

The class of a predicate determines which states pick its agent and which its patient. Each state picks the agent of
some classes and the patient of others, so that the answer depends on predicate, state and voice together, and no two of
them predict it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.data.controlled.lexicon import FOLDERS, check_keys, read_toml, section, tables, words
from anaphora.data.controlled.templates import POOLS
from anaphora.settings.cue_types import SHORT_TEXT
from anaphora.settings.data import SPLITS

VOICES = ("agent_first", "patient_first")
PARTICIPANTS = ("agent", "patient")
DISTRACTOR_POSITIONS = ("before", "inside", "between", "after")
_PARTS = ("prefix", "link", "suffix", *DISTRACTOR_POSITIONS, "third")
_LEAST_CLASSES = 2
"""Minimum number of classes in which a state picks each participant; with fewer, the state alone would be a cue."""
_ALTERNATIVES = re.compile(r"\(([^()]*)\)")
_SLOT = re.compile(r"\{([a-z_]+)\}")

Lines = Sequence[Sequence[str]]
"""Alternatives for a part of a sentence: the texts to which each line of a TOML list expands."""


@dataclass(frozen=True)
class Frame:
    """Wording of an event in both voices, with slots for agent, patient, a distractor, and the forms of a predicate."""

    name: str
    texts: Mapping[str, str]  # voice -> text

    @property
    def takes_inside(self) -> bool:
        """Return whether both voices have a slot for a distractor between the two names."""
        return all("{inside}" in text for text in self.texts.values())


@dataclass(frozen=True)
class Predicate:
    """Action of an agent on a patient."""

    name: str
    kind: str  # the predicate's class
    forms: Mapping[str, str]  # name of the form -> words
    frames: tuple[str, ...]  # names of frames


@dataclass(frozen=True)
class State:
    """State of a person that is the reason for an event, which decides who is meant in "because he was tired"."""

    text: str
    kinds: Mapping[str, frozenset[str]]  # participant -> classes of predicates after which the state is theirs


@dataclass(frozen=True)
class CompositionContent:
    """Content of the compositions in one language."""

    language: str
    predicates: tuple[Predicate, ...]
    states: tuple[State, ...]
    frames: Mapping[str, Frame]
    parts: Mapping[str, Mapping[str, Lines]]
    """Split -> part of a sentence -> alternatives."""

    def states_of(self, kind: str, participant: str) -> list[State]:
        """Return the states that pick the participant ("agent" or "patient") of predicates of a class."""
        return [state for state in self.states if kind in state.kinds[participant]]

    def kinds(self) -> list[str]:
        """Return the classes of predicates."""
        return list(dict.fromkeys(predicate.kind for predicate in self.predicates))

    def texts(self, split: str, place: str) -> list[str]:
        """Return all alternatives for a part of a split's sentences."""
        return [text for line in self.parts[split][place] for text in line]

    def training_phrases(self) -> Iterator[str]:
        """Yield the phrases of which training sentences consist, as space-separated tokens and slots."""
        for frame in self.frames.values():
            yield from frame.texts.values()
        for predicate in self.predicates:
            yield from predicate.forms.values()
        for state in self.states:
            yield state.text
        for place in self.parts["train"]:
            yield from self.texts("train", place)


def load(language: str, folder: Path) -> CompositionContent:
    """Load the content of `folder`/<folder of the language>/composition.toml.

    Raises:
        UserError: an entry is invalid; the message names file, entry and what is allowed.
    """
    path = folder / FOLDERS[language] / "composition.toml"
    table = read_toml(path)
    check_keys(path, "the file", table, {"forms", "frame", "class", "state", *SPLITS})
    forms = words(path, "forms", table.get("forms"), 1)
    frames = {frame.name: frame for frame in (_frame(path, written, forms) for written in tables(path, table, "frame"))}
    predicates = [
        predicate for written in tables(path, table, "class") for predicate in _predicates(path, written, forms, frames)
    ]
    kinds = list(dict.fromkeys(predicate.kind for predicate in predicates))
    states = [state for written in tables(path, table, "state") for state in _states(path, written, kinds)]
    for what, names in (("predicate", [each.name for each in predicates]), ("state", [each.text for each in states])):
        for name in names:
            if names.count(name) > 1:
                raise UserError(f"{path}, {what}: {name!r} appears twice")
    content = CompositionContent(
        language=language,
        predicates=tuple(predicates),
        states=tuple(states),
        frames=frames,
        parts={split: _parts(path, split, table.get(split)) for split in SPLITS},
    )
    for kind in kinds:
        for participant in PARTICIPANTS:
            if len(content.states_of(kind, participant)) < 3:
                raise UserError(
                    f"{path}, class {kind!r}: fewer than 3 states pick its {participant}; one is withheld, one is "
                    "shown in one voice, and at least one in both"
                )
    return content


def load_texts(language: str, folder: Path) -> Mapping[str, Lines]:
    """Load the short texts of `folder`/<folder of the language>/short_text.toml, by split."""
    path = folder / FOLDERS[language] / f"{SHORT_TEXT}.toml"
    table = read_toml(path)
    check_keys(path, "the file", table, set(SPLITS))
    once, any_number = {"{event}", "{he}", "{state}"}, {"{first}", "{second}", "{x}"}
    pools = {f"{{{name}}}" for name in POOLS}
    texts: dict[str, Lines] = {}
    for split in SPLITS:
        texts[split] = tuple(tuple(_variants(text)) for text in words(path, f"[{split}]", table.get(split), 1))
        for text in chain.from_iterable(texts[split]):
            held = [token for token in text.split() if "{" in token or "}" in token]
            slots = [token for token in held if token not in pools]
            if any(slots.count(slot) != 1 for slot in once) or set(slots) - once - any_number:
                raise UserError(
                    f"{path}, [{split}]: {text!r} must hold {{event}}, {{he}} and {{state}} once, and no slots beside "
                    "them but {first}, {second}, {x} and pools, blanks around each"
                )
    return texts


def _frame(path: Path, written: Mapping[str, Any], forms: tuple[str, ...]) -> Frame:
    name = str(written.get("name", ""))
    check_keys(path, f"frame {name!r}", written, {"name", *VOICES})
    texts = {voice: written.get(voice) for voice in VOICES}
    for voice, text in texts.items():
        slots = _SLOT.findall(text) if isinstance(text, str) else []
        if (
            slots.count("agent") != 1
            or slots.count("patient") != 1
            or set(slots) - {"agent", "patient", "inside", *forms}
        ):
            raise UserError(
                f"{path}, frame {name!r}, {voice}: {text!r} must hold {{agent}} and {{patient}} once; other slots are "
                f"{{inside}} and {', '.join(f'{{{form}}}' for form in forms)}"
            )
        if (slots.index("agent") < slots.index("patient")) != (voice == "agent_first"):
            raise UserError(f"{path}, frame {name!r}: {text!r} is not {voice}")
    return Frame(name, {voice: str(text) for voice, text in texts.items()})


def _predicates(
    path: Path, written: Mapping[str, Any], forms: tuple[str, ...], frames: Mapping[str, Frame]
) -> Iterator[Predicate]:
    kind = str(written.get("name", ""))
    place = f"class {kind!r}"
    check_keys(path, place, written, {"name", "frames", "predicates"})
    named = words(path, f"{place}, frames", written.get("frames"), 1)
    for name in named:
        if name not in frames:
            raise UserError(f"{path}, {place}: unknown frame {name!r}; allowed: {', '.join(frames)}")
    for text in words(path, f"{place}, predicates", written.get("predicates"), 4):
        given = [form.strip() for form in text.split("/")]
        if len(given) > len(forms) or not given[0]:
            raise UserError(f"{path}, {place}: {text!r} must be {' / '.join(forms)}")
        by_form = dict(zip(forms, [*given, *[""] * len(forms)], strict=False))
        yield Predicate(name=" ".join(text.replace("/", " ").split()), kind=kind, forms=by_form, frames=named)


def _states(path: Path, written: Mapping[str, Any], kinds: list[str]) -> Iterator[State]:
    check_keys(path, "state", written, {"texts", *PARTICIPANTS})
    texts = words(path, "state, texts", written.get("texts"), 1)
    picked = {}
    for participant in PARTICIPANTS:
        named = words(path, f"state {texts[0]!r}, {participant}", written.get(participant), _LEAST_CLASSES)
        for kind in named:
            if kind not in kinds:
                raise UserError(f"{path}, state {texts[0]!r}: unknown class {kind!r}; allowed: {', '.join(kinds)}")
        picked[participant] = frozenset(named)
    if picked["agent"] & picked["patient"]:
        both = ", ".join(sorted(picked["agent"] & picked["patient"]))
        raise UserError(f"{path}, state {texts[0]!r}: of {both} it picks both participants")
    for text in texts:
        yield State(text, picked)


def _parts(path: Path, split: str, written: Any) -> dict[str, Lines]:
    check_keys(path, f"[{split}]", section(path, split, written), set(_PARTS))
    parts: dict[str, Lines] = {}
    for name in _PARTS:
        texts = written.get(name)
        if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
            raise UserError(f"{path}, [{split}], {name}: {texts!r} must be a list of texts")
        slots = {"x", "he"} if name == "third" else {"x"} if name in DISTRACTOR_POSITIONS else set()
        lines = tuple(tuple(_variants(text)) for text in texts)
        for text in chain.from_iterable(lines):
            named = set(_SLOT.findall(text)) - set(POOLS)
            if named != slots:
                wanted = " and ".join(f"{{{slot}}}" for slot in sorted(slots, reverse=True)) or "no slot"
                raise UserError(f"{path}, [{split}], {name}: {text!r} must hold {wanted}, apart from pools")
        parts[name] = lines
    return parts


def _variants(text: str) -> Iterator[str]:
    """Expand a line with alternatives, such as "(a|b) c (d|e)", and yield the resulting texts."""
    pieces = _ALTERNATIVES.split(text)
    options = [piece.split("|") if number % 2 else [piece] for number, piece in enumerate(pieces)]
    for chosen in product(*options):
        yield " ".join("".join(chosen).split())
