from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from encoders import ATTENTIONS, NORMS, encoder, pack, sentence, shape
from numpy.typing import NDArray
from torch import Tensor
from torch.profiler import profile

from anaphora.analysis.maps.attribution import integrated_gradients, value_norms, value_zeroing, weighted_norms
from anaphora.analysis.maps.capture import capture
from anaphora.analysis.maps.kinds import MAP_GRANULARITY, candidates_to_pronoun, pronoun_maps, sentence_maps
from anaphora.analysis.maps.rollout_and_flow import flow_of_states, flow_of_tokens, rollout_of_states, rollout_of_tokens
from anaphora.analysis.scores.heads import score_records, strongest_candidates
from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example, Span
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.model.layers import LayerPass
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.model import attention as attention_settings
from anaphora.settings.model import encoder as model_settings
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.training import Batching

VALUES = ("hidden", "token")
PREDICTIONS = [
    prediction_settings.Word(),
    prediction_settings.Slot(slots=3),
    prediction_settings.Pointer(layer=-1, head=1),
    prediction_settings.Bilinear(),
]


def kind(value: object) -> str:
    return str(getattr(value, "kind", value))


every_attention = pytest.mark.parametrize("attention", ATTENTIONS, ids=kind)
either_values = pytest.mark.parametrize("values", VALUES)


def item(text: str, candidates: tuple[tuple[str, ...], ...], right: int, pronoun: str = "she") -> Example:
    """Return an example; each candidate is a tuple of mentions, whose words occur once in the text."""

    def span(words: str) -> Span:
        start = text.index(words)
        return (start, start + len(words))

    spans = tuple(tuple(span(mention) for mention in mentions) for mentions in candidates)
    return Example(text=text, language="en", pronoun=span(pronoun), candidates=spans, antecedents=(right,))


EXAMPLES = [
    item("anna met berta when she left", (("anna",), ("berta",)), 0),
    item("the old cat bit clara and she ran", (("old cat",), ("clara",)), 1),
    item("dora saw emma but this one slept", (("dora",), ("emma",)), 0, pronoun="this one"),
    item("berta or rather bea met clara so she left", (("berta", "bea"), ("clara",)), 1),
]
TOKENIZER = word_vocabulary([example.text for example in EXAMPLES], min_count=1)
DATA = EncodedSplit(EXAMPLES, TOKENIZER)
ROWS = Batching(tokens=64, row_tokens=32)


def pronoun_model(prediction: prediction_settings.Prediction | None = None, **changes: object) -> PronounModel:
    torch.manual_seed(0)
    return PronounModel(shape(**changes), prediction or prediction_settings.Word(), TOKENIZER.size).double().eval()


def working(padding: int = 2, **changes: object) -> Iterator[LayerPass]:
    """Yield the layers of a tiny encoder on two packed sentences of four and five tokens."""
    model = encoder(**changes)
    with torch.no_grad():
        yield from model.passes(pack([sentence(4, 1), sentence(5, 2)], padding))


def every_token(tokens: int) -> tuple[Tensor, Tensor]:
    return torch.zeros(tokens, dtype=torch.long), torch.arange(tokens)


def random_maps(layers: int, tokens: int) -> NDArray[np.float64]:
    return np.random.default_rng(layers * tokens).dirichlet(np.full(tokens, 0.4), size=(layers, tokens))


@every_attention
@either_values
def test_the_norm_is_that_of_the_vectors_written_out(attention: attention_settings.Attention, values: str) -> None:
    for layer in working(attention=attention, values=values):
        maps = layer.maps()[0]  # (H, T, T)
        heads, tokens, features = layer.value.shape[1:]
        vectors = torch.zeros(heads, tokens, tokens, heads, features, dtype=maps.dtype)  # one head's share at a time
        for head in range(heads):
            vectors[head, :, :, head] = maps[head].unsqueeze(-1) * layer.value[0, head]
        finish = layer.block.attention.finish
        wanted = (finish(vectors.flatten(3)) - finish(torch.zeros_like(vectors.flatten(3)))).norm(dim=-1)
        wanted[:, :9] /= wanted[:, :9].sum(dim=-1, keepdim=True)
        torch.testing.assert_close(weighted_norms(maps, value_norms(layer)[0].unsqueeze(1)), wanted)
        assert not wanted[:, 9:].any()  # padding attends to nothing


