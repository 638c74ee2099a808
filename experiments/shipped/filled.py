"""Answer sentences with a causal language model: python -m experiments.shipped.filled model=FOLDER 'files=[FILE]'.

Each candidate replaces the pronoun, and the one after which the rest of the text is most likely is the answer (Trinh
and Le 2018, "A Simple Method for Commonsense Reasoning", partial scoring). What the pronoun itself tells, such as
gender, is lost.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from anaphora.cli import run_program
from experiments.shipped.resolved import in_place_of
from experiments.shipped.settings import FilledSentences

if TYPE_CHECKING:
    from anaphora.data.example import Example

_TEXTS_AT_ONCE = 32
_AFTER_AN_OBJECT = re.compile(
    r"[^\w\s]|$| (?:to|the|a|an|and|but|for|in|on|at|with|because|so|when|if|by|from|after|before|as|that|all|too|"
    r"again|back|up|home|off|out|about|of|into|until|while|since|some|down|away|over)\b"
)
"""What follows "her" as an object; otherwise it is a possessive."""


def work(settings: FilledSentences) -> None:
    """Print the share of correct answers of each file in %, with the 95 % interval over minimal pairs, and by type."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from anaphora.analysis.scores.statistics import cluster_interval
    from anaphora.base.console import say
    from anaphora.data.corpora.tables import read
    from anaphora.settings.data import OwnExamples

    model: Any = AutoModelForCausalLM.from_pretrained(settings.model).float().eval()
    tokenizer: Any = AutoTokenizer.from_pretrained(settings.model)
    for path in settings.files:
        examples = read(OwnExamples(path=path))[0][settings.split]
        right = [100.0 * hit for hit in hits(model, tokenizer, examples)]
        low, high = cluster_interval(right, [example.group for example in examples]) or (0.0, 100.0)
        of_type = defaultdict(list)
        for example, hit in zip(examples, right, strict=True):
            of_type[example.factors["type"]].append(hit)
        types = ", ".join(f"{name} {sum(values) / len(values):.1f}" for name, values in of_type.items())
        say(f"{path}: {sum(right) / len(right):.1f} [{low:.1f}, {high:.1f}]; {types}")


def hits(model: Any, tokenizer: Any, examples: Sequence[Example]) -> Iterator[bool]:
    """Yield for each example whether its most likely candidate is an antecedent."""
    parts = [filled(example, number) for example in examples for number in range(len(example.candidates))]
    batches = (parts[start : start + _TEXTS_AT_ONCE] for start in range(0, len(parts), _TEXTS_AT_ONCE))
    likelihoods = chain.from_iterable(log_likelihoods(model, tokenizer, batch) for batch in batches)
    for example in examples:
        own = list(islice(likelihoods, len(example.candidates)))
        yield own.index(max(own)) in example.antecedents


def filled(example: Example, number: int) -> tuple[str, str]:
    """Return the text up to the pronoun, with a candidate in place of the pronoun, and the rest of the text."""
    start, end = example.pronoun
    pronoun, noun = example.text[start:end], example.words(number)
    rest = example.text[end:]
    if example.language == "en":
        if pronoun.lower() == "her":
            form = "him" if _AFTER_AN_OBJECT.match(rest) else "his"
            pronoun = form.capitalize() if pronoun[0].isupper() else form
        noun = in_place_of(pronoun, noun)
    return example.text[:start] + noun, rest


def log_likelihoods(model: Any, tokenizer: Any, parts: Sequence[tuple[str, str]]) -> list[float]:
    """Return for each pair of texts the log-likelihood of the second one after the first one."""
    import torch

    texts = [first + second for first, second in parts]
    encoded = [tokenizer(text, return_offsets_mapping=True, add_special_tokens=False) for text in texts]
    opening = [tokenizer.bos_token_id] if tokenizer.bos_token_id is not None else []
    longest = max(len(each["input_ids"]) for each in encoded) + len(opening)
    ids, attended, scored = (torch.zeros(len(texts), longest, dtype=torch.long) for _ in range(3))
    for row, (each, (first, _)) in enumerate(zip(encoded, parts, strict=True)):
        tokens = [*opening, *each["input_ids"]]
        ids[row, : len(tokens)] = torch.tensor(tokens)
        attended[row, : len(tokens)] = 1
        for place, (_, stop) in enumerate(each["offset_mapping"], start=len(opening)):
            scored[row, place] = stop > len(first)
    with torch.inference_mode():
        predicted = model(input_ids=ids, attention_mask=attended).logits[:, :-1].log_softmax(-1)
    of_token = predicted.gather(2, ids[:, 1:, None]).squeeze(2)
    sums: list[float] = (of_token * scored[:, 1:]).sum(1).tolist()
    return sums


if __name__ == "__main__":
    run_program(FilledSentences, work)
