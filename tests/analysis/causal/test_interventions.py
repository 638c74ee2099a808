from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from encoders import ATTENTIONS, NORMS, POSITIONS, encoder, pack, sentence, shape
from numpy.typing import NDArray
from torch import Tensor

from anaphora.analysis.causal.interventions import (
    ActivationRecorder,
    Intervention,
    intervene,
    knockout_edges,
    patch_rows,
    replace_head_outputs,
    uniform_weights,
    zero_edge_values,
)
from anaphora.analysis.causal.subjects import ABLATION_MODES, Edges, PackedSubject, Scores
from anaphora.analysis.results.scores import Head
from anaphora.analysis.scores.quads import next_in_minimal_pair
from anaphora.base.batch import EncoderInput
from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.model.encoder import Encoder
from anaphora.model.layers import Block
from anaphora.model.mixer import AttentionContext, Edit
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.model import position as position_settings
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.training import Batching

ROW = pack([sentence(5, 1), sentence(6, 2)], padding=2)
PACKED = EncoderInput(
    *(torch.cat((part, part)) for part in (ROW.ids, ROW.positions, ROW.segments))
)  # two rows of 13 tokens
LENGTH = 13
QUERY, KEY = torch.tensor([LENGTH + 7]), torch.tensor([LENGTH + 9])  # in the second sentence of the second row
EDGE = (1, 7, 9)
VARIANTS = [
    *({"attention": attention, "values": values} for attention in ATTENTIONS for values in ("hidden", "token")),
    *({"position": position} for position in POSITIONS),
    *({"norm": norm} for norm in NORMS),
]
every_variant = pytest.mark.parametrize(
    "changes", VARIANTS, ids=lambda changes: "-".join(str(getattr(one, "kind", one)) for one in changes.values())
)


def recorded(model: Encoder, *interventions: Intervention) -> list[ActivationRecorder]:
    """Return the weights and mixed values of both layers, recorded during a forward pass."""
    recorders = {0: ActivationRecorder(), 1: ActivationRecorder()}
    with torch.no_grad(), intervene(model, *interventions, recorders):
        model(PACKED)
    return list(recorders.values())


def touched(new: Tensor, old: Tensor) -> list[list[int]]:
    """Return the indices at which two tensors differ in any bit."""
    return (new != old).nonzero().tolist()


@every_variant
def test_an_edit_that_changes_nothing_changes_nothing(changes: dict[str, object]) -> None:
    model = encoder(**changes)
    plain = model(PACKED)
    with intervene(model, {0: Edit(), 1: Edit()}):
        torch.testing.assert_close(model(PACKED), plain)


@every_variant
def test_a_cut_edge_gives_its_weight_to_the_rest_of_its_row_and_changes_no_other(changes: dict[str, object]) -> None:
    model = encoder(**changes)
    plain, cut = recorded(model), recorded(model, knockout_edges({Head(0, 0): (QUERY, KEY)}))
    old, new = plain[0].recorded_weights, cut[0].recorded_weights
    row, query, key = EDGE
    assert new[row, 0, query, key] == 0 < old[row, 0, query, key]
    wanted = old[row, 0, query].clone()
    wanted[key] = 0
    torch.testing.assert_close(new[row, 0, query], wanted / wanted.sum())
    assert {(row, head, query) for row, head, query, _ in touched(new, old)} == {(row, 0, query)}
    assert {(row, head, query) for row, head, query, _ in touched(cut[0].recorded_mixed, plain[0].recorded_mixed)} == {
        (row, 0, query)
    }


@every_variant
def test_a_dropped_value_leaves_every_other_weight_as_it_was(changes: dict[str, object]) -> None:
    model = encoder(**changes)
    plain, dropped = recorded(model), recorded(model, zero_edge_values({Head(0, 0): (QUERY, KEY)}))
    row, query, key = EDGE
    assert touched(dropped[0].recorded_weights, plain[0].recorded_weights) == [[row, 0, query, key]]
    assert dropped[0].recorded_weights[row, 0, query, key] == 0
    value = next(model.passes(PACKED)).value
    taken = plain[0].recorded_weights[row, 0, query, key] * value[row, 0, key]
    torch.testing.assert_close(
        dropped[0].recorded_mixed[row, 0, query], plain[0].recorded_mixed[row, 0, query] - taken, atol=1e-12, rtol=1e-9
    )