def peak_bytes(profiled: profile) -> int:
    """Return the peak memory, computed from the profiled allocations and releases in order."""
    profiler: Any = profiled.profiler
    events = [event for event in profiler.kineto_results.events() if event.name() == "[memory]"]
    return int(np.cumsum([event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]).max())


def test_the_norm_takes_less_than_twice_the_memory_of_the_weights() -> None:
    tokens = 512
    model = encoder(width=64, layers=1, attention=attention_settings.MultiHead(heads=4)).float()
    with torch.no_grad():
        (layer,) = model.passes(pack([sentence(tokens)]))
        with profile(profile_memory=True) as raw:
            layer.maps()
        with profile(profile_memory=True) as norm:
            weighted_norms(layer.maps(), value_norms(layer).unsqueeze(2))
        with profile(profile_memory=True) as vectors:
            torch.empty(tokens, tokens, 64)
    map_bytes = 4 * 4 * tokens * tokens
    assert peak_bytes(vectors) == 4 * 64 * tokens * tokens  # the measure sees what one head's vectors would take
    assert map_bytes <= peak_bytes(raw) <= 4 * map_bytes
    assert peak_bytes(norm) < 2 * peak_bytes(raw)


@every_attention
@pytest.mark.parametrize("norm", NORMS[:2], ids=lambda norm: norm.placement)
@either_values
def test_value_zeroing_is_what_zeroing_the_value_does(
    attention: attention_settings.Attention, norm: model_settings.Norm, values: str
) -> None:
    for layer in working(padding=0, attention=attention, norm=norm, values=values):
        wanted = torch.zeros(9, 9, dtype=torch.float64)
        for other in range(9):
            value = layer.value.clone()
            value[:, :, other] = 0
            mixed = layer.block.attention.mix(layer.query, layer.key, value, layer.context)
            less = layer.block.complete(layer.hidden, mixed)[0]
            wanted[:, other] = 1 - torch.cosine_similarity(less, layer.output()[0], dim=-1)
        assert (wanted[:4, 4:].abs() < 1e-12).all()  # another sentence
        assert wanted[:4, :4].max() > 1e-4
        shares = value_zeroing(layer, layer.maps()[0].transpose(0, 1), every_token(9))
        torch.testing.assert_close(shares, wanted / wanted.sum(dim=-1, keepdim=True))


def test_value_zeroing_does_not_depend_on_how_many_pairs_are_done_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    (layer, _) = working()
    whole = value_zeroing(layer, layer.maps()[0].transpose(0, 1), every_token(9))
    monkeypatch.setattr("anaphora.analysis.maps.attribution.PAIRS", 3)
    torch.testing.assert_close(value_zeroing(layer, layer.maps()[0].transpose(0, 1), every_token(9)), whole)


def test_rollout_is_the_product_of_the_layers() -> None:
    maps = random_maps(3, 4)
    halves = [(weights + np.eye(4)) / 2 for weights in maps]
    rolled_out = rollout_of_states(torch.from_numpy(maps)).numpy()
    np.testing.assert_allclose(rolled_out, [halves[0], halves[1] @ halves[0], halves[2] @ halves[1] @ halves[0]])


def test_rollout_of_tokens_halves_what_earlier_layers_brought() -> None:
    maps = random_maps(3, 4)
    own = torch.tensor([2, 0])
    rolled_out = rollout_of_tokens(torch.from_numpy(maps)[:, own], own).numpy()
    wanted = maps[0] / 8 + maps[1] / 4 + maps[2] / 2 + np.eye(4) / 8
    np.testing.assert_allclose(rolled_out[2], wanted[[2, 0]])
    np.testing.assert_allclose(rolled_out[0], (maps[0] + np.eye(4))[[2, 0]] / 2)


@pytest.mark.parametrize("values", VALUES)
def test_rollout_is_the_share_of_each_embedding_where_nothing_but_mixing_happens(values: str) -> None:
    """The reference is a network of only residual connections and head-averaged attention, applied to unit vectors."""
    maps = random_maps(4, 3)
    states = np.eye(3)
    for weights in maps:
        states = (states + weights @ (states if values == "hidden" else np.eye(3))) / 2
    tensor = torch.from_numpy(maps)
    rolled_out = rollout_of_states(tensor) if values == "hidden" else rollout_of_tokens(tensor, torch.arange(3))
    np.testing.assert_allclose(rolled_out[-1].numpy(), states)


