"""Small HTML page, updated during training, that shows the attention from the pronoun in a few fixed sentences.

The sentences (`SENTENCES`) describe the same scene in active and passive voice, each with both orders of the names. If
the vocabulary lacks their words, the probe sentences of TensorBoard (`select_probes`) take their place.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
from tqdm import tqdm

from anaphora.analysis.maps.answers import NO_CANDIDATE
from anaphora.analysis.maps.capture import capture
from anaphora.analysis.maps.words import WordRow, word_weights
from anaphora.base.files import write_text
from anaphora.base.translation import _, interface_language, spoken_in
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, overlapping
from anaphora.data.own_sentence import example_from_query
from anaphora.data.tokens.tokenizer import Tokenizer
from anaphora.report.page.offline import template_environment, weight_colours
from anaphora.settings.run import Config
from anaphora.settings.vocabulary import WordVocabulary
from anaphora.training.callbacks import best_head, validation_metrics
from anaphora.training.module import TrainingModule
from anaphora.training.tensorboard.layout import select_probes

PAGE = "training.html"
"""Name of the page in the run directory."""
SENTENCES = {
    "en": (
        ("Anna was rescued by Emma because she was weak.", "she", ("Anna", "Emma"), "Anna"),
        ("Emma was rescued by Anna because she was weak.", "she", ("Emma", "Anna"), "Emma"),
        ("Anna rescued Emma because she was weak.", "she", ("Anna", "Emma"), "Emma"),
        ("Emma rescued Anna because she was weak.", "she", ("Emma", "Anna"), "Anna"),
    ),
    "zh": (
        ("小红被美玲救了，因为她很虚弱。", "她", ("小红", "美玲"), "小红"),
        ("美玲被小红救了，因为她很虚弱。", "她", ("美玲", "小红"), "美玲"),
        ("小红救了美玲，因为她很虚弱。", "她", ("小红", "美玲"), "美玲"),
        ("美玲救了小红，因为她很虚弱。", "她", ("美玲", "小红"), "小红"),
    ),
}
"""A scene in each language, in both voices and both orders of the names: text, pronoun, candidates and antecedent."""
_TEMPLATES = Path(__file__).with_name("templates")


@dataclass(frozen=True)
class SentenceRow:
    """Attention weights from the pronoun in one head, for one sentence.

    Attributes:
        language: "en" or "zh".
        words: each word of the sentence, the attention weight on the word as a rounded percentage, and whether the word
            is the pronoun.
        answer: candidate that the model predicts; None if it predicts no candidate.
        is_right: whether the predicted candidate is the antecedent.
        on_antecedent: attention weight on the antecedent as a rounded percentage.
    """

    language: str
    words: tuple[tuple[str, int, bool], ...]
    answer: str | None
    is_right: bool
    on_antecedent: int


@dataclass(frozen=True)
class ShownValidation:
    """Attention weights from the pronoun in the sentences, in the best head (`best_head`) of one validation."""

    step: int
    layer: int
    head: int
    rows: tuple[SentenceRow, ...]


class SentencePage(lightning.Callback):
    """Callback that writes the HTML page at each validation, and prints the path of the page once.

    The callback draws no random numbers and changes no weights. If a run is resumed, the page still shows the
    validations before the interruption, provided that they were shown in the same language. No page is written if no
    heads are measured, or if no sentence is suitable.

    Args:
        path: path of the page.
        config, tokenizer, validation: settings, tokenizer and validation items of the run.
    """

    def __init__(self, path: Path, config: Config, tokenizer: Tokenizer, validation: EncodedSplit) -> None:
        self.path, self.config = path, config
        has_word_tokens = isinstance(config.vocabulary, WordVocabulary) and config.start is None
        self._sentences = readable_sentences(tokenizer, has_word_tokens) or EncodedSplit(
            [validation.examples[item] for _, item in select_probes(validation.examples, validation)], tokenizer
        )
        self._shown: list[ShownValidation] = []
        self._is_announced = False

    def state_dict(self) -> dict[str, Any]:
        return {"shown": [asdict(one) for one in self._shown]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        languages = [example.language for example in self._sentences.examples]
        for one in state_dict["shown"]:
            rows = tuple(SentenceRow(**row) for row in one["rows"])
            if [row.language for row in rows] == languages:
                self._shown.append(ShownValidation(**{**one, "rows": rows}))

    def on_validation_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        assert isinstance(module, TrainingModule)
        best = best_head(validation_metrics(trainer))
        if not self._sentences.examples or best is None:
            return
        captured = capture(module.model, self._sentences, self.config.batching)
        records, answers = captured.records, captured.answers
        named = [NO_CANDIDATE] * len(records) if answers is None else map(int, answers.candidates)
        rows = tuple(
            sentence_row(record.example, word_weights(record), best, candidate)
            for record, candidate in zip(records, named, strict=True)
        )
        self._shown.append(ShownValidation(trainer.global_step, *best, rows))
        self._write()
        if not self._is_announced:
            self._is_announced = True
            notice = _("{path}: a few sentences, rewritten at each validation; open it to watch the head appear")
            tqdm.write(notice.format(path=self.path), file=sys.stderr)

    def _write(self) -> None:
        language = interface_language()
        with spoken_in(language):
            html = template_environment(_TEMPLATES).get_template("training.html.j2").render(
                language=language,
                name=self.path.absolute().parent.name,
                steps=self.config.steps,
                latest=self._shown[-1],
                shown=self._shown,
                colours=weight_colours(),
                shade=lambda weight: round(63 * weight / 100),
            )  # fmt: skip
        write_text(self.path, html)


def readable_sentences(tokenizer: Tokenizer, has_word_tokens: bool) -> EncodedSplit | None:
    """Encode the four sentences in the language of the interface (English or Chinese).

    If the vocabulary lacks words of these sentences, the sentences of the other language are encoded; if it lacks words
    of both, the result is None. If the vocabulary consists of words (`has_word_tokens`), an English word that it splits
    counts as missing, since the model was not trained on the word.
    """
    for language in sorted(SENTENCES, key=lambda one: one != interface_language()):
        examples = [example_from_query(*sentence) for sentence in SENTENCES[language]]
        texts = [tokenizer.encode(example.text) for example in examples]
        is_split = any(text.words.count(word) > 1 for text in texts for word in text.words if word >= 0)
        if not any(text.unread for text in texts) and not (is_split and has_word_tokens and language == "en"):
            return EncodedSplit(examples, tokenizer)
    return None


def sentence_row(example: Example, row: WordRow, head: tuple[int, int], named: int) -> SentenceRow:
    """Return the attention weights from the pronoun in one head, for one sentence.

    Args:
        example: the sentence, with pronoun, candidates and antecedents.
        row: attention weights from the pronoun to each word.
        head: indices of the layer and of the head in the layer.
        named: index of the candidate that the model predicts, or `NO_CANDIDATE`.
    """
    weights = 100 * row.weights[head]
    words = tuple(
        (word, round(float(weight)), span == example.pronoun)
        for word, span, weight in zip(row.words, row.spans, weights, strict=True)
        if span != (0, 0)  # a special token
    )
    mentions = [mention for antecedent in example.antecedents for mention in example.candidates[antecedent]]
    in_mentions = sorted({word for mention in mentions for word in overlapping(row.spans, mention)})
    answer = None if named == NO_CANDIDATE else example.words(named)
    return SentenceRow(
        example.language, words, answer, named in example.antecedents, round(float(weights[in_mentions].sum()))
    )
