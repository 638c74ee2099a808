"""The controlled corpus: English and Chinese quads and octads, generated from the TOML content and a seed."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import TypeVar

from anaphora.base.errors import UserError
from anaphora.data.controlled import compositions, pronouns, splits, templates
from anaphora.data.controlled import lexicon as lexicons
from anaphora.data.controlled.compositions import Lines
from anaphora.data.controlled.lexicon import CONTENT_FOLDER, FOLDERS
from anaphora.data.controlled.octads import LEVELS, OctadGenerator, sentence_plans, text_plans
from anaphora.data.controlled.quads import QuadGenerator, QuadIdentity
from anaphora.data.controlled.templates import CueTypeContent, Template
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.example import Example
from anaphora.settings.cue_types import BINDING, COMPOSITION, ROLE_CUE_TYPES, SET_CUE_TYPES, SHORT_TEXT, role_cue_types
from anaphora.settings.data import SPLITS, ControlledCorpus

CATAPHORA_SHARE = 0.1  # of the training items of a type that has cataphoric templates
INVENTED_SHARE = 0.08  # of the training items of a role type
INVENTED_IN_COMPOSITIONS = 0.25  # of the training items of compositions
STRATUM_SHARE = 0.1  # of the test items, for each stratum besides the main one
SETS_BESIDE_COMPOSITIONS = 0.25  # of the training items: set cues where there are compositions, else a half
THIRD = "third"  # a stratum of compositions: a third person is meant
THIRD_SHARE = 0.1  # of the training items of compositions
L1_SHARE = 0.2  # of the training items of compositions, or short texts: pairs that are shown in one voice
SHORT_TEXT_SHARE = 0.5  # of the training items: short texts that come on top of them
EVALUATION_SENTENCES = 48  # around the events of dev, and of test
TRAINING_WEIGHTS = {"selection": 3.0, "winograd": 2.0, "voice": 1.5, COMPOSITION: 10.0}
"""Parts of the training items of a kind; every other type has 1. These take longest to learn: whole classes of nouns,
and verbs whose reading a later word reverses. Dev and test hold as many items of every type."""
_MAX_DRAWS = 200  # of a quad before the content counts as used up
_SEEDS = {"distractor_only": "filler_only"}
"""The seed word of a stratum where it is not its name but its older one, so that the corpus stays as published."""


def generate(settings: ControlledCorpus, content: Path = CONTENT_FOLDER) -> dict[str, list[Example]]:
    """Generate all examples by split, in a seeded order that keeps quads together.

    Raises:
        UserError: the content is wrong, or too small for that number of different sentences.
    """
    groups: dict[str, list[list[Example]]] = {split: [] for split in SPLITS}
    for language in settings.languages:
        for split, group in generate_language(settings, quad_generator(settings, language, content), content, set()):
            groups[split].append(group)
    return in_drawn_order(groups, settings.seed)


def in_drawn_order(groups: Mapping[str, Sequence[Sequence[Example]]], seed: int) -> dict[str, list[Example]]:
    """Return the examples of each split; the seed decides the order of the groups."""
    shuffled = {split: list(of_split) for split, of_split in groups.items()}
    for split, of_split in shuffled.items():
        splits.generator(seed, "order", split).shuffle(of_split)
    return {split: [example for group in of_split for example in group] for split, of_split in shuffled.items()}


def read(settings: ControlledCorpus) -> tuple[dict[str, list[Example]], ReadingReport]:
    """Return all examples by split, and the report, whose rows are the examples."""
    examples = generate(settings)
    return examples, ReadingReport(rows=sum(map(len, examples.values())))


def files(settings: ControlledCorpus) -> dict[str, Path]:
    """Return the content files that a corpus with these settings reads, by path relative to the content folder."""
    on_request = [SHORT_TEXT] if SHORT_TEXT in settings.types else []
    names = [
        f"{FOLDERS[language]}/{name}.toml"
        for language in settings.languages
        for name in ("lexicon", *SET_CUE_TYPES, *role_cue_types(language), COMPOSITION, *on_request)
    ]
    return {name: CONTENT_FOLDER / name for name in names}


def known_words(settings: ControlledCorpus) -> list[str]:
    """Return the words that `words` lists in the corpus's languages, sorted."""
    return sorted({word for language in settings.languages for word in words(language, settings.types)})


