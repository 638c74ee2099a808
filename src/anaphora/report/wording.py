"""Names of measures, heads and groups of measurements, and lists in sentences, in the language of the page.

Every function translates when it is called, since one process may write pages in two languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from anaphora.analysis.evidence.evidence import claim_groups, every_group
from anaphora.analysis.results.scores import Groups
from anaphora.base.translation import _, pgettext, spoken_language

T = TypeVar("T")


def label(names: Mapping[str, str], name: str) -> str:
    """Return the label of a key; a key missing from `names` is shown with spaces for underscores."""
    return names.get(name, name.replace("_", " "))


def language_name(code: str) -> str:
    """Return the name of a language: "English" for "en"."""
    return language_names().get(code, code)


def group_label(code: str, kind: str) -> str:
    """Return the label of a group: "English, role cues", or "English" for the kind "all"."""
    name = language_name(code)
    if kind == "all":
        return name
    return _("{spoken}, {kind}").format(spoken=name, kind=label(kind_names(), kind))


@dataclass(frozen=True)
class Group(Generic[T]):
    """Measurement of one language and kind of cue; `kind` is "all" for the whole language."""

    language: str
    kind: str
    cell: T

    @property
    def label(self) -> str:
        """Return the label of the group: "English, role cues"."""
        return group_label(self.language, self.kind)


def kind_groups(part: Groups[T] | None) -> Iterator[Group[T]]:
    """Yield a group per language and kind of cue, or per language if its kinds were not measured separately."""
    return (Group(language, kind, cell) for language, kind, cell in claim_groups(part))


def all_groups(part: Groups[T] | None) -> Iterator[Group[T]]:
    """Yield the group of all items of each language, each followed by the groups of its kinds of cue."""
    return (Group(language, kind, cell) for language, kind, cell in every_group(part))


def head_name(layer: int, head: int | None = None) -> str:
    """Return the name of a head, "layer 2 head 1", or of a layer if `head` is None."""
    if head is None:
        return _("layer {layer}").format(layer=layer)
    return _("layer {layer} head {head}").format(layer=layer, head=head)


def heads_listed(heads: Sequence[tuple[int, int]]) -> str:
    """Return heads by layer, for use in a sentence: "layer 2 heads 0 and 3; layer 3 head 1"."""
    by_layer: dict[int, list[int]] = {}
    for layer, head in heads:
        by_layer.setdefault(layer, []).append(head)
    return clauses(
        [
            head_name(layer, numbers[0])
            if len(numbers) == 1
            else _("layer {layer} heads {heads}").format(layer=layer, heads=listed([str(number) for number in numbers]))
            for layer, numbers in by_layer.items()
        ]
    )


def value_label(value: str) -> str:
    """Return the label of a factor's value; a range such as "3-5" gets an en dash."""
    ends = re.fullmatch(r"(\d+)-(\d+)", value)
    return _("{low}–{high}").format(low=ends[1], high=ends[2]) if ends else label(factor_value_names(), value)


def listed(parts: Sequence[str]) -> str:
    """Join parts into a list in a sentence: "a, b and c"."""
    if len(parts) == 1:
        return parts[0]
    return _("{before} and {last}").format(before=pgettext("list", ", ").join(parts[:-1]), last=parts[-1])


def joined_sentences(sentences: Sequence[str]) -> str:
    """Join sentences, with a space between them except in Chinese."""
    return ("" if spoken_language() == "zh" else " ").join(sentences)


def clauses(parts: Sequence[str]) -> str:
    """Join clauses with semicolons: "a; b"."""
    return _("; ").join(parts)


def kind_names() -> dict[str, str]:
    """Return the names of kinds of cue, by key."""
    return {"all": _("all cues"), "set": _("set cues"), "role": _("role cues")}


def short_measure_names() -> dict[str, str]:
    """Return short names of measures, by key."""
    return {
        "task_accuracy": _("task accuracy"),
        "candidate_accuracy": _("candidate accuracy"),
        "quad_accuracy": _("quads right"),
        "antecedent_mass": _("weight on the antecedent"),
        "random_init": _("untrained models"),
        "chance": _("chance"),
    }


