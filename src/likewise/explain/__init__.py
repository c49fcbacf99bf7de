"""Why two texts match: tokens, words and phrases whose contributions add up to the score."""

from likewise.explain.explanation import Alignment, Explanation, Side, WordTable, explain_pair
from likewise.explain.words import Word, roll_up, words_of

__all__ = ["Alignment", "Explanation", "Side", "Word", "WordTable", "explain_pair", "roll_up", "words_of"]
