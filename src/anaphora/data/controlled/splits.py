"""Division of words among splits, so that no cue of a test item occurs with the same candidate in training.

A cue is the word or phrase that decides which candidate is meant. Nouns and predicates are shuffled and divided into
five sets each, called cosets, and names into ten.

- Cue type `selection`: the cues are predicates. Test combines the predicates of coset t with the nouns of coset t, dev
  with those of coset t + 1, and training with those of the other three cosets.
- Cue types `gender`, `number` and `animacy`: the cue is the pronoun. Of four groups of held-out nouns, group 0 occurs
  with pronouns in subject form only in test, group 1 with possessive forms only in test, group 2 with subject forms
  only in dev, and group 3 with possessive forms only in dev. All other nouns occur only in training, with any form.
- Role-cue types, in which the cue depends on who did what to whom: the type with index k uses the names of coset 2k
  only in test, and those of coset 2k + 1 only in dev. `composition` and `short_text` use the names of `voice`.
  `WithheldPairs` decides which predicates, such as "rescued", occur with which states, such as "was weak", in training.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, permutations
from typing import TypeVar

from anaphora.data.controlled.compositions import PARTICIPANTS, VOICES, CompositionContent, Predicate, State
from anaphora.data.controlled.lexicon import (
    AGREEMENT_CLASSES,
    COSETS,
    DISTRACTOR_ONLY_NAMES,
    GENDERS,
    NAME_COSETS,
    SELECTION_CLASSES,
    SUBJECT,
    Lexicon,
    Noun,
)
from anaphora.settings.cue_types import BINDING, COMPOSITION, ROLE_CUE_TYPES, SHORT_TEXT

Item = TypeVar("Item")

HELD_OUT_GROUPS = 4  # number of groups of nouns, each of which lacks one form of pronoun in training
_NAMES_OF = {BINDING: "reflexive", COMPOSITION: "voice", SHORT_TEXT: "voice"}
"""Cue type whose names each optional cue type uses."""
MAX_INVENTED_NAMES = 320  # a quarter of them for test


def generator(seed: int, *purpose: str) -> random.Random:
    """Return a random generator seeded with `seed` and `purpose`, so that its draws do not depend on other draws."""
    return random.Random("/".join((str(seed), *purpose)))


@dataclass(frozen=True, kw_only=True)
class Holdout:
    """Words of a language, divided at random into sets (cosets) that determine the split in which they co-occur."""

    language: str
    selection: Mapping[str, tuple[tuple[Noun, ...], ...]]  # selection class -> coset -> nouns
    agreement: Mapping[str, tuple[tuple[Noun, ...], ...]]  # agreement class -> group, the last one shared -> nouns
    predicates: Mapping[str, tuple[tuple[str, ...], ...]]  # selection class -> coset -> cues
    names: Mapping[str, tuple[tuple[str, ...], ...]]  # gender -> coset -> names
    distractor_only: Mapping[str, tuple[str, ...]]  # gender -> names that are only distractors in training
    invented_for_training: tuple[str, ...]
    invented_for_test: tuple[str, ...]

    def selection_nouns(self, kind: str, cue_coset: int, split: str) -> list[Noun]:
        """Return the nouns of class `kind` that may occur in a split together with predicates of coset `cue_coset`.

        Cosets are the five sets into which the nouns of a class, and its predicates, are divided. Test uses the nouns
        of the coset with the same index, dev those of the next coset, and training those of the other three.
        """
        dev = (cue_coset + 1) % COSETS
        allowed = {"test": {cue_coset}, "dev": {dev}, "train": set(range(COSETS)) - {cue_coset, dev}}[split]
        return _items_of(self.selection[kind], allowed)

    def agreement_nouns(self, kind: str, forms: Collection[str], split: str) -> list[Noun]:
        """Return the nouns of the class `kind` that may occur with pronouns of the given forms in a split.

        In test and dev, `forms` must not mix subject forms with other forms.
        """
        allowed = set(range(HELD_OUT_GROUPS + 1)) if split == "train" else {0, 1} if split == "test" else {2, 3}
        for form in forms:
            if split == "train":
                allowed -= {0, 2} if form == SUBJECT else {1, 3}
            else:
                allowed &= {0, 2} if form == SUBJECT else {1, 3}
        return _items_of(self.agreement[kind], allowed)

    def role_names(self, kind: str, gender: str, split: str) -> list[str]:
        """Return the names that candidates may have in a split, for a cue type `kind` such as "voice".

        Names that occur only as distractors in training (`distractor_only`) are excluded.
        """
        test = 2 * ROLE_CUE_TYPES[self.language].index(_NAMES_OF.get(kind, kind))
        allowed = {"test": {test}, "dev": {test + 1}, "train": set(range(NAME_COSETS)) - {test, test + 1}}[split]
        return _items_of(self.names[gender], allowed)

    def distractors(self, kind: str, gender: str, split: str) -> list[str]:
        """Return the names that may be drawn in a split for a distractor, a further person who is not the antecedent.

        These are the names of `role_names` and, in training, also those in `distractor_only`.
        """
        ordinary = self.role_names(kind, gender, split)
        return [*ordinary, *self.distractor_only[gender]] if split == "train" else ordinary


def assign_cosets(lexicon: Lexicon, seed: int, shared_nouns: float) -> Holdout:
    """Divide the words of a lexicon at random into sets (cosets), and invented names into training and test names.

    `shared_nouns` is the share, from 0 to 1, of the nouns of each class in `AGREEMENT_CLASSES` that are not held out.
    """

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
    """Invent names from syllables of the lexicon, in random order.

    Names have two syllables; half of the English names have three. Names that are words of the lexicon are left out.
    """
    chance = generator(seed, lexicon.language, "invented")
    english = lexicon.language == "en"
    nouns = chain.from_iterable((noun.singular, noun.plural) for noun in chain(*lexicon.nouns.values()))
    known = set(map(str.lower, chain(*lexicon.names.values(), *lexicon.predicates.values(), nouns)))
    pairs = [*permutations(lexicon.syllables, 2)]
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
    """Form four groups of held-out nouns and a fifth group, the shared one, from five sets of nouns (cosets).

    At first, the groups are the cosets. Nouns are then moved into or out of the shared group until it has the share
    `shared` of all nouns. A larger share never adds a noun to a held-out group.
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
    """Random choice of the predicates (such as "rescued") and states (such as "was weak") that training combines.

    For each predicate, one of the states that describe its agent never occurs with it in training (level L2). A quarter
    of these states, at least one, occur with it in only one voice (L1), and all others in both voices (L0). The same is
    true of the states that describe its patient. The items withheld from training are in dev for half of the
    predicates, and in test for the other half.
    """

    def __init__(self, content: CompositionContent, seed: int) -> None:
        self.content = content
        self._levels: dict[tuple[str, str], str] = {}
        self._states: dict[tuple[str, str, str], list[State]] = {}
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

    def states(self, predicate: Predicate, participant: str, level: str) -> list[State]:
        """Return the states, such as "was weak", of a predicate's participant whose combination with it has the level.

        The level says in how many grammatical voices training has the combination: L0 in two, L1 in one, L2 in none.
        """
        key = predicate.name, participant, level
        if key not in self._states:
            fitting = self.content.states_of(predicate.kind, participant)
            self._states[key] = [state for state in fitting if self._levels[predicate.name, state.text] == level]
        return self._states[key]

    def voices(self, predicate: Predicate, level: str, split: str) -> tuple[str, ...]:
        """Return the voices in which a predicate may occur in a split with states of a level (L0, L1 or L2)."""
        if level != "L1":
            return VOICES
        shown = self._voices[predicate.name]
        return (shown,) if split == "train" else tuple(voice for voice in VOICES if voice != shown)

    def predicates(self, level: str, split: str) -> list[Predicate]:
        """Return the predicates, such as "rescued", that may occur in a split with states of a level.

        The level is L0, L1 or L2 (see `WithheldPairs`).
        """
        if level == "L0":
            return list(self.content.predicates)
        if split == "train":
            return [] if level == "L2" else list(self.content.predicates)
        return [predicate for predicate in self.content.predicates if self._splits[predicate.name] == split]
