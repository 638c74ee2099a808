"""A model's heads against the antecedents of a corpus: chosen on its development split, measured on another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.analysis.causal.causal_tests import NOTHING_TO_ASK, run_subject, testable_items, why_unanswered
from anaphora.analysis.causal.language_models.subject import LanguageModelSubject
from anaphora.analysis.causal.subjects import Subject
from anaphora.analysis.evidence.evidence import Evidence, every_group
from anaphora.analysis.evidence.exhibits import development_accuracy
from anaphora.analysis.evidence.headline import Measurement, Progress, no_progress, untrained_items, untrained_seeds
from anaphora.analysis.evidence.other_models import evidence_from_records
from anaphora.analysis.maps.capture import capture_run
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.results.scores import ALL, Head, existing_head
from anaphora.analysis.scores.heads import mean_chance
from anaphora.api.html import AttentionPage
from anaphora.api.models import open_any, untrained_model
from anaphora.api.runs import OpenRun
from anaphora.base.checks import PAGE_ENDINGS, at_least, file_ending, file_name, whole_number
from anaphora.base.errors import UserError
from anaphora.base.locale.translation import _
from anaphora.data.example import Example, sample_groups, sample_quads
from anaphora.data.store import load as load_corpus
from anaphora.data.tokens.unread import UnreadMentions, unread_mentions
from anaphora.runs.items import EvaluationSplits
from anaphora.settings.data import CoreferenceCorpus, Data, TextCorpus
from anaphora.settings.typed import construct

if TYPE_CHECKING:
    import pandas

    from anaphora.hf.reader import TransformersModel

CAUSAL_ITEMS = 100
"""About so many main items are under the causal tests by default: every test is a pass over all of them."""


@dataclass(frozen=True, eq=False)
class Scores:
    """How well the heads of a model attend to the antecedents of a corpus.

    Attributes:
        name: the name of the model.
        evidence: all scores of the chosen head, with intervals, shortcuts, corrected p-values and causal tests, as in
            metrics.json.
        measurement: the scores of every head, from which `evidence` is made.
        untested: why there are no causal tests, in one line; None if they were made, or if none were asked for.
        unread: the measured items with a pronoun or candidate that the model's vocabulary does not have; None if there
            are none.
    """

    name: str
    evidence: Evidence
    measurement: Measurement
    untested: str | None = None
    unread: UnreadMentions | None = None

    @property
    def head(self) -> Head:
        """Return the head that was chosen on the development split."""
        return Head(self.evidence.head.layer, self.evidence.head.head)

    def table(self) -> pandas.DataFrame:
        """Return the scores of the chosen head, one row for all items of each language and one per kind of cue.

        The columns give the candidate accuracy with its interval, chance, the best shortcut, the attention mass on the
        antecedent, and the task accuracy.
        """
        import pandas

        return pandas.DataFrame(list(self._rows()))

    def page(self, path: str | Path) -> AttentionPage:
        """Write a report on the model as one HTML file.

        Args:
            path: the file to write, whose name must end in .html.

        Raises:
            UserError: the path does not end in .html.
        """
        from anaphora.report.figures.pictures import development_chance
        from anaphora.report.page.elements import ReportRun
        from anaphora.report.page.write import write_report

        written = file_name("path", path)
        file_ending("path", written, *PAGE_ENDINGS)
        run = ReportRun(
            name=self.name,
            evidence=self.evidence,
            heads=development_accuracy(self.measurement, self.evidence.languages),
            heads_chance=development_chance(self.measurement.development, self.evidence.languages),
            chance=mean_chance(self.measurement.development),
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
        parts = (
            f"{row['language']} {row['candidate_accuracy']:.1%} of {row['items']} (chance {row['chance']:.1%})"
            for row in whole
            if row["candidate_accuracy"] is not None
        )
        untested = f"; no causal tests: {self.untested}" if self.untested else ""
        unread = f"; not in the vocabulary: {self.unread.listed}" if self.unread else ""
        notes = f"{'; '.join(parts)}{untested}{unread}"
        return f"<scores of {self.name}, layer {self.head.layer} head {self.head.head}: {notes}>"


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
    """Choose the head that attends to antecedents best on the development split, and measure it on another split.

    The scores come with those of shortcuts (simple rules, some of which are fitted on the training split), bootstrap
    intervals and a corrected permutation test. If the model can be asked which candidate a pronoun refers to, the
    causal tests are made too; otherwise `Scores.untested` says why not. No model is trained here, so no verdict can be
    "supported": that would need the trained controls of a run.

    Args:
        model: the model, given as in `anaphora.attention`.
        data: the name of the corpus, as in the setting `data`, such as "controlled", "dpr" or "jsonl".
        path: the file or folder of the corpus; the built-in corpus needs none.
        split: the split on which the head is measured, usually "test".
        items: about how many items of each split to use, taken as whole quads (or as whole passages of documents); by
            default all of them.
        tokenizer: the tokenizer that belongs to `model`, if that is a loaded model of `transformers`.
        causal_items: about how many main items, taken as whole quads, to use for the causal tests; 0 for no causal
            tests.
        untrained: how many randomly initialised models of the same shape to measure as a control.
        settings: further settings of the corpus, such as `dev_share=0.2`.

    Raises:
        UserError: there is no such model or corpus, a setting or a number is wrong, or a split holds no items.
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
    model: OpenRun | TransformersModel,
    splits: EvaluationSplits,
    *,
    causal_items: int = CAUSAL_ITEMS,
    untrained: int = 0,
    chosen: Head | None = None,
    progress: Progress = no_progress,
) -> Scores:
    """Return the scores of an open model on given items.

    Args:
        splits: as `read_splits` gives them.
        chosen: a head fixed beforehand instead of the one that development chooses.
        progress: is called with the name of each stage.

    Raises:
        UserError: there is no such head, or no main item can be scored.
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
    """Return the examples of a corpus; development sentences that are measured too are left out.

    Args:
        source: the corpus.
        split: what is measured.
        items: at most so many of each split, whole quads together, or of documents whole passages.

    Raises:
        UserError: the data hold no pronoun questions, or a split holds no items.
    """
    if isinstance(source, TextCorpus):
        raise UserError(f"data ({source.kind}) holds texts without pronoun questions")
    corpus = load_corpus(source)
    training, development, measured = (_some(source, corpus.examples(name), items) for name in ("train", "dev", split))
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


def pronoun_records(
    model: OpenRun | TransformersModel, examples: Sequence[Example]
) -> tuple[list[AttentionRecord], list[int] | None]:
    """Return the pronouns' rows, and the answers of a run that has any."""
    if not isinstance(model, OpenRun):
        return list(model.records(examples)), None
    captured = capture_run(model.run, examples)
    return captured.records, None if captured.answers is None else captured.answers.candidates.tolist()


