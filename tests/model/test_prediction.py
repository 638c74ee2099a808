from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from encoders import shape
from torch import Tensor, nn

from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.example import Example
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.model import prediction as prediction
from anaphora.model.prediction import EncoderOutput, candidate_masses
from anaphora.model.pronoun_model import PronounModel
from anaphora.settings.model import prediction as prediction_settings
from anaphora.settings.training import Supervision, Task
from anaphora.settings.vocabulary import CLS, NONE
from anaphora.training.losses import losses, supervision_loss

WIDTH = 4


def item(text: str, candidates: tuple[tuple[str, ...], ...], right: tuple[int, ...]) -> Example:
    candidate_spans, after = [], 0
    for mentions in candidates:
        spans = []
        for mention in mentions:
            start = text.index(mention, after)
            spans.append((start, start + len(mention)))
            after = start + len(mention)
        after = 0
        candidate_spans.append(tuple(spans))
    start = text.index("she")
    return Example(
        text=text, language="en", pronoun=(start, start + 3), candidates=tuple(candidate_spans), antecedents=right
    )


EXAMPLES = [
    item("anna met berta when she left", (("anna",), ("berta",)), (0,)),
    item("the old cat bit clara and she ran", (("old cat",), ("clara",)), (0,)),
    item("dora saw emma but she slept", (("dora",), ("emma",)), ()),
]
TOKENIZER = word_vocabulary([one.text for one in EXAMPLES], min_count=1)
VOCABULARY = TOKENIZER.size
DATA = EncodedSplit(EXAMPLES, TOKENIZER)
BATCH = DATA.batch([[0, 2], [1]], slots=3)  # items 0, 2, 1 in this order
LABELLED = DATA.batch([[0, 1]], slots=3)


def random_hidden(batch: Batch = BATCH) -> Tensor:
    return torch.randn(batch.ids.numel(), WIDTH, generator=torch.Generator().manual_seed(1))


def position_of(item_number: int, word: str, batch: Batch = BATCH) -> int:
    """Return the flat position of a word of an item in the batch."""
    number = TOKENIZER.encode(word).ids[1]
    (position,) = torch.nonzero((batch.ids.flatten() == number) & (batch.segments.flatten() == item_number)).flatten()
    return int(position)


def output_of(hidden: Tensor, rows: Tensor | None = None) -> EncoderOutput:
    return EncoderOutput(hidden=hidden, rows=rows)


def test_the_word_scores_are_log_probabilities_over_the_vocabulary() -> None:
    torch.manual_seed(0)
    output = nn.Linear(WIDTH, VOCABULARY)
    hidden = random_hidden()
    scores = prediction.Word(output, none_of_them=True).scores(output_of(hidden), BATCH)
    for row, (words, query) in enumerate([(("anna", "berta"), 0), (("dora", "emma"), 1)]):
        logits = output(hidden[position_of(query, "she")]).log_softmax(0)
        wanted = [logits[TOKENIZER.encode(word).ids[1]] for word in words] + [logits[NONE]]
        torch.testing.assert_close(scores[row], torch.stack(wanted))
    logits = output(hidden[position_of(2, "she")]).log_softmax(0)
    old, cat = (logits[TOKENIZER.encode(word).ids[1]] for word in ("old", "cat"))
    torch.testing.assert_close(scores[2, 0], (old + cat) / 2)


def test_the_word_loss_is_that_of_the_right_word_over_the_whole_vocabulary() -> None:
    torch.manual_seed(0)
    output = nn.Linear(WIDTH, VOCABULARY)
    hidden = random_hidden()
    word = prediction.Word(output, none_of_them=True)
    loss = word.loss(word.scores(output_of(hidden), BATCH), BATCH)
    anna = -output(hidden[position_of(0, "she")]).log_softmax(0)[TOKENIZER.encode("anna").ids[1]]
    none = -output(hidden[position_of(1, "she")]).log_softmax(0)[NONE]
    torch.testing.assert_close(loss[:2], torch.stack((anna, none)))


def test_two_right_words_share_the_word_loss() -> None:
    torch.manual_seed(0)
    output = nn.Linear(WIDTH, VOCABULARY)
    hidden = random_hidden()
    both = replace(BATCH, gold=torch.tensor([[True, True], [False, False], [True, False]]))
    word = prediction.Word(output, none_of_them=True)
    scores = word.scores(output_of(hidden), both)
    torch.testing.assert_close(word.loss(scores, both)[0], -scores[0, :2].mean())


