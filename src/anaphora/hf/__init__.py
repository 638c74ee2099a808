"""Attention maps and interventions for models of `transformers`, including exported runs.

`import anaphora.hf` registers the model class of exported runs with the Auto classes of `transformers`, so that no code
from the Hugging Face Hub runs:

    import anaphora.hf
    from transformers import AutoModel, AutoTokenizer

    model, tokenizer = AutoModel.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    maps = model(**tokenizer("Anna left.", return_tensors="pt"), output_attentions=True).attentions

The folder is the output of `anaphora export format=anaphora`. The extra [transformers] must be installed.
"""

from __future__ import annotations

from importlib.util import find_spec

from anaphora.base.hub import import_transformers

if find_spec("transformers") is not None:
    import_transformers()
    from anaphora.hf.auto import AnaphoraConfig as AnaphoraConfig
    from anaphora.hf.auto import AnaphoraForMaskedLM as AnaphoraForMaskedLM
    from anaphora.hf.auto import AnaphoraModel as AnaphoraModel
