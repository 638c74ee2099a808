from __future__ import annotations

import pytest
from rich.table import Table

from anaphora.base.console import console, print_table


def test_brackets_of_names_and_texts_are_text(capsys: pytest.CaptureFixture[str]) -> None:
    table = Table("name")
    table.add_row("[/bold] [l](x) [red]a[/red]")
    print_table(table)
    console.print("[/x] in [outputs]")
    said = capsys.readouterr().out
    assert "[/bold] [l](x) [red]a[/red]" in said and "[/x] in [outputs]" in said
