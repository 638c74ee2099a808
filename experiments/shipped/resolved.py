"""Training items as text for pre-training, half of them with the antecedent in place of the pronoun.

A masked noun in "The spoon lay in the soup. The soup was hot." can be predicted only from the clause about it, so the
masked-language-model loss teaches selectional preferences without labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from experiments.shipped.settings import Row

_POSSESSIVE = frozenset(["its", "his", "their", "hers"])
_DETERMINED = frozenset(["the", "a", "an", "my", "his", "her", "our", "their", "your", "this"])


def texts_of(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield a document for each training item; in every second one, from the first on, the pronoun is `resolved`."""
    training = (row for row in rows if row["split"] == "train")
    for number, row in enumerate(training):
        yield {"text": row["text"] if number % 2 else resolved(row)}


def resolved(row: Row) -> str:
    """Return the text with the pronoun replaced by its antecedent, or unchanged if this is not a single noun."""
    text, pronoun, antecedents = row["text"], row["pronoun"], row["antecedents"]
    if len(antecedents) != 1 or len(pronoun) != 2 or len(row["candidates"][antecedents[0]]) != 2:
        return str(text)
    (start, end), (first, last) = pronoun, row["candidates"][antecedents[0]]
    word, noun = text[start:end], text[first:last]
    if row["language"] == "en":
        if word.lower() == "her":  # an object or a possessive, which the words alone do not tell
            return str(text)
        noun = in_place_of(word, noun)
    return f"{text[:start]}{noun}{text[end:]}"


def in_place_of(pronoun: str, noun: str) -> str:
    """Return an English noun with an article, made possessive or capitalised if the pronoun is."""
    if noun[0].islower() and noun.split()[0] not in _DETERMINED:
        noun = f"the {noun}"
    if pronoun.lower() in _POSSESSIVE:
        noun += "'" if noun.endswith("s") else "'s"
    return noun[0].upper() + noun[1:] if pronoun[0].isupper() else noun
