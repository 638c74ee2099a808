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
from itertools import cycle

from anaphora.data.controlled.compositions import (
    DISTRACTOR_POSITIONS,
    PARTICIPANTS,
    VOICES,
    CompositionContent,
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
FULL_STOP = {"en": ".", "zh": "。"}
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


class OctadPlanner:
    """Planner that draws the states of octads so that no two of predicate, state and voice predict the answer."""

    def __init__(self, withheld: WithheldPairs) -> None:
        self.withheld = withheld
        self._lead: Counter[tuple[str, str, str, str]] = Counter()  # uses for agents minus uses for patients
        self._pairs: Counter[tuple[str, str, str]] = Counter()

    def states(self, predicate: Predicate, level: str, split: str, chance: random.Random) -> tuple[State, State]:
        """Draw a state for which the pronoun refers to the agent, and one for which it refers to the patient.

        The level selects the pairs of predicate and state that may occur. All of them are about equally frequent, and
        over all predicates, each state refers to agents about as often as to patients.
        """
        chosen = []
        voices = self.withheld.voices(predicate, level, split)
        for participant, sign in zip(PARTICIPANTS, (1, -1), strict=True):
            options = self.withheld.states(predicate, participant, level)

            def cost(state: State, sign: int = sign) -> tuple[float, float]:
                lead = sum(self._lead[split, level, voice, state.text] for voice in voices) / len(voices)
                shown = self._pairs[split, predicate.name, state.text]
                return shown + LEAD_WEIGHT * sign * lead, chance.random()

            state = min(options, key=cost)
            for voice in voices:
                self._lead[split, level, voice, state.text] += sign
            self._pairs[split, predicate.name, state.text] += 1
            chosen.append(state)
        return chosen[0], chosen[1]


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
        yield plan(parts, places, distractor, split)


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


def plan(
    parts: Mapping[str, Lines], places: Mapping[str, tuple[int, int]], distractor: str, split: str
) -> SentencePlan:
    """Build a sentence plan from its parts.

    Args:
        parts: alternatives for each part.
        places: indices of line and text for each part.
        distractor: position of the third person, or "none".
        split: split, which is part of the plan's name.
    """
    text = {name: parts[name][line][number] for name, (line, number) in places.items()}
    own = text.get(distractor, "")
    used = ("prefix", "link", "suffix", *([distractor] if own else []))
    if distractor == "before":
        used = used[1:]
    if distractor == "after":
        used = tuple(name for name in used if name != "suffix")
    return SentencePlan(
        name="/".join((split, distractor, *(_numbered(name, places[name]) for name in used))),
        prefix=own if distractor == "before" else text["prefix"],
        inside=own if distractor == "inside" else "",
        link=f"{own} {text['link']}" if distractor == "between" else text["link"],
        suffix=own if distractor == "after" else text["suffix"],
        distractor=distractor,
    )


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

    def cell(
        self,
        tokens_around: Callable[[str], list[str]],
        voice: str,
        *,
        antecedent: int,
        focal: int,
        factors: Mapping[str, str],
    ) -> _Cell:
        """Build the sentence of the two cells that differ in the order of the names.

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
        return _Cell(
            self,
            Sentence(number_slots(fill_pools(around, self.pools, language), 2, language), language),
            voice,
            antecedent,
            focal,
            {**own, **factors},
            [(slot, before_event.count(name)) for slot, name in zip(slots, _BY_ORDER, strict=True)]
            if self.cue_type == SHORT_TEXT
            else None,
        )


@dataclass(frozen=True)
class _Cell:
    """Two cells of an octad that differ in the order of the names."""

    scene: _Scene
    sentence: Sentence
    voice: str
    antecedent: int
    focal: int
    factors: Mapping[str, str]
    event_names: Sequence[tuple[int, int]] | None

    def example(self, order: int) -> Example:
        """Build the example of one order of the names, 0 or 1."""
        scene = self.scene
        first, second = scene.names[order], scene.names[1 - order]
        agent, patient = (first, second) if self.voice == "agent_first" else (second, first)
        mentions = [NounPhrase(name) for name in (agent, patient, *scene.names[2:])]
        return make_example(
            self.sentence.render(mentions, [pronoun(scene.place.language, SUBJECT, scene.gender, "singular")]),
            scene.place,
            antecedent=self.antecedent,
            which=0,
            order=order,
            factors=self.factors,
            focal=self.focal,
            cell=self.voice,
            event_names=self.event_names,
        )


class OctadGenerator:
    """Generator of octads in one language, as compositions or in short texts.

    Args:
        content: content of the compositions.
        seed: seed of the corpus.
        quads: generator of the quads, from which names and words of the pools are drawn.
        cue_type: "composition" or "short_text".
    """

    def __init__(
        self, content: CompositionContent, seed: int, quads: QuadGenerator, cue_type: str = COMPOSITION
    ) -> None:
        self.content, self.quads, self.cue_type = content, quads, cue_type
        self.withheld = WithheldPairs(content, seed)
        self._planner = OctadPlanner(self.withheld)
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

    def octad(
        self, level: str, plan: SentencePlan | TextPlan, place: QuadIdentity, chance: random.Random
    ) -> list[Example]:
        """Build the eight cells of a predicate and two states of a level; in L1, the four cells of one voice."""
        predicate = self._next_predicate(level, place.split, chance)
        states = self._planner.states(predicate, level, place.split, chance)
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
        examples = []
        for voice in voices:
            of_voice = [
                scene.cell(
                    partial(plan.tokens, state=state.text, language=place.language),
                    voice,
                    antecedent=participant,
                    focal=2,
                    factors={**factors, "cue": state.text},
                )
                for participant, state in enumerate(states)
            ]
            examples += [cell.example(order) for order in range(2) for cell in of_voice]
        return examples

    def third_person(self, plan: SentencePlan, place: QuadIdentity, chance: random.Random) -> list[Example]:
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
        of_voice = [
            scene.cell(
                partial(plan.tokens_about_third, third=third, language=place.language),
                voice,
                antecedent=2,
                focal=3,
                factors=factors,
            )
            for voice in VOICES
        ]
        return [cell.example(order) for cell in of_voice for order in range(2)]

    def _scene(
        self, predicate: Predicate, frames: Sequence[Frame], has_third: bool, place: QuadIdentity, chance: random.Random
    ) -> _Scene:
        frame = chance.choice(frames)
        gender = chance.choice(GENDERS)
        people = self._people(gender, place)
        names = self.quads.draw_names(people, people if has_third else [], place.split, chance)
        pools = self.quads.draw_pools(place.split, chance)
        return _Scene(predicate, frame, gender, names, pools, place, self.cue_type)

    def _people(self, gender: str, place: QuadIdentity) -> Sequence[str]:
        if place.stratum == "invented":
            return self._invented[place.split]
        return self.quads.holdout.role_names(self.cue_type, gender, place.split)

    def _next_predicate(self, level: str, split: str, chance: random.Random) -> Predicate:
        if (level, split) not in self._turns:
            predicates = self.withheld.predicates(level, split)
            self._turns[level, split] = cycle(chance.sample(predicates, len(predicates)))
        return next(self._turns[level, split])


def fill_event(text: str, predicate: Predicate) -> str:
    """Insert the forms of a predicate into a frame; the participants become the candidates' slots {A} and {B}."""
    for form, words in predicate.forms.items():
        text = text.replace(f"{{{form}}}", words)
    return text.replace("{agent}", "{A}").replace("{patient}", "{B}")
