"""The result of a comparison, for eyes (a rich table) and for programs (plain values)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

from rich import box
from rich import table as rich_table

from anaphora.benchmark.stopwatch import Measurement, relative_half_range
from anaphora.report.wording import DEFAULT, labels, phrase


@dataclass(frozen=True)
class BenchmarkTable:
    """The rates of all variants on one set of sentences.

    Attributes:
        work: the phrase of the work, the size and the texts.
        about: the values of that phrase.
        unit: the phrase of the rates' unit.
        lengths: tokens of every sentence.
        rows: the variants, measured.
    """

    work: str
    about: Mapping[str, Any]
    unit: str
    lengths: Sequence[int]
    rows: Sequence[Measurement]

    @property
    def peers(self) -> list[Measurement]:
        """Those to which ratios are reported."""
        return [row for row in self.rows if row.variant.is_peer]

    def terminal_table(self) -> rich_table.Table:
        """Medians with half the range of the repeats; ratios are medians of the repeats' own ratios."""
        title, caption = phrase("benchmark", self.work, **self.about), self._caption()
        terminal_table = rich_table.Table(
            title=title, caption=caption, title_justify="left", caption_justify="left", box=box.SIMPLE
        )
        terminal_table.add_column("", no_wrap=True)
        over = [phrase("benchmark", "over", peer=_variant_name(peer.variant.name)) for peer in self.peers]
        headings = (phrase("benchmark", name) for name in ("real_tokens", "peak"))
        for heading in (phrase("benchmark", self.unit), *over, *headings):
            terminal_table.add_column(heading, justify="right")
        for row in self.rows:
            ratios = [_median_with_spread("{:.2f}", row.over(peer)) for peer in self.peers]
            rate = _median_with_spread("{:,.0f}" if median(row.rates) >= 10 else "{:.2f}", row.rates)
            implementation = _variant_name(row.variant.implementation)
            terminal_table.add_row(
                phrase("benchmark", "variant", implementation=implementation, way=_variant_name(row.variant.name)),
                rate,
                *ratios,
                f"{row.variant.non_padding_share:.0%}",
                _mebibytes(row.memory),
            )
        return terminal_table

    def to_dict(self) -> dict[str, Any]:
        """Every figure, ready for JSON."""
        return {
            "title": phrase("benchmark", self.work, DEFAULT, **self.about),
            "unit": phrase("benchmark", self.unit, DEFAULT),
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
        parameters = [
            phrase("benchmark", "parameters", implementation=_variant_name(name), millions=count)
            for name, count in millions.items()
        ]
        return phrase(
            "benchmark",
            "caption",
            sentences=mix["sentences"],
            median=f"{mix['median']:g}",
            mean=f"{mix['mean']:.1f}",
            longest=mix["longest"],
            repeats=len(self.rows[0].rates),
            parameters=phrase("joined", "comma").join(parameters),
        )


def _variant_name(name: str) -> str:
    """A variant or its maker; models of the library keep their names."""
    return labels("benchmark_variants").get(name, name)


def _mebibytes(memory: int | None) -> str:
    return "–" if memory is None else f"{memory / 2**20:,.0f}"


def _median_with_spread(form: str, values: Sequence[float]) -> str:
    middle = form.format(median(values))
    return f"{middle} ±{relative_half_range(values):.0%}" if len(values) > 1 else middle
