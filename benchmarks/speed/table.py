"""Results of a comparison as a terminal table and as JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from rich import box
from rich import table as rich_table

from benchmarks.speed.stopwatch import Measurement, relative_half_range


@dataclass(frozen=True)
class BenchmarkTable:
    """Rates of all variants on one set of sentences.

    Attributes:
        title: title with the work, the model size and the texts.
        unit: unit of the rates.
        lengths: number of tokens of each sentence.
        rows: measurements of the variants.
    """

    title: str
    unit: str
    lengths: Sequence[int]
    rows: Sequence[Measurement]

    @property
    def peers(self) -> list[Measurement]:
        """Return the measurements of peers (other libraries), with which all measurements are compared."""
        return [row for row in self.rows if row.variant.is_peer]

    def terminal_table(self) -> rich_table.Table:
        """Return a table of median rates with half their range, and of median ratios over repeats."""
        terminal_table = rich_table.Table(
            title=self.title, caption=self._caption(), title_justify="left", caption_justify="left", box=box.SIMPLE
        )
        terminal_table.add_column("", no_wrap=True)
        over = [f"over {peer.variant.name}" for peer in self.peers]
        for heading in (self.unit, *over, "real tokens", "peak, MiB"):
            terminal_table.add_column(heading, justify="right")
        for row in self.rows:
            ratios = [_median_with_spread("{:.2f}", row.over(peer)) for peer in self.peers]
            rate = _median_with_spread("{:,.0f}" if median(row.rates) >= 10 else "{:.2f}", row.rates)
            terminal_table.add_row(
                f"{row.variant.implementation} {row.variant.name}",
                rate,
                *ratios,
                f"{row.variant.non_padding_share:.0%}",
                _mebibytes(row.memory),
            )
        return terminal_table

    def to_dict(self) -> dict[str, Any]:
        """Return all results as JSON values."""
        return {
            "title": self.title,
            "unit": self.unit,
            "lengths": self._length_mix(),
            "rows": [
                {
                    "maker": row.variant.implementation,
                    "name": row.variant.name,
                    "rates": list(row.rates),
                    "median": median(row.rates),
                    "ratios": {peer.variant.name: median(row.over(peer)) for peer in self.peers},
                    "real_share": row.variant.non_padding_share,
                    "parameters": row.variant.parameters,
                    "peak_memory_bytes": row.memory,
                }
                for row in self.rows
            ],
        }

    def _length_mix(self) -> dict[str, float]:
        return {
            "sentences": len(self.lengths),
            "median": median(self.lengths),
            "mean": mean(self.lengths),
            "longest": max(self.lengths),
        }

    def _caption(self) -> str:
        mix = self._length_mix()
        millions = {
            row.variant.implementation: f"{row.variant.parameters / 1e6:.2f}"
            for row in self.rows
            if row.variant.parameters
        }
        parameters = ", ".join(f"{name} {count} M" for name, count in millions.items())
        return (
            f"{mix['sentences']} sentences of median {mix['median']:g}, mean {mix['mean']:.1f} and at most "
            f"{mix['longest']} tokens; medians of {len(self.rows[0].rates)} repeats in turns, ± half the range; "
            f"peak is memory above what was held before; parameters: {parameters}"
        )


def _mebibytes(memory: int | None) -> str:
    return "–" if memory is None else f"{memory / 2**20:,.0f}"


def _median_with_spread(form: str, values: Sequence[float]) -> str:
    middle = form.format(median(values))
    return f"{middle} ±{relative_half_range(values):.0%}" if len(values) > 1 else middle
