"""Which words of a text an answer or a label rests on: integrated gradients, by word.

W words (or tokens) of a text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from anaphora.analysis.maps.answers import NO_CANDIDATE
from anaphora.api.html import signed_words
from anaphora.api.units import text_units
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
    """What each word of a text adds to the score of the answer that a run gives, right or wrong.

    Attributes:
        text: the text.
        words: W words, or tokens; a special token has the name that its vocabulary gives it, such as [CLS].
        spans: their W character spans; (0, 0) of a special token.
        values: (W,) in the units of the run's scores (log-probability for a word, logit otherwise); negative where the
            word speaks against the answer, 0 behind what the run reads of a long text.
        answer: the label, or the candidate's words; None for "none of them".
        difference: the answer's score less its score where every token is [PAD]; the sum of the values, but for the
            error of the quadrature.
    """

    text: str
    words: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    values: NDArray[np.float32]
    answer: str | None
    difference: float

    def top(self, count: int = 3) -> list[tuple[str, float]]:
        """The words that speak most for the answer, the strongest first; ties keep the order of the text."""
        order = np.argsort(-self.values, kind="stable")[:count]
        return [(self.words[place], float(self.values[place])) for place in order]

    def __repr__(self) -> str:
        heaviest = ", ".join(f"{word} {value:+.2f}" for word, value in self.top())
        return f"<attribution of {self.answer!r}: {heaviest}; {self.difference:+.2f} in all>"

    def _repr_html_(self) -> str:
        return signed_words(self.words, self.values, f"{self.answer}: {self.difference:+.2f} in all")


def attribution(run: Run, text: str, example: Example | None, by: str) -> WordAttribution:
    """Integrated gradients of a run's own label of a text, or of its answer to an item's question.

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
    """One text as a batch, and what its answers are called."""
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
        from anaphora.runs.items import encode

        if prediction.kind == "none":
            raise UserError("this run was trained without a prediction head (task.prediction=none): it answers nothing")
        if example is None or not example.candidates:
            raise UserError("an attribution needs the pronoun and its candidates, whose answer it explains")
        data, names = encode(run, [example]), [example.words(number) for number in range(len(example.candidates))]
    (batch,) = evaluation_batches(data, run.config.batching, slots=slots_of(prediction))
    return batch, names
