"""Items on which the heads are measured: everyday sentences, other corpora, and modified sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from anaphora.data.example import Example, Span, from_record, sample_groups
from anaphora.data.store import load
from anaphora.settings.cue_types import COMPOSITION, SET_CUE_TYPES
from anaphora.settings.data import (
    Cluewsc,
    ControlledCorpus,
    CoreferenceCorpus,
    ExternalCorpus,
    Gap,
    LitBank,
    OntoGum,
    OwnExamples,
    Xwino,
)
from experiments.pointing_heads.settings import FIRST, PointingHeads
from experiments.shipped.items import generated_items
from experiments.shipped.settings import TrainingItems

FORM_TYPES = ("gender", "number", "animacy")
"""Types of cue in which agreement determines the antecedent."""
MEANING_TYPES = ("selection", "role")


@dataclass(frozen=True)
class Reading:
    """Evaluation of a model's head on sentences of one language; `chosen_in` is that of its development sentences."""

    name: str
    model: str
    language: str
    chosen_in: str


READINGS = (
    Reading("e5-zh", "e5", "zh", "en"),
    Reading("e5-en", "e5", "en", "zh"),
    Reading("minilm-en", "minilm", "en", "en"),
)
_FILES: Mapping[str, tuple[type[ExternalCorpus], str]] = {
    "gap": (Gap, "gap/gap-development.tsv"),
    "ontogum": (OntoGum, "ontogum"),  # its official test split
    "litbank": (LitBank, "litbank_coref"),
    "xwino": (Xwino, "xwino/en_dpr_train.tsv"),
    "cluewsc": (Cluewsc, "cluewsc2020/train.json"),
}
"""Settings class and path of each corpus in the folder of corpora."""
DEVELOPMENT = {"e5": ("en", "zh"), "minilm": ("en",), "smollm2": ("en",)}
"""Languages in which a head of each model is chosen."""
CORPORA = {"e5": ("gap", "ontogum", "litbank", "xwino", "cluewsc"), "minilm": ("gap", "ontogum", "litbank", "xwino")}


def everyday(settings: PointingHeads, language: str, split: str) -> list[Example]:
    """Return everyday sentences: the split "dev" or "test" of the first set, or the set to measure ("measured")."""
    folder = Path(settings.sentences)
    if split == "measured" and settings.measured != FIRST:
        return load(OwnExamples(path=str(folder / f"{settings.measured}.{language}.jsonl"))).examples("test")
    return load(OwnExamples(path=str(folder / f"{language}.jsonl"))).examples("dev" if split == "dev" else "test")


def corpus(settings: PointingHeads, name: str) -> list[Example]:
    """Return an evenly spaced sample of a corpus, in whole groups, or in whole passages of documents."""
    kind, file = _FILES[name]
    source = kind(path=str(Path(settings.data) / file), dev_share=0.0, test_share=1.0)
    examples = [each for each in load(source).examples("test") if 0 < len(each.antecedents) < len(each.candidates)]
    by_passage = isinstance(source, CoreferenceCorpus)
    kept = sample_groups([each.text if by_passage else each.group for each in examples], settings.items)
    return [examples[number] for number in kept]


def controlled(settings: PointingHeads, language: str) -> list[Example]:
    """Return a sample of the test split of the built-in corpus, with all types of cue."""
    types = [*SET_CUE_TYPES, "causality", "winograd", "binding", COMPOSITION]
    examples = load(ControlledCorpus(languages=[language], types=types)).examples("test")
    main = [example for example in examples if example.is_main]
    return [main[number] for number in sample_groups([example.group for example in main], settings.items)]


def training_items(settings: PointingHeads, language: str) -> list[Example]:
    """Return the first generated training items of the shipped run."""
    rows = generated_items(TrainingItems(pairs=settings.training_items))
    kept = (row for row in rows if row["language"] == language and row.pop("split") == "train")
    return [from_record(row) for row in islice(kept, settings.training_items)]


