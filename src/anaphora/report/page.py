"""The report as one offline HTML file, and one sentence's attention as another; `offline` keeps them so."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anaphora.errors import UserError
from anaphora.files import write_text
from anaphora.report.blocks import Picture, ReportRun
from anaphora.report.evidence_figures import MAPS
from anaphora.report.glossary import GLOSSARY
from anaphora.report.offline import environment, font_mark, own_file, ramp, safe, script_json, with_fonts
from anaphora.report.packing import deflated, pack_map
from anaphora.report.sections import facts, opening, sections, side_by_side

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure

__all__ = ["ReportRun", "pack_map", "write_attention_page", "write_report"]

_PIXELS = 1.7
"""CSS pixels that a point of a figure takes: its type of 8 points is then read like the text beside it."""
_UNPACKED = 1_000_000
"""Bytes of maps from which on a page carries them compressed."""


def write_report(
    path: Path,
    runs: Sequence[ReportRun],
    explorer: Mapping[str, Any],
    title: str,
    divergences: Sequence[Mapping[str, Any]] = (),
) -> dict[str, dict[str, Figure]]:
    """Write the report of one or several runs as one HTML file that needs nothing else.

    Args:
        path: of the file.
        runs: the first is the one whose head the explorer opens with.
        explorer: {"sentences": [{"id", "text", "language", "kind", "type", "words", "pronoun", "antecedents",
            "distractors", "special", "answer", "right", "head_right", "maps": {name: {"shape": [L, H or 1, W, W],
            "data": base64 of uint8}}}]}; W words, indices count words, a candidate is the list of its words.
        title: of the page.
        divergences: how far the runs' rows are apart, as `analysis.seeds.divergences` says.

    Returns:
        The figures drawn, by run and name, to be saved as files as well.

    Raises:
        UserError: no runs, two runs of one name, or a map whose bytes do not fit its shape.
    """
    names = [run.name for run in runs]
    if not runs or len(set(names)) < len(names):
        raise UserError(f"a report needs at least one run and a name for each, got {names}")
    sentences = explorer.get("sentences") or []
    for sentence in sentences:
        _check(sentence)
    chapters = [sections(run, sentences) for run in runs]
    drawn = {
        run.name: {block.name: block.figure for one in chapter for block in one.blocks if isinstance(block, Picture)}
        for run, chapter in zip(runs, chapters, strict=True)
    }
    pictures = {
        (number, name): _inline(figure, f"r{number}-{name}-")
        for number, figures in enumerate(drawn.values())
        for name, figure in figures.items()
    }
    head: Mapping[str, Any] = next((run.metrics["head"] for run in runs if run.metrics.get("head")), {})
    html = environment().get_template("report.html.j2").render(
        title=title,
        runs=[
            {"name": run.name, "opening": opening(run.metrics), "facts": facts(run), "sections": chapter}
            for run, chapter in zip(runs, chapters, strict=True)
        ],
        together=side_by_side(runs, divergences) if len(runs) > 1 else None,
        pictures=pictures,
        glossary=GLOSSARY,
        sentences=len(sentences),
        explorer=script_json({"sentences": sentences, "head": head, "maps": MAPS, **ramp()}),
        style=own_file("report.css"),
        script=own_file("report.js"),
        font_mark=font_mark(),
    )  # fmt: skip
    write_text(path, with_fonts(html, html, (400, 700)))
    return drawn


def write_attention_page(path: Path, sentence: Mapping[str, Any]) -> None:
    """Write one sentence's maps, every layer and head, as one HTML file with the report's explorer.

    Args:
        path: of the file.
        sentence: an entry as in `write_report`. Only "words" and "maps" are needed.

    Raises:
        UserError: no words, no maps, or a map whose bytes do not fit its shape and the words.
    """
    whole = {
        "id": "sentence", "text": " ".join(sentence.get("words") or []), "language": "en", "kind": None, "type": None,
        "pronoun": None, "antecedents": [], "distractors": [], "special": [], "answer": None, "right": None,
        "head_right": None, **sentence,
    }  # fmt: skip
    _check(whole)
    if sum(len(one["data"]) for one in whole["maps"].values()) > _UNPACKED:
        whole["maps"] = {name: deflated(one) for name, one in whole["maps"].items()}
    html = environment().get_template("attention.html.j2").render(
        text=whole["text"],
        language=whole["language"],
        sentences=1,
        explorer=script_json({"sentences": [whole], "head": {}, "maps": MAPS, **ramp()}),
        style=own_file("report.css"),
        script=own_file("report.js"),
        font_mark=font_mark(),
    )  # fmt: skip
    # Latin letters are on every machine: a page of one English sentence carries no font.
    chinese = [character for character in set(whole["text"]) if ord(character) >= 0x2E80]
    write_text(path, with_fonts(html, chinese, (400,) if chinese else ()))


def _check(sentence: Mapping[str, Any]) -> None:
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


def _inline(figure: Figure, prefix: str) -> Markup:
    """The figure as an SVG element: text as text in the page's own font, and ids that no other figure has."""
    from matplotlib import rc_context

    from anaphora.report.style import house_style

    buffer = io.StringIO()
    with house_style(), rc_context({"svg.fonttype": "none"}):
        figure.savefig(buffer, format="svg", metadata={"Creator": None, "Date": None, "Format": None, "Type": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    # Its style element would hold for the whole page, whose own style says the same.
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>|<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    used = set(re.findall(r'url\(#([^)]+)\)|href="#([^"]+)"', svg))
    kept = {name for pair in used for name in pair if name}
    svg = re.sub(r' id="([^"]*)"', lambda found: f' id="{prefix}{found[1]}"' if found[1] in kept else "", svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    svg = re.sub(r'xlink:href="#', f'href="#{prefix}', svg)
    svg = re.sub(r"<g>\s*</g>|\s*\n\s*", lambda found: "" if "g" in found[0] else "\n", svg)
    width, height = (float(size) for size in re.findall(r'(?:width|height)="([\d.]+)pt"', svg)[:2])
    opening = f'<svg width="{_PIXELS * width:.0f}" height="{_PIXELS * height:.0f}" viewBox="0 0 {width:g} {height:g}" '
    svg = opening + 'aria-hidden="true" focusable="false">' + svg[svg.index(">") + 1 :]
    return safe(svg)
