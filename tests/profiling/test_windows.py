import pytest

from rlbench.profiling.windows import ALLOWANCE_S, LOOKING, WINDOW_S, Windows

PRICE = 1e-6


def run(phases_per_s, seconds, price=PRICE):
    """How long it looked of so many seconds, and the windows in order."""
    windows, seen = Windows(price), []
    while windows.all_s < seconds:
        look, done = windows.look_s(), windows.all_s
        windows.looked(look, round(look * phases_per_s))
        away = windows.away_s()
        windows.looked_away(away)
        seen.append((done, look, away))
    return windows, seen


def test_a_slow_loop_is_always_looked_at():
    windows, seen = run(phases_per_s=200, seconds=10)  # 30 ms a step
    assert windows.share > 1 and {away for _, _, away in seen} == {0.0}


@pytest.mark.parametrize("phases_per_s", [20_000, 60_000, 400_000])
def test_looking_takes_what_it_may_in_the_long_run(phases_per_s):
    windows, _ = run(phases_per_s, seconds=100)
    paid = windows.looked_s * phases_per_s * PRICE
    assert 0.7 * LOOKING < paid / 100 < 1.3 * LOOKING
    assert windows.share == pytest.approx(LOOKING / (phases_per_s * PRICE), rel=1e-3)


def test_a_short_block_is_looked_at_ahead():
    windows, seen = run(phases_per_s=30_000, seconds=0.5)
    assert windows.looked_s > 0.25 * 0.5
    assert all(away < 3 * WINDOW_S[1] for _, _, away in seen[:3])
    assert run(30_000, 0.5)[0].looked_s * 30_000 * PRICE < 1.3 * LOOKING * (0.5 + ALLOWANCE_S)


def test_windows_grow_with_the_run():
    _, seen = run(phases_per_s=60_000, seconds=3600)
    assert len(seen) < 1000
    assert all(WINDOW_S[0] <= look <= WINDOW_S[1] for done, look, _ in seen if done < 30)
    assert max(look for _, look, _ in seen) > 20 * WINDOW_S[1]


def test_before_anything_was_seen_it_looks():
    windows = Windows(PRICE)
    assert windows.away_s() == 0.0 and windows.share == float("inf")
    windows.looked(0.05, 0)
    assert windows.away_s() == 0.0


def test_what_watching_took_by_hand():
    windows = Windows(price_s=0.001)
    assert windows.cost == 0.0
    windows.looked(1.0, 30)
    windows.looked_away(3.0, 60)
    assert windows.cost == pytest.approx((30 * 0.001 + 60 * 0.001 / 3) / 4)
