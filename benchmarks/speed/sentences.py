"""Generated sentences of random words, with realistic lengths."""

from __future__ import annotations

from itertools import islice, product
from string import ascii_lowercase

import numpy as np

from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit, Indices
from anaphora.data.example import Example
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.settings.data import ControlledCorpus
from anaphora.settings.vocabulary import SPECIAL_TOKENS

VOCABULARY = 8_000
MAX_TOKENS = 128  # maximum number of tokens, including [CLS]
LONG_TOKENS = 2_048  # number of tokens of every text of the kind "long"
MIN_WORDS = 3  # [CLS], a pronoun and a candidate
MEDIAN, DEVIATION = 24, 0.7  # of lognormal lengths; a quarter of a padded batch of 64 sentences is then real tokens
_WORD_LETTERS = 4  # number of letters of a generated word


def draw_lengths(kind: str, count: int, generator: np.random.Generator) -> Indices:
    """Draw sentence lengths in tokens, (count,); raise UserError if `kind` is unknown.

    Args:
        kind: "lognormal", "long", or "corpus" for the lengths in the built-in corpus's training split.
        count: number of sentences.
        generator: random generator.
    """
    match kind:
        case "lognormal":
            lengths = np.rint(generator.lognormal(np.log(MEDIAN), DEVIATION, count)).astype(np.int64)
        case "corpus":
            lengths = generator.choice(_corpus_lengths(), count)
        case "long":
            return np.full(count, LONG_TOKENS)
        case _:
            raise UserError(f"lengths ({kind!r}) must be one of lognormal, corpus, long")
    return np.clip(lengths, MIN_WORDS, MAX_TOKENS)


def _corpus_lengths() -> Indices:
    from anaphora.data import store

    corpus = store.load(ControlledCorpus())
    texts = [example.text for example in corpus.examples("train")]
    tokenizer = word_vocabulary(texts, corpus.words)
    return np.array([len(tokens.ids) for tokens in tokenizer.encode_batch(texts)])


def generate_sentences(lengths: Indices, generator: np.random.Generator) -> EncodedSplit:
    """Return sentences with the given lengths in tokens, of uniformly drawn words with a pronoun and a candidate."""
    count = VOCABULARY - len(SPECIAL_TOKENS) - len(ascii_lowercase)  # the tokenizer knows single letters as well
    words = ["".join(letters) for letters in islice(product(ascii_lowercase, repeat=_WORD_LETTERS), count)]
    return EncodedSplit([_sentence(int(length), words, generator) for length in lengths], word_vocabulary((), words))


def _sentence(length: int, words: list[str], generator: np.random.Generator) -> Example:
    numbers = generator.integers(len(words), size=length - 1)
    pronoun, candidate = (int(word) * (_WORD_LETTERS + 1) for word in generator.choice(length - 1, 2, replace=False))
    return Example(
        text=" ".join(words[number] for number in numbers),
        language="en",
        pronoun=(pronoun, pronoun + _WORD_LETTERS),
        candidates=(((candidate, candidate + _WORD_LETTERS),),),
        antecedents=(0,),
    )