def _subject(
    model: OpenRun | TransformersModel, examples: Sequence[Example], most: int
) -> tuple[Subject | None, str | None]:
    """Return the subject of the causal tests, or one line on why there is none."""
    if reason := why_untested(model):
        return None, reason.translated()
    try:
        testable = _testable_quads(examples, most)
        if isinstance(model, OpenRun):
            return run_subject(model.run, testable), None
        from anaphora.hf.language_model import TransformersLanguageModel

        return LanguageModelSubject(TransformersLanguageModel(model), testable), None
    except UserError as error:
        return None, error.translated()


def _testable_quads(examples: Sequence[Example], most: int) -> list[Example]:
    testable = sample_quads(testable_items(examples), most)
    if not testable:
        raise UserError(NOTHING_TO_ASK)
    return testable


def unread_by(model: OpenRun | TransformersModel, examples: Sequence[Example]) -> UnreadMentions | None:
    """Return which pronouns and candidates are not in the vocabulary of a model; None if all of them are.

    Raises:
        UserError: a text does not fit the model.
    """
    return unread_mentions(model.run.tokenizer.encode if isinstance(model, OpenRun) else model.tokenize, examples)


def why_untested(model: OpenRun | TransformersModel) -> UserError | None:
    """Return why a model answers no pronoun question; None if causal tests are possible."""
    if isinstance(model, OpenRun):
        return why_unanswered(model.run)
    from anaphora.hf.language_model import why_no_answer

    return why_no_answer(model)


def _untrained_records(
    model: OpenRun | TransformersModel, seed: int, *splits: Sequence[Example]
) -> tuple[list[AttentionRecord], list[AttentionRecord]]:
    """Return the pronouns' rows of a model at its random start, on development items and on measured ones."""
    at_start = untrained_model(model, seed)
    first, second = (pronoun_records(at_start, examples)[0] for examples in splits)
    return first, second


def _some(source: Data, examples: list[Example], most: int | None) -> list[Example]:
    """Sample about this many examples: whole quads, or whole passages, so that every document has some."""
    if most is None:
        return examples
    if isinstance(source, CoreferenceCorpus):
        return [examples[number] for number in sample_groups([example.text for example in examples], most)]
    return sample_quads(examples, most)