def words(language: str, types: Collection[str] = (), content: Path = CONTENT_FOLDER) -> list[str]:
    """Return every word of possible training sentences, segmented as in the content, without marks or invented names.

    All nouns and names are among them, those too that a seed keeps for dev and test, which no training sentence may
    have.

    Of the types of cue that are there when they are named, those of `types` count. Beside compositions no other type
    counts, and the syllables of invented names are words, which any such name is put together from.
    """
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
    kinds: Sequence[str] = (*SET_CUE_TYPES, *ROLE_CUE_TYPES[language], *({BINDING} & set(types)))
    if {COMPOSITION, SHORT_TEXT} & set(types):
        written += [*lexicon.syllables, *compositions.load(language, content).training_phrases()]
        kinds = [kind for kind in (*SET_CUE_TYPES, *role_cue_types(language)) if kind in types]
    if SHORT_TEXT in types:
        written += [text for line in compositions.load_texts(language, content)["train"] for text in line]
    for kind in kinds:
        cue_type = templates.load(language, kind, content)
        written += [token for template in cue_type.templates if template.split == "train" for token in template.tokens]
        for scenario in cue_type.scenarios:
            for side in (scenario.shared, scenario.first, scenario.second):
                written += [option for slot, options in side.items() if slot != "form" for option in options]
    return words_of(written)


def words_of(phrases: Iterable[str]) -> list[str]:
    """Return the words of phrases, sorted; slots and marks are left out."""
    tokens = {token for phrase in phrases for token in phrase.split()}
    return sorted(token for token in tokens if token[0] != "{" and any(mark.isalnum() for mark in token))


def quad_generator(settings: ControlledCorpus, language: str, content: Path) -> QuadGenerator:
    """Return the generator of a language's quads, with its words divided among the splits."""
    lexicon = lexicons.load(language, content)
    holdout = splits.assign_cosets(lexicon, settings.seed, settings.shared_nouns)
    return QuadGenerator(lexicon, holdout, settings.test_asides)


def generate_language(
    settings: ControlledCorpus, quads: QuadGenerator, content: Path, texts: set[str]
) -> Iterator[tuple[str, list[Example]]]:
    """Yield the split and the examples of each quad and octad of a language.

    Args:
        settings: of the corpus.
        quads: what draws them; it remembers which words have been used.
        content: the folder of the TOML files.
        texts: sentences that must not occur again; those that are drawn are added.

    Raises:
        UserError: the content is wrong, or too small for that number of different sentences.
    """
    language = quads.lexicon.language
    wanted = settings.cue_types(language)
    sets, roles = (
        [templates.load(language, kind, content) for kind in kinds if kind in wanted]
        for kinds in (SET_CUE_TYPES, role_cue_types(language))
    )
    octads = (
        OctadGenerator(compositions.load(language, content), settings.seed, quads) if COMPOSITION in wanted else None
    )
    for split in SPLITS:
        quotas = _Quotas(settings, split, sets, roles, octads is not None)
        for generate, contents in ((quads.set_quad, sets), (quads.role_quad, roles)):
            for cue_type in contents:
                for stratum, items in quotas.of_templates(cue_type):
                    chance = _generator(settings.seed, language, cue_type.type, split, stratum)
                    draw = _quad_draw(generate, cue_type, split, stratum, chance)
                    for group in generate_groups(draw, (language, cue_type.type, split, stratum), items, texts):
                        yield split, group
        if octads is not None:
            for stratum, items in quotas.of_compositions():
                chance = _generator(settings.seed, language, COMPOSITION, split, stratum)
                draw = _octad_draw(octads, split, stratum, chance)
                for group in generate_groups(draw, (language, COMPOSITION, split, stratum), items, texts):
                    yield split, group
    # Last, since the words that a quad draws depend on what others have drawn: the rest of the corpus stays as it is.
    others = len(set(wanted) - {SHORT_TEXT})
    if SHORT_TEXT in wanted:
        octads_in_texts = OctadGenerator(compositions.load(language, content), settings.seed, quads, SHORT_TEXT)
        lines = compositions.load_texts(language, content)
        for split in SPLITS:
            items = items_on_top(settings, split, others, SHORT_TEXT_SHARE if others else 1.0)
            for stratum, count in _strata_of_texts(split, items):
                chance = _generator(settings.seed, language, SHORT_TEXT, split, stratum)
                draw = _text_draw(octads_in_texts, lines[split], split, stratum, chance)
                for group in generate_groups(draw, (language, SHORT_TEXT, split, stratum), count, texts):
                    yield split, group


