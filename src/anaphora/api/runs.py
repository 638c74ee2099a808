"""A trained run, or a model of another library, opened for questions about sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anaphora.analysis.maps.capture import text_maps, whole_maps
from anaphora.analysis.results.scores import Head
from anaphora.api.maps import SentenceAttention, labelled_attention
from anaphora.api.row import requested_head
from anaphora.base.checks import file_name, one_of, one_text
from anaphora.base.device import Device
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES, language_of
from anaphora.data.example import Example
from anaphora.data.own_sentence import optional_example
from anaphora.runs.directory import Run
from anaphora.runs.directory import load as load_run
from anaphora.runs.shipped import SHIPPED
from anaphora.settings.model.attention import heads_of
from anaphora.settings.model.encoder import check_length
from anaphora.settings.model.prediction import Label

if TYPE_CHECKING:
    from anaphora.api.attribution import WordAttribution
    from anaphora.api.pronoun_answers import PronounAnswer, Question
    from anaphora.explain.walk import Walkthrough


def load(directory: str | Path = SHIPPED, device: str = "cpu") -> OpenRun:
    """Open a finished run, by default the one that comes with the package.

    Args:
        directory: the run directory, such as "outputs/demo", "hf://owner/name", or "shipped" for the run inside the
            package.
        device: where the model computes, "cpu" or "cuda".

    Raises:
        UserError: the directory does not hold a run, training has not finished, a file is broken, or this machine does
            not have the device.
    """
    one_of("device", device, ("cpu", "cuda"))
    file_name("directory", directory)
    return OpenRun(load_run(directory, Device(device=device)))


class OpenRun:
    """A trained run, which shows its attention, its answer and a walk-through of its calculation for any sentence."""

    def __init__(self, run: Run) -> None:
        self.run = run

    @property
    def name(self) -> str:
        """Return the name of the run directory."""
        return self.run.name

    @property
    def layers(self) -> int:
        """Return the number of layers in the encoder."""
        return int(self.run.config.model.layers)

    @property
    def attending_layers(self) -> range:
        """Return the numbers of the layers that have attention: all of them."""
        return range(self.layers)

    @property
    def heads(self) -> int:
        """Return the number of heads in each layer."""
        return heads_of(self.run.config.model.attention)

    @cached_property
    def chosen_head(self) -> Head | None:
        """Return the head that was chosen on the development split, or None if scores were never taken."""
        from anaphora.analysis.evidence.storage import chosen_head

        return chosen_head(self.run)

    def head_for(self, text: str) -> Head | None:
        """Return the head that was chosen for the language of a text; the same for all texts if only one was chosen."""
        return self._chosen_heads[language_of(text)]

    @cached_property
    def _chosen_heads(self) -> dict[str, Head | None]:
        from anaphora.analysis.evidence.storage import chosen_head

        return {language: chosen_head(self.run, language) for language in LANGUAGES}

    def attention(
        self,
        text: str,
        pronoun: str | None = None,
        candidates: Sequence[str] = (),
        *,
        antecedent: str | None = None,
        by: str = "word",
        words: str | Sequence[str] | None = None,
    ) -> SentenceAttention:
        """Return the attention of every layer and head when the run reads one text.

        Args:
            text: the text, in English or Chinese.
            pronoun: the pronoun as it stands in the text, or its characters as "start:end". If the word occurs more
                than once, "it:2" is the second "it". By default it is the last third-person pronoun of the text, if
                there is one.
            candidates: what the pronoun may refer to, each as it stands in the text, or as "start:end". If the run was
                trained with the prediction head `slot`, the candidates are marked in its input.
            antecedent: the right one of the candidates, if it is known.
            by: "word" merges the subwords of a word: the weights on them are summed, and their rows are averaged.
                "token" keeps all tokens apart.
            words: the words of the text, if tokens are to be merged to these words instead of those that blanks, marks
                and, in Chinese, the tokenizer divide: a list, or the text with blanks between its words, such as
                "小红 推 了 小明". They must spell the text.

        Raises:
            UserError: a word is not in the text, there are candidates and no pronoun, the words do not spell the text,
                or the run cannot read the text, for instance because it is too long.
        """
        example = self._example(text, pronoun, candidates, antecedent)
        model, tokenizer = self.run.model, self.run.tokenizer
        whole = tokenizer.encode(text)
        check_length(self.run.config.model, len(whole.ids))
        if example is None:
            tokens, maps = text_maps(model, tokenizer, text)
        else:
            tokens, maps = whole_maps(model, tokenizer, example, self.run.config.task.prediction)
        tokens = replace(tokens, unread=whole.unread)
        return labelled_attention(
            text, tokens, maps, by=by, own_words=words, chosen=self.head_for(text), model=self.name, example=example
        )

    def answer(self, text: str, pronoun: str | None = None, candidates: Sequence[str] = ()) -> str | None:
        """Return the candidate that the run names as the antecedent, or None if it answers "none of them".

        Args:
            text: the text, in English or Chinese.
            pronoun: the pronoun, given as in `OpenRun.attention`.
            candidates: what the pronoun may refer to, given as in `OpenRun.attention`.

        Raises:
            UserError: a word is not in the text, there are no candidates, or the run was trained without a prediction
                head that answers questions about pronouns.
        """
        from anaphora.api.pronoun_answers import answers

        example = self._example(text, pronoun, candidates)
        if example is None or not example.candidates:
            raise UserError("an answer needs a pronoun and its candidates")
        return answers(self, [example])[0].answer

    def answers(self, questions: Sequence[Question]) -> list[PronounAnswer]:
        """Return the probability that the run gives each candidate of each question.

        With that of "none of them", the probabilities of a question sum to 1. `anaphora.answers` says how they are
        computed.

        Args:
            questions: a list of questions, each (text, pronoun, candidates), given as in `OpenRun.attention`, or an
                example of a corpus.

        Returns:
            An answer for each question, in their order.

        Raises:
            UserError: a word is not in its text, a question has no candidates, the run cannot read a text, or it
                answers no questions about pronouns.
        """
        from anaphora.api.pronoun_answers import answers

        return answers(self, questions)

    def attribution(
        self, text: str, pronoun: str | None = None, candidates: Sequence[str] = (), by: str = "word"
    ) -> WordAttribution:
        """Return how much each word adds to the run's label of a text, or to its answer about a pronoun.

        The values are integrated gradients (Sundararajan et al. 2017, section 3).

        Args:
            text: the text, in English or Chinese.
            pronoun: the pronoun, given as in `OpenRun.attention`; only for a run that answers questions about pronouns.
            candidates: what the pronoun may refer to, given as in `OpenRun.attention`.
            by: "word" adds up the values of the subwords of a word, "token" keeps all tokens apart.

        Raises:
            UserError: a word is not in the text, or the run does not answer questions of this kind.
        """
        from anaphora.api.attribution import attribution

        example = self._example(text, pronoun, candidates)
        is_label = isinstance(self.run.config.task.prediction, Label)
        return attribution(self.run, text, None if is_label and pronoun is None else example, by)

    def explain(
        self,
        text: str,
        pronoun: str | None = None,
        candidates: Sequence[str] = (),
        layer: int | None = None,
        head: int | None = None,
        language: str | None = None,
    ) -> Walkthrough:
        """Return a walk-through of what one head computes, step by step, as scripts/explain.py shows it.

        The steps hold all numbers: after `walk = run.explain(text)`, the attention weights are
        `walk.step("weights").result.values`.

        Args:
            text: the text, in English or Chinese.
            pronoun: the pronoun, given as in `OpenRun.attention`.
            candidates: what the pronoun may refer to; if they are given, the run answers too.
            layer: the number of the layer, from 0; by default that of the chosen head.
            head: the number of the head in its layer, from 0; by default that of the chosen head.
            language: the language of the explanation, "en" or "zh"; by default that of the text.

        Raises:
            UserError: a word is not in the text, there is no such head or language, or no head was chosen and none is
                given.
        """
        from anaphora.base.locale.translation import spoken_in
        from anaphora.explain.encoding import SentenceQuery, walk_through_run

        if language is not None:
            one_of("language", language, LANGUAGES)
        requested = requested_head(layer, head, self.head_for(text), self.attending_layers, self.heads, self.name)
        query = SentenceQuery(text, self._example(text, pronoun, candidates), pronoun is None)
        with spoken_in(language or language_of(text)):
            return walk_through_run(self.run, query, requested.layer, requested.head, None)

    def _example(
        self, text: str, pronoun: str | None, candidates: Sequence[str], antecedent: str | None = None
    ) -> Example | None:
        one_text("text", text)
        return optional_example(text, pronoun, candidates, antecedent)

    def __repr__(self) -> str:
        return f"<run {self.name}: {self.layers} layers of {self.heads} heads>"
