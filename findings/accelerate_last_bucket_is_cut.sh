#!/usr/bin/env bash
# What one would guess: with one process, gather_for_metrics has nothing to gather and returns what it is given, and in
# distributed runs it drops only the copies that fill up the last batch; so an evaluation counts each sentence once, in
# whatever batches they come. Found in accelerate 1.15.0, with one process: the last batch is cut to the remainder of
# the number of sentences by the batch size, whatever it holds. If a sampler makes batches of sentences of one length,
# as for evaluation without padding, several batches are not full, and the last may be larger than that remainder. Of
# 100 sentences in buckets of 25 and a batch size of 32, 79 are counted; the 21 left out are all of the longest, and
# those are the hard ones: the accuracy is 0.949 instead of 0.75. Trainer.predict of transformers 5.23.0 loses the same
# ones. With a batch size of 8 or 25, none is lost, nor is any with batches without buckets or with "gather". No warning
# or line in the log says so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0 \
  accelerate==1.15.0 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/buckets.py" <<'PYTHON'
import logging
import sys
import warnings

import accelerate
import torch
import transformers
from accelerate import Accelerator
from torch.utils.data import BatchSampler, DataLoader
from transformers import Trainer, TrainingArguments

LENGTHS, BUCKET = (4, 6, 8, 12), 25
sentences = [
    {"input_ids": torch.full((length,), number), "labels": torch.tensor(number)}
    for number, length in enumerate(length for length in LENGTHS for _ in range(BUCKET))
]
LONG = 3 * BUCKET  # from here on, the model answers wrongly


class Buckets(BatchSampler):
    """Batches of sentences of one length, the shortest first."""

    def __init__(self, data, batch_size):
        super().__init__(range(len(data)), batch_size, drop_last=False)
        self.lengths = [len(one["input_ids"]) for one in data]

    def __iter__(self):
        for length in sorted(set(self.lengths)):
            numbers = [number for number in self.sampler if self.lengths[number] == length]
            for start in range(0, len(numbers), self.batch_size):
                yield numbers[start : start + self.batch_size]

    def __len__(self):
        return sum(1 for _ in self)


class Answers(torch.nn.Module):
    """Answers with the number of the sentence, or with -1 if it is long."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, input_ids, labels=None):
        numbers = input_ids[:, 0]
        return {"loss": self.weight.sum(), "logits": numbers.masked_fill(numbers >= LONG, -1)}


class BucketTrainer(Trainer):
    def get_test_dataloader(self, test_dataset):
        size = self.args.eval_batch_size
        return self.accelerator.prepare(DataLoader(test_dataset, batch_sampler=Buckets(test_dataset, size)))


def evaluate(gather, batches):
    """Numbers of the sentences that are counted, and accuracy."""
    numbers, right = [], []
    for batch in batches:
        answers = model(batch["input_ids"])["logits"]
        answers, labels = gather((answers, batch["labels"]))
        numbers += labels.tolist()
        right += (answers == labels).tolist()
    return numbers, sum(right) / len(right)


print("accelerate", accelerate.__version__, "transformers", transformers.__version__, "torch", torch.__version__)
said = []
handler = logging.Handler()
handler.emit = said.append
for name in (None, "accelerate", "transformers"):
    logging.getLogger(name).addHandler(handler)
accelerator, model = Accelerator(cpu=True), Answers()
assert accelerator.num_processes == 1
same_length = [one | {"input_ids": one["input_ids"][:1]} for one in sentences]
with warnings.catch_warnings(record=True) as warned, torch.no_grad():
    warnings.simplefilter("always")
    found = {}
    for size in (8, 16, 25, 32):
        arguments = TrainingArguments(sys.argv[1], per_device_eval_batch_size=size, report_to=[], use_cpu=True, disable_tqdm=True)
        predicted = BucketTrainer(model, arguments).predict(sentences).label_ids.tolist()
        loader = accelerator.prepare(DataLoader(sentences, batch_sampler=Buckets(sentences, size)))
        plain = accelerator.prepare(DataLoader(same_length, batch_size=size))
        numbers, accuracy = evaluate(accelerator.gather_for_metrics, loader)
        gathered, all_accuracy = evaluate(accelerator.gather, loader)
        unsorted, plain_accuracy = evaluate(accelerator.gather_for_metrics, plain)
        found[size] = len(numbers), round(accuracy, 3)
        print(f"batch size {size}: gather_for_metrics keeps {len(numbers)} of 100 sentences, accuracy {accuracy:.3f};", end=" ")
        print(f"Trainer keeps {len(predicted)}; gather keeps {len(gathered)}, accuracy {all_accuracy:.3f};", end=" ")
        print(f"without buckets, gather_for_metrics keeps {len(unsorted)}, accuracy {plain_accuracy:.3f}")
        assert sorted(gathered) == sorted(unsorted) == list(range(100)), "the behaviour has changed"
        assert all_accuracy == plain_accuracy == 0.75, "the behaviour has changed"
        assert sorted(predicted) == sorted(numbers) == list(range(len(numbers))), "the behaviour has changed"
print("warnings and lines in the log:", len(warned) + len(said))
assert found == {8: (100, 0.75), 16: (95, 0.789), 25: (100, 0.75), 32: (79, 0.949)}, "the behaviour has changed"
assert not warned and not said, "the behaviour has changed"
PYTHON
"$folder/venv/bin/python" "$folder/buckets.py" "$folder" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
