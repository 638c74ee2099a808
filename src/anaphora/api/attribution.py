"""Attribution of an answer or label to the words of a text by integrated gradients.

W words (or tokens) of a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from anaphora.analysis.maps.answers import NO_CANDIDATE
from anaphora.api.html import signed_words
from anaphora.api.row import strongest, text_units
from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.runs.directory import Run
from anaphora.settings.model.prediction import Label

if TYPE_CHECKING:
    from anaphora.base.batch import Batch
    from anaphora.data.batches.encoded import EncodedSplit

_STEPS = 256
"""Points on the path: one text can have more of them than a corpus, so that the values add up."""


@dataclass(frozen=True, eq=False)
class WordAttribution:
    """How much each word of a text adds to the score of the answer that the run gives, whether right or wrong.

    `np.asarray` gives the values, (W,).

    Attributes:
        text: the text.
        words: the W words, or tokens, of the text; special tokens have the names that the model's vocabulary gives
            them, such as [CLS].
        spans: for each of the W words, where its characters start and end in the text; (0, 0) for a special token.
        values: (W,): what each word adds to the score, in the score's own unit: log-probability for the prediction head
            `word`, the logarithm of the attention mass for `pointer`, logits otherwise. A value is negative if the word
            counts against the answer, and 0 for the words beyond the part of a long text that the run reads.
        answer: the label, or the words of the candidate that the run names; None for "none of them".
        difference: the score of the answer minus the score that the same answer has if every token is replaced by
            [PAD]. The values add up to it, apart from the error of the numerical integration.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    values: NDArray[np.float32]
    answer: str | None
    difference: float

    def top(self, count: int = 3) -> list[tuple[str, float]]:
        """Return the words that count most for the answer, strongest first; equal values keep the order of the text.

        Args:
            count: how many words to return at most.

        Raises:
            UserError: the number is negative, or no whole number.
        """
        return strongest(self.words, self.values, count)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        heaviest = ", ".join(f"{word} {value:+.2f}" for word, value in self.top())
        return f"<attribution of {self.answer!r}: {heaviest}; {self.difference:+.2f} in all>"

    def _repr_html_(self) -> str:
        return signed_words(self.words, self.values, f"{self.answer}: {self.difference:+.2f} in all")


def attribution(run: Run, text: str, example: Example | None, by: str) -> WordAttribution:
    """Return integrated gradients of a run's own label of a text, or of its answer to an item's question.

    Raises:
        UserError: the run predicts no labels and no pronoun was named, or the other way round; or `by` is unknown.
    """
    from anaphora.analysis.maps.gradients import integrated_gradients

    batch, names = _question(run, text, example)
    measured = integrated_gradients(run.model, batch.to(run.model.device), _STEPS)
    words, spans, units = text_units(text, run.tokenizer.encode(text), by)
    tokens = measured.tokens[batch.segments >= 0].cpu().numpy()
    closing = len(run.tokenizer.surrounding_tokens()[1])
    read = np.concatenate((units[: len(tokens) - closing], units[len(units) - closing :]))  # a long text was cut off
    values = np.zeros(len(words), dtype=np.float32)
    np.add.at(values, read, tokens)
    number = int(measured.answers[0])
    answer = None if number == NO_CANDIDATE else names[number]
    return WordAttribution(text, words, spans, values, answer, float(measured.difference[0]))


def _question(run: Run, text: str, example: Example | None) -> tuple[Batch, list[str]]:
    """Return one text as a batch, and what its answers are called."""
    from anaphora.data.batches.batching import evaluation_batches
    from anaphora.settings.model.prediction import slots_of

    prediction = run.config.task.prediction
    if isinstance(prediction, Label):
        from anaphora.analysis.tasks.labels import encode_texts
        from anaphora.base.language import language_of
        from anaphora.data.text import Text

        if example is not None:
            raise UserError("this run labels texts (task.prediction=label): an attribution takes no pronoun")
        whole = Text(text=text, language=language_of(text), label=prediction.labels[0])  # which label changes nothing
        names = list(prediction.labels)
        data: EncodedSplit = encode_texts(run, [whole], names, cached=False)
    else:
        from anaphora.analysis.maps.capture import no_pronoun_answers
        from anaphora.runs.items import encode

        if prediction.kind == "none":
            raise no_pronoun_answers(run)
        if example is None or not example.candidates:
            raise UserError("an attribution needs the pronoun and its candidates, whose answer it explains")
        data, names = encode(run, [example]), [example.words(number) for number in range(len(example.candidates))]
    (batch,) = evaluation_batches(data, run.config.batching, slots=slots_of(prediction))
    return batch, names
