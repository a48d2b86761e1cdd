"""A trading env on one market: choose a target position at every close.

Fill rule: an action chosen after seeing the close of bar t fills at that close; its reward is the log change of equity
from close t to close t+1, all costs of the fill included.

Importing this file also registers the env with Gymnasium, so that
`gymnasium.make("rlbench.envs.trading:rlbench/Trading-v0", market=market)` works anywhere.
"""

import copy
import math
from array import array
from collections.abc import Callable, Sequence
from operator import index
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np
import pandas as pd
from gymnasium.envs.registration import EnvSpec

from rlbench.batch import Layout
from rlbench.envs import checks
from rlbench.envs.history import StepState, episode_frame
from rlbench.envs.portfolio import FLOOR, interest, rebalance, trade_costs

if TYPE_CHECKING:
    from rlbench.market import Market

ENV_ID = "rlbench/Trading-v0"


class TradingEnv(gymnasium.Env):
    """Gymnasium env that trades one market with cash, shares, costs and loans.

    Action: index into `positions`. A position is the share of equity held in the asset after costs (-1 short, 0 flat,
    1 long, 0.5 half, 2 with borrowed money). Choosing the position already held does not trade: the holdings stay and
    the exposure drifts with the price. The account starts flat, before any choice.

    Observation: float32 (window * F + 2,): the features of the last `window` bars, oldest first, the current bar's
    last; then the target position held and the unrealised profit (equity over equity just after the last fill, minus
    1). Everything is clipped to the bounds of `observation_space`. Every observation is a new array.

    Reward: log(equity / previous equity), or `reward(StepState)`. Log rewards of an episode add up to the log of the
    final over the initial equity. `info` has `equity` and `position`.

    End: `terminated` when equity falls to 1e-6 of the initial equity or below (it is then set to that floor, and the
    reward uses the floor); `truncated` at the end of the episode or of the data. Bankruptcy is looked for at closes.

    Randomness: only the random start, from Gymnasium's `np_random`; `reset(seed=s)`, or the `seed` argument, fixes it.

    Args:
        market: anything with `close` (T,) and `features` (T, F), as `rlbench.load_prices` gives.
        positions: target exposures, one an action; fractions, shorts and leverage are allowed.
        fee: share of the traded value paid at each fill, in [0, 1).
        borrow_rate: interest a bar on borrowed cash and shares, taken from cash at every bar held, in [0, 1).
        slippage: purchases fill at close * (1 + slippage), sales at close * (1 - slippage), in [0, 1).
        window: bars of features in an observation.
        episode_length: steps an episode; None runs to the end of the data.
        random_start: start each episode at a uniformly drawn bar, else at the first that has a full window.
            `reset(options={"start": bar})` chooses the bar.
        reward: function of a `StepState`, instead of the log return.
        initial_equity: equity at reset, in units of money.
        observation_clip: bound of every feature and of the unrealised profit.
        seed: seeds the random start as if the first `reset` had been given it.
        render_mode: None is the only one; `history()` gives a DataFrame to plot.

    Raises:
        ValueError: naming the argument, what was found, and what is accepted.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 (Gymnasium's own form)

    def __init__(
        self,
        market: "Market",
        positions: Sequence[float] = (-1, 0, 1),
        fee: float = 1e-4,
        borrow_rate: float = 0.0,
        slippage: float = 0.0,
        window: int = 1,
        episode_length: int | None = 256,
        random_start: bool = True,
        reward: Callable[[StepState], float] | None = None,
        initial_equity: float = 1.0,
        observation_clip: float = 10.0,
        seed: int | None = None,
        render_mode: None = None,
    ) -> None:
        arguments = {name: value for name, value in locals().items() if name not in ("self", "__class__")}
        checks.check_market(market)
        checks.check_choice("render_mode", render_mode, (None,))
        checks.check_choice("random_start", random_start, (True, False))
        checks.check_function("reward", reward)
        self.market = market
        self.positions = checks.checked_positions(positions)
        self.fee = checks.checked_rate("fee", fee)
        self.borrow_rate = checks.checked_rate("borrow_rate", borrow_rate)
        self.slippage = checks.checked_rate("slippage", slippage)
        self.reward_function = reward
        self.initial_equity = checks.checked_positive("initial_equity", initial_equity)
        self._buy_cost, self._sell_cost = trade_costs(self.fee, self.slippage)
        self._floor = FLOOR * self.initial_equity
        self._bind_market(checks.checked_positive("observation_clip", observation_clip), window)
        self._bind_episodes(episode_length, random_start)
        super().reset(seed=seed)  # None leaves the generator to Gymnasium
        self.spec = EnvSpec(ENV_ID, entry_point="rlbench.envs.trading:TradingEnv", kwargs=arguments)

    def _bind_market(self, clip: float, window: int) -> None:
        """Keep the prices and the clipped features in the forms that a step reads fastest; set the spaces."""
        close = checks.checked_close(self.market.close)
        features = checks.checked_features(self.market.features, len(close))  # (T, F)
        why = f"the market has {len(close)} bars and a step needs one after the window"
        self.window = checks.checked_count("window", window, most=len(close) - 1, why=why)
        if features.size and max(float(features.max()), -float(features.min())) > clip:
            features = np.clip(features, -clip, clip)  # otherwise shared with the market, not copied
        self._close = array("d", close.tobytes())  # its items are Python floats: no numpy scalars in a step
        self._width = features.shape[1]
        self._flat = features.reshape(-1)  # (T * F,)
        self._size = self.window * self._width + 2
        self.layout = Layout(self.window, self._width, own=2)
        self._clip = clip
        bound = np.full(self._size, clip, dtype=np.float32)  # (D,)
        bound[-2] = max(1.0, *map(abs, self.positions))
        self.observation_space = gymnasium.spaces.Box(-bound, bound, dtype=np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(self.positions))

    def _bind_episodes(self, episode_length: int | None, random_start: bool) -> None:
        """Work out the range of start bars."""
        bars = len(self._close)
        if episode_length is not None:
            why = f"the market has {bars} bars, the first start is bar {self.window - 1}; None runs to the end"
            episode_length = checks.checked_count("episode_length", episode_length, most=bars - self.window, why=why)
        self.episode_length = episode_length
        self.random_start = bool(random_start)
        self._first_start = self.window - 1
        # Without a fixed length an episode may start anywhere that leaves one step to take.
        self._last_start = bars - 1 - (episode_length or 1)
        self._bar = self._end = -1  # a step before the first reset is refused
        self._equities, self._actions = [], []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Start an episode: flat, `initial_equity` in cash; `options={"start": bar}` chooses the first bar."""
        super().reset(seed=seed)
        unknown = set(options or {}) - {"start"}
        if unknown:
            raise ValueError(f"reset options {sorted(unknown)} are unknown; accepted: 'start', the first bar.")
        self._start = self._bar = self._choose_start((options or {}).get("start"))
        self._end = len(self._close) - 1 if self.episode_length is None else self._start + self.episode_length
        self._cash, self._shares = self.initial_equity, 0.0
        self._equity = self._entry_equity = self.initial_equity
        self._action = self.positions.index(0.0) if 0.0 in self.positions else -1
        self._position = 0.0
        self._equities, self._actions = [self._equity], []
        return self._observation(), {"equity": self._equity, "position": self._position}

    def _choose_start(self, wanted: int | None) -> int:
        first, last = self._first_start, self._last_start
        if wanted is not None:
            return checks.checked_count("start", wanted, least=first, most=last, why="a bar that leaves an episode")
        return int(self.np_random.integers(first, last + 1)) if self.random_start else first

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Fill `action` (index into `positions`) at this close and go on to the next one."""
        action = index(action)
        bar = self._bar
        if bar >= self._end:
            raise RuntimeError("The episode has ended or has not begun; call reset() before step().")
        if not 0 <= action < len(self.positions):
            raise ValueError(f"action={action} is refused; accepted: 0 to {len(self.positions) - 1}.")
        if filled := action != self._action:
            self._fill(action, self._close[bar])
        self._bar = bar = bar + 1
        close = self._close[bar]
        if self.borrow_rate:
            self._cash -= interest(self._cash, self._shares, close, self.borrow_rate)
        previous, equity = self._equity, self._cash + self._shares * close
        terminated = equity <= self._floor
        if terminated:
            equity = self._ruin()
        self._equity = equity
        self._equities.append(equity)
        self._actions.append(action)
        truncated = not terminated and bar == self._end
        if self.reward_function is None:
            gained = math.log(equity / previous)
        else:
            gained = checks.checked_reward(self.reward_function(self._state(previous, filled, terminated)), bar)
        return self._observation(), gained, terminated, truncated, {"equity": equity, "position": self._position}

    def _fill(self, action: int, close: float) -> None:
        position = self.positions[action]
        self._cash, self._shares = rebalance(self._cash, self._shares, close, position, self._buy_cost, self._sell_cost)
        self._action, self._position = action, position
        self._entry_equity = self._cash + self._shares * close

    def _ruin(self) -> float:
        """Close a bankrupt account at the floor; the episode ends here."""
        self._cash, self._shares, self._position, self._end = self._floor, 0.0, 0.0, self._bar
        return self._floor

    def _observation(self) -> np.ndarray:  # (D,)
        end = (self._bar + 1) * self._width
        observation = np.empty(self._size, dtype=np.float32)  # (D,) new each time: nobody's stored copy changes
        observation[:-2] = self._flat[end - self.window * self._width : end]
        observation[-2] = self._position
        # Nothing is left to divide by where the fill itself ruined the account.
        profit = self._equity / self._entry_equity - 1.0 if self._entry_equity > 0.0 else -1.0
        observation[-1] = min(max(profit, -self._clip), self._clip)
        return observation

    def _state(self, previous: float, filled: bool, terminated: bool) -> StepState:
        bars = self._bar, self.price, self._close[self._bar - 1]
        return StepState(*bars, self._equity, previous, self._position, self.exposure, filled, terminated)

    @property
    def price(self) -> float:
        """The close of the current bar, at which the next action will fill."""
        return self._close[self._bar]

    @property
    def held(self) -> int:
        """Index of the position held; -1 before the first choice where the set has no flat."""
        return self._action

    @property
    def exposure(self) -> float:
        """Value of the shares over equity at the current close, as drifted to."""
        return self._shares * self._close[self._bar] / self._equity

    def __deepcopy__(self, memo: dict[int, Any]) -> "TradingEnv":
        """A copy with its own episode and random generator; the market, which nothing writes to, is shared."""
        memo |= {id(shared): shared for shared in (self.market, self._close, self._flat)}
        twin = memo[id(self)] = object.__new__(type(self))
        twin.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return twin

    def history(self) -> pd.DataFrame:
        """The episode so far, a row a bar from its start: bar, close, equity, action, position, filled.

        `action` and `position` are those chosen at that bar's close (missing in the last row, where none has been
        chosen yet); `filled` tells whether the choice traded.
        """
        if not self._equities:
            raise RuntimeError("There is no history before the first reset().")
        return episode_frame(self._close, self._start, self._equities, self._actions, self.positions)


if ENV_ID not in gymnasium.registry:
    gymnasium.register(id=ENV_ID, entry_point="rlbench.envs.trading:TradingEnv")
