"""Settings of the corpora, which are the sources of examples and texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, ClassVar

from omegaconf import MISSING

from anaphora.base import checks
from anaphora.base.errors import UserError
from anaphora.base.language import LANGUAGES
from anaphora.settings.cue_types import MAX_TRAINING_ASIDES, ROLE_CUE_TYPES, SET_CUE_TYPES, check_types, cue_types_of

if TYPE_CHECKING:
    from anaphora.data.corpora.division import ReadingReport, Splits

SPLITS = ("train", "dev", "test")


@dataclass(kw_only=True)
class Data:
    """Settings of a source of examples or texts; data=<kind> selects a subclass by its `kind`, except `NoData`."""

    reader: ClassVar[str] = ""  # the module whose `read` returns the items by split and a report; `build` imports it

    kind: str = MISSING
    seed: int = 0  # random seed for generating the corpus, or for dividing its groups into splits

    def __post_init__(self) -> None:
        checks.at_least("data.seed", self.seed, 0)

    def build(self) -> tuple[Splits, ReadingReport]:
        """Return each split's items and a report on dropped rows; raise `UserError` for a missing or invalid file."""
        if not self.reader:
            raise UserError(f"data.kind ({self.kind!r}) is not one that can be read")
        items: tuple[Splits, ReadingReport] = import_module(self.reader).read(self)
        return items

    def path_or_kind(self) -> str:
        """Return a name of the source for messages: the path, or the kind if the source has no path."""
        return str(getattr(self, "path", self.kind))


@dataclass(kw_only=True)
class NoData(Data):
    """Data settings of a model without data, such as published pretrained weights; users cannot choose this option."""

    kind: str = "none"


@dataclass(kw_only=True)
class ControlledCorpus(Data):
    """Built-in corpus, mostly of quads: four sentences that combine two cues (deciding words) and two name orders."""

    kind: str = "controlled"
    reader: ClassVar[str] = "anaphora.data.controlled.corpus"
    languages: list[str] = field(default_factory=lambda: ["en", "zh"])  # `en`, `zh` or both
    train_items: int = 24_000  # number of training items per language; slightly more if needed to keep quads whole
    # Number of items per language of the stratum `main` in the test split, and again in the dev split (slightly more if
    # needed to keep quads whole). Most of the other strata have a tenth as many items, which are added to these.
    test_items: int = 3_000
    # Maximum number of asides (inserted sentences) before a test pronoun; above 3 (the maximum in training), all
    # numbers are equally likely.
    test_asides: int = 3
    # Types of cue, as in [gender, voice]; by default all except binding, composition and short_text.
    types: list[str] = field(default_factory=list)
    # Share of the nouns in gender, number and animacy items that occur with every form of the pronoun in training.
    shared_nouns: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.1 <= self.shared_nouns <= 0.8:
            raise UserError(f"data.shared_nouns ({self.shared_nouns}) must be from 0.1 to 0.8; others are held out")
        check_types(self.types, self.languages)
        checks.at_least("data.test_asides", self.test_asides, MAX_TRAINING_ASIDES)
        checks.at_least("data.train_items", self.train_items, 1)
        checks.at_least("data.test_items", self.test_items, 1)

    def cue_types(self, language: str) -> tuple[str, ...]:
        """Return the cue types of a language's items, in the order of `cue_types_of`."""
        chosen = self.types or (*SET_CUE_TYPES, *ROLE_CUE_TYPES[language])
        return tuple(kind for kind in cue_types_of(language) if kind in chosen)