def _generator(seed: int, language: str, kind: str, split: str, stratum: str) -> random.Random:
    return splits.generator(seed, language, kind, split, _SEEDS.get(stratum, stratum))


_Plan = TypeVar("_Plan")
Draw = Callable[[QuadIdentity], list[Example]]


def _quad_draw(
    generate: Callable[[CueTypeContent, Template, QuadIdentity, random.Random], list[Example]],
    content: CueTypeContent,
    split: str,
    stratum: str,
    chance: random.Random,
) -> Draw:
    """Return a function that draws quads of one type and stratum, with templates in turn."""
    chosen = content.of(split, cataphora=stratum == "cataphora")
    turns = cycle(chance.sample(chosen, len(chosen)))
    return lambda place: generate(content, next(turns), place, chance)


def _octad_draw(octads: OctadGenerator, split: str, stratum: str, chance: random.Random) -> Draw:
    """Draw octads of one stratum: any sentence in training; the same ones in turn in dev and test."""
    plans = _plans_of(split, sentence_plans(octads.content.parts[split], split, chance))
    if stratum == THIRD:
        return lambda place: octads.third_person(next(plans), place, chance)
    return lambda place: octads.octad(_level_of(stratum), next(plans), place, chance)


def _plans_of(split: str, plans: Iterator[_Plan]) -> Iterator[_Plan]:
    return plans if split == "train" else cycle(list(islice(plans, EVALUATION_SENTENCES)))


def _level_of(stratum: str) -> str:
    return stratum if stratum in LEVELS else "L0"


def _text_draw(octads: OctadGenerator, lines: Lines, split: str, stratum: str, chance: random.Random) -> Draw:
    """Draw octads in short texts: any text in training; the same ones in turn in dev and test."""
    plans = _plans_of(split, text_plans(lines, split, chance))
    return lambda place: octads.octad(_level_of(stratum), next(plans), place, chance)


def items_on_top(settings: ControlledCorpus, split: str, other_types: int, share: float) -> int:
    """Return how many items of a type a split gets on top of the others; dev and test as many as of each other type."""
    if split == "train":
        return math.ceil(settings.train_items * share)
    return math.ceil(settings.test_items / max(1, other_types))


def _strata_of_texts(split: str, items: int) -> list[tuple[str, int]]:
    if split == "train":
        shown_in_one_voice = math.ceil(items * L1_SHARE)
        return _listed(items - shown_in_one_voice, {"L1": shown_in_one_voice})
    return _listed(items, dict.fromkeys(LEVELS[1:], items))


