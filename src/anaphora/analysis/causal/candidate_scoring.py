"""Candidate scoring by language models: each candidate replaces the pronoun or completes a prompt.

An item is a text with a pronoun and its candidates. Each candidate is scored in a changed text, the scored text: for a
masked language model, the pronoun is replaced by as many mask tokens as the candidate has tokens; for a decoder, a
prompt and the candidate are appended. The score is the mean log-probability of the candidate's tokens (Kocijan et al.
2019, section 3). T is the number of tokens of an item's text, S that of a scored text.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from anaphora.analysis.causal.interventions import Intervention
from anaphora.base.errors import UserError
from anaphora.data.example import Example, Span
from anaphora.data.tokens.tokenizer import TokenizedText

PROMPTS = {"en": ' The word "{pronoun}" refers to ', "zh": "这里的“{pronoun}”指的是"}
"""Prompt between the sentence and the candidate for a decoder, by language."""
_DETERMINERS = {
    *("the", "a", "an", "this", "that", "these", "those", "my", "your", "his", "her", "its", "our", "their"),
    *("some", "every", "each", "no", "both", "one", "two"),
}
"""English words that can begin a mention and have a capital letter only at the start of a sentence."""


class LanguageModel(Protocol):
    """Interface of a language model in evaluation mode, from any library, whose attention can be edited.

    A batch has B texts, right-padded to S tokens. H is the number of heads per layer, V the size of the vocabulary.
    """

    @property
    def name(self) -> str:
        """Return the name of the model for error messages."""

    @property
    def shape(self) -> tuple[int, int]:
        """Return the number of layers and heads."""

    @property
    def is_decoder(self) -> bool:
        """Return whether each token attends only to itself and to earlier tokens."""

    @property
    def alone(self) -> bool:
        """Return whether each text must run in a batch of one, because other texts or padding may change its result."""

    @property
    def mask(self) -> int:
        """Return the id of the mask token; unused in decoders."""

    @property
    def device(self) -> torch.device:
        """Return the model's device."""

    def tokenize(self, text: str) -> TokenizedText:
        """Tokenize a text, with special tokens; raise UserError if the model does not accept it (too long, empty)."""

    def maps(self, tokens: Sequence[TokenizedText]) -> list[Tensor]:
        """Return the attention maps of every layer, (B, H, queries, keys) each."""

    def read(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> None:
        """Run one forward pass under an intervention that records activations; return nothing."""

    def logits(self, tokens: Sequence[TokenizedText], intervention: Intervention) -> Sequence[Tensor]:
        """Return the logits of each of B texts under an intervention, (S, V) each; they may include padding."""


class Target(NamedTuple):
    """Tokens of a candidate in a scored text; the mean of their log-probabilities is the candidate's score."""

    candidate: int  # index of the candidate
    positions: tuple[int, ...]  # positions whose logits predict the tokens
    ids: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class ScoredText:
    """Text from which a language model scores one or more candidates of an item."""

    item: int  # index of the item
    tokens: TokenizedText
    alignment: tuple[tuple[int, ...], ...]  # for each of the item's T tokens, its indices in this text
    targets: tuple[Target, ...]


@dataclass(frozen=True, eq=False)
class Question:
    """Item (text, pronoun and candidates), and the texts from which a language model scores the candidates."""

    example: Example
    tokens: TokenizedText  # T tokens of the sentence; for a masked language model, the pronoun is masked
    texts: tuple[ScoredText, ...]  # texts that together score each candidate once


def answerable_questions(model: LanguageModel, examples: Sequence[Example]) -> list[Question]:
    """Return the items that a model can answer, in the given order, each with the texts from which it is scored.

    An item is left out if no token covers its pronoun or a candidate, if a text with a candidate is too long, or if a
    candidate changes how the rest of the text, with the prompt, is tokenized. A masked language model also skips items
    whose pronoun is the cue (the word that decides which candidate is meant), because the mask would hide it.

    Raises:
        UserError: the model does not accept the text of an item.
    """
    pronouns: defaultdict[str, set[str]] = defaultdict(set)
    for example in examples:
        pronouns[example.minimal_pair].add(_pronoun(example))
    questions: list[Question] = []
    for example in examples:
        own = model.tokenize(example.text)
        pronoun = own.covering(example.pronoun)
        is_cue = bool(example.minimal_pair) and len(pronouns[example.minimal_pair]) > 1
        is_cue |= example.factors.get("cue", "").lower() == _pronoun(example)
        if not pronoun or (is_cue and not model.is_decoder):
            continue
        own = _without_end(own) if model.is_decoder else _masked(model, own, pronoun)
        texts = _scored_texts(model, example, own, pronoun, len(questions))
        if texts is not None:
            questions.append(Question(example, own, texts))
    return questions


def _scored_texts(
    model: LanguageModel, example: Example, tokens: TokenizedText, pronoun: Sequence[int], item: int
) -> tuple[ScoredText, ...] | None:
    """Return the texts from which the model scores the item's candidates; None if a candidate cannot be scored.

    For a masked language model, candidates with the same number of tokens are scored from the same text.
    """
    texts: dict[tuple[int, ...], ScoredText] = {}
    for candidate in range(len(example.candidates)):
        text, span = _completed(example, candidate) if model.is_decoder else _filled(example, candidate)
        try:
            whole = model.tokenize(text)
        except UserError:  # the sentence fits, but is too long with the answer
            return None
        covering = whole.covering(span)
        if not covering:
            return None
        ids = tuple(whole.ids[token] for token in covering)
        if model.is_decoder:
            # A first token that also holds the prompt's end, as "是小" can in Chinese, would be scored with it.
            if whole.ids[: len(tokens.ids)] != tokens.ids or whole.spans[covering[0]][0] < span[0]:
                return None
            alignment: list[tuple[int, ...]] = [(token,) for token in range(len(tokens.ids))]
            target = Target(candidate, tuple(token - 1 for token in covering), ids)
        else:
            whole = _masked(model, whole, covering)
            first, behind = pronoun[0], len(tokens.ids) - pronoun[-1] - 1
            same_end = whole.ids[len(whole.ids) - behind :] == tokens.ids[len(tokens.ids) - behind :]
            same_length = len(whole.ids) == first + len(covering) + behind
            if covering[0] != first or whole.ids[:first] != tokens.ids[:first] or not (same_end and same_length):
                return None
            alignment = list(_mask_alignment(len(tokens.ids), pronoun, covering))
            target = Target(candidate, tuple(covering), ids)
        before = texts.get(whole.ids)
        targets = (*before.targets, target) if before else (target,)
        texts[whole.ids] = ScoredText(item, whole, tuple(alignment), targets)
    return tuple(texts.values())


def _mask_alignment(tokens: int, pronoun: Sequence[int], masks: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for token in range(tokens):
        if token < pronoun[0]:
            yield (token,)
        elif token > pronoun[-1]:
            yield (token + len(masks) - len(pronoun),)
        else:
            yield (masks[token - pronoun[0]],) if len(masks) == len(pronoun) else tuple(masks)


def _completed(example: Example, candidate: int) -> tuple[str, Span]:
    """Append the prompt and a candidate to the item's text; return the new text and the candidate's span in it."""
    start, end = example.pronoun
    prompt = example.text + PROMPTS[example.language].format(pronoun=example.text[start:end])
    words = _inside_a_sentence(example, candidate)
    return prompt + words, (len(prompt), len(prompt) + len(words))


def _filled(example: Example, candidate: int) -> tuple[str, Span]:
    """Replace the pronoun by a candidate; return the new text and the candidate's span in it."""
    start, end = example.pronoun
    words = _inside_a_sentence(example, candidate)
    if example.text[start].isupper():
        words = words[0].upper() + words[1:]
    return example.text[:start] + words + example.text[end:], (start, start + len(words))


def _pronoun(example: Example) -> str:
    start, end = example.pronoun
    return example.text[start:end].lower()


def _inside_a_sentence(example: Example, candidate: int) -> str:
    """Return a candidate as written within a sentence, with an initial English determiner in lower case."""
    words = example.words(candidate)
    if example.language == "en" and words.split()[0].lower() in _DETERMINERS:
        return words[0].lower() + words[1:]
    return words


def _masked(model: LanguageModel, tokens: TokenizedText, positions: Sequence[int]) -> TokenizedText:
    ids = list(tokens.ids)
    for position in positions:
        ids[position] = model.mask
    return TokenizedText(tuple(ids), tokens.spans, tokens.words, types=tokens.types)


def _without_end(tokens: TokenizedText) -> TokenizedText:
    """Remove the special tokens after the text, so that a decoder's prompt can follow."""
    last = max(token for token, (start, end) in enumerate(tokens.spans) if start < end) + 1
    return TokenizedText(tokens.ids[:last], tokens.spans[:last], tokens.words[:last], types=tokens.types[:last])
