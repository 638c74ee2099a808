"""Sentences of invented words, whose lengths are those that matter and whose words mean nothing."""

from __future__ import annotations

from itertools import islice, product
from string import ascii_lowercase

import numpy as np

from anaphora.data.batch import Encoded, Indices
from anaphora.data.example import Example
from anaphora.data.settings import Controlled
from anaphora.data.vocabulary import of_words
from anaphora.errors import UserError
from anaphora.specials import SPECIALS

VOCABULARY = 8_000
LONGEST = 128  # tokens, [CLS] among them
LONG = 2_048  # tokens of every text of the mix "long"
SHORTEST = 3  # [CLS], a pronoun and a candidate
MEDIAN, DEVIATION = 24, 0.7  # of the lognormal mix: a batch of 64 padded to its longest is then a quarter real tokens
_LETTERS = 4  # of an invented word


def lengths_of(kind: str, count: int, draw: np.random.Generator) -> Indices:
    """Tokens of `count` sentences.

    Args:
        kind: "lognormal", "corpus" for those of the built-in corpus's training split under its own tokenizer, or
            "long".
        count: how many to draw.
        draw: the source of chance.
    """
    match kind:
        case "lognormal":
            drawn = np.rint(draw.lognormal(np.log(MEDIAN), DEVIATION, count)).astype(np.int64)
        case "corpus":
            drawn = draw.choice(_corpus_lengths(), count)
        case "long":
            return np.full(count, LONG)
        case _:
            raise UserError(f"lengths ({kind!r}) must be one of lognormal, corpus, long")
    return np.clip(drawn, SHORTEST, LONGEST)


def _corpus_lengths() -> Indices:
    from anaphora.data import store

    corpus = store.load(Controlled())
    texts = [example.text for example in corpus.examples("train")]
    tokenizer = of_words(texts, corpus.words)
    return np.array([len(tokens.ids) for tokens in tokenizer.encode_batch(texts)])


def invent(lengths: Indices, draw: np.random.Generator) -> Encoded:
    """Sentences of exactly these many tokens, words drawn evenly, each with a pronoun and a candidate somewhere."""
    count = VOCABULARY - len(SPECIALS) - len(ascii_lowercase)  # the tokenizer knows single letters as well
    words = ["".join(letters) for letters in islice(product(ascii_lowercase, repeat=_LETTERS), count)]
    return Encoded([_sentence(int(length), words, draw) for length in lengths], of_words((), words))


def _sentence(length: int, words: list[str], draw: np.random.Generator) -> Example:
    chosen = draw.integers(len(words), size=length - 1)
    pronoun, candidate = (int(place) * (_LETTERS + 1) for place in draw.choice(length - 1, 2, replace=False))
    return Example(
        text=" ".join(words[number] for number in chosen),
        language="en",
        pronoun=(pronoun, pronoun + _LETTERS),
        candidates=(((candidate, candidate + _LETTERS),),),
        antecedents=(0,),
    )
