"""Corpus with everyday scenes, registered as data=everyday."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import partial
from itertools import cycle
from pathlib import Path

import anaphora
from anaphora.data.controlled import corpus as controlled
from anaphora.data.controlled.quads import QuadGenerator
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.example import Example
from anaphora.data.records import decoded
from anaphora.settings.cue_types import SHORT_TEXT
from anaphora.settings.data import SPLITS
from experiments.everyday import content, scenes
from experiments.everyday.scenes import EVERYDAY, REWORDED, EverydayGenerator
from experiments.everyday.settings import EverydayCorpus

SHARE = 1.0  # number of everyday sentences added to the training items, as a share of these


def read(settings: EverydayCorpus) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return all examples by split, and a report that counts them as rows."""
    examples = generate(settings)
    return examples, ReadingReport(rows=sum(map(len, examples.values())))


def generate(settings: EverydayCorpus) -> dict[str, list[Example]]:
    """Return all examples by split, in random order with quads kept together.

    Raises:
        UserError: the content is too small for the requested number of different sentences.
    """
    tables = controlled.shuffled_tables(_groups(settings), settings.seed)
    return {split: decoded(table) for split, table in tables.items()}


def _groups(settings: EverydayCorpus) -> Iterator[tuple[str, list[Example]]]:
    for language in settings.languages:
        quads = controlled.quad_generator(settings, language)
        texts: set[str] = set()
        yield from controlled.generate_language(settings, quads, texts)
        # Last, since the words drawn for a quad depend on the quads before it.
        yield from _scene_quads(settings, quads, texts)


def _scene_quads(
    settings: EverydayCorpus, quads: QuadGenerator, texts: set[str]
) -> Iterator[tuple[str, list[Example]]]:
    language = quads.lexicon.language
    others = len(set(settings.cue_types(language)) - {SHORT_TEXT})
    generator = EverydayGenerator(content.load(language), settings.seed, quads)
    for split in SPLITS:
        items = controlled.additional_items(settings, split, others, SHARE)
        for stratum in (EVERYDAY,) if split == "train" else (EVERYDAY, REWORDED):
            where = (language, EVERYDAY, split, stratum)
            yield from controlled.generate_groups(partial(_draw, generator), settings.seed, where, items, texts)


def _draw(generator: EverydayGenerator, split: str, stratum: str, chance: random.Random) -> controlled.Draw:
    """Return a function that draws quads (groups of four sentences) of a split, from each scene in a random frame."""
    of_stratum = generator.scenes(split, stratum)
    in_turn = cycle(chance.sample(of_stratum, len(of_stratum)))
    frames = len(generator.content.frames[split])
    return lambda place: generator.quad(next(in_turn), chance.randrange(frames), place, chance)


def files(settings: EverydayCorpus) -> dict[str, Path]:
    """Return the files that determine the corpus: its content, and the code that draws the scenes."""
    own = [*(content.path_of(language) for language in settings.languages), Path(content.__file__)]
    return {**controlled.files(settings), **{path.name: path for path in (*own, Path(scenes.__file__))}}


def known_words(settings: EverydayCorpus) -> list[str]:
    """Return the sorted words that a tokenizer should not split."""
    phrases = controlled.known_words(settings)
    for language in settings.languages:
        phrases += [*content.load(language).training_phrases(), *scenes.determiners(language)]
    return controlled.words_of(phrases)


def register() -> None:
    """Register the corpus in this process, so that runs on it can be trained and opened."""
    anaphora.register(slot="data", name="everyday", settings=EverydayCorpus, build=read)
