"""Texts as training reads them: a vocabulary of the training split, and pieces of text with or without labels."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from anaphora.config import Config
from anaphora.data import vocabulary
from anaphora.data.batch import Encoded
from anaphora.data.encoded_texts import EncodedTexts
from anaphora.data.store import load as load_corpus
from anaphora.data.text import thinned
from anaphora.data.tokenizer import Tokenizer
from anaphora.errors import UserError
from anaphora.model.settings import Label


class Material(NamedTuple):
    """What a run is trained on: its settings, with what the data decide filled in, and both splits encoded."""

    config: Config
    tokenizer: Tokenizer
    training: Encoded
    validation: Encoded


def texts_of(config: Config, known: Tokenizer | None) -> Material:
    """Texts as the settings ask for them; the vocabulary is learned where none is known.

    A read-out of labels gets those of the training split.

    Raises:
        UserError: a split is empty, or has no labels though the task asks for them.
    """
    corpus = load_corpus(config.data)
    training, development = (thinned(corpus.texts(split), config.trainer.limit_items) for split in ("train", "dev"))
    for split, found in (("train", training), ("dev", development)):
        if not found:
            raise UserError(f"the {split} split is empty")
    tokenizer = known or vocabulary.build(config.vocabulary, [one.text for one in training], corpus.words)
    labels: list[str] = []
    readout = config.task.readout
    if isinstance(readout, Label):
        labels = readout.labels or sorted({one.label for one in training if one.label is not None})
        if len(labels) < 2:
            raise UserError(f"task.readout=label needs texts of at least two labels; the training split has {labels}")
        config = replace(config, task=replace(config.task, readout=replace(readout, labels=labels)))
    longest = config.batching.row_tokens
    encoded, validation = (EncodedTexts(split, tokenizer, longest, labels) for split in (training, development))
    validation.keep(config.validation.items)
    return Material(config, tokenizer, encoded, validation)
