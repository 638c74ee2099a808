"""Write the training items: python -m experiments.shipped items.jsonl [pairs a language].

Reading and order are the same on every machine: all draws come from one seed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from experiments.shipped.items import Items
from experiments.shipped.lexicon import load

SHARES = {"gender": 0.13, "number": 0.12, "animacy": 0.12, "selection": 0.33, "role": 0.3}
PAIRS = 60_000
DEV_SHARE = 0.01


def main(path: Path, pairs: int) -> None:
    """Write the rows of both languages, each pair in one split."""
    with path.open("w", encoding="utf-8") as file:
        for language in ("en", "zh"):
            chance = Random(f"0/{language}")
            split: dict[str, str] = {}
            for row in Items(load(language), chance).rows(SHARES, pairs):
                row["split"] = split.setdefault(row["group"], "dev" if chance.random() < DEV_SHARE else "train")
                file.write(json.dumps(row, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else PAIRS)
