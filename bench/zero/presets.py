"""Recipes by board size: what ``keima zero --size N`` does where nothing else is said."""

from typing import Any, NamedTuple


class Recipe(NamedTuple):
    """Options that differ from the declared defaults, by their names."""

    shape: dict[str, int]
    options: dict[str, Any]


GUMBEL: dict[str, Any] = {"candidates": 8, "visits": 16, "full_share": 1.0}
"""At equal time on 7x7 ahead of playout caps and fixed visits (docs/lab/2026-11-25-ways-of-searching.md)"""

# On 9x9 fast searches find two of three moves: twice as many results for the value, at the same strength of the policy
# (docs/lab/2026-11-26-caps-and-gumbel.md).
RECIPES = {
    5: Recipe(
        {"blocks": 4, "channels": 32, "reply": 1},
        {
            **GUMBEL, "first_rows": 4_000, "rows": 3_000, "window": 8_000,
            "batch": 128, "at_once": 64, "rate": 2e-3, "warmup": 100, "ema": 0.99,
        },
    ),
    7: Recipe(
        {"blocks": 4, "channels": 48, "reply": 1},
        {
            **GUMBEL, "first_rows": 8_000, "rows": 6_000, "temperature": 0.65,
            "early_share": 0.03, "window": 16_000, "batch": 128, "at_once": 48, "rate": 2e-3, "warmup": 200,
            "ema": 0.995, "cooldown": 0.25, "ladder_share": 0.03, "gnugo_share": 0.02,
        },
    ),
    9: Recipe(
        {"blocks": 6, "channels": 64, "reply": 1},
        {
            **GUMBEL, "full_share": 0.33, "fast_visits": 6, "first_rows": 10_000, "rows": 10_000, "window": 25_000,
            "batch": 128, "at_once": 32, "rate": 1e-3, "warmup": 300, "ema": 0.998,
        },
    ),
    13: Recipe(
        {"blocks": 6, "channels": 96, "reply": 1},
        {
            "visits": 128, "fast_visits": 24, "first_rows": 20_000, "rows": 20_000, "window": 50_000,
            "batch": 128, "at_once": 32, "warmup": 300, "ema": 0.999,
        },
    ),
    19: Recipe(
        {"blocks": 10, "channels": 128, "reply": 1},
        {
            "visits": 600, "fast_visits": 100, "first_rows": 100_000, "rows": 50_000, "window": 250_000,
            "window_power": 0.75, "batch": 256, "at_once": 64, "warmup": 1000, "ema": 0.999,
        },
    ),
}  # fmt: skip
"""By the largest board they are for"""


KOMI = {2: 1.0, 3: 9.0, 4: 2.0, 5: 24.0, 6: 4.0, 7: 9.0}
"""At which two equal sides have equal chances, or nearly; 7 on other boards. Black takes all of 5x5: its 25 would leave
nothing to win."""


def recipe_for(size: int) -> Recipe:
    """The recipe of a board size: that of the next larger board, or of the largest, at the komi of its own."""
    recipe = next((recipe for largest, recipe in RECIPES.items() if size <= largest), RECIPES[max(RECIPES)])
    return recipe._replace(options={"komi": KOMI.get(size, 7.0), **recipe.options})
