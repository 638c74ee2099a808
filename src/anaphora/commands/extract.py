"""Write the attention rows of pronouns, or of the words of plain text, as Parquet.

Example: anaphora extract run=outputs/demo
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.base.checks import at_least
from anaphora.base.errors import UserError, counted
from anaphora.base.language import language_of
from anaphora.base.translation import N_, _
from anaphora.commands.parts.settings import SentenceOrItems
from anaphora.data.text import Text
from anaphora.settings.data import Data, TextCorpus

if TYPE_CHECKING:
    from anaphora.analysis.tasks.extraction import Extractor, Selection
    from anaphora.runs.directory import Run

_WEIGHT_BYTES = 4


@dataclass(kw_only=True)
class Extraction(SentenceOrItems):
    """Settings of `anaphora extract`."""

    # For texts without annotated pronouns: the words whose rows are written; by default all words.
    words: list[str] = field(default_factory=list)
    # For texts without annotated pronouns: maximum number of tokens in one input; by default batching.row_tokens.
    chunk_tokens: int | None = None
    # "2/8" writes only the second of eight shards of the split, to a separate folder; groups are not divided.
    shard: str | None = None
    memory: int = 64  # maximum size of the attention weights in MiB, in memory and in each row group of the file

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least("memory", self.memory, 1)
        at_least("chunk_tokens", self.chunk_tokens, 2)
        if self.shard is not None:
            written = re.fullmatch(r"([1-9]\d{0,8})/([1-9]\d{0,8})", self.shard)
            if written is None or int(written[1]) > int(written[2]):
                raise ValueError(f"shard ({self.shard!r}) must be i/n with i from 1 to n, as in 2/8")
            if self.text is not None:
                raise ValueError(f"shard ({self.shard}) takes a part of a split, but text is one sentence")
        if self.candidates and self.pronoun is None:
            raise ValueError(f"candidates ({self.candidates}) need pronoun=...")
        for name in ("words", "chunk_tokens"):
            if getattr(self, name) and self.pronoun is not None:
                raise ValueError(f"{name} ({getattr(self, name)}) is only for a text without a pronoun")
        if any(not word.strip() for word in self.words):
            raise ValueError(f"words ({self.words}) must name at least one word")

    @property
    def part(self) -> tuple[int, int]:
        """Return the index of the shard, counted from 1, and the number of shards; (1, 1) if `shard` is not set."""
        number, count = (self.shard or "1/1").split("/")
        return int(number), int(count)


def extract(settings: Extraction) -> None:
    """Write the attention rows of every layer and head as Parquet, by default to the folder `attention` of the run.

    The items are written to `*_items.jsonl` and, for the pronouns of a split, their scores to `*_scores.parquet`. Files
    of an earlier command with the same items, weights, code and settings are reused.

    Raises:
        UserError: rows of other data would be mixed with those of the run's own data, a setting applies only to texts
            without annotated pronouns, none of `words` occurs in any text, the split is empty or too small for the
            shards, the sentence is invalid, a text is too long for the model, or the model has no attention maps. Also
            the errors of `held_output`.
    """
    from anaphora.commands.parts import shared
    from anaphora.data.own_sentence import name_of_sentence
    from anaphora.runs.directory import load

    if settings.data is not None:
        _check_words(settings, settings.data)
    run = load(settings.run, settings.trainer)
    if settings.text is None:
        shared.check_place_of_other_data(run, settings)
    bytes_before = _resident_bytes()
    name = settings.split
    if settings.text is not None:
        asked = (settings.run, settings.pronoun, settings.candidates, settings.antecedent)
        language = [] if settings.language is None else [settings.language]
        name = f"sentence_{name_of_sentence(settings.text, *asked, settings.words, settings.chunk_tokens, *language)}"
    number, count = settings.part
    place = shared.output_folder(settings.output, run.directory / "attention")
    folder = place / f"shard_{number}_of_{count}" if settings.shard else place
    about = shared.result_settings(folder, run, settings, "items", "words", "chunk_tokens")
    # The file name of a user's own sentence already has a hash of all settings.
    results = {f"{name}.parquet": about} if settings.text is None else {}
    with shared.held_output(folder, run, settings, results):
        _extract(run, _selection(run, settings), folder / f"{name}.parquet", settings, bytes_before)


def _selection(run: Run, settings: Extraction) -> Selection:
    from anaphora.analysis.tasks.extraction import select_items, single_item
    from anaphora.commands.parts.shared import sentence_of
    from anaphora.runs.items import corpus_of

    if settings.text is not None:
        text = Text(text=settings.text, language=settings.language or language_of(settings.text))
        return single_item(text if settings.pronoun is None else sentence_of(settings))
    data = settings.data or run.config.data
    _check_words(settings, data)
    return select_items(corpus_of(run, settings.data), settings.split, settings.items or run.config.trainer.limit_items)


def _check_words(settings: Extraction, data: Data) -> None:
    """Check that `words` and `chunk_tokens` are used only for texts without annotated pronouns."""
    for name in ("words", "chunk_tokens"):
        value = getattr(settings, name)
        if value and settings.text is None and not isinstance(data, TextCorpus):
            raise UserError(f"{name} ({value}) is only for texts; the items of data={data.kind} have pronouns")


def _extract(run: Run, selection: Selection, path: Path, settings: Extraction, bytes_before: int) -> None:
    from anaphora.analysis.maps.rows import attention_file, items_path
    from anaphora.analysis.scores.summary import SCORE_COLUMNS, scores_schema
    from anaphora.analysis.tasks.extraction import Extractor
    from anaphora.base.console import format_bytes, say, working
    from anaphora.data.records import parquet_about, parquet_parts
    from anaphora.report.numbers import duration_text

    parts = selection.shard(*settings.part)
    extractor = Extractor(
        run,
        selection,
        settings.words,
        settings.chunk_tokens or run.config.batching.row_tokens,
        settings.memory * 2**20 // _WEIGHT_BYTES,
    )
    about = _about(run, selection, extractor, settings)
    scores_path = path.with_name(f"{path.stem}_scores.parquet")
    of_texts = isinstance(selection.read([0])[0], Text)
    files = [items_path(path)] if of_texts or settings.text is not None else [items_path(path), scores_path]
    stored = parquet_about(path)
    if about is not None and stored == about and all(each.exists() for each in files):
        say("{path}: already written, from the same items and weights", path=path)
        return
    total = sum(map(len, parts))
    rows, size = extractor.estimate(parts)
    shape = dict(zip(("layers", "heads"), extractor.shape, strict=True))
    say(
        "{items:item|items}, about {rows:row|rows} of {layers:layer|layers} x {heads:head|heads}: {size}",
        items=f"{total:,}",
        rows=f"{rows:,}",
        **shape,
        size=format_bytes(size),
    )
    begun = time.perf_counter()
    scores = parquet_parts(scores_path, scores_schema(), SCORE_COLUMNS) if scores_path in files else nullcontext()
    written = done = 0
    with working(_("extracting")) as show, attention_file(path, about) as write_rows, scores as write_scores:
        for batch in extractor.batches(parts):
            write_rows(batch.rows, batch.items)
            if write_scores is not None and batch.scores is not None:
                write_scores(batch.scores)
            written += len(batch.rows)
            is_first = not done
            done += len(batch.items)
            left = duration_text((time.perf_counter() - begun) / max(done, 1) * (total - done))
            values = {"done": f"{done:,}", "items": f"{total:,}", "left": left}
            show(_("extracting: {done} of {items:item|items}, about {left} left").format(**values))
            if is_first and done < total:
                # For output without a live status line, such as a log.
                say("about {left} left, judging by the first {done} of {items:item|items}", **values)
        if not written and not settings.shard:
            raise UserError(f"words ({settings.words}) appear in none of {counted(total, 'text')}")
    memory = f"{max(0, _peak_bytes() - bytes_before) / 2**20:,.0f}" if bytes_before else None
    say(
        N_(
            "{items:item|items}, {rows:row|rows} of {layers:layer|layers} x {heads:head|heads}: {path} ({size}, "
            "{duration})"
        )
        if memory is None
        else N_(
            "{items:item|items}, {rows:row|rows} of {layers:layer|layers} x {heads:head|heads}: {path} ({size}, "
            "{duration}, at most "
            "{memory} MiB of memory above the model’s)"
        ),
        items=f"{total:,}",
        rows=f"{written:,}",
        **shape,
        path=path,
        size=format_bytes(path.stat().st_size),
        duration=duration_text(time.perf_counter() - begun),
        memory=memory,
    )


def _about(run: Run, selection: Selection, extractor: Extractor, settings: Extraction) -> Mapping[str, Any] | None:
    """Return the settings and hashes that determine the extracted file, or None for a user's own sentence.

    The file of a user's own sentence is always written anew.
    """
    from anaphora.runs.items import analysis_code_digest, model_digest

    if not selection.fingerprint:
        return None
    return {
        "weights": model_digest(run),
        "code": analysis_code_digest(),
        "data": selection.fingerprint,
        "split": settings.split,
        "items": len(selection),
        "shard": settings.shard,
        "words": list(extractor.words),
        "chunk_tokens": extractor.chunk_tokens,
    }


def _resident_bytes() -> int:
    """Return the resident memory of this process in bytes; 0 if the system does not report it."""
    pages = Path("/proc/self/statm")
    if not pages.exists():
        return 0
    import resource

    return int(pages.read_text(encoding="ascii").split()[1]) * resource.getpagesize()


def _peak_bytes() -> int:
    """Return the peak memory of this process in bytes; correct only on Linux, where `ru_maxrss` is in KiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
