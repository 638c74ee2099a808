"""A model's heads against the antecedents of a corpus: chosen on its development split, measured on another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.analysis.evidence.other_models import evidence_from_records
from anaphora.analysis.evidence.schema.evidence import Evidence, every_group
from anaphora.analysis.maps.capture import capture_run
from anaphora.analysis.maps.record import AttentionRecord
from anaphora.analysis.scores.heads import Head
from anaphora.api.html import AttentionPage
from anaphora.api.models import open_any
from anaphora.api.runs import OpenRun
from anaphora.base.errors import UserError
from anaphora.data.example import Example, sample_quads
from anaphora.data.store import load as load_corpus
from anaphora.report.page.elements import ReportRun
from anaphora.report.page.write import write_report
from anaphora.settings.data import Data, TextCorpus
from anaphora.settings.typed import construct

if TYPE_CHECKING:
    import pandas

    from anaphora.hf.reader import TransformersModel


@dataclass(frozen=True, eq=False)
class Scores:
    """What was measured.

    Attributes:
        name: of the model.
        evidence: every score, with intervals, shortcuts and corrected p, as metrics.json has them.
    """

    name: str
    evidence: Evidence

    @property
    def head(self) -> Head:
        """The head that development chose."""
        return Head(self.evidence.head.layer, self.evidence.head.head)

    def table(self) -> pandas.DataFrame:
        """A line for each language, as a whole and by kind of cue."""
        import pandas

        return pandas.DataFrame(list(self._rows()))

    def page(self, path: str | Path) -> AttentionPage:
        """The report on the model as one HTML file."""
        written = Path(path)
        write_report(written, [ReportRun(name=self.name, evidence=self.evidence)], {"sentences": []}, self.name)
        return AttentionPage(written)

    def _rows(self) -> Iterator[dict[str, Any]]:
        for language, kind, cell in every_group(self.evidence.scores):
            shortcuts = {name: value for name, value in cell.baselines.items() if value is not None}
            best = max(shortcuts, key=lambda name: shortcuts[name], default=None)
            low, high = cell.intervals.candidate_accuracy or (None, None)
            yield {
                "language": language,
                "kind": kind,
                "items": cell.items,
                "candidate_accuracy": cell.candidate_accuracy,
                "low": low,
                "high": high,
                "chance": cell.chance,
                "best_shortcut": best,
                "best_shortcut_accuracy": None if best is None else shortcuts[best],
                "antecedent_mass": cell.antecedent_mass,
                "task_accuracy": cell.task_accuracy,
            }

    def __repr__(self) -> str:
        whole = [row for row in self._rows() if row["kind"] == "main"] or list(self._rows())
        parts = (
            f"{row['language']} {row['candidate_accuracy']:.1%} of {row['items']} (chance {row['chance']:.1%})"
            for row in whole
            if row["candidate_accuracy"] is not None
        )
        return f"<scores of {self.name}, layer {self.head.layer} head {self.head.head}: {'; '.join(parts)}>"


def score(
    model: Any,
    data: str = "controlled",
    path: str | Path | None = None,
    split: str = "test",
    items: int | None = None,
    tokenizer: Any = None,
    **settings: Any,
) -> Scores:
    """Choose the head that attends to antecedents best on the development split, and measure it on another.

    With it come the shortcuts, fitted on the training split, bootstrap intervals and the corrected permutation test.
    Nothing is trained, so that no verdict can be "supported": that needs the trained controls of a run.

    Args:
        model: as in `attention`.
        data: the corpus by the name of its setting, such as "controlled", "dpr" or "jsonl".
        path: its file or folder; the built-in corpus needs none.
        split: what is measured.
        items: at most so many of each split, whole quads together.
        tokenizer: of a loaded model of `transformers`.
        settings: further settings of the data, such as `dev_share=0.2`.

    Raises:
        UserError: there is no such model or corpus, a setting is wrong, or a split holds no items.
    """
    opened = open_any(model, tokenizer)
    plain = {"kind": data, **({} if path is None else {"path": str(path)}), **settings}
    source = construct(Data, plain, "data")
    if isinstance(source, TextCorpus):
        raise UserError(f"data ({data}) holds texts without pronoun questions")
    corpus = load_corpus(source)
    splits = {name: _some(corpus.examples(name), items) for name in ("train", "dev", split)}
    for name in ("dev", split):
        if not splits[name]:
            raise UserError(f"split ({name}) of data={data} holds no items")
    measured, answers = _records(opened, splits[split])
    _, evidence = evidence_from_records(
        opened.name, _records(opened, splits["dev"])[0], measured, answers, training=splits["train"], split=split
    )
    return Scores(opened.name, evidence)


def _records(
    model: OpenRun | TransformersModel, examples: Sequence[Example]
) -> tuple[list[AttentionRecord], list[int] | None]:
    """The pronouns' rows, and the answers of a run that has any."""
    if not isinstance(model, OpenRun):
        return list(model.records(examples)), None
    captured = capture_run(model.run, examples)
    return captured.records, None if captured.answers is None else captured.answers.candidates.tolist()


def _some(examples: list[Example], most: int | None) -> list[Example]:
    return sample_quads(examples, most) if most else examples
