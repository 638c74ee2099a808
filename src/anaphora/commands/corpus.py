"""Describe a corpus: its counts, its dropped rows, and the accuracy of shortcut baselines.

Example: anaphora corpus data=dpr data.path=train.c.txt
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations, compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.files import OTHER_FOLDER, locked_directory, write_csv, write_text
from anaphora.base.translation import N_, _, in_language_of_messages, pgettext
from anaphora.commands.parts.settings import Overwriting
from anaphora.settings import data as data_settings

if TYPE_CHECKING:
    from anaphora.data.corpora.division import ReadingReport
    from anaphora.data.example import Example, Question, Span
    from anaphora.data.store import Corpus
    from anaphora.data.text import Text


_SHOWN_CHARACTERS = 60
"""Maximum number of characters of a text in a note on wrong offsets."""
FEWEST_TRAINING_ITEMS = 1000
"""Number of training items from natural text below which an untrained encoder learns nothing (docs/own_data.md)."""


_COUNTS, _SHORTCUTS = "counts.csv", "shortcuts.csv"


@dataclass(kw_only=True)
class CorpusDescription(Overwriting):
    """Settings of `anaphora corpus`."""

    data: data_settings.Data = field(default_factory=data_settings.ControlledCorpus)
    output: str | None = None  # folder for the tables as CSV and the items as Parquet, which `datasets` reads


def corpus(settings: CorpusDescription) -> None:
    """Print a corpus's counts and dropped rows and, if it has pronouns, the accuracy of shortcut baselines on `test`.

    With `output`, the tables, the items and a dataset card are written to this folder.

    Raises:
        UserError: the corpus cannot be read, or files of another corpus would be overwritten (`claimed`).
    """
    if settings.output is None:
        _describe(settings)
        return
    from anaphora.commands.parts.shared import data_settings as settings_of_data
    from anaphora.report.cards import CARD
    from anaphora.runs.directory import claimed

    folder = Path(settings.output)
    names = (CARD, _COUNTS, _SHORTCUTS, *(f"{split}.parquet" for split in data_settings.SPLITS))
    about = settings_of_data(settings.data)
    with locked_directory(folder, OTHER_FOLDER), claimed(folder, dict.fromkeys(names, about), settings):
        _describe(settings)


def _describe(settings: CorpusDescription) -> None:
    from anaphora.base.console import working
    from anaphora.commands.parts.tables import print_shared_texts, print_table_of
    from anaphora.data.store import load as load_corpus

    started = time.perf_counter()
    with working(_("reading the data")):
        corpus = load_corpus(settings.data)
    if isinstance(settings.data, data_settings.TextCorpus):
        texts = {name: corpus.texts(name) for name in data_settings.SPLITS}
        seconds = time.perf_counter() - started
        counts = text_table(texts)
        print_table_of(_("texts; words are separated by spaces"), counts)
        counted = N_("read: {count:text|texts} from {rows:row|rows} in {seconds} s")
        print_reading(counted, texts, corpus.report, seconds, settings.data)
        for (earlier, known), (later, listed) in combinations(texts.items(), 2):
            print_shared_texts(listed, later, known, earlier)
        _write_corpus(corpus, settings, counts)
        return
    splits = {name: corpus.examples(name) for name in data_settings.SPLITS}
    seconds = time.perf_counter() - started
    counts = corpus_table(splits)
    print_table_of(pgettext("title", "items"), counts)
    counted = N_("read: {count:item|items} from {rows:row|rows} in {seconds} s")
    print_reading(counted, splits, corpus.report, seconds, settings.data)
    _print_doubtful_items(splits, settings.data)
    rows = _print_shortcuts(splits, settings.data)
    _print_too_few_for_training(len(splits["train"]))
    _write_corpus(corpus, settings, counts)
    if settings.output:
        write_csv(Path(settings.output) / _SHORTCUTS, rows)


def _print_doubtful_items(splits: Mapping[str, Sequence[Example]], data: data_settings.Data) -> None:
    """Print how many items lack a part of speech or a pronoun, contradict others, or occur in another split too."""
    from anaphora.base.console import say
    from anaphora.commands.parts.tables import print_contradictions, print_shared_items
    from anaphora.data.corpora.word_classes import UNKNOWN_FORM, without_pronoun
    from anaphora.runs.items import questions_of

    everything = [one for items in splits.values() for one in items]
    if unknown := sum(one.factors.get("form") == UNKNOWN_FORM for one in everything):
        say(
            "part of speech unknown: {count:item|items}, whose word has no tag in the files and is no pronoun (`form` "
            "is “unknown”)",
            count=unknown,
        )
    doubtful = without_pronoun(everything) if isinstance(data, data_settings.OwnExamples) else []
    # If most items have no pronoun, the data are about other words on purpose.
    if doubtful and 2 * len(doubtful) < len(everything):
        first = doubtful[0]
        say(
            "no pronoun is marked in {count} of {all:item|items}; in “{text}” {span} is “{marked}”: check the "
            "offsets, since text[start:end] should be the pronoun",
            count=len(doubtful),
            all=len(everything),
            text=" ".join(first.text.split())[:_SHOWN_CHARACTERS],
            span=list(first.pronoun),
            marked=first.text[slice(*first.pronoun)],
        )
    for name, items in splits.items():
        print_contradictions(contradictions(items), name)
    questions = {name: questions_of(examples) for name, examples in splits.items()}
    for (earlier, known), (later, asked) in combinations(questions.items(), 2):
        print_shared_items(asked, later, known, earlier)


def _print_shortcuts(splits: Mapping[str, Sequence[Example]], data: data_settings.Data) -> list[dict[str, Any]]:
    """Print the test accuracy of shortcut baselines by cue category and by other factors; return the former."""
    import numpy as np

    from anaphora.analysis.scores.baselines.order_models import TABLE_OF_WORDINGS, wordings_seen
    from anaphora.analysis.scores.baselines.shortcuts import accuracy_by_factor, accuracy_by_kind, shortcut_correctness
    from anaphora.base.console import say, working
    from anaphora.commands.parts.tables import print_table_of
    from anaphora.report.numbers import shown_interval

    train, test = splits["train"], splits["test"]
    if not test:
        say("no test split: no shortcut is measured (data.test_share)")
        return []
    with working(_("fitting the shortcuts on the training split")):
        results = shortcut_correctness(train, test)
        wordings = wordings_seen(train, test)
        if not np.isnan(wordings).all():
            results[TABLE_OF_WORDINGS] = wordings
    rows = [asdict(row) for row in accuracy_by_kind(results, test)]
    print_table_of(
        _("shortcuts on the test split, 95 % intervals over templates, else groups")
        if any(shown_interval((row["low"], row["high"])) for row in rows)
        else _("shortcuts on the test split"),
        rows,
    )
    if factors := accuracy_by_factor(results, test):
        print_table_of(_("the same by factor"), factors, results)
    _print_what_is_missing(test, data)
    return rows


def _print_too_few_for_training(items: int) -> None:
    from anaphora.base.console import say

    if not items:
        say("no training split: there are no learned shortcuts (data.test_share, data.dev_share)")
    elif items < FEWEST_TRAINING_ITEMS:
        say(
            "too few to train on if they are natural sentences: {count:training item|training items}; from one or two "
            "thousand, "
            "encoders with random weights learn nothing (docs/own_data.md), and a claim needs enough test items "
            "(docs/sample_size.md)",
            count=items,
        )


@in_language_of_messages
def _print_what_is_missing(items: Sequence[Example], data: data_settings.Data) -> None:
    """Print what the test items lack for the verdict "supported" on whether an attention head picks antecedents.

    They may lack quads (groups of four related sentences), minimal pairs, or enough items, templates or groups. If no
    item of a user's own data has a cue category (factor `kind`: "set" if the words alone determine the antecedent,
    "role" if it matters who did what to whom), a note explains how the items are treated.
    """
    from anaphora.analysis.evidence.plan import Protocol
    from anaphora.analysis.scores.cells import claim_cells, clusters
    from anaphora.analysis.scores.heads import reason_to_drop
    from anaphora.analysis.scores.quads import items_of_minimal_pairs, quads_of
    from anaphora.analysis.scores.statistics import FEWEST_EQUAL, holm, smallest_p
    from anaphora.base.console import say
    from anaphora.report.wording import group_label, language_name

    by_language: dict[str, list[Example]] = {}
    for item in items:
        by_language.setdefault(item.language, []).append(item)
    for of_all, of_language, sets_of in (
        (
            N_(
                "no quads in the test split: quad accuracy cannot be measured, so no verdict on these data can be "
                "“supported”"
            ),
            N_("no quads in the test split of {texts}: no verdict on it can be “supported”"),
            quads_of,
        ),
        (
            N_(
                "no minimal pairs in the test split: pattern patching cannot be measured, so no verdict on these data "
                "can be “supported”"
            ),
            N_("no minimal pairs in the test split of {texts}: no verdict on it can be “supported”"),
            items_of_minimal_pairs,
        ),
    ):
        without = [language for language, listed in by_language.items() if not any(sets_of(listed))]
        if len(without) == len(by_language):
            say(of_all)
        else:
            for language in without:
                say(of_language, texts=language_name(language))
    labels, fewest, claims = clusters(items), FEWEST_EQUAL, claim_cells(items)
    scored = [[one for one in compress(items, inside) if not reason_to_drop(one)] for _, _, inside in claims]
    smallest = holm([smallest_p(of_claim) for of_claim in scored])
    for (language, kind, inside), p in zip(claims, smallest, strict=True):
        if p >= Protocol().alpha:
            say(
                "{group}: too few items in the test split for significance: even a head that is always right has a "
                "corrected p of {p}, and then no verdict can be “supported”",
                group=group_label(language, kind),
                p=f"{p:.2f}",
            )
        count = len({labels[item] for item in inside.nonzero()[0]})
        if count < fewest:
            say(
                "{group}: too few templates or groups in the test split ({count}; at least {fewest} are needed): "
                "results that are all alike give no interval, and then no verdict can be “supported”",
                group=group_label(language, kind),
                count=count,
                fewest=fewest,
            )
    if isinstance(data, data_settings.OwnExamples) and not any(
        item.factors.get("kind") in ("set", "role") for item in items
    ):
        say(
            "no label `kind`: the items count as natural text, so shortcuts that learn from words are "
            'baselines too; where it matters who did what to whom, write "factors": {"kind": "role"}'
        )


def text_table(splits: Mapping[str, Sequence[Text]]) -> list[dict[str, Any]]:
    """Return the number of texts, words and characters per split and label."""
    counts = []
    for split, texts in splits.items():
        for name in sorted({text.label or "" for text in texts}):
            written = [text.text for text in texts if (text.label or "") == name]
            words = sum(len(text.split()) for text in written)
            cells = {"texts": len(written), "words": words, "characters": sum(map(len, written))}
            counts.append({"split": split, "label": name, **cells})
    return counts


def _write_corpus(corpus: Corpus, settings: CorpusDescription, counts: Sequence[Mapping[str, Any]]) -> None:
    """Write the counts, the items as Parquet, and a dataset card with the splits, if `output` is set."""
    from anaphora.base.console import say
    from anaphora.data.records import item_columns
    from anaphora.report.cards import CARD, corpus_card
    from anaphora.runs.published import data_without_folders

    if settings.output is None:
        return
    folder, columns = Path(settings.output), item_columns(settings.data)
    plain = data_without_folders(settings.data)
    chosen = {"data": plain.pop("kind")}
    for name, value in plain.items():
        if value not in (None, []):
            chosen[f"data.{name}"] = value if name == "path" else json.dumps(value, ensure_ascii=False)
    card = corpus_card(chosen, _licence_sentence(settings.data), corpus.filled_splits, columns, counts)
    write_text(folder / CARD, card)
    write_csv(folder / _COUNTS, counts)
    for split in data_settings.SPLITS:
        (folder / f"{split}.parquet").unlink(missing_ok=True)
    (folder / _SHORTCUTS).unlink(missing_ok=True)  # of the corpus that was in the folder before
    corpus.write_items(folder, columns)
    say("tables {path}", path=settings.output)


def _licence_sentence(data: data_settings.Data) -> str:
    """Return a sentence on the licence of a corpus; for a user's own files, the sentence refers to their sources.

    If the licence of the files as published is known, it is stated too.
    """
    from anaphora.data.corpora.division import origin_of

    if isinstance(data, data_settings.ControlledCorpus):
        return "Generated by the package, which states none for it."
    licence = origin_of(data).licence
    published = f" Those published as {data.kind} have, as their source states it: {licence}." if licence else ""
    return f"That of the sources from which it was made.{published}"


@in_language_of_messages
def print_reading(
    counted: str, splits: Mapping[str, Sequence[Any]], report: ReadingReport, seconds: float, data: data_settings.Data
) -> None:
    """Print the source and licence of a corpus, the number of items, the reading time, and the dropped rows.

    `counted` is a message with placeholders for count, rows and seconds.
    """
    from anaphora.base.console import say
    from anaphora.data.corpora.division import origin_of

    if isinstance(data, data_settings.ExternalCorpus):
        also = data.also if isinstance(data, data_settings.PlainText | data_settings.SilverStandard) else []
        say("source: {paths}", paths=pgettext("list", ", ").join((data.path, *also)))
    licence = origin_of(data).licence
    if licence:
        text = N_("licence of the files published as {corpus}, as stated: {licence} (docs/corpora.md)")
        say(text, corpus=data.kind, licence=_(licence))
    say(counted, count=sum(map(len, splits.values())), rows=report.rows, seconds=f"{seconds:.1f}")
    for reason, number in report.reasons.items():
        say("dropped: {rows:row|rows} ({reason})", rows=number, reason=_(reason))


def _chance(example: Example) -> float:
    return len(set(example.antecedents) & set(example.focal)) / max(1, len(example.focal))


def contradictions(examples: Sequence[Example]) -> int:
    """Count the items whose text and pronoun also occur in another item with a different antecedent.

    Antecedents differ if a mention of an antecedent in one item is a mention of a wrong candidate in the other item.
    """
    right: defaultdict[Question, set[Span]] = defaultdict(set)
    wrong: defaultdict[Question, set[Span]] = defaultdict(set)
    for example in examples:
        for index, spans in enumerate(example.candidates):
            (right if index in example.antecedents else wrong)[example.question].update(spans)
    contested = {question: spans & wrong[question] for question, spans in right.items()}
    return sum(not contested.get(example.question, set()).isdisjoint(example.spans) for example in examples)


def corpus_table(corpus: Mapping[str, Sequence[Example]]) -> list[dict[str, Any]]:
    """Count items by split, language, cue category (`kind`), cue type and stratum (part of a split).

    A cue is what determines the antecedent, such as the pronoun's gender.

    Returns:
        A row for each combination that occurs, sorted by split, language, kind and type. Its columns are `split`,
        `language`, `kind`, `type`, `stratum` and:

        - `items`: number of items.
        - `no_antecedent`: number of items without an antecedent.
        - `groups`: number of groups whose items must be in the same split (`group_key`).
        - `templates`: number of templates; None if the items have none.
        - `chance`: mean share of antecedents among the candidates that the cue distinguishes, 0 to 1.
        - `mean_distance`, `largest_distance`: distance between antecedent and pronoun in words; None if unknown.
    """
    from anaphora.data.corpora.division import group_key

    cells: dict[tuple[str, ...], list[Example]] = {}
    for split, examples in corpus.items():
        for example in examples:
            names = (example.factors.get(factor, "") for factor in ("kind", "type", "stratum"))
            cells.setdefault((split, example.language, *names), []).append(example)
    rows: list[dict[str, Any]] = []
    for (split, language, kind, cue_type, stratum), examples in cells.items():
        distances = [each.distance for each in examples if each.distance is not None]
        templates = {example.factors["template"] for example in examples if "template" in example.factors}
        rows.append(
            {
                "split": split,
                "language": language,
                "kind": kind,
                "type": cue_type,
                "stratum": stratum,
                "items": len(examples),
                "no_antecedent": sum(not example.antecedents for example in examples),
                "groups": len(set(map(group_key, examples))),
                "templates": len(templates) or None,
                "chance": sum(map(_chance, examples)) / len(examples),
                "mean_distance": sum(distances) / len(distances) if distances else None,
                "largest_distance": max(distances, default=None),
            }
        )
    order = list(corpus)
    return sorted(rows, key=lambda row: (order.index(row["split"]), row["language"], row["kind"], row["type"]))
