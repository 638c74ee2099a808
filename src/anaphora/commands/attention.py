"""The attention of any model in one text: a page or a table, and which heads attend to the candidates most."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from anaphora.api import Attention, attention
from anaphora.base.console import console, print_table, say
from anaphora.base.files import check_writable
from anaphora.base.messages.translation import interface_language
from anaphora.report.wording import labels
from anaphora.settings.commands.attention import AttentionQuery

_HEADS = 5
"""How many heads are named for each candidate."""


def show_attention(settings: AttentionQuery) -> None:
    """Write the page or the table, and name the heads in which the pronoun attends to each candidate most."""
    path = Path(settings.output)
    check_writable(path)
    maps = attention(
        settings.run,
        settings.text,
        settings.pronoun,
        settings.candidates,
        settings.antecedent,
        settings.by,
    )
    if not settings.special:
        maps = maps.without_special()
    if settings.pronoun is not None and settings.candidates:
        say("the heads with most weight, as layer.head:")
        print_table(_ranking(maps, settings.pronoun, settings.candidates))
    if maps.is_decoder:
        say("a decoder: no word sees what follows it")
    written = maps.save(path) if path.suffix == ".parquet" else maps.page(path, settings.language).path
    console.print(str(written), soft_wrap=True)


def _ranking(maps: Attention, pronoun: str, candidates: list[str]) -> Table:
    table = Table()
    heading = labels("attention_page", interface_language())["from_to"]
    for candidate in candidates:
        table.add_column(heading.format(pronoun=pronoun, candidate=candidate))
    columns = [maps.rank(pronoun, candidate)[:_HEADS] for candidate in candidates]
    for row in zip(*columns, strict=True):
        table.add_row(*(f"{one.layer}.{one.head}  {one.weight:.2f}" for one in row))
    return table