def test_the_slot_scores_are_the_logits_of_the_candidates_slots() -> None:
    torch.manual_seed(0)
    slot = prediction.Slot(WIDTH, slots=3, none_of_them=True)
    swapped = replace(BATCH, candidate_slots=torch.tensor([[3, 1], [2, 1], [1, 2]]))
    hidden = random_hidden()
    scores = slot.scores(output_of(hidden), swapped)
    logits = slot.output(hidden[position_of(0, "she")])
    torch.testing.assert_close(scores[0], logits[[3, 1, 0]])
    wanted = scores[0].logsumexp(0) - scores[0, 0]
    torch.testing.assert_close(slot.loss(scores, swapped)[0], wanted)


def test_slot_marks_stand_on_candidates_alone() -> None:
    slot = prediction.Slot(WIDTH, slots=3, none_of_them=False)
    marks = slot.marks(BATCH.slots)
    assert not marks[BATCH.slots == 0].any()
    assert torch.equal(marks[BATCH.slots == 2], slot.table.weight[2].expand_as(marks[BATCH.slots == 2]))


def test_the_bilinear_scores_are_pairs_of_pronoun_and_candidate() -> None:
    torch.manual_seed(0)
    pairs = prediction.Bilinear(WIDTH, none_of_them=True)
    nn.init.normal_(pairs.none)
    hidden = random_hidden()
    scores = pairs.scores(output_of(hidden), BATCH)
    query = pairs.pairs.weight @ hidden[position_of(2, "she")] / math.sqrt(WIDTH)
    cat = (hidden[position_of(2, "old")] + hidden[position_of(2, "cat")]) / 2
    wanted = torch.stack((query @ cat, query @ hidden[position_of(2, "clara")], query @ pairs.none))
    torch.testing.assert_close(scores[2], wanted)


def attention_rows(batch: Batch = BATCH) -> Tensor:
    """Return random rows that sum to 1 within each query's sentence, (L, K, H, T)."""
    length = batch.ids.shape[1]
    rows = torch.rand(2, len(batch.query_positions), 2, length, generator=torch.Generator().manual_seed(2))
    row = batch.query_positions // length
    own = batch.segments[row] == batch.segments.flatten()[batch.query_positions].unsqueeze(1)
    rows = rows * own[None, :, None]
    return rows / rows.sum(dim=-1, keepdim=True)


def test_the_answer_of_the_pointer_is_the_row() -> None:
    rows = attention_rows()
    length = BATCH.ids.shape[1]
    pointer = prediction.Pointer(layer=-1, head=1, none_of_them=True)
    scores = pointer.scores(output_of(random_hidden(), rows), BATCH)
    for row, words in enumerate([(("anna",), ("berta",)), (("dora",), ("emma",)), (("old", "cat"), ("clara",))]):
        weights = rows[1, row, 1]
        (opening,) = torch.nonzero((BATCH.ids.flatten() == CLS) & (BATCH.segments.flatten() == row)).flatten()
        wanted = [sum(weights[position_of(row, word) % length] for word in each) for each in words]
        wanted.append(weights[int(opening) % length])
        torch.testing.assert_close(scores[row].exp(), torch.stack([torch.as_tensor(one) for one in wanted]))
    assert torch.equal(scores[:, :2].argmax(1), candidate_masses(rows[1], BATCH)[:, 1].argmax(1))
    loss = pointer.loss(scores, BATCH)
    torch.testing.assert_close(loss, -torch.stack((scores[0, 0], scores[1, 2], scores[2, 0])))


def test_repeated_mentions_are_summed_and_a_pronoun_of_two_tokens_is_averaged() -> None:
    twice = item("anna met berta and anna when she left", (("anna", "anna"), ("berta",)), (0,))
    batch = EncodedSplit([twice], TOKENIZER).batch([[0]])
    batch = replace(batch, query_positions=torch.tensor([7, 6]), query_items=torch.tensor([0, 0]))
    rows = torch.rand(1, 2, 1, batch.ids.shape[1])
    masses = candidate_masses(rows[0], batch)
    mean = rows[0].mean(0)[0]
    torch.testing.assert_close(masses[0, 0], torch.stack((mean[1] + mean[5], mean[3])))


