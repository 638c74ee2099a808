"""Probabilities of a pronoun's candidates, predicted by a run or a language model.

Axes are N (pronouns) and M (largest number of candidates).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.causal.candidate_scoring import LanguageModel, answerable_questions
from anaphora.analysis.causal.causal_tests import why_unanswered
from anaphora.analysis.causal.language_models import LanguageModelSubject, MaskedRun, answers_by_masks
from anaphora.analysis.evidence.storage import answer_temperatures
from anaphora.analysis.maps.capture import log_probabilities
from anaphora.analysis.scores.calibration import shares_at
from anaphora.api.models import open_any
from anaphora.api.runs import OpenRun
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.base.language import split_names
from anaphora.data.example import Example, Span
from anaphora.data.own_sentence import distinct_names, example_from_query, find_span
from anaphora.data.tokens.words import unknown_words
from anaphora.report.page.answer_notes import answer_phrases, quoted_words
from anaphora.runs.directory import Run
from anaphora.runs.items import encode

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

    from anaphora.api.models import AnyModel
    from anaphora.data.batches.encoded import EncodedSplit
    from anaphora.data.tokens.tokenizer import TokenizedText

Question = tuple[str, str, Sequence[str]] | Example
"""Pronoun to resolve: (text, pronoun, candidates), described in `OpenRun.attention`, or an example of a corpus."""
_FORM = "must be (text, pronoun, [candidate, ...]) or an example of a corpus"


@dataclass(frozen=True)
class CandidateProbability:
    """Candidate of a pronoun with its probability.

    Attributes:
        words: the candidate as in the text, at its first mention.
        span: (start, end) character offsets of this mention in the text, end excluded.
        probability: probability from 0 to 1.
    """

    words: str
    span: Span
    probability: float


@dataclass(frozen=True)
class PronounAnswer:
    """Answer of a model about one pronoun.

    Attributes:
        text: the text.
        pronoun: the pronoun as in the text.
        candidates: candidates in the order in which they were given, with their probabilities.
        none_of_them: probability of "none of them"; 0 if the model cannot give this answer.
        unread: substrings of the text outside the model's vocabulary; if they include the pronoun or a candidate, the
            probabilities mean little.
        foreign: words that a run's tokenizer splits or does not know, if the text seems neither English nor Chinese.
    """

    text: str
    pronoun: str
    candidates: tuple[CandidateProbability, ...]
    none_of_them: float
    unread: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the pronoun and the probabilities, such as "she: sister 0.98, uncle 0.02"."""
        phrases = answer_phrases()
        names = distinct_names(self.text, [one.span for one in self.candidates])
        shares = [f"{name} {one.probability:.2f}" for name, one in zip(names, self.candidates, strict=True)]
        if self.none_of_them:
            shares.append(f"{phrases['none']} {self.none_of_them:.2f}")
        return f"{self.pronoun}: {phrases['comma'].join(shares)}"

    @property
    def answer(self) -> str | None:
        """Return the most probable candidate (in a tie, the first in the text); None for "none of them"."""
        return None if self.chosen is None else self.chosen.words

    @property
    def chosen(self) -> CandidateProbability | None:
        """Return the most probable candidate with its span and probability; None for "none of them"."""
        first = max(sorted(self.candidates, key=lambda one: one.span), key=lambda one: one.probability)
        return first if first.probability >= self.none_of_them else None

    @property
    def warning(self) -> str | None:
        """Return a warning that lists the words unknown to the model; None if all words are known."""
        words, name = (self.foreign, "foreign") if self.foreign else (self.unread, "unknown")
        return answer_phrases()[name].format(words=quoted_words(words)) if words else None


def answers(
    model: str | Path | AnyModel | PreTrainedModel,
    questions: Sequence[Question],
    *,
    tokenizer: PreTrainedTokenizerBase | None = None,
    device: Device | None = None,
) -> list[PronounAnswer]:
    """Return a model's probability for each candidate of each given pronoun.

    The probabilities for a pronoun, including "none of them", sum to 1. If the prediction head of a run scores
    candidates, they are the softmax of these scores, calibrated if the run's `calibration.json` has a temperature for
    the language of the text. Otherwise, they are the softmax of the candidates' mean log-probability per token in a
    language model: a `transformers` model, or a run trained on masked tokens. Each candidate replaces the pronoun; in a
    decoder, it completes a prompt after the text.

    Args:
        model: the model, as in `anaphora.attention`.
        questions: pronouns to resolve, each as (text, pronoun, candidates), described in `OpenRun.attention`, or as an
            example of a corpus.
        tokenizer: the tokenizer of a loaded `transformers` model; also replaces that of a folder or a name.
        device: device of a model that is opened by name; by default the CPU.

    Returns:
        An answer for each pronoun, in order.

    Raises:
        UserError: the model does not exist or cannot choose among candidates, a text is too long, an entry of
            `questions` is invalid, a candidate in place of the pronoun changes the other tokens or does not fit the
            language model (`answerable_questions`), its logits are not finite, or `calibration.json` is damaged.
    """
    examples = _examples(questions)
    opened = open_any(model, tokenizer, device)
    if not examples:
        return []
    texts, probabilities = _probabilities(opened, [example for example, _ in examples])
    return [
        _answer(example, order, row, tokens, _foreign_words(opened, example, tokens))
        for (example, order), row, tokens in zip(examples, probabilities, texts, strict=True)
    ]


