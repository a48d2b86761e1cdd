"""When the clock looks at all phases, and for how long it then looks away.

A phase costs the clock a microsecond or two; in a loop of a few hundred microseconds a step that is some percent. So in such a
loop it looks for a while, then looks away for longer. What it may take is fixed, how long it looks follows from that.
"""

from __future__ import annotations

import random

WINDOW_S = (0.02, 0.06)  # it looks for so long at a time
LOOKING = 0.003  # of the run's time, what looking may take
ALLOWANCE_S = 2.0  # the looking of so many seconds may be done ahead, for a block that is soon over
AWAY_PRICE = 1 / 3  # of a phase's price: what the end of a step costs while it looks away
LEAST_AWAY = 2.0  # times as long as it looked
GROWS_AFTER_S = 120.0  # windows then grow with the run, so that there are not too many


class Windows:
    """How long to look and to look away, by what was seen so far.

    Lengths vary, so that they fall in step with nothing.

    Args:
        price_s: seconds that one phase costs the run.
    """

    def __init__(self, price_s: float, seed: int = 0) -> None:
        self.price_s, self.lengths = price_s, random.Random(seed)
        self.looked_s = self.all_s = 0.0
        self.phases = self.ends = 0

    def looked(self, seconds: float, phases: int) -> None:
        """So long it looked, and saw so many phases."""
        self.looked_s, self.all_s, self.phases = self.looked_s + seconds, self.all_s + seconds, self.phases + phases

    def looked_away(self, seconds: float, ends: int = 0) -> None:
        """So long it looked away, and saw so many ends of steps."""
        self.all_s, self.ends = self.all_s + seconds, self.ends + ends

    @property
    def cost(self) -> float:
        """Of the time, what watching took."""
        return self.price_s * (self.phases + AWAY_PRICE * self.ends) / self.all_s if self.all_s else 0.0

    @property
    def share(self) -> float:
        """Of the time, how much it may look; above 1 where it need never look away."""
        cost = self.price_s * self.phases / self.looked_s if self.looked_s else 0.0
        return LOOKING / cost if cost else float("inf")

    def look_s(self) -> float:
        return self._scale() * self.lengths.uniform(*WINDOW_S)

    def away_s(self) -> float:
        """0 where it may go on looking."""
        if self.share >= 1:
            return 0.0
        window = self._scale() * sum(WINDOW_S) / 2
        owed = (self.looked_s + window) / self.share - self.all_s - ALLOWANCE_S
        return max(LEAST_AWAY * window, owed) * self.lengths.uniform(0.8, 1.2)

    def _scale(self) -> float:
        return max(1.0, self.all_s / GROWS_AFTER_S)
