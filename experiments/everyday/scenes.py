"""Quads of everyday sentences: two clauses about a scene (readings), in two orders of its participants.

A reading decides to which participant its pronoun refers; a wording is a description of the scene before it. In the
stratum `everyday`, dev and test have nouns that are new to a scene, in new frames, with the wordings and readings of
training. In `everyday_reworded`, the wordings and readings are new as well: for most scenes, one wording of each order
and one reading for each participant are held out from training.

Most of the nouns that one scene holds out occur in other scenes. Each scene holds out nouns independently, so a noun
that all scenes of its class hold out occurs in no training sentence. Each word of a held-out wording or reading occurs
in at least two other phrases, which may be nouns or phrases of the same scene. README.md has the counts.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from anaphora.data.controlled.lexicon import COSETS, PRONOUN_FORMS, pronoun
from anaphora.data.controlled.quads import QuadGenerator, QuadIdentity, make_example, number_slots
from anaphora.data.controlled.rendering import NounPhrase, Sentence
from anaphora.data.controlled.splits import generator
from anaphora.data.controlled.templates import fill_pools
from anaphora.data.example import Example
from experiments.everyday.content import AGREEMENT, NAME, Agreement, EverydayContent, EverydayNoun, EverydayScene

EVERYDAY = "everyday"
"""Cue type of the items, and stratum of scenes in the words of training."""
REWORDED = "everyday_reworded"
"""Stratum of scenes whose descriptions (wordings) and disambiguating clauses (readings) are held out from training."""
NAMES_OF = "winograd"
"""Cue type whose names the scenes use."""
LEAST_HELD_OUT = 2
"""Minimum number of nouns of a class that a scene holds out; smaller classes are used in every split."""
PLURAL_SHARE = 0.3
"""Share of plural quads for a scene whose participants can have either number."""
_LEAST_SHOWN = 2
"""Minimum number of other phrases with each word of a held-out text, and of wordings that a scene keeps.

A phrase is a noun, a frame of the training split, or a training text of any scene.
"""
_DETERMINERS = {
    ("en", "singular"): ("the", "the", "the", "the", "a", "this", "that", "our"),
    ("en", "plural"): ("the", "the", "the", "these", "those", "our", "some", "two"),
    ("zh", "singular"): ("", "", "", "那", "那", "这", "这", "一"),
    ("zh", "plural"): ("", "", "", "那些", "这些"),
}
"""Determiners, drawn with equal probability; those of the Chinese singular take the noun's classifier."""
_VOWELS = frozenset("aeiou")


def determiners(language: str) -> list[str]:
    """Return all words that may precede a noun, without classifiers."""
    written = {word for (spoken, _), options in _DETERMINERS.items() if spoken == language for word in options}
    return sorted((written | ({"an"} if language == "en" else set())) - {""})