def test_the_first_edited_layer_is_the_first_that_changes() -> None:
    model = encoder()
    plain, cut = recorded(model), recorded(model, knockout_edges({Head(1, 1): (QUERY, KEY)}))
    assert torch.equal(cut[0].recorded_mixed, plain[0].recorded_mixed)
    assert {tuple(index[:3]) for index in touched(cut[1].recorded_weights, plain[1].recorded_weights)} == {(1, 1, 7)}


def test_one_call_cuts_other_edges_in_every_head() -> None:
    model = encoder()
    edges = {
        Head(0, 0): (QUERY, KEY),
        Head(0, 1): (torch.tensor([1, 1]), torch.tensor([2, 3])),
        Head(1, 0): (torch.tensor([4]), torch.tensor([0])),
    }
    layers = recorded(model, knockout_edges(edges))
    zeros = [(layer.recorded_weights[:, :, :11, :11] == 0) & (recorded(model)[0].recorded_weights[..., :11, :11] > 0)
             for layer in layers]  # fmt: skip
    assert zeros[0].nonzero().tolist() == [[0, 1, 1, 2], [0, 1, 1, 3], [1, 0, 7, 9]]
    assert zeros[1].nonzero().tolist() == [[0, 0, 4, 0]]


def test_a_row_of_which_nothing_is_left_becomes_zeros() -> None:
    model = encoder()
    keys = torch.arange(5)
    layer = recorded(model, knockout_edges({Head(0, 1): (torch.full_like(keys, 2), keys)}))[0]
    assert not layer.recorded_weights[0, 1, 2].any()
    assert not layer.recorded_mixed[0, 1, 2].any()
    assert layer.recorded_weights.isfinite().all()
    torch.testing.assert_close(layer.recorded_weights[0, 0, :11].sum(dim=-1), torch.ones(11, dtype=torch.float64))


@every_variant
def test_replaced_outputs_are_those_of_the_named_heads_alone(changes: dict[str, object]) -> None:
    model = encoder(**changes)
    plain = recorded(model)
    heads, features = plain[0].recorded_mixed.shape[1], plain[0].recorded_mixed.shape[3]
    output = torch.arange(features, dtype=torch.float64)
    changed = recorded(model, replace_head_outputs({Head(0, heads - 1): output, Head(1, 0): torch.zeros(())}))
    assert torch.equal(changed[0].recorded_weights, plain[0].recorded_weights)
    assert torch.equal(changed[0].recorded_mixed[:, : heads - 1], plain[0].recorded_mixed[:, : heads - 1])
    assert torch.equal(changed[0].recorded_mixed[:, heads - 1], output.expand(2, LENGTH, features))
    assert not changed[1].recorded_mixed[:, 0].any() and plain[1].recorded_mixed[:, 0].any()


@pytest.mark.parametrize("position", POSITIONS, ids=lambda position: position.kind)
def test_a_uniform_head_attends_alike_to_its_sentence_whatever_the_positions(
    position: position_settings.Position,
) -> None:
    model = encoder(position=position)
    plain, even = recorded(model), recorded(model, uniform_weights([Head(0, 1)]))
    weights = even[0].recorded_weights
    torch.testing.assert_close(weights[0, 1, :5, :5], torch.full((5, 5), 0.2, dtype=torch.float64))
    torch.testing.assert_close(weights[1, 1, 5:11, 5:11], torch.full((6, 6), 1 / 6, dtype=torch.float64))
    assert weights[:, 1].sum() == pytest.approx(22)  # nothing reaches another sentence or padding
    assert torch.equal(weights[:, 0], plain[0].recorded_weights[:, 0])


def test_given_rows_take_the_place_of_the_named_queries_rows() -> None:
    model = encoder()
    rows = torch.zeros(2, LENGTH, dtype=torch.float64)
    rows[0, 3] = rows[1, 8] = 1
    plain, changed = recorded(model), recorded(model, patch_rows({Head(0, 1): (torch.tensor([1, LENGTH + 6]), rows)}))
    new, old = changed[0].recorded_weights, plain[0].recorded_weights
    assert torch.equal(new[0, 1, 1], rows[0]) and torch.equal(new[1, 1, 6], rows[1])
    assert {tuple(index[:3]) for index in touched(new, old)} == {(0, 1, 1), (1, 1, 6)}