@dataclass(kw_only=True)
class ExternalCorpus(Data):
    """Settings of a public corpus or of your own file; a corpus without official splits is split by group."""

    path: str = MISSING  # the file or folder; `~` is expanded
    dev_share: float = 0.1  # share of the groups in the dev split, if `folds` is not set
    test_share: float = 0.2  # share of the groups in the test split
    folds: int | None = None  # number of cross-validation folds, into which groups outside the test split are divided
    fold: int = 0  # index of the fold that is the dev split, from 0; the other folds are the training split
    # Files of evaluation data; groups with an item that shares 8 consecutive words with them are left out.
    without: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, share in (("dev_share", self.dev_share), ("test_share", self.test_share)):
            if not 0 <= share <= 1:
                raise UserError(f"data.{name} ({share}) must be from 0 to 1")
        checks.at_least("data.folds", self.folds, 2)
        if not 0 <= self.fold < (self.folds or 1):
            raise UserError(f"data.fold ({self.fold}) must be 0 or more, below data.folds ({self.folds or 'not set'})")
        if (shares := self.dev_share + self.test_share) > 1 + 1e-9:
            raise UserError(f"data.dev_share + data.test_share ({shares:g}) must be at most 1")


@dataclass(kw_only=True)
class OwnExamples(ExternalCorpus):
    """Your own examples in a .jsonl, .csv or .parquet file; a column `split` overrides `dev_share` and `test_share`."""

    kind: str = "jsonl"
    reader: ClassVar[str] = "anaphora.data.corpora.tables"


@dataclass(kw_only=True)
class Dpr(ExternalCorpus):
    """Definite Pronoun Resolution (Rahman and Ng 2012): train.c.txt, or a folder with train.c.txt and test.c.txt.

    If a folder has test.c.txt, this file is the test split and `test_share` is not used.
    """

    kind: str = "dpr"
    reader: ClassVar[str] = "anaphora.data.corpora.dpr"


@dataclass(kw_only=True)
class Gap(ExternalCorpus):
    """GAP (Webster et al. 2018): gap-development.tsv, gap-validation.tsv, a folder with both files, or hf://owner/name.

    On the Hugging Face Hub, these files are the splits "train" and "validation". If both files are present, the
    validation file is the test split, `test_share` is not used, and `dev_share` is a share of the development file.
    """

    kind: str = "gap"
    reader: ClassVar[str] = "anaphora.data.corpora.gap"


WINOGRANDE_SIZES = ("xs", "s", "m", "l", "xl")


@dataclass(kw_only=True)
class Winogrande(ExternalCorpus):
    """WinoGrande (Sakaguchi et al. 2020): train_<size>.jsonl, dev.jsonl, a folder with both, or hf://owner/name.

    The published test part has no answers. The test split is therefore dev.jsonl, or "validation" on the Hugging Face
    Hub. If it is present, `test_share` is not used. Rows on the Hub must have the fields sentence, option1, option2 and
    answer, as in hf://allenai/winogrande/winogrande_m. Since they have no qID, their minimal pairs are unknown.
    """

    kind: str = "winogrande"
    reader: ClassVar[str] = "anaphora.data.corpora.winogrande"
    size: str = "largest"  # which training file of a folder to read: xs, s, m, l, xl, or the largest available

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("data.size", self.size, ("largest", *WINOGRANDE_SIZES))


@dataclass(kw_only=True)
class Cluewsc(ExternalCorpus):
    """CLUEWSC2020 (Xu et al. 2020), Chinese: train.json, dev.json, a folder with both files, or hf://owner/name.

    The published test part has no labels. The test split is therefore dev.json, or "validation" on the Hugging Face
    Hub. If it is present, `test_share` is not used. Rows on the Hub must have the fields text, target and label, as in
    hf://clue/clue/cluewsc2020.
    """

    kind: str = "cluewsc"
    reader: ClassVar[str] = "anaphora.data.corpora.cluewsc"


@dataclass(kw_only=True)
class Mandarinograd(ExternalCorpus):
    """Mandarinograd (Bernard and Han 2020), Chinese: the Mandarin columns of the Parallel Winograd Schemata."""

    kind: str = "mandarinograd"
    reader: ClassVar[str] = "anaphora.data.corpora.mandarinograd"


@dataclass(kw_only=True)
class Xwino(ExternalCorpus):
    """XWINO (Tikhonov and Ryabinin 2021), only English and Chinese: a .tsv file, or a folder of .tsv files."""

    kind: str = "xwino"
    reader: ClassVar[str] = "anaphora.data.corpora.xwino"


