"""Training and validation items of a run: texts, with or without labels, or pronouns with candidate antecedents.

They are encoded with the vocabulary of the run and divided into batches. In control runs, the antecedents are replaced
by random candidates or by the nearest candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
import pytorch_lightning as lightning

from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.data.batches.batching import MinimalPairs, TrainingBatches, evaluation_batches, masked_for_evaluation
from anaphora.data.batches.encoded import ENCODED_AT_ONCE, EncodedSplit, Indices
from anaphora.data.batches.texts import EncodedTexts
from anaphora.data.example import Example, sample_quads
from anaphora.data.names import with_exchanged_names, with_other_names
from anaphora.data.store import Corpus
from anaphora.data.store import load as load_corpus
from anaphora.data.text import evenly_sampled
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.data.tokens.vocabulary import DroppingTokenizer
from anaphora.runs.items import StreamedExamples, counts_of, questions_of
from anaphora.settings.data import Data, ExternalCorpus, TextCorpus
from anaphora.settings.model.encoder import check_length
from anaphora.settings.model.position import Learned
from anaphora.settings.model.prediction import Label, NoPrediction, slots_of
from anaphora.settings.run import Config
from anaphora.settings.vocabulary import WordVocabulary
from anaphora.training.losses import share_of_rank

AGREEMENT_TYPES = ("gender", "number", "animacy")
"""Types of cue, that is, of what determines the antecedent, in which only the antecedent agrees with the pronoun."""


class TrainingData(NamedTuple):
    """Encoded data of a run, its tokenizer, and its settings with any labels that were found in the data.

    `items_digest` is a hash of the corpus's training items, to detect later changes of the data.
    """

    config: Config
    tokenizer: Tokenizer
    training: EncodedSplit
    validation: EncodedSplit
    items_digest: str


def prepare_texts(config: Config, known: Tokenizer | None) -> TrainingData:
    """Load and encode the texts of a corpus.

    Tokens are cached in a file, unless the tokenizer splits words at random. If labels are to be predicted and the
    settings do not list them, they are taken from the training split. `known` is the run's tokenizer; if it is None, a
    tokenizer is trained on this split.

    Raises:
        UserError: the training or development split is empty; there are fewer than two labels to predict, or a labelled
            development or test text is too long for the model; or no token of the development split is masked, so that
            no validation loss can select the best weights. Also the errors of `store.load` and `EncodedTexts`.
    """
    corpus = load_corpus(config.data)
    training, development = (
        evenly_sampled(corpus.texts(split), config.trainer.limit_items) for split in ("train", "dev")
    )
    for split, texts in (("train", training), ("dev", development)):
        if not texts:
            raise _empty_split(config.data, split)
    tokenizer = known or config.vocabulary.build([text.text for text in training], corpus.words)
    labels: list[str] = []
    prediction = config.task.prediction
    if isinstance(prediction, Label):
        labels = prediction.labels or sorted({text.label for text in training if text.label is not None})
        if len(labels) < 2:
            raise UserError(
                f"task.prediction=label needs texts of at least two labels; the training split has {labels}"
            )
        config = replace(config, task=replace(config.task, prediction=replace(prediction, labels=labels)))
    longest = config.batching.row_tokens
    encoded = EncodedTexts(training, _training_tokenizer(config, tokenizer), longest, labels)
    validation = EncodedTexts(development, tokenizer, longest, labels)
    if labels:  # report test texts with unknown labels now, not in evaluation
        test = evenly_sampled(corpus.texts("test"), config.trainer.limit_items)
        encoded_test = EncodedTexts(test, tokenizer, longest, labels)
        check_length(config.model, max(validation.max_tokens(), encoded_test.max_tokens()))
    validation.subsample(config.validation.items)
    if isinstance(prediction, NoPrediction) and config.validation.keep == "best":
        batches = _masked_validation(config, validation)
        if not any(len(batch.masked_positions) for batch in batches):
            raise UserError(
                f"data ({config.data.path_or_kind()}): no word of the dev split is masked at task.masked_lm="
                f"{config.task.masked_lm}, so that no weights are best; give more text in known words, or "
                "validation.keep=last"
            )
    return TrainingData(config, tokenizer, encoded, validation, corpus.training_digest())


def _masked_validation(config: Config, validation: EncodedSplit) -> Iterator[Batch]:
    batches = evaluation_batches(validation, config.batching, slots_of(config.task.prediction))
    return masked_for_evaluation(batches, config.task.masked_lm, validation.vocabulary)


def prepare_examples(config: Config, known: Tokenizer | None) -> TrainingData:
    """Load and encode the examples (pronouns with candidates) of a corpus.

    With `task.exchanged_names` or `task.other_names`, the training split also gets copies of its examples in which the
    candidates' names are exchanged or replaced by names from other items. `known` is the run's tokenizer; if it is
    None, a tokenizer is trained on the training split.

    Raises:
        UserError: the training or development split is empty; the model cannot process an item of some split; or an
            item for training or validation has more tokens than a batch may have. Also the errors of `store.load`.
    """
    corpus = load_corpus(config.data)
    training, development = _training_examples(corpus, config), _examples(corpus, "dev", config)
    # Report errors in the test split now, not in evaluation.
    test = sample_quads(corpus.examples("test"), config.trainer.limit_items)
    for examples in (training, development, test):
        check_candidates(config, examples)
    tokenizer = known or config.vocabulary.build([text for text, _ in questions_of(training)], corpus.words)
    training_tokenizer = _training_tokenizer(config, tokenizer)
    encoded = EncodedSplit(training, training_tokenizer, keeps_tokens=False)
    check_lengths(config, training, tokenizer, encoded.ids.lengths if training_tokenizer is tokenizer else None)
    for examples in (development, test):
        check_lengths(config, examples, tokenizer)
    validation = EncodedSplit(sample_quads(development, config.validation.items), tokenizer)
    for split in (encoded, validation):
        check_batches_hold(config, split)
    return TrainingData(config, tokenizer, encoded, validation, corpus.training_digest())


def _training_tokenizer(config: Config, tokenizer: Tokenizer) -> Tokenizer:
    """Return the tokenizer for training texts.

    If `vocabulary.dropout` is above 0, this tokenizer splits some words, chosen at random among the rarer ones, into
    subwords in each text.
    """
    share = config.vocabulary.dropout if isinstance(config.vocabulary, WordVocabulary) else 0.0
    return DroppingTokenizer(tokenizer, share, config.seed) if share else tokenizer


class TrainingDataModule(lightning.LightningDataModule):
    """LightningDataModule that divides training into rounds of `validation.every` steps, each followed by a validation.

    A round is an epoch for Lightning, and every checkpoint is written at the end of a round, so that only the number of
    completed steps is needed to resume a run.
    """

    def __init__(
        self, config: Config, training: EncodedSplit, validation: EncodedSplit, minimal_pairs: MinimalPairs | None
    ) -> None:
        super().__init__()
        self.config, self.validation = config, validation
        self.slots = slots_of(config.task.prediction)
        self.batches = TrainingBatches(
            training,
            config.batching,
            config.seed,
            self.slots,
            masked_share=config.task.masked_lm,
            own_share=config.task.own_token,
            minimal_pairs=minimal_pairs,
        )

    def train_dataloader(self) -> Iterable[Batch]:
        assert self.trainer is not None
        done = self.trainer.global_step
        end = min(self.config.steps, done + self.config.validation.every)
        rank, ranks = self.trainer.global_rank, self.trainer.world_size

        def batches() -> Iterator[Batch]:
            steps = self.batches.between(done, end)
            return steps if ranks == 1 else (share_of_rank(batch, rank, ranks) for batch in steps)

        return _Batches(end - done, batches)

    def val_dataloader(self) -> Iterable[Batch]:
        if isinstance(self.config.data, TextCorpus) and isinstance(self.config.task.prediction, NoPrediction):
            batches = _masked_validation(self.config, self.validation)
        else:
            batches = evaluation_batches(self.validation, self.config.batching, self.slots)
        assert self.trainer is not None
        # Only rank 0 validates, but Lightning needs a batch on the other ranks too.
        kept = list(batches if self.trainer.is_global_zero else islice(batches, 1))
        return _Batches(len(kept), lambda: kept)


class _Batches:
    """Iterable of batches with a length.

    It is not a list, because Lightning would take the elements of a list for several data loaders.
    """

    def __init__(self, count: int, batches: Callable[[], Iterable[Batch]]) -> None:
        self.count, self.batches = count, batches

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.batches())


def _training_examples(corpus: Corpus, config: Config) -> Sequence[Example]:
    """Return the training examples, followed by copies with exchanged or other names if the settings request them.

    If there are no copies and `trainer.limit_items` is not set, the examples are decoded one by one when they are used.
    """
    copies = config.task.exchanged_names or config.task.other_names
    if not (copies or config.trainer.limit_items) and "train" in corpus.filled_splits:
        return StreamedExamples(corpus, "train")
    training = _examples(corpus, "train", config)
    exchanged = [with_exchanged_names(example) for example in training] if config.task.exchanged_names else []
    return [*training, *exchanged, *with_other_names(training, config.task.other_names, config.seed)]


def _examples(corpus: Corpus, split: str, config: Config) -> list[Example]:
    examples = corpus.examples(split)
    if not examples:
        raise _empty_split(config.data, split)
    return sample_quads(examples, config.trainer.limit_items)


def minimal_pairs_of(training: EncodedSplit, config: Config) -> MinimalPairs:
    """Return the minimal pairs of the training split whose two items have different antecedents.

    Raises:
        UserError: there is no such pair. With `task.labels=nearest`, an empty result is allowed, since these labels may
            be the same for both items of every pair.
    """
    minimal_pairs = MinimalPairs(training)
    if not len(minimal_pairs.pairs) and config.task.labels != "nearest":
        raise UserError(
            f"task.minimal_pair_contrast ({config.task.minimal_pair_contrast}) needs minimal pairs (items with the "
            "same `minimal_pair` and candidates but different answers), and the training split of "
            f"data={config.data.kind} has none: set it to 0"
        )
    return minimal_pairs


def check_candidates(config: Config, examples: Sequence[Example]) -> None:
    """Check that the prediction head can predict the antecedent of every item.

    Raises:
        UserError: an item has no antecedent, but the prediction head cannot predict "none of the candidates", or it has
            more candidates than the prediction head can number (`task.prediction.slots`).
    """
    prediction = config.task.prediction
    has_no_none = not (isinstance(prediction, NoPrediction) or prediction.none_of_them)
    slots = slots_of(prediction)
    for number, (candidates, antecedents) in enumerate(counts_of(examples)):
        if (antecedents or not has_no_none) and (candidates <= slots or not slots):
            continue
        item = f"data ({config.data.path_or_kind()}): {examples[number].text[:60]!r}"
        if has_no_none and not antecedents:
            raise UserError(
                f"{item} has no antecedent, and the task has no answer for that: set task.prediction.none_of_them=true"
            )
        raise UserError(f"{item} has {candidates} candidates; task.prediction.slots ({slots}) must be at least as many")


def check_lengths(
    config: Config, examples: Sequence[Example], tokenizer: Tokenizer, lengths: Indices | None = None
) -> None:
    """Raise UserError if the model has learned positions, and an item has more than `model.position.max_length` tokens.

    `lengths`, (N,), are the numbers of tokens; if None, the items are tokenized.
    """
    position = config.model.position
    if not isinstance(position, Learned):
        return
    texts = [text for text, _ in questions_of(examples)]
    for start in range(0, len(texts), ENCODED_AT_ONCE):
        some = texts[start : start + ENCODED_AT_ONCE]
        if lengths is None:
            counts = [len(tokens.ids) for tokens in tokenizer.encode_batch(some)]
        else:
            counts = lengths[start : start + ENCODED_AT_ONCE].tolist()
        for text, count in zip(some, counts, strict=True):
            if count > position.max_length:
                raise UserError(
                    f"data ({config.data.path_or_kind()}): {text[:60]!r} has {count} tokens, more "
                    f"than model.position.max_length ({position.max_length})"
                )


def check_batches_hold(config: Config, split: EncodedSplit) -> None:
    """Check that no item has more tokens than a batch may have (`batching.tokens`); raise UserError otherwise.

    Time and memory for an item grow with the square of the number of tokens.
    """
    most = split.max_tokens()
    if most > config.batching.tokens:
        longest = split.examples[int(split.ids.lengths.argmax())]
        raise UserError(
            f"data ({config.data.path_or_kind()}): {longest.text[:60]!r} has {most} tokens, more than a batch holds: "
            f"shorten it, leave it out, or raise batching.tokens ({config.batching.tokens})"
        )


def _empty_split(data: Data, split: str) -> UserError:
    place = f"data ({data.path_or_kind()}): the {split} split is empty"
    if isinstance(data, ExternalCorpus) and data.folds:
        return UserError(f"{place}; give more rows, or fewer folds (data.folds), at most one for each group")
    return UserError(
        f"{place}; give more rows (the default shares need six groups of rows at least) or larger shares "
        f"(data.dev_share, data.test_share); if every row has its split, give rows with split={split}"
    )


def replace_labels(data: EncodedSplit, labels: str, seed: tuple[int, ...]) -> None:
    """Replace the antecedents that the model is trained to predict, if the run is a control.

    Args:
        data: the encoded split; `data.gold` is changed, but the antecedents of the examples are kept.
        labels: value of `task.labels`: "shuffled" (`shuffle_labels`), "nearest" (`label_nearest`), or "gold" (no
            change).
        seed: random seed.
    """
    match labels:
        case "shuffled":
            shuffle_labels(data, seed)
        case "nearest":
            label_nearest(data)


def shuffle_labels(data: EncodedSplit, seed: tuple[int, ...]) -> None:
    """Replace the antecedents of every item by the same number of candidates, drawn at random.

    The new labels depend only on the seed and the items; they are the same in every epoch and in a resumed run.
    """
    generator = np.random.default_rng([*seed, 3])
    keys = generator.random(data.gold.shape) + ~data.present  # absent candidates come last
    ranks = keys.argsort(axis=1).argsort(axis=1)
    data.gold = ranks < data.gold.sum(axis=1, keepdims=True)


def label_nearest(data: EncodedSplit) -> None:
    """Replace the antecedents of each item that has any by the candidate that `nearest_compatible` selects."""
    gold = np.zeros_like(data.gold)
    for number, example in enumerate(data.examples):
        if example.antecedents:
            gold[number, nearest_compatible(example)] = True
    data.gold = gold


def nearest_compatible(example: Example) -> int:
    """Return the index of the compatible candidate that is mentioned last before the pronoun, or else first after it.

    If gender, number or animacy determines the antecedent (`AGREEMENT_TYPES`), only the antecedents are compatible with
    the pronoun. Otherwise, all candidates are.
    """
    agree = range(len(example.candidates))
    compatible = example.antecedents if example.factors.get("type") in AGREEMENT_TYPES else agree
    begin = example.pronoun[0]
    before = {
        index: max((end for _, end in example.candidates[index] if end <= begin), default=-1) for index in compatible
    }
    nearest = max(compatible, key=lambda index: before[index])
    return nearest if before[nearest] >= 0 else min(compatible, key=lambda index: example.candidates[index][0])
