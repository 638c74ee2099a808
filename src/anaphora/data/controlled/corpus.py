"""The controlled corpus: English and Chinese quads and octads, generated from the TOML content and a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

from anaphora.base.errors import UserError
from anaphora.data.controlled import lexicon as lexicons
from anaphora.data.controlled import pronouns, splits, templates
from anaphora.data.controlled.lexicon import CONTENT_FOLDER, FOLDERS
from anaphora.data.controlled.quads import QuadGenerator, QuadIdentity
from anaphora.data.controlled.templates import CueTypeContent, Template
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.example import SPLITS, Example
from anaphora.settings.data import ROLE_CUE_TYPES, SET_CUE_TYPES, ControlledCorpus

CATAPHORA_SHARE = 0.1  # of the training items of a type that has cataphoric templates
INVENTED_SHARE = 0.08  # of the training items of a role type
STRATUM_SHARE = 0.1  # of the test items, for each stratum besides the main one
TRAINING_WEIGHTS = {"selection": 3.0, "winograd": 2.0, "voice": 1.5}
"""Parts of the training items of a kind; every other type has 1. These take longest to learn: whole classes of nouns,
and verbs whose reading a later word reverses. Dev and test hold as many items of every type."""
_MAX_DRAWS = 200  # of a quad before the content counts as used up
_SEEDS = {"distractor_only": "filler_only"}
"""The seed word of a stratum where it is not its name but its older one, so that the corpus stays as published."""


def generate(settings: ControlledCorpus, content: Path = CONTENT_FOLDER) -> dict[str, list[Example]]:
    """All examples by split, in an order drawn from the seed that keeps quads together.

    Raises:
        UserError: the content is wrong, or too small for so many different sentences.
    """
    quads: dict[str, list[list[Example]]] = {split: [] for split in SPLITS}
    for language in settings.languages:
        for split, quad in _generate_language(settings, language, content):
            quads[split].append(quad)
    for split in SPLITS:
        splits.generator(settings.seed, "order", split).shuffle(quads[split])
    return {split: [example for quad in quads[split] for example in quad] for split in SPLITS}


def read(settings: ControlledCorpus) -> tuple[dict[str, list[Example]], ReadingReport]:
    """All examples by split, and the report, whose rows are the examples."""
    examples = generate(settings)
    return examples, ReadingReport(rows=sum(map(len, examples.values())))


def files(settings: ControlledCorpus) -> dict[str, Path]:
    """The content files that a corpus with these settings reads, by their place in the content's folder."""
    names = [
        f"{FOLDERS[language]}/{name}.toml"
        for language in settings.languages
        for name in ("lexicon", *SET_CUE_TYPES, *ROLE_CUE_TYPES[language])
    ]
    return {name: CONTENT_FOLDER / name for name in names}


def known_words(settings: ControlledCorpus) -> list[str]:
    """Every word that training sentences in the corpus's languages can hold, sorted."""
    return sorted({word for language in settings.languages for word in words(language)})


def words(language: str, content: Path = CONTENT_FOLDER) -> list[str]:
    """Every word that training sentences can hold, as the content segments them: marks and invented names left out."""
    lexicon = lexicons.load(language, content)
    written = [*lexicon.intro, *lexicon.gap, *lexicon.aside]
    written += [noun.singular for nouns in lexicon.nouns.values() for noun in nouns]
    written += [noun.plural for nouns in lexicon.nouns.values() for noun in nouns]
    written += [noun.singular_determiner for nouns in lexicon.nouns.values() for noun in nouns]
    written += [noun.plural_determiner for nouns in lexicon.nouns.values() for noun in nouns]
    written += [cue for cues in lexicon.predicates.values() for cue in cues]
    written += [name for names in lexicon.names.values() for name in names]
    written += [form for forms in pronouns.PRONOUNS[language].values() for form in forms]
    written += templates.list_tokens(3, language)
    for kind in (*SET_CUE_TYPES, *ROLE_CUE_TYPES[language]):
        cue_type = templates.load(language, kind, content)
        written += [token for template in cue_type.templates if template.split == "train" for token in template.tokens]
        for scenario in cue_type.scenarios:
            for side in (scenario.shared, scenario.first, scenario.second):
                written += [option for slot, options in side.items() if slot != "form" for option in options]
    tokens = {token for phrase in written for token in phrase.split()}
    return sorted(token for token in tokens if token[0] != "{" and any(mark.isalnum() for mark in token))


