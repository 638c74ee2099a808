"""The attention of any model in one text: a page or a table, and which heads attend to the candidates most."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table

from anaphora.api import SentenceAttention, attention
from anaphora.base.console import console, print_table, say
from anaphora.base.files import check_writable
from anaphora.base.language import split_names
from anaphora.base.locale.translation import N_, _
from anaphora.data.own_sentence import name_of_sentence
from anaphora.report.terminal import in_language_of_messages, print_phrase
from anaphora.settings.commands.attention import AttentionQuery

_HEADS = 5
"""How many heads are named for each candidate."""


def show_attention(settings: AttentionQuery) -> None:
    """Write the page or the table, and name the heads in which the pronoun attends to each candidate most."""
    candidates = split_names(settings.candidates)
    question = (settings.run, settings.pronoun, candidates, settings.antecedent)
    view = (settings.by, settings.special, settings.interface_language)
    path = Path(settings.output or f"attention_{name_of_sentence(settings.text, *question, *view)}.html")
    check_writable(path)
    maps = attention(
        settings.run,
        settings.text,
        settings.pronoun,
        candidates,
        antecedent=settings.antecedent,
        by=settings.by,
    )
    if not settings.special:
        maps = maps.without_special()
    if settings.pronoun is not None and candidates:
        print_ranking(maps, settings.pronoun, candidates)
    if maps.is_decoder:
        print_phrase(N_("A decoder: no word sees what follows it."))
    if maps.unread:
        say(
            _("Not in this model's vocabulary: {words}. The model reads its unknown token there, or nothing.").format(
                words=", ".join(maps.unread)
            )
        )
    written = maps.save(path) if path.suffix == ".parquet" else maps.page(path, settings.interface_language).path
    console.print(str(written), soft_wrap=True)


@in_language_of_messages
def print_ranking(maps: SentenceAttention, pronoun: str, candidates: list[str]) -> None:
    """Print the heads in which the pronoun attends to each candidate most."""
    print_phrase(N_("The heads with most weight, as layer.head:"))
    table = Table()
    for candidate in candidates:
        table.add_column(_("from {pronoun} to {candidate}").format(pronoun=pronoun, candidate=candidate))
    columns = [maps.rank(pronoun, candidate)[:_HEADS] for candidate in candidates]
    for row in zip(*columns, strict=True):
        table.add_row(*(f"{one.layer}.{one.head}  {one.weight:.2f}" for one in row))
    print_table(table)
