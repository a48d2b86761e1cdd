"""Numbers in text: handed case 17 whole, and its kind."""

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlbench.prices import load_prices
from rlbench.prices.errors import PriceError

DAYS = ["2020-01-02", "2020-01-03"]
PLAIN = "Date,Open,High,Low,Close,Volume\n2020-01-02,1,2,0.5,1.5,10\n2020-01-03,1.5,2,1,1.2,0\n"


def test_case_17a_quoted_thousands(load, check):
    check(load('Date,Close\n2020-01-02,"1,234.50"\n2020-01-03,"1,240.00"\n'), [1234.5, 1240], DAYS)
    check(load('Date,Close,Volume\n2020-01-02,"1,234","1,234,567"\n2020-01-03,999,5\n'), [1234, 999], DAYS)


def test_case_17b_decimal_comma_with_thousands(load, check):
    check(load("Date;Close;Volume\n2020-01-02;1.234,50;1.000\n2020-01-03;999,5;2.000\n"), [1234.5, 999.5], DAYS)


def test_case_17c_decimal_comma_alone(load, refused, check):
    check(load("Date;Close\n2020-01-02;5,5\n2020-01-03;7,04\n"), [5.5, 7.04], DAYS)
    message = refused("'5,5' is not a number", "Date;Close\n2020-01-02;5,5\n2020-01-03;7,04\n", thousands=",")
    assert "'Close'" in message and "line 2" in message and "decimal=" in message


def test_unclear_commas_are_refused_and_settled_by_options(load, refused, check):
    text = "Date;Close\n2020-01-02;1,234\n2020-01-03;7,040\n"
    message = refused("thousands separator or a decimal comma", text)
    assert "line 2" in message and "'Close'" in message
    check(load(text, decimal=","), [1.234, 7.04], DAYS)
    check(load(text, thousands=","), [1234, 7040], DAYS)
    dots = "Date;Close\n2020-01-02;1.234\n2020-01-03;7.040\n"
    check(load(dots), [1.234, 7.04], DAYS)
    check(load(dots, decimal=","), [1234, 7040], DAYS)
    check(load(dots, thousands="."), [1234, 7040], DAYS)


def test_mixed_and_broken_numbers_are_refused_with_line_and_column(refused):
    refused("line 2.*decimal comma.*line 3", "Date;Close\n2020-01-02;5,5\n2020-01-03;5.5\n")
    refused("line 3, column 'Close': 'abc'", "Date,Close\n2020-01-02,5\n2020-01-03,abc\n")
    refused("line 2: more cells", "Date,Close\n2020-01-02,5,5\n2020-01-03,7,04\n")
    refused(
        "line 40: more cells",
        "Date,Close\n"
        + "".join(
            f"{d:%Y-%m-%d},5{',5' if i == 38 else ''}\n" for i, d in enumerate(pd.date_range("2020-01-01", periods=50))
        ),
    )
    refused("different numbers of cells", "Date,Close\n2020-01-02,5\n" * 40 + "2020-01-03,7,0,4,5\n")
    refused("decimal=';'", PLAIN, decimal=";")
    refused("must differ", PLAIN, decimal=",", thousands=",")


@pytest.mark.parametrize("cell", ["1 234.5", "1\u00a0234.5", "1'234.5", "$1,234.50", "1.2345e3", "+1234.5", "12,34.5"])
def test_kinds_of_numbers(load, cell, refused, check):
    if cell == "12,34.5":
        refused("'12,34.5' is not a number", f'Date;Close\n2020-01-02;"{cell}"\n2020-01-03;5.25\n')
    else:
        check(load(f'Date;Close\n2020-01-02;"{cell}"\n2020-01-03;5.25\n'), [1234.5, 5.25], DAYS)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=8), st.sampled_from([",.", ".,"]))
def test_grouped_numbers_come_back(tmp_path_factory, cents, separators):
    """Numbers written by Python with two decimals, in either convention, are read to the cent."""
    thousands, decimal = separators
    days = pd.date_range("2020-01-01", periods=len(cents))
    cells = [
        f"{c // 100:,}.{c % 100:02d}".replace(",", "T").replace(".", decimal).replace("T", thousands) for c in cents
    ]
    path = tmp_path_factory.mktemp("n") / "p.csv"
    path.write_text("Date;Close\n" + "".join(f"{d:%Y-%m-%d};{c}\n" for d, c in zip(days, cells, strict=True)))
    assert load_prices(path).close.tolist() == pytest.approx([c / 100 for c in cents], rel=1e-12)


def test_a_proven_decimal_comma_holds_for_every_column(load, refused):
    header = "Date;Close;Volume\n"
    market = load(header + "2020-01-02;100,5;1.234\n2020-01-03;99,5;2.000\n")
    assert market.prices["volume"].tolist() == [1234, 2000]
    market = load(header + "2020-01-02;13.099;5\n2020-01-03;13.046,5;6\n")
    assert market.close.tolist() == [13099, 13046.5]
    refused("decimal comma.*decimal point", header + "2020-01-02;100,5;12.5\n2020-01-03;99,5;2.000\n")
    misread = pd.DataFrame(
        {"Date": DAYS, "Close": ["100,5", "99,5"], "Volume": [1.234, 2.0]}
    )  # pandas took 1.234 as 1.2
    with pytest.raises(PriceError, match="decimal comma.*decimal point"):
        load_prices(misread)
    assert load_prices(misread.assign(Volume=[1234, 2000])).prices["volume"].tolist() == [1234, 2000]


def test_blanks_and_apostrophes_separate_thousands_alone(load, refused):
    text = "Date,Close\n2020-01-02,{}\n2020-01-03,{}\n"
    assert load(text.format("1'234'567.5", "1 234 567.5")).close.tolist() == [1234567.5, 1234567.5]
    refused("line 2, column 'Close'.*130'16", text.format("130'16", "130'17"))  # 130 and 16/32, as bonds are quoted
    refused("line 3, column 'Close'.*100 50", text.format("100", "100 50"))


def test_signs_of_money_and_of_nothing(load, refused, told):
    text = "Date,Close,Volume\n2020-01-02,{},1\n2020-01-03,{},1\n2020-01-04,{},1\n"
    assert load(text.format('"₹1,234.5"', "€ 5.5", "5.5 €")).close.tolist() == [1234.5, 5.5, 5.5]
    for nothing in ("—", ".", "-", "#N/A"):
        told(load(text.format("1.5", nothing, "1.2")), "dropped 1 row(s) without prices")
    refused("line 3 .*close is -37.63", text.format("18.27", "\u221237.63", "10.01"))
