"""Generator of pronoun items in minimal pairs: gender, number, animacy, selection, role, and scenes of things.

The two items of a pair differ in the pronoun or in the clause around it, and have different antecedents. Each
participant is therefore the antecedent equally often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from random import Random

from anaphora.base.language import LANGUAGES
from experiments.shipped.lexicon import ANIMAL, GENDERS, PERSON, THING, Context, Lexicon, Noun, Reading, Scene, load
from experiments.shipped.phrases import ASKED, END, LINKS, MARKS, NEUTER, Frame, Participant, phrase, without_determiner
from experiments.shipped.settings import Row, TrainingItems

BYSTANDERS = {"en": ("I", "we", "somebody"), "zh": ("我", "我们", "有人")}
NAMES = 0.4  # share of names among the participants that can have one
OPENINGS = 0.3
ASIDES = (0.65, 0.18, 0.11, 0.06)  # shares of texts with none to three of them; several in a row make long texts
THREE = 0.2  # share of the scenes with three participants
IN_SCENES = 0.5  # share of the items of gender and number in which common knowledge may decide as well
PLURALS = 0.15  # share of plural pairs among those whose participants can both be plural


@dataclass(frozen=True)
class Pair:
    """Event with its participants, and a clause (reading) about each; None if no item is about the participant."""

    context: Context
    participants: tuple[Participant, ...]
    readings: tuple[Reading | None, ...]


class Items:
    """Generator of the items of one language.

    Args:
        lexicon: content of the sentences.
        chance: random generator.
    """

    def __init__(self, lexicon: Lexicon, chance: Random) -> None:
        self.lexicon, self.chance, self.language = lexicon, chance, lexicon.language
        self.of_animals = [reading for reading in lexicon.of_persons if reading.animals]
        self.scenes = {
            (sort, number): [scene for scene in scenes if len(scene.readings) == number]
            for sort, scenes in ((PERSON, lexicon.scenes), (THING, lexicon.thing_scenes))
            for number in (2, 3)
        }
        self.contexts_of = cache(self._contexts_of)
        self.pool = cache(self._pool)
        self.kinds: dict[str, Callable[[], Pair | None]] = {
            "gender": self._gender,
            "number": self._number,
            "animacy": self._animacy,
            "selection": self._selection,
            "role": self._role,
            "things": self._thing_scene,
        }

    def rows(self, shares: dict[str, float], pairs: int) -> Iterator[Row]:
        """Yield both items of each of `pairs` minimal pairs; `shares` has the probability of each kind of cue."""
        seen: set[str] = set()
        for number in range(pairs):
            kind = self.chance.choices(list(shares), list(shares.values()))[0]
            rows: list[Row] = []
            while not rows or not seen.isdisjoint(row["text"] for row in rows):
                pair = self.kinds[kind]()
                rows = self._rows(pair) if pair else []
            key = f"{self.language}/{kind}/{number}"
            for row in rows:
                seen.add(row["text"])
                yield {**row, "language": self.language, "group": key, "minimal_pair": key, "factors": {"type": kind}}

    # What each kind of cue draws.

    def _gender(self) -> Pair | None:
        genders = self.chance.choice((GENDERS, GENDERS[::-1]))
        if self.chance.random() < IN_SCENES:
            context, readings = self._with_or_against_common_knowledge(PERSON)
        else:
            context = self.chance.choice(self.contexts_of(PERSON, PERSON))
            readings = (self.chance.choice(self.lexicon.of_persons),) * 2
        nouns = self._drawn(context, lambda noun, place: noun.genders == (genders[place],) and not noun.is_plural)
        return Pair(context, self._participants(nouns, genders, (False, False)), readings) if nouns else None

    def _number(self) -> Pair | None:
        sort = self.chance.choice((PERSON, PERSON, THING, ANIMAL))
        sorts = {sort}
        if self.chance.random() < IN_SCENES:
            context, readings = self._with_or_against_common_knowledge(PERSON if sort == PERSON else THING)
            sorts = {PERSON} if sort == PERSON else {THING, ANIMAL}
        else:
            context = self.chance.choice(self.contexts_of(sort, sort))
            of_sort = {PERSON: self.lexicon.of_persons, THING: self.lexicon.of_things, ANIMAL: self.of_animals}
            readings = (self.chance.choice(of_sort[sort]),) * 2
        gender = self.chance.choice(GENDERS) if sort == PERSON else NEUTER
        plural = self.chance.choice(((True, False), (False, True)))

        def admits(noun: Noun, place: int) -> bool:
            if noun.sort not in sorts or (sort == PERSON and gender not in noun.genders):
                return False
            return noun.has_plural(self.language) if plural[place] else not noun.is_plural

        nouns = self._drawn(context, admits)
        return Pair(context, self._participants(nouns, (gender, gender), plural), readings) if nouns else None

    def _with_or_against_common_knowledge(self, sort: str) -> tuple[Context, tuple[Reading, Reading]]:
        """Draw a scene and a clause for each of two items.

        In half of the pairs, both items have the same clause, so that in one of them it contradicts common knowledge.
        """
        scene = self.chance.choice(self.scenes[sort, 2])
        first, second = map(self.chance.choice, scene.readings)
        return scene.context, self.chance.choice(((first, second), (first, second), (first, first), (second, second)))

    def _animacy(self) -> Pair | None:
        other = self.chance.choice((THING, THING, ANIMAL))
        sorts = self.chance.choice([each for each in ((PERSON, other), (other, PERSON)) if self.contexts_of(*each)])
        context = self.chance.choice(self.contexts_of(*sorts))
        plural = self.chance.random() < PLURALS

        def admits(noun: Noun, place: int) -> bool:
            fits = noun.has_plural(self.language) if plural else not noun.is_plural
            return noun.sort == sorts[place] and fits

        nouns = self._drawn(context, admits)
        if nouns is None:
            return None
        shared = self.chance.choice(self.of_animals) if other == ANIMAL and self.chance.random() < 0.5 else None
        readings = [shared or self._reading_of(noun) for noun in nouns]
        return Pair(context, self._participants(nouns, ("", ""), (plural, plural)), (readings[0], readings[1]))

    def _reading_of(self, noun: Noun) -> Reading:
        """Draw a clause (reading) that fits a noun, and no noun of another sort (person, animal or thing)."""
        if noun.sort == PERSON:
            return self.chance.choice(self.lexicon.of_persons)
        general = self.of_animals if noun.sort == ANIMAL else self.lexicon.of_things
        fitting = [each for each in self.lexicon.predicates if not noun.classes.isdisjoint(each.fits)]
        return self.chance.choice(fitting if fitting and self.chance.random() < 0.7 else general)

    def _selection(self) -> Pair | None:
        reading = self.chance.choice(self.lexicon.predicates)
        fitting, never = self.pool(reading.fits, frozenset()), self.pool(reading.never, reading.fits)
        if not fitting or not never:
            return None
        meant, other = self.chance.choice(fitting), self.chance.choice(never)
        opposite = [each for each in self.lexicon.predicates if each.is_of(other, rather_than=meant)]
        nouns = (meant, other)
        readings: tuple[Reading | None, Reading | None] = (reading, self.chance.choice(opposite) if opposite else None)
        if self.chance.random() < 0.5:
            nouns, readings = (other, meant), (readings[1], readings[0])
        contexts = [each for each in self.lexicon.contexts if all(map(Noun.fits, nouns, each.kinds))]
        if not contexts or meant.word == other.word:
            return None
        plural = self.chance.random() < PLURALS and all(noun.has_plural(self.language) for noun in nouns)
        return Pair(
            self.chance.choice(contexts), self._participants(nouns, (NEUTER, NEUTER), (plural, plural)), readings
        )

    def _role(self) -> Pair | None:
        scene = self._scene(PERSON)
        return self._of_scene(scene, self.chance.choice((*GENDERS, NEUTER)))

    def _thing_scene(self) -> Pair | None:
        return self._of_scene(self._scene(THING), NEUTER)

    def _scene(self, sort: str) -> Scene:
        return self.chance.choice(self.scenes[sort, 3 if self.chance.random() < THREE else 2])

    def _of_scene(self, scene: Scene, gender: str) -> Pair | None:
        plural = scene.plural and self.chance.random() < PLURALS

        def admits(noun: Noun, _: int) -> bool:
            fits = not noun.genders if gender == NEUTER else gender in noun.genders
            return fits and (not plural or noun.has_plural(self.language))

        nouns = self._drawn(scene.context, admits)
        if nouns is None or len({noun.is_plural for noun in nouns}) > 1:
            return None
        number = len(nouns)
        asked = self.chance.sample(range(number), 2)
        readings = [
            self.chance.choice(of_one) if place in asked else None for place, of_one in enumerate(scene.readings)
        ]
        participants = self._participants(nouns, (gender,) * number, (plural,) * number)
        return Pair(scene.context, participants, tuple(readings))

    # Nouns and contexts.

    def _contexts_of(self, *sorts: str) -> list[Context]:
        """Return the events (contexts) whose participants can have these sorts, in this order."""
        return [
            context
            for context in self.lexicon.contexts
            if all(
                any(noun.sort == sort for noun in self.lexicon.nouns_of(kinds))
                for kinds, sort in zip(context.kinds, sorts, strict=True)
            )
        ]

    def _pool(self, kinds: frozenset[str], without: frozenset[str]) -> list[Noun]:
        """Return the things and animals in any of the classes `kinds` and in none of `without`."""
        nouns = self.lexicon.nouns_of(sorted(kinds))
        return [noun for noun in nouns if not noun.genders and noun.classes.isdisjoint(without)]

    def _drawn(self, context: Context, admits: Callable[[Noun, int], bool]) -> tuple[Noun, ...] | None:
        """Draw different nouns that fit the context and pass `admits`; return None if there are none."""
        drawn: list[Noun] = []
        for place, kinds in enumerate(context.kinds):
            pool = [noun for noun in self.lexicon.nouns_of(kinds) if admits(noun, place)]
            names = [noun for noun in pool if noun.is_name]
            others = [noun for noun in pool if not noun.is_name]
            chosen = names if names and (not others or self.chance.random() < NAMES) else others
            if not chosen:
                return None
            drawn.append(self.chance.choice(chosen))
        return tuple(drawn) if len({noun.word for noun in drawn}) == len(drawn) else None

    def _participants(
        self, nouns: tuple[Noun, ...], genders: tuple[str, ...], plural: tuple[bool, ...]
    ) -> tuple[Participant, ...]:
        return tuple(
            Participant(
                noun,
                gender or (self.chance.choice(noun.genders) if noun.genders else NEUTER),
                is_plural or noun.is_plural,
                phrase(noun, is_plural or noun.is_plural, self.language, self.chance),
            )
            for noun, gender, is_plural in zip(nouns, genders, plural, strict=True)
        )

    # Texts.

    def _rows(self, pair: Pair) -> list[Row]:
        """Return an item for each clause (reading); an empty list if a text has an unknown slot."""
        frame = self._frame(pair)
        same = pair.readings[0] is pair.readings[1]
        said, link = "", ""
        rows: list[Row] = []
        for meant, reading in enumerate(pair.readings):
            if reading is None:
                continue
            if not (same and rows):
                said = self.chance.choice(reading.say)
                link = self.chance.choice(reading.links or LINKS[self.language])
            row = _row(frame, link, said, meant)
            if row is None:
                return []
            rows.append(row)
        return rows

    def _frame(self, pair: Pair) -> Frame:
        chance = self.chance
        backward = bool(pair.context.swapped) and chance.random() < 0.5
        return Frame(
            self.language,
            chance.choice(pair.context.swapped if backward else pair.context.say),
            pair.participants,
            self._bystander(pair.participants),
            chance.choice(self.lexicon.openings) if chance.random() < OPENINGS else "",
            self._asides(),
        )

    def _asides(self) -> str:
        """Draw sentences that do not mention the participants, as one text; "" for no sentences."""
        number = self.chance.choices(range(len(ASIDES)), ASIDES)[0]
        drawn = [aside.rstrip(" .。") for aside in self.chance.sample(self.lexicon.asides, number)]
        return (". " if self.language == "en" else "。").join(drawn)

    def _bystander(self, participants: tuple[Participant, ...]) -> str:
        """Return a third person to whom the pronoun cannot refer."""
        taken = {each.gender for each in participants}
        free = [gender for gender in GENDERS if gender not in taken]
        if not free or any(each.is_plural for each in participants) or self.chance.random() < NAMES:
            return self.chance.choice(BYSTANDERS[self.language])
        return self.chance.choice([noun for noun in self.lexicon.by_class["name"] if noun.genders == (free[0],)]).word


def generated_items(settings: TrainingItems) -> Iterator[Row]:
    """Yield the rows of pairs generated from the lexicons, with both rows of a pair in the same split."""
    for language in LANGUAGES:
        chance = Random(f"{settings.seed}/{language}")
        items = Items(load(language), chance)
        split: dict[str, str] = {}
        for row in items.rows(dict(zip(items.kinds, settings.shares, strict=True)), settings.pairs):
            in_dev = split.setdefault(row["group"], "dev" if chance.random() < settings.dev_share else "train")
            yield {**row, "split": in_dev}


def _row(frame: Frame, link: str, said: str, meant: int) -> Row | None:
    """Return text, pronoun, candidates and antecedents of one item; None if its text has a slot or a wrong mark."""
    marked = frame.text(link, said, frame.participants[meant])
    marks = MARKS[: len(frame.participants)]
    if "{" in marked or any(marked.count(mark) != 1 for mark in (*marks, ASKED)):
        return None
    spans: dict[str, tuple[int, int]] = {}
    text, begun = "", ("", 0)
    for character in marked:
        if character in (*marks, ASKED):
            begun = (character, len(text))
        elif character == END:
            spans[begun[0]] = (begun[1], len(text))
        else:
            text += character
    participants = [spans[mark] for mark in marks]
    if frame.language == "en":
        participants = [without_determiner(text, span) for span in participants]
    candidates = sorted(participants)
    return {
        "text": text,
        "pronoun": list(spans[ASKED]),
        "candidates": [list(span) for span in candidates],
        "antecedents": [candidates.index(participants[meant])],
    }