def test_captured_rows_are_the_edited_ones() -> None:
    model = encoder()
    queries = (torch.tensor([1, 1]), torch.tensor([7, 8]))
    with torch.no_grad(), intervene(model, knockout_edges({Head(0, 0): (QUERY, KEY)})):
        states, rows = model.forward_with_rows(PACKED, queries)
        maps = list(model.maps(PACKED))
        torch.testing.assert_close(states, model(PACKED))
    assert rows[0, 0, 0, 9] == 0
    for layer in (0, 1):
        torch.testing.assert_close(rows[layer], maps[layer][queries[0], :, queries[1]])


class ProjectionChange(Edit):
    """Intervention that applies three functions to queries, keys and values."""

    def __init__(self, *changes: Callable[[Tensor], Tensor]) -> None:
        self.changes = changes

    def projected(
        self, query: Tensor, key: Tensor, value: Tensor, context: AttentionContext
    ) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = (change(part) for change, part in zip(self.changes, (query, key, value), strict=True))
        return query, key, value


def unchanged(part: Tensor) -> Tensor:
    return part


def twice(part: Tensor) -> Tensor:
    return 2 * part


@every_variant
def test_edited_values_are_what_is_mixed_with_weights_as_they_were(changes: dict[str, object]) -> None:
    model = encoder(**changes)
    plain, edited = recorded(model), recorded(model, {0: ProjectionChange(unchanged, unchanged, twice)})
    assert torch.equal(edited[0].recorded_weights, plain[0].recorded_weights)
    torch.testing.assert_close(edited[0].recorded_mixed, 2 * plain[0].recorded_mixed)


@pytest.mark.parametrize("position", POSITIONS[:4], ids=lambda position: position.kind)
def test_edited_keys_are_what_maps_and_rows_are_made_of_positions_applied(position: position_settings.Position) -> None:
    model = encoder(position=position)
    queries = (torch.tensor([0, 1]), torch.tensor([2, 7]))
    with torch.no_grad(), intervene(model, {0: ProjectionChange(unchanged, torch.zeros_like, unchanged)}):
        maps = next(model.maps(PACKED))
        rows = model.forward_with_rows(PACKED, queries)[1][0]
    torch.testing.assert_close(maps[0, :, :5, :5], torch.full((2, 5, 5), 0.2, dtype=torch.float64))
    torch.testing.assert_close(rows, maps[queries[0], :, queries[1]])


def test_edits_of_projections_act_in_the_order_given() -> None:
    model = encoder()
    double, add = ProjectionChange(twice, twice, twice), ProjectionChange(*[lambda part: part + 1] * 3)
    plain = next(model.passes(PACKED))
    with intervene(model, {0: double}, {0: add}):
        edited = next(model.passes(PACKED))
    for name in ("query", "key", "value"):
        torch.testing.assert_close(getattr(edited, name), 2 * getattr(plain, name) + 1)


def test_interventions_compose_in_one_block_or_in_nested_ones() -> None:
    model = encoder()
    cut, even = knockout_edges({Head(0, 1): (QUERY, KEY)}), uniform_weights([Head(0, 1)])
    silent = replace_head_outputs({Head(1, 0): torch.zeros(())})
    together = recorded(model, cut, even, silent)
    with intervene(model, cut), intervene(model, even):
        nested = recorded(model, silent)
    wanted = torch.full((6,), 0.2, dtype=torch.float64)
    wanted[4] = 0
    torch.testing.assert_close(together[0].recorded_weights[1, 1, 7, 5:11], wanted)
    for one, other in zip(together, nested, strict=True):
        assert torch.equal(one.recorded_weights, other.recorded_weights)
        assert torch.equal(one.recorded_mixed, other.recorded_mixed)
    assert not together[1].recorded_mixed[:, 0].any()


@every_variant
def test_the_model_is_untouched_afterwards_also_when_something_fails(changes: dict[str, object]) -> None:
    model = encoder(**changes)
    before = model(PACKED)
    with intervene(model, uniform_weights([Head(0, 0)]), knockout_edges({Head(1, 0): (QUERY, KEY)})):
        model(PACKED)
    assert torch.equal(model(PACKED), before)
    with pytest.raises(RuntimeError, match="halt"), intervene(model, zero_edge_values({Head(0, 0): (QUERY, KEY)})):  # noqa: PT012
        assert not torch.equal(model(PACKED), before)
        raise RuntimeError("halt")
    assert torch.equal(model(PACKED), before)
    assert all(block.attention.edits == () for block in model.blocks if isinstance(block, Block))


