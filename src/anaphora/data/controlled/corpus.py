"""The controlled corpus: English and Chinese blocks, generated from the TOML content and a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

from anaphora.data.controlled import lexicon as lexicons
from anaphora.data.controlled import splits, templates
from anaphora.data.controlled.lexicon import CONTENT, FOLDERS
from anaphora.data.controlled.quads import Blocks, Place
from anaphora.data.controlled.templates import Content, Template
from anaphora.data.example import SPLITS, Example
from anaphora.data.settings import ROLE_TYPES, SET_TYPES, Controlled
from anaphora.errors import UserError

CATAPHORA_SHARE = 0.1  # of the training items of a type that has cataphoric templates
INVENTED_SHARE = 0.08  # of the training items of a role type
STRATUM_SHARE = 0.1  # of the test items, for each stratum besides the main one
TRAINING_WEIGHTS = {"selection": 3.0, "winograd": 2.0, "voice": 1.5}
"""Parts of the training items of a kind; every other type has 1. These take longest to learn: whole classes of nouns,
and verbs whose reading a later word turns round. Dev and test ask every type equally often."""
_DRAWS = 200  # of a block before the content counts as used up


def generate(settings: Controlled, content: Path = CONTENT) -> dict[str, list[Example]]:
    """All examples by split, in an order drawn from the seed that keeps blocks together.

    Raises:
        UserError: the content is wrong, or too small for so many different sentences.
    """
    blocks: dict[str, list[list[Example]]] = {split: [] for split in SPLITS}
    for language in settings.languages:
        for split, block in _language(settings, language, content):
            blocks[split].append(block)
    for split in SPLITS:
        splits.generator(settings.seed, "order", split).shuffle(blocks[split])
    return {split: [example for block in blocks[split] for example in block] for split in SPLITS}


def files(settings: Controlled, content: Path = CONTENT) -> list[Path]:
    """The content files that a corpus with these settings reads."""
    return [
        content / FOLDERS[language] / f"{name}.toml"
        for language in settings.languages
        for name in ("lexicon", *SET_TYPES, *ROLE_TYPES[language])
    ]


def words(language: str, content: Path = CONTENT) -> list[str]:
    """Every word that training sentences can hold, as the content segments them: marks and invented names left out."""
    lexicon = lexicons.load(language, content)
    written = [*lexicon.intro, *lexicon.gap, *lexicon.aside]
    written += [noun.singular for nouns in lexicon.nouns.values() for noun in nouns]
    written += [noun.plural for nouns in lexicon.nouns.values() for noun in nouns]
    written += [noun.singular_determiner for nouns in lexicon.nouns.values() for noun in nouns]
    written += [noun.plural_determiner for nouns in lexicon.nouns.values() for noun in nouns]
    written += [cue for cues in lexicon.predicates.values() for cue in cues]
    written += [name for names in lexicon.names.values() for name in names]
    written += [form for forms in templates.PRONOUNS[language].values() for form in forms]
    written += templates.listing(3, language)
    for kind in (*SET_TYPES, *ROLE_TYPES[language]):
        found = templates.load(language, kind, content)
        written += [token for template in found.templates if template.split == "train" for token in template.tokens]
        for scenario in found.scenarios:
            for side in (scenario.shared, scenario.first, scenario.second):
                written += [option for slot, options in side.items() if slot != "form" for option in options]
    tokens = {token for each in written for token in each.split()}
    return sorted(token for token in tokens if token[0] != "{" and any(mark.isalnum() for mark in token))


def _language(settings: Controlled, language: str, content: Path) -> Iterator[tuple[str, list[Example]]]:
    lexicon = lexicons.load(language, content)
    source = Blocks(lexicon, splits.deal(lexicon, settings.seed, settings.shared_nouns), settings.test_asides)
    sets, roles = (
        [templates.load(language, kind, content) for kind in kinds if not settings.types or kind in settings.types]
        for kinds in (SET_TYPES, ROLE_TYPES[language])
    )
    texts: set[str] = set()
    for split in SPLITS:
        for draw, contents, others in ((source.set_block, sets, roles), (source.role_block, roles, sets)):
            for found in contents:
                for stratum, items in _quotas(settings, split, found, contents, others):
                    chosen = found.of(split, cataphora=stratum == "cataphora")
                    place = (language, split, stratum)
                    chance = splits.generator(settings.seed, language, found.type, split, stratum)
                    for block in _fill(draw, found, chosen, place, items, chance, texts):
                        yield split, block


def _quotas(
    settings: Controlled, split: str, content: Content, alike: Sequence[Content], others: Sequence[Content]
) -> list[tuple[str, int]]:
    """How many items of a type each stratum of a split gets, the main one first.

    Training divides between the two kinds, then among the types of a kind by weight; dev and test ask all types alike.
    """
    is_role = bool(content.scenarios)
    cataphoric = [each for each in (*alike, *others) if each.of(split, cataphora=True)]
    if split == "train":
        parts = sum(TRAINING_WEIGHTS.get(each.type, 1.0) for each in alike)
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
            strata |= {name: math.ceil(items / len(roles)) for name in ("filler_only", "invented")}
        main = math.ceil(settings.test_items / (len(alike) + len(others)))
    return [("main", main), *((name, count) for name, count in strata.items() if count)]


def _fill(
    draw: Callable[[Content, Template, Place, random.Random], list[Example]],
    content: Content,
    chosen: Sequence[Template],
    where: tuple[str, str, str],
    items: int,
    chance: random.Random,
    texts: set[str],
) -> Iterator[list[Example]]:
    """Blocks of one type and stratum until there are `items` items: the templates in turn, no text twice."""
    language, split, stratum = where
    turns = cycle(chance.sample(chosen, len(chosen)))
    made, blocks, failures = 0, 0, 0
    while made < items:
        group = f"{language}/{content.type}/{split}/{stratum}/{blocks}"
        place = Place(language=language, split=split, stratum=stratum, group=group)
        block = draw(content, next(turns), place, chance)
        written = {example.text for example in block}
        pronouns = int(block[0].factors.get("pronouns", "1"))
        if len(written) * pronouns < len(block) or not texts.isdisjoint(written):
            failures += 1
            if failures > _DRAWS:
                raise UserError(
                    f"{FOLDERS[language]}/{content.type}.toml: after {made} {split} items ({stratum}) {_DRAWS} draws"
                    " gave no new sentence; ask for fewer items or write more templates"
                )
            continue
        failures = 0
        texts |= written
        made, blocks = made + len(block), blocks + 1
        yield block
