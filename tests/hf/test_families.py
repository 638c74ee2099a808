"""The smallest form of `make families`: some model types of different kinds, and tests of the oracle."""

from __future__ import annotations

import pytest
import torch
from families import oracle
from families.registry import Family, find_family, reads_texts_alone
from families.verify import build, verify
from tiny import skip_if_unknown
from torch import nn

KINDS = {
    "bert": "verified",  # an encoder with absolute positions
    "albert": "verified",  # one layer, run twice
    "deberta-v2": "verified",  # relative positions, in eager mode
    "bloom": "verified",  # distances in place of positions
    "gemma2": "verified",  # capped scores, and a window in every other layer
    "llama": "verified",  # heads that share keys
    "falcon": "verified",  # whose switch to eager attention does nothing
    "gpt_oss": "verified",  # sinks
    "qwen3_next": "verified",  # attention in some layers only
    "squeezebert": "verified",  # which returns its scores in place of its weights
    "dpr": "verified",  # which returns no weights
    "fsmt": "verified",  # whose encoder is no model of its own
    "trocr": "verified",  # whose decoder is wrapped
    "deepseek_v32": "verified",  # a selection of tokens, which depends on the padding beside them
    "big_bird": "verified",  # which a short text changes
    "canine": "refused",  # whose blocks also attend to groups of characters
}


@pytest.mark.parametrize("family", KINDS)
def test_a_family_is_read_as_it_computes_or_refused(family: str) -> None:
    skip_if_unknown(family)
    found = find_family(family)
    assert found is not None
    outcome = verify(found)
    assert (outcome.kind, outcome.edits) == (KINDS[family], "yes" if KINDS[family] == "verified" else ""), outcome


@pytest.mark.parametrize(("model_type", "is_text"), [("bert", True), ("t5", True), ("clip", False), ("whisper", False)])
def test_a_family_of_texts_takes_token_ids_and_no_other_input(model_type: str, is_text: bool) -> None:
    family = find_family(model_type)
    assert family is not None
    assert reads_texts_alone(family) == is_text


class Mixer(nn.Module):
    """Module that transposes and sharpens a softmax before use."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor]:
        scores = torch.arange(18.0).view(1, 2, 3, 3).sin()
        self.used = scores.softmax(dim=-1).flip(-1) * 0.5
        router = scores.view(6, 3).softmax(dim=-1).topk(2).values  # of no tokens
        return ((self.used @ torch.ones(1, 2, 3, 4)).mean(dim=1) + router.sum(),)


def test_the_oracle_follows_a_softmax_to_where_it_is_used() -> None:
    mixer = Mixer()
    (mixture,) = oracle.run(mixer, [5, 6, 7]).squares
    assert torch.equal(mixture.maps(3)[0], mixer.used[0])


def test_the_oracle_computes_the_weights_of_fused_attention() -> None:
    model = build(Family("bert", "BertModel"))
    fused = oracle.run(model, [2, 5, 6, 7, 3]).squares
    model.set_attn_implementation("eager")
    for one, other in zip(fused, oracle.run(model, [2, 5, 6, 7, 3]).squares, strict=True):
        assert torch.allclose(one.maps(5)[0], other.maps(5)[0], atol=1e-5)