@pytest.mark.parametrize("variant", ["word", "slot", "bilinear", "pointer"])
@pytest.mark.parametrize("none_of_them", [True, False])
def test_none_of_them_can_be_answered_only_where_it_is_allowed(variant: str, none_of_them: bool) -> None:
    one = {
        "word": prediction.Word(nn.Linear(WIDTH, VOCABULARY), none_of_them),
        "slot": prediction.Slot(WIDTH, 3, none_of_them),
        "bilinear": prediction.Bilinear(WIDTH, none_of_them),
        "pointer": prediction.Pointer(0, 0, none_of_them),
    }[variant]
    scores = one.scores(output_of(random_hidden(), attention_rows()), BATCH)
    assert scores.shape == (3, 3)
    assert bool(torch.isinf(scores[:, 2]).all()) != none_of_them
    if none_of_them:
        assert torch.isfinite(one.loss(scores, BATCH)).all()


def test_absent_candidates_are_never_the_answer() -> None:
    fewer = replace(BATCH, present=torch.tensor([[True, False], [True, True], [True, True]]))
    for one in (prediction.Slot(WIDTH, 3, False), prediction.Bilinear(WIDTH, False)):
        assert one.scores(output_of(random_hidden()), fewer)[0, 1] == -math.inf


def test_without_a_prediction_head_there_is_no_answer() -> None:
    with pytest.raises(UserError, match="it answers nothing"):
        prediction.PredictionHead().scores(output_of(random_hidden()), BATCH)


def pronoun_model(chosen: prediction_settings.Prediction, **changes: object) -> PronounModel:
    torch.manual_seed(0)
    return PronounModel(shape(**changes), chosen, VOCABULARY)


PREDICTIONS = [
    prediction_settings.Word(),
    prediction_settings.Slot(slots=3),
    prediction_settings.Bilinear(),
    prediction_settings.Pointer(layer=-1, head=0),
]


@pytest.mark.parametrize("values", ["hidden", "token"])
def test_the_word_loss_touches_every_parameter(values: str) -> None:
    model = pronoun_model(prediction_settings.Word(), values=values)
    losses(model, LABELLED, Task(prediction=prediction_settings.Word())).total.backward()  # type: ignore[no-untyped-call]
    still = [
        name
        for name, weight in model.named_parameters()
        if weight.grad is None or not bool(weight.grad.abs().sum() > 0)
    ]
    assert still == []


@pytest.mark.parametrize("chosen", PREDICTIONS, ids=lambda one: one.kind)
def test_every_prediction_head_trains_the_attention(chosen: prediction_settings.Prediction) -> None:
    model = pronoun_model(chosen)
    losses(model, LABELLED, Task(prediction=chosen)).total.backward()  # type: ignore[no-untyped-call]
    for block in model.encoder.blocks:
        touched = [weight.grad.abs().sum() for weight in block.attention.parameters() if weight.grad is not None]  # type: ignore[union-attr]
        assert touched and max(touched) > 0


@pytest.mark.parametrize("chosen", PREDICTIONS, ids=lambda one: one.kind)
def test_asking_for_the_rows_changes_no_score(chosen: prediction_settings.Prediction) -> None:
    model = pronoun_model(chosen).eval()
    torch.testing.assert_close(
        model.prediction_head.scores(model(BATCH), BATCH),
        model.prediction_head.scores(model.forward_with_rows(BATCH), BATCH),
    )


def test_a_tied_output_shares_one_matrix() -> None:
    tied, own = (pronoun_model(prediction_settings.Word(), tied_output=choice) for choice in (True, False))
    assert tied.output.linear.weight is tied.encoder.tokens.weight
    assert own.output.linear.weight is not own.encoder.tokens.weight
    count = [sum(weight.numel() for weight in model.parameters()) for model in (own, tied)]
    assert count[0] - count[1] == own.output.linear.weight.numel()


