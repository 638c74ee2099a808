from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from anaphora.base.batch import Batch
from anaphora.base.errors import UserError
from anaphora.data.batches.batching import (
    MinimalPairs,
    TrainingBatches,
    draw_own_words,
    encode_plain_text,
    evaluation_batches,
    length_ranks,
    mask_words,
    masked_for_evaluation,
    plan_batches,
    single_batch,
)
from anaphora.data.batches.encoded import EncodedSplit, RaggedArray, _SpanCover
from anaphora.data.example import Example
from anaphora.data.tokens.tokenizer import TokenizedText
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.settings.training import Batching
from anaphora.settings.vocabulary import CLS, MASK, PADDING, SPECIAL_TOKENS

PACKED = Batching(kind="packed", tokens=60, row_tokens=30, window=16)
BUCKETS = Batching(kind="buckets", tokens=60, row_tokens=30, window=16)
FILLERS = ("ran", "ran far", "ran far away", "ran far away and then slept", "")


def example(number: int) -> Example:
    text = f"Anna saw Tom and {'old ' * (number % 3)}Mary when she {FILLERS[number % 5]} again"
    names = ("Anna", "Tom", "Mary")[: 2 + number % 2]
    spans = tuple(((text.index(name), text.index(name) + len(name)),) for name in names)
    start = text.index("she")
    return Example(
        text=text, language="en", pronoun=(start, start + 3), candidates=spans, antecedents=(number % len(names),)
    )


EXAMPLES = [example(number) for number in range(50)]
TOKENIZER = word_vocabulary([one.text for one in EXAMPLES], min_count=1)
DATA = EncodedSplit(EXAMPLES, TOKENIZER)


def training(seed: int = 0, chosen: Batching = PACKED, slots: int = 0, hidden: float = 0.0) -> TrainingBatches:
    return TrainingBatches(DATA, chosen, seed, slots, hidden)


def same(first: Batch, second: Batch) -> bool:
    return all(torch.equal(value, getattr(second, name)) for name, value in vars(first).items())


def steps_of_an_epoch(batches: TrainingBatches) -> int:
    steps = 0
    for step, batch in enumerate(batches.between(0, 100)):
        steps += len(batch.items)
        if steps == len(EXAMPLES):
            return step + 1
    raise AssertionError("an epoch does not end where all items were seen")


@pytest.mark.parametrize("chosen", [PACKED, BUCKETS], ids=lambda chosen: chosen.kind)
def test_an_epoch_holds_every_item_once(chosen: Batching) -> None:
    batches = training(chosen=chosen)
    steps = steps_of_an_epoch(batches)
    for epoch in range(3):
        items = torch.cat([batch.items for batch in batches.between(epoch * steps, (epoch + 1) * steps)])
        if epoch == 0:
            assert sorted(items.tolist()) == list(range(len(EXAMPLES)))
    everything = torch.cat([batch.items for batch in batches.between(0, 200)])
    for epoch in range(3):
        part = everything[epoch * len(EXAMPLES) : (epoch + 1) * len(EXAMPLES)]
        assert sorted(part.tolist()) == list(range(len(EXAMPLES)))


