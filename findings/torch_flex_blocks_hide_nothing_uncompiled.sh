#!/usr/bin/env bash
# What one would guess: compiling flex_attention is a matter of speed, so the blocks that a BlockMask leaves out are
# hidden in the uncompiled call too, which is how one tries out a mask. Found in torch 2.13.0: the uncompiled call reads
# only the mask's function of single pairs, and no list of blocks. BlockMask.from_kv_blocks needs no such function. A
# mask of blocks alone that keeps each of four sentences to itself, as to_dense shows, then hides nothing: its effect is
# exactly 0 in each of the 8 heads, for every token attends to all sentences. Compiled, the same mask gives what each
# sentence gives alone, and the heads change by 0.8 to 1.3. A mask of create_block_mask, and blocks with a function that
# says the same, are right uncompiled too. The warning of the uncompiled call speaks of a kernel, not of blocks.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet --disable-pip-version-check torch==2.13.0 numpy==2.4.6 \
  2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
cat >"$folder/blocks.py" <<'PYTHON'
import warnings

import torch
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

HEADS, SENTENCES, TOKENS, FEATURES = 8, 4, 32, 16
LENGTH = SENTENCES * TOKENS
torch.manual_seed(0)
heads = torch.randn(3, 1, HEADS, LENGTH, FEATURES).unbind()  # queries, keys and values
count = torch.ones(1, 1, SENTENCES, dtype=torch.int32)  # each sentence attends to one block,
order = torch.stack([torch.arange(SENTENCES).roll(-own) for own in range(SENTENCES)]).int()[None, None]  # its own


def same_sentence(batch, head, query, key):
    return query // TOKENS == key // TOKENS


blocks = BlockMask.from_kv_blocks(count, order, BLOCK_SIZE=TOKENS)
both = BlockMask.from_kv_blocks(count, order, BLOCK_SIZE=TOKENS, mask_mod=same_sentence)
pairs = create_block_mask(same_sentence, None, None, LENGTH, LENGTH, device="cpu", BLOCK_SIZE=TOKENS)
print("torch", torch.__version__)
print("blocks that are kept:", blocks.to_dense()[0, 0].tolist(), "left out:", f"{blocks.sparsity():.0f} %")
assert torch.equal(blocks.to_dense()[0, 0], torch.eye(SENTENCES, dtype=torch.int32)), "the behaviour has changed"
parts = zip(*(part.split(TOKENS, 2) for part in heads))
alone = torch.cat([scaled_dot_product_attention(*sentence) for sentence in parts], 2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    unmasked = flex_attention(*heads)
    masks = {"blocks": blocks, "blocks and pairs": both, "create_block_mask": pairs}
    outputs = {name: flex_attention(*heads, block_mask=mask) for name, mask in masks.items()}
outputs["blocks, compiled"] = torch.compile(flex_attention)(*heads, block_mask=blocks)
effect, wrong = {}, {}
for name, output in outputs.items():
    effect[name] = (output - unmasked).abs().amax((0, 2, 3))
    wrong[name] = float((output - alone).abs().max())
    print(f"{name}: effect by head", [round(value, 2) for value in effect[name].tolist()], end="; ")
    print(f"largest difference from the sentences alone: {wrong[name]:.6f}")
print("warnings:", {str(one.message).split(" - ")[0] for one in caught})
assert not any("block" in str(one.message).lower() for one in caught), "the behaviour has changed"
assert not effect["blocks"].any() and wrong["blocks"] > 1, "the behaviour has changed"
for name in ("blocks and pairs", "create_block_mask", "blocks, compiled"):
    assert effect[name].min() > 0.8 and effect[name].max() < 1.3, "the behaviour has changed"
    assert wrong[name] < 1e-5, "the behaviour has changed"
PYTHON
TORCHINDUCTOR_CACHE_DIR="$folder/cache" "$folder/venv/bin/python" "$folder/blocks.py" 2>"$folder/log" || {
  cat "$folder/log"
  exit 1
}