def least_cut(edges: dict[tuple[str, str], float], source: str, sink: str) -> float:
    """Return the capacity of the minimum cut by exhaustive search, which equals the maximum flow."""
    inner = sorted({node for edge in edges for node in edge} - {source, sink})
    cuts = []
    for sides in itertools.product((False, True), repeat=len(inner)):
        near = {source, *(node for node, with_source in zip(inner, sides, strict=True) if with_source)}
        cuts.append(sum(capacity for (start, end), capacity in edges.items() if start in near and end not in near))
    return min(cuts)


def test_flow_is_the_least_cut_of_the_papers_graph() -> None:
    maps = random_maps(3, 3)
    edges = {
        (f"{layer + 1} {upper}", f"{layer} {lower}"): (maps[layer, upper, lower] + (upper == lower)) / 2
        for layer, upper, lower in itertools.product(range(3), repeat=3)
    }
    flow = flow_of_states(maps, 1)
    for layer in range(3):
        below = {edge: capacity for edge, capacity in edges.items() if int(edge[0][0]) <= layer + 1}
        cuts = np.array([least_cut(below, f"{layer + 1} 1", f"0 {other}") for other in range(3)])
        np.testing.assert_allclose(flow[layer], cuts / cuts.sum(), atol=1e-6)
    rolled = rollout_of_states(torch.from_numpy(maps))[2, 1].numpy()
    assert np.abs(flow[2] - rolled).max() > 1e-3  # shared edges make flow another thing than rollout


def test_flow_is_the_same_however_many_problems_are_solved_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = random_maps(5, 6)
    together = flow_of_states(maps, 2)
    two_of_the_fourth_layer = 2 * 2 * 6**2
    monkeypatch.setattr("anaphora.analysis.maps.rollout_and_flow._EDGES_AT_ONCE", two_of_the_fourth_layer)
    np.testing.assert_array_equal(flow_of_states(maps, 2), together)


def test_flow_of_tokens_is_the_least_cut_where_attention_leads_to_the_embeddings() -> None:
    maps = random_maps(4, 3)
    maps[3, 1] = (0.05, 0.9, 0.05)  # one layer above the half that the residual branch lets through
    maps[2, 1] = (0.02, 0.97, 0.01)
    flow = flow_of_tokens(torch.from_numpy(maps)[:, 1:2], torch.tensor([1])).numpy()
    for layer in range(4):
        edges = {
            (f"state {one + 1}", f"word {other}"): maps[one, 1, other] / 2
            for one in range(layer + 1)
            for other in range(3)
        }
        edges |= {(f"state {one + 1}", f"state {one}"): 0.5 for one in range(1, layer + 1)}
        edges["state 1", "word 1"] += 0.5  # the state below the first layer is the word itself
        cuts = np.array([least_cut(edges, f"state {layer + 1}", f"word {other}") for other in range(3)])
        np.testing.assert_allclose(flow[layer, 0], cuts / cuts.sum(), atol=1e-12)


@every_attention
@pytest.mark.parametrize("norm", NORMS[:2], ids=lambda norm: norm.placement)
@either_values
def test_every_map_gives_rows_that_can_be_scored(
    attention: attention_settings.Attention, norm: model_settings.Norm, values: str
) -> None:
    model = pronoun_model(attention=attention, norm=norm, values=values)
    heads = attention_settings.heads_of(attention)
    units = {"head": (2, heads), "layer": (2, 1), "model": (1, 1)}
    rows_by_map = pronoun_maps(model, DATA, ROWS)
    assert list(rows_by_map) == list(MAP_GRANULARITY)
    for name, rows in rows_by_map.items():
        assert (rows.granularity, rows.items, rows.skipped) == (MAP_GRANULARITY[name], [0, 1, 2, 3], 0)
        assert [record.example for record in rows.records] == EXAMPLES
        for record, tokens in zip(rows.records, DATA.tokens, strict=True):
            assert record.weights.shape == (*units[MAP_GRANULARITY[name]], len(tokens.ids))
            np.testing.assert_allclose(record.weights.sum(axis=2), 1, atol=1e-5)
        assert score_records(rows.records).shape == units[MAP_GRANULARITY[name]]
    for record, wanted in zip(rows_by_map["raw"].records, capture(model, DATA, ROWS).records, strict=True):
        np.testing.assert_allclose(record.weights, wanted.weights, atol=1e-6)