def measure_names() -> dict[str, str]:
    """Return the names of measures, by key."""
    return {
        "task_accuracy": _("task accuracy"),
        "candidate_accuracy": _("candidate accuracy"),
        "quad_accuracy": _("quad accuracy"),
        "minimal_pair_accuracy": _("minimal-pair accuracy"),
        "antecedent_mass": _("weight on the antecedent"),
        "lift": _("lift"),
        "chance": _("chance"),
    }


def baseline_names() -> dict[str, str]:
    """Return the names of baselines, by key."""
    return {
        "chance": _("chance among the cue’s candidates"),
        "random_init": _("untrained models, mean"),
        "random_init_95": _("untrained models, 95th percentile"),
        "nearest": _("nearest"),
        "first": _("first"),
        "subject": _("subject"),
        "longest": _("longest"),
        "most_mentioned": _("most mentioned"),
        "best_offset": _("best offset"),
        "odd_one_out": _("odd one out"),
        "most_frequent": _("most frequent"),
        "entity_cue": _("entity cue"),
        "bag_of_words": _("bag of words"),
        "bag_with_interactions": _("bag with interactions"),
        "bag_by_place": _("bag by place"),
        "words": _("words"),
        "words_and_pairs": _("words and pairs"),
    }


def map_names() -> dict[str, str]:
    """Return the names of kinds of map, by key."""
    return {
        "raw": _("raw weight"),
        "norm": _("norm of weighted value"),
        "rollout": _("rollout"),
        "flow": _("flow"),
        "value_zeroing": _("value zeroing"),
        "integrated_gradients": _("integrated gradients"),
    }


def effect_names() -> dict[str, str]:
    """Return the names of the effects on attention, by key."""
    return {"meaning": _("meaning"), "position": _("position"), "entity": _("entity")}


def control_names() -> dict[str, str]:
    """Return the names of trained controls, by key."""
    return {
        "uniform": _("uniform attention"),
        "frozen_query_key": _("query and key frozen"),
        "shuffled_labels": _("shuffled labels"),
        "no_positions": _("no positions"),
        "masked_tokens": _("masked tokens alone"),
        "pairwise": _("pairwise scorer"),
        "nearest": _("nearest candidate as label"),
    }


def scope_names() -> dict[str, str]:
    """Return the names of knockout scopes, by key."""
    return {
        "head": _("in the chosen head"),
        "layer": _("in its layer"),
        "window": _("in its layer ± 1"),
        "all_layers": _("in every head"),
    }


def edge_names() -> dict[str, str]:
    """Return the names of knocked-out edges, by key."""
    return {
        "gold": _("antecedent"),
        "value_zeroing": _("antecedent, value only"),
        "value_zeroing_others": _("all others, value only"),
        "distractor": _("other candidate"),
        "cue": _("cue"),
        "matched_query": _("matched: another word’s edge"),
        "matched_heads": _("matched: other heads"),
        "matched_distance": _("matched: same distance"),
        "gold_minus_matched": _("antecedent − worst matched"),
    }


def split_names() -> dict[str, str]:
    """Return the names of splits, by key."""
    return {"train": _("train"), "dev": _("dev"), "test": _("test")}


def head_choice_names() -> dict[str, str]:
    """Return descriptions of how the head was chosen, by key."""
    return {"dev": _("chosen on the development split"), "named": _("named, not chosen on the development split")}


def factor_names() -> dict[str, str]:
    """Return the names of factors, by key."""
    return {
        "stratum": _("stratum"),
        "type": _("type"),
        "gender": _("gender"),
        "number": _("number"),
        "distance": _("distance (words)"),
        "candidates": _("candidates"),
        "distractor": _("distractor"),
        "template": _("template"),
    }


