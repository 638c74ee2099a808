"""Words and sentence parts of the cue types `composition` (composition.toml) and `short_text` (short_text.toml).

An example names an event ("Anna rescued Emma") and, as the reason for it, the state of a person ("because she was
strong"). An event is a predicate with an agent and a patient, in one of two voices (agent first or patient first). A
state describes the agent after some classes of predicates and the patient after others. The correct candidate thus
depends on predicate, state and voice together; no two of them suffice.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product, zip_longest
from pathlib import Path

from anaphora.data.controlled.lexicon import CONTENT_FOLDER, FOLDERS, toml_table
from anaphora.settings.cue_types import SHORT_TEXT
from anaphora.settings.data import SPLITS

VOICES = ("agent_first", "patient_first")
PARTICIPANTS = ("agent", "patient")
DISTRACTOR_POSITIONS = ("before", "inside", "between", "after")
PARTS = ("prefix", "link", "suffix", *DISTRACTOR_POSITIONS, "third")
_ALTERNATIVES = re.compile(r"\(([^()]*)\)")

Lines = Sequence[Sequence[str]]
"""Alternatives for a part of a sentence: the texts to which each line of a TOML list expands."""


@dataclass(frozen=True)
class Frame:
    """Sentence pattern of an event in both voices, with slots for predicate, agent, patient and another person."""

    name: str
    texts: Mapping[str, str]  # voice -> text

    @cached_property
    def takes_inside(self) -> bool:
        """Return whether the pattern has, in both voices, a slot for another person between agent and patient."""
        return all("{inside}" in text for text in self.texts.values())


@dataclass(frozen=True)
class Predicate:
    """Verb phrase for an action of an agent on a patient, such as "rescued", in its inflected forms."""

    name: str
    kind: str  # the predicate's class
    forms: Mapping[str, str]  # name of the form -> words
    frames: tuple[str, ...]  # names of frames


@dataclass(frozen=True)
class State:
    """State of a person that explains an event, as in "because he was tired".

    State and class of the predicate together determine whether the pronoun refers to the agent or to the patient.
    """

    text: str
    kinds: Mapping[str, frozenset[str]]  # participant -> classes of predicates after which it is in this state


@dataclass(frozen=True)
class CompositionContent:
    """Content of the cue type `composition` in one language: predicates, states, event patterns and sentence parts."""

    language: str
    predicates: tuple[Predicate, ...]
    states: tuple[State, ...]
    frames: Mapping[str, Frame]
    parts: Mapping[str, Mapping[str, Lines]]
    """Split -> part of a sentence -> alternatives."""

    def states_of(self, kind: str, participant: str) -> list[State]:
        """Return the states that describe the participant ("agent" or "patient") of predicates of the class `kind`."""
        return [state for state in self.states if kind in state.kinds[participant]]

    def kinds(self) -> list[str]:
        """Return the classes of predicates."""
        return list(dict.fromkeys(predicate.kind for predicate in self.predicates))

    def texts(self, split: str, place: str) -> list[str]:
        """Return all alternative texts for one part (`place`) of the sentences in a split, such as "prefix"."""
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


def load(language: str, folder: Path = CONTENT_FOLDER) -> CompositionContent:
    """Load predicates, states, patterns and sentence parts from `folder`/<folder of the language>/composition.toml."""
    with toml_table(folder / FOLDERS[language] / "composition.toml") as table:
        return CompositionContent(
            language=language,
            predicates=tuple(
                _predicate(text, written["name"], table["forms"], written["frames"])
                for written in table["class"]
                for text in written["predicates"]
            ),
            states=tuple(
                State(text, {participant: frozenset(written[participant]) for participant in PARTICIPANTS})
                for written in table["state"]
                for text in written["texts"]
            ),
            frames={
                written["name"]: Frame(written["name"], {voice: written[voice] for voice in VOICES})
                for written in table["frame"]
            },
            parts={split: {name: _lines(table[split][name]) for name in PARTS} for split in SPLITS},
        )


def load_texts(language: str, folder: Path = CONTENT_FOLDER) -> Mapping[str, Lines]:
    """Load the short texts of `folder`/<folder of the language>/short_text.toml, keyed by split."""
    with toml_table(folder / FOLDERS[language] / f"{SHORT_TEXT}.toml") as table:
        return {split: _lines(table[split]) for split in SPLITS}


def _predicate(text: str, kind: str, forms: Sequence[str], frames: Sequence[str]) -> Predicate:
    """Parse a predicate from its inflected forms, such as "hid / hidden" for the `forms` "finite" and "participle".

    If `text` has fewer forms than `forms`, the last forms are empty.
    """
    given = [form.strip() for form in text.split("/")]
    by_form = dict(zip_longest(forms, given, fillvalue=""))
    return Predicate(name=" ".join(text.replace("/", " ").split()), kind=kind, forms=by_form, frames=tuple(frames))


def _lines(texts: Sequence[str]) -> Lines:
    return tuple(tuple(_variants(text)) for text in texts)


def _variants(text: str) -> Iterator[str]:
    """Expand a line with alternatives, such as "(a|b) c (d|e)", and yield the resulting texts."""
    pieces = _ALTERNATIVES.split(text)
    options = [piece.split("|") if number % 2 else [piece] for number, piece in enumerate(pieces)]
    for chosen in product(*options):
        yield " ".join("".join(chosen).split())
