"""Quads of the built-in corpus: groups of sentences that combine every cue with every order of the candidates.

The cue is the word or phrase that decides which of m candidates is the antecedent. In a quad, each of m cues, mostly
two, is combined with each of m orders of the candidates. A sentence with two pronouns gives two examples. A guess from
positions alone, or from the candidates alone, is correct on exactly 1 / m of the examples of a quad.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from functools import cache
from itertools import repeat
from typing import Any, NamedTuple, TypeVar

from anaphora.base.errors import UserError
from anaphora.data.controlled.lexicon import PRONOUN_FORMS, SELECTION_CLASSES, Lexicon, Noun, pronoun
from anaphora.data.controlled.rendering import CUE, NounPhrase, RenderedSentence, Sentence
from anaphora.data.controlled.splits import Holdout
from anaphora.data.controlled.templates import CueTypeContent, Template, fill_pools, fill_scenario, list_tokens
from anaphora.data.example import Example, unchecked_example
from anaphora.settings.cue_types import MAX_TRAINING_ASIDES

Option = TypeVar("Option", bound=Hashable)

_SINGULAR = (("male", "singular"), ("female", "singular"), ("thing", "singular"))
_PLURAL = (("male", "plural"), ("female", "plural"), ("thing", "plural"))
_NUMBERED = {"{A}": "{0}", "{B}": "{1}", "{x}": "{2}", "{state}": CUE}
_NUMBERED |= {f"{{{form}{mark}}}": "{p0}" for form in PRONOUN_FORMS for mark in ("", ":1")}
_NUMBERED |= {f"{{{form}:2}}": "{p1}" for form in PRONOUN_FORMS}


class Entity(NamedTuple):
    """Candidate of a quad, with the gender and number of the pronoun that refers to it."""

    mention: NounPhrase
    gender: str  # male, female, neuter
    number: str  # singular, plural
    predicate: str = ""  # the cue that picks the candidate, for the cue type "selection"


class QuadIdentity(NamedTuple):
    """Language, split, stratum (part of a split, such as "main" or "invented") and name of a group of examples."""

    language: str
    split: str
    stratum: str
    group: str


class QuadGenerator:
    """Generator of quads (sentences that combine two or more cues with all orders of the candidates) in one language.

    `test_asides` is the maximum number of asides in a test item: inserted sentences without a candidate, such as "Time
    passed slowly."

    Raises:
        UserError: the lexicon has fewer than `test_asides` asides.
    """

    def __init__(self, lexicon: Lexicon, holdout: Holdout, test_asides: int = MAX_TRAINING_ASIDES) -> None:
        if test_asides > len(lexicon.aside):
            raise UserError(
                f"data.test_asides ({test_asides}) must be at most {len(lexicon.aside)}, "
                f"as many as the {lexicon.language} lexicon has"
            )
        self.test_asides = test_asides
        self.lexicon = lexicon
        self.holdout = holdout
        self.role_names = cache(holdout.role_names)
        self._used: defaultdict[str, dict[Hashable, int]] = defaultdict(dict)  # by split and word
        self._drawn: defaultdict[str, list[Any]] = defaultdict(list)  # by split, in order
        self._rarest: dict[tuple[str, tuple[str, ...]], tuple[int, dict[str, None], int]] = {}
        """For each split and tuple of names: the least number of uses, the names with it, and the draws seen so far."""

    def set_quad(
        self, content: CueTypeContent, template: Template, place: QuadIdentity, chance: random.Random
    ) -> list[Example]:
        """Build a quad with a cue that decides by a property of the candidates (set cue), such as gender.

        Each of m cues picks a different one of the m candidates, and is combined with m orders of the candidates, which
        are the cyclic shifts of one order.
        """
        explicit = "list" not in template.slots
        if content.type == "selection":
            entities = self._selection(2 if explicit else _sample_size(6, chance), place.split, chance)
        else:
            entities = self._agreeing(self._wanted(content.type, explicit, chance), template, place.split, chance)
        count = len(entities)
        tokens = number_slots(
            fill_pools(template.tokens, self.draw_pools(place.split, chance), place.language), count, place.language
        )
        sentence = Sentence(tokens, place.language)
        forms = template.forms
        factors = {"kind": "set", "type": content.type, "template": template.name, "stratum": place.stratum}
        examples = []
        for cue in range(count):
            # The second pronoun of a sentence refers to the next candidate, so that all are antecedents equally often.
            meant = [(cue + number) % count for number in range(len(forms))]
            pronouns = [
                pronoun(place.language, form, entities[index].gender, entities[index].number)
                for form, index in zip(forms, meant, strict=True)
            ]
            for shift in range(count):
                who = [(slot + shift) % count for slot in range(count)]
                written = sentence.render(
                    [entities[index].mention for index in who], pronouns, [entities[cue].predicate]
                )
                for number, index in enumerate(meant):
                    examples.append(
                        make_example(
                            written,
                            place,
                            antecedent=who.index(index),
                            which=number,
                            order=shift,
                            factors={
                                **factors,
                                "cue": entities[cue].predicate or pronouns[number],
                                "gender": entities[index].gender,
                                "number": entities[index].number,
                            },
                        )
                    )
        return examples

    def role_quad(
        self, content: CueTypeContent, template: Template, place: QuadIdentity, chance: random.Random
    ) -> list[Example]:
        """Build a quad with a cue that decides by who did what to whom (role cue), such as voice.

        One cue makes the name in slot {A} the antecedent, the other the name in slot {B}. Each cue is combined with
        both assignments of the two names to the slots.
        """
        gender = chance.choice(("male", "female"))
        people = self._people(content.type, gender, place)
        others = self.holdout.distractors(content.type, gender, place.split) if "x" in template.slots else []
        names = self.draw_names(people, others, place.split, chance)
        scenario = chance.choice(content.scenarios)
        pools = self.draw_pools(place.split, chance)
        shared = _sample_alternatives(scenario.shared, chance)
        readings = [_sample_alternatives(scenario.first, chance), _sample_alternatives(scenario.second, chance)]
        factors = {
            "kind": "role",
            "type": content.type,
            "template": template.name,
            "stratum": place.stratum,
            "scenario": scenario.name,
            "gender": gender,
            "number": "singular",
        }
        examples = []
        for meant, reading in enumerate(readings):
            expanded = fill_scenario(template.tokens, {**shared, **reading})
            form = next(token[1:-1] for token in expanded if token[1:-1] in PRONOUN_FORMS and token[0] == "{")
            tokens = number_slots(fill_pools(expanded, pools, place.language), 2, place.language)
            sentence = Sentence(tokens, place.language)
            pronouns = [pronoun(place.language, form, gender, "singular")]
            # The cue is the words that differ from the other sentence, or the pronoun if that differs.
            different = [word for slot in scenario.first for word in reading[slot].split() if word[0] != "{"]
            cue = pronouns[0] if "form" in reading else " ".join(different)
            for shift in range(2):
                who = [names[shift], names[1 - shift], *names[2:]]
                written = sentence.render([NounPhrase(name) for name in who], pronouns)
                examples.append(
                    make_example(
                        written, place, antecedent=meant, which=0, order=shift, factors={**factors, "cue": cue}, focal=2
                    )
                )
        return examples

    def draw_names(self, people: Sequence[str], others: Sequence[str], split: str, chance: random.Random) -> list[str]:
        """Draw the names of two people in random order, and of a third person if `others` is not empty."""
        names = [self._draw_name(people, [], split, chance)]
        names.append(self._draw_name(people, names, split, chance))
        chance.shuffle(names)
        if others:
            names.append(self._draw_name(others, names, split, chance))
        return names

    def _draw_name(self, names: Sequence[str], without: Sequence[str], split: str, chance: random.Random) -> str:
        """Draw one of the names that the split has used least, but none in `without`; fast for a thousand names."""
        used, drawn, key = self._used[split], self._drawn[split], (split, tuple(names))
        least, rarest, seen = self._rarest.get(key) or (0, dict.fromkeys(names), 0)
        for option in drawn[seen:]:  # numbers of uses only grow, so no name joins those with the least number
            rarest.pop(option, None)
        if not rarest:
            least = min(map(used.get, names, repeat(0)))
            rarest = {name: None for name in names if used.get(name, 0) == least}
        self._rarest[key] = least, rarest, len(drawn)
        free = list(rarest)
        for name in without:
            if name in rarest:
                free.remove(name)
        if not free:
            return self._draw([name for name in names if name not in without], split, chance)
        return self._counted(chance.choice(free), split)

    def _draw(self, options: Sequence[Option], split: str, chance: random.Random) -> Option:
        """Draw one of the options that the split has used least, so that all become equally frequent."""
        uses = list(map(self._used[split].get, options, repeat(0)))
        least = min(uses)
        return self._counted(
            chance.choice([option for option, count in zip(options, uses, strict=True) if count == least]), split
        )

    def _counted(self, option: Option, split: str) -> Option:
        self._used[split][option] = self._used[split].get(option, 0) + 1
        self._drawn[split].append(option)
        return option

    def _selection(self, count: int, split: str, chance: random.Random) -> list[Entity]:
        coset = chance.randrange(len(self.holdout.predicates[SELECTION_CLASSES[0]]))
        return [
            Entity(
                mention=_mention(
                    self._draw(self.holdout.selection_nouns(kind, coset, split), split, chance), "singular"
                ),
                gender="neuter",
                number="singular",
                predicate=self._draw(self.holdout.predicates[kind][coset], split, chance),
            )
            for kind in chance.sample(SELECTION_CLASSES, count)
        ]

    def _agreeing(
        self, wanted: Sequence[tuple[str, str]], template: Template, split: str, chance: random.Random
    ) -> list[Entity]:
        """Draw entities with different nouns for (noun class, grammatical number) pairs, in random order."""
        taken: set[Noun] = set()
        entities = []
        for kind, number in chance.sample(wanted, len(wanted)):
            free = [noun for noun in self.holdout.agreement_nouns(kind, template.forms, split) if noun not in taken]
            noun, _ = self._draw([(noun, number) for noun in free], split, chance)
            taken.add(noun)
            gender = "neuter" if kind == "thing" else kind
            entities.append(Entity(mention=_mention(noun, number), gender=gender, number=number))
        return entities

    def _wanted(self, kind: str, explicit: bool, chance: random.Random) -> list[tuple[str, str]]:
        """Draw the noun class and grammatical number of each entity of a quad; no two have the same pronoun.

        For the cue type "number", there are both singular and plural entities.
        """
        *people, thing = _SINGULAR
        if kind == "gender":
            return people
        if kind == "animacy":
            count = 2 if explicit else chance.choice((2, 3))
            return [*chance.sample(people, count - 1), thing]
        if self.lexicon.language == "en":
            count = 2 if explicit else _sample_size(4, chance)
            return [chance.choice(_PLURAL), *chance.sample(_SINGULAR, count - 1)]
        count = 2 if explicit else _sample_size(6, chance)
        sure = [chance.choice(_SINGULAR), chance.choice(_PLURAL)]
        rest = [each for each in (*_SINGULAR, *_PLURAL) if each not in sure]
        return [*sure, *chance.sample(rest, count - 2)]

    def _people(self, kind: str, gender: str, place: QuadIdentity) -> Sequence[str]:
        if place.stratum == "distractor_only":
            return self.holdout.distractor_only[gender]
        if place.stratum == "invented":
            training = place.split == "train"
            return self.holdout.invented_for_training if training else self.holdout.invented_for_test
        return self.role_names(kind, gender, place.split)

    def draw_pools(self, split: str, chance: random.Random) -> dict[str, str]:
        """Draw the texts for three optional slots of a template; a slot that is left empty has the text "".

        The slots are {intro}, an adverbial such as "yesterday,"; {gap}, a phrase such as "as usual"; and {aside}, up to
        `MAX_TRAINING_ASIDES` sentences such as "All was quiet." Each is left empty with a probability of 1/2. If
        `test_asides` is above `MAX_TRAINING_ASIDES`, however, the number of {aside} sentences in a test item is drawn
        uniformly from 0 to `test_asides`.
        """
        asides = chance.choices(range(MAX_TRAINING_ASIDES + 1), (0.5, 0.3, 0.12, 0.08))[0]
        if split == "test" and self.test_asides > MAX_TRAINING_ASIDES:
            asides = chance.randint(0, self.test_asides)
        return {
            "intro": chance.choice(self.lexicon.intro) if chance.random() < 0.5 else "",
            "gap": chance.choice(self.lexicon.gap) if chance.random() < 0.5 else "",
            "aside": " ".join(chance.sample(self.lexicon.aside, asides)),
        }


def _sample_size(most: int, chance: random.Random) -> int:
    """Draw the number m of candidates, at least two, with a probability proportional to m ** -3.

    A quad has m * m items, so the share of items with m candidates is proportional to 1 / m.
    """
    sizes = range(2, most + 1)
    return chance.choices(sizes, [size**-3 for size in sizes])[0]


def _mention(noun: Noun, number: str) -> NounPhrase:
    if number == "plural":
        return NounPhrase(noun.plural, noun.plural_determiner)
    return NounPhrase(noun.singular, noun.singular_determiner)


def _sample_alternatives(options: Mapping[str, Sequence[str]], chance: random.Random) -> dict[str, str]:
    return {slot: chance.choice(alternatives) for slot, alternatives in options.items()}


def number_slots(tokens: Sequence[str], count: int, language: str) -> list[str]:
    """Rename the slots of candidates to {0}, {1}, ..., those of pronouns to {p0} and {p1}, and {state} to {cue}."""
    numbered = [_NUMBERED.get(token, token) for token in tokens]
    if "{list}" in numbered:
        place = numbered.index("{list}")
        numbered[place : place + 1] = list_tokens(count, language)
    return numbered


def make_example(
    written: RenderedSentence,
    place: QuadIdentity,
    *,
    antecedent: int,
    which: int,
    order: int,
    factors: dict[str, str],
    focal: int | None = None,
    cell: str = "",
    event_names: Sequence[tuple[int, int]] | None = None,
) -> Example:
    """Build one example of a group, such as a quad: the one with a given cue, order of the candidates and pronoun.

    Args:
        written: rendered text with this cue and this order.
        place: identity of the group.
        antecedent: index of the slot (placeholder of a candidate in the template) that has the antecedent.
        which: index of the pronoun in the text.
        order: index of the order of the candidates among the orders in the group.
        factors: attributes of the example, such as its cue type. The attributes that follow from the other arguments
            are added to this dictionary.
        focal: number n; the cue decides among the candidates in the first n slots. None if it decides among all.
        cell: further condition, such as the voice. Examples of the group with the same order, the same pronoun and the
            same `cell` are a minimal pair.
        event_names: mention of each name inside the event, as (slot, index among the mentions in this slot). None
            unless the text also mentions the names outside the event.
    """
    text, slot_spans, slot_words, pronoun_spans, pronoun_words, in_order = written
    candidates = tuple([slot_spans[slot] for slot in in_order])
    place_of = in_order.index
    at = pronoun_words[which]
    distance = min([abs(at - word) for word in slot_words[antecedent]]) - 1
    factors["order"] = str(order)
    factors["distance"] = str(distance)
    factors["candidates"] = str(len(candidates))
    factors["subject"] = "0" if event_names is None else str(place_of(event_names[0][0]))
    if event_names is not None:
        factors["event_names"] = ",".join(str(slot_spans[slot][number][0]) for slot, number in event_names)
    if focal is not None and focal < len(candidates):
        factors["focal"] = _focal(in_order, focal)
    if len(pronoun_spans) > 1:
        factors["pronouns"] = str(len(pronoun_spans))
    pair = f"{place.group}/{order}/{which}" + (f"/{cell}" if cell else "")
    antecedents = (place_of(antecedent),)
    return unchecked_example(
        text, place.language, pronoun_spans[which], candidates, antecedents, place.group, pair, factors
    )


@cache
def _focal(in_order: tuple[int, ...], count: int) -> str:
    """Return the comma-separated indices of the candidates in the first `count` slots, among which the cue decides."""
    return ",".join(map(str, sorted(map(in_order.index, range(count)))))