@pytest.mark.parametrize("chosen", [PACKED, BUCKETS], ids=lambda chosen: chosen.kind)
def test_the_first_epochs_hold_the_shortest_groups_of_each_type_whole(chosen: Batching) -> None:
    examples = [
        replace(example(number), group=f"{number // 2}", factors={"type": "ab"[number // 2 % 2]})
        for number in range(48)
    ]
    data = EncodedSplit(examples, TOKENIZER)
    lengths = data.ids.lengths
    batches = TrainingBatches(data, replace(chosen, shortest_first=[0.25, 0.5]), 0, 0, 0.0)
    items = torch.cat([batch.items for batch in batches.between(0, 100)]).tolist()
    epochs = [items[:12], items[12:36], items[36:84]]
    assert sorted(epochs[2]) == list(range(48))
    for share, epoch in zip((0.25, 0.5), epochs, strict=False):
        for kind in "ab":
            mean_lengths = {
                group: lengths[[2 * group, 2 * group + 1]].mean() for group in range(24) if "ab"[group % 2] == kind
            }
            held = {item // 2 for item in epoch if item // 2 in mean_lengths}
            assert len(held) == 12 * share
            assert max(mean_lengths[group] for group in held) <= min(
                length for group, length in mean_lengths.items() if group not in held
            )
        assert Counter(item // 2 for item in epoch) == dict.fromkeys({item // 2 for item in epoch}, 2)


def test_the_length_of_a_group_is_the_mean_of_its_items_however_many_they_are() -> None:
    short, long = EXAMPLES[0], EXAMPLES[8]
    many = [replace(short, group="many short ones")] * 4 + [replace(long, group="one long one")]
    assert length_ranks(EncodedSplit(many, TOKENIZER)).tolist() == [0, 0, 0, 0, 0.5]


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_a_share_of_the_shortest_groups_is_checked(share: float) -> None:
    with pytest.raises(UserError, match=rf"batching.shortest_first \({share:g}\) must be above 0 and at most 1"):
        Batching(shortest_first=[0.5, share])


@pytest.mark.parametrize("chosen", [PACKED, BUCKETS], ids=lambda chosen: chosen.kind)
def test_evaluation_reads_every_item_once_and_never_changes_its_order(chosen: Batching) -> None:
    items = [batch.items for batch in evaluation_batches(DATA, chosen, 0)]
    assert sorted(torch.cat(items).tolist()) == list(range(len(EXAMPLES)))
    again = [batch.items for batch in evaluation_batches(DATA, chosen, 0)]
    assert all(torch.equal(one, two) for one, two in zip(items, again, strict=True))


def test_rows_and_batches_are_never_over_their_capacity() -> None:
    for batch in training().between(0, 60):
        assert batch.ids.shape[1] <= PACKED.row_tokens
        assert batch.ids.numel() <= PACKED.tokens


def test_a_bucket_row_holds_one_sentence_and_a_batch_keeps_its_capacity() -> None:
    for batch in training(chosen=BUCKETS).between(0, 60):
        assert len(batch.ids) == len(batch.items)
        assert batch.ids.numel() <= BUCKETS.tokens


def test_a_sentence_longer_than_a_row_has_a_row_of_its_own() -> None:
    lengths = np.array([9, 40, 8, 9])
    rows = [row for batch in plan_batches(lengths, PACKED, np.arange(4)) for row in batch]
    assert [1] in rows
    assert sorted(item for row in rows for item in row) == [0, 1, 2, 3]


def test_packing_leaves_little_padding() -> None:
    def share(chosen: Batching) -> float:
        batches = list(training(chosen=chosen).between(0, steps_of_an_epoch(training(chosen=chosen))))
        return sum(batch.real_tokens for batch in batches) / sum(batch.ids.numel() for batch in batches)

    assert share(Batching(tokens=100, row_tokens=100, window=50)) > 0.9
    assert share(Batching(tokens=1000, row_tokens=1000, window=50)) > 0.9
    assert share(Batching(tokens=20, row_tokens=20, window=50)) > 0.8


def test_the_order_depends_on_the_seed_and_the_epoch_alone() -> None:
    first = [batch.items for batch in training(seed=3).between(0, 40)]
    again = [batch.items for batch in training(seed=3).between(0, 40)]
    other = [batch.items for batch in training(seed=4).between(0, 40)]
    assert all(torch.equal(one, two) for one, two in zip(first, again, strict=True))
    assert not all(torch.equal(one, two) for one, two in zip(first, other, strict=True))
    everything = torch.cat(first)
    assert not torch.equal(everything[:50], everything[50:100])


def test_the_order_does_not_follow_the_generator_of_the_caller() -> None:
    torch.manual_seed(1)
    np.random.seed(1)  # noqa: NPY002
    first = torch.cat([batch.items for batch in training().between(0, 20)])
    torch.manual_seed(2)
    np.random.seed(2)  # noqa: NPY002
    assert torch.equal(first, torch.cat([batch.items for batch in training().between(0, 20)]))


@pytest.mark.parametrize("slots", [0, 4])
@pytest.mark.parametrize("hidden", [0.0, 0.3])
def test_a_step_holds_the_same_batch_from_the_start_and_resumed(slots: int, hidden: float) -> None:
    batches = training(slots=slots, hidden=hidden)
    unbroken = list(batches.between(0, 40))
    for step in (0, 1, 7, 19, 39):
        (resumed,) = training(slots=slots, hidden=hidden).between(step, step + 1)
        assert same(resumed, unbroken[step]), step


def test_a_packed_row_is_its_sentences_one_after_the_other_and_then_padding() -> None:
    batch = DATA.batch([[0, 3], [1]])
    texts = [DATA.tokens[item].ids for item in (0, 3, 1)]
    width = len(texts[0]) + len(texts[1])
    assert batch.ids.shape == (2, width)
    assert batch.ids[0].tolist() == [*texts[0], *texts[1]]
    free = width - len(texts[2])
    assert batch.ids[1].tolist() == [*texts[2], *[PADDING] * free]
    assert batch.positions[0].tolist() == [*range(len(texts[0])), *range(len(texts[1]))]
    assert batch.positions[1].tolist() == [*range(len(texts[2])), *[0] * free]
    assert batch.segments[0].tolist() == [0] * len(texts[0]) + [1] * len(texts[1])
    assert batch.segments[1].tolist() == [2] * len(texts[2]) + [-1] * free
    assert batch.real_tokens == sum(map(len, texts))
    words = DATA.tokens[1].words
    assert (batch.words[1].tolist(), words[0]) == ([*words, *[-1] * free], -1)
    assert (batch.masked_positions.shape, batch.masked_positions.dtype) == ((0,), torch.long)
    assert (batch.minimal_pairs.shape, batch.minimal_pairs.dtype) == ((0, 2), torch.long)


def test_flat_positions_point_at_the_words_of_the_pronoun_and_the_candidates() -> None:
    batch = DATA.batch([[4, 7], [1, 2], [9]])
    ids = batch.ids.flatten()
    for position, item in zip(batch.query_positions.tolist(), batch.query_items.tolist(), strict=True):
        assert TOKENIZER.token(int(ids[position])) == "she"
        assert int(batch.segments.flatten()[position]) == item
    most = batch.present.shape[1]
    named: dict[tuple[int, int], list[str]] = {}
    for position, owner in zip(batch.candidate_positions.tolist(), batch.candidate_owners.tolist(), strict=True):
        assert int(batch.segments.flatten()[position]) == owner // most
        named.setdefault((owner // most, owner % most), []).append(TOKENIZER.token(int(ids[position])))
    for place, item in enumerate(batch.items.tolist()):
        names = [EXAMPLES[item].words(index).lower() for index in range(len(EXAMPLES[item].candidates))]
        assert [named[place, index] for index in range(len(names))] == [[name] for name in names]
        assert batch.present[place].tolist() == [index < len(names) for index in range(most)]
        assert batch.gold[place].nonzero().flatten().tolist() == list(EXAMPLES[item].antecedents)


def test_a_candidate_of_several_mentions_and_tokens_owns_them_all() -> None:
    text = "Anna Karenina left; she, Anna Karenina, was late"
    spans = ((0, 13), (25, 38))
    chosen = Example(text=text, language="en", pronoun=(20, 23), candidates=(spans,), antecedents=(0,))
    tokenizer = word_vocabulary([text], min_count=1)
    batch, tokens = single_batch(chosen, tokenizer)
    words = [text[slice(*tokens.spans[place])] for place in batch.candidate_positions.tolist()]
    assert words == ["Anna", "Karenina", "Anna", "Karenina"]
    assert set(batch.candidate_owners.tolist()) == {0}
    assert batch.present.shape == (1, 1) and not batch.slots.any() and not batch.candidate_slots.any()


def test_slots_are_distinct_and_in_order_in_evaluation() -> None:
    for batch in evaluation_batches(DATA, PACKED, 5):
        assert (batch.candidate_slots == torch.arange(1, DATA.max_candidates + 1)).all()


def test_slots_are_distinct_and_shuffled_in_training() -> None:
    counts = torch.zeros(6)
    for batch in training(slots=5).between(0, 80):
        for slots in batch.candidate_slots:
            assert len(set(slots.tolist())) == DATA.max_candidates
            assert int(slots.min()) >= 1 and int(slots.max()) <= 5
            counts[slots[0]] += 1
    shares = counts[1:] / counts.sum()
    assert (shares - 0.2).abs().max() < 0.08
    assert counts[0] == 0


def test_candidate_tokens_carry_their_slot_and_no_other_token_does() -> None:
    for batch in training(slots=5).between(0, 10):
        flat = batch.slots.flatten().clone()
        wanted = batch.candidate_slots.flatten()[batch.candidate_owners]
        assert torch.equal(flat[batch.candidate_positions], wanted)
        flat[batch.candidate_positions] = 0
        assert not flat.any()


def test_too_few_slots_are_reported() -> None:
    assert int(next(training(slots=3).between(0, 1)).slots.max()) == 3  # as many as candidates are enough
    with pytest.raises(UserError, match=r"task.prediction.slots \(2\) must be at least the 3 candidates of an item"):
        next(training(slots=2).between(0, 1))


def test_a_pronoun_that_no_token_covers_is_reported() -> None:
    blank = Example(text="a  b", language="en", pronoun=(1, 2), candidates=(((0, 1),),), antecedents=(0,))
    with pytest.raises(UserError, match=r"item 0: no token covers the pronoun \(1, 2\)"):
        EncodedSplit([blank], TOKENIZER)


def test_an_empty_training_split_is_reported() -> None:
    with pytest.raises(UserError, match="the training split is empty"):
        TrainingBatches(EncodedSplit([], TOKENIZER), PACKED, 0, 0, 0.0)


def hidden_at(share: float) -> tuple[Batch, Batch]:
    whole = DATA.batch([[item % 50 for item in range(start, start + 50)] for start in range(0, 1000, 50)])
    return whole, mask_words(whole, share, TOKENIZER.size, np.random.default_rng(0))


def test_the_share_of_masked_tokens_is_what_is_asked_for() -> None:
    whole, hidden = hidden_at(0.3)
    free = whole.real_tokens - len(whole.items) - len(whole.query_positions)
    assert len(hidden.masked_positions) / free == pytest.approx(0.3, abs=0.02)
    assert torch.equal(hidden.ids, whole.ids)


def test_masked_tokens_are_masked_replaced_and_kept_at_80_10_10() -> None:
    _, hidden = hidden_at(0.5)
    read = hidden.inputs.flatten()[hidden.masked_positions]
    true = hidden.ids.flatten()[hidden.masked_positions]
    masked = (read == MASK).float().mean()
    kept = (read == true).float().mean()
    by_luck = 0.1 / (TOKENIZER.size - len(SPECIAL_TOKENS))
    assert masked == pytest.approx(0.8, abs=0.02)
    assert kept == pytest.approx(0.1 + by_luck, abs=0.015)
    replaced = read[(read != MASK) & (read != true)]
    assert int(replaced.min()) >= len(SPECIAL_TOKENS)
    assert len(set(replaced.tolist())) > 5


def test_openings_padding_and_pronouns_are_never_hidden_and_other_inputs_are_true() -> None:
    _, hidden = hidden_at(0.9)
    chosen = hidden.masked_positions
    assert not (hidden.ids.flatten()[chosen] == CLS).any()
    assert (hidden.segments.flatten()[chosen] >= 0).all()
    assert not set(chosen.tolist()) & set(hidden.query_positions.tolist())
    inputs = hidden.inputs.flatten().clone()
    inputs[chosen] = hidden.ids.flatten()[chosen]
    assert torch.equal(inputs, hidden.ids.flatten())


def test_a_word_is_hidden_with_all_its_pieces_or_not_at_all() -> None:
    texts = [f"anna unseenword{number} saw xylophone" for number in range(40)]
    tokenizer = word_vocabulary(["anna saw", *"abcdefghijklmnopqrstuvwxyz0123456789"], min_count=1)
    examples = [
        Example(text=text, language="en", pronoun=(0, 4), candidates=(((5, 9),),), antecedents=(0,)) for text in texts
    ]
    data = EncodedSplit(examples, tokenizer)
    whole = data.batch([list(range(start, start + 10)) for start in range(0, 40, 10)])
    hidden = mask_words(whole, 0.5, tokenizer.size, np.random.default_rng(0))
    chosen = torch.zeros(whole.ids.numel(), dtype=torch.bool)
    chosen[hidden.masked_positions] = True
    keys = whole.segments.flatten() * 100 + whole.words.flatten()
    kept_whole, masked = 0, hidden.inputs.flatten() == MASK
    for key in set(keys[whole.words.flatten() >= 0].tolist()):
        pieces = keys == key
        assert chosen[pieces].all() or not chosen[pieces].any()
        assert masked[pieces].all() or not masked[pieces].any()
        kept_whole += int(pieces.sum() > 5 and masked[pieces].all())
    assert kept_whole > 10


def test_unknown_words_are_never_hidden() -> None:
    tokenizer = word_vocabulary(["anna saw it"], min_count=1)
    one_text = Example(
        text="anna saw 龘龘 it", language="en", pronoun=(0, 4), candidates=(((5, 8),),), antecedents=(0,)
    )
    batch = EncodedSplit([one_text], tokenizer).batch([[0]])
    hidden = mask_words(batch, 0.999, tokenizer.size, np.random.default_rng(0))
    assert hidden.ids.flatten()[hidden.masked_positions].tolist() == list(tokenizer.encode("saw it").ids[1:])


def test_words_that_predict_themselves_are_there_and_never_pronouns_or_masked_ones() -> None:
    _, masked = hidden_at(0.3)
    batch = draw_own_words(masked, 0.4, np.random.default_rng(1))
    assert torch.equal(batch.inputs, masked.inputs)
    own = set(batch.own_positions.tolist())
    assert not own & {*batch.masked_positions.tolist(), *batch.query_positions.tolist()}
    free = batch.real_tokens - len(batch.items) - len(batch.query_positions) - len(batch.masked_positions)
    assert len(own) / free == pytest.approx(0.4, abs=0.02)
    assert (batch.words.flatten()[batch.own_positions] >= 0).all()


def test_what_validation_hides_is_the_same_every_time() -> None:
    def once() -> list[Batch]:
        return list(masked_for_evaluation(evaluation_batches(DATA, PACKED, 0), 0.3, TOKENIZER.size))

    first, second = once(), once()
    assert all(same(one, other) for one, other in zip(first, second, strict=True))
    assert len({tuple(one.masked_positions.tolist()) for one in first}) > 1


def batches_with_every_epoch_planned_anew(
    batches: TrainingBatches, first: int, last: int
) -> Iterator[tuple[int, list[list[int]]]]:
    """Yield steps and their rows from a plan that is computed again for each epoch, from the first one on."""
    epoch, before = 0, 0
    while before < last:
        draw = np.random.default_rng([batches.seed, epoch, 1])
        planned = plan_batches(DATA.ids.lengths, batches.batching, draw.permutation(len(DATA)))
        order = draw.permutation(len(planned))
        for step in range(max(first, before), min(last, before + len(planned))):
            yield step, planned[order[step - before]]
        epoch, before = epoch + 1, before + len(planned)


@pytest.mark.parametrize("batching", [PACKED, BUCKETS], ids=lambda batching: batching.kind)
def test_each_epoch_is_planned_once_over_all_rounds_and_the_batches_stay_the_same(
    batching: Batching, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans = 0

    def counted(*arguments: Any) -> list[list[list[int]]]:
        nonlocal plans
        plans += 1
        return plan_batches(*arguments)

    monkeypatch.setattr("anaphora.data.batches.batching.plan_batches", counted)
    batches = training(chosen=batching, slots=4, hidden=0.3)
    rounds = [batch for first in range(0, 200, 8) for batch in batches.between(first, first + 8)]
    epochs = sum(len(batch.items) for batch in rounds) / len(EXAMPLES)
    assert epochs > 5
    assert plans == math.ceil(epochs)
    wanted = batches_with_every_epoch_planned_anew(batches, 0, 200)
    assert all(same(batch, batches._batch(rows, step)) for batch, (step, rows) in zip(rounds, wanted, strict=True))
    assert same(next(iter(batches.between(3, 4))), rounds[3])  # also a step of an epoch that is over
    before = plans
    assert same(next(iter(batches.between(0, 1))), rounds[0])  # whose plan is the latest
    assert plans == before


def test_between_the_words_of_two_sentences_stands_a_token_that_is_no_word() -> None:
    """Masking treats neighbours with the same index as one word, so a word never crosses the boundary of a sentence."""
    for batch in (DATA.batch([list(range(start, start + 5)) for start in range(0, 50, 5)]), *training().between(0, 3)):
        words, sentences = batch.words.flatten(), batch.segments.flatten()
        edges = torch.nonzero(sentences[1:] != sentences[:-1]).flatten()
        assert len(edges) > 1
        assert ((words[edges] < 0) | (words[edges + 1] < 0)).all()


def test_buckets_go_up_and_down_in_turns_and_a_batch_holds_what_its_tokens_allow() -> None:
    # Windows of three: 1, 3, 5 up, then 8, 6, 4 down. 3 rows of 5 are 15 tokens; a fourth row of 8 would make 32.
    lengths = np.array([3, 1, 5, 6, 8, 4])
    first, narrow, wide = [[1], [0], [2]], [[[4]], [[3], [5]]], [[[4], [3]], [[5]]]
    for tokens, others in ((15, narrow), (16, wide)):
        buckets = Batching(kind="buckets", tokens=tokens, row_tokens=1, window=3)
        assert plan_batches(lengths, buckets, np.arange(6)) == [first, *others]


def test_packed_rows_take_the_longest_first_and_each_sentence_where_it_fits_best() -> None:
    # Rows of 10: 8; 6, and 4 fills its row; 2 fills the row of 8; 1 begins a row.
    lengths = np.array([1, 2, 4, 6, 8])
    packed = Batching(kind="packed", tokens=20, row_tokens=10, window=5)
    assert plan_batches(lengths, packed, np.arange(5)) == [[[4, 1], [3, 2]], [[0]]]
    # Of free 3 and free 2 the second is closer to 2, although its row came later.
    assert plan_batches(np.array([7, 8, 2]), packed, np.array([0, 1, 2])) == [[[1, 2], [0]]]
    assert plan_batches(np.array([7, 6, 3, 3]), packed, np.arange(4)) == [[[0, 2], [1, 3]]]


def test_sentences_of_one_length_keep_their_order() -> None:
    lengths = np.random.default_rng(0).integers(5, 8, size=300)
    buckets = Batching(kind="buckets", tokens=10**6, row_tokens=7, window=300)
    in_order = sorted(range(300), key=lambda item: int(lengths[item]))
    assert plan_batches(lengths, buckets, np.arange(300)) == [[[item] for item in in_order]]
    longest_first = sorted(range(300), key=lambda item: -int(lengths[item]))
    assert plan_batches(lengths, replace(buckets, kind="packed"), np.arange(300)) == [
        [[item] for item in longest_first]
    ]
    many = EncodedSplit(EXAMPLES * 4, TOKENIZER)
    once = Batching(kind="buckets", tokens=10**6, window=200)
    (batch,) = evaluation_batches(many, once, 0)
    assert batch.items.tolist() == sorted(range(200), key=lambda item: int(many.ids.lengths[item]))


def test_minimal_pairs_are_items_of_one_name_whose_candidates_are_written_alike_and_answers_differ() -> None:
    both, three = replace(EXAMPLES[0], minimal_pair="p"), replace(EXAMPLES[1], minimal_pair="q")
    items = [
        *(both, EXAMPLES[2], replace(both, antecedents=(1,)), both),  # 0 and 3 have the same answer
        *(three, replace(three, antecedents=(2,)), replace(EXAMPLES[3], minimal_pair="p")),
    ]
    pairs = MinimalPairs(EncodedSplit(items, TOKENIZER))
    assert pairs.batch_units == [[0, 2, 3], [1], [4, 5], [6]]
    assert pairs.pairs.tolist() == [[0, 2], [2, 3], [4, 5]]
    assert pairs.pairs_among(np.array([2, 5, 0, 4])).tolist() == [[2, 0], [3, 1]]
    assert [pairs.pairs_among(np.array(none)).shape for none in ([3, 1], [6, 1])] == [(0, 2)] * 2
    alone = MinimalPairs(EncodedSplit([both], TOKENIZER))
    assert alone.pairs_among(np.array([0])).shape == alone.pairs_among(np.array([], dtype=np.int64)).shape == (0, 2)


def test_what_is_drawn_in_a_step_is_drawn_from_the_seed_and_the_step() -> None:
    batches = training(seed=7, slots=4)
    rows = [[3, 1], [2]]
    assert same(batches._batch(rows, 5), DATA.batch(rows, 4, np.random.default_rng([7, 5, 2])))


def test_a_text_without_a_question_is_one_row() -> None:
    row, tokens = encode_plain_text("Anna saw Tom", TOKENIZER)
    assert row.ids.tolist() == [list(tokens.ids)] and len(tokens.ids) == 4
    assert (row.positions.tolist(), row.segments.tolist()) == ([[0, 1, 2, 3]], [[0, 0, 0, 0]])


def test_lists_that_stand_in_one_array_are_taken_by_their_number() -> None:
    array = RaggedArray(np.arange(5), np.array([2, 0, 3]))
    values, owner, within = array.take(np.array([2, 1, 0]))
    assert (values.tolist(), owner.tolist()) == ([2, 3, 4, 0, 1], [0, 0, 0, 2, 2])
    assert within.tolist() == [0, 1, 2, 0, 1]


def test_the_longest_text_and_other_ids_of_the_same_lengths() -> None:
    assert DATA.max_tokens() == max(len(tokens.ids) for tokens in DATA.tokens)
    empty = EncodedSplit([], TOKENIZER)
    assert (empty.max_tokens(), empty.max_candidates) == (0, 1)
    two = EncodedSplit(EXAMPLES[:2], TOKENIZER)
    ids = [[7] * len(tokens.ids) for tokens in two.tokens]
    assert set(two.with_ids(ids).ids.flat.tolist()) == {7} and set(two.ids.flat.tolist()) != {7}
    with pytest.raises(ValueError, match="must keep its number of tokens"):
        two.with_ids([ids[0], ids[1][1:]])


def test_tokens_that_share_a_character_with_a_span_are_found_past_special_ones() -> None:
    text = TokenizedText(tuple(range(7)), ((0, 0), (0, 3), (3, 5), (0, 0), (6, 9), (9, 10), (0, 0)), (-1,) * 7)
    cover = _SpanCover(text)
    for start in range(11):
        for end in range(start + 1, 12):
            assert cover.of((start, end)) == text.covering((start, end)), (start, end)


def test_training_items_encoded_in_parts_are_those_encoded_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anaphora.data.batches.encoded.ENCODED_AT_ONCE", 3)
    parts, whole = EncodedSplit(EXAMPLES, TOKENIZER, keeps_tokens=False), EncodedSplit(EXAMPLES, TOKENIZER)
    assert len(EXAMPLES) > 3 and not parts.tokens and len(whole.tokens) == len(EXAMPLES)
    for name in ("ids", "words", "queries", "candidates", "names"):
        one, other = getattr(parts, name), getattr(whole, name)
        for array in ("flat", "lengths", "starts"):
            assert np.array_equal(getattr(one, array), getattr(other, array)), (name, array)
    assert np.array_equal(parts.gold, whole.gold) and np.array_equal(parts.present, whole.present)
