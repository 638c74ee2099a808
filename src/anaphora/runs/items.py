"""Items on which a run is trained or evaluated, and hashes to detect outdated results.

Each hash has 16 hexadecimal digits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from anaphora.base.code import code_digest
from anaphora.base.errors import UserError
from anaphora.base.files import file_digest
from anaphora.base.tensors import arrays_digest
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.corpora.division import is_hub
from anaphora.data.example import Example, Question, sample_groups, to_record
from anaphora.data.store import DECODED_AT_ONCE, Corpus
from anaphora.data.store import load as load_corpus
from anaphora.data.text import Text
from anaphora.runs import shipped
from anaphora.runs.directory import Run, distinct_tensors, training_record
from anaphora.settings.data import Data, ExternalCorpus, TextCorpus
from anaphora.settings.model.encoder import check_length

OWN_DATA = "the run's own"
"""Value of the data setting in the record of a result (`claimed`) that was measured on the run's own data."""


@dataclass(frozen=True)
class EvaluationSplits:
    """Training and development examples, and the examples of the split on which a command evaluates a run.

    `split` is the name of this split, and `measured` has its examples. If the number of items is limited, splits are
    sampled.
    """

    training: Sequence[Example]
    development: Sequence[Example]
    measured: list[Example]
    split: str


def corpus_of(run: Run, data: Data | None = None) -> Corpus:
    """Return the corpus with the settings `data`, or by default the corpus on which a run was trained.

    Raises:
        UserError: the training items of the run's own corpus have changed since training.
    """
    return load_corpus(data) if data else read_training_corpus(run.files.directory, run.config.data)


def read_training_corpus(directory: Path, data: Data) -> Corpus:
    """Return the corpus on which a run was trained, given the run's directory and data settings.

    Raises:
        UserError: the corpus does not exist or cannot be read, or its training items have changed.
    """
    if isinstance(data, ExternalCorpus) and not is_hub(data.path) and not Path(data.path).expanduser().exists():
        cause = "is not there; work in the folder where it was trained, or"
        if directory == shipped.FOLDER:
            cause = "does not come with the package;"
        raise UserError(
            f"data.path ({data.path}) of run {directory.name} {cause} measure the run alone (run=...) on other data "
            "(data=... data.path=...)"
        )
    corpus = load_corpus(data)
    check_training_items(directory, data, corpus)
    return corpus


def check_training_items(directory: Path, data: Data, corpus: Corpus) -> None:
    """Check that a corpus still has the training items of a run, since a run must not be tested on its training items.

    A run whose `training.json` is missing or does not record the training items is not checked.
    """
    recorded = training_record(directory).get("training_examples")
    if recorded is not None and recorded != corpus.training_digest():
        raise UserError(other_training_items(data, directory.name))


def other_training_items(data: Data, run: str) -> str:
    """Return the error message for data that no longer contain the items on which a run was trained."""
    return (
        f"data ({data.path_or_kind()}) no longer gives the training items of run {run}; restore the file, "
        "work in the folder where it was trained, or train again"
    )


def evaluation_splits(run: Run, split: str, data: Data | None = None, items: int | None = None) -> EvaluationSplits:
    """Return the training, development and evaluation examples that a command uses.

    Args:
        data: settings of the corpus; by default those of the corpus on which the run was trained.
        items: approximate number of items per split; groups of items are not divided. By default, the limit in the
            run's settings, or all items if there is no limit.

    Raises:
        UserError: the data have no pronoun items or cannot be read, the split is empty, or the run's data changed.
    """
    source: Data = data or run.config.data
    if isinstance(source, TextCorpus):
        subject = f"data={source.kind}" if data else f"this run answers no pronoun question: its data={source.kind}"
        raise UserError(
            f"{subject} holds texts without pronoun questions; name others, for instance data=gap data.path=..."
        )
    corpus = corpus_of(run, data)
    limit = items or run.config.trainer.limit_items

    # Few commands read the training split, which is many times as large as the others.
    stored = {
        name: StoredExamples(corpus, name, sample_groups(corpus.groups(name), limit) if limit else None)
        for name in dict.fromkeys(("train", "dev", split))
    }
    measured = list(stored[split])
    if not measured:
        raise UserError(f"split ({split}) holds no items")
    return EvaluationSplits(stored["train"], stored["dev"], measured, split)


