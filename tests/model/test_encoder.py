from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from encoders import ATTENTIONS, FEED_FORWARDS, NORMS, POSITIONS, encoder, pack, sentence, shape
from torch import Tensor

from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError
from anaphora.model.attention import Attention, attend, attention_weights
from anaphora.model.encoder import Encoder
from anaphora.model.layers import Block
from anaphora.model.mixer import same_sentence_mask
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import position as position_settings


def kind(value: object) -> str:
    return str(getattr(value, "kind", value))


every_position = pytest.mark.parametrize("position", POSITIONS, ids=kind)
every_attention = pytest.mark.parametrize("attention", ATTENTIONS, ids=kind)


@every_position
@every_attention
def test_packing_changes_nothing(position: position_settings.Position, attention: attention_settings.Attention) -> None:
    first, second = sentence(5, 1), sentence(9, 2)
    model = encoder(position=position, attention=attention)
    packed, alone = model(pack([first, second])), model(pack([second]))
    torch.testing.assert_close(packed[0, 5:], alone[0])


@every_position
@every_attention
def test_padding_changes_nothing(position: position_settings.Position, attention: attention_settings.Attention) -> None:
    model = encoder(position=position, attention=attention)
    padded, alone = model(pack([sentence(7)], padding=4)), model(pack([sentence(7)]))
    torch.testing.assert_close(padded[0, :7], alone[0])
    assert padded.isfinite().all()


@pytest.mark.parametrize("feed_forward", FEED_FORWARDS, ids=kind)
@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: f"{norm.kind}-{norm.placement}")
def test_every_block_trains(feed_forward: model_settings.FeedForward, norm: model_settings.Norm) -> None:
    model = encoder(feed_forward=feed_forward, norm=norm).train()
    torch.autograd.backward(model(pack([sentence(6)], padding=2))[:, :6].square().sum())
    untouched = [name for name, weight in model.named_parameters() if weight.grad is None or not weight.grad.any()]
    # A key's bias adds the same to every score of a row, which softmax does not see.
    assert [name for name in untouched if not name.endswith("key.bias")] == []
    assert all(weight.grad is None or weight.grad.isfinite().all() for weight in model.parameters())


def test_without_positions_a_sentence_is_a_bag() -> None:
    words, order = sentence(8), torch.tensor([3, 0, 7, 5, 1, 6, 2, 4])
    model = encoder(position=position_settings.NoPosition())
    torch.testing.assert_close(model(pack([words[order]]))[0], model(pack([words]))[0, order])


@pytest.mark.parametrize("position", POSITIONS[1:], ids=kind)
def test_with_positions_order_matters(position: position_settings.Position) -> None:
    words, order = sentence(8), torch.tensor([3, 0, 7, 5, 1, 6, 2, 4])
    model = encoder(position=position)
    assert (model(pack([words[order]]))[0] - model(pack([words]))[0, order]).abs().max() > 1e-3


