"""Examples and texts on disk: a corpus is made or read once, kept as Arrow in a cache, and read back in a moment.

The cache is the folder $ANAPHORA_CACHE, or ~/.cache/anaphora. What it holds is keyed by the settings, the files that
they name and the code that makes examples, so nothing stale is ever read; but what came from the hub stays as it was
when it was first read.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.data import contamination
from anaphora.data import settings as sources
from anaphora.data.controlled import corpus as controlled
from anaphora.data.corpora import (
    cluewsc,
    dpr,
    gap,
    knowref,
    labelled_text,
    litbank,
    mandarinograd,
    ontogum,
    pdp60,
    plain_text,
    silver,
    tables,
    winobias,
    winogender,
    winogrande,
    wsc273,
    xwino,
)
from anaphora.data.corpora.division import Origin, ReadingReport, existing, fold_numbers, is_hub, together
from anaphora.data.example import SPLITS, Example, to_record
from anaphora.data.text import Text
from anaphora.errors import UserError
from anaphora.parts import PARTS, extensible, source_of

if TYPE_CHECKING:
    import datasets
    import pyarrow

_ABOUT = "about.json"
_ORIGINS: dict[type[sources.Data], Origin] = {
    sources.Table: tables.ORIGIN,
    sources.Dpr: dpr.ORIGIN,
    sources.Gap: gap.ORIGIN,
    sources.Wsc273: wsc273.ORIGIN,
    sources.Pdp60: pdp60.ORIGIN,
    sources.Winogrande: winogrande.ORIGIN,
    sources.Winobias: winobias.ORIGIN,
    sources.Winogender: winogender.ORIGIN,
    sources.Knowref: knowref.ORIGIN,
    sources.Xwino: xwino.ORIGIN,
    sources.Cluewsc: cluewsc.ORIGIN,
    sources.Mandarinograd: mandarinograd.ORIGIN,
    sources.LitBank: litbank.ORIGIN,
    sources.OntoGum: ontogum.ORIGIN,
    sources.PlainText: plain_text.ORIGIN,
    sources.Silver: plain_text.ORIGIN,
    sources.LabelledText: labelled_text.ORIGINS["labelled_text"],
    sources.Sst2: labelled_text.ORIGINS["sst2"],
    sources.RottenTomatoes: labelled_text.ORIGINS["rotten_tomatoes"],
    sources.AgNews: labelled_text.ORIGINS["ag_news"],
    sources.ChnSentiCorp: labelled_text.ORIGINS["chnsenticorp"],
}
_UNKNOWN = Origin(files="")


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus's splits as Arrow datasets, memory-mapped from the cache."""

    splits: Mapping[str, datasets.Dataset]
    words: tuple[str, ...]  # words that a tokenizer should know whole; only the controlled corpus has them
    report: ReadingReport
    fingerprint: str

    def examples(self, split: str) -> list[Example]:
        """The examples of a split ("train", "dev", "test"), checked anew.

        Raises:
            UserError: there is no such split, or the corpus is of texts.
        """
        table = self._table(split)
        if "pronoun" not in table.column_names:
            raise UserError("this corpus holds texts, in which no pronoun is asked about")
        return _decode(table)

    def texts(self, split: str) -> list[Text]:
        """The texts of a split, of a corpus in which no pronoun is asked about.

        Raises:
            UserError: there is no such split, or the corpus is of pronouns.
        """
        table = self._table(split)
        if "pronoun" in table.column_names:
            raise UserError("this corpus asks about pronouns; it holds no plain or labelled texts")
        columns = table.to_pydict()
        return [Text(**dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)]

    def _table(self, split: str) -> pyarrow.Table:
        if split not in self.splits:
            raise UserError(f"split ({split!r}) must be one of {', '.join(self.splits)}")
        return self.splits[split].data.table


