"""A trained run, or a model of another library, opened for questions about sentences."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.analysis.maps.capture import text_maps, whole_maps
from anaphora.analysis.scores.heads import Head
from anaphora.api.maps import Attention, labelled_attention, requested_head
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.data.example import Example
from anaphora.data.own_sentence import example_from_query
from anaphora.runs.directory import Run
from anaphora.runs.directory import load as load_run
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.encoder import check_length

if TYPE_CHECKING:
    from anaphora.api.attribution import WordAttribution
    from anaphora.explain.walk import Walkthrough


def load(directory: str | Path, device: str = "cpu") -> OpenRun:
    """Open a finished run, its model on "cpu" or "cuda".

    Raises:
        UserError: the directory holds none, the training has not finished, a file is broken, or the device is not
            there.
    """
    if device not in ("cpu", "cuda"):
        raise UserError(f"device ({device!r}) must be one of cpu, cuda")
    return OpenRun(load_run(directory, Device(device=device)))


class OpenRun:
    """A trained run: the attention, the answers and the walk-throughs of any sentence."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def name(self) -> str:
        """The name of the run's directory."""
        return self.run.name

    @property
    def layers(self) -> int:
        """How many layers the encoder has."""
        return int(self.run.config.model.layers)

    @property
    def heads(self) -> int:
        """How many heads each layer has."""
        return heads_of(self.run.config.model.attention)

    @cached_property
    def chosen_head(self) -> Head | None:
        """The head that was chosen on the development split, or None if scores were never taken."""
        from anaphora.analysis.evidence.storage import chosen_head

        return chosen_head(self.run)

    def attention(
        self,
        text: str,
        pronoun: str | None = None,
        candidates: Sequence[str] = (),
        by: str = "word",
        antecedent: str | None = None,
    ) -> Attention:
        """The attention of every layer and head in one text.

        Args:
            text: English or Chinese.
            pronoun: a word of the text, the second one as "it:2", or its characters as "start:end"; needed with
                candidates alone.
            candidates: what it may refer to; models that read the candidates' marks then get them.
            by: "word" merges the subwords of split words (summed to, averaged from), "token" does not.
            antecedent: one of the candidates, if it is known.

        Raises:
            UserError: a word is not in the text, or the text does not fit the model.
        """
        example = self._example(text, pronoun, candidates, antecedent)
        model, tokenizer = self.run.model, self.run.tokenizer
        check_length(self.run.config.model, len(tokenizer.encode(text).ids))
        if example is None:
            tokens, maps = text_maps(model, tokenizer, text)
        else:
            tokens, maps = whole_maps(model, tokenizer, example, self.run.config.task.prediction)
        return labelled_attention(text, tokens, maps, by=by, chosen=self.chosen_head, model=self.name, example=example)

    def answer(self, text: str, pronoun: str, candidates: Sequence[str]) -> str | None:
        """The candidate that the model names, or None for "none of them".

        Raises:
            UserError: a word is not in the text, or the run was trained without a prediction head.
        """
        from anaphora.analysis.maps.answers import NO_CANDIDATE
        from anaphora.analysis.maps.capture import capture_run

        example = self._example(text, pronoun, candidates)
        if example is None or not example.candidates:
            raise UserError("an answer needs a pronoun and its candidates")
        answers = capture_run(self.run, [example]).answers
        if answers is None:
            raise UserError("this run was trained without a prediction head (task.prediction=none): it answers nothing")
        named = int(answers.candidates[0])
        return None if named == NO_CANDIDATE else example.words(named)

    def attribution(
        self, text: str, pronoun: str | None = None, candidates: Sequence[str] = (), by: str = "word"
    ) -> WordAttribution:
        """What each word adds to the run's own label of a text, or to its answer about a pronoun: integrated gradients.

        Args:
            text: English or Chinese.
            pronoun: of a run that resolves pronouns, a word of the text, or its characters as "start:end".
            candidates: what it may refer to.
            by: "word" adds up the subwords of split words, "token" does not.

        Raises:
            UserError: a word is not in the text, or the run answers no such question.
        """
        from anaphora.api.attribution import attribution

        return attribution(self.run, text, self._example(text, pronoun, candidates), by)

    def explain(
        self,
        text: str,
        pronoun: str | None = None,
        candidates: Sequence[str] = (),
        layer: int | None = None,
        head: int | None = None,
        language: str | None = None,
    ) -> Walkthrough:
        """The walk-through of one head, as scripts/explain.py shows it; its steps' matrices hold the numbers."""
        from anaphora.base.language import language_of
        from anaphora.explain.encoding import SentenceQuery, walk_through_run
        from anaphora.explain.phrases import Phrases

        requested = requested_head(layer, head, self.chosen_head, self.layers, self.heads, self.name)
        query = SentenceQuery(text, self._example(text, pronoun, candidates))
        words = Phrases(language or language_of(text))
        return walk_through_run(self.run, query, requested.layer, requested.head, None, words)

    def _example(
        self, text: str, pronoun: str | None, candidates: Sequence[str], antecedent: str | None = None
    ) -> Example | None:
        if pronoun is None:
            if candidates:
                raise UserError("candidates need a pronoun")
            return None
        return example_from_query(text, pronoun, candidates, antecedent)

    def __repr__(self) -> str:
        return f"<run {self.name}: {self.layers} layers of {self.heads} heads>"
