"""Model cards of runs and dataset cards of corpora: README.md files in the format of the Hugging Face Hub."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table

from anaphora.analysis.evidence.evidence import Evidence
from anaphora.report.headline import headline_sentence, headline_table
from anaphora.report.wording import kind_groups

CARD = "README.md"
"""File name of a card."""
_TAGS = ("anaphora", "attention", "coreference", "pronoun-resolution", "interpretability")

_SENTENCES = {
    "en": ("Anna helped Emma because she was weak.", '"she", ["Anna", "Emma"]'),
    "zh": ("小红帮助美玲，因为她很虚弱。", '"她", ["小红", "美玲"]'),
}
"""Sentence in the usage example, with its pronoun and candidates, keyed by language."""


@dataclass(frozen=True, kw_only=True)
class CardFacts:
    """Properties of a run that its model card states beside the scores.

    Attributes:
        languages: language codes such as "en".
        licence: identifier of the weights' licence on the Hugging Face Hub; None if no licence is stated.
        architecture: properties of the encoder, by name.
        training: data and settings of the training, by name.
        answers: whether the model predicts an antecedent.
    """

    name: str
    languages: tuple[str, ...]
    licence: str | None
    architecture: Mapping[str, str]
    training: Mapping[str, str]
    answers: bool


def model_card(facts: CardFacts, evidence: Sequence[Evidence]) -> str:
    """Return the model card as Markdown with metadata for the Hugging Face Hub.

    `evidence` has the results of the run, or one element per language if a head was chosen for each language. If
    `evidence` is empty, the card has no scores.
    """
    parts = [
        _front_matter(
            {
                "library_name": "transformers",
                "language": list(facts.languages),
                "license": facts.licence,
                "tags": list(_TAGS),
            }
        ),
        f"# {facts.name}",
        "A small Transformer encoder, trained and measured with Anaphora, whose attention from pronouns to their "
        "antecedents can be read, scored and tested.",
        _bullets(facts.architecture),
        "## Use",
        _usage(facts),
        "## Trained on",
        _bullets(facts.training),
        "## Scores",
        *([part for each in evidence for part in _scores(each)] or ["Nothing has been measured on this run."]),
        "## Limits",
        _bullets(_limits(facts, evidence)),
        "## Licence",
        facts.licence or "Whoever published these weights has stated no licence.",
    ]
    return "\n\n".join(parts) + "\n"


def corpus_card(
    settings: Mapping[str, str],
    terms: str,
    splits: Sequence[str],
    columns: Mapping[str, str],
    counts: Sequence[Mapping[str, object]],
) -> str:
    """Return the dataset card of a corpus as Markdown, with metadata for the library `datasets` on each split's file.

    Args:
        settings: settings of the corpus, keyed by name; the value of "data" is the name of the corpus, such as "gap".
        terms: licence of the corpus.
        splits: names of the splits, each stored as NAME.parquet.
        columns: description of each column, by name.
        counts: rows of the table of counts; columns without any value are left out.
    """
    fields = {
        "configs": [
            {"config_name": "default", "data_files": [{"split": split, "path": f"{split}.parquet"} for split in splits]}
        ],
        "tags": list(_TAGS),
    }
    header = [name for name in (counts[0] if counts else ()) if any(row[name] not in ("", None) for row in counts)]
    parts = [
        _front_matter(fields),
        f"# {settings['data']}",
        f"Made with Anaphora, `anaphora corpus {' '.join(f'{name}={value}' for name, value in settings.items())}`.",
        "## Columns",
        _bullets({f"`{name}`": meaning for name, meaning in columns.items()}),
        "## Counts",
        _markdown_table(header, [[str(row[name]) for name in header] for row in counts]),
        "## Licence",
        terms,
    ]
    return "\n\n".join(parts) + "\n"


def _front_matter(fields: Mapping[str, object]) -> str:
    # JSON is valid YAML, and its quotes allow a colon in a name.
    lines = (f"{name}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items() if value)
    return "\n".join(("---", *lines, "---"))


def _usage(facts: CardFacts) -> str:
    text, question = _SENTENCES["zh" if facts.languages == ("zh",) else "en"]
    answer = f'\nrun.answer("{text}", {question})' if facts.answers else ""
    return (
        "`FOLDER` is this folder on your disk.\n\n```python\n"
        "import anaphora.hf  # in a checkout of Anaphora: pip install '.[transformers]'\n"
        "from transformers import AutoModel, AutoTokenizer\n\n"
        'model, tokenizer = AutoModel.from_pretrained("FOLDER"), AutoTokenizer.from_pretrained("FOLDER")\n'
        f'inputs = tokenizer("{text}", return_tensors="pt")\n'
        "maps = model(**inputs, output_attentions=True).attentions\n\n"
        'run = anaphora.load("FOLDER")  # the same with its prediction head; also "hf://owner/name"\n'
        f'run.attention("{text}").page().open(){answer}\n```'
    )


def _scores(evidence: Evidence) -> list[str]:
    table = headline_table(evidence)
    parts = [f"{table.title}.", _markdown(table), headline_sentence(evidence)]
    verdicts = [f"{group.label}: {group.cell.verdict}" for group in kind_groups(evidence.verdict)]
    parts.append(f"Verdict: {'; '.join(verdicts)}." if verdicts else "Verdict: none, for no causal test was made.")
    return parts


def _markdown(table: Table) -> str:
    header = [str(column.header).replace("\n", " ") for column in table.columns]
    rows = zip(*(column.cells for column in table.columns), strict=True)
    return _markdown_table(header, [[str(cell).strip() for cell in row] for row in rows])


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = (header, ["---"] * len(header), *rows)
    return "\n".join(f"| {' | '.join(map(_table_cell, line))} |" for line in lines)


def _table_cell(text: str) -> str:
    """Return text on a single line, escaped for a cell of a Markdown table."""
    return re.sub("<(?=[A-Za-z/!?])", "&lt;", " ".join(text.split())).replace("|", "\\|")


def _limits(facts: CardFacts, evidence: Sequence[Evidence]) -> dict[str, str]:
    limits = {
        "One run": "these are one run's numbers. Another seed gives others; intervals are over templates or groups of "
        "items, not over seeds.",
        "Attention": "where a head attends is not why a model answers; that takes the causal tests of a report.",
        "Other texts": "scores hold for items like those measured. Words that the vocabulary lacks are split into "
        "subwords or unknown.",
    }
    if any(each.reads_candidates for each in evidence):
        limits["Answers"] = "the prediction head reads the candidates' own states and needs no attention between them."
    if any(each.head_is_supervised for each in evidence):
        limits["Supervision"] = (
            "the labels trained the attention of the reported head itself; its maps are no evidence."
        )
    if not facts.answers:
        limits["Answers"] = "this run names no antecedent; it has hidden states and attention maps alone."
    return limits


def _bullets(facts: Mapping[str, str]) -> str:
    return "\n".join(f"- **{name}**: {value}" for name, value in facts.items())
