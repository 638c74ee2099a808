"""Scores of a model's attention heads on a corpus; a head is chosen on the development split, evaluated on another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.analysis.causal.causal_tests import NOTHING_TO_ASK, run_subject, testable_items, why_unanswered
from anaphora.analysis.causal.language_models import LanguageModelSubject
from anaphora.analysis.causal.subjects import Subject
from anaphora.analysis.evidence.evidence import Evidence, every_group
from anaphora.analysis.evidence.headline import Measurement, no_progress, untrained_items, untrained_seeds
from anaphora.analysis.evidence.other_models import evidence_from_records
from anaphora.analysis.maps.answers import Answers
from anaphora.analysis.maps.capture import capture_run
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import ALL, Head, existing_head
from anaphora.analysis.scores.cells import by_language
from anaphora.analysis.scores.heads import head_accuracy, mean_chance
from anaphora.api.html import AttentionPage
from anaphora.api.models import open_any
from anaphora.api.runs import OpenRun
from anaphora.base.checks import PAGE_ENDINGS, at_least, file_ending, file_name, whole_number
from anaphora.base.console import Progress
from anaphora.base.errors import UserError
from anaphora.base.translation import _
from anaphora.data.example import Example, sample_groups, sample_quads
from anaphora.data.store import load as load_corpus
from anaphora.data.tokens.words import UnreadMentions, unread_mentions
from anaphora.runs.items import EvaluationSplits
from anaphora.settings.data import CoreferenceCorpus, Data, TextCorpus
from anaphora.settings.typed import construct

if TYPE_CHECKING:
    import pandas

    from anaphora.api.models import AnyModel

CAUSAL_ITEMS = 100
"""Default number of main items (`Example.is_main`) in the causal tests; each test is a forward pass for each item."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores of a model's attention to the antecedents of a corpus.

    Attributes:
        name: name of the model.
        evidence: all scores of the chosen head, with intervals, shortcut baselines, corrected p-values and any causal
            tests, as in metrics.json.
        measurement: scores of all heads, from which `evidence` is computed.
        untested: reason why no causal tests were run, in one line; None if they were run or not requested.
        unread: evaluated items with a pronoun or candidate outside the model's vocabulary; None if there are none.
    """

    name: str
    evidence: Evidence
    measurement: Measurement
    untested: str | None = None
    unread: UnreadMentions | None = None

    @property
    def head(self) -> Head:
        """Return the evaluated head, which was chosen on the development split or given to `score_on` as `chosen`."""
        return self.evidence.head.position

    def table(self) -> pandas.DataFrame:
        """Return a table of the head's scores: for each language, a row per cue category and one for all items.

        The scores are for main items (`Example.is_main`, those that count for the main results). The columns are
        `language`, `kind` (cue category: "role" for cues that depend on who did what to whom, "set" for other cues, or
        "all"), `items`, `candidate_accuracy` with its 95% interval `low` and `high`, `chance`, `best_shortcut`,
        `best_shortcut_accuracy`, `antecedent_mass` and `task_accuracy`. Accuracies and mass are from 0 to 1. Values
        that were not measured are missing (None or NaN; test with `pandas.isna`).
        """
        import pandas

        return pandas.DataFrame(list(self._rows()))

    def page(self, path: str | Path) -> AttentionPage:
        """Write a report on the model as one HTML file, in the language of the interface.

        Args:
            path: file to write; its name must end in .html or .htm.

        Returns:
            The written page; notebooks display it below the cell, and `open` shows it in the browser.

        Raises:
            UserError: the path has another ending.
        """
        from anaphora.report.page.elements import ReportRun
        from anaphora.report.page.write import write_report

        written = file_name("path", path)
        file_ending("path", written, *PAGE_ENDINGS)
        development = self.measurement.development
        run = ReportRun(
            name=self.name,
            evidence=self.evidence,
            heads=by_language(development, self.evidence.languages, head_accuracy),
            heads_chance=by_language(development, self.evidence.languages, mean_chance),
            chance=mean_chance(development),
            unread=self.unread,
        )
        write_report(written, [run], self.name)
        return AttentionPage(written)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for language, kind, cell in every_group(self.evidence.scores):
            best = cell.best_shortcut
            low, high = cell.intervals.candidate_accuracy or (None, None)
            yield {
                "language": language,
                "kind": kind,
                "items": cell.items,
                "candidate_accuracy": cell.candidate_accuracy,
                "low": low,
                "high": high,
                "chance": cell.chance,
                "best_shortcut": None if best is None else best.name,
                "best_shortcut_accuracy": None if best is None else best.accuracy,
                "antecedent_mass": cell.antecedent_mass,
                "task_accuracy": cell.task_accuracy,
            }

    def __repr__(self) -> str:
        whole = [row for row in self._rows() if row["kind"] == ALL]
        part = _("{language} {candidate_accuracy:.1%} of {items} (chance {chance:.1%})")
        notes = [part.format(**row) for row in whole if row["candidate_accuracy"] is not None]
        if self.untested:
            notes.append(_("no causal tests: {reason}").format(reason=self.untested))
        if self.unread:
            notes.append(_("not in the vocabulary: {words}").format(words=self.unread.listed))
        text = _("<scores of {name}, layer {layer} head {head}: {notes}>")
        listed = _("; ").join(notes)
        return text.format(name=self.name, layer=self.head.layer, head=self.head.head, notes=listed)


def score(
    model: Any,
    data: str = "controlled",
    path: str | Path | None = None,
    split: str = "test",
    items: int | None = None,
    tokenizer: Any = None,
    causal_items: int = CAUSAL_ITEMS,
    untrained: int = 0,
    **settings: Any,
) -> Scores:
    """Choose the head that attends to antecedents best on the development split, and evaluate it on another split.

    The scores include those of shortcuts (simple rules, some of which are fitted on the training split), bootstrap
    intervals and a corrected permutation test. The causal tests are run too, unless `causal_items` is 0; if they are
    not possible, for instance because the model cannot choose among candidates, `Scores.untested` gives the reason. No
    control models are trained here, so the verdict on the claim that the head picks antecedents is always "not yet
    controlled".

    Args:
        model: the model, as in `anaphora.attention`.
        data: name of the corpus, as in the setting `data`, such as "controlled", "dpr" or "jsonl".
        path: file or folder of the corpus; None for the built-in corpus.
        split: split to evaluate on, usually "test".
        items: approximate number of items per split; items of the same document passage or of the same quad (a scene in
            every combination of cue and candidate order) are kept together. By default all items.
        tokenizer: the tokenizer of a loaded `transformers` model; also replaces that of a folder or a name.
        causal_items: approximate number of items in the causal tests, drawn from the main items (`Example.is_main`);
            items of a quad are kept together. 0 for no tests.
        untrained: number of randomly initialised models of the same architecture to evaluate as a control.
        settings: further settings of the corpus, such as `dev_share=0.2`.

    Raises:
        UserError: the model or corpus does not exist, a setting is invalid, a split has no items or only items that
            cannot be scored, or the model cannot process a text.
    """
    if items is not None:
        at_least("items", whole_number("items", items), 1)
    for name, number in (("causal_items", causal_items), ("untrained", untrained)):
        at_least(name, whole_number(name, number), 0)
    opened = open_any(model, tokenizer)
    plain = {"kind": data, **({} if path is None else {"path": str(path)}), **settings}
    source = construct(Data, plain, "data")
    return score_on(opened, read_splits(source, split, items), causal_items=causal_items, untrained=untrained)


def score_on(
    model: AnyModel,
    splits: EvaluationSplits,
    *,
    causal_items: int = CAUSAL_ITEMS,
    untrained: int = 0,
    chosen: Head | None = None,
    progress: Progress = no_progress,
) -> Scores:
    """Score the heads of a model that is already loaded; `causal_items` and `untrained` are as in `score`.

    Args:
        splits: training, development and evaluated items, as from `read_splits`.
        chosen: the head to evaluate; by default the best head on the development split.

    Raises:
        UserError: the head does not exist, or no main item (`Example.is_main`) can be scored; also the errors of
            `pronoun_records`.
    """
    if chosen is not None:
        existing_head(chosen, model.attending_layers, model.heads)

    def show(stage: str) -> None:
        progress(_("{model}: {stage}").format(model=model.name, stage=stage))

    show(_("rows of pronouns"))
    rows, answers = pronoun_records(model, splits.measured)
    subject, untested = _subject(model, splits.measured, causal_items) if causal_items else (None, None)
    seeds = untrained_seeds(untrained, show)
    few = untrained_items(splits.development, [record.example for record in rows])
    measurement, evidence = evidence_from_records(
        model.name,
        pronoun_records(model, splits.development)[0],
        rows,
        answers=answers,
        subject=subject,
        training=splits.training,
        split=splits.split,
        progress=show,
        chosen=chosen,
        untrained=(_untrained_records(model, seed, *few) for seed in seeds),
    )
    return Scores(model.name, evidence, measurement, untested, unread_by(model, splits.measured))


def read_splits(source: Data, split: str, items: int | None) -> EvaluationSplits:
    """Load the training, development and evaluated split of a corpus.

    Development items whose text and pronoun also occur in the evaluated split are removed. `items`, if given, is the
    approximate number of items per split, as in `score`.

    Raises:
        UserError: the data cannot be read or have no pronouns with candidates, the development or the evaluated split
            is empty, or every development item is also in the evaluated split.
    """
    if isinstance(source, TextCorpus):
        raise UserError(f"data ({source.kind}) holds texts without pronoun questions")
    corpus = load_corpus(source)
    training, development, measured = (_draw(source, corpus.examples(name), items) for name in ("train", "dev", split))
    for name, examples in (("dev", development), (split, measured)):
        if not examples:
            raise UserError(f"split ({name}) of data={source.kind} holds no items")
    reported = {(example.text, example.pronoun) for example in measured}
    others = [example for example in development if (example.text, example.pronoun) not in reported]
    if not others:
        raise UserError(
            f"data={source.kind}: every development sentence is also in the measured split ({split}), so no head can "
            "be chosen on other sentences"
        )
    return EvaluationSplits(training, others, measured, split)


def pronoun_records(model: AnyModel, examples: Sequence[Example]) -> tuple[list[AttentionRecord], Answers | None]:
    """Return the attention rows of the examples' pronouns, and the answers of a run's prediction head.

    The answers are None for a `transformers` model, and for a run whose prediction head does not score candidates.

    Raises:
        UserError: the model cannot process a text, or has no attention maps.
    """
    if not isinstance(model, OpenRun):
        return list(model.records(examples)), None
    captured = capture_run(model.run, examples)
    return captured.records, captured.answers


def _subject(model: AnyModel, examples: Sequence[Example], most: int) -> tuple[Subject | None, str | None]:
    """Return a model with about `most` examples for the causal tests, or else the reason why they are impossible."""
    if reason := why_untested(model):
        return None, reason.translated()
    try:
        testable = sample_quads(testable_items(examples), most)
        if not testable:
            return None, UserError(NOTHING_TO_ASK).translated()
        if isinstance(model, OpenRun):
            return run_subject(model.run, testable), None
        from anaphora.hf.editable import TransformersLanguageModel

        subject = LanguageModelSubject(TransformersLanguageModel(model), testable)
        subject.scores()  # raises an error if its logits are not finite
        return subject, None
    except UserError as error:
        return None, error.translated()


def unread_by(model: AnyModel, examples: Sequence[Example]) -> UnreadMentions | None:
    """Return the pronouns and candidates that are not entirely in a model's vocabulary; None if there are none.

    Raises:
        UserError: a `transformers` model cannot process a text, for instance because it is too long.
    """
    return unread_mentions(model.run.tokenizer.encode if isinstance(model, OpenRun) else model.tokenize, examples)


def why_untested(model: AnyModel) -> UserError | None:
    """Return an error that says why the causal tests are impossible for a model; None if they are possible."""
    if isinstance(model, OpenRun):
        return why_unanswered(model.run)
    from anaphora.hf.editable import why_no_answer

    return why_no_answer(model)


def _untrained_records(
    model: AnyModel, seed: int, *splits: Sequence[Example]
) -> tuple[list[AttentionRecord], list[AttentionRecord]]:
    """Return the attention rows of a randomly initialised model on the development and the evaluated items."""
    at_start = model.untrained(seed)
    first, second = (pronoun_records(at_start, examples)[0] for examples in splits)
    return first, second


def _draw(source: Data, examples: list[Example], most: int | None) -> list[Example]:
    """Sample approximately `most` examples; return all if `most` is None.

    Examples of the same text (in a coreference corpus) or of the same quad (in other corpora) are kept together.
    """
    if most is None:
        return examples
    if isinstance(source, CoreferenceCorpus):
        return [examples[number] for number in sample_groups([example.text for example in examples], most)]
    return sample_quads(examples, most)