def test_an_inner_block_leaves_the_outer_one_in_force() -> None:
    model = encoder()
    with intervene(model, uniform_weights([Head(0, 0)])):
        outer = model(PACKED)
        with intervene(model, uniform_weights([Head(0, 1)])):
            assert not torch.equal(model(PACKED), outer)
        assert torch.equal(model(PACKED), outer)


@pytest.mark.parametrize(
    ("intervention", "message"),
    [
        (uniform_weights([Head(2, 0)]), r"layer 2, heads \[0\] are not all among the 2 layers of 2 heads"),
        (uniform_weights([Head(0, 2)]), r"layer 0, heads \[2\]"),
        (uniform_weights([Head(0, -1)]), r"layer 0, heads \[-1\]"),
        (knockout_edges({Head(0, 0): (torch.tensor([1]), torch.tensor([LENGTH]))}), "an edge joins two rows"),
        (
            knockout_edges({Head(0, 0): (torch.tensor([26]), torch.tensor([25]))}),
            "positions from 26 to 26; expected 0 to",
        ),
    ],
)
def test_what_is_not_there_is_refused_and_nothing_stays_behind(intervention: Intervention, message: str) -> None:
    model = encoder()
    before = model(PACKED)
    with pytest.raises(UserError, match=message), intervene(model, {0: Edit()}, intervention):
        model(PACKED)
    assert torch.equal(model(PACKED), before)


def item(text: str, pronoun: str, first: str, second: str, minimal_pair: str = "", right: int = 0) -> Example:
    def span(word: str) -> tuple[int, int]:
        return (text.index(word), text.index(word) + len(word))

    return Example(
        text=text,
        language="en",
        pronoun=span(pronoun),
        candidates=((span(first),), (span(second),)),
        antecedents=(right,),
        minimal_pair=minimal_pair,
    )


EXAMPLES = [
    item("Anna met Tom before she left", "she", "Anna", "Tom", "a"),
    item("Anna met Tom before he left", " he ", "Anna", "Tom", "a", 1),
    item("the old man who saw Mary said that he was ill", " he ", "man", "Mary"),
    item("Tom saw Anna when he ran", " he ", "Tom", "Anna", "b"),
    item("Mary saw Peter long before she ran", "she", "Mary", "Peter"),
]
PREDICTIONS = [
    prediction_settings.Word(),
    prediction_settings.Slot(slots=2),
    prediction_settings.Pointer(layer=1, head=0),
    prediction_settings.Bilinear(),
]
PRONOUNS = (5, 5, 9, 5, 6)


def subject(
    examples: list[Example], prediction: prediction_settings.Prediction | None = None, **changes: object
) -> PackedSubject:
    tokenizer = word_vocabulary([example.text for example in EXAMPLES], min_count=1)
    torch.manual_seed(0)
    answer = prediction or prediction_settings.Word()
    model = PronounModel(shape(**changes), answer, tokenizer.size).double().eval()
    return PackedSubject(model, EncodedSplit(examples, tokenizer), Batching(tokens=48, row_tokens=24))


def edges(*listed: tuple[int, int, int, int, int]) -> Edges:
    return Edges(*np.array(listed).T)


def moved(new: Scores, old: Scores) -> NDArray[np.bool_]:
    """Return a mask of the items whose scores differ by more than rounding errors."""
    both: NDArray[np.bool_] = np.abs(new[:, :2] - old[:, :2]).max(axis=1) > 1e-5
    return both


CUTS = edges((0, 0, 1, 5, 1), (0, 1, 0, 5, 3), (2, 0, 0, 9, 3), (4, 0, 0, 6, 1), (4, 1, 1, 6, 3))


