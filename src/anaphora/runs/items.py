"""The items that a command works on, as the model of a run reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, sample_quads
from anaphora.data.store import load as load_corpus
from anaphora.runs.directory import Run
from anaphora.settings.data import Data, TextCorpus
from anaphora.settings.model.encoder import check_length


@dataclass(frozen=True)
class EvaluationSplits:
    """The examples that a command works on."""

    training: list[Example]
    development: list[Example]
    measured: list[Example]
    split: str


def evaluation_splits(run: Run, split: str, data: Data | None = None, items: int | None = None) -> EvaluationSplits:
    """The splits that a command works on.

    Args:
        run: whose model answers.
        split: what is measured, beside training and development.
        data: where the items come from; by default the run's own data.
        items: at most so many of each split, by default as many as the run was limited to.

    Raises:
        UserError: the data ask no question about a pronoun, or the split is empty.
    """
    source: Data = data or run.config.data
    if isinstance(source, TextCorpus):
        subject = f"data={source.kind}" if data else f"this run answers no pronoun question: its data={source.kind}"
        raise UserError(
            f"{subject} holds texts without pronoun questions; name others, for instance data=gap data.path=..."
        )
    corpus = load_corpus(source)
    limit = items or run.config.trainer.limit_items
    splits = {}
    for name in ("train", "dev", split):
        examples = corpus.examples(name)
        splits[name] = sample_quads(examples, limit) if limit else examples
    if not splits[split]:
        raise UserError(f"split ({split}) holds no items")
    return EvaluationSplits(splits["train"], splits["dev"], splits[split], split)


def encode(run: Run, examples: Sequence[Example]) -> EncodedSplit:
    """Examples as the run's model reads them."""
    encoded = EncodedSplit(examples, run.tokenizer)
    check_length(run.config.model, encoded.max_tokens())
    return encoded
