"""Models of `transformers`, with their attention read and edited where it is computed, and our runs as such models.

`import anaphora.hf` makes the runs of this package known to the Auto classes of `transformers`, with code that is
installed, and none from the hub:

import anaphora.hf
from transformers import AutoModel, AutoTokenizer

model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
maps = model(**tokenizer("Anna left.", return_tensors="pt"), output_attentions=True).attentions

The folder is what `scripts/export.py format=anaphora` wrote. Needs the extra [transformers].
"""

from __future__ import annotations

from importlib.util import find_spec

if find_spec("transformers") is not None:
    from anaphora.hf.auto import AnaphoraConfig as AnaphoraConfig
    from anaphora.hf.auto import AnaphoraForMaskedLM as AnaphoraForMaskedLM
    from anaphora.hf.auto import AnaphoraModel as AnaphoraModel
