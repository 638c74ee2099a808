"""Generator of the built-in (controlled) corpus: English and Chinese examples from TOML files and a random seed.

The examples are generated in groups. A quad combines each of two cues (words that decide which candidate is the
antecedent) with both orders of the candidates; some quads have more cues and candidates. An octad combines two cues,
two orders of the names, and active and passive voice. Too few templates or words raise a `UserError`.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, cycle
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.base.errors import UserError
from anaphora.data.controlled import compositions, splits, templates
from anaphora.data.controlled import lexicon as lexicons
from anaphora.data.controlled.lexicon import CONTENT_FOLDER, FOLDERS
from anaphora.data.controlled.octads import LEVELS, THIRD, OctadGenerator
from anaphora.data.controlled.quads import QuadGenerator, QuadIdentity
from anaphora.data.controlled.templates import CueTypeContent, Template
from anaphora.data.corpora.division import ReadingReport
from anaphora.data.example import Example
from anaphora.data.records import GroupRows, decoded
from anaphora.settings.cue_types import BINDING, COMPOSITION, ROLE_CUE_TYPES, SET_CUE_TYPES, SHORT_TEXT, role_cue_types
from anaphora.settings.data import SPLITS, ControlledCorpus

if TYPE_CHECKING:
    import pyarrow

CATAPHORA_SHARE = 0.1  # share of cataphora in the training items of a type with cataphoric templates
INVENTED_SHARE = 0.08  # share of invented names in the training items of a role type
INVENTED_IN_COMPOSITIONS = 0.25  # share of invented names in the training items of the cue type `composition`
STRATUM_SHARE = 0.1  # share of the test items in each small stratum: cataphora, distractor_only, third, invented
SETS_BESIDE_COMPOSITIONS = 0.25  # share of set cues in training if `composition` is among the types; otherwise a half
THIRD_SHARE = 0.1  # share of the stratum "third" in the training items of the cue type `composition`
L1_SHARE = 0.2  # share of level L1 (pairs in one voice) in the training items of `composition` and of `short_text`
SHORT_TEXT_SHARE = 0.5  # number of additional short texts in training, as a share of the training items
TRAINING_WEIGHTS = {"selection": 3.0, "winograd": 2.0, "voice": 1.5, COMPOSITION: 10.0}
"""Relative numbers of training items, among set-cue or role-cue types; 1 for types not listed. The listed types are
the slowest to learn, since they depend on whole classes of nouns, or on a later word that reverses the meaning of a
verb. In dev and test, all types have the same number of main items."""
_MAX_DRAWS = 200  # number of draws in a row without a new sentence after which the content counts as exhausted
_SEEDS = {"distractor_only": "filler_only"}
"""Former name of a stratum, which is still part of the stratum's seed, so that the corpus stays as published."""


def generate(settings: ControlledCorpus) -> dict[str, list[Example]]:
    """Generate the examples of all splits: groups (quads, octads) in random order, with their examples adjacent."""
    return {split: decoded(table) for split, table in read(settings)[0].items()}


def read(settings: ControlledCorpus) -> tuple[dict[str, pyarrow.Table], ReadingReport]:
    """Generate the corpus; return a table of examples for each split, and a report with their total number."""
    groups = chain.from_iterable(
        generate_language(settings, quad_generator(settings, language), set()) for language in settings.languages
    )
    tables = shuffled_tables(groups, settings.seed)
    return tables, ReadingReport(rows=sum(map(len, tables.values())))


def shuffled_tables(groups: Iterable[tuple[str, list[Example]]], seed: int) -> dict[str, pyarrow.Table]:
    """Collect groups of examples (quads or octads) in one table per split; the seed determines the order of the groups.

    `groups` yields (split, examples of the group); the examples of a group stay adjacent.
    """
    rows = {split: GroupRows() for split in SPLITS}
    for split, group in groups:
        rows[split].append(group)
    tables = {}
    for split, of_split in rows.items():
        order = list(range(len(of_split)))
        splits.generator(seed, "order", split).shuffle(order)
        tables[split] = of_split.table(order)
    return tables