def load(settings: sources.Data) -> Corpus:
    """The corpus that the settings name, from the cache or made and put there, whole or not at all.

    Raises:
        UserError: a file is missing or wrong, or the cache cannot be read or written.
    """
    if isinstance(settings, sources.NoData):
        raise UserError("pretrained weights come without data: name some, for instance data=gap data.path=...")
    fingerprint = _fingerprint(settings)
    directory = cache() / f"{settings.kind}-{fingerprint}"
    if not directory.exists():
        found, report = _read(settings)
        if type(settings) in PARTS:
            _check_splits(PARTS[type(settings)].option, settings, found)
        if isinstance(settings, sources.Divided) and not isinstance(settings, sources.PlainText | sources.Silver):
            found, report = _apart(found, report, settings)  # plain text loses paragraphs, where it is read
        splits = _one_fold(found, settings) if isinstance(settings, sources.Divided) and settings.folds else found
        words = sorted({word for language in _languages(settings) for word in controlled.words(language)})
        try:
            _write(directory, splits, report, words, _schema_of(settings))
        except OSError as error:
            raise UserError(f"{directory}: cannot write the cache ({error.strerror}); set ANAPHORA_CACHE") from None
    return _open(directory, fingerprint, _schema_of(settings))


def origin_of(settings: sources.Data) -> Origin:
    """What the reader of these settings wants, and the licence; both "" for a reader from outside and what is made."""
    return _ORIGINS.get(type(settings), _UNKNOWN)


def cache() -> Path:
    """Where corpora are kept."""
    return Path(os.environ.get("ANAPHORA_CACHE") or "~/.cache/anaphora").expanduser()


def schema() -> datasets.Features:
    """The columns of a stored split; factors are JSON text, since items differ in which they have."""
    from datasets import Features, List, Value

    span = List(Value("int32"), length=2)
    return Features(
        {
            "text": Value("string"),
            "language": Value("string"),
            "pronoun": span,
            "candidates": List(List(span)),
            "antecedents": List(Value("int32")),
            "group": Value("string"),
            "twin": Value("string"),
            "factors": Value("string"),
        }
    )


def text_schema() -> datasets.Features:
    """The columns of a stored split of texts."""
    from datasets import Features, Value

    return Features({one.name: Value("string") for one in dataclasses.fields(Text)})


def _schema_of(settings: sources.Data) -> datasets.Features:
    return text_schema() if isinstance(settings, sources.Texts) else schema()


@extensible(tuple)
def _read(
    settings: sources.Data,
) -> tuple[Mapping[str, Sequence[Example]] | Mapping[str, Sequence[Text]], ReadingReport]:
    match settings:
        case sources.Controlled():
            splits = controlled.generate(settings)
            return splits, ReadingReport(rows=sum(map(len, splits.values())))
        case sources.Table():
            return tables.read(settings)
        case sources.Dpr():
            return dpr.read(settings)
        case sources.Gap():
            return gap.read(settings)
        case sources.Wsc273():
            return wsc273.read(settings)
        case sources.Pdp60():
            return pdp60.read(settings)
        case sources.Winogrande():
            return winogrande.read(settings)
        case sources.Winobias():
            return winobias.read(settings)
        case sources.Winogender():
            return winogender.read(settings)
        case sources.Knowref():
            return knowref.read(settings)
        case sources.Xwino():
            return xwino.read(settings)
        case sources.Cluewsc():
            return cluewsc.read(settings)
        case sources.Mandarinograd():
            return mandarinograd.read(settings)
        case sources.LitBank():
            return litbank.read(settings)
        case sources.OntoGum():
            return ontogum.read(settings)
        case sources.PlainText():
            return plain_text.read(settings)
        case sources.Silver():
            return silver.read(settings)
        case sources.LabelledText():
            return labelled_text.read(settings)
    raise UserError(f"data.kind ({settings.kind!r}) is not one that can be read")


def _check_splits(option: str, settings: sources.Data, splits: Any) -> None:
    """Refuse what a reader from outside returns where it is not examples (or texts) by split."""
    wanted = Text if isinstance(settings, sources.Texts) else Example
    if not isinstance(splits, Mapping) or sorted(splits) != sorted(SPLITS):
        raise UserError(f"{option}: build must return items by split ({', '.join(SPLITS)}), and a ReadingReport")
    for name, items in splits.items():
        for number, item in enumerate(items):
            if not isinstance(item, wanted):
                told = f"must be a {wanted.__module__}.{wanted.__name__}, and is a {type(item).__name__}"
                raise UserError(f"{option}: item {number} of its {name} split {told}")


