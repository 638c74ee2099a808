"""Every corpus in one table: its settings, its reader, the files that it needs and their licence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anaphora.base.errors import UserError
from anaphora.data.controlled import corpus as controlled
from anaphora.data.corpora import (
    cluewsc,
    conll2012,
    corefud,
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
from anaphora.data.corpora.division import Origin, ReadingReport, existing_path, files_below, is_hub
from anaphora.data.example import Example
from anaphora.data.text import Text
from anaphora.settings import data as data_settings

Splits = Mapping[str, Sequence[Example]] | Mapping[str, Sequence[Text]]

_UNKNOWN = Origin(files="")


def files_at_path(settings: data_settings.Data) -> dict[str, Path]:
    """The file that `data.path` names, or all below the folder; none for what is on the hub or has no path."""
    if not isinstance(settings, data_settings.ExternalCorpus) or is_hub(settings.path):
        return {}
    return files_below(existing_path(settings.path, origin_of(settings).files))


def _no_words(_settings: data_settings.Data) -> list[str]:
    return []


@dataclass(frozen=True)
class Source:
    """How the corpus of some settings is read.

    Attributes:
        read: settings -> the items by split, and the report.
        origin: the files that `data.path` may name, and their licence.
        files: settings -> the files that decide what is read, by name; the cache is keyed by their content.
        words: settings -> words that a tokenizer should know whole.
        decontaminates: whether `read` itself leaves out what shares words with `data.without`.
    """

    read: Callable[[Any], tuple[Splits, ReadingReport]]
    origin: Origin = _UNKNOWN
    files: Callable[[Any], dict[str, Path]] = files_at_path
    words: Callable[[Any], list[str]] = _no_words
    decontaminates: bool = False


SOURCES: dict[type[data_settings.Data], Source] = {
    data_settings.ControlledCorpus: Source(controlled.read, files=controlled.files, words=controlled.known_words),
    data_settings.OwnExamples: Source(tables.read, tables.ORIGIN),
    data_settings.Dpr: Source(dpr.read, dpr.ORIGIN),
    data_settings.Gap: Source(gap.read, gap.ORIGIN),
    data_settings.Wsc273: Source(wsc273.read, wsc273.ORIGIN),
    data_settings.Pdp60: Source(pdp60.read, pdp60.ORIGIN),
    data_settings.Winogrande: Source(winogrande.read, winogrande.ORIGIN),
    data_settings.Winobias: Source(winobias.read, winobias.ORIGIN),
    data_settings.Winogender: Source(winogender.read, winogender.ORIGIN),
    data_settings.Knowref: Source(knowref.read, knowref.ORIGIN),
    data_settings.Xwino: Source(xwino.read, xwino.ORIGIN),
    data_settings.Cluewsc: Source(cluewsc.read, cluewsc.ORIGIN),
    data_settings.Mandarinograd: Source(mandarinograd.read, mandarinograd.ORIGIN),
    data_settings.LitBank: Source(litbank.read, litbank.ORIGIN, files=litbank.files),
    data_settings.OntoGum: Source(ontogum.read, ontogum.ORIGIN),
    data_settings.Conll2012: Source(conll2012.read, conll2012.ORIGIN, files=conll2012.files),
    data_settings.CorefUd: Source(corefud.read, corefud.ORIGIN),
    data_settings.PlainText: Source(plain_text.read, plain_text.ORIGIN, files=plain_text.files, decontaminates=True),
    data_settings.SilverStandard: Source(silver.read, plain_text.ORIGIN, files=silver.files, decontaminates=True),
    data_settings.LabelledText: Source(labelled_text.read, labelled_text.ORIGINS["labelled_text"]),
    data_settings.Sst2: Source(labelled_text.read, labelled_text.ORIGINS["sst2"]),
    data_settings.RottenTomatoes: Source(labelled_text.read, labelled_text.ORIGINS["rotten_tomatoes"]),
    data_settings.AgNews: Source(labelled_text.read, labelled_text.ORIGINS["ag_news"]),
    data_settings.ChnSentiCorp: Source(labelled_text.read, labelled_text.ORIGINS["chnsenticorp"]),
}


def source_for(settings: data_settings.Data) -> Source:
    """The source of some settings, or that of the nearest class above them, for a corpus from outside the package."""
    return next((SOURCES[kind] for kind in type(settings).__mro__ if kind in SOURCES), Source(_refuse))


def origin_of(settings: data_settings.Data) -> Origin:
    """The files that `data.path` may name, and their licence; both "" for a corpus from outside or a generated one."""
    return SOURCES[type(settings)].origin if type(settings) in SOURCES else _UNKNOWN


def _refuse(settings: data_settings.Data) -> tuple[Splits, ReadingReport]:
    raise UserError(f"data.kind ({settings.kind!r}) is not one that can be read")