def files(settings: ControlledCorpus) -> dict[str, Path]:
    """Return the TOML files of a corpus with these settings, keyed by path relative to their common folder.

    The files of `short_text` are included only if the corpus has examples of this cue type. The files of the other cue
    types are always included.
    """
    on_request = [SHORT_TEXT] if SHORT_TEXT in settings.types else []
    names = [
        f"{FOLDERS[language]}/{name}.toml"
        for language in settings.languages
        for name in ("lexicon", *SET_CUE_TYPES, *role_cue_types(language), COMPOSITION, *on_request)
    ]
    return {name: CONTENT_FOLDER / name for name in names}


def known_words(settings: ControlledCorpus) -> list[str]:
    """Return the sorted words of possible training sentences in all languages of the corpus (see `words`)."""
    return sorted({word for language in settings.languages for word in words(language, settings.types)})


def words(language: str, types: Collection[str] = ()) -> list[str]:
    """Return the distinct words that training sentences may contain, sorted and without punctuation.

    Words are separated by spaces in the TOML files, also in Chinese. Nouns and names that are held out for dev and test
    are included, but not invented names.

    If `types` contains `composition` or `short_text`, the words come from the cue types in `types`, all phrases of
    `composition` and the syllables of invented names. Otherwise, they come from all cue types except `composition` and
    `short_text`; the type `binding` is then included only if `types` contains it.
    """
    lexicon = lexicons.load(language)
    written = [*lexicon.intro, *lexicon.gap, *lexicon.aside]
    for noun in chain.from_iterable(lexicon.nouns.values()):
        written += [noun.singular, noun.plural, noun.singular_determiner, noun.plural_determiner]
    written += chain(*lexicon.predicates.values(), *lexicon.names.values())
    written += chain(*lexicons.PRONOUNS[language].values())
    written += templates.list_tokens(3, language)
    kinds: Sequence[str] = (*SET_CUE_TYPES, *ROLE_CUE_TYPES[language], *({BINDING} & set(types)))
    if {COMPOSITION, SHORT_TEXT} & set(types):
        written += [*lexicon.syllables, *compositions.load(language).training_phrases()]
        kinds = [kind for kind in (*SET_CUE_TYPES, *role_cue_types(language)) if kind in types]
    if SHORT_TEXT in types:
        written += chain(*compositions.load_texts(language)["train"])
    for kind in kinds:
        cue_type = templates.load(language, kind)
        written += [token for template in cue_type.templates if template.split == "train" for token in template.tokens]
        for scenario in cue_type.scenarios:
            for side in (scenario.shared, scenario.first, scenario.second):
                written += [option for slot, options in side.items() if slot != "form" for option in options]
    return words_of(written)


def words_of(phrases: Iterable[str]) -> list[str]:
    """Return the distinct words of phrases, sorted, without slots and punctuation."""
    tokens = {token for phrase in phrases for token in phrase.split()}
    return sorted(token for token in tokens if token[0] != "{" and any(mark.isalnum() for mark in token))


def quad_generator(settings: ControlledCorpus, language: str) -> QuadGenerator:
    """Return a generator of quads (counterbalanced sentences) for a language; the seed divides words among splits."""
    lexicon = lexicons.load(language)
    holdout = splits.assign_cosets(lexicon, settings.seed, settings.shared_nouns)
    return QuadGenerator(lexicon, holdout, settings.test_asides)


def generate_language(
    settings: ControlledCorpus, quads: QuadGenerator, texts: set[str]
) -> Iterator[tuple[str, list[Example]]]:
    """Yield (split, examples) for each counterbalanced group of sentences (quad or octad) in a language.

    `quads` counts the uses of each word to make words equally frequent. No text in `texts` is generated again; every
    generated text is added to this set.
    """
    language = quads.lexicon.language
    wanted = settings.cue_types(language)
    sets, roles = (
        [templates.load(language, kind) for kind in kinds if kind in wanted]
        for kinds in (SET_CUE_TYPES, role_cue_types(language))
    )

    def groups(
        kind: str, split: str, strata: Iterable[tuple[str, int]], draw_from: DrawFrom
    ) -> Iterator[tuple[str, list[Example]]]:
        for stratum, items in strata:
            yield from generate_groups(draw_from, settings.seed, (language, kind, split, stratum), items, texts)

    octads = OctadGenerator(language, settings.seed, quads) if COMPOSITION in wanted else None
    for split in SPLITS:
        quotas = _Quotas(settings, split, sets, roles, octads is not None)
        for generate, contents in ((quads.set_quad, sets), (quads.role_quad, roles)):
            for cue_type in contents:
                draw_from = partial(_quad_draw, generate, cue_type)
                yield from groups(cue_type.type, split, quotas.of_templates(cue_type), draw_from)
        if octads is not None:
            yield from groups(COMPOSITION, split, quotas.of_compositions(), octads.draw_from)
    # Short texts come last, so that the rest of the corpus is the same without them: draws depend on earlier draws.
    if SHORT_TEXT in wanted:
        octads_in_texts = OctadGenerator(language, settings.seed, quads, SHORT_TEXT)
        others = len(set(wanted) - {SHORT_TEXT})
        for split in SPLITS:
            items = additional_items(settings, split, others, SHORT_TEXT_SHARE if others else 1.0)
            yield from groups(SHORT_TEXT, split, _strata_of_texts(split, items), octads_in_texts.draw_from)