@pytest.mark.parametrize("position", POSITIONS[3:], ids=kind)
def test_relative_positions_ignore_a_shift(position: position_settings.Position) -> None:
    tokens = pack([sentence(8)])
    model = encoder(position=position)
    torch.testing.assert_close(model(shifted(tokens)), model(tokens), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("position", POSITIONS[1:3], ids=kind)
def test_absolute_positions_see_a_shift(position: position_settings.Position) -> None:
    tokens = pack([sentence(8)])
    model = encoder(position=position)
    assert (model(shifted(tokens)) - model(tokens)).abs().max() > 1e-3


def shifted(tokens: EncoderInput) -> EncoderInput:
    """Return the same tokens, eleven positions later."""
    return replace(tokens, positions=tokens.positions + 11)


def attention_of(block: Block) -> Attention:
    assert isinstance(block.attention, Attention)
    return block.attention


def explicit_weights(model: Encoder, tokens: EncoderInput, layer: int) -> Tensor:
    """Compute softmax(q k^T / sqrt(D) + bias) of one layer in float64, one query at a time."""
    working = list(model.passes(tokens))[layer]
    query, key = working.query, working.key
    bias = attention_of(working.block).score_bias(working.context).expand(query.shape[0], query.shape[1], -1, -1)
    rows = torch.zeros(*query.shape[:3], key.shape[2], dtype=torch.float64)
    for row, head, token in torch.cartesian_prod(*(torch.arange(size) for size in query.shape[:3])):
        scores = [
            (query[row, head, token].double() * key[row, head, other].double()).sum() / math.sqrt(query.shape[-1])
            + bias[row, head, token, other].double()
            for other in range(key.shape[2])
        ]
        high = max(scores)
        if high > -math.inf:
            powers = torch.stack([torch.exp(score - high) for score in scores])
            rows[row, head, token] = powers / powers.sum()
    return rows


@every_position
@every_attention
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_rows_equal_an_explicit_softmax(
    position: position_settings.Position, attention: attention_settings.Attention, dtype: torch.dtype
) -> None:
    model = encoder(position=position, attention=attention).to(dtype)
    packed = pack([sentence(4, 1), sentence(6, 2)], padding=2)
    queries = (torch.zeros(12, dtype=torch.long), torch.arange(12))
    with torch.no_grad():
        _, rows = model.forward_with_rows(packed, queries)
        for layer in range(2):
            wanted = explicit_weights(model, packed, layer)[0].transpose(0, 1)  # (Q, H, T)
            assert (rows[layer].double() - wanted).abs().max() < 1e-5
            whole = list(model.maps(packed))[layer][0].transpose(0, 1)
            assert (whole.double() - wanted).abs().max() < 1e-5


@every_position
@every_attention
def test_mixing_with_the_rows_gives_the_layers_own_output(
    position: position_settings.Position, attention: attention_settings.Attention
) -> None:
    model = encoder(position=position, attention=attention)
    layer = next(model.passes(pack([sentence(4, 1), sentence(6, 2)], padding=2)))
    by_hand = (layer.maps() @ layer.value).transpose(1, 2).flatten(2)
    torch.testing.assert_close(by_hand, layer.mixed)


@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: f"{norm.kind}-{norm.placement}")
def test_states_that_are_needed_are_those_of_the_whole_pass_and_the_others_zeros(norm: model_settings.Norm) -> None:
    model = encoder(norm=norm)
    batch, needed = pack([sentence(4, 1), sentence(6, 2)]), torch.tensor([1, 7])
    whole, some = model(batch)[0], model(batch, needed=needed)[0]
    torch.testing.assert_close(some[needed], whole[needed])
    assert some.abs().sum(dim=1).nonzero().flatten().tolist() == needed.tolist()


@every_position
@every_attention
@pytest.mark.parametrize("needed", [[1, 7, 8, 15], [21], [0, 1, 2, 3, 4, 5, 10, 11], []], ids=str)
def test_the_last_layer_mixes_for_the_needed_tokens_what_it_mixes_for_them_among_all(
    position: position_settings.Position, attention: attention_settings.Attention, needed: list[int]
) -> None:
    """Rows of a batch need different numbers of tokens, one of them none."""
    model, flat = encoder(position=position, attention=attention), torch.tensor(needed, dtype=torch.long)
    rows = [pack([sentence(4, 1), sentence(6, 2)]), pack([sentence(7, 3)], padding=3), pack([sentence(10, 4)])]
    batch = EncoderInput(
        *(torch.cat([getattr(row, name) for row in rows]) for name in ("ids", "positions", "segments"))
    )
    layer = next(model.passes(batch))
    some = layer.block.attention.mix_at(layer.query, layer.key, layer.value, layer.context, flat)
    torch.testing.assert_close(some, layer.mixed.flatten(0, 1)[flat])


@every_position
@every_attention
def test_a_row_of_one_whole_sentence_mixes_the_same_without_a_bias_of_zeros(
    position: position_settings.Position, attention: attention_settings.Attention
) -> None:
    model = encoder(position=position, attention=attention)
    context = model.make_context(pack([sentence(6)]))
    assert context.is_unbiased == (position.kind not in ("alibi", "t5_relative"))
    assert not model.make_context(pack([sentence(6)], padding=1)).is_unbiased
    assert not model.make_context(pack([sentence(3), sentence(3)])).is_unbiased
    block = model.layers[0]
    projected = block.project(context.embeddings, context)
    torch.testing.assert_close(
        block.attention.mix(*projected, context), block.attention.mix(*projected, replace(context, is_unbiased=False))
    )


@every_position
@every_attention
def test_rows_of_queries_in_any_order_and_number_are_those_of_the_map(
    position: position_settings.Position, attention: attention_settings.Attention
) -> None:
    model = encoder(position=position, attention=attention)
    one, other = pack([sentence(4, 1), sentence(6, 2)]), pack([sentence(7, 3), sentence(3, 4)])
    both = EncoderInput(
        torch.cat((one.ids, other.ids)),
        torch.cat((one.positions, other.positions)),
        torch.cat((one.segments, other.segments)),
    )
    queries = (torch.tensor([1, 0, 1, 1, 1]), torch.tensor([3, 5, 0, 7, 3]))
    with torch.no_grad():
        _, rows = model.forward_with_rows(both, queries)
        for layer, whole in enumerate(model.maps(both)):
            torch.testing.assert_close(rows[layer], whole[queries[0], :, queries[1]])


