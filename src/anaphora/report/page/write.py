"""HTML page of the report, and HTML page with the attention maps of one sentence; each is a self-contained file."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from markupsafe import Markup
from matplotlib import rc_context
from matplotlib.figure import Figure

from anaphora.analysis.evidence.comparison import GroupSpread, RowDivergence
from anaphora.analysis.results.scores import Head
from anaphora.analysis.results.typed_json import to_json
from anaphora.base.errors import UserError
from anaphora.base.language import WIDE_CHARACTER
from anaphora.base.translation import spoken_language
from anaphora.report.figures.sheet import TITLE_LINE, NotebookFigure
from anaphora.report.figures.style import figure_style
from anaphora.report.page.answer_notes import unread_note
from anaphora.report.page.elements import ReportRun, TableElement, figures_of
from anaphora.report.page.explorer import completed_entry, compress_map, explorer_phrases, explorer_words
from anaphora.report.page.offline import read_asset, script_json, trusted_markup, weight_colours, write_page
from anaphora.report.page.opening import (
    comparison_section,
    control_commands,
    cue_kinds,
    opening_pictures,
    run_facts,
    run_headline,
    runs_by_verdict,
    verdict_sentence,
)
from anaphora.report.page.sections import run_sections
from anaphora.report.wording import kind_names

_PIXELS_PER_POINT = 1.7
"""CSS pixels per point of a figure, so that 8-point text is as large as the text of the page."""
_COMPRESS_FROM_BYTES = 1_000_000
"""Size of the encoded maps above which a page stores them compressed."""
_NUMBERED = re.compile(r"\b(layer|head) (\d)")
"""The word "layer" or "head" and its number, between which no line break is allowed."""
_CHINESE_TEXT = re.compile(rf"<text(?=[^>]*>[^<]*{WIDE_CHARACTER.pattern})")
_BREAK_IN_CHINESE = re.compile(rf"(?<={WIDE_CHARACTER.pattern})\n(?={WIDE_CHARACTER.pattern})")


def write_report(
    path: Path,
    runs: Sequence[ReportRun],
    title: str,
    spreads: Sequence[GroupSpread] = (),
    divergences: Sequence[RowDivergence] = (),
    translations: Mapping[str, str] | None = None,
) -> dict[str, dict[str, Figure]]:
    """Write the report of one or several runs as one self-contained HTML file, in the language set by `spoken_in`.

    Args:
        runs: content of each run; the interactive view of attention maps has the sentences of the first run.
        spreads: spread of each measure over the runs.
        divergences: divergences between the attention rows of the runs.
        translations: link to the same report in each other language, by language.

    Returns:
        The figures of the sections, keyed by run and then by the name of the figure, for saving as files.

    Raises:
        UserError: there are no runs, or two runs have the same name; a sentence has no words or no maps; or the data of
            a map do not match the shape of the map, or this shape does not match the number of words.
    """
    names = [run.name for run in runs]
    if not runs or len(set(names)) < len(names):
        raise UserError(f"a report needs at least one run and a name for each, got {names}")
    for run in runs:
        for sentence in run.sentences:
            _check_sentence(sentence)
    first = runs[0]
    chapters = [run_sections(run if run is first else replace(run, is_explored=False)) for run in runs]
    figures = {run.name: figures_of(chapter) for run, chapter in zip(runs, chapters, strict=True)}
    pictures = {
        (number, name): inline_figure(figure, f"r{number}-{name}-")
        for number, of_run in enumerate(figures.values())
        for name, figure in of_run.items()
    }
    shown = opening_pictures(first)
    pictures |= {(0, one.name): inline_figure(one.figure, f"{one.name}-") for one in shown}
    # The explorer starts with a sentence in the language of the page.
    explored = sorted(first.sentences, key=lambda sentence: sentence["language"] != spoken_language())
    write_page(
        path, "report.html.j2",
        title=title,
        translations=translations or {},
        runs=[
            {
                "name": run.name,
                "verdict": verdict_sentence(run.evidence),
                "opening": run_headline(run.evidence),
                "commands": control_commands(run),
                "facts": run_facts(run),
                "sections": chapter,
            }
            for run, chapter in zip(runs, chapters, strict=True)
        ],
        together=comparison_section(runs, spreads, divergences) if len(runs) > 1 else None,
        verdicts=runs_by_verdict(runs),
        cues=cue_kinds(runs),
        shown=shown,
        pictures=pictures,
        **_explorer(explored, to_json(first.evidence.head)),
    )  # fmt: skip
    return figures


def write_attention_page(
    path: Path,
    sentence: Mapping[str, Any],
    head: Head | None = None,
    decoder: TableElement | None = None,
    unread: Sequence[str] = (),
) -> None:
    """Write an HTML file with an interactive view of the attention maps of one sentence, for all heads.

    The page is in the language set by `spoken_in`. Maps above 1 MB are stored compressed.

    Args:
        sentence: sentence with its maps, as returned by `explorer.attention_entry`; words and maps suffice.
        head: head shown first; None for the first head.
        decoder: for a decoder (causal attention), a table of the weights from the pronoun and from the last word,
            without rows if no pronoun is given; None for other models.
        unread: substrings of the text outside the model's vocabulary, for a warning on the page.

    Raises:
        UserError: there are no words or no maps, the data of a map do not match its shape, or the shape does not
            match the number of words.
    """
    _check_sentence(sentence)
    whole = completed_entry(sentence)
    if sum(len(packed["data"]) for packed in whole["maps"].values()) > _COMPRESS_FROM_BYTES:
        whole["maps"] = {name: compress_map(packed) for name, packed in whole["maps"].items()}
    write_page(
        path, "attention.html.j2",
        text=whole["text"],
        language=whole["language"],
        decoder=decoder,
        unread=unread_note(unread) if unread else "",
        **_explorer([whole], {} if head is None else to_json(head)),
    )  # fmt: skip


def _explorer(sentences: Sequence[Mapping[str, Any]], head: Mapping[str, Any]) -> dict[str, Any]:
    """Return the template variables of the interactive view, which opens with the first sentence and with `head`."""
    entries = [{key: value for key, value in one.items() if key != "pronoun_rows"} for one in sentences]
    data = {"sentences": entries, "head": head, **explorer_words(), **weight_colours()}
    return {
        "sentences": len(sentences),
        "explorer_phrases": explorer_phrases(),
        "kinds": kind_names(),
        "explorer": script_json(data),
        "script": read_asset("explorer.js"),
    }


def _check_sentence(sentence: Mapping[str, Any]) -> None:
    words, maps = sentence.get("words") or [], sentence.get("maps") or {}
    if not words or not maps:
        raise UserError(f"sentence {sentence.get('id')!r} needs words and at least one map")
    for name, stored in maps.items():
        shape = list(stored["shape"])
        size = 4 * -(-prod(shape) // 3)
        if len(shape) != 4 or shape[2:] != [len(words)] * 2 or len(stored["data"]) != size:
            raise UserError(
                f"sentence {sentence.get('id')!r}, map {name!r}: shape {shape} with {len(stored['data'])} characters "
                f"of base64 does not fit {len(words)} words; expected layers x heads x {len(words)} x {len(words)}"
            )


@dataclass(frozen=True)
class InlineFigure:
    """Figure inlined in a page: its title as text, everything else as an SVG element."""

    title: str
    svg: Markup


def inline_figure(figure: Figure, prefix: str) -> InlineFigure:
    """Render a figure without its title as SVG with text in the page's font; `prefix` makes its ids unique."""
    title, lines = (figure.title, figure.title_lines) if isinstance(figure, NotebookFigure) else ("", ())
    buffer = io.StringIO()
    with figure_style(), rc_context({"svg.fonttype": "none"}):
        for line in lines:
            line.set_visible(False)
        figure.savefig(buffer, format="svg", metadata={"Creator": None, "Date": None, "Format": None, "Type": None})
        for line in lines:
            line.set_visible(True)
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    # The figure's style element would apply to the whole page, which already has the same rules.
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg))
    kept = {name for pair in used for name in pair if name}
    svg = re.sub(r' id="([^"]*)"', lambda match: f' id="{prefix}{match[1]}"' if match[1] in kept else "", svg)
    svg = svg.replace("url(#", f"url(#{prefix}").replace('xlink:href="#', f'href="#{prefix}')
    svg = re.sub(r"<g>\s*</g>|\s*\n\s*", lambda match: "" if "g" in match[0] else "\n", svg)
    # On a page in another language, lang="zh" selects Chinese rather than Japanese glyphs.
    svg = _CHINESE_TEXT.sub('<text lang="zh"', svg) if spoken_language() != "zh" else svg
    width, height = (float(size) for size in re.findall(r'(?:width|height)="([\d.]+)pt"', svg)[:2])
    above = 72 * TITLE_LINE * len(lines)
    height -= above
    size = f'width="{_PIXELS_PER_POINT * width:.0f}" height="{_PIXELS_PER_POINT * height:.0f}"'
    opening = f'<svg {size} viewBox="0 {above:g} {width:g} {height:g}" '
    svg = opening + 'aria-hidden="true" focusable="false">' + svg[svg.index(">") + 1 :]
    # Undo the line breaks: no space between Chinese characters, a space elsewhere.
    words = _BREAK_IN_CHINESE.sub("", title).replace("\n", " ")
    return InlineFigure(_NUMBERED.sub("\\1\u00a0\\2", words), trusted_markup(svg))
