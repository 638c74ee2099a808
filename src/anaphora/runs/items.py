"""The items that a command works on, as the model of a run reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, sample_quads
from anaphora.data.store import Corpus
from anaphora.data.store import load as load_corpus
from anaphora.runs.directory import Run, training_record
from anaphora.settings.data import Data, ExternalCorpus, TextCorpus
from anaphora.settings.model.encoder import check_length


@dataclass(frozen=True)
class EvaluationSplits:
    """The examples that a command works on."""

    training: list[Example]
    development: list[Example]
    measured: list[Example]
    split: str


def corpus_of(run: Run) -> Corpus:
    """The corpus that a run was trained on.

    Raises:
        UserError: its file has changed, or another one lies where the command runs: items that the run was trained on
            could be taken for unseen ones.
    """
    corpus = load_corpus(run.config.data)
    if isinstance(run.config.data, ExternalCorpus):
        recorded = training_record(run.directory).get("training_texts")
        if recorded is not None and recorded != corpus.training_texts_digest():
            raise UserError(
                f"data.path ({run.config.data.path}) does not hold the training split of run {run.name}; restore the "
                "file, work in the folder of the training, or measure other items with data= and output="
            )
    return corpus


def evaluation_splits(run: Run, split: str, data: Data | None = None, items: int | None = None) -> EvaluationSplits:
    """The splits that a command works on.

    Args:
        run: whose model answers.
        split: what is measured, beside training and development.
        data: where the items come from; by default the run's own data.
        items: at most so many of each split, by default as many as the run was limited to.

    Raises:
        UserError: the data ask no question about a pronoun, the split is empty, or the run's own data have changed.
    """
    source: Data = data or run.config.data
    if isinstance(source, TextCorpus):
        subject = f"data={source.kind}" if data else f"this run answers no pronoun question: its data={source.kind}"
        raise UserError(
            f"{subject} holds texts without pronoun questions; name others, for instance data=gap data.path=..."
        )
    corpus = load_corpus(data) if data else corpus_of(run)
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
