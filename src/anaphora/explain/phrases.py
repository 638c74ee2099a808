"""What the walk-through calls every step, and why it is done. Names in braces are filled in."""

from __future__ import annotations

from typing import Any

from anaphora.base.locale.translation import N_, in_language

_PHRASES = {
    "inputs": {
        "title": N_("The input X"),
        "text": N_(
            "One row for each token. A row is the token's vector: {features} numbers that stand for what is "
            "known about it."
        ),
    },
    "second": {
        "title": N_("The sequence that is read"),
        "text": N_(
            "Another sequence C, one row for each of its tokens. Queries are made of X, keys and values of C: X "
            "asks, C answers."
        ),
    },
    "given": {
        "title": N_("Q, K and V are given"),
        "text": N_(
            "This calculation begins after the projections: a query asks, each key says what its token offers, "
            "and each value holds what is handed over."
        ),
    },
    "embedding": {
        "title": N_("From words to vectors"),
        "text": N_("Each token has a trained vector of {features} numbers."),
        "scaled": N_("It is multiplied by the square root of the width, {scale}."),
        "added": N_("A vector of its position is added, so that the order of the words is not lost."),
        "marked": N_("Candidates carry a mark of their number besides."),
    },
    "embedding_norm": {
        "title": N_("Normalise the embeddings"),
        "text": N_("Every token's numbers are brought to one scale before the first layer reads them."),
    },
    "before": {
        "title": N_("Through the layers before"),
        "text": N_(
            "Layers are counted from 0. Before layer {layer} the vectors have passed {layer} of them, each of "
            "which did what the next steps show."
        ),
    },
    "norm": {
        "title": N_("Normalise each row"),
        "text": N_("Every token's numbers are brought to one scale before attention reads them. Rows do not mix here."),
    },
    "content": {
        "title": N_("What the values are made of"),
        "text": N_(
            "In this run, values are made of the tokens' own vectors in every layer and not of the hidden "
            "states, so that a weight on a token is a weight on that word."
        ),
    },
    "queries": {
        "title": N_("Queries: what each token asks for"),
        "text": N_("Each row times W_Q gives that token's query."),
        "none": N_("There is no W_Q here: the vectors themselves are the queries."),
        "empty": N_("This attention is uniform: it asks for nothing, and every query is zero."),
    },
    "keys": {
        "title": N_("Keys: what each token offers"),
        "text": N_("Each row times W_K gives that token's key. Keys are compared with queries."),
        "none": N_("There is no W_K here: the queries serve as keys too."),
        "empty": N_("This attention is uniform: every key is zero."),
    },
    "values": {
        "title": N_("Values: what each token hands over"),
        "text": N_("Each row times W_V gives that token's value. Weights decide how much of it is taken."),
        "none": N_("There is no W_V here: the vectors themselves are the values."),
    },
    "turn": {
        "title": N_("Positions turn queries and keys"),
        "text": N_(
            "Rotary encoding: pairs of numbers are turned by an angle that grows with the token's position. What "
            "two tokens then have in common depends on how far apart they stand."
        ),
    },
    "products": {
        "title": N_("Compare every query with every key"),
        "text": N_(
            "Q times K turned on its side: each cell is the inner product of one query and one key, large where "
            "they point the same way. A row belongs to the token that attends, a column to the token attended "
            "to."
        ),
    },
    "scale": {
        "title": N_("Divide by the square root of d_k"),
        "text": N_(
            "With d_k = {size} numbers in a key, products are divided by √{size} = {root}. Otherwise they would "
            "grow with d_k, and the softmax would put nearly all weight on one token."
        ),
    },
    "bias": {
        "title": N_("Add what the distance is worth"),
        "text": N_(
            "The position encoding adds a number to each score that depends only on how far apart the two tokens stand."
        ),
    },
    "shift": {
        "title": N_("Softmax, first: shift each row"),
        "text": N_(
            "The largest score of each row is subtracted. The weights stay the same, since a common factor "
            "cancels out, and no exponential is too large to be computed."
        ),
        "large": N_(
            "Here the largest score is {top}: e to that power has {figures} figures before the point, and for "
            "scores above 709 it no longer fits a 64-bit number at all."
        ),
    },
    "exponential": {
        "title": N_("Softmax, second: exponentials and their sum"),
        "text": N_("e to the power of each shifted score is positive, and 1 for the largest. z is the sum of the row."),
    },
    "weights": {
        "title": N_("Softmax, third: weights that sum to 1"),
        "text": N_(
            "Each exponential divided by its row's sum. This is the attention map: how much each token takes "
            "from every token, itself included."
        ),
    },
    "weighted": {
        "title": N_("Weigh the values of the current row"),
        "text": N_(
            "Each token's value times the weight that the current row gives it. Tokens with little weight nearly "
            "vanish."
        ),
    },
    "output": {
        "title": N_("Add them up: the output"),
        "text": N_(
            "The weighted values of a row added up, which is the product of A and V: each token's new vector is "
            "a mixture of all values."
        ),
    },
    "heads": {
        "title": N_("The heads side by side"),
        "text": N_(
            "The features are split into {heads} heads, which do the same steps with numbers of their own. Each "
            "has its own map; the steps before showed head {head}."
        ),
    },
    "together": {
        "title": N_("Put the heads' outputs side by side"),
        "text": N_(
            "What the {heads} heads took is put side by side, so that each token again has one row of {features} "
            "numbers."
        ),
    },
    "projected": {
        "title": N_("Mix the heads: W_O"),
        "text": N_("The output projection combines what the heads have read."),
    },
    "residual": {
        "title": N_("Add it to what was there"),
        "text": N_("The residual connection: attention adds to a token's vector and does not replace it."),
    },
    "first_norm": {
        "title": N_("Normalise each row"),
        "text": N_("Every token's numbers are brought to one scale after the sum."),
    },
    "second_norm": {
        "title": N_("Normalise each row again"),
        "text": N_("Every token's numbers are brought to one scale before the feed-forward network reads them."),
    },
    "feed_forward": {
        "title": N_("The feed-forward network"),
        "text": N_(
            "Each token alone is widened to {inside} numbers, of which an activation lets some pass, and "
            "narrowed again to {features}."
        ),
    },
    "second_residual": {
        "title": N_("Add it again: the output of layer {layer}"),
        "text": N_("The second residual connection ends the block."),
    },
    "last_norm": {
        "title": N_("Normalise: the output of layer {layer}"),
        "text": N_("The block ends with a normalisation after its second sum."),
    },
    "after": {
        "title": N_("The encoder's output"),
        "text": N_("The vectors pass the layers that are left ({layers} here)."),
        "normed": N_("A last normalisation ends the encoder."),
    },
    "answer": {
        "title": N_("The model's answer"),
        "text": N_(
            "The prediction head reads the pronoun's vector and gives each candidate a score; the softmax of the "
            "scores is the share of each."
        ),
    },
    "signs": {
        "norm": N_("norm"),
        "turn": N_("turn"),
        "layers": N_("layers"),
        "widen": N_("widen, activate"),
        "narrow": N_("narrow"),
        "sum": N_("sum"),
    },
    "labels": {
        "score": N_("score"),
        "share": N_("share"),
        "none_of_them": N_("none of them"),
    },
    "words": {
        "colon": N_(": "),
        "comma": N_(", "),
        "back": N_("Back"),
        "next": N_("Next"),
        "steps": N_("Steps"),
        "followed": N_("Current row"),
        "keys": N_(
            "Arrow keys: left and right go through the steps, up and down choose the current row. Click or touch "
            "a cell to see how it is computed, or go to a matrix with Tab and move in it with the arrow keys; "
            "Enter makes its row the current one."
        ),
        "slip": N_("A slip in the published calculation"),
        "published": N_("Published"),
        "right": N_("Right"),
        "script": N_("The steps need JavaScript, which is off in this browser."),
        "highest": N_("Largest of the current row"),
        "negative": N_("below zero"),
        "positive": N_("above zero"),
        "scaled": N_("to the largest number, below the matrix's name"),
        "scaled_each": N_("each matrix to its own largest number, below its name"),
        "share": N_("share of the row"),
        "attends": N_("What “{word}” attends to"),
        "points": N_("The weights show what this head attends to, not that the answer comes from there."),
        "more": N_("All steps: form=terminal, or form=page to step through them."),
        "examples": N_("Examples"),
    },
    "run": {
        "title": N_("Layer {layer}, head {head}: {text}"),
        "about": N_(
            "Run {run}: {layers} layers, heads in each: {heads}, features a token: {width}. All numbers are the "
            "encoder's own, in 64-bit arithmetic."
        ),
        "unknown": N_("Not in this model's vocabulary: {words}. What the model does there means little."),
        "subwords": N_("Split into subwords that the model knows: {words}. What it does there means little."),
        "characters": N_(
            "Candidates that are no words of the vocabulary, read one character at a time: {words}. What the "
            "model does there means little."
        ),
        "compared": N_(
            "The prediction head compares the candidates' own states with the pronoun's: its answer needs no "
            "attention between them."
        ),
        "answer": N_("The model answers: {answer}."),
    },
}


class Phrases:
    """The words of one language."""

    def __init__(self, language: str) -> None:
        self.language = language

    def __call__(self, section: str, name: str, **values: Any) -> str:
        """Return one phrase with its names filled in."""
        phrase = in_language(_PHRASES[section][name], self.language)
        return phrase.format(**values) if values else phrase

    def joined(self, *sentences: str) -> str:
        """Join sentences, with a blank between them where the language has one."""
        return ("" if self.language == "zh" else " ").join(sentences)

    def section(self, section: str) -> dict[str, str]:
        """Return all phrases of a section by name."""
        return {name: in_language(phrase, self.language) for name, phrase in _PHRASES[section].items()}
