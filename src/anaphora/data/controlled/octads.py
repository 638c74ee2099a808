"""Octads: the eight cells of one predicate with two states, in two voices and two orders of the names.

One state picks the predicate's agent, the other its patient. The level of a predicate and a state says in which voices
they occur together in training: L0 in both, L1 in one (the other is tested), L2 in neither, although the predicate and
the state each occur in other pairs. At level L1, an octad has only the four cells of one voice.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, islice
from pathlib import Path
from typing import TypeVar

from anaphora.data.controlled import compositions
from anaphora.data.controlled.compositions import (
    DISTRACTOR_POSITIONS,
    PARTICIPANTS,
    VOICES,
    Frame,
    Lines,
    Predicate,
    State,
)
from anaphora.data.controlled.lexicon import GENDERS, SUBJECT, pronoun
from anaphora.data.controlled.quads import QuadGenerator, QuadIdentity, make_example, number_slots
from anaphora.data.controlled.rendering import NounPhrase, Sentence
from anaphora.data.controlled.splits import WithheldPairs, invented_names
from anaphora.data.controlled.templates import fill_pools
from anaphora.data.example import Example
from anaphora.settings.cue_types import COMPOSITION, SHORT_TEXT

LEVELS = ("L0", "L1", "L2")
THIRD = "third"  # stratum of compositions whose pronoun refers to a third person
EVALUATION_SENTENCES = 48  # number of sentence plans in each stratum of dev and test, used in turn
FULL_STOP = {"en": ".", "zh": "。"}
_Plan = TypeVar("_Plan")
_BY_ORDER = ("{first}", "{second}")
"""Slots of a short text for the people whom its event names first and second."""
LEAD_WEIGHT = 0.5
"""Cost per excess use of a state for agents over patients, relative to one use of its pair with the predicate."""
DISTRACTOR_SHARE = 0.15
"""Share of the sentences with a third person at each of `DISTRACTOR_POSITIONS`; the others have no third person."""


@dataclass(frozen=True)
class SentencePlan:
    """Parts of a sentence around its event, as space-separated tokens.

    Attributes:
        name: identifier of the chosen parts.
        prefix, inside, link, suffix: parts with unfilled slots of pools and, in the distractor, {x} for the name of the
            third person. A distractor replaces `prefix` ("before") or `suffix` ("after"), is the whole of `inside`, or
            stands at the start of `link` ("between").
        distractor: position of the third person, one of `DISTRACTOR_POSITIONS`, or "none".
    """

    name: str
    prefix: str
    inside: str
    link: str
    suffix: str
    distractor: str

    def tokens(self, event: str, state: str, language: str) -> list[str]:
        """Return the tokens of the whole sentence."""
        stop = FULL_STOP[language]
        parts = (self.prefix, event.replace("{inside}", self.inside), self.link, "{he}", state, self.suffix, stop)
        return " ".join(parts).split()

    def tokens_about_third(self, event: str, third: str, language: str) -> list[str]:
        """Return the tokens of the sentence with an ending about a third person."""
        return " ".join((self.prefix, event.replace("{inside}", ""), third, FULL_STOP[language])).split()


@dataclass(frozen=True)
class TextPlan:
    """Template of a short text: space-separated tokens with slots for its event, its people and words from pools."""

    name: str
    text: str

    @property
    def distractor(self) -> str:
        """Return "around" if the text names a third person outside the event, else "none"."""
        return "around" if "{x}" in self.text else "none"

    def tokens(self, event: str, state: str, language: str) -> list[str]:
        """Return the tokens of the whole text."""
        del language  # unlike a sentence plan, the text contains its punctuation
        return self.text.replace("{event}", event.replace("{inside}", "")).replace("{state}", state).split()


def sentence_plans(parts: Mapping[str, Lines], split: str, chance: random.Random) -> Iterator[SentencePlan]:
    """Yield an endless sequence of random sentence plans.

    All lines of a part are equally likely, whatever the number of texts to which they expand, so that all constructions
    are equally frequent.
    """
    while True:
        drawn = chance.random()
        share = int(drawn / DISTRACTOR_SHARE)
        distractor = DISTRACTOR_POSITIONS[share] if share < len(DISTRACTOR_POSITIONS) else "none"
        places = {name: _place(lines, chance) for name, lines in parts.items()}
        text = {name: parts[name][line][number] for name, (line, number) in places.items()}
        own = text.get(distractor, "")
        replaced = {"before": "prefix", "after": "suffix"}.get(distractor, "")
        used = [name for name in ("prefix", "link", "suffix", distractor) if name in places and name != replaced]
        text[replaced] = own
        yield SentencePlan(
            name="/".join((split, distractor, *(_numbered(name, places[name]) for name in used))),
            prefix=text["prefix"],
            inside=own if distractor == "inside" else "",
            link=f"{own} {text['link']}" if distractor == "between" else text["link"],
            suffix=text["suffix"],
            distractor=distractor,
        )


def text_plans(lines: Lines, split: str, chance: random.Random) -> Iterator[TextPlan]:
    """Yield an endless sequence of random short texts; all lines are equally likely."""
    while True:
        line, number = _place(lines, chance)
        yield TextPlan("/".join((split, _numbered("text", (line, number)))), lines[line][number])


def _place(lines: Lines, chance: random.Random) -> tuple[int, int]:
    """Draw the indices of a line and of one of its texts."""
    line = chance.randrange(len(lines))
    return line, chance.randrange(len(lines[line]))


def _numbered(name: str, place: tuple[int, int]) -> str:
    line, text = place
    return f"{name}{line}.{text}" if text else f"{name}{line}"


@dataclass(frozen=True)
class _Scene:
    """Parts shared by the cells of an octad: event, people and words of the pools."""

    predicate: Predicate
    frame: Frame
    gender: str
    names: Sequence[str]
    pools: Mapping[str, str]
    place: QuadIdentity
    cue_type: str

    def cells(
        self,
        tokens_around: Callable[[str], list[str]],
        voice: str,
        *,
        antecedent: int,
        focal: int,
        factors: Mapping[str, str],
    ) -> list[Example]:
        """Build the two cells that differ in the order of the names.

        Args:
            tokens_around: function that puts an event into its sentence or text.
            voice: voice of the event.
            antecedent: index of the antecedent: 0 agent, 1 patient, 2 third person.
            focal: number of people whom the cue may pick.
            factors: further factors of the examples.
        """
        language = self.place.language
        around = tokens_around(fill_event(self.frame.texts[voice], self.predicate))
        before_event = around[: min(map(around.index, ("{A}", "{B}")))]
        order_of_names = ("{A}", "{B}") if voice == "agent_first" else ("{B}", "{A}")
        by_order = dict(zip(_BY_ORDER, order_of_names, strict=True))
        around = [by_order.get(token, token) for token in around]
        slots = (0, 1) if voice == "agent_first" else (1, 0)
        own = {
            "kind": "role",
            "type": self.cue_type,
            "stratum": self.place.stratum,
            "scenario": f"{self.predicate.kind}/{self.predicate.name}",
            "predicate": self.predicate.name,
            "frame": self.frame.name,
            "gender": self.gender,
            "number": "singular",
            "voice": voice,
        }
        sentence = Sentence(number_slots(fill_pools(around, self.pools, language), 2, language), language)
        event_names = None
        if self.cue_type == SHORT_TEXT:
            event_names = [(slot, before_event.count(name)) for slot, name in zip(slots, _BY_ORDER, strict=True)]
        examples = []
        for order in range(2):
            in_event = (self.names[order], self.names[1 - order])
            mentions = [NounPhrase(name) for name in (in_event[slots[0]], in_event[slots[1]], *self.names[2:])]
            examples.append(
                make_example(
                    sentence.render(mentions, [pronoun(language, SUBJECT, self.gender, "singular")]),
                    self.place,
                    antecedent=antecedent,
                    which=0,
                    order=order,
                    factors={**own, **factors},
                    focal=focal,
                    cell=voice,
                    event_names=event_names,
                )
            )
        return examples


class OctadGenerator:
    """Generator of octads in one language, as compositions or in short texts.

    Args:
        language: "en" or "zh".
        content: folder of the TOML files.
        seed: seed of the corpus.
        quads: generator of the quads, from which names and words of the pools are drawn.
        cue_type: "composition" or "short_text".

    Raises:
        UserError: the content is invalid.
    """

    def __init__(
        self, language: str, content: Path, seed: int, quads: QuadGenerator, cue_type: str = COMPOSITION
    ) -> None:
        self.content, self.quads, self.cue_type = compositions.load(language, content), quads, cue_type
        self.texts = compositions.load_texts(language, content) if cue_type == SHORT_TEXT else None
        self.withheld = WithheldPairs(self.content, seed)
        self._lead: Counter[tuple[str, str, str, str]] = Counter()  # uses for agents minus uses for patients
        self._pairs: Counter[tuple[str, str, str]] = Counter()
        self._turns: dict[tuple[str, str], Iterator[Predicate]] = {}
        invented = invented_names(quads.lexicon, seed)
        held_out = quads.holdout.invented_for_test
        self._invented = {
            "test": held_out[::2],
            "dev": held_out[1::2],
            # The first fifth includes all names of dev and test, and the quads' training names except the last eight,
            # which octads use too.
            "train": invented[len(invented) // 5 :],
        }

    def draw_from(self, split: str, stratum: str, chance: random.Random) -> Callable[[QuadIdentity], list[Example]]:
        """Return a function that draws octads of one stratum.

        Training draws new sentences; dev and test use `EVALUATION_SENTENCES` sentences in turn.
        """
        if self.texts is not None:
            texts = _in_turn(text_plans(self.texts[split], split, chance), split)
            return lambda place: self._octad(next(texts), place, chance)
        plans = _in_turn(sentence_plans(self.content.parts[split], split, chance), split)
        if stratum == THIRD:
            return lambda place: self._third_person(next(plans), place, chance)
        return lambda place: self._octad(next(plans), place, chance)

    def _octad(self, plan: SentencePlan | TextPlan, place: QuadIdentity, chance: random.Random) -> list[Example]:
        """Build the eight cells of a predicate and two states of a level; in L1, the four cells of one voice."""
        level = place.stratum if place.stratum in LEVELS else "L0"
        predicate = self._next_predicate(level, place.split, chance)
        states = self._states(predicate, level, place.split, chance)
        frames = [self.content.frames[name] for name in predicate.frames]
        with_room = [frame for frame in frames if frame.takes_inside]
        if isinstance(plan, TextPlan):  # cleft sentences, which have no such slot, do not fit into a story
            frames = with_room or frames
        elif plan.distractor == "inside":
            if with_room:
                frames = with_room
            else:
                plan = replace(plan, inside="", distractor="none")
        scene = self._scene(predicate, frames, plan.distractor != "none", place, chance)
        voices = self.withheld.voices(predicate, level, place.split)
        factors = {
            "template": f"{place.language}/{self.cue_type}/{plan.name}",
            "level": level,
            "distractor": plan.distractor,
            "voices": str(len(voices)),
        }
        examples: list[Example] = []
        for voice in voices:
            pairs = [
                scene.cells(
                    partial(plan.tokens, state=state.text, language=place.language),
                    voice,
                    antecedent=participant,
                    focal=2,
                    factors={**factors, "cue": state.text},
                )
                for participant, state in enumerate(states)
            ]
            examples += [pair[order] for order in range(2) for pair in pairs]
        return examples

    def _third_person(self, plan: SentencePlan, place: QuadIdentity, chance: random.Random) -> list[Example]:
        """Build the four cells of an event, in both voices and orders, with a third person as the antecedent."""
        predicate = self._next_predicate(place.stratum, place.split, chance)
        frames = [self.content.frames[name] for name in predicate.frames]
        scene = self._scene(predicate, frames, True, place, chance)
        if plan.distractor == "before":
            plan = replace(plan, prefix="")
        lines = self.content.parts[place.split]["third"]
        line, number = _place(lines, chance)
        third = lines[line][number]
        factors = {
            "template": f"{place.language}/{COMPOSITION}/{place.split}/{_numbered('third', (line, number))}",
            "distractor": "none",  # any of the three people may be the antecedent
            "cue": third,
        }
        around = partial(plan.tokens_about_third, third=third, language=place.language)
        return [
            example
            for voice in VOICES
            for example in scene.cells(around, voice, antecedent=2, focal=3, factors=factors)
        ]

    def _states(self, predicate: Predicate, level: str, split: str, chance: random.Random) -> list[State]:
        """Draw a state for which the pronoun refers to the agent, and one for which it refers to the patient.

        The level selects the pairs of predicate and state that may occur. All of them are about equally frequent, and
        over all predicates, each state refers to agents about as often as to patients. Thus no two of predicate, state
        and voice predict the answer.
        """
        chosen = []
        voices = self.withheld.voices(predicate, level, split)
        for participant, sign in zip(PARTICIPANTS, (1, -1), strict=True):

            def cost(state: State, sign: int = sign) -> tuple[float, float]:
                lead = sum(self._lead[split, level, voice, state.text] for voice in voices) / len(voices)
                shown = self._pairs[split, predicate.name, state.text]
                return shown + LEAD_WEIGHT * sign * lead, chance.random()

            state = min(self.withheld.states(predicate, participant, level), key=cost)
            for voice in voices:
                self._lead[split, level, voice, state.text] += sign
            self._pairs[split, predicate.name, state.text] += 1
            chosen.append(state)
        return chosen

    def _scene(
        self, predicate: Predicate, frames: Sequence[Frame], has_third: bool, place: QuadIdentity, chance: random.Random
    ) -> _Scene:
        frame = chance.choice(frames)
        gender = chance.choice(GENDERS)
        people: Sequence[str] = (
            self._invented[place.split]
            if place.stratum == "invented"
            else self.quads.holdout.role_names(self.cue_type, gender, place.split)
        )
        names = self.quads.draw_names(people, people if has_third else [], place.split, chance)
        pools = self.quads.draw_pools(place.split, chance)
        return _Scene(predicate, frame, gender, names, pools, place, self.cue_type)

    def _next_predicate(self, level: str, split: str, chance: random.Random) -> Predicate:
        if (level, split) not in self._turns:
            predicates = self.withheld.predicates(level, split)
            self._turns[level, split] = cycle(chance.sample(predicates, len(predicates)))
        return next(self._turns[level, split])


def _in_turn(plans: Iterator[_Plan], split: str) -> Iterator[_Plan]:
    return plans if split == "train" else cycle(list(islice(plans, EVALUATION_SENTENCES)))


def fill_event(text: str, predicate: Predicate) -> str:
    """Insert the forms of a predicate into a frame; the participants become the candidates' slots {A} and {B}."""
    for form, words in predicate.forms.items():
        text = text.replace(f"{{{form}}}", words)
    return text.replace("{agent}", "{A}").replace("{patient}", "{B}")