def _apart(
    splits: Mapping[str, Sequence[Any]], report: ReadingReport, settings: sources.Divided
) -> tuple[Mapping[str, Sequence[Any]], ReadingReport]:
    """The items that share no words with `data.without`, nor does their group or twin, and the report of the others."""
    if not settings.without:
        return splits, report
    every = [item for found in splits.values() for item in found]
    shared = contamination.EvaluationData(settings.without).shared_with([item.text for item in every])
    groups = {together(item): name for item, name in zip(every, shared, strict=True) if name}
    kept = {split: [item for item in found if together(item) not in groups] for split, found in splits.items()}
    if not any(kept.values()):
        told = f"every item of data.path ({settings.path}) shares {contamination.LENGTH} words in a row with it"
        raise UserError(f"data.without ({', '.join(settings.without)}): {told}")
    reason = f"it or one of its group shares {contamination.LENGTH} words in a row with"
    found = [(item, groups[together(item)]) for item in every if together(item) in groups]
    dropped = [(repr(item.text[:60]), f"{reason} {name}") for item, name in found]
    return kept, ReadingReport(report.rows, (*report.dropped, *dropped))


def _one_fold(splits: Mapping[str, Sequence[Any]], settings: sources.Divided) -> dict[str, list[Any]]:
    """One fold of what is not test as the dev split, the others as the train split."""
    assert settings.folds
    rest = [*splits["train"], *splits["dev"]]
    parts: dict[str, list[Any]] = {"train": [], "dev": [], "test": list(splits["test"])}
    for item, number in zip(rest, fold_numbers(rest, settings.folds, settings.seed), strict=True):
        parts["dev" if number == settings.fold else "train"].append(item)
    return parts


def _languages(settings: sources.Data) -> list[str]:
    return settings.languages if isinstance(settings, sources.Controlled) else []


def _files(settings: sources.Data) -> dict[str, Path]:
    """The files that decide what is read, by name: of a folder all in it, whatever its layout, but hidden ones."""
    without = contamination.files(settings.without) if isinstance(settings, sources.Divided) else []
    return {**_own_files(settings), **{f"without {path}": path for path in without}}


def _own_files(settings: sources.Data) -> dict[str, Path]:
    match settings:
        case sources.Controlled():
            return {path.name: path for path in controlled.files(settings)}
        case sources.LitBank(seen_in=str(seen_in)):
            return {**_below(settings), "seen_in": existing(seen_in, litbank.BOOKS, "data.seen_in")}
        case sources.PlainText():
            return {str(path): path for path in plain_text.files(settings)}
        case sources.Silver():
            return _own_files(silver.text_of(settings))
        case sources.Divided() if not is_hub(settings.path):
            return _below(settings)
    return {}


def _below(settings: sources.Divided) -> dict[str, Path]:
    found = existing(settings.path, origin_of(settings).files)
    if not found.is_dir():
        return {found.name: found}
    inside = {str(file.relative_to(found)): file for file in sorted(found.rglob("*")) if file.is_file()}
    return {name: file for name, file in inside.items() if not name.startswith(".") and "/." not in name}


def _fingerprint(settings: sources.Data) -> str:
    """A hash of everything that decides what is read; a change of code counts, so no version needs to be kept."""
    total = hashlib.sha256(json.dumps(dataclasses.asdict(settings), sort_keys=True).encode())
    total.update(source_of(settings).encode())
    here = Path(__file__).parent
    code = [
        *(here / f"{name}.py" for name in ("example", "text", "words", "names", "contamination", "store")),
        *sorted(here.glob("controlled/*.py")),
        *sorted(here.glob("corpora/*.py")),
        *sorted(here.glob("silver/*.py")),
    ]
    for name, path in [*((path.name, path) for path in code), *_files(settings).items()]:
        total.update(name.encode())
        try:
            total.update(hashlib.sha256(path.read_bytes()).digest())
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    return total.hexdigest()[:16]


