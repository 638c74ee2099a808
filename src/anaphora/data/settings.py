"""Where the examples come from, in the user's words. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field

from omegaconf import MISSING

from anaphora.data.example import LANGUAGES
from anaphora.errors import UserError


@dataclass(kw_only=True)
class Data:
    """A source of examples; the variants are the subclasses."""

    kind: str = MISSING
    seed: int = 0  # of what is drawn: the corpus itself, or which group goes to which split

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise UserError(f"data.seed ({self.seed}) must be at least 0")


SET_TYPES = ("selection", "gender", "number", "animacy")
"""Types of cue in the built-in corpus that need no word order."""
ROLE_TYPES = {
    "en": ("causality", "winograd", "voice", "reflexive"),
    "zh": ("causality", "winograd", "voice", "reflexive", "ba_bei"),
}
"""Types of cue in the built-in corpus that tell who did what, by language."""
TRAINING_ASIDES = 3
"""The most asides that stand before a pronoun in training."""


@dataclass(kw_only=True)
class NoData(Data):
    """No examples at all: what pretrained weights come with. No setting chooses it."""

    kind: str = "none"


@dataclass(kw_only=True)
class Controlled(Data):
    """The built-in corpus: blocks of sentences that differ in cue and order alone."""

    kind: str = "controlled"
    languages: list[str] = field(default_factory=lambda: ["en", "zh"])
    train_items: int = 24_000  # a language, at least: blocks are kept whole
    test_items: int = 3_000  # a language, at least, of plain items; as many again in dev, a tenth more a stratum
    test_asides: int = 3  # most asides before a pronoun in the test split; above 3, what training shows, any number
    types: list[str] = field(default_factory=list)  # of cues, for instance [gender, voice]; none named: all
    shared_nouns: float = 0.2  # of gender, number, animacy: the share that training shows with every form of pronoun

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.1 <= self.shared_nouns <= 0.8:
            raise UserError(
                f"data.shared_nouns ({self.shared_nouns}) must be from 0.1, for sentences with two forms, to 0.8: the "
                "others are held out"
            )
        for language in self.languages:
            if language not in LANGUAGES:
                raise UserError(f"data.languages ({language!r}) must be taken from {', '.join(LANGUAGES)}")
        if not self.languages or len(set(self.languages)) != len(self.languages):
            raise UserError(f"data.languages ({self.languages}) must name each language once, at least one")
        everywhere = dict.fromkeys((*SET_TYPES, *(kind for language in LANGUAGES for kind in ROLE_TYPES[language])))
        for kind in self.types:
            if kind not in everywhere:
                raise UserError(f"data.types ({kind!r}) must be taken from {', '.join(everywhere)}")
        for language in self.languages:
            here = (*SET_TYPES, *ROLE_TYPES[language])
            if self.types and not set(self.types) & set(here):
                raise UserError(f"data.types ({self.types}) must name at least one of {', '.join(here)} for {language}")
        if self.test_asides < TRAINING_ASIDES:
            raise UserError(f"data.test_asides ({self.test_asides}) must be at least {TRAINING_ASIDES}")
        for name, value in (("train_items", self.train_items), ("test_items", self.test_items)):
            if value < 1:
                raise UserError(f"data.{name} ({value}) must be at least 1")


@dataclass(kw_only=True)
class Divided(Data):
    """A file of one's own or a public corpus, divided by group."""

    path: str = MISSING
    dev_share: float = 0.1  # of the groups
    test_share: float = 0.2  # of the groups
    folds: int | None = None  # cross-validation: what is not test is cut into so many folds of groups
    fold: int = 0  # which of them is the dev split; the others train
    without: list[str] = field(default_factory=list)  # evaluation data; what shares 8 words in a row is left out

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, share in (("dev_share", self.dev_share), ("test_share", self.test_share)):
            if not 0 <= share <= 1:
                raise UserError(f"data.{name} ({share}) must be from 0 to 1")
        if self.folds is not None and self.folds < 2:
            raise UserError(f"data.folds ({self.folds}) must be at least 2")
        if not 0 <= self.fold < (self.folds or 1):
            raise UserError(f"data.fold ({self.fold}) must be at least 0 and below data.folds ({self.folds})")
        if self.dev_share + self.test_share > 1 + 1e-9:
            raise UserError(
                f"data.dev_share + data.test_share ({self.dev_share + self.test_share:g}) must be at most 1"
            )


@dataclass(kw_only=True)
class Table(Divided):
    """One's own examples: .jsonl, .csv or .parquet. A column `split` decides where it is there, else the shares."""

    kind: str = "jsonl"


@dataclass(kw_only=True)
class Dpr(Divided):
    """Definite Pronoun Resolution (Rahman and Ng 2012): train.c.txt, or a folder with train.c.txt and test.c.txt.

    In a folder test.c.txt is the test split and `test_share` is not used.
    """

    kind: str = "dpr"