def factor_value_names() -> dict[str, str]:
    """Return the names of factor values, by key."""
    return {
        "set": _("set"),
        "role": _("role"),
        "winograd": _("Winograd pairs"),
        "binding": _("reflexives (binding)"),
        "third": _("third person"),
        "before": _("before the event"),
        "inside": _("inside the event"),
        "between": _("between event and reason"),
        "after": _("at the end"),
        "L0": _("compositions: seen in both voices"),
        "L1": _("compositions: seen in the other voice only"),
        "L2": _("compositions: never seen together"),
        "short_text": _("short text"),
        "cataphora": _("pronoun first"),
        "distractor_only": _("names only ever distractors in training"),
        "invented": _("invented names"),
        "selection": _("selection"),
        "gender": _("gender"),
        "number": _("number"),
        "animacy": _("animacy"),
        "causality": _("causality"),
        "voice": _("voice"),
        "reflexive": _("reflexive"),
        "ba_bei": _("ba bei"),
        "composition": _("composition"),
        "none": _("none"),
        "main": _("main"),
        "male": _("male"),
        "female": _("female"),
        "masculine": _("masculine"),
        "feminine": _("feminine"),
        "neuter": _("neuter"),
        "singular": _("singular"),
        "plural": _("plural"),
        "yes": _("yes"),
        "no": _("no"),
        "12 or more": _("12 or more"),
        "9 or more": _("9 or more"),
    }


def language_names() -> dict[str, str]:
    """Return the names of languages, by key."""
    return {"en": _("English"), "zh": _("Chinese")}


def level_names() -> dict[str, str]:
    """Return the names of composition levels, by key; a level says how much of a composition occurs in training."""
    return {
        "set": _("set cues"),
        "L0": _("seen in both voices"),
        "L1": _("seen in the other voice only"),
        "L2": _("never seen together"),
        "unseen_names": _("names never seen"),
        "short_text_L0": _("short texts: seen in both voices"),
        "short_text_L1": _("short texts: seen in the other voice only"),
        "short_text_L2": _("short texts: never seen together"),
    }


def shortcut_names() -> dict[str, str]:
    """Return the names of the shortcut baselines of compositions, by key."""
    return {
        "table_of_wordings": _("table of wordings"),
        "words_with_places": _("words with places"),
        "pairs_with_places": _("pairs with places"),
        "triples_with_places": _("triples with places"),
        "boosted_trees": _("boosted trees"),
        "rule_model": _("model of the rule"),
        "words": _("words"),
        "pairs": _("pairs"),
        "triples": _("triples"),
    }


def mention_type_names() -> dict[str, str]:
    """Return the names of mention types, by key."""
    return {
        "all": _("all mentions"),
        "pronoun": _("pronouns"),
        "proper": _("names"),
        "nominal": _("other nouns"),
        "unknown": _("part of speech unknown"),
    }


def selector_names() -> dict[str, str]:
    """Return the names of rules and heads that select antecedents, by key."""
    return {
        "nearest": _("nearest mention"),
        "head_match": _("same head word, else nearest"),
        "sieve": _("sieve of rules"),
        "words": _("best head, any word of the text"),
        "mentions": _("best head, a mention before it"),
        "preceding": _("best head, a word before it"),
        "one_words": _("one head, any word of the text"),
        "one_preceding": _("one head, a word before it"),
        "one_mentions": _("one head, a mention before it"),
        "untrained_words": _("untrained, any word"),
        "untrained_mentions": _("untrained, a mention before it"),
        "untrained_preceding": _("untrained, a word before it"),
        "paper_head": _("one head of BERT-base"),
    }


def name_policy_names() -> dict[str, str]:
    """Return the display names of the policies that decide which name a pronoun refers to, by key.

    Policies are rules, heads, the model's answers, and a probe.
    """
    return {
        "random": _("guessing"),
        "nearest": _("nearer name"),
        "first": _("first name"),
        "parallel_roles": _("name in the pronoun’s role"),
        "head": _("chosen head"),
        "head_with_threshold": _("chosen head, or neither"),
        "untrained": _("untrained models"),
        "answers": _("the model’s answers"),
        "best_head": _("best head"),
        "best_head_with_threshold": _("best head, with threshold"),
        "best_head_either_direction": _("best head, either direction"),
        "best_head_either_direction_with_threshold": _("best head, either direction, with threshold"),
        "probe_over_heads": _("probe over heads"),
    }


def head_role_names() -> dict[str, str]:
    """Return the names of head roles, by key."""
    return {"positional": _("positional"), "special": _("special"), "cue": _("cue"), "antecedent": _("antecedent")}
