"""Tests of the whole comparison in its smallest form."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from anaphora.base.errors import UserError
from anaphora.settings.arguments import settings_from
from anaphora.settings.model.position import Learned
from benchmarks.speed import models
from benchmarks.speed.compare import run_benchmark
from benchmarks.speed.extraction import peer_records
from benchmarks.speed.pretraining import MaskedChunks
from benchmarks.speed.sentences import VOCABULARY, generate_sentences
from benchmarks.speed.settings import SIZES, Benchmark

TINY = SIZES["tiny"]
SMALLEST = ("lengths=[lognormal]", "sentences=48", "batch_sentences=8", "repeats=1", "steps=2")


def smoke(*overrides: str, size: str = "tiny") -> Benchmark:
    """Return settings of the smallest complete comparison."""
    return settings_from([f"sizes=[{size}]", *SMALLEST, *overrides], Benchmark)


def test_without_transformers_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"transformers is not installed: \S+ -m pip install 'anaphora\[bench\]'"):
        run_benchmark(Benchmark())


def test_pre_training_is_measured_on_text_of_ones_own(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    pages = tmp_path / "pages.jsonl"
    lines = ["\\n".join(["The gate opened.", "Nobody came in before the rain."] * 9) for _ in range(20)]
    pages.write_text("\n".join(f'{{"text": "{line}"}}' for line in lines), encoding="utf-8")
    out = tmp_path / "speed.json"
    chosen = ("data=plain_text", f"data.path={pages}", "clock=processor", f"output={out}")
    run_benchmark(smoke("what=pretraining", *chosen, size="8x1x2"))
    documents, paragraphs = json.loads(out.read_text(encoding="utf-8"))["tables"]
    assert documents["lengths"]["longest"] > paragraphs["lengths"]["longest"]
    for table in (documents, paragraphs):
        assert {row["maker"] for row in table["rows"]} == {"ours", "BertModel", "BertForMaskedLM"}
        assert len(table["rows"][0]["ratios"]) == 4 and all(row["median"] > 0 for row in table["rows"])
        assert table["unit"] == "real tokens a processor second"


def test_the_same_words_are_hidden_whoever_shares_a_batch() -> None:
    data = generate_sentences(np.array([5, 40, 11, 30]), np.random.default_rng(0))
    hidden = MaskedChunks(data, seed=1)

    def read(rows: list[list[int]]) -> dict[int, tuple[list[int], list[int]]]:
        batch = hidden.batch(rows)
        masked = torch.zeros(batch.ids.numel(), dtype=torch.bool)
        masked[batch.masked_positions] = True
        tokens = {}
        for segment, item in enumerate(batch.items.tolist()):
            here = batch.segments == segment
            tokens[item] = (batch.inputs[here].tolist(), masked.view_as(here)[here].tolist())
        return tokens

    assert read([[3, 1], [0, 2]]) == read([[0], [1], [2], [3]])
    assert any(any(masked) for _, masked in read([[0, 1, 2, 3]]).values())


def test_both_models_of_masked_tokens_ask_the_same_tokens() -> None:
    pytest.importorskip("transformers")
    batch = MaskedChunks(generate_sentences(np.array([30, 12]), np.random.default_rng(0)), seed=0).batch([[0], [1]])
    model = models.FullBertMaskedLM(TINY, 32, VOCABULARY).eval()
    loss = model(batch)
    with torch.no_grad():
        logits = model.model(input_ids=batch.inputs, attention_mask=models.attention_mask(batch)).logits.flatten(0, 1)
    positions = batch.masked_positions
    wanted = torch.nn.functional.cross_entropy(logits[positions], batch.ids.flatten()[positions])
    torch.testing.assert_close(loss, wanted)


@pytest.mark.parametrize("what", ["training", "extraction"])
def test_every_way_is_measured_and_written(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    run_benchmark(smoke(f"what={what}", f"output={tmp_path / 'speed.json'}"))
    written = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    (table,) = written["tables"]
    makers = {row["maker"] for row in table["rows"]}
    assert makers == {"ours", "BertModel"} and written["torch"] == torch.__version__
    assert all(row["median"] > 0 and len(row["rates"]) == 1 for row in table["rows"])
    assert all(row["peak_memory_bytes"] is None or row["peak_memory_bytes"] >= 0 for row in table["rows"])
    arrival = next(row for row in table["rows"] if row["name"] == "arrival order")
    assert arrival["ratios"]["arrival order"] == 1 and arrival["ratios"]["sorted"] > 0
    screen = capsys.readouterr().out
    assert all(row["name"] in screen for row in table["rows"])


def test_a_step_counts_the_operations_of_its_products(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    out = tmp_path / "speed.json"
    run_benchmark(smoke("what=step", "sentences=24", "steps=1", "clock=processor", f"output={out}"))
    (table,) = json.loads(out.read_text(encoding="utf-8"))["tables"]
    ours, torchs = table["rows"]
    assert (ours["maker"], torchs["maker"]) == ("ours", "torch")
    assert 0 < ours["ratios"]["product"] < 1 == torchs["ratios"]["product"]
    assert table["unit"] == "million floating-point operations in products a processor second"


def test_both_models_are_of_one_size() -> None:
    pytest.importorskip("transformers")
    ours = models.our_model(SIZES["s"], Learned(max_length=128))
    theirs = models.LeanBertMaskedLM(SIZES["s"], 128)
    count, other = (sum(weight.numel() for weight in model.parameters()) for model in (ours, theirs))
    assert count == pytest.approx(other, rel=0.01)


def test_a_peers_record_is_the_pronouns_row_of_the_sentence_alone() -> None:
    pytest.importorskip("transformers")
    data = generate_sentences(np.array([5, 11]), np.random.default_rng(0))
    model = models.bert_model(TINY, "eager", 16).eval()
    short, _ = peer_records(model, data, [[0], [1]])  # padded to eleven tokens
    with torch.inference_mode():
        maps = model(input_ids=torch.tensor([data.tokens[0].ids]), output_attentions=True).attentions
    (pronoun,) = data.tokens[0].covering(data.examples[0].pronoun)
    np.testing.assert_allclose(short.weights, torch.cat(maps)[:, :, pronoun].numpy(), atol=1e-6)
