"""Tables as CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from anaphora.base.files import write_text


def write_csv(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write `rows` as CSV; the columns are the keys of all rows, in order of first appearance, None an empty field."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())
