"""The comparison as a whole, in its smallest form."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_dir

from anaphora.benchmark import models
from anaphora.benchmark.extraction import peer_records
from anaphora.benchmark.run import show
from anaphora.benchmark.sentences import invent
from anaphora.benchmark.settings import SIZES, Benchmark
from anaphora.config import register_configs, resolve
from anaphora.errors import UserError
from anaphora.model.settings import Learned

TINY = SIZES["tiny"]
CONFIGS = Path(__file__).parents[2] / "configs"


def smoke(*overrides: str) -> Benchmark:
    register_configs()
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        return resolve(compose("benchmark", ["scale=smoke", *overrides]), Benchmark)


def test_without_transformers_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(UserError, match=r"pip install 'anaphora\[bench\]'"):
        show(Benchmark())


@pytest.mark.parametrize("what", ["training", "extraction"])
def test_every_way_is_measured_and_written(what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    show(smoke(f"what={what}", f"output={tmp_path / 'speed.json'}"))
    written = json.loads((tmp_path / "speed.json").read_text(encoding="utf-8"))
    (table,) = written["tables"]
    makers = {row["maker"] for row in table["rows"]}
    assert makers == {"ours", "BertModel"} and written["torch"] == torch.__version__
    assert all(row["median"] > 0 and len(row["rates"]) == 1 for row in table["rows"])
    assert all(row["peak_memory_bytes"] is None or row["peak_memory_bytes"] >= 0 for row in table["rows"])
    arrival = next(row for row in table["rows"] if row["name"] == "arrival order")
    assert arrival["ratios"]["arrival order"] == 1 and arrival["ratios"]["sorted"] > 0
    shown = capsys.readouterr().out
    assert all(row["name"] in shown for row in table["rows"])


def test_both_models_are_of_one_size() -> None:
    pytest.importorskip("transformers")
    ours = models.resolver(SIZES["s"], Learned(max_length=128))
    theirs = models.BertForHiddenWords(SIZES["s"], 128)
    count, other = (sum(weight.numel() for weight in model.parameters()) for model in (ours, theirs))
    assert count == pytest.approx(other, rel=0.01)


def test_a_peers_record_is_the_pronouns_row_of_the_sentence_alone() -> None:
    pytest.importorskip("transformers")
    data = invent(np.array([5, 11]), np.random.default_rng(0))
    model = models.bert(TINY, "eager", 16).eval()
    short, _ = peer_records(model, data, [[0], [1]])  # padded to eleven tokens
    with torch.inference_mode():
        maps = model(input_ids=torch.tensor([data.tokens[0].ids]), output_attentions=True).attentions
    (pronoun,) = data.tokens[0].covering(data.examples[0].pronoun)
    np.testing.assert_allclose(short.weights, torch.cat(maps)[:, :, pronoun].numpy(), atol=1e-6)