def _generate_language(settings: ControlledCorpus, language: str, content: Path) -> Iterator[tuple[str, list[Example]]]:
    lexicon = lexicons.load(language, content)
    source = QuadGenerator(
        lexicon, splits.assign_cosets(lexicon, settings.seed, settings.shared_nouns), settings.test_asides
    )
    sets, roles = (
        [templates.load(language, kind, content) for kind in kinds if not settings.types or kind in settings.types]
        for kinds in (SET_CUE_TYPES, ROLE_CUE_TYPES[language])
    )
    texts: set[str] = set()
    for split in SPLITS:
        for draw, contents, others in ((source.set_quad, sets, roles), (source.role_quad, roles, sets)):
            for cue_type in contents:
                for stratum, items in _quotas(settings, split, cue_type, contents, others):
                    type_templates = cue_type.of(split, cataphora=stratum == "cataphora")
                    place = (language, split, stratum)
                    seed_word = _SEEDS.get(stratum, stratum)
                    chance = splits.generator(settings.seed, language, cue_type.type, split, seed_word)
                    for quad in _generate_quads(draw, cue_type, type_templates, place, items, chance, texts):
                        yield split, quad


def _quotas(
    settings: ControlledCorpus,
    split: str,
    content: CueTypeContent,
    alike: Sequence[CueTypeContent],
    others: Sequence[CueTypeContent],
) -> list[tuple[str, int]]:
    """How many items of a type other stratum of a split gets, the main one first.

    Training divides between the two kinds, then among the types of a kind by weight; dev and test have as many items of
    each type.
    """
    is_role = bool(content.scenarios)
    cataphoric = [other for other in (*alike, *others) if other.of(split, cataphora=True)]
    if split == "train":
        parts = sum(TRAINING_WEIGHTS.get(other.type, 1.0) for other in alike)
        share = settings.train_items / 2 if others else settings.train_items
        items = math.ceil(share * TRAINING_WEIGHTS.get(content.type, 1.0) / parts)
        strata = {
            "cataphora": math.ceil(items * CATAPHORA_SHARE) if content in cataphoric else 0,
            "invented": math.ceil(items * INVENTED_SHARE) if is_role else 0,
        }
        main = items - sum(strata.values())
    else:
        items = math.ceil(settings.test_items * STRATUM_SHARE)
        roles = alike if is_role else others
        strata = {"cataphora": math.ceil(items / len(cataphoric)) if content in cataphoric else 0}
        if split == "test" and is_role:
            strata |= {name: math.ceil(items / len(roles)) for name in ("distractor_only", "invented")}
        main = math.ceil(settings.test_items / (len(alike) + len(others)))
    return [("main", main), *((name, count) for name, count in strata.items() if count)]


def _generate_quads(
    draw: Callable[[CueTypeContent, Template, QuadIdentity, random.Random], list[Example]],
    content: CueTypeContent,
    chosen: Sequence[Template],
    where: tuple[str, str, str],
    items: int,
    chance: random.Random,
    texts: set[str],
) -> Iterator[list[Example]]:
    """Quads of one type and stratum until there are `items` items: the templates in turn, no text twice."""
    language, split, stratum = where
    turns = cycle(chance.sample(chosen, len(chosen)))
    count, quads, failures = 0, 0, 0
    while count < items:
        group = f"{language}/{content.type}/{split}/{stratum}/{quads}"
        place = QuadIdentity(language=language, split=split, stratum=stratum, group=group)
        quad = draw(content, next(turns), place, chance)
        written = {example.text for example in quad}
        pronouns = int(quad[0].factors.get("pronouns", "1"))
        if len(written) * pronouns < len(quad) or not texts.isdisjoint(written):
            failures += 1
            if failures > _MAX_DRAWS:
                raise UserError(
                    f"{FOLDERS[language]}/{content.type}.toml: after {count} {split} items ({stratum}) {_MAX_DRAWS} "
                    "draws gave no new sentence; ask for fewer items or write more templates"
                )
            continue
        failures = 0
        texts |= written
        count, quads = count + len(quad), quads + 1
        yield quad