@dataclass(frozen=True)
class _Quotas:
    """The number of items for each type and stratum of a split, the main stratum first.

    Training divides between the two kinds, then among the types of a kind by weight; dev and test have as many items of
    each type.
    """

    settings: ControlledCorpus
    split: str
    sets: Sequence[CueTypeContent]
    roles: Sequence[CueTypeContent]
    has_compositions: bool

    def of_templates(self, content: CueTypeContent) -> list[tuple[str, int]]:
        """Return the quotas of a type with templates."""
        is_role = bool(content.scenarios)
        cataphoric = [each for each in (*self.sets, *self.roles) if each.of(self.split, cataphora=True)]
        if self.split == "train":
            items = self._training_items(content.type, is_role)
            strata = {
                "cataphora": math.ceil(items * CATAPHORA_SHARE) if content in cataphoric else 0,
                "invented": math.ceil(items * INVENTED_SHARE) if is_role else 0,
            }
            return _listed(items - sum(strata.values()), strata)
        strata = {"cataphora": math.ceil(self._stratum / len(cataphoric)) if content in cataphoric else 0}
        if self.split == "test" and is_role:
            strata |= self._names_strata()
        return _listed(self._items_of_a_type(), strata)

    def of_compositions(self) -> list[tuple[str, int]]:
        """Return the quotas of the octads."""
        if self.split == "train":
            items = self._training_items(COMPOSITION, is_role=True)
            strata = {
                "L1": math.ceil(items * L1_SHARE),
                "invented": math.ceil(items * INVENTED_IN_COMPOSITIONS),
                THIRD: math.ceil(items * THIRD_SHARE),
            }
            return _listed(items - sum(strata.values()), strata)
        strata = {**dict.fromkeys((*LEVELS[1:], "invented"), self._items_of_a_type()), THIRD: self._stratum}
        return _listed(self._items_of_a_type(), strata)

    def _training_items(self, kind: str, is_role: bool) -> int:
        roles = [*(each.type for each in self.roles), *([COMPOSITION] if self.has_compositions else [])]
        sets = [each.type for each in self.sets]
        share = float(self.settings.train_items)
        if sets and roles:
            set_share = SETS_BESIDE_COMPOSITIONS if self.has_compositions else 0.5
            share *= 1 - set_share if is_role else set_share
        parts = sum(TRAINING_WEIGHTS.get(each, 1.0) for each in (roles if is_role else sets))
        return math.ceil(share * TRAINING_WEIGHTS.get(kind, 1.0) / parts)

    def _items_of_a_type(self) -> int:
        return math.ceil(self.settings.test_items / (len(self.sets) + len(self.roles) + self.has_compositions))

    def _names_strata(self) -> dict[str, int]:
        items = math.ceil(self._stratum / (len(self.roles) + self.has_compositions))
        return dict.fromkeys(("distractor_only", "invented"), items)

    @property
    def _stratum(self) -> int:
        return math.ceil(self.settings.test_items * STRATUM_SHARE)


def _listed(main: int, strata: Mapping[str, int]) -> list[tuple[str, int]]:
    return [("main", main), *((name, count) for name, count in strata.items() if count)]


def generate_groups(
    draw: Draw, where: tuple[str, str, str, str], items: int, texts: set[str]
) -> Iterator[list[Example]]:
    """Yield quads or octads of one type and stratum until there are `items` items, no text twice.

    Args:
        draw: what draws one, given its place.
        where: language, type, split and stratum.
        items: how many items there must be, or slightly more.
        texts: sentences that must not occur again; those that are drawn are added.

    Raises:
        UserError: the content has no more different sentences.
    """
    language, kind, split, stratum = where
    count, groups, failures = 0, 0, 0
    while count < items:
        name = f"{language}/{kind}/{split}/{stratum}/{groups}"
        group = draw(QuadIdentity(language=language, split=split, stratum=stratum, group=name))
        written = {example.text for example in group}
        pronouns = int(group[0].factors.get("pronouns", "1"))
        if len(written) * pronouns < len(group) or not texts.isdisjoint(written):
            failures += 1
            if failures > _MAX_DRAWS:
                raise UserError(
                    f"{FOLDERS[language]}/{kind}.toml: after {count} {split} items ({stratum}) {_MAX_DRAWS} "
                    "draws gave no new sentence; ask for fewer items or write more templates"
                )
            continue
        failures = 0
        texts |= written
        count, groups = count + len(group), groups + 1
        yield group
