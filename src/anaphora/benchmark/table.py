"""What a comparison found, for eyes (a rich table) and for programs (plain values)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from rich import box
from rich import table as rich_table

from anaphora.benchmark.stopwatch import Measured, spread_of


@dataclass(frozen=True)
class Table:
    """The rates of all ways on one set of sentences.

    Attributes:
        title: what was done, with which size and lengths.
        unit: of the rates.
        lengths: tokens of every sentence.
        rows: the ways, measured.
    """

    title: str
    unit: str
    lengths: Sequence[int]
    rows: Sequence[Measured]

    @property
    def peers(self) -> list[Measured]:
        """Those to which ratios are told."""
        return [row for row in self.rows if row.way.peer]

    def shown(self) -> rich_table.Table:
        """Medians with half the range of the repeats; ratios are medians of the repeats' own ratios."""
        told = rich_table.Table(
            title=self.title, caption=self._caption(), title_justify="left", caption_justify="left", box=box.SIMPLE
        )
        told.add_column("", no_wrap=True)
        for heading in (self.unit, *(f"over {peer.way.name}" for peer in self.peers), "real tokens", "peak, MiB"):
            told.add_column(heading, justify="right")
        for row in self.rows:
            ratios = [_with_spread("{:.2f}", row.over(peer)) for peer in self.peers]
            rate = _with_spread("{:,.0f}" if median(row.rates) >= 10 else "{:.2f}", row.rates)
            told.add_row(
                f"{row.way.maker} {row.way.name}", rate, *ratios, f"{row.way.real_share:.0%}", _mebibytes(row.memory)
            )
        return told

    def plain(self) -> dict[str, Any]:
        """Every figure, ready for JSON."""
        return {
            "title": self.title,
            "unit": self.unit,
            "lengths": self._length_mix(),
            "rows": [
                {
                    "maker": row.way.maker,
                    "name": row.way.name,
                    "rates": list(row.rates),
                    "median": median(row.rates),
                    "ratios": {peer.way.name: median(row.over(peer)) for peer in self.peers},
                    "real_share": row.way.real_share,
                    "parameters": row.way.parameters,
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
        sizes = {row.way.maker: f"{row.way.maker} {row.way.parameters / 1e6:.2f} M" for row in self.rows}
        return (
            f"{mix['sentences']} sentences of median {mix['median']:g}, mean {mix['mean']:.1f} and at most "
            f"{mix['longest']} tokens; medians of {len(self.rows[0].rates)} repeats in turns, ± half the range; "
            "peak is memory above what was held before; "
            f"parameters: {', '.join(sizes.values())}"
        )


def _mebibytes(memory: int | None) -> str:
    return "–" if memory is None else f"{memory / 2**20:,.0f}"


def _with_spread(form: str, values: Sequence[float]) -> str:
    middle = form.format(median(values))
    return f"{middle} ±{spread_of(values):.0%}" if len(values) > 1 else middle
