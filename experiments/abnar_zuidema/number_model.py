"""Verb-number model: a training run on generated sentences, labelled with the number of the verb.

The label is predicted from the last hidden state of [CLS] (Abnar and Zuidema 2020, section 2).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from anaphora.base.files import write_text
from anaphora.data.batches.texts import EncodedTexts
from anaphora.data.text import Text
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.settings.data import LabelledText
from anaphora.settings.model.attention import MultiHead
from anaphora.settings.model.encoder import Gelu, LayerNorm, Model, Normal
from anaphora.settings.model.position import Learned
from anaphora.settings.model.prediction import Label
from anaphora.settings.run import Config
from anaphora.settings.training import Batching, Optimizer, Task, Trainer, Validation
from anaphora.settings.vocabulary import WordVocabulary
from experiments.abnar_zuidema.number_agreement import LONGEST, NumberItem
from experiments.abnar_zuidema.settings import Replication

NUMBERS = ("singular", "plural")
"""Labels; the index of a label is 1 for a plural verb."""
_MAX_TOKENS = LONGEST + 1  # [CLS] and the words


def run_settings(settings: Replication, sentences: Path, seed: int) -> Config:
    """Return the settings of a run with GPT-2 blocks without the causal mask: pre-norm, GELU, learned positions.

    Args:
        settings: settings of the replication.
        sentences: file written by `write_sentences`.
        seed: seed of initial weights, data order, dropout and masking.
    """
    return Config(
        name=f"seed_{seed}",
        output=settings.output,
        seed=seed,
        data=LabelledText(path=str(sentences), dev_share=0.02, test_share=0.0),
        vocabulary=WordVocabulary(min_count=1),
        batching=Batching(kind="buckets", tokens=settings.batch_tokens, row_tokens=_MAX_TOKENS),
        model=Model(
            width=settings.width,
            layers=settings.layers,
            dropout=settings.dropout,
            values="hidden",
            position=Learned(max_length=_MAX_TOKENS),
            attention=MultiHead(heads=settings.heads, dropout=settings.dropout),
            feed_forward=Gelu(),
            norm=LayerNorm(placement="pre"),
            initialisation=Normal(),
        ),
        # Words are masked so that the model has seen [MASK] in training; masked words have no loss.
        task=Task(
            prediction=Label(pooling="first", labels=list(NUMBERS)), masked_lm=settings.masked, masked_lm_weight=0.0
        ),
        optimizer=Optimizer(steps=settings.steps, learning_rate=settings.learning_rate),
        validation=Validation(every=settings.steps, keep="last"),
        trainer=Trainer(device=settings.trainer.device, precision="32", pictures=0),
    )


def write_sentences(path: Path, items: Sequence[NumberItem]) -> None:
    """Write training sentences as JSON lines, with the number of the verb as label."""
    rows = (json.dumps({"text": item.text, "label": NUMBERS[item.plural]}) for item in items)
    write_text(path, "".join(f"{row}\n" for row in rows))


def encode_items(items: Sequence[NumberItem], tokenizer: Tokenizer) -> EncodedTexts:
    """Encode items with a run's tokenizer, with the number of the verb as label."""
    texts = [Text(text=item.text, language="en", label=NUMBERS[item.plural]) for item in items]
    return EncodedTexts(texts, tokenizer, _MAX_TOKENS, NUMBERS)
