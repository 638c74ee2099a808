"""Octads: one predicate, a state that picks its agent and one that picks its patient, two voices, two orders of names.

Levels of what training shows of a pair of predicate and state: L0 both voices; L1 one voice, with the other tested; L2
neither, though predicate and state each occur with others.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle, product

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
from anaphora.data.controlled.lexicon import GENDERS
from anaphora.data.controlled.pronouns import SUBJECT, pronoun
from anaphora.data.controlled.quads import QuadGenerator, QuadIdentity, make_example, number_slots
from anaphora.data.controlled.splits import WithheldPairs, invented_names
from anaphora.data.controlled.templates import NounPhrase, fill_pools, render
from anaphora.data.example import Example
from anaphora.settings.cue_types import COMPOSITION, SHORT_TEXT

LEVELS = ("L0", "L1", "L2")
FULL_STOP = {"en": ".", "zh": "。"}
_BY_ORDER = ("{first}", "{second}")
"""Slots of a short text: whom its event names first, and second."""
LEAD_WEIGHT = 0.5
"""How much one use of a state too many as the agent's counts against it, in times that its pair was shown."""
DISTRACTOR_SHARE = 0.15
"""Of the sentences, for each place of a third person; the others have none."""


@dataclass(frozen=True)
class SentencePlan:
    """The parts of a sentence around its event.

    Attributes:
        name: which parts they are.
        prefix, inside, link, suffix: in tokens, pools and {x} still open; `link` holds what stands between, too.
        distractor: where the third person stands, or "none".
    """

    name: str
    prefix: str
    inside: str
    link: str
    suffix: str
    distractor: str

    def tokens(self, event: str, state: str, language: str) -> list[str]:
        """Return the whole sentence."""
        stop = FULL_STOP[language]
        parts = (self.prefix, event.replace("{inside}", self.inside), self.link, "{he}", state, self.suffix, stop)
        return " ".join(parts).split()

    def tokens_about_third(self, event: str, third: str, language: str) -> list[str]:
        """Return the sentence with an ending about a third person."""
        return " ".join((self.prefix, event.replace("{inside}", ""), third, FULL_STOP[language])).split()


@dataclass(frozen=True)
class TextPlan:
    """A short text around its event: sentences in tokens, the people's slots and pools still open."""

    name: str
    text: str

    @property
    def distractor(self) -> str:
        """Return where the third person is named: "around" the event, or "none"."""
        return "around" if "{x}" in self.text else "none"

    def tokens(self, event: str, state: str, language: str) -> list[str]:
        """Return the whole text."""
        del language  # its marks are written out
        return self.text.replace("{event}", event.replace("{inside}", "")).replace("{state}", state).split()