@dataclass(kw_only=True)
class Gap(Divided):
    """GAP (Webster et al. 2018): a folder with gap-development.tsv and gap-validation.tsv, one such file, or hf://.

    The hub's rows must have the columns of the files; its split "train" is the development file. In a folder the
    validation file is the test split and `test_share` is not used; `dev_share` comes off the development file.
    """

    kind: str = "gap"


WINOGRANDE_SIZES = ("xs", "s", "m", "l", "xl")


@dataclass(kw_only=True)
class Winogrande(Divided):
    """WinoGrande (Sakaguchi et al. 2020): a folder with train_<size>.jsonl and dev.jsonl, one such file, or hf://.

    In a folder dev.jsonl is the test split (the published test part has no answers) and `test_share` is not used. The
    hub's rows must have sentence, option1, option2 and answer, as in hf://allenai/winogrande/winogrande_m; they have no
    qID, so no twins are known there.
    """

    kind: str = "winogrande"
    size: str = "largest"  # which train file of a folder: xs, s, m, l, xl or the largest there is

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size not in ("largest", *WINOGRANDE_SIZES):
            raise UserError(f"data.size ({self.size!r}) must be one of largest, {', '.join(WINOGRANDE_SIZES)}")


@dataclass(kw_only=True)
class Cluewsc(Divided):
    """CLUEWSC2020 (Xu et al. 2020), Chinese: a folder with train.json and dev.json, one such file, or hf://.

    In a folder dev.json is the test split (the published test part has no labels) and `test_share` is not used. The
    hub's rows must have text, target and label, as in hf://clue/clue/cluewsc2020.
    """

    kind: str = "cluewsc"


@dataclass(kw_only=True)
class Mandarinograd(Divided):
    """Mandarinograd (Bernard and Han 2020), Chinese: the Mandarin columns of the Parallel Winograd Schemata."""

    kind: str = "mandarinograd"


@dataclass(kw_only=True)
class Xwino(Divided):
    """XWINO (Tikhonov and Ryabinin 2021): its English and Chinese rows, a .tsv file or a folder of them."""

    kind: str = "xwino"


@dataclass(kw_only=True)
class Evaluated(Divided):
    """A corpus that was made to evaluate with: nothing is for training unless the shares leave room."""

    dev_share: float = 0.1  # of the groups
    test_share: float = 0.9  # of the groups


@dataclass(kw_only=True)
class Wsc273(Evaluated):
    """Winograd Schema Challenge (Levesque et al. 2012): WSCollection.xml, or the copy in blocks with [MASK]."""

    kind: str = "wsc273"


@dataclass(kw_only=True)
class Pdp60(Evaluated):
    """Pronoun Disambiguation Problems (Morgenstern et al. 2016): PDP.txt, the copy in blocks with [MASK]."""

    kind: str = "pdp60"


@dataclass(kw_only=True)
class Winobias(Evaluated):
    """WinoBias (Zhao et al. 2018): the folder with its sentences and its two lists of occupations.

    Where both the .dev and the .test files are there, they are those splits and the shares are not used.
    """

    kind: str = "winobias"


@dataclass(kw_only=True)
class Winogender(Evaluated):
    """Winogender (Rudinger et al. 2018): the folder with all_sentences.tsv and templates.tsv."""

    kind: str = "winogender"


@dataclass(kw_only=True)
class Knowref(Evaluated):
    """KnowRef (Emami et al. 2019): knowref_test.json."""

    kind: str = "knowref"


@dataclass(kw_only=True)
class Coreference(Divided):
    """Documents with coreference links; every mention is asked for its antecedent within a passage."""

    words: int = 100  # of a passage at most; documents are cut between sentences, too long sentences inside

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words < 2:
            raise UserError(f"data.words ({self.words}) must be at least 2")


@dataclass(kw_only=True)
class LitBank(Coreference):
    """LitBank (Bamman et al. 2020): a folder of <id>_<title>_brat.txt and .ann, books of Project Gutenberg.

    A book is on the list `seen_in` by a column `id` or `title` of .jsonl, or by a line of .txt that is one of the two.
    """

    kind: str = "litbank"
    seen_in: str | None = None  # a list of books read in pre-training, for the factor `seen`: .jsonl(.gz) or .txt


@dataclass(kw_only=True)
class OntoGum(Coreference):
    """OntoGUM (Zhu et al. 2021): a .conllu(.gz) file or a folder of them, in which names tell the official splits."""

    kind: str = "ontogum"


@dataclass(kw_only=True)
class Texts(Divided):
    """Texts in which no pronoun is asked about; the variants are the subclasses."""


@dataclass(kw_only=True)
class PlainText(Texts):
    """Text to pre-train on: .txt, .jsonl (fields text, title) or wikitext's .tokens, also as .gz, a folder, or hf://.

    A folder with wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens keeps these splits. The hub's rows must have
    text and may have title; its splits are kept where one of them is for validation.
    """

    kind: str = "plain_text"
    also: list[str] = field(default_factory=list)  # more files, folders or hub names, read after `path`
    dev_share: float = 0.02  # of the documents
    test_share: float = 0.02  # of the documents