def _examples(questions: Sequence[Question]) -> list[tuple[Example, list[Span]]]:
    """Return an example for each question, and the span of each candidate's first mention, in the order given."""
    if isinstance(questions, str) or not isinstance(questions, Sequence):
        raise UserError(f"questions ({questions!r}) must be a list, each {_FORM.removeprefix('must be ')}")
    examples = []
    for number, question in enumerate(questions):
        try:
            examples.append(_example(question))
        except UserError as error:
            raise UserError(f"questions[{number}]: {error}") from None
    return examples


def _example(question: Any) -> tuple[Example, list[Span]]:
    if isinstance(question, Example):
        example, order = question, [spans[0] for spans in question.candidates]
    else:
        if not isinstance(question, tuple | list) or len(question) != 3 or not isinstance(question[0], str):
            raise UserError(f"{question!r} {_FORM}")
        text, pronoun, candidates = question
        example = example_from_query(text, pronoun, candidates)
        order = [find_span(text, name, "candidates") for name in split_names(candidates)]
    if not order:
        raise UserError("an answer needs at least one candidate")
    return example, order


def _probabilities(model: AnyModel, examples: Sequence[Example]) -> tuple[list[TokenizedText], NDArray[np.float64]]:
    """Return the tokens of each text, and the candidates' probabilities, (N, M + 1); the last is for "none of them"."""
    if isinstance(model, OpenRun):
        if reason := why_unanswered(model.run):
            raise reason
        if not answers_by_masks(model.run):
            encoded = encode(model.run, examples)
            return encoded.tokens, shares_at(_calibrated(model.run, encoded), 1.0)
        logs, tokenize = _mean_log_probabilities(MaskedRun(model.run), examples), model.run.tokenizer.encode
    else:
        from anaphora.hf.editable import TransformersLanguageModel

        logs, tokenize = _mean_log_probabilities(TransformersLanguageModel(model), examples), model.tokenize
    tokens = {text: tokenize(text) for text in {example.text for example in examples}}
    return [tokens[example.text] for example in examples], shares_at(logs, 1.0)


def _calibrated(run: Run, encoded: EncodedSplit) -> NDArray[np.float64]:
    """Return a run's log-probabilities, (N, M + 1), divided by the calibration temperature of each text's language.

    The last column is for "none of them".
    """
    logs = log_probabilities(run.model, encoded, run.config.batching)
    temperatures = answer_temperatures(run)
    divisors = np.array([[temperatures.get(example.language, 1.0)] for example in encoded.examples])
    calibrated: NDArray[np.float64] = logs / divisors
    return calibrated


def _mean_log_probabilities(model: LanguageModel, examples: Sequence[Example]) -> NDArray[np.float64]:
    """Return a language model's mean log-probability per token of each candidate, (N, M + 1).

    The last column, for the answer "none of them", is -inf.
    """
    answered = {id(question.example) for question in answerable_questions(model, examples)}
    for number, example in enumerate(examples):
        if id(example) not in answered:
            raise UserError(
                f"questions[{number}]: {model.name} cannot be asked about this pronoun; with a candidate in its place "
                f"the text must fit the model and keep its other tokens: {example.text!r}"
            )
    return LanguageModelSubject(model, examples).scores()


def _foreign_words(model: AnyModel, example: Example, tokens: TokenizedText) -> tuple[str, ...]:
    if not isinstance(model, OpenRun):
        return ()  # a model of another origin may know any language
    return unknown_words(example.text, tokens, example).foreign


def _answer(
    example: Example,
    order: Sequence[Span],
    probabilities: NDArray[np.float64],
    tokens: TokenizedText,
    foreign: tuple[str, ...],
) -> PronounAnswer:
    unread = tuple(dict.fromkeys(example.text[slice(*span)] for span in tokens.unread))
    index = {spans[0]: number for number, spans in enumerate(example.candidates)}
    candidates = tuple(
        CandidateProbability(example.text[slice(*span)], span, float(probabilities[index[span]])) for span in order
    )
    return PronounAnswer(
        example.text, example.text[slice(*example.pronoun)], candidates, float(probabilities[-1]), unread, foreign
    )