def test_rows_without_states_are_those_with_states() -> None:
    model, packed = encoder(), pack([sentence(4, 1), sentence(6, 2)])
    queries = (torch.tensor([0, 0]), torch.tensor([1, 7]))
    hidden, rows = model.forward_with_rows(packed, queries, needed=torch.tensor([], dtype=torch.long))
    assert hidden.abs().sum() == 0
    torch.testing.assert_close(rows, model.forward_with_rows(packed, queries)[1])


@every_position
def test_attending_over_the_identity_returns_the_weights(position: position_settings.Position) -> None:
    model = encoder(position=position)
    context = model.make_context(pack([sentence(4, 1), sentence(6, 2)], padding=2))
    query, key, _ = model.layers[0].project(context.embeddings, context)
    identity = torch.eye(12, dtype=torch.float64).expand(1, 2, 12, 12)
    torch.testing.assert_close(attend(query, key, identity, context.bias), attention_weights(query, key, context.bias))


def test_a_sentence_of_padding_attends_to_nothing() -> None:
    segments = torch.tensor([[0, 0, -1, -1], [-1, -1, -1, -1]])
    query = torch.randn(2, 1, 4, 8, generator=torch.Generator().manual_seed(0), requires_grad=True)
    weights = attention_weights(query, query, same_sentence_mask(segments))
    mixed = attend(query, query, query, same_sentence_mask(segments))
    assert (
        weights[0, 0, :2, :2].sum().item() == pytest.approx(2)
        and weights[0, 0, 2:].sum() == 0
        and weights[1].sum() == 0
    )
    assert mixed[1].abs().sum() == 0 and mixed[0, 0, 2:].abs().sum() == 0
    torch.autograd.backward(weights.sum() + mixed.square().sum())
    assert query.grad is not None and query.grad.isfinite().all()


@pytest.mark.parametrize("tokens", [5, 300])
def test_bfloat16_on_the_cpu_mixes_as_float32_does_at_every_length(tokens: int) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 2, tokens, 4, requires_grad=True) for _ in range(3))
    bias = torch.randn(2, 1, tokens, tokens)
    bias[0, 0, :, 3] = -torch.inf
    bias[1, 0, 2] = -torch.inf  # a query that may attend to nothing
    for added in (None, bias):
        exact = attend(query, key, value, added)
        rounded = attend(query.bfloat16(), key.bfloat16(), value.bfloat16(), added)
        torch.testing.assert_close(rounded.float(), exact, atol=0.03, rtol=0.03)
        exact_gradients = torch.autograd.grad(exact.square().sum(), (query, key, value))
        gradients = torch.autograd.grad(rounded.float().square().sum(), (query, key, value))
        for gradient, exact_gradient in zip(gradients, exact_gradients, strict=True):
            torch.testing.assert_close(gradient, exact_gradient, atol=0.1, rtol=0.1)
    assert torch.equal(rounded[1, :, 2], torch.zeros_like(rounded[1, :, 2]))


def test_bfloat16_on_the_cpu_drops_weights() -> None:
    torch.manual_seed(0)
    query, key = (torch.randn(1, 2, 6, 4).bfloat16() for _ in range(2))
    value = torch.eye(6).bfloat16().expand(1, 2, 6, 6)
    assert (attend(query, key, value, None) > 0).all()
    dropped = attend(query, key, value, None, dropout=0.5)
    assert 0.2 < (dropped == 0).float().mean() < 0.8


def test_rows_are_taken_before_dropout() -> None:
    model = encoder(attention=attention_settings.MultiHead(heads=2, dropout=0.9, head_dropout=0.9)).train()
    queries = (torch.zeros(6, dtype=torch.long), torch.arange(6))
    _, rows = model.forward_with_rows(pack([sentence(6)]), queries)
    torch.testing.assert_close(rows.sum(dim=-1), torch.ones_like(rows[..., 0]))


@pytest.mark.parametrize(("single", "whole"), [(0.5, 0.0), (0.0, 0.5)])
def test_dropout_acts_in_training_alone(single: float, whole: float) -> None:
    model = encoder(attention=attention_settings.MultiHead(heads=2, dropout=single, head_dropout=whole))
    packed = pack([sentence(6)])
    torch.testing.assert_close(model(packed), model(packed))
    model.train()
    assert not torch.equal(model(packed), model(packed))


def test_blocks_that_add_zeros_pass_the_embedding_through() -> None:
    model = encoder(norm=model_settings.LayerNorm(placement="pre"))
    for block in model.layers:
        for name, weight in block.named_parameters():
            if name.startswith(("attention.output", "feed_forward.narrow")):
                torch.nn.init.zeros_(weight)
    tokens = pack([sentence(6)])
    torch.testing.assert_close(model(tokens), model.norm(model.tokens(tokens.ids)))