Draw = Callable[[QuadIdentity], list[Example]]
DrawFrom = Callable[[str, str, random.Random], Draw]
"""Function from split, stratum and random generator to a function that draws the examples of a quad or octad."""


def _quad_draw(
    generate: Callable[[CueTypeContent, Template, QuadIdentity, random.Random], list[Example]],
    content: CueTypeContent,
    split: str,
    stratum: str,
    chance: random.Random,
) -> Draw:
    """Return a function that draws a quad of one cue type and stratum (part of a split, such as "main") at each call.

    The templates are put in a random order once, and the calls use them in turn.
    """
    chosen = content.of(split, cataphora=stratum == "cataphora")
    turns = cycle(chance.sample(chosen, len(chosen)))
    return lambda place: generate(content, next(turns), place, chance)


def additional_items(settings: ControlledCorpus, split: str, other_types: int, share: float) -> int:
    """Return the number of items of a cue type whose items are added to the requested size of a split.

    In training, this number is `share` * `train_items`. In dev and test, it is `test_items` / `other_types`, so that
    all cue types have equally many items. Numbers are rounded up.
    """
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
    """Numbers of items in a split, for each cue type and each stratum (part of a split, such as "main").

    In training, the items are divided between set cues (which decide by a property of the candidates, such as gender)
    and role cues (by who did what to whom), and then among their cue types in proportion to `TRAINING_WEIGHTS`. In dev
    and test, all cue types have the same number of main items. The stratum "main" is listed first.
    """

    settings: ControlledCorpus
    split: str
    sets: Sequence[CueTypeContent]
    roles: Sequence[CueTypeContent]
    has_compositions: bool

    def of_templates(self, content: CueTypeContent) -> list[tuple[str, int]]:
        """Return (stratum, number of items) for each stratum (part of the split) of a cue type that has templates."""
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
            items = math.ceil(self._stratum / (len(self.roles) + self.has_compositions))
            strata |= dict.fromkeys(("distractor_only", "invented"), items)
        return _listed(self._items_of_a_type(), strata)

    def of_compositions(self) -> list[tuple[str, int]]:
        """Return (stratum, number of items) for each stratum (part of the split) of the cue type `composition`."""
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

    @property
    def _stratum(self) -> int:
        return math.ceil(self.settings.test_items * STRATUM_SHARE)


def _listed(main: int, strata: Mapping[str, int]) -> list[tuple[str, int]]:
    return [("main", main), *((name, count) for name, count in strata.items() if count)]


def generate_groups(
    draw_from: DrawFrom, seed: int, where: tuple[str, str, str, str], items: int, texts: set[str]
) -> Iterator[tuple[str, list[Example]]]:
    """Yield (split, examples) for groups (quads or octads) of one cue type until there are at least `items` examples.

    Args:
        draw_from: function that returns, for a split and a stratum, a function that draws one quad or octad per call.
        where: (language, cue type, split, stratum); a stratum is a part of a split, such as "main".
        texts: texts that are not generated again. Every generated text is added to this set.

    Raises:
        UserError: 200 successive draws gave no new text.
    """
    language, kind, split, stratum = where
    chance = splits.generator(seed, language, kind, split, _SEEDS.get(stratum, stratum))
    draw = draw_from(split, stratum, chance)
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
        yield split, group
