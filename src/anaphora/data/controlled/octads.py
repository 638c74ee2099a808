"""Octads: groups of eight examples that combine two states, two voices and two orders of the names.

The examples of an octad have the same predicate, such as "rescued". One state, such as "was strong", makes the pronoun
refer to the agent of the predicate, the other to its patient. Pairs of predicate and state have three levels. Those of
level L0 occur in training in both voices. Those of level L1 occur in training in one voice and are tested in the other,
in groups of four examples. Those of level L2 do not occur in training, although both occur there in other pairs.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice, repeat
from typing import NamedTuple

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
THIRD = "third"  # stratum of the cue type `composition` in which the pronoun refers to a third person
EVALUATION_SENTENCES = 48  # number of sentence plans in each stratum of dev and test, used in turn
FULL_STOP = {"en": ".", "zh": "。"}
_BY_ORDER = ("{first}", "{second}")  # slots of a short text for the people whom its event names first and second
LEAD_WEIGHT = 0.5
"""Weight, in the cost by which a state is drawn for an agent, of its uses for agents minus those for patients.

The other term of the cost is the number of its uses with the same predicate. For a patient, the sign is reversed."""
DISTRACTOR_SHARE = 0.15
"""Share of sentences with a third person at each of `DISTRACTOR_POSITIONS`; the other sentences have none."""


class Plan(NamedTuple):
    """Pattern of a sentence or short text: space-separated tokens, some of which are slots such as {event}.

    The other slots are {state} (of a person), the pronoun {he}, the names {first} and {second}, {x} for a third person,
    and those for optional phrases (see `QuadGenerator.draw_pools`).
    """

    name: str  # identifier of the chosen parts
    text: str
    distractor: str  # position of the third person, or "none"
    inside: str = ""  # text with the distractor, if it is inside the event
    prefix: str = ""  # text before the event, without the distractor

    def tokens(self, event: str) -> list[str]:
        """Fill the slot {event} with the text `event`, and return the tokens; other slots stay unfilled."""
        return self.text.replace("{event}", event.replace("{inside}", self.inside)).split()


def sentence_plans(parts: Mapping[str, Lines], split: str, stop: str, chance: random.Random) -> Iterator[Plan]:
    """Yield an endless sequence of random sentence patterns that end with the punctuation mark `stop`.

    For each part of a sentence (prefix, event, suffix), a template is drawn from a list, then one of its expansions.
    Some sentences mention another person, the distractor, in words that replace the prefix ("before") or the suffix
    ("after"), fill the slot {inside} of the event, or follow the event ("between").
    """
    while True:
        drawn = chance.random()
        share = int(drawn / DISTRACTOR_SHARE)
        distractor = DISTRACTOR_POSITIONS[share] if share < len(DISTRACTOR_POSITIONS) else "none"
        places = {name: _draw_line(lines, chance) for name, lines in parts.items()}
        text = {name: parts[name][line][number] for name, (line, number) in places.items()}
        own = text.get(distractor, "")
        replaced = {"before": "prefix", "after": "suffix"}.get(distractor)
        used = [name for name in ("prefix", "link", "suffix", distractor) if name in places and name != replaced]
        prefix, suffix = ("" if name == replaced else text[name] for name in ("prefix", "suffix"))
        before, between, after = (own if distractor == place else "" for place in ("before", "between", "after"))
        yield Plan(
            name="/".join((split, distractor, *(_numbered(name, places[name]) for name in used))),
            text=f"{before} {prefix} {{event}} {between} {text['link']} {{he}} {{state}} {suffix} {after} {stop}",
            distractor=distractor,
            inside=own if distractor == "inside" else "",
            prefix=prefix,
        )


def text_plans(lines: Lines, split: str, chance: random.Random) -> Iterator[Plan]:
    """Yield an endless sequence of random patterns of short texts; all `lines` are equally likely."""
    while True:
        line, number = _draw_line(lines, chance)
        text = lines[line][number]
        distractor = "around" if "{x}" in text else "none"  # the third person is outside the event
        yield Plan(f"{split}/{_numbered('text', (line, number))}", text, distractor)


def _draw_line(lines: Lines, chance: random.Random) -> tuple[int, int]:
    """Draw one of `lines` and one of its alternative texts; return the index of the line and that of the text."""
    line = chance.randrange(len(lines))
    return line, chance.randrange(len(lines[line]))


def _numbered(name: str, place: tuple[int, int]) -> str:
    line, text = place
    return f"{name}{line}.{text}" if text else f"{name}{line}"


class _Scene(NamedTuple):
    """Predicate, people and optional insertions, such as "yesterday", shared by the examples of an octad."""

    predicate: Predicate
    frame: Frame
    gender: str
    names: Sequence[str]
    pools: Mapping[str, str]
    place: QuadIdentity
    cue_type: str

    def cells(
        self, plan: Plan, voice: str, *, cues: Mapping[int, str], focal: int, factors: Mapping[str, str]
    ) -> list[Example]:
        """Build the examples of one voice: two orders of the names, each with every cue (deciding words).

        Args:
            cues: words of each cue, keyed by the antecedent that the cue picks: 0 for the agent, 1 for the patient, 2
                for the third person.
            focal: number of people among whom the cue decides: 2 for agent and patient, 3 for all.
        """
        language = self.place.language
        around = plan.tokens(fill_event(self.frame.texts[voice], self.predicate))
        slots = (0, 1) if voice == "agent_first" else (1, 0)
        event_names = None
        if self.cue_type == SHORT_TEXT:
            before_event = around[: min(map(around.index, ("{A}", "{B}")))]
            event_names = [(slot, before_event.count(name)) for slot, name in zip(slots, _BY_ORDER, strict=True)]
            order_of_names = ("{A}", "{B}") if voice == "agent_first" else ("{B}", "{A}")
            by_order = dict(zip(_BY_ORDER, order_of_names, strict=True))
            around = [by_order.get(token, token) for token in around]
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
            **factors,
        }
        sentence = Sentence(number_slots(fill_pools(around, self.pools, language), 2, language), language)
        pronouns = [pronoun(language, SUBJECT, self.gender, "singular")]
        examples = []
        for order in range(2):
            in_event = (self.names[order], self.names[1 - order])
            mentions = [NounPhrase(name) for name in (in_event[slots[0]], in_event[slots[1]], *self.names[2:])]
            for antecedent, cue in cues.items():
                examples.append(
                    make_example(
                        sentence.render(mentions, pronouns, cue.split()),
                        self.place,
                        antecedent=antecedent,
                        which=0,
                        order=order,
                        factors={**own, "cue": cue},
                        focal=focal,
                        cell=voice,
                        event_names=event_names,
                    )
                )
        return examples


class OctadGenerator:
    """Generator of octads in one language.

    An octad has eight examples with one predicate, for all combinations of two states, two voices and two name orders.

    Args:
        quads: generator of the quads, which draws the names and the optional insertions.
        cue_type: "composition" for single sentences, or "short_text".
    """

    def __init__(self, language: str, seed: int, quads: QuadGenerator, cue_type: str = COMPOSITION) -> None:
        self.content, self.quads, self.cue_type = compositions.load(language), quads, cue_type
        self.texts = compositions.load_texts(language) if cue_type == SHORT_TEXT else None
        self.withheld = WithheldPairs(self.content, seed)
        # By split, level and voices: the uses of each state for agents minus those for patients.
        self._lead: defaultdict[tuple[str, str, tuple[str, ...]], Counter[str]] = defaultdict(Counter)
        self._pairs: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by split and predicate
        self._turns: dict[tuple[str, str], Iterator[Predicate]] = {}
        invented = invented_names(quads.lexicon, seed)
        held_out = quads.holdout.invented_for_test
        self._invented = {
            "test": held_out[::2],
            "dev": held_out[1::2],
            # The first fifth has the invented names of dev and test, and all but eight of those of quads in training;
            # octads also use these eight.
            "train": invented[len(invented) // 5 :],
        }

    def draw_from(self, split: str, stratum: str, chance: random.Random) -> Callable[[QuadIdentity], list[Example]]:
        """Return a function that draws an octad of one stratum (part of a split, such as "main") at each call.

        In training, each call draws a new random sentence for the octad. In dev and test, `EVALUATION_SENTENCES`
        sentences are drawn once, and the calls use them in turn.
        """
        if self.texts is not None:
            plans = text_plans(self.texts[split], split, chance)
        else:
            plans = sentence_plans(self.content.parts[split], split, FULL_STOP[self.content.language], chance)
        if split != "train":
            plans = cycle(list(islice(plans, EVALUATION_SENTENCES)))
        build = self._third_person if stratum == THIRD else self._octad
        return lambda place: build(next(plans), place, chance)

    def _octad(self, plan: Plan, place: QuadIdentity, chance: random.Random) -> list[Example]:
        """Build an octad: the eight examples of a predicate with two states.

        The level says in how many voices training combines the predicate with the states: in both (L0), in one (L1) or
        in none (L2). It is `place.stratum` if this is a level, otherwise L0. At level L1, only the four examples in
        one voice are built.
        """
        level = place.stratum if place.stratum in LEVELS else "L0"
        predicate = self._next_predicate(level, place.split, chance)
        states = self._states(predicate, level, place.split, chance)
        frames = [self.content.frames[name] for name in predicate.frames]
        with_room = [frame for frame in frames if frame.takes_inside]
        if self.texts is not None:  # cleft sentences, which have no such slot, do not fit into a story
            frames = with_room or frames
        elif plan.distractor == "inside":
            if with_room:
                frames = with_room
            else:
                plan = plan._replace(inside="", distractor="none")
        scene = self._scene(predicate, frames, plan.distractor != "none", place, chance)
        voices = self.withheld.voices(predicate, level, place.split)
        factors = {
            "template": f"{place.language}/{self.cue_type}/{plan.name}",
            "level": level,
            "distractor": plan.distractor,
            "voices": str(len(voices)),
        }
        cues = {participant: state.text for participant, state in enumerate(states)}
        return [
            example for voice in voices for example in scene.cells(plan, voice, cues=cues, focal=2, factors=factors)
        ]

    def _third_person(self, plan: Plan, place: QuadIdentity, chance: random.Random) -> list[Example]:
        """Build the four examples of an event in both voices and orders of names, with a third person as antecedent."""
        predicate = self._next_predicate(place.stratum, place.split, chance)
        frames = [self.content.frames[name] for name in predicate.frames]
        scene = self._scene(predicate, frames, True, place, chance)
        lines = self.content.parts[place.split]["third"]
        line, number = _draw_line(lines, chance)
        third = lines[line][number]
        factors = {
            "template": f"{place.language}/{COMPOSITION}/{place.split}/{_numbered('third', (line, number))}",
            "distractor": "none",  # any of the three people may be the antecedent
        }
        around = Plan("", f"{plan.prefix} {{event}} {third} {FULL_STOP[place.language]}", "none")
        return [
            example
            for voice in VOICES
            for example in scene.cells(around, voice, cues={2: third}, focal=3, factors=factors)
        ]

    def _states(self, predicate: Predicate, level: str, split: str, chance: random.Random) -> list[State]:
        """Draw a state for which the pronoun refers to the agent, and one for which it refers to the patient.

        Only pairs of predicate and state with the given level are drawn. They are about equally frequent, and over all
        predicates, each state describes agents about as often as patients. Thus no two of predicate, state and voice
        predict the antecedent.
        """
        chosen = []
        lead = self._lead[split, level, self.withheld.voices(predicate, level, split)]
        shown = self._pairs[split, predicate.name]
        for participant, sign in zip(PARTICIPANTS, (1, -1), strict=True):
            states = self.withheld.states(predicate, participant, level)
            weight = LEAD_WEIGHT * sign
            texts = [state.text for state in states]
            uses, leads = map(shown.get, texts, repeat(0)), map(lead.get, texts, repeat(0))
            costs = [(used + weight * ahead, chance.random()) for used, ahead in zip(uses, leads, strict=True)]
            state = states[costs.index(min(costs))]
            lead[state.text] += sign
            shown[state.text] += 1
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
            else self.quads.role_names(self.cue_type, gender, place.split)
        )
        names = self.quads.draw_names(people, people if has_third else [], place.split, chance)
        pools = self.quads.draw_pools(place.split, chance)
        return _Scene(predicate, frame, gender, names, pools, place, self.cue_type)

    def _next_predicate(self, level: str, split: str, chance: random.Random) -> Predicate:
        if (level, split) not in self._turns:
            predicates = self.withheld.predicates(level, split)
            self._turns[level, split] = cycle(chance.sample(predicates, len(predicates)))
        return next(self._turns[level, split])


def fill_event(text: str, predicate: Predicate) -> str:
    """Insert the forms of a predicate into an event pattern; rename {agent} to {A} and {patient} to {B}."""
    for form, words in predicate.forms.items():
        text = text.replace(f"{{{form}}}", words)
    return text.replace("{agent}", "{A}").replace("{patient}", "{B}")
