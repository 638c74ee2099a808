"""Coreference clusters from a model's answers: each mention is linked to its predicted antecedent."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from anaphora.api.pronoun_answers import answers
from anaphora.api.runs import OpenRun
from anaphora.base.language import language_of
from anaphora.data.corpora.clusters import ClusterDocument, coreference_document
from anaphora.data.corpora.coreference import Mention, mention_questions
from anaphora.data.example import Span

if TYPE_CHECKING:
    from anaphora.hf.reader import TransformersModel


def predicted_clusters(
    model: OpenRun | TransformersModel, document: ClusterDocument, forms: Collection[str], words: int
) -> list[list[Span]]:
    """Predict the clusters of a document with gold mentions.

    Each mention of one of the forms is linked to the earlier mention in its passage that the model chooses, if any.
    Linked mentions form a cluster; a mention without links is a cluster of its own.

    Args:
        model: a run with a prediction head, or a language model.
        document: document with gold mentions; its clusters are not used otherwise.
        forms: forms of the mentions to link, from `word_classes.FORMS`.
        words: largest number of words in a passage, which is one input of the model.

    Returns:
        Clusters in the order of their first mentions, each mention as (first word, last word + 1).

    Raises:
        UserError: the model does not answer pronoun questions, or a passage is too long for it.
    """
    read = coreference_document(document, language_of("".join(document.words)))
    questions = [one for one in mention_questions(read, words) if one[0].form in forms]
    clusters = {_span(mention): [_span(mention)] for mention in read.mentions}
    answered = answers(model, [example for _, _, example in questions])  # type: ignore[arg-type]
    for (mention, earlier, example), answer in zip(questions, answered, strict=True):
        if answer.chosen is not None:
            named = earlier[example.candidates.index((answer.chosen.span,))]
            _merge(clusters, _span(mention), _span(named))
    return sorted({id(one): sorted(one) for one in clusters.values()}.values())


def _span(mention: Mention) -> Span:
    return mention.first, mention.end


def _merge(clusters: dict[Span, list[Span]], one: Span, other: Span) -> None:
    """Merge the clusters of two mentions."""
    kept, added = clusters[other], clusters[one]
    if kept is added:
        return
    kept += added
    for mention in added:
        clusters[mention] = kept