def perfect_rows(batch: Batch) -> Tensor:
    """Return rows that are uniform over the antecedent's tokens."""
    rows = torch.zeros(1, len(batch.query_positions), 1, batch.ids.shape[1])
    most = batch.present.shape[1]
    for position, owner in zip(batch.candidate_positions.tolist(), batch.candidate_owners.tolist(), strict=True):
        if batch.gold.flatten()[owner]:
            rows[:, owner // most, :, position % batch.ids.shape[1]] = 1
    return rows / rows.sum(-1, keepdim=True).clamp(min=1)


CHOSEN = Supervision(weight=1, layers=[0], heads=[0])


def test_the_supervision_loss_is_zero_for_a_perfect_row() -> None:
    assert float(
        supervision_loss(output_of(random_hidden(), perfect_rows(LABELLED)), LABELLED, CHOSEN)
    ) == pytest.approx(0)


def test_the_supervision_loss_is_the_divergence_of_the_row_from_the_antecedents_tokens() -> None:
    rows = perfect_rows(LABELLED)
    rows[:, 0] *= 0.25
    rows[:, 1] *= 0.5
    loss = supervision_loss(output_of(random_hidden(), rows), LABELLED, CHOSEN)
    assert float(loss) == pytest.approx((math.log(4) + math.log(2)) / 2)


def test_items_without_antecedent_are_left_out_of_the_supervision_loss() -> None:
    rows = perfect_rows(BATCH)
    rows[:, [0, 2]] *= 0.5
    assert float(supervision_loss(output_of(random_hidden(), rows), BATCH, CHOSEN)) == pytest.approx(math.log(2))


def test_the_supervision_gradient_touches_the_chosen_layers_attention_and_not_the_prediction_head() -> None:
    model = pronoun_model(prediction_settings.Slot(slots=3))
    loss = supervision_loss(model.forward_with_rows(LABELLED), LABELLED, Supervision(weight=1, layers=[0], heads=[0]))
    loss.backward()  # type: ignore[no-untyped-call]
    first, second = (
        [weight.grad for weight in block.attention.parameters() if weight.grad is not None]  # type: ignore[union-attr]
        for block in model.encoder.blocks
    )
    assert max(grad.abs().sum() for grad in first) > 0
    assert second == [] or max(grad.abs().sum() for grad in second) == 0
    output = model.prediction_head.output
    assert isinstance(output, nn.Linear) and output.weight.grad is None


def test_without_supervision_no_loss_looks_at_a_row() -> None:
    model = pronoun_model(prediction_settings.Word())

    def forbidden(batch: Batch) -> EncoderOutput:
        raise AssertionError("a row was asked for")

    model.forward_with_rows = forbidden  # type: ignore[method-assign]
    assert set(losses(model, LABELLED, Task(prediction=prediction_settings.Word())).parts) == {"answer"}


def test_the_total_is_the_weighted_sum_of_the_parts() -> None:
    from numpy.random import default_rng

    from anaphora.data.batches.batching import mask_words

    task = Task(
        prediction=prediction_settings.Word(), masked_lm=0.5, masked_lm_weight=0.25, supervision=Supervision(weight=3.0)
    )
    model = pronoun_model(prediction_settings.Word()).eval()
    computed = losses(model, mask_words(LABELLED, 0.5, VOCABULARY, default_rng(0)), task)
    parts = computed.parts
    torch.testing.assert_close(computed.total, parts["answer"] + 0.25 * parts["masked_lm"] + 3 * parts["supervision"])


def test_the_masked_tokens_loss_is_that_of_the_true_words() -> None:
    model = pronoun_model(prediction_settings.NoPrediction()).eval()
    batch = replace(LABELLED, masked_positions=torch.tensor([1, 3]))
    hidden = model(batch).hidden
    parts = losses(model, batch, Task(prediction=prediction_settings.NoPrediction(), masked_lm=0.5)).parts
    logits = model.output(hidden[[1, 3]]).log_softmax(-1)
    wanted = -(logits[0, batch.ids[0, 1]] + logits[1, batch.ids[0, 3]]) / 2
    assert set(parts) == {"masked_lm"}
    torch.testing.assert_close(parts["masked_lm"], wanted)


def test_the_pair_scores_read_both_vectors_their_product_and_none_as_a_candidate() -> None:
    torch.manual_seed(0)
    pair = prediction.Pair(WIDTH, hidden=5, heads=0, dropout=0.0, none_of_them=True)
    nn.init.normal_(pair.none)
    hidden = random_hidden()
    scores = pair.scores(output_of(hidden), BATCH)
    query = hidden[position_of(0, "she")]
    for column, vector in enumerate((hidden[position_of(0, "anna")], hidden[position_of(0, "berta")], pair.none)):
        wanted = pair.network(torch.cat((query, vector, query * vector)))
        torch.testing.assert_close(scores[0, column], wanted[0])
    two_tokens = hidden[[position_of(2, "old"), position_of(2, "cat")]].mean(dim=0)
    query = hidden[position_of(2, "she")]
    torch.testing.assert_close(scores[2, 0], pair.network(torch.cat((query, two_tokens, query * two_tokens)))[0])


def test_the_pair_scores_read_attention_where_it_is_asked_for() -> None:
    torch.manual_seed(0)
    pair = prediction.Pair(WIDTH, hidden=5, heads=6, dropout=0.0, none_of_them=True)
    assert pair.needs_rows()
    assert not prediction.Pair(WIDTH, hidden=5, heads=0, dropout=0.0, none_of_them=True).needs_rows()
    hidden, length = random_hidden(), BATCH.ids.shape[1]
    rows = torch.rand(2, len(BATCH.query_items), 3, length).softmax(dim=-1)
    scores = pair.scores(output_of(hidden, rows), BATCH)
    query, anna = hidden[position_of(0, "she")], hidden[position_of(0, "anna")]
    weights = rows[:, 0, :, position_of(0, "anna") % length].flatten().log10() + 2
    torch.testing.assert_close(scores[0, 0], pair.network(torch.cat((query, anna, query * anna, weights)))[0])
    none = torch.cat((query, pair.none, query * pair.none, torch.zeros(6)))
    torch.testing.assert_close(scores[0, 2], pair.network(none)[0])


def test_the_pair_network_drops_features_in_training_alone() -> None:
    torch.manual_seed(0)
    pair = prediction.Pair(WIDTH, hidden=5, heads=0, dropout=0.5, none_of_them=False)
    hidden = random_hidden()
    assert not torch.equal(pair.scores(output_of(hidden), BATCH), pair.scores(output_of(hidden), BATCH))
    pair.eval()
    assert torch.equal(pair.scores(output_of(hidden), BATCH), pair.scores(output_of(hidden), BATCH))


def test_each_token_of_an_antecedent_has_its_share_in_the_supervision_loss() -> None:
    rows = torch.zeros(1, len(BATCH.query_positions), 1, BATCH.ids.shape[1])
    length = BATCH.ids.shape[1]
    weights = {(0, "anna"): 0.1, (2, "old"): 0.2, (2, "cat"): 0.4}  # the item of Dora has no antecedent
    for (number, word), weight in weights.items():
        rows[0, number, 0, position_of(number, word) % length] = weight
    # KL(target || row) of the target 1 on "anna", and of that of a half on each of "old" and "cat".
    alone, shared = math.log(1 / 0.1), 0.5 * math.log(0.5 / 0.2) + 0.5 * math.log(0.5 / 0.4)
    loss = supervision_loss(output_of(random_hidden(), rows), BATCH, CHOSEN)
    assert float(loss) == pytest.approx((alone + shared) / 2)


def test_a_row_of_the_encoder_puts_nothing_on_the_opening_of_another_sentence() -> None:
    """The pointer sums over all [CLS] tokens of a row, since those of other sentences have no weight."""
    torch.manual_seed(0)
    model = PronounModel(shape(), prediction_settings.Pointer(none_of_them=True), VOCABULARY).eval()
    packed = DATA.batch([[0, 1, 2]])
    output = model.forward_with_rows(packed)
    assert output.rows is not None
    openings = packed.ids[0] == CLS
    assert int(openings.sum()) == 3
    queried = packed.segments.flatten()[packed.query_positions]
    for query, sentence in enumerate(queried.tolist()):
        others = openings & (packed.segments[0] != sentence)
        assert not output.rows[:, query][:, :, others].any()
    scores = model.prediction_head.scores(output, packed)
    for number in range(3):
        alone = DATA.batch([[number]])
        torch.testing.assert_close(
            model.prediction_head.scores(model.forward_with_rows(alone), alone)[0], scores[number]
        )