@dataclass(kw_only=True)
class Silver(Divided):
    """Questions made out of plain English text, whose answers rules know and nobody has checked; to train on first.

    What `path`, `also` and `without` take is what data=plain_text takes. Given names and their gender are learned from
    the documents that have a `title` and are about a person: some must be.
    """

    kind: str = "silver"
    also: list[str] = field(default_factory=list)  # more files, folders or hub names, read after `path`
    words: int = 100  # of a passage at most
    dev_share: float = 0.05  # of the documents
    test_share: float = 0.0  # of the documents

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words < 20:
            raise UserError(f"data.words ({self.words}) must be at least 20")


@dataclass(kw_only=True)
class LabelledText(Texts):
    """Texts with a label each: .tsv, .csv, .jsonl or .parquet with columns text, label; or a hub name, hf://owner/name.

    A folder with train, dev and test files keeps these splits. Where a split is missing, or has no labels, test is dev
    and dev comes off train.
    """

    kind: str = "labelled_text"


@dataclass(kw_only=True)
class Sst2(LabelledText):
    """SST-2 (Socher et al. 2013, as in GLUE): the folder of train.tsv, dev.tsv and test.tsv."""

    kind: str = "sst2"


@dataclass(kw_only=True)
class RottenTomatoes(LabelledText):
    """Sentence polarity (Pang and Lee 2005): the folder of rt-polarity.pos and rt-polarity.neg; no official split."""

    kind: str = "rotten_tomatoes"


@dataclass(kw_only=True)
class AgNews(LabelledText):
    """AG News topics (Zhang et al. 2015): the folder of train.tsv (or dev.tsv alone, to train on) and test.tsv."""

    kind: str = "ag_news"


@dataclass(kw_only=True)
class ChnSentiCorp(LabelledText):
    """ChnSentiCorp, Chinese reviews: the folder of train.tsv, dev.tsv and test.tsv (the last has no labels)."""

    kind: str = "chnsenticorp"


@dataclass(kw_only=True)
class Vocabulary:
    """How text is cut into tokens, learned from the training split; the variants are the subclasses."""

    kind: str = MISSING


@dataclass(kw_only=True)
class WordVocabulary(Vocabulary):
    """Whole words, and known pieces for the rare ones; Chinese is cut into known words."""

    kind: str = "word"
    min_count: int = 2  # a word seen less often is cut into known pieces

    def __post_init__(self) -> None:
        _at_least_one("vocabulary.min_count", self.min_count)


@dataclass(kw_only=True)
class CharacterVocabulary(Vocabulary):
    """Single characters."""

    kind: str = "character"
    min_count: int = 2  # a character seen less often is unknown

    def __post_init__(self) -> None:
        _at_least_one("vocabulary.min_count", self.min_count)


@dataclass(kw_only=True)
class SizedVocabulary(Vocabulary):
    """Pieces of words, as many as are asked for; at most half of them single characters, the most frequent ones."""

    size: int = 8000  # tokens, special ones included; fewer where the text holds no more

    def __post_init__(self) -> None:
        if self.size < 16:
            raise UserError(f"vocabulary.size ({self.size}) must be at least 16")


@dataclass(kw_only=True)
class WordPiece(SizedVocabulary):
    """WordPiece (Devlin et al. 2019): "##" marks a piece inside a word; every Chinese character is a token."""

    kind: str = "wordpiece"


@dataclass(kw_only=True)
class Bpe(SizedVocabulary):
    """Byte-pair encoding (Sennrich et al. 2016) over characters; Chinese characters merge into words."""

    kind: str = "bpe"


def _at_least_one(name: str, value: int) -> None:
    if value < 1:
        raise UserError(f"{name} ({value}) must be at least 1")


@dataclass(kw_only=True)
class Batching:
    """How sentences share a batch."""

    kind: str = "packed"  # packed: several sentences a row; buckets: one a row, next to others of its length
    tokens: int = 4096  # of a batch at most, padding included
    row_tokens: int = 128  # of a packed row at most; texts without a pronoun question are cut to it
    window: int = 1024  # sentences among which row mates or bucket mates are looked for

    def __post_init__(self) -> None:
        if self.kind not in ("packed", "buckets"):
            raise UserError(f"batching.kind ({self.kind!r}) must be one of packed, buckets")
        for name, value in (("row_tokens", self.row_tokens), ("window", self.window)):
            if value < 1:
                raise UserError(f"batching.{name} ({value}) must be at least 1")
        if self.tokens < self.row_tokens:
            raise UserError(f"batching.tokens ({self.tokens}) must be at least batching.row_tokens ({self.row_tokens})")