@dataclass(kw_only=True)
class EvaluationCorpus(ExternalCorpus):
    """Settings of a corpus that was made for evaluation; by default, there is no training split."""

    dev_share: float = 0.1  # share of the groups in the dev split
    test_share: float = 0.9  # share of the groups in the test split


@dataclass(kw_only=True)
class Wsc273(EvaluationCorpus):
    """Winograd Schema Challenge (Levesque et al. 2012): WSCollection.xml, or a text file with four lines per item."""

    kind: str = "wsc273"
    reader: ClassVar[str] = "anaphora.data.corpora.wsc273"


@dataclass(kw_only=True)
class Pdp60(EvaluationCorpus):
    """Pronoun Disambiguation Problems (Morgenstern et al. 2016): PDP.txt, with four lines per item."""

    kind: str = "pdp60"
    reader: ClassVar[str] = "anaphora.data.corpora.wsc273"


@dataclass(kw_only=True)
class Winobias(EvaluationCorpus):
    """WinoBias (Zhao et al. 2018): the folder with the files of sentences and the two lists of occupations.

    If both .dev and .test files are present, they are the dev and test splits, and there is no training split.
    """

    kind: str = "winobias"
    reader: ClassVar[str] = "anaphora.data.corpora.winobias"


@dataclass(kw_only=True)
class Winogender(EvaluationCorpus):
    """Winogender (Rudinger et al. 2018): the folder with all_sentences.tsv and templates.tsv."""

    kind: str = "winogender"
    reader: ClassVar[str] = "anaphora.data.corpora.winogender"


@dataclass(kw_only=True)
class Knowref(EvaluationCorpus):
    """KnowRef (Emami et al. 2019): knowref_test.json."""

    kind: str = "knowref"
    reader: ClassVar[str] = "anaphora.data.corpora.knowref"


@dataclass(kw_only=True)
class CoreferenceCorpus(ExternalCorpus):
    """Settings of documents with coreference links; each mention with an antecedent in its passage is an item."""

    # Maximum number of words in a passage; documents are split between sentences, or within a longer sentence.
    words: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least("data.words", self.words, 2)


@dataclass(kw_only=True)
class BilingualDocuments(CoreferenceCorpus):
    """Settings of documents with coreference links, in a file format that is used for both English and Chinese."""

    language: str = "en"  # language of the texts, `en` or `zh`

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.one_of("data.language", self.language, LANGUAGES)


@dataclass(kw_only=True)
class LitBank(CoreferenceCorpus):
    """LitBank (Bamman et al. 2020), English novels: a folder of <id>_<title>_brat.txt and <id>_<title>_brat.ann files.

    `seen_in` lists the books in the pre-training data: .jsonl(.gz) with `id` or `title`, or .txt with a book per line.
    """

    kind: str = "litbank"
    reader: ClassVar[str] = "anaphora.data.corpora.litbank"
    seen_in: str | None = None  # file that lists the books in the pre-training data, for the factor `seen`


@dataclass(kw_only=True)
class OntoGum(CoreferenceCorpus):
    """OntoGUM (Zhu et al. 2021): a .conllu(.gz) file, or a folder of files whose names give the official splits."""

    kind: str = "ontogum"
    reader: ClassVar[str] = "anaphora.data.corpora.corefud"


@dataclass(kw_only=True)
class Conll2012(BilingualDocuments):
    """CoNLL-2012 (Pradhan et al. 2012), OntoNotes: a .v4_gold_conll, *_conll or .conll file (or .gz), or a folder.

    In a folder, files whose path names another language (english, chinese, arabic) are skipped; if there are gold
    files, only these are read; and the word train, development (or dev) or test in a path gives the official split.
    """

    kind: str = "conll2012"
    reader: ClassVar[str] = "anaphora.data.corpora.conll2012"


