"""Glossary of the report."""

from __future__ import annotations

from anaphora.base.translation import _, pgettext


def glossary() -> list[tuple[str, str, str]]:
    """Return the entries of the glossary as (term, meaning, source); the source may be empty."""
    return [
        (
            _("antecedent"),
            _("What the pronoun stands for. Whatever else it might have stood for is another candidate."),
            "",
        ),
        (
            _("attention weight"),
            _(
                "How much of what a word takes in comes from each other word; the weights of one word, its row, sum to "
                "1."
            ),
            _("Vaswani et al. 2017, section 3.2.1"),
        ),
        (
            pgettext("glossary", "head"),
            _("One of several such tables of weights in each layer of the model. Layers and heads are counted from 0."),
            _("Vaswani et al. 2017, section 3.2.2"),
        ),
        (
            _("candidate accuracy"),
            _("How often the antecedent gets more weight from the pronoun than every other candidate."),
            _("after Clark et al. 2019, section 4.3"),
        ),
        (
            _("weight on the antecedent, lift"),
            _(
                "The weight is that on all the antecedent’s words together (its mass); lift is this weight divided by "
                "that of even attention, so that 1 means nothing special."
            ),
            "",
        ),
        (
            _("set cue, role cue"),
            _(
                "With a set cue the words alone decide, in whatever order (gender, number, what can be eaten). With a "
                "role cue order and roles decide (who did what to whom)."
            ),
            "",
        ),
        (
            _("quad, minimal pair"),
            _(
                "A quad is four sentences: two cues, each picking another candidate, in both orders. A minimal pair "
                "differs in the cue alone. Looking at position or at the candidate alone gets no quad right."
            ),
            "",
        ),
        (
            _("meaning, position, entity"),
            _(
                "From the four sentences of a quad: how far the weight follows the right answer, whoever comes first, "
                "or always the same candidate."
            ),
            "",
        ),
        (
            _("95 % interval"),
            _(
                "A range made so that it holds the true number in about 95 of 100 repetitions with other sentence "
                "templates."
            ),
            _("bootstrap over templates; Efron 1979"),
        ),
        (
            _("p, Holm’s correction"),
            _(
                "How often chance alone would do at least as well. The more questions are asked, the more often one "
                "succeeds by chance; the correction makes up for that."
            ),
            _("Holm 1979"),
        ),
        (
            pgettext("glossary", "untrained models"),
            _(
                "The same network at random starts. Each chooses its best head too, so that picking the best of many "
                "is part of the comparison."
            ),
            "",
        ),
        (
            _("edge, knockout"),
            _(
                "An edge is the way from one word to another. A knockout closes it and lets the model answer again; "
                "“value only” keeps the weight and takes away what flows along it."
            ),
            "",
        ),
        (
            _("matched edge"),
            _(
                "Another edge that is as strong, or as far away, and has nothing to do with the antecedent: knocking "
                "out any edge may hurt, so the antecedent’s must hurt more."
            ),
            "",
        ),
        (
            _("attention-pattern patching"),
            _(
                "The pronoun’s weights are taken from the other sentence of its minimal pair, all else stays. If the "
                "answer becomes that sentence’s, the weights carry the decision."
            ),
            _("Heimersheim and Nanda 2024"),
        ),
        (
            _("norm of weighted value"),
            _("The length of what is sent, not the weight alone."),
            _("Kobayashi et al. 2020"),
        ),
        (
            _("rollout, flow"),
            _("Weights followed through all layers, as products or as the flow through pipes."),
            _("Abnar and Zuidema 2020"),
        ),
        (
            _("value zeroing"),
            _("How much a word’s vector changes when another word’s value is set to zero."),
            _("Mohebbi et al. 2023"),
        ),
        (
            _("integrated gradients"),
            _("How much each word’s embedding adds to the model’s own answer."),
            _("Sundararajan et al. 2017"),
        ),
        (
            _("reciprocal rank"),
            _("1 where the antecedent is the strongest candidate, 1/2 where it is second, and so on; mean."),
            "",
        ),
        (
            _("attention score (MAS)"),
            _(
                "Over all heads together, each keeping only the weight of the candidate that it favours: how often the "
                "antecedent then has most."
            ),
            _("Klein and Nabi 2019"),
        ),
        (
            _("kappa"),
            _("Agreement of the head’s candidate with the model’s own answer beyond chance: 0 none, 1 full."),
            _("Cohen 1960"),
        ),
        (
            _("Spearman’s rho"),
            _("Whether two quantities rise together: 1 always, 0 no relation, −1 one falls."),
            _("Spearman 1904"),
        ),
    ]