def replaced(example: Example, changes: Sequence[tuple[Span, str]]) -> tuple[str, dict[Span, Span]]:
    """Return the text with some spans replaced, and the new offsets of each of the example's spans."""
    text, places, end = "", {}, 0
    words = dict(changes)
    for span in sorted(example.spans):
        text += example.text[end : span[0]]
        start = len(text)
        text += words.get(span, example.text[slice(*span)])
        places[span] = (start, len(text))
        end = span[1]
    return text + example.text[end:], places


def filled(example: Example, candidate: int) -> str:
    """Return the text with a candidate in place of the pronoun."""
    words = example.words(candidate)
    if example.pronoun[0] == 0:
        words = words[0].upper() + words[1:]
    return replaced(example, [(example.pronoun, words)])[0]


def exchanged(example: Example) -> Example | None:
    """Return the sentence with its two candidates exchanged; None unless it has two candidates with one mention each.

    The antecedent is the same word in its new position.
    """
    if [len(spans) for spans in example.candidates] != [1, 1]:
        return None
    first, second = (spans[0] for spans in example.candidates)
    text, places = replaced(example, [(first, example.words(1)), (second, example.words(0))])
    return replace(
        example,
        text=text,
        pronoun=places[example.pronoun],
        candidates=((places[first],), (places[second],)),
        antecedents=tuple(sorted(1 - number for number in example.antecedents)),
        factors={},
    )


_AFTER_OBJECT = (
    " a about after again all almost and as at because before but by down during for from home if in into just like my "
    "of off on out over right since so that the there this to today twice until up when where while who with without "
    "yesterday "
)
"""English words that follow "her" as an object; before other words, "her" is a possessive."""


def noun_for(example: Example, other: str) -> tuple[str, str] | None:
    """Return a definite noun that can replace a third-person pronoun, as its determiner and the noun.

    Args:
        example: the sentence.
        other: the pronoun in the other sentence of the minimal pair, which shows whether "they" are things.
    """
    pronoun = example.text[slice(*example.pronoun)].lower()
    if example.language == "zh":
        for sign, noun in (("她们", "女人"), ("他们", "人"), ("它们", "东西")):
            if pronoun == sign:
                return "那些", noun
        chinese = {"她": "女人", "他": "男人", "它": "东西"}.get(pronoun)
        return None if chinese is None else ("那个", chinese)
    forms = {
        **dict.fromkeys(("she", "her", "hers", "herself"), "woman"),
        **dict.fromkeys(("he", "him", "his", "himself"), "man"),
        **dict.fromkeys(("it", "its", "itself"), "thing"),
        **dict.fromkeys(
            ("they", "them", "their", "theirs", "themselves"),
            "things" if other.lower() in ("it", "its", "itself") else "people",
        ),
    }
    if pronoun not in forms:
        return None
    following = example.text[example.pronoun[1] :].lstrip()
    next_word = "".join(islice((sign if sign.isalpha() else " " for sign in following), 12)).split(" ")[0].lower()
    is_possessive = pronoun in ("his", "its", "their") or (
        pronoun == "her" and bool(next_word) and f" {next_word} " not in _AFTER_OBJECT
    )
    noun = forms[pronoun]
    ending = "" if not is_possessive else "'" if noun.endswith("s") else "'s"
    return "the ", noun + ending


def with_noun(example: Example, other: str) -> Example | None:
    """Return the sentence with a definite noun for its pronoun, as the mention whose attention row is measured."""
    found = noun_for(example, other)
    if found is None:
        return None
    before, noun = found
    if example.pronoun[0] == 0:
        before = before.capitalize()
    text, places = replaced(example, [(example.pronoun, before + noun)])
    start = places[example.pronoun][0]
    bare = noun.rstrip("'") if noun.endswith("'") else noun.removesuffix("'s")
    return replace(
        example,
        text=text,
        pronoun=(start + len(before), start + len(before) + len(bare)),
        candidates=tuple(tuple(places[span] for span in spans) for spans in example.candidates),
        factors={},
    )