@dataclass(kw_only=True)
class CorefUd(BilingualDocuments):
    """CorefUD (Nedoluzhko et al. 2022): a .conllu(.gz) file, or a folder of such files; file names give the splits."""

    kind: str = "corefud"
    reader: ClassVar[str] = "anaphora.data.corpora.corefud"


@dataclass(kw_only=True)
class ClusterLines(BilingualDocuments):
    """Clusters of mentions in JSON lines, as neural systems write them: .jsonl(.gz), .jsonlines(.gz) or a folder."""

    kind: str = "clusters"
    reader: ClassVar[str] = "anaphora.data.corpora.clusters"
    # Whether the end of a span is its last word (`inclusive`: e2e-coref, coref-hoi, maverick) or the word after it
    # (`exclusive`: wl-coref); by default this follows from the field's name or from the spans of the file.
    ends: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.ends is not None:
            checks.one_of("data.ends", self.ends, ("inclusive", "exclusive"))


@dataclass(kw_only=True)
class TextCorpus(ExternalCorpus):
    """Settings of texts without marked pronouns and candidates; each subclass is a variant."""


@dataclass(kw_only=True)
class PlainText(TextCorpus):
    """Pre-training text: a .txt, .jsonl (text, title) or wikitext .tokens file (or .gz), a folder, or hf://owner/name.

    If at least two of wiki.train.tokens, wiki.valid.tokens and wiki.test.tokens are present, they are the splits. Rows
    on the Hugging Face Hub need a field text and may have a field title; the Hub's splits are used if one of them is
    for validation.
    """

    kind: str = "plain_text"
    reader: ClassVar[str] = "anaphora.data.corpora.plain_text"
    also: list[str] = field(default_factory=list)  # further files, folders or hub names, read after `path`
    dev_share: float = 0.02  # share of the documents in the dev split
    test_share: float = 0.02  # share of the documents in the test split


@dataclass(kw_only=True)
class SilverStandard(ExternalCorpus):
    """Items made from plain English text, with antecedents found by rules and not checked; for pre-training.

    `path`, `also` and `without` mean the same as in data=plain_text. Given names and their gender are learned from
    documents about people, which need a `title`; the text must include such documents.
    """

    kind: str = "silver"
    reader: ClassVar[str] = "anaphora.data.silver.questions"
    also: list[str] = field(default_factory=list)  # further files, folders or hub names, read after `path`
    words: int = 100  # maximum number of words in a passage
    dev_share: float = 0.05  # share of the documents in the dev split
    test_share: float = 0.0  # share of the documents in the test split

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.at_least("data.words", self.words, 20)


@dataclass(kw_only=True)
class LabelledText(TextCorpus):
    """Texts with one label each: .tsv, .csv, .jsonl or .parquet with the columns text and label, or hf://owner/name.

    Train, dev and test files of a folder, or a column `split`, give the splits. If there is no test split with labels,
    the dev split becomes the test split, and a new dev split is taken from the training split.
    """

    kind: str = "labelled_text"
    reader: ClassVar[str] = "anaphora.data.corpora.labelled_text"


@dataclass(kw_only=True)
class Sst2(LabelledText):
    """SST-2 (Socher et al. 2013, as in GLUE): the folder with train.tsv, dev.tsv and test.tsv."""

    kind: str = "sst2"


@dataclass(kw_only=True)
class RottenTomatoes(LabelledText):
    """Sentence polarity (Pang and Lee 2005): the folder with rt-polarity.pos and rt-polarity.neg; no official split."""

    kind: str = "rotten_tomatoes"


@dataclass(kw_only=True)
class AgNews(LabelledText):
    """AG News topics (Zhang et al. 2015): the folder with train.tsv (or dev.tsv alone, for training) and test.tsv."""

    kind: str = "ag_news"


@dataclass(kw_only=True)
class ChnSentiCorp(LabelledText):
    """ChnSentiCorp, Chinese reviews: the folder with train.tsv, dev.tsv and test.tsv (the last has no labels)."""

    kind: str = "chnsenticorp"