class EverydayGenerator:
    """Generator of the everyday quads of one language, with the names and fillers of the built-in corpus."""

    def __init__(self, content: EverydayContent, seed: int, quads: QuadGenerator) -> None:
        self.content, self.seed, self.quads = content, seed, quads
        self._shown, self._withheld = _divided(content, seed)

    def scenes(self, split: str, stratum: str) -> list[EverydayScene]:
        """Return the scenes of a split and stratum, each with the texts allowed in this split."""
        if stratum != REWORDED:
            return self._shown
        return self._withheld[("dev", "test").index(split) :: 2]

    def quad(self, scene: EverydayScene, frame: int, place: QuadIdentity, chance: random.Random) -> list[Example]:
        """Return the quad of two clauses (readings) and two orders of the participants, in one frame of the split."""
        agreement = self._agreement(scene, chance)
        mentions = self._mentions(scene, agreement, place.split, chance)
        wordings = (chance.choice(scene.forward), chance.choice(scene.backward or scene.forward))
        if not scene.backward:
            wordings = (wordings[0], wordings[0])
        link = chance.choice(scene.link)
        readings = [chance.choice(options) for options in scene.readings]
        pools = self.quads.draw_pools(place.split, chance)
        factors = {
            "kind": "role",
            "type": EVERYDAY,
            "template": f"{place.language}/{EVERYDAY}/{place.split}/{frame}",
            "stratum": place.stratum,
            "scenario": scene.name,
            "gender": agreement.gender,
            "number": agreement.number,
        }
        examples = []
        for meant, reading in enumerate(readings):
            for order, wording in enumerate(wordings):
                clause = f"{wording} {link} {reading}"
                tokens = self.content.frames[place.split][frame].replace("{clause}", clause).split()
                form = next(token[1:-1] for token in tokens if token[0] == "{" and token[1:-1] in PRONOUN_FORMS)
                tokens = number_slots(
                    fill_pools(_agreeing(tokens, agreement), pools, place.language), 2, place.language
                )
                exchanged = order == 1 and not scene.backward
                written = Sentence(tokens, place.language).render(
                    mentions[::-1] if exchanged else mentions,
                    [pronoun(place.language, form, agreement.gender, agreement.number)],
                )
                examples.append(
                    make_example(
                        written,
                        place,
                        antecedent=meant,
                        which=0,
                        order=order,
                        factors={**factors, "cue": _words(reading)},
                    )
                )
        return examples

    def nouns(self, scene: EverydayScene, kind: str, gender: str, split: str) -> list[EverydayNoun]:
        """Return the nouns of a class for a scene's sentences in a split."""
        ordinary: list[EverydayNoun] = []
        shuffled = list(self.content.nouns.get(kind, ()))
        if kind == NAME:
            names = self.quads.holdout.role_names(NAMES_OF, gender, split)
            ordinary = [EverydayNoun(name, "") for name in names]
            shuffled = [EverydayNoun(name, "") for name in self.content.names[gender]]
        if len(shuffled) < LEAST_HELD_OUT * COSETS:
            return [*ordinary, *shuffled]
        generator(self.seed, self.content.language, EVERYDAY, scene.name, kind).shuffle(shuffled)
        held_out = {"test": (0,), "dev": (1,)}.get(split, range(2, COSETS))
        return [*ordinary, *(noun for coset in held_out for noun in shuffled[coset::COSETS])]

    def _agreement(self, scene: EverydayScene, chance: random.Random) -> Agreement:
        plural = [each for each in scene.agreements if each.number == "plural"]
        singular = [each for each in scene.agreements if each.number == "singular"]
        if plural and (not singular or chance.random() < PLURAL_SHARE):
            return chance.choice(plural)
        return chance.choice(singular)

    def _mentions(
        self, scene: EverydayScene, agreement: Agreement, split: str, chance: random.Random
    ) -> list[NounPhrase]:
        """Draw two different noun phrases for {A} and {B}."""
        chosen: list[NounPhrase] = []
        for participant in range(2):
            free = {}
            for kind in scene.fitting(participant, agreement):
                nouns = self.nouns(scene, kind, agreement.gender, split)
                free[kind] = [noun for noun in nouns if self._head(noun, agreement) not in _heads(chosen)]
            kind = chance.choice([kind for kind, nouns in free.items() if nouns])
            chosen.append(self._mention(chance.choice(free[kind]), kind, agreement, chance))
        return chosen

    def _head(self, noun: EverydayNoun, agreement: Agreement) -> str:
        is_plural = self.content.language == "en" and agreement.number == "plural"
        return noun.plural_or_classifier if is_plural else noun.word

    def _mention(self, noun: EverydayNoun, kind: str, agreement: Agreement, chance: random.Random) -> NounPhrase:
        language = self.content.language
        head = self._head(noun, agreement)
        if kind == NAME:
            return NounPhrase(head)
        determiner = chance.choice(_DETERMINERS[language, agreement.number])
        if language == "en" and determiner == "a" and head[0] in _VOWELS:
            determiner = "an"
        if language == "zh" and agreement.number == "singular":
            classifier = noun.plural_or_classifier
            determiner = f"{determiner} {classifier}" if determiner and classifier else ""
        return NounPhrase(head, determiner)


def _heads(mentions: Sequence[NounPhrase]) -> set[str]:
    return {mention.head for mention in mentions}


def _agreeing(tokens: Sequence[str], agreement: Agreement) -> list[str]:
    """Fill verb slots with the forms that agree with the number (singular or plural) of the participants."""
    plural = agreement.number == "plural"
    return [
        AGREEMENT[token[1:-1]][plural] if token[1:-1] in AGREEMENT and token[0] == "{" else token for token in tokens
    ]


def _words(reading: str) -> str:
    """Return a disambiguating clause (reading) without its slots."""
    return " ".join(word for word in reading.split() if word[0] != "{")


def _divided(content: EverydayContent, seed: int) -> tuple[list[EverydayScene], list[EverydayScene]]:
    """Return all scenes with their training texts, and those that hold out texts for evaluation, with only these."""
    chance = generator(seed, content.language, EVERYDAY, "withheld")
    phrases = Counter(word for phrase in content.training_phrases() for word in set(phrase.split()))
    shown, withheld = [], []
    for scene in chance.sample(content.scenes, len(content.scenes)):
        kept, spared = [], []
        left = phrases.copy()
        for texts in (scene.forward, scene.backward, *scene.readings):
            spare = _dispensable(chance.sample(texts, len(texts)), left)
            kept.append(tuple(text for text in texts if text not in spare))
            spared.append(spare)
        if all(spared[number] or not texts for number, texts in enumerate(kept)):
            withheld.append(_with_texts(scene, spared))
            shown.append(_with_texts(scene, kept))
            phrases = left
        else:
            shown.append(scene)
    return shown, withheld


def _dispensable(texts: Sequence[str], phrases: Counter[str]) -> tuple[str, ...]:
    """Return the first text whose words all occur in enough other phrases, and subtract it from `phrases`.

    Args:
        texts: wordings of one order, or readings of one participant.
        phrases: number of phrases with each word, including nouns and the scene's own texts.

    Returns:
        A tuple of this text; empty if the scene needs all of its texts.
    """
    for text in texts if len(texts) > _LEAST_SHOWN else ():
        words = set(text.split())
        if all(phrases[word] > _LEAST_SHOWN for word in words):
            phrases.subtract(words)
            return (text,)
    return ()


def _with_texts(scene: EverydayScene, texts: Sequence[tuple[str, ...]]) -> EverydayScene:
    forward, backward, first, second = texts
    return replace(scene, forward=forward, backward=backward, readings=(first, second))
