"""Attribution of a run's answer or label to the words of a text, by integrated gradients.

W is the number of words (or tokens) of a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import DTypeLike, NDArray

from anaphora.analysis.maps.answers import NO_CANDIDATE
from anaphora.api.html import signed_words
from anaphora.api.row import strongest, text_units
from anaphora.base.errors import UserError
from anaphora.base.translation import _, pgettext
from anaphora.data.example import Example
from anaphora.report.numbers import format_signed
from anaphora.runs.directory import Run
from anaphora.settings.model.prediction import Label

if TYPE_CHECKING:
    from anaphora.base.batch import Batch
    from anaphora.data.batches.encoded import EncodedSplit

_STEPS = 256
"""Steps of the numerical integration; more than for a corpus, so that the values of a text sum to `difference`."""


@dataclass(frozen=True, eq=False)
class WordAttribution:
    """Contribution of each word of a text to the score of the label or candidate that the run predicts.

    `np.asarray` returns the values, (W,).

    Attributes:
        text: the text.
        words: the W words, or tokens, of the text; special tokens are named as in the model's vocabulary, such as
            [CLS].
        spans: (start, end) character offsets of each word in the text, end excluded; (0, 0) for a special token.
        values: (W,), contribution of each word in the unit of the score, which depends on the run's prediction head
            (setting `task.prediction`): log-probability for `word`, logarithm of the attention mass for `pointer`,
            logits otherwise. Negative if the word lowers the score, and 0 for words removed by truncation.
        answer: predicted label, or text of the chosen candidate; None for the answer "none of them".
        difference: score of the answer for the text, minus the score of the same answer if every token is replaced by
            [PAD]. The values sum to this difference, up to the error of the numerical integration.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    values: NDArray[np.float32]
    answer: str | None
    difference: float

    def top(self, count: int = 3) -> list[tuple[str, float]]:
        """Return the words that contribute most to the answer, largest value first; ties keep the order of the text.

        Args:
            count: maximum number of words to return.

        Raises:
            UserError: `count` is negative or not a whole number.
        """
        return strongest(self.words, self.values, count)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.values, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        heaviest = pgettext("list", ", ").join(f"{word} {format_signed(value, 2)}" for word, value in self.top())
        text = _("<attribution of {answer!r}: {words}; {sum} in all>")
        return text.format(answer=self.answer, words=heaviest, sum=format_signed(self.difference, 2))

    def _repr_html_(self) -> str:
        return signed_words(
            self.words,
            self.values,
            _("{answer}: {sum} in all").format(answer=self.answer, sum=format_signed(self.difference, 2)),
        )


def attribution(run: Run, text: str, example: Example | None, by: str) -> WordAttribution:
    """Return each word's integrated gradients for the label or the antecedent that a run predicts.

    `example` holds the pronoun and its candidates; it is None to explain a label. `by` is "word" or "token".

    Raises:
        UserError: `by` is unknown; the run predicts neither labels nor antecedents; `example` is given to a run that
            predicts labels; `example` or its candidates are missing for a run that resolves pronouns, or the text is
            too long for such a run.
    """
    from anaphora.analysis.maps.attribution import integrated_gradients

    with torch.inference_mode(False):  # tensors created in inference mode never have gradients
        batch, names = _batch_and_answers(run, text, example)
        measured = integrated_gradients(run.model, batch.to(run.model.device), _STEPS)
    words, spans, units = text_units(text, run.tokenizer.encode(text), by)
    tokens = measured.tokens[batch.segments >= 0].cpu().numpy()
    closing = len(run.tokenizer.surrounding_tokens()[1])
    read = np.concatenate((units[: len(tokens) - closing], units[len(units) - closing :]))  # a long text was truncated
    values = np.zeros(len(words), dtype=np.float32)
    np.add.at(values, read, tokens)
    number = int(measured.answers[0])
    answer = None if number == NO_CANDIDATE else names[number]
    return WordAttribution(text, words, spans, values, answer, float(measured.difference[0]))


def _batch_and_answers(run: Run, text: str, example: Example | None) -> tuple[Batch, list[str]]:
    """Return a batch of one text, and the run's possible answers: all labels, or the candidates as in the text."""
    from anaphora.data.batches.batching import evaluation_batches
    from anaphora.settings.model.prediction import slots_of

    prediction = run.config.task.prediction
    if isinstance(prediction, Label):
        from anaphora.analysis.tasks.labels import encode_texts
        from anaphora.base.language import language_of
        from anaphora.data.text import Text

        if example is not None:
            raise UserError("this run labels texts (task.prediction=label): an attribution takes no pronoun")
        whole = Text(text=text, language=language_of(text), label=prediction.labels[0])  # the label is not used
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
