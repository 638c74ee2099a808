"""Compare the speed of extracting pronouns' attention rows from a transformers model with that of eager mode.

Example: python -m benchmarks.rows FOLDER 10000 --head 7.0 --repeats 3
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from anaphora.analysis.results.scores import Head
from anaphora.base.console import console
from anaphora.data.example import Example, overlapping
from anaphora.data.store import load
from anaphora.hf.reader import TransformersModel, open_model
from anaphora.settings.data import ControlledCorpus
from benchmarks.speed.stopwatch import OURS, Measurement, Variant, measure_interleaved, relative_half_range

TEXTS_AT_ONCE = 32
"""Batch size in texts, equal to that of the package's reader."""
LAST = 20
"""Number of sentences whose attention rows are compared."""


def sentences(count: int) -> list[Example]:
    """Return the first items of the built-in corpus with different texts, alternately English and Chinese."""
    corpus = load(ControlledCorpus())
    by_text = {example.text: example for example in corpus.examples("train")}
    languages = [[one for one in by_text.values() if one.language == language] for language in ("en", "zh")]
    return [one for pair in zip(*languages, strict=False) for one in pair][:count]


def eager_rows(model: Any, tokenizer: Any, examples: Sequence[Example]) -> Iterator[NDArray[np.float32]]:
    """Yield each pronoun's attention rows, (L, H, T), from whole maps in eager mode, sorted by text length."""
    encoded = tokenizer([example.text for example in examples], return_offsets_mapping=True)
    ids, places = encoded["input_ids"], encoded["offset_mapping"]
    order = sorted(range(len(examples)), key=lambda item: len(ids[item]))
    for first in range(0, len(order), TEXTS_AT_ONCE):
        batch = order[first : first + TEXTS_AT_ONCE]
        padded = tokenizer.pad({"input_ids": [ids[item] for item in batch]}, return_tensors="pt")
        with torch.inference_mode():
            maps = model(**padded, output_attentions=True).attentions
        for row, item in enumerate(batch):
            own = overlapping(places[item], examples[item].pronoun)
            rows = torch.stack([layer[row, :, own].mean(dim=1) for layer in maps])
            yield rows[..., : len(ids[item])].numpy()


def our_rows(model: TransformersModel, examples: Sequence[Example], head: Head | None) -> Iterator[NDArray[np.float32]]:
    """Yield each pronoun's attention rows as read by this package, (L, H, T), or (1, 1, T) for a single head."""
    return (record.weights for _, record in model.numbered_records(examples, head=head))


def number_of(rows: Iterator[NDArray[np.float32]]) -> int:
    """Consume the iterator and return the number of sentences."""
    return sum(1 for _ in rows)


def main() -> None:
    """Run the benchmark and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="a folder with an encoder of transformers")
    parser.add_argument("sentences", type=int)
    parser.add_argument("--head", required=True, help="layer.head, as in 7.0")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    layer, head = map(int, options.head.split("."))
    examples = sentences(options.sentences)
    ours = open_model(options.model)
    peer: Any = type(ours.model).from_pretrained(options.model, attn_implementation="eager").eval()
    check_equal(ours, peer, examples[:LAST], Head(layer, head))
    ways = {
        "eager, sorted": lambda items: number_of(eager_rows(peer, ours.tokenizer, items)),
        "ours, all heads": lambda items: number_of(our_rows(ours, items, None)),
        f"ours, head {options.head}": lambda items: number_of(our_rows(ours, items, Head(layer, head))),
    }
    variants = [
        Variant("transformers" if name.startswith("eager") else OURS, name, [partial(way, examples)], 0, 1.0)
        for name, way in ways.items()
    ]
    measured = measure_interleaved(variants, options.repeats, time.process_time)
    for text in (
        f"{len(examples)} sentences, {options.threads} threads, {options.repeats} repeats, processor seconds",
        *(line(one, measured[0]) for one in measured),
    ):
        console.print(text, soft_wrap=True)


def check_equal(ours: TransformersModel, peer: Any, examples: Sequence[Example], head: Head) -> None:
    """Check that all three methods give the same attention rows for each sentence."""
    for example in examples:
        (expected,) = eager_rows(peer, ours.tokenizer, [example])
        (every,), (one,) = our_rows(ours, [example], None), our_rows(ours, [example], head)
        equal = np.allclose(expected, every, atol=1e-5), np.allclose(expected[head.layer, head.head], one, atol=1e-5)
        if not all(equal):
            raise SystemExit(f"the rows differ: {example.text}")


def line(one: Measurement, peer: Measurement) -> str:
    """Return rate, speedup over the peer and memory as text, each rate with half the range of its repeats."""
    ratios = one.over(peer)
    memory = "" if one.memory is None else f", {one.memory / 2**20:.0f} MiB above what was held"
    return (
        f"{one.variant.name}: {median(one.rates):.1f} sentences a second ± {relative_half_range(one.rates):.0%}, "
        f"{median(ratios):.2f} times ± {relative_half_range(ratios):.0%}{memory}"
    )


if __name__ == "__main__":
    main()
