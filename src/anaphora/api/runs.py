"""Interface to a run (a trained model with its settings and tokenizer): attention maps, answers and explanations."""

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
from anaphora.base.translation import _
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
    from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.explain.walk import Walkthrough


def load(directory: str | Path = SHIPPED, device: str = "cpu") -> OpenRun:
    """Open a finished run, by default the one in the package, or a folder of pretrained weights as a run.

    Args:
        directory: directory of a run, such as "outputs/demo", or of pretrained weights; "hf://owner/name" to download a
            run or weights from the Hugging Face Hub; or "shipped" for the run in the package.
        device: device of the model, "cpu" or "cuda".

    Raises:
        UserError: the directory holds neither a run nor supported weights, training is unfinished, a file is damaged,
            or the device is not available.
    """
    one_of("device", device, ("cpu", "cuda"))
    file_name("directory", directory)
    return OpenRun(load_run(directory, Device(device=device)))


class OpenRun:
    """Trained model with its settings and tokenizer; it gives attention maps, answers and explanations for a text."""

    is_decoder = False

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
        """Return the indices of all layers, even of a recurrent encoder (`gru`, `lstm`), which has no attention."""
        return range(self.layers)

    @property
    def heads(self) -> int:
        """Return the number of heads in each layer."""
        return heads_of(self.run.config.model.attention)

    @cached_property
    def chosen_head(self) -> Head | None:
        """Return the head chosen on the development split; None if the run has not been scored.

        Raises:
            UserError: a result file of the run is damaged.
        """
        from anaphora.analysis.evidence.storage import chosen_head

        return chosen_head(self.run)

    def head_for(self, text: str) -> Head | None:
        """Return the head chosen for the language of a text; None if no head was chosen.

        Without a head for this language, the result is the head chosen for all languages. If there is none either, it
        is the head chosen for the other language.

        Raises:
            UserError: a result file of the run is damaged.
        """
        return self._chosen_heads[language_of(text)]

    @cached_property
    def _chosen_heads(self) -> dict[str, Head | None]:
        from anaphora.analysis.evidence.storage import chosen_head

        return {language: chosen_head(self.run, language) for language in LANGUAGES}

    def tokenize(self, text: str) -> TokenizedText:
        """Tokenize a text; raise UserError if it is too long for the run's model."""
        tokens = self.run.tokenizer.encode(text)
        check_length(self.run.config.model, len(tokens.ids))
        return tokens

    def untrained(self, seed: int) -> OpenRun:
        """Return a copy of the run with randomly initialised weights instead of the trained weights."""
        return OpenRun(replace(self.run, model=self.run.untrained_model(seed)))

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
        """Return the attention of every layer and head of the run for one text.

        Args:
            text: the text, in English or Chinese.
            pronoun: the pronoun as in the text, or its characters as "start:end". "it:2" is the second "it". By default
                the last third-person pronoun of the text, if there is one.
            candidates: possible antecedents, each as in the text or as "start:end". For the prediction head `slot`, the
                candidates are marked in the model's input.
            antecedent: the correct one of `candidates`, if it is known.
            by: "word" merges the subwords of a word (weights on them are summed, their rows averaged); "token" does
                not.
            words: with by="word", words into which tokens are merged, as a list, or as the text with spaces between its
                words, such as "小红 推 了 小明". These words, joined, must give the text. By default, words end at
                spaces and punctuation, and in Chinese each token is a word.

        Raises:
            UserError: the text is too long, or the run has no attention maps or needs a pronoun
                (`model.second_sequence`); also the errors of `example_from_query`, `labelled_attention` and `head_for`.
        """
        example = self._example(text, pronoun, candidates, antecedent)
        model, tokenizer = self.run.model, self.run.tokenizer
        whole = self.tokenize(text)
        if example is None:
            tokens, maps = text_maps(model, tokenizer, text)
        else:
            tokens, maps = whole_maps(model, tokenizer, example)
        tokens = replace(tokens, unread=whole.unread)
        return labelled_attention(
            text, tokens, maps, by=by, own_words=words, chosen=self.head_for(text), model=self.name, example=example
        )

    def answer(self, text: str, pronoun: str | None = None, candidates: Sequence[str] = ()) -> str | None:
        """Return the candidate that the run predicts as the antecedent; None for "none of them".

        Args:
            text: the text, in English or Chinese.
            pronoun: the pronoun, as in `OpenRun.attention`.
            candidates: possible antecedents, as in `OpenRun.attention`.

        Raises:
            UserError: there are no candidates, or the run cannot resolve the pronoun (`anaphora.answers`); also the
                errors of `example_from_query`.
        """
        from anaphora.api.pronoun_answers import answers

        example = self._example(text, pronoun, candidates)
        if example is None or not example.candidates:
            raise UserError(
                "candidates are missing: name what the pronoun may refer to, as in candidates=['Anna', 'Emma']"
            )
        return answers(self, [example])[0].answer

    def answers(self, questions: Sequence[Question]) -> list[PronounAnswer]:
        """Return the probability of each candidate of each given pronoun.

        The probabilities for a pronoun, including "none of them", sum to 1; see `anaphora.answers`.

        Args:
            questions: pronouns to resolve, each as (text, pronoun, candidates), described in `OpenRun.attention`, or as
                an example of a corpus.

        Returns:
            An answer for each pronoun, in order.

        Raises:
            UserError: an entry of `questions` has the wrong form or no candidates, or the run cannot resolve a pronoun
                (`anaphora.answers`); also the errors of `example_from_query`.
        """
        from anaphora.api.pronoun_answers import answers

        return answers(self, questions)

    def attribution(
        self, text: str, pronoun: str | None = None, candidates: Sequence[str] = (), by: str = "word"
    ) -> WordAttribution:
        """Return the contribution of each word to the label, or to the antecedent of a pronoun, that the run predicts.

        The values are integrated gradients (Sundararajan et al. 2017, section 3).

        Args:
            text: the text, in English or Chinese.
            pronoun: the pronoun, as in `OpenRun.attention`; only for a run that resolves pronouns.
            candidates: possible antecedents, as in `OpenRun.attention`.
            by: "word" sums the values of the subwords of a word; "token" does not.

        Raises:
            UserError: `by` is unknown; the run predicts neither labels nor antecedents; a pronoun is given to a run
                that predicts labels; pronoun or candidates are missing for a run that resolves pronouns, or the text is
                too long for such a run. Also the errors of `example_from_query`.
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
        """Return a step-by-step walk-through of the computation in one head, as shown by `anaphora explain`.

        Each step holds its values: after `walk = run.explain(text)`, the attention weights are
        `walk.step("weights").result.values`.

        Args:
            text: the text, in English or Chinese.
            pronoun: the pronoun, as in `OpenRun.attention`.
            candidates: possible antecedents; the walk-through includes the antecedent that the run predicts, if it
                predicts antecedents and has at least two possible answers ("none of them" included).
            layer: index of the layer, from 0; by default that of the chosen head.
            head: index of the head in its layer, from 0; by default that of the chosen head.
            language: language of the explanation, "en" or "zh"; by default that of the text.

        Raises:
            UserError: the text has no pronoun or is too long, the run has no attention, the head or language does not
                exist, or no head is given and none was chosen; also the errors of `example_from_query` and `head_for`.
        """
        from anaphora.base.translation import spoken_in
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
        text = _("<run {name}: {layers:layer|layers} of {heads:head|heads}>")
        return text.format(name=self.name, layers=self.layers, heads=self.heads)