@pytest.mark.parametrize("prediction", PREDICTIONS, ids=lambda prediction: prediction.kind)
@pytest.mark.parametrize("values", ["hidden", "token"])
def test_each_item_is_changed_as_if_it_stood_alone(prediction: prediction_settings.Prediction, values: str) -> None:
    whole = subject(EXAMPLES, prediction, values=values)
    before = whole.scores()
    rows = {1: np.random.default_rng(0).dirichlet(np.ones(7), size=(2, 2, 1)).astype(np.float32)}
    cut, dropped, patched = (
        whole.knocked_out(CUTS),
        whole.value_zeroed(CUTS),
        whole.patched([Head(0, 0), Head(1, 0)], rows),
    )
    np.testing.assert_array_equal(whole.scores(), before)
    for number, example in enumerate(EXAMPLES):
        alone = subject([example], prediction, values=values)
        mine = Edges(*(column[CUTS.item == number] for column in CUTS))._replace(
            item=np.zeros((CUTS.item == number).sum(), dtype=np.int64)
        )
        np.testing.assert_allclose(before[number], alone.scores()[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(cut[number], alone.knocked_out(mine)[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(dropped[number], alone.value_zeroed(mine)[0], rtol=1e-4, atol=1e-5)
        if number in rows:
            single = alone.patched([Head(0, 0), Head(1, 0)], {0: rows[number]})
            np.testing.assert_allclose(patched[number], single[0], rtol=1e-4, atol=1e-5)
    assert moved(cut, before).tolist() == [True, False, True, False, True]
    assert moved(dropped, before).tolist() == [True, False, True, False, True]
    assert moved(patched, before).tolist() == [False, True, False, False, False]


def test_maps_are_each_items_own_and_patching_a_row_with_itself_changes_nothing() -> None:
    whole = subject(EXAMPLES)
    maps = dict(whole.maps())
    assert sorted(maps) == [0, 1, 2, 3, 4]
    for number, attention in maps.items():
        assert attention.shape == (2, 2, *[len(whole.tokens[number].ids)] * 2)
        np.testing.assert_allclose(attention.sum(axis=-1), 1, rtol=1e-5)
    rows = {number: maps[number][:, :, [pronoun]] for number, pronoun in enumerate(PRONOUNS)}
    every = [Head(layer, head) for layer in (0, 1) for head in (0, 1)]
    np.testing.assert_allclose(whole.patched(every, rows), whole.scores(), rtol=1e-4)
    rows[3] = rows[3][..., ::-1].copy()
    assert moved(whole.patched(every, rows), whole.scores()).tolist() == [False, False, False, True, False]


def test_a_head_ablated_at_its_mean_puts_out_the_mean_over_all_real_tokens() -> None:
    whole = subject(EXAMPLES)
    layers = whole._model.encoder
    outputs = []
    for example in EXAMPLES:
        alone = subject([example])
        batch = alone._batches[0]
        recorder = ActivationRecorder()
        with torch.no_grad(), intervene(layers, {1: recorder}):
            layers(whole._model.encoder_input(batch))
        outputs.append(recorder.recorded_mixed[0, 1])
    mean = torch.cat(outputs).mean(dim=0)
    batch = whole._batches[0]
    with torch.no_grad(), intervene(layers, replace_head_outputs({Head(1, 1): mean})):
        wanted = whole._model.prediction_head.scores(whole._model(batch), batch).numpy()
    np.testing.assert_allclose(whole.ablated([Head(1, 1)], "mean")[batch.items], wanted, rtol=1e-4)
    assert moved(whole.ablated([Head(1, 1)], "zero"), whole.ablated([Head(1, 1)], "mean")).all()


@pytest.mark.parametrize("mode", ABLATION_MODES)
def test_a_ablated_head_changes_the_answers_and_not_the_model(mode: str) -> None:
    whole = subject(EXAMPLES)
    before = whole.scores()
    assert moved(whole.ablated([Head(0, 0), Head(1, 1)], mode), before).all()
    np.testing.assert_array_equal(whole.scores(), before)


def test_resampled_outputs_come_from_the_minimal_pair_of_the_same_length() -> None:
    same = subject([EXAMPLES[0], EXAMPLES[3], EXAMPLES[0]])  # the twin of the first is a copy of it
    changed = same.ablated([Head(0, 0), Head(1, 0)], "resample")
    np.testing.assert_allclose(changed[[0, 2]], same.scores()[[0, 2]], rtol=1e-4)
    assert moved(changed, same.scores()).tolist() == [False, True, False]


def test_an_unknown_mode_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UserError, match=r"mode \('half'\) must be one of zero, mean, resample, uniform"):
        subject(EXAMPLES).ablated([Head(0, 0)], "half")


def test_minimal_pairs_follow_one_another_in_a_ring() -> None:
    listed = [EXAMPLES[0], EXAMPLES[2], EXAMPLES[1], EXAMPLES[3], EXAMPLES[0]]
    assert next_in_minimal_pair(listed) == {0: 2, 2: 4, 4: 0}


def test_no_weight_reaches_a_forbidden_token_through_an_edit() -> None:
    model = encoder()
    layer = recorded(model, uniform_weights([Head(0, 0), Head(0, 1)]))[0]
    other = model.make_context(PACKED).mask.expand(2, 2, LENGTH, LENGTH) == -math.inf
    assert not layer.recorded_weights[other].any()
