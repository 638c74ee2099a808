"""Compare the results of two commits on this machine: python benchmarks/freeze.py OLD NEW.

OLD and NEW are commits, or folders with a checkout. Each version of the package does the same small work: the demo, a
run on custom data, a run on data in GAP's format, and the analysis of a transformers model. Metrics, weights, tables,
the numbers in the reports and the explorer's data must be exactly equal; otherwise the exit status is 1.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import fnmatch
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SENTENCE = ("text=Anna thanked Emma because she had helped.", "pronoun=she", "candidates=[Anna,Emma]")
SMOKE = ("output=.", "trainer=smoke", "optimizer.learning_rate=0.01")


@dataclass(frozen=True)
class Step:
    """Command of a run.

    Attributes:
        run: name of the run, and of the folder of its files.
        arguments: the command and its settings at the old commit.
        new: the command and its settings at commits in which the command has another name.
    """

    run: str
    arguments: tuple[str, ...]
    new: tuple[str, ...] | None = None

    def arguments_at(self, checkout: Path) -> tuple[str, ...]:
        """Return the command and its settings for a checkout."""
        has_new = self.new is not None and (checkout / "scripts" / f"{self.new[0]}.py").exists()
        return self.new if self.new is not None and has_new else self.arguments


def steps(inputs: Path, model: Path) -> list[Step]:
    """Return the commands of the four runs in order."""
    own, gap = f"data.path={inputs / 'own.jsonl'}", f"data.path={inputs / 'gap'}"
    trained = ("recipe=token_values", *SMOKE)
    items = ("data=jsonl", own)
    scored = (f"run={model}", *items, "untrained=2", "output=transformers")
    slots = ("task/prediction=slot", "task.prediction.none_of_them=true")
    return [
        Step("demo", ("demo", "name=demo", *SMOKE, "data.train_items=300", "data.test_items=60")),
        Step("demo", ("evaluate", "run=demo")),
        Step("own", ("train", "name=own", *trained, *items)),
        Step("own", ("score_attention", "run=own", "untrained=2"), ("score", "run=own", "untrained=2")),
        Step("own", ("report", "run=own", "interface_language=both")),
        Step("own", ("extract_attention", "run=own"), ("extract", "run=own")),
        Step("own", ("explain", "run=own", *SENTENCE, "form=json", "output=own/explain.json")),
        Step("own", ("attention", "run=own", *SENTENCE, "output=own/attention.parquet")),
        Step("gap", ("train", "name=gap", *trained, "data=gap", gap, *slots)),
        Step("gap", ("report", "run=gap")),
        Step("gap", ("gap", "runs=[gap]", gap, "output=gap/decisions.csv")),
        Step("transformers", ("score_attention", *scored), ("score", *scored)),
        Step("transformers", ("attention", f"run={model}", *SENTENCE, "output=transformers/page.html")),
        Step("transformers", ("attention", f"run={model}", *SENTENCE, "output=transformers/rows.parquet")),
    ]


MAY_DIFFER = {
    "*/training.json:train_seconds": "a time",
    "*/training.json:curves_seconds": "a time",
    "*/training.json:machine*": "the machine and its load, which older commits do not record",
    "*/metrics.json:train_seconds": "a time",
    "*/metrics.json:provenance.code": "a digest of the measuring code",
    "*/metrics.json:*.provenance.code": "a digest of the measuring code",
    "*.html:explorer.phrases.*": "words",
    "*.html:explorer.values.*": "words",
}
"""Reasons why values may differ between commits, by FILE:KEY with wildcards."""


def main() -> int:
    """Run all commands with both versions, print the comparison, and return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(".")[0])
    parser.add_argument("old", help="a commit, or a folder with a checkout")
    parser.add_argument("new", help="the same")
    parser.add_argument("--gap", type=Path, help="a folder with the files of GAP; by default thirty invented rows")
    parser.add_argument("--own", type=Path, help="examples, one per line; by default eighty invented ones")
    parser.add_argument("--model", type=Path, help="a model of transformers; by default a tiny BERT, random weights")
    parser.add_argument("--keep", type=Path, help="a new folder for what both commits write; by default it is removed")
    chosen = parser.parse_args()
    with contextlib.ExitStack() as stack:
        place = chosen.keep or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        place = place.resolve()
        inputs = place / "inputs"
        inputs.mkdir(parents=True)
        write_inputs(inputs, chosen.own, chosen.gap)
        model = (chosen.model or write_model(inputs / "model")).resolve()
        checkouts = {
            side: stack.enter_context(checked_out(name, place / f"checkout_{side}"))
            for side, name in (("old", chosen.old), ("new", chosen.new))
        }

        def run_all(side: str) -> None:
            (place / side).mkdir()
            for step in steps(inputs, model):
                run(checkouts[side], step.arguments_at(checkouts[side]), place / side, place / f"cache_{side}")

        with ThreadPoolExecutor() as pool:  # side by side, since each computes on one core
            list(pool.map(run_all, checkouts))
        return compare(place)