def encode(run: Run, examples: Sequence[Example]) -> EncodedSplit:
    """Encode examples for a run's model; raise a UserError if one is longer than the model allows."""
    encoded = EncodedSplit(examples, run.tokenizer)
    check_length(run.config.model, encoded.max_tokens())
    return encoded


def analysis_code_digest(*more: str) -> str:
    """Return a hash of torch's version and of the code of `anaphora.analysis`, the modules `more` and their imports."""
    return hashlib.sha256(f"{code_digest('anaphora.analysis', *more)} {torch.__version__}".encode()).hexdigest()[:16]


def weights_digest(run: Run) -> str:
    """Return a hash of the file with a run's weights.

    For pretrained weights, or if there is no such file, the result is `model_digest`. A pretrained model therefore has
    the same hash in a local folder and on the Hugging Face Hub.
    """
    has_file = not run.is_pretrained and run.files.weights.exists()
    return file_digest(run.files.weights)[:16] if has_file else model_digest(run)


def model_digest(run: Run) -> str:
    """Return a hash of a run's weights, model settings and tokenizer; it does not depend on the format of the files."""
    weights = arrays_digest({name: tensor.numpy() for name, tensor in distinct_tensors(run.model).items()})
    return hashlib.sha256(f"{weights} {run.config.model!r} {run.tokenizer.dumps()}".encode()).hexdigest()[:16]


def examples_digest(examples: Iterable[Example | Text]) -> str:
    """Return a hash of the content of items; it does not depend on the format of the files that contain them."""
    items = hashlib.sha256()
    for example in examples:
        record = to_record(example) if isinstance(example, Example) else asdict(example)
        items.update(json.dumps(record, sort_keys=True).encode())
    return items.hexdigest()[:16]


class StoredExamples(Sequence[Example]):
    """Examples of a cached split, decoded together on first access; only those with the indices `numbers` if given."""

    def __init__(self, corpus: Corpus, split: str, numbers: Sequence[int] | None = None) -> None:
        self._corpus, self._split, self._numbers = corpus, split, numbers

    def __getitem__(self, index: Any) -> Any:
        return self._examples[index]

    def __iter__(self) -> Iterator[Example]:
        return iter(self._examples)

    def __len__(self) -> int:
        return len(self._corpus.splits[self._split]) if self._numbers is None else len(self._numbers)

    @cached_property
    def _examples(self) -> list[Example]:
        return self._corpus.examples(self._split, self._numbers)

    def questions(self) -> list[Question]:
        """Return, for each example, its text and the character offset of the pronoun, without decoding the examples."""
        return self._corpus.questions(self._split, self._numbers)

    def counts(self) -> list[tuple[int, int]]:
        """Return the numbers of candidates and of antecedents of each example, without decoding the examples."""
        return self._corpus.counts(self._split, self._numbers)


class StreamedExamples(StoredExamples):
    """Examples of a cached split that are decoded in chunks in every iteration, and not kept in memory."""

    def __getitem__(self, index: Any) -> Any:
        numbers = (range(len(self)) if self._numbers is None else self._numbers)[index]
        if isinstance(numbers, int):
            return self._corpus.examples(self._split, [numbers])[0]
        return self._corpus.examples(self._split, numbers)

    def __iter__(self) -> Iterator[Example]:
        for start in range(0, len(self), DECODED_AT_ONCE):
            yield from self[start : start + DECODED_AT_ONCE]


def questions_of(examples: Sequence[Example]) -> list[Question]:
    """Return, for each example, its text and the character offset of the pronoun; cached examples are not decoded."""
    if isinstance(examples, StoredExamples):
        return examples.questions()
    return [example.question for example in examples]


def counts_of(examples: Sequence[Example]) -> list[tuple[int, int]]:
    """Return the numbers of candidates and of antecedents of each example; cached examples are not decoded."""
    if isinstance(examples, StoredExamples):
        return examples.counts()
    return [(len(example.candidates), len(example.antecedents)) for example in examples]
