"""Reading prices in the forms people have. `load_prices` does it; the other files are its parts.

Loaded on first use: a market needs this package's errors and calendar, and `load_prices` makes a market.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name == "load_prices":
        from rlbench.prices.load import load_prices

        return load_prices
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
