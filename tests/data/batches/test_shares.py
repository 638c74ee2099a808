from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from ranks import in_minimal_pairs

from anaphora.base.batch import Batch
from anaphora.data.batches.batching import MinimalPairs, TrainingBatches
from anaphora.data.batches.encoded import EncodedSplit
from anaphora.data.store import load as load_corpus
from anaphora.data.tokens.vocabulary import word_vocabulary
from anaphora.settings.run import Config
from anaphora.settings.training import Batching
from anaphora.training.losses import take_share


@pytest.fixture(scope="module", params=["packed", "buckets"])
def batch(request: pytest.FixtureRequest, settings: Callable[..., Config], table: str) -> Batch:
    """Return a batch with minimal pairs, some items without a pair, and masked tokens."""
    corpus = load_corpus(settings("data=jsonl", f"data.path={table}").data)
    examples = in_minimal_pairs(corpus.examples("train"))
    data = EncodedSplit(examples, word_vocabulary([example.text for example in examples], min_count=1))
    batching = Batching(kind=request.param, tokens=400, row_tokens=40, window=16)
    return next(TrainingBatches(data, batching, 0, 4, 0.3, MinimalPairs(data), 0.2).between(0, 1))


@pytest.mark.parametrize("ranks", [2, 3, 50])
def test_the_shares_of_all_ranks_are_the_batch(batch: Batch, ranks: int) -> None:
    shares = [take_share(batch, rank, ranks) for rank in range(ranks)]
    rows = [row.tolist() for share in shares for row in share.ids]
    assert sorted(rows) == sorted(row.tolist() for row in batch.ids)
    assert sorted(int(item) for share in shares for item in share.items) == sorted(batch.items.tolist())
    assert len(batch.masked_positions) and len(batch.minimal_pairs)
    for name in ("query_positions", "candidate_positions", "masked_positions", "own_positions", "minimal_pairs"):
        assert sum(len(getattr(share, name)) for share in shares) == len(getattr(batch, name)), name


def test_a_share_asks_of_its_items_what_the_batch_asks_of_them(batch: Batch) -> None:
    def by_item(part: Batch) -> dict[int, list[object]]:
        """Return for each item its token ids, pronoun, candidates, answer and slots."""
        most = part.gold.shape[1]
        questions: dict[int, list[object]] = {}
        for place, item in enumerate(part.items.tolist()):
            inside = part.segments.flatten() == place
            own = part.candidate_owners // most == place
            candidates = part.candidate_positions[own]
            questions[item] = [
                part.inputs.flatten()[inside].tolist(),
                part.positions.flatten()[part.query_positions[part.query_items == place]].tolist(),
                part.positions.flatten()[candidates].tolist(),
                (part.candidate_owners[own] % most).tolist(),
                part.gold[place].tolist(),
                part.candidate_slots[place].tolist(),
                part.slots.flatten()[candidates].tolist(),
            ]
        return questions

    whole = by_item(batch)
    for rank in range(3):
        share = take_share(batch, rank, 3)
        assert by_item(share).items() <= whole.items()
        named = {frozenset(share.items[pair].tolist()) for pair in share.minimal_pairs}
        assert named <= {frozenset(batch.items[pair].tolist()) for pair in batch.minimal_pairs}
        masked = share.inputs.flatten() != share.ids.flatten()
        assert set(masked.nonzero().flatten().tolist()) <= set(share.masked_positions.tolist())


def test_there_may_be_fewer_rows_than_ranks(batch: Batch) -> None:
    share = take_share(batch, 49, 50)
    assert len(share.ids) == len(share.items) == len(share.masked_positions) == 0
    assert torch.equal(take_share(batch, 0, 1).segments, batch.segments)
