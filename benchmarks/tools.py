"""Print the table of docs/results/tools.md: python -m benchmarks.tools FOLDER [RUN].

FOLDER has all-MiniLM-L6-v2 in the format of transformers, and RUN is a run directory for the live page. bertviz and
transformer-lens must be installed; the line of a tool that is missing, or does not support a model, says so. Each line
is measured in its own process, without network access.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from statistics import median
from typing import Any

SENTENCE = "The old doctor thanked the young nurse in the quiet hall because she had found the lost keys before noon."
REPEATS = 5
MEASURES = ("anaphora page", "bertviz head_view", "bertviz model_view", "TransformerLens cache")
LIVE = "anaphora live page"
MODELS = {
    "MiniLM": "all-MiniLM-L6-v2, 6 x 12 heads, 20 words",
    "base": "BERT-base, random weights, 12 x 12 heads, 20 words",
    "long": "the same, 200 words",
}
RUN = "a run trained here, 20 words"


def main() -> None:
    """Run all measurements and print the table as Markdown."""
    assert len(SENTENCE.split()) == 20
    folder, *runs = sys.argv[1:]
    _write(f"| what | model | seconds | processor seconds | memory, MB | size, MB |\n|{'---|' * 6}")
    for model, described in MODELS.items():
        for what in (*MEASURES, LIVE):
            _write(_line(what, described, _in_own_process(what, model, folder)))
    for run in runs:
        _write(_line(LIVE, RUN, _in_own_process(LIVE, RUN, run)))


def _write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _text(model: str) -> str:
    return " ".join([SENTENCE] * 10) if model == "long" else SENTENCE


def _line(what: str, model: str, numbers: dict[str, Any]) -> str:
    if "error" in numbers:
        return f"| {what} | {model} | {numbers['error']} | | | |"
    size = "" if numbers["size"] is None else f"{numbers['size'] / 1e6:.2f}"
    seconds = f"{numbers['seconds']:.2f} | {numbers['processor']:.2f}"
    return f"| {what} | {model} | {seconds} | {numbers['memory'] / 1e6:.0f} | {size} |"


def _in_own_process(what: str, model: str, folder: str) -> dict[str, Any]:
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, "-m", "benchmarks.tools", "--one", what, model, folder]
    done = subprocess.run(command, env=offline, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": f"`{(done.stderr.strip().splitlines() or ['?'])[-1][:120]}`"}
    numbers: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def measure_one(what: str, model: str, folder: str) -> dict[str, Any]:
    """Return wall-clock and processor seconds, peak memory in bytes, and size of the page in bytes.

    Seconds are medians of five repeats after a warm-up. On a busy machine, processor seconds vary less.
    """
    from benchmarks.speed.stopwatch import peak_memory, reset_peak_memory

    work = _work(what, model, folder)
    before = reset_peak_memory() or 0
    size, wall, processor = work(), [], []
    for _ in range(REPEATS):
        start, computed = time.perf_counter(), time.process_time()
        work()
        wall.append(time.perf_counter() - start)
        processor.append(time.process_time() - computed)
    memory = max(0, peak_memory() - before)
    return {"seconds": median(wall), "processor": median(processor), "memory": memory, "size": size}


def _work(what: str, model: str, folder: str) -> Callable[[], int | None]:
    """Return a function that does the work on a loaded model, and returns the size of the page in bytes."""
    if what == "TransformerLens cache":
        return _transformer_lens(model, folder)
    if what.startswith("bertviz"):
        return _bertviz(what.removeprefix("bertviz "), model, folder)
    return _live_page(model, folder) if what == LIVE else _page(model, folder)


def _page(model: str, folder: str) -> Callable[[], int]:
    import anaphora

    loaded, tokenizer = _load(model, folder)
    path = Path(tempfile.mkdtemp()) / "page.html"

    def work() -> int:
        path.unlink(missing_ok=True)
        anaphora.attention(loaded, _text(model), tokenizer=tokenizer).page(str(path))
        return path.stat().st_size

    return work


def _live_page(model: str, folder: str) -> Callable[[], int]:
    from anaphora.api.live.server import LiveApplication, open_server
    from anaphora.api.models import open_any

    opened = open_any(folder) if model == RUN else open_any(*_load(model, folder))
    application = LiveApplication({"model": opened})
    server, address = open_server(application, 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    question: dict[str, Any] = {"model": "model", "text": _text(model)}
    if model != "long":
        question |= {"pronoun": "she", "candidates": ["doctor", "nurse"]}
    headers = {"Content-Type": "application/json", "X-Token": application.token}
    asked = urllib.request.Request(
        address.partition("?")[0] + "attention", data=json.dumps(question).encode(), headers=headers
    )

    def work() -> int:
        with urllib.request.urlopen(asked) as reply:
            return len(reply.read())

    return work


def _bertviz(view: str, model: str, folder: str) -> Callable[[], int]:
    import bertviz

    loaded, tokenizer = _load(model, folder, attn_implementation="eager")
    path = Path(tempfile.mkdtemp()) / "page.html"

    def work() -> int:
        inputs = tokenizer(_text(model), return_tensors="pt")
        maps = loaded(**inputs, output_attentions=True).attentions
        words = tokenizer.convert_ids_to_tokens(inputs["input_ids"][0])
        page = getattr(bertviz, view)(maps, words, html_action="return")
        path.write_text(page.data, encoding="utf-8")
        return path.stat().st_size

    return work


def _transformer_lens(model: str, folder: str) -> Callable[[], None]:
    from transformer_lens.model_bridge import TransformerBridge

    # It reads BERT with the output layer of a masked language model alone.
    loaded, tokenizer = _load(model, folder, auto="AutoModelForMaskedLM")
    bridge = TransformerBridge.boot_transformers(folder, hf_model=loaded, tokenizer=tokenizer)

    def work() -> None:
        _, cache = bridge.run_with_cache(_text(model))
        weights = [value for name, value in cache.items() if name.endswith("hook_pattern")]
        assert len(weights) == loaded.config.num_hidden_layers, "no maps in the cache"

    return work


def _load(model: str, folder: str, auto: str = "AutoModel", **options: str) -> tuple[Any, Any]:
    import torch
    import transformers

    torch.manual_seed(0)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    kind = getattr(transformers, auto)
    if model == "MiniLM":
        loaded = kind.from_pretrained(folder, **options)
    else:
        loaded = kind.from_config(transformers.BertConfig(), **options)
    return loaded.eval(), tokenizer


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        import torch

        with redirect_stdout(io.StringIO()), torch.no_grad():
            measured = measure_one(*sys.argv[2:])
        _write(json.dumps(measured))
    else:
        main()
