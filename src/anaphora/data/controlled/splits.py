"""Division of words among splits, so that no test cue occurs with a candidate that training pairs it with.

Nouns and predicates lie in five cosets each (number = shuffled place mod 5), names in ten.

Selection: the cues of a quad come from one coset t. Test quads use nouns of coset t alone, dev quads of t + 1, training
quads the other three.
Gender, number, animacy: the cue is the pronoun. Nouns that are held out lie in four groups: those of group 0 meet
subject forms in test alone, group 1 possessive forms in test alone; 2 and 3 are the same for dev. The others go
anywhere.
Role types: type number k has name coset 2k for test and 2k + 1 for dev, which its training items never use. Octads,
which take the place of the voice type, have its names. `WithheldPairs` says which pairs of predicate and state
training shows.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from anaphora.data.controlled.compositions import PARTICIPANTS, VOICES, CompositionContent, Predicate, State
from anaphora.data.controlled.lexicon import (
    AGREEMENT_CLASSES,
    COSETS,
    DISTRACTOR_ONLY_NAMES,
    GENDERS,
    NAME_COSETS,
    SELECTION_CLASSES,
    Lexicon,
    Noun,
)
from anaphora.data.controlled.pronouns import SUBJECT
from anaphora.settings.cue_types import BINDING, COMPOSITION, ROLE_CUE_TYPES, SHORT_TEXT

Item = TypeVar("Item")

HELD_OUT_GROUPS = 4  # groups of nouns, each withheld from one form of pronoun
_NAMES_OF = {BINDING: "reflexive", COMPOSITION: "voice", SHORT_TEXT: "voice"}
"""The type whose names a type has that is to be asked for by name."""
MAX_INVENTED_NAMES = 320  # names at most, a quarter of them for test


def generator(seed: int, *purpose: str) -> random.Random:
    """Return a random generator that depends on the seed and the purpose, not on earlier draws."""
    return random.Random("/".join((str(seed), *purpose)))


@dataclass(frozen=True, kw_only=True)
class Holdout:
    """The words of a language, divided into cosets."""

    language: str
    selection: Mapping[str, tuple[tuple[Noun, ...], ...]]  # selection class -> coset -> nouns
    agreement: Mapping[str, tuple[tuple[Noun, ...], ...]]  # agreement class -> group, the last one shared -> nouns
    predicates: Mapping[str, tuple[tuple[str, ...], ...]]  # selection class -> coset -> cues
    names: Mapping[str, tuple[tuple[str, ...], ...]]  # gender -> coset -> names
    distractor_only: Mapping[str, tuple[str, ...]]  # gender -> names that are distractors alone in training
    invented_for_training: tuple[str, ...]
    invented_for_test: tuple[str, ...]

    def selection_nouns(self, kind: str, cue_coset: int, split: str) -> list[Noun]:
        """Return the nouns of a class that may stand next to cues of a coset in a split."""
        dev = (cue_coset + 1) % COSETS
        allowed = {"test": {cue_coset}, "dev": {dev}, "train": set(range(COSETS)) - {cue_coset, dev}}[split]
        return _items_of(self.selection[kind], allowed)

    def agreement_nouns(self, kind: str, forms: Collection[str], split: str) -> list[Noun]:
        """Return the nouns of a class that may stand in one sentence with pronouns of these forms in a split.

        In test and dev all pronouns of a sentence have one form.
        """
        allowed = set(range(HELD_OUT_GROUPS + 1)) if split == "train" else {0, 1} if split == "test" else {2, 3}
        for form in forms:
            if split == "train":
                allowed -= {0, 2} if form == SUBJECT else {1, 3}
            else:
                allowed &= {0, 2} if form == SUBJECT else {1, 3}
        return _items_of(self.agreement[kind], allowed)

    def role_names(self, kind: str, gender: str, split: str) -> list[str]:
        """Return the ordinary names that the items of a role type use in a split."""
        test = 2 * ROLE_CUE_TYPES[self.language].index(_NAMES_OF.get(kind, kind))
        allowed = {"test": {test}, "dev": {test + 1}, "train": set(range(NAME_COSETS)) - {test, test + 1}}[split]
        return _items_of(self.names[gender], allowed)

    def distractors(self, kind: str, gender: str, split: str) -> list[str]:
        """Return names for {x}: in training both distractor-only and ordinary names."""
        ordinary = self.role_names(kind, gender, split)
        return [*ordinary, *self.distractor_only[gender]] if split == "train" else ordinary


def assign_cosets(lexicon: Lexicon, seed: int, shared_nouns: float) -> Holdout:
    """Assign a lexicon's words, and names built from syllables, to cosets by the seed."""

    def cosets_of(purpose: str, items: Sequence[Item], count: int) -> tuple[tuple[Item, ...], ...]:
        shuffled = list(items)
        generator(seed, lexicon.language, "cosets", purpose).shuffle(shuffled)
        return tuple(tuple(shuffled[coset::count]) for coset in range(count))

    invented = invented_names(lexicon, seed)[:MAX_INVENTED_NAMES]
    nouns = {kind: cosets_of(f"nouns/{kind}", nouns, COSETS) for kind, nouns in lexicon.nouns.items()}
    return Holdout(
        language=lexicon.language,
        selection={kind: nouns[kind] for kind in SELECTION_CLASSES},
        agreement={kind: _agreement_groups(nouns[kind], shared_nouns) for kind in AGREEMENT_CLASSES},
        predicates={kind: cosets_of(f"cues/{kind}", cues, COSETS) for kind, cues in lexicon.predicates.items()},
        names={
            gender: cosets_of(f"names/{gender}", lexicon.names[gender][:-DISTRACTOR_ONLY_NAMES], NAME_COSETS)
            for gender in GENDERS
        },
        distractor_only={gender: lexicon.names[gender][-DISTRACTOR_ONLY_NAMES:] for gender in GENDERS},
        invented_for_training=tuple(invented[len(invented) // 4 :]),
        invented_for_test=tuple(invented[: len(invented) // 4]),
    )


def invented_names(lexicon: Lexicon, seed: int) -> list[str]:
    """Return new names, one per pair of syllables, sometimes with a third syllable in English."""
    chance = generator(seed, lexicon.language, "invented")
    english = lexicon.language == "en"
    known = {name.lower() for names in lexicon.names.values() for name in names}
    known |= {
        form.lower() for nouns in lexicon.nouns.values() for noun in nouns for form in (noun.singular, noun.plural)
    }
    known |= {cue.lower() for cues in lexicon.predicates.values() for cue in cues}
    pairs = [(first, second) for first in lexicon.syllables for second in lexicon.syllables if first != second]
    chance.shuffle(pairs)
    names: dict[str, None] = {}
    for first, second in pairs:
        name = first + second
        if english and chance.random() < 0.5:
            name += chance.choice(lexicon.syllables)
        if name.lower() not in known:
            names[name.capitalize() if english else name] = None
    return list(names)


def _agreement_groups(cosets: Sequence[Sequence[Noun]], shared: float) -> tuple[tuple[Noun, ...], ...]:
    """Return the four held-out groups and the shared one, from five cosets.

    What a larger share adds comes from the ends of the first four cosets, so that the groups of one share lie in those
    of a smaller one; what is too many in the last coset is distributed among the others.
    """
    *first, last = (list(coset) for coset in cosets)
    wanted = round(shared * sum(map(len, cosets)))
    while len(last) > wanted:
        first[len(last) % HELD_OUT_GROUPS].append(last.pop())
    while len(last) < wanted:
        last.append(max(first, key=len).pop())
    return (*map(tuple, first), tuple(last))


def _items_of(cosets: Sequence[Sequence[Item]], allowed: Collection[int]) -> list[Item]:
    return [item for number in sorted(allowed) for item in cosets[number]]


class WithheldPairs:
    """The pairs of predicate and state that training shows, drawn from the corpus's seed.

    Of the states that pick one participant of a predicate, one is never shown with it and one in one voice alone; a
    quarter of the other kind each where there are many. Half of the predicates ask for theirs in dev, half in test.
    """

    def __init__(self, content: CompositionContent, seed: int) -> None:
        self.content = content
        self._levels: dict[tuple[str, str], str] = {}
        self._voices: dict[str, str] = {}
        self._splits: dict[str, str] = {}
        for number, kind in enumerate(content.kinds()):
            chance = generator(seed, content.language, "compositions", kind)
            predicates = [predicate for predicate in content.predicates if predicate.kind == kind]
            chance.shuffle(predicates)
            for place, predicate in enumerate(predicates):
                self._voices[predicate.name] = VOICES[(place + number) % 2]
                self._splits[predicate.name] = ("test", "dev")[place // 2 % 2]
            for participant in PARTICIPANTS:
                states = content.states_of(kind, participant)
                chance.shuffle(states)
                for place, predicate in enumerate(predicates):
                    for offset, state in enumerate(states):
                        rank = (offset - place) % len(states)
                        level = "L2" if rank == 0 else "L1" if rank <= max(1, len(states) // 4) else "L0"
                        self._levels[predicate.name, state.text] = level

    def level(self, predicate: Predicate, state: State) -> str:
        """Return the training level of a pair."""
        return self._levels[predicate.name, state.text]

    def states(self, predicate: Predicate, participant: str, level: str) -> list[State]:
        """Return the states of a level that pick a participant of a predicate."""
        fitting = self.content.states_of(predicate.kind, participant)
        return [state for state in fitting if self.level(predicate, state) == level]

    def voices(self, predicate: Predicate, level: str, split: str) -> tuple[str, ...]:
        """Return the voices in which a split has a predicate with states of a level."""
        if level != "L1":
            return VOICES
        shown = self._voices[predicate.name]
        return (shown,) if split == "train" else tuple(voice for voice in VOICES if voice != shown)

    def predicates(self, level: str, split: str) -> list[Predicate]:
        """Return the predicates of which a split has items of a level."""
        if level == "L0":
            return list(self.content.predicates)
        if split == "train":
            return [] if level == "L2" else list(self.content.predicates)
        return [predicate for predicate in self.content.predicates if self._splits[predicate.name] == split]