class OctadPlanner:
    """A planner that draws states of octads so that no two of predicate, state and voice predict the answer."""

    def __init__(self, withheld: WithheldPairs) -> None:
        self.withheld = withheld
        self._lead: Counter[tuple[str, str, str, str]] = Counter()  # uses as agent's state, less uses as patient's
        self._pairs: Counter[tuple[str, str, str]] = Counter()

    def states(self, predicate: Predicate, level: str, split: str, chance: random.Random) -> tuple[State, State]:
        """Draw a state that picks the agent and one that picks the patient.

        Pairs are about equally frequent, and every state picks agents about as often as patients.
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
    """Yield sentence plans without end, with the place of a third person.

    All lines of a place are equally likely, whatever the number of their texts, so that a line with many texts does not
    displace the constructions of the others.
    """
    while True:
        drawn = chance.random()
        share = int(drawn / DISTRACTOR_SHARE)
        distractor = DISTRACTOR_POSITIONS[share] if share < len(DISTRACTOR_POSITIONS) else "none"
        places = {name: _place(lines, chance) for name, lines in parts.items()}
        yield plan(parts, places, distractor, split)


def text_plans(lines: Lines, split: str, chance: random.Random) -> Iterator[TextPlan]:
    """Yield short texts without end; each line is equally likely."""
    while True:
        line, number = _place(lines, chance)
        yield TextPlan("/".join((split, _numbered("text", (line, number)))), lines[line][number])


def _place(lines: Lines, chance: random.Random) -> tuple[int, int]:
    """Return the numbers of a line and of one of its texts."""
    line = chance.randrange(len(lines))
    return line, chance.randrange(len(lines[line]))


def _numbered(name: str, place: tuple[int, int]) -> str:
    line, text = place
    return f"{name}{line}.{text}" if text else f"{name}{line}"


def plan(
    parts: Mapping[str, Lines], places: Mapping[str, tuple[int, int]], distractor: str, split: str
) -> SentencePlan:
    """Return the sentence whose parts are those with these numbers of line and text."""
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


def cells(states: tuple[State, State], voices: Sequence[str]) -> Iterator[tuple[str, int, State, int]]:
    """Yield the cells of an octad: voice, which name comes first, state, and the participant that it picks."""
    for voice, order in product(voices, range(2)):
        for participant, state in enumerate(states):
            yield voice, order, state, participant


@dataclass(frozen=True)
class _Scene:
    """The shared parts of an octad's cells: an event, its people, and the words of the pools."""

    predicate: Predicate
    frame: Frame
    gender: str
    names: Sequence[str]
    pools: Mapping[str, str]
    place: QuadIdentity
    cue_type: str

    def example(
        self,
        tokens_around: Callable[[str], list[str]],
        cell: tuple[str, int],
        *,
        antecedent: int,
        focal: int,
        factors: Mapping[str, str],
    ) -> Example:
        """Build one cell: `tokens_around` an event, its voice and the order of names."""
        voice, order = cell
        language = self.place.language
        event = fill_event(self.frame.texts[voice], self.predicate)
        around = tokens_around(event)
        named_before = [around[: min(map(around.index, ("{A}", "{B}")))].count(slot) for slot in _BY_ORDER]
        order_of_names = ("{A}", "{B}") if voice == "agent_first" else ("{B}", "{A}")
        by_order = dict(zip(_BY_ORDER, order_of_names, strict=True))
        around = [by_order.get(token, token) for token in around]
        tokens = number_slots(fill_pools(around, self.pools, language), 2, language)
        first, second = self.names[order], self.names[1 - order]
        agent, patient = (first, second) if voice == "agent_first" else (second, first)
        mentions = [NounPhrase(name) for name in (agent, patient, *self.names[2:])]
        written = render(tokens, mentions, [pronoun(language, SUBJECT, self.gender, "singular")], language)
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
        return make_example(
            written,
            self.place,
            antecedent=antecedent,
            which=0,
            order=order,
            factors={**own, **factors},
            focal=focal,
            cell=voice,
            event_names=None
            if self.cue_type != SHORT_TEXT
            else [
                (slot, named_before[place]) for place, slot in enumerate((0, 1) if voice == "agent_first" else (1, 0))
            ],
        )


class OctadGenerator:
    """A generator of the octads of one language and type; names and fillers are those of the quads."""

    def __init__(
        self, content: CompositionContent, seed: int, quads: QuadGenerator, cue_type: str = COMPOSITION
    ) -> None:
        self.content, self.quads, self.cue_type = content, quads, cue_type
        self.withheld = WithheldPairs(content, seed)
        self._planner = OctadPlanner(self.withheld)
        self._turns: dict[tuple[str, str], Iterator[Predicate]] = {}
        invented = invented_names(quads.lexicon, seed)
        in_no_training = quads.holdout.invented_for_test  # of no type of cue
        self._invented = {
            "test": in_no_training[::2],
            "dev": in_no_training[1::2],
            # The first fifth holds every name of dev and test, and of the quads' names for training all but the last
            # eight, which serve octads too.
            "train": invented[len(invented) // 5 :],
        }

    def octad(
        self, level: str, plan: SentencePlan | TextPlan, place: QuadIdentity, chance: random.Random
    ) -> list[Example]:
        """Build the cells of a predicate and two states of a level: eight, or four of one voice in L1."""
        predicate = self._next_predicate(level, place.split, chance)
        states = self._planner.states(predicate, level, place.split, chance)
        frames = [self.content.frames[name] for name in predicate.frames]
        with_room = [frame for frame in frames if frame.takes_inside]
        if isinstance(plan, TextPlan):  # no story goes on with "it was Anna whom Emma rescued"
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
        return [
            scene.example(
                partial(plan.tokens, state=state.text, language=place.language),
                (voice, order),
                antecedent=participant,
                focal=2,
                factors={**factors, "cue": state.text},
            )
            for voice, order, state, participant in cells(states, voices)
        ]

    def third_person(self, plan: SentencePlan, place: QuadIdentity, chance: random.Random) -> list[Example]:
        """Build an event in both voices and orders, with a third person as the antecedent in all four."""
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
            "distractor": "none",  # of the three any may be meant
            "cue": third,
        }
        return [
            scene.example(
                partial(plan.tokens_about_third, third=third, language=place.language),
                cell,
                antecedent=2,
                focal=3,
                factors=factors,
            )
            for cell in product(VOICES, range(2))
        ]

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
    """Return a frame with a predicate's forms in it, its participants as candidates' slots."""
    for form, words in predicate.forms.items():
        text = text.replace(f"{{{form}}}", words)
    return text.replace("{agent}", "{A}").replace("{patient}", "{B}")