def _write(
    directory: Path,
    splits: Mapping[str, Sequence[Example]] | Mapping[str, Sequence[Text]],
    report: ReadingReport,
    words: Sequence[str],
    features: datasets.Features,
) -> None:
    from datasets import Dataset, DatasetDict

    directory.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=".making-", dir=directory.parent))
    try:
        # An empty dataset can be stored but not loaded again; `_open` puts it back.
        stored = {name: Dataset.from_dict(_columns(splits[name]), features=features) for name in SPLITS if splits[name]}
        with _without_progress_bars():
            DatasetDict(stored).save_to_disk(temporary)
        about = {"rows": report.rows, "dropped": report.dropped, "words": words}
        (temporary / _ABOUT).write_text(json.dumps(about, ensure_ascii=False), encoding="utf-8")
        try:
            temporary.rename(directory)
        except OSError:
            # Another process may have made the same corpus meanwhile: its copy is as good.
            if not directory.exists():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _open(directory: Path, fingerprint: str, features: datasets.Features) -> Corpus:
    from datasets import Dataset, load_from_disk

    try:
        about = json.loads((directory / _ABOUT).read_text(encoding="utf-8"))
        stored = load_from_disk(directory)
    except (OSError, ValueError) as error:
        raise UserError(f"{directory}: the cache is damaged ({error}); delete this folder") from None
    empty = Dataset.from_dict({name: [] for name in features}, features=features)
    return Corpus(
        splits={name: stored.get(name, empty) for name in SPLITS},
        words=tuple(about["words"]),
        report=ReadingReport(about["rows"], tuple((where, reason) for where, reason in about["dropped"])),
        fingerprint=fingerprint,
    )


@contextmanager
def _without_progress_bars() -> Iterator[None]:
    from datasets import are_progress_bars_disabled, disable_progress_bars, enable_progress_bars

    before = are_progress_bars_disabled()
    disable_progress_bars()
    try:
        yield
    finally:
        if not before:
            enable_progress_bars()


def _columns(items: Sequence[Example] | Sequence[Text]) -> dict[str, list[Any]]:
    records = [_record(item) for item in items]
    return {name: [record[name] for record in records] for name in records[0]}


def _record(item: Example | Text) -> dict[str, Any]:
    if isinstance(item, Text):
        return {one.name: getattr(item, one.name) for one in dataclasses.fields(item)}
    return {**to_record(item), "factors": json.dumps(dict(item.factors), ensure_ascii=False)}


def _decode(table: pyarrow.Table) -> list[Example]:
    """Examples from a stored table; lists are rebuilt from Arrow's flat values, ten times faster than cell by cell."""
    if not len(table):
        return []

    def flat(name: str) -> pyarrow.Array:
        return table.column(name).combine_chunks()

    pronouns = _pairs(flat("pronoun"))
    entities = flat("candidates")
    mentions = entities.values
    spans = _pairs(mentions.values)
    grouped = [tuple(spans[start:end]) for start, end in _stretches(mentions)]
    candidates = [tuple(grouped[start:end]) for start, end in _stretches(entities)]
    right = flat("antecedents")
    indices = right.values.to_pylist()
    antecedents = [tuple(indices[start:end]) for start, end in _stretches(right)]
    words = {name: flat(name).to_pylist() for name in ("text", "language", "group", "twin")}
    # One call of the parser for all: a call an item takes twice as long.
    factors = json.loads(f"[{','.join(flat('factors').to_pylist())}]")
    return [
        Example(
            text=text,
            language=language,
            pronoun=pronoun,
            candidates=candidate,
            antecedents=antecedent,
            group=group,
            twin=twin,
            factors=known,
        )
        for text, language, pronoun, candidate, antecedent, group, twin, known in zip(
            words["text"],
            words["language"],
            pronouns,
            candidates,
            antecedents,
            words["group"],
            words["twin"],
            factors,
            strict=True,
        )
    ]


def _stretches(lists: pyarrow.Array) -> Iterator[tuple[int, int]]:
    bounds = lists.offsets.to_numpy().tolist()
    return pairwise(bounds)


def _pairs(spans: pyarrow.Array) -> list[tuple[int, int]]:
    values = spans.flatten().to_numpy().tolist()
    return list(zip(values[::2], values[1::2], strict=True))
