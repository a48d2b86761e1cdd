"""What the tests of price files share: write and load, expect a refusal, look for a notice, check values and times."""

import warnings

import numpy as np
import pandas as pd
import pytest

from rlbench.prices import load_prices
from rlbench.prices.errors import PriceError


@pytest.fixture
def load(tmp_path):
    """Write text or bytes to a file and load it; a warning of any kind fails the test. `codec` is load's encoding."""

    def run(content, name="prices.csv", encoding="utf-8", codec=None, **options):
        path = tmp_path / name
        path.write_bytes(content.encode(encoding) if isinstance(content, str) else content)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return load_prices(path, encoding=codec, **options)

    return run


@pytest.fixture
def refused(load):
    """Expect a one-line PriceError that matches a pattern; returns its text."""

    def run(pattern, *args, **options):
        with pytest.raises(PriceError, match=pattern) as caught:
            load(*args, **options)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return run


@pytest.fixture
def told():
    """Expect a notice that contains a text; returns the market."""

    def run(market, part):
        assert any(part in notice for notice in market.notices), market.notices
        return market

    return run


@pytest.fixture
def check():
    """Expect closes and times; UTC, strictly increasing, features finite in float32. Returns the market."""

    def run(market, close, times):
        assert market.close.tolist() == pytest.approx(close, rel=1e-12)
        assert list(market.time) == [pd.Timestamp(t, tz="UTC") for t in times]
        assert str(market.time.tz) == "UTC" and (np.diff(market.time.as_unit("ns").asi8) > 0).all()
        assert np.isfinite(market.features).all() and market.features.dtype == np.float32
        return market

    return run