def test_uniform_attention_weighs_every_token_of_the_sentence_alike() -> None:
    model = encoder(attention=attention_settings.Uniform(heads=2), position=position_settings.Alibi())
    weights = next(model.maps(pack([sentence(4, 1), sentence(5, 2)])))
    torch.testing.assert_close(weights[0, :, :4, :4], torch.full((2, 4, 4), 0.25, dtype=torch.float64))
    assert weights[0, :, :4, 4:].sum() == 0


@pytest.mark.parametrize(("values", "relays"), [("hidden", True), ("token", False)])
def test_token_values_let_nothing_pass_through_a_third_token(values: str, relays: bool) -> None:
    """Token 3 depends on token 0 only through tokens 1 and 2, whose rows may attend to any token."""
    model = encoder(values=values, layers=2)
    tokens = pack([sentence(4)])
    changed = tokens.ids.clone()
    changed[0, 0] = 5 + (tokens.ids[0, 0] - 4) % 40
    outputs = []
    for words in (tokens, replace(tokens, ids=changed)):
        context = model.make_context(words)
        first = model.make_context(tokens)  # queries and keys as if nothing had changed
        hidden = context.embeddings
        for block in model.layers:
            query, key, _ = block.project(first.embeddings, first)
            cut = context.mask.clone()
            cut[..., 3, 0] = -math.inf
            value = block.project(hidden, context)[2]
            mixed = attend(query, key, value, cut).transpose(1, 2).flatten(2)
            hidden = block.complete(hidden, mixed)
        outputs.append(hidden[0, 3])
    assert (not torch.allclose(outputs[0], outputs[1])) == relays


@pytest.mark.parametrize("norm", NORMS, ids=lambda norm: f"{norm.kind}-{norm.placement}")
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_values_turn_from_embeddings_into_hidden_states(norm: model_settings.Norm, share: float) -> None:
    model = encoder(layers=2, norm=norm)
    model.hidden_share = share
    context = model.make_context(pack([sentence(5)]))
    hidden = torch.randn_like(context.embeddings)
    block = model.layers[1]
    read, content = block.attention_inputs(hidden, context)
    mixture = (1 - share) * context.embeddings + share * hidden
    expected = block.attention_norm(mixture) if block.is_pre_norm else mixture
    torch.testing.assert_close(content, expected)
    torch.testing.assert_close(read, block.attention_norm(hidden) if block.is_pre_norm else hidden)
    assert (content is read) == (share == 1.0)  # then the block is the textbook's, to the last bit


def test_a_text_longer_than_learned_positions_is_refused() -> None:
    with pytest.raises(UserError, match=r"40 tokens .* model.position.max_length \(32\)"):
        encoder(position=position_settings.Learned(max_length=32))(pack([sentence(40)]))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"width": 15}, r"model.width \(15\) must be a multiple of model.attention.heads \(2\)"),
        ({"width": 6}, r"must be even"),
        ({"dropout": 1.0}, r"model.dropout \(1.0\)"),
        ({"layers": 0}, r"model.layers \(0\) must be at least 1"),
    ],
    ids=str,
)
def test_impossible_shapes_are_refused_in_the_users_words(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        shape(**changes)


def test_waves_are_added_to_embeddings_of_their_own_size() -> None:
    model = encoder(position=position_settings.Sinusoidal())
    tokens = pack([sentence(6)])
    waves = model.embed(tokens) - model.tokens(tokens.ids) * 4  # the square root of the width, 16
    angles = tokens.positions[0, :, None] * 10_000 ** (-torch.arange(8).double() / 8)
    torch.testing.assert_close(waves[0], torch.cat((angles.sin(), angles.cos()), dim=-1))
    plain = encoder(position=position_settings.Rotary())
    assert torch.equal(plain.token_embeddings(tokens.ids), plain.tokens(tokens.ids))


def test_heads_that_stay_are_scaled_to_the_sum_of_all_heads() -> None:
    attention = Attention(width=8, heads=4, head_dropout=0.5)
    torch.manual_seed(0)
    mixed = attention._drop_heads(torch.ones(200, 4, 3, 2))
    kept = (mixed[:, :, 0, 0] > 0).sum(dim=1)
    assert set(kept.tolist()) == {0, 1, 2, 3, 4}
    for count in range(1, 5):  # each of the k heads that stay by 4 / k
        values = mixed[kept == count]
        torch.testing.assert_close(values[values > 0], torch.full((int((values > 0).sum()),), 4 / count))
    torch.testing.assert_close(mixed.sum(dim=1)[kept > 0], torch.full((int((kept > 0).sum()), 3, 2), 4.0))