@contextlib.contextmanager
def checked_out(name: str, place: Path) -> Iterator[Path]:
    """Yield the folder of a checkout: the folder itself, or a temporary worktree of a commit."""
    if Path(name, "src", "anaphora").is_dir():
        yield Path(name).resolve()
        return
    git = ("git", "-C", str(ROOT), "worktree")
    subprocess.run([*git, "add", "--quiet", "--detach", str(place), name], check=True)
    try:
        yield place
    finally:
        subprocess.run([*git, "remove", "--force", str(place)], check=True)


def run(checkout: Path, arguments: tuple[str, ...], folder: Path, cache: Path) -> None:
    """Run a command with the package of a checkout; exit with the command's message if it fails."""
    shown = " ".join(arguments)
    sys.stderr.write(f"{folder.name}: {shown}\n")
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "ANAPHORA_CACHE": str(cache)}
    environment |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "PYTHONHASHSEED": "0"}
    environment.pop("ANAPHORA_LANGUAGE", None)
    command = [sys.executable, "-m", "anaphora", *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{folder.name}: {shown}\n{done.stderr[-2000:]}")


# What is compared ----------------------------------------------------------------------------------------------------


def compare(place: Path) -> int:
    """Print a line for each kind of file of each run, and the first keys that differ; return the exit status.

    Every unexpected difference is a line of differences.txt.
    """
    one, other = read_all(place / "old"), read_all(place / "new")
    counts: dict[tuple[str, str], list[int]] = {}
    wrong: list[str] = []
    allowed: list[str] = []
    for key in dict.fromkeys([*one, *other]):
        path = Path(key.partition(":")[0])
        count = counts.setdefault((path.parts[0], kind_of(path, key)), [0, 0, 0])
        count[0] += 1
        if key in one and key in other and equal(one[key], other[key]):
            continue
        reason = next((why for pattern, why in MAY_DIFFER.items() if fnmatch.fnmatchcase(key, pattern)), None)
        count[1 if reason is None else 2] += 1
        line = f"{key}: {shortened(one, key)} -> {shortened(other, key)}"
        (wrong if reason is None else allowed).append(line if reason is None else f"{line} ({reason})")
    print(f"{'run':<14}{'what':<26}{'values':>9}{'differ':>9}{'may differ':>12}")
    for (name, kind), (values, differing, permitted) in counts.items():
        print(f"{name:<14}{kind:<26}{values:>9}{differing:>9}{permitted:>12}")
    for title, lines in (("may differ", allowed), ("differ", wrong)):
        print(f"\n{title}: {len(lines)}", *lines[:40], sep="\n  ")
    (place / "differences.txt").write_text("".join(f"{line}\n" for line in wrong), encoding="utf-8")
    return 1 if wrong else 0


def read_all(folder: Path) -> dict[str, Any]:
    """Return all values to compare, by FILE:KEY."""
    readers = {".json": read_json, ".safetensors": read_weights, ".html": read_page, ".csv": read_table}
    readers |= {".parquet": read_parquet}
    values: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix in readers and path.is_file():
            name = path.relative_to(folder).as_posix()
            values |= {f"{name}:{key}": value for key, value in readers[path.suffix](path)}
    return values


def kind_of(path: Path, key: str) -> str:
    """Return the kind of data that a value belongs to, such as "weights", for the printed counts."""
    if path.suffix == ".html":
        return "explorer's data" if ":explorer" in key else "numbers of the page"
    names = {".csv": "tables", ".parquet": "rows and scores", ".safetensors": "weights"}
    return names.get(path.suffix, path.name)


def equal(one: Any, other: Any) -> bool:
    """Return whether two values are equal; for sentences, only the numbers in them are compared."""
    if isinstance(one, str) and isinstance(other, str) and " " in one and " " in other:
        return numbers_in(one) == numbers_in(other)
    return type(one) is type(other) and (one == other or (one != one and other != other))


def numbers_in(text: str) -> list[str]:
    """Return the numbers in a text, as strings."""
    return re.findall(r"\d[\d,.]*\d|\d", text)


def shortened(values: dict[str, Any], key: str) -> str:
    """Return a value as shortened text for a line of output."""
    return repr(values[key])[:60] if key in values else "missing"


def read_json(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the path and value of every leaf of a JSON file."""
    yield from flat(json.loads(path.read_text(encoding="utf-8")))


def flat(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the path, such as a.b[2], and value of every leaf of nested lists and objects."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from flat(inner, f"{place}.{name}" if place else name)
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from flat(inner, f"{place}[{index}]")
    else:
        yield place, value


def read_weights(path: Path) -> Iterator[tuple[str, str]]:
    """Yield a digest of each tensor."""
    from safetensors.numpy import load_file

    for name, tensor in sorted(load_file(path).items()):
        content = f"{tensor.dtype} {tensor.shape} ".encode() + tensor.tobytes()
        yield name, hashlib.sha256(content).hexdigest()


def read_table(path: Path) -> Iterator[tuple[str, str]]:
    """Yield every cell of a CSV file by row and column."""
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.DictReader(file), start=1):
            yield from ((f"row {number}, {name}", str(cell)) for name, cell in row.items())


def read_parquet(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield every value of a Parquet file by row and column."""
    from pyarrow.parquet import read_table as read

    for number, row in enumerate(read(path).to_pylist(), start=1):
        yield from ((f"row {number}, {place}", value) for place, value in flat(row))


class PageReader(HTMLParser):
    """Parser of a page's text and of its explorer's data."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.explorer = ""
        self._inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style", "svg"):
            self._inside.append("explorer" if ("type", "application/json") in attrs else tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style", "svg") and self._inside:
            self._inside.pop()

    def handle_data(self, data: str) -> None:
        if not self._inside:
            self.text.append(data)
        elif self._inside[-1] == "explorer":
            self.explorer += data


def read_page(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield the numbers in a page's text, their order, and the data of its explorer.

    The position of a number is not part of its key, since a removed number would otherwise change all later keys.
    """
    reader = PageReader()
    reader.feed(path.read_text(encoding="utf-8"))
    numbers = numbers_in(" ".join(reader.text))
    times: Counter[str] = Counter()
    for number in numbers:
        times[number] += 1
        yield f"number {number}, time {times[number]}", number
    yield "order of the numbers", " ".join(numbers)
    if reader.explorer.strip():
        yield from ((f"explorer.{place}", value) for place, value in flat(json.loads(reader.explorer)))


# What the runs read --------------------------------------------------------------------------------------------------


def write_inputs(folder: Path, own: Path | None, gap: Path | None) -> None:
    """Create own.jsonl and gap/ in a folder, as links to the user's files or with generated data."""
    if own is not None:
        (folder / "own.jsonl").symlink_to(own.resolve())
    else:
        lines = [json.dumps(example(number)) for number in range(80)]
        (folder / "own.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    if gap is not None:
        (folder / "gap").symlink_to(gap.resolve())
    else:
        write_gap(folder / "gap")


def example(number: int) -> dict[str, Any]:
    """Return one row of custom data, with a pronoun that refers to one of two names."""
    names = ("Anna", "Emma", "Mary", "Lucy", "Jane")
    one, two = names[number % 5], names[(number + 1 + number // 20) % 5]
    verb, cue, right = (("thanked", "had helped", 1), ("helped", "was kind", 0))[number % 2]
    text = f"{one} {verb} {two} because she {cue}."
    second = text.index(two, len(one))
    pronoun = text.index("she")
    return {
        "text": text,
        "language": "en",
        "pronoun": [pronoun, pronoun + 3],
        "candidates": [[0, len(one)], [second, second + len(two)]],
        "antecedents": [right],
        "group": f"group {number // 4}",
        "factors": {"kind": "role", "type": verb, "template": verb},
    }


def write_gap(folder: Path) -> None:
    """Write twenty development, ten validation and ten test rows; every fifth pronoun refers to neither name."""
    folder.mkdir()
    columns = ("ID", "Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref", "URL")
    for part, numbers in (("development", range(20)), ("validation", range(20, 30)), ("test", range(30, 40))):
        lines = ["\t".join(columns)]
        for number in numbers:
            one, two, pronoun = ("Anna", "Mary", "she") if number % 2 else ("Tom", "Peter", "he")
            text = f"{one} met {two} before {pronoun} went to park {number} ."
            answers = [str(number % 5 in means).upper() for means in ((0, 2), (1, 3))]
            places = (text.index(f" {pronoun} ") + 1, 0, text.index(two))
            cells = (f"{part}-{number}", text, pronoun, places[0], one, 0, answers[0], two, places[2], answers[1], "x")
            lines.append("\t".join(map(str, cells)))
        (folder / f"gap-{part}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_model(folder: Path) -> Path:
    """Write a randomly initialised two-layer BERT and a matching character tokenizer."""
    import torch
    import transformers
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,"
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    words = [*special, *characters, *(f"##{character}" for character in characters)]
    vocabulary = {word: number for number, word in enumerate(words)}
    backend = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    ends = [("[CLS]", 2), ("[SEP]", 3)]
    backend.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", special_tokens=ends)
    names = {"pad_token": special[0], "unk_token": special[1], "cls_token": special[2], "sep_token": special[3]}
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, mask_token=special[4], **names)
    tokenizer.save_pretrained(folder)
    torch.manual_seed(0)
    size: dict[str, Any] = {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
    }
    config = transformers.BertConfig(vocab_size=len(words), max_position_embeddings=128, **size)
    transformers.BertModel(config).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    sys.exit(main())