@either_values
@pytest.mark.parametrize("prediction", PREDICTIONS, ids=kind)
def test_packing_changes_no_map(values: str, prediction: prediction_settings.Prediction) -> None:
    model = pronoun_model(prediction, values=values)
    packed = pronoun_maps(model, DATA, ROWS)
    alone = pronoun_maps(model, DATA, Batching(kind="buckets", tokens=1, row_tokens=1))
    assert DATA.max_tokens() * 2 <= ROWS.row_tokens
    for name in MAP_GRANULARITY:
        for one, other in zip(packed[name].records, alone[name].records, strict=True):
            np.testing.assert_allclose(one.weights, other.weights, atol=1e-6, err_msg=name)


@either_values
def test_the_pronouns_rows_are_the_mean_over_its_tokens_of_the_whole_maps(values: str) -> None:
    model = pronoun_model(values=values)
    names = ("raw", "norm", "rollout", "value_zeroing")
    rows = pronoun_maps(model, DATA, ROWS, names)
    for number, example in enumerate(EXAMPLES):
        tokens, maps = sentence_maps(model, TOKENIZER, example)
        assert tuple(maps) == names
        own = tokens.covering(example.pronoun)
        assert len(own) == (2 if number == 2 else 1)
        for name in names:
            assert maps[name].shape == (
                2,
                1 if MAP_GRANULARITY[name] == "layer" else 2,
                len(tokens.ids),
                len(tokens.ids),
            )
            np.testing.assert_allclose(maps[name].sum(axis=3), 1, atol=1e-5)
            wanted = maps[name][:, :, own].mean(axis=2)
            np.testing.assert_allclose(rows[name].records[number].weights, wanted, atol=1e-6)


def test_flow_starts_at_each_of_the_pronouns_tokens() -> None:
    model = pronoun_model()
    (record,) = pronoun_maps(model, EncodedSplit(EXAMPLES[2:3], TOKENIZER), ROWS, ["flow"])["flow"].records
    tokens, maps = sentence_maps(model, TOKENIZER, EXAMPLES[2])
    flows = [flow_of_states(maps["raw"].mean(axis=1), own) for own in tokens.covering(EXAMPLES[2].pronoun)]
    np.testing.assert_allclose(record.weights[:, 0], np.mean(flows, axis=0), atol=1e-6)


