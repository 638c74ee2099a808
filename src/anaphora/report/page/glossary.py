"""The words of the report that a reader may not know, each with its source where it has one."""

from __future__ import annotations

GLOSSARY: tuple[tuple[str, str, str], ...] = (
    ("antecedent", "What the pronoun stands for. Whatever else it might have stood for is another candidate.", ""),
    ("attention weight", "How much of what a word takes in comes from each other word; the weights of one word, its "
     "row, sum to 1.", "Vaswani et al. 2017, section 3.2.1"),
    ("head", "One of several such tables of weights in each layer of the model. Layers and heads are counted from 0.",
     "Vaswani et al. 2017, section 3.2.2"),
    ("candidate accuracy", "How often the antecedent gets more weight from the pronoun than every other candidate.",
     "after Clark et al. 2019, section 4.3"),
    ("mass, lift", "Mass is the weight on all the antecedent’s words together; lift is the mass divided by that of "
     "even attention, so that 1 means nothing special.", ""),
    ("set cue, role cue", "With a set cue the words alone decide, in whatever order (gender, number, what can be "
     "eaten). With a role cue order and roles decide (who did what to whom).", ""),
    ("quad, minimal pair", "A quad is four sentences: two cues, each picking another candidate, in both orders. A "
     "minimal pair differs in the cue alone. Looking at position or at the candidate alone gets no quad right.", ""),
    ("meaning, position, entity", "From the four sentences of a quad: how far the weight follows the right answer, "
     "whoever comes first, or always the same candidate.", ""),
    ("95 % interval", "A range made so that it holds the true number in about 95 of 100 repetitions with other "
     "sentence templates.",
     "bootstrap over templates; Efron 1979"),
    ("p, Holm’s correction", "How often luck alone would do at least as well. The more questions are asked the more "
     "often one succeeds by luck; the correction makes up for that.", "Holm 1979"),
    ("untrained models", "The same network at random starts. Each chooses its best head too, so that picking the best "
     "of many is part of the comparison.", ""),
    ("edge, knockout", "An edge is the way from one word to another. A knockout closes it and lets the model answer "
     "again; “value only” keeps the weight and takes away what flows along it.", ""),
    ("matched edge", "Another edge that is as strong, or as far away, and has nothing to do with the antecedent: "
     "knocking out any edge may hurt, so the antecedent’s must hurt more.", ""),
    ("attention-pattern patching", "The pronoun’s weights are taken from the other sentence of its minimal pair, "
     "all else stays. If the answer becomes that sentence’s, the weights carry the decision.",
     "Heimersheim and Nanda 2024"),
    ("norm of weighted value", "The length of what is sent, not the weight alone.", "Kobayashi et al. 2020"),
    ("rollout, flow", "Weights followed through all layers, as products or as the flow through pipes.",
     "Abnar and Zuidema 2020"),
    ("value zeroing", "How much a word’s vector changes when another word’s value is set to zero.",
     "Mohebbi et al. 2023"),
    ("integrated gradients", "How much each word’s embedding adds to the model’s own answer.",
     "Sundararajan et al. 2017"),
    ("reciprocal rank", "1 where the antecedent is the strongest candidate, 1/2 where it is second, and so on; mean.",
     ""),
    ("attention score (MAS)", "Over all heads together, each keeping only the weight of the candidate that it "
     "favours: how often the antecedent then has most.",
     "Klein and Nabi 2019"),
    ("kappa", "Agreement of the head’s candidate with the model’s own answer beyond luck: 0 none, 1 full.",
     "Cohen 1960"),
    ("Spearman’s rho", "Whether two quantities rise together: 1 always, 0 no relation, −1 one falls.", "Spearman 1904"),
)  # fmt: skip
"""Term, meaning, source."""