@pytest.mark.parametrize(("values", "items"), [("hidden", [0]), ("token", [0, 1, 2, 3])])
def test_long_texts_have_no_flow_where_it_takes_a_solver_and_are_counted(
    values: str, items: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anaphora.analysis.maps.kinds.MAX_FLOW_TOKENS", 7)
    one_row = Batching(tokens=64, row_tokens=64)
    rows_by_map = pronoun_maps(pronoun_model(values=values), DATA, one_row, ["flow", "raw"])
    assert [len(tokens.ids) for tokens in DATA.tokens] == [7, 9, 8, 10]
    assert (rows_by_map["flow"].items, rows_by_map["flow"].skipped) == (items, 4 - len(items))
    assert [record.example for record in rows_by_map["flow"].records] == [EXAMPLES[place] for place in items]
    for record in rows_by_map["flow"].records:
        np.testing.assert_allclose(record.weights.sum(axis=2), 1, atol=1e-5)
    assert (len(rows_by_map["raw"].records), rows_by_map["raw"].skipped) == (4, 0)


@pytest.mark.parametrize("prediction", PREDICTIONS, ids=kind)
@either_values
def test_integrated_gradients_add_up_to_what_the_own_answer_gained(
    prediction: prediction_settings.Prediction, values: str
) -> None:
    # Narrow weights make a smooth path, on which so few points are exact.
    model = pronoun_model(prediction, values=values, initialisation=model_settings.Normal(deviation=0.2))
    batch = DATA.batch([[0, 2], [1, 3]], slots=prediction_settings.slots_of(prediction))
    gradients = integrated_gradients(model, batch, steps=64)
    with torch.no_grad():
        scores = model.prediction_head.scores(model(batch), batch)
        blank = replace(batch, inputs=torch.zeros_like(batch.inputs))
        base = model.prediction_head.scores(model(blank), batch)
    own = scores.argmax(dim=1)
    assert gradients.answers.tolist() == own.tolist()
    gained = (scores - base)[torch.arange(4), own]
    torch.testing.assert_close(gradients.difference, gained)
    totals = torch.stack([gradients.tokens[batch.segments == number].sum() for number in range(4)])
    torch.testing.assert_close(totals, gained, atol=1e-4, rtol=1e-3)
    gold = (scores - base)[torch.arange(4), batch.gold.long().argmax(dim=1)]
    wrong = own != batch.gold.long().argmax(dim=1)
    assert wrong.any()  # else own and gold could not be told apart
    assert ((totals - gold).abs() > 10 * (totals - gained).abs())[wrong].all()
    assert not gradients.tokens[batch.segments < 0].any()


def test_integrated_gradients_do_not_know_the_gold_answer() -> None:
    model = pronoun_model()
    batch = DATA.batch([[0, 1], [2, 3]])
    swapped = integrated_gradients(model, replace(batch, gold=batch.gold.flip(1)), steps=4)
    assert torch.equal(swapped.tokens, integrated_gradients(model, batch, steps=4).tokens)


def test_the_row_of_integrated_gradients_is_the_share_of_absolute_attribution() -> None:
    model = pronoun_model()
    attributed = integrated_gradients(model, DATA.batch([[3]])).tokens[0].abs()
    rows = pronoun_maps(model, DATA, ROWS, ["integrated_gradients"])
    wanted = (attributed / attributed.sum()).numpy()
    np.testing.assert_allclose(rows["integrated_gradients"].records[3].weights[0, 0], wanted, atol=1e-6)


def test_an_answer_of_none_of_them_is_attributed_too() -> None:
    prediction = prediction_settings.Bilinear(none_of_them=True)
    model = pronoun_model(prediction)
    batch = DATA.batch([[0], [1]])
    with torch.no_grad():
        vector = model(batch).hidden[batch.query_positions[0]]
        model.prediction_head.none.copy_(100 * model.prediction_head.pairs(vector))  # type: ignore[operator]
    gradients = integrated_gradients(model, batch, steps=64)
    assert gradients.answers[0] == -1
    assert float(gradients.tokens[0].sum() / gradients.difference[0]) == pytest.approx(1, abs=0.05)


def test_gradients_of_the_weights_are_left_alone() -> None:
    model = pronoun_model()
    integrated_gradients(model, DATA.batch([[0]]), steps=1)
    assert all(weight.grad is None and weight.requires_grad for weight in model.parameters())


def test_integrated_gradients_need_a_prediction_head_and_a_step() -> None:
    silent = pronoun_model(prediction_settings.NoPrediction())
    with pytest.raises(UserError, match="without a prediction head"):
        pronoun_maps(silent, DATA, ROWS, ["integrated_gradients"])
    assert len(pronoun_maps(silent, DATA, ROWS, ["norm", "flow"])) == 2
    with pytest.raises(UserError, match=r"steps \(0\) must be at least 1"):
        integrated_gradients(pronoun_model(), DATA.batch([[0]]), steps=0)


def test_an_unknown_map_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UserError, match=r"maps \('rolout'\) must be one of raw, norm, rollout, flow"):
        pronoun_maps(pronoun_model(), DATA, ROWS, ["raw", "rolout"])


@every_attention
def test_the_other_direction_is_the_mean_from_the_candidate_of_the_sum_to_the_pronoun(
    attention: attention_settings.Attention,
) -> None:
    model = pronoun_model(attention=attention)
    reverse = candidates_to_pronoun(model, DATA, ROWS)
    assert reverse.shape == (4, 2, attention_settings.heads_of(attention), 2)
    for number, example in enumerate(EXAMPLES):
        tokens, maps = sentence_maps(model, TOKENIZER, example)
        onto = maps["raw"][..., tokens.covering(example.pronoun)].sum(axis=3)
        for name, mentions in enumerate(example.candidates):
            own = [position for mention in mentions for position in tokens.covering(mention)]
            np.testing.assert_allclose(reverse[number, :, :, name], onto[:, :, own].mean(axis=2), atol=1e-6)


def test_the_other_direction_takes_the_place_of_a_candidates_mass() -> None:
    model = pronoun_model()
    reverse = candidates_to_pronoun(model, DATA, ROWS)
    scores = score_records(pronoun_maps(model, DATA, ROWS, ["raw"])["raw"].records)
    pointed = strongest_candidates(replace(scores, candidate_mass=reverse[scores.kept]))
    assert np.array_equal(pointed.argmax(axis=3), reverse.argmax(axis=3))
