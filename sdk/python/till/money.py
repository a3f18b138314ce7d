"""Amounts in minor units, exact."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Dict, List, Union

from .currencies_gen import DECIMALS
from .tillerror import TillError
from .wire import TEXT, Kind, is_decimal

_MAX_DIGITS = 38  # bounds what arithmetic reads and makes
_MAX_PARTS = 10_000


class MoneyError(TillError, ValueError):
    """A mistake with money."""


class BadAmount(MoneyError):
    """An amount is digits in minor units, as "5000"."""


class BadCurrency(MoneyError):
    """No currency that is known here."""


class OtherCurrency(MoneyError):
    """The currencies differ."""


class TooManyDecimals(MoneyError):
    """More decimals than the currency has."""


class NotExact(MoneyError):
    """The result is not whole minor units."""


class Negative(MoneyError):
    """The result is less than nothing."""


class BadParts(MoneyError):
    """A split has 1 to 10 000 parts."""


def digits(text: str) -> bool:
    """Tells whether a text is digits of ASCII, or empty."""
    return not text.strip("0123456789")


def _whole(text: str) -> bool:
    """Tells whether a text is a whole number as it is written."""
    return text != "" and digits(text) and len(text) <= _MAX_DIGITS and (len(text) == 1 or text[0] != "0")


def _no_float(value: Any) -> Any:
    if isinstance(value, (float, bool)):
        raise TypeError("till: money is never a float: give a text")
    return value


@dataclass(frozen=True)
class Money:
    """An amount in minor units of its currency, as a text.

    "5000" is 5 000 francs of XAF, which has no decimals, and 50 shillings of KES, which has two.
    """

    value: str
    currency: str

    def __post_init__(self) -> None:
        _no_float(self.value)
        if not isinstance(self.value, str) or not isinstance(self.currency, str):
            raise TypeError("till: value and currency of money are texts")

    @classmethod
    def minor(cls, value: Union[str, int], currency: str) -> "Money":
        """An amount in minor units. It is checked where it is used; see check."""
        if isinstance(_no_float(value), int):
            value = str(value)
        return cls(value, currency)

    @classmethod
    def major(cls, amount: Union[str, int, Decimal], currency: str) -> "Money":
        """Reads an amount in units of the currency: "50.00" of KES is "5000"."""
        if isinstance(_no_float(amount), Decimal):
            amount = format(amount, "f")
        elif isinstance(amount, int):
            amount = str(amount)
        elif not isinstance(amount, str):
            raise TypeError("till: an amount is a text")
        places = DECIMALS.get(currency)
        if places is None:
            raise BadCurrency("till: no currency that is known here")
        whole, point, fraction = amount.partition(".")
        if not _whole(whole) or point and not fraction or not digits(fraction):
            raise BadAmount('till: an amount is digits, as "50.00"')
        if len(fraction) > places:
            raise TooManyDecimals("till: more decimals than the currency has")
        return cls((whole + fraction.ljust(places, "0")).lstrip("0") or "0", currency)

    def check(self) -> None:
        """Raises BadAmount or BadCurrency unless this is an amount of a currency."""
        self._units()

    def _units(self) -> int:
        if not _whole(self.value):
            raise BadAmount('till: an amount is digits in minor units, as "5000"')
        if len(self.currency) != 3 or self.currency.strip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
            raise BadCurrency("till: no currency that is known here")
        return int(self.value)

    def _both(self, other: "Money") -> tuple[int, int]:
        if not isinstance(other, Money):
            raise TypeError("till: money goes with money")
        a, b = self._units(), other._units()
        if self.currency != other.currency:
            raise OtherCurrency("till: the currencies differ")
        return a, b

    def _result(self, units: int) -> "Money":
        if units < 0:
            raise Negative("till: the result is less than nothing")
        text = str(units)
        if len(text) > _MAX_DIGITS:
            raise BadAmount("till: the result has too many digits")
        return Money(text, self.currency)

    def add(self, other: "Money") -> "Money":
        """The sum."""
        a, b = self._both(other)
        return self._result(a + b)

    def subtract(self, other: "Money") -> "Money":
        """The difference, which is not negative."""
        a, b = self._both(other)
        return self._result(a - b)

    def compare(self, other: "Money") -> int:
        """-1, 0 or 1."""
        a, b = self._both(other)
        return (a > b) - (a < b)

    def times(self, factor: Union[str, int, Decimal]) -> "Money":
        """Multiplies by a decimal, as "1.5". The result is exact, or an error."""
        units = self._units()
        if isinstance(_no_float(factor), Decimal):
            factor = format(factor, "f")
        elif isinstance(factor, int):
            factor = str(factor)
        if not isinstance(factor, str) or not is_decimal(factor) or len(factor) > _MAX_DIGITS:
            raise BadAmount('till: a factor is a decimal, as "1.5"')
        product = Fraction(factor) * units
        if product.denominator != 1:
            raise NotExact("till: the result is not whole minor units")
        return self._result(product.numerator)

    def __add__(self, other: "Money") -> "Money":
        return self.add(other) if isinstance(other, Money) else NotImplemented

    def __radd__(self, other: int) -> "Money":
        # sum() begins with 0.
        return self if other == 0 and isinstance(other, int) else NotImplemented

    def __sub__(self, other: "Money") -> "Money":
        return self.subtract(other) if isinstance(other, Money) else NotImplemented

    def __mul__(self, factor: Union[str, int, Decimal]) -> "Money":
        return self.times(factor) if isinstance(factor, (str, int, float, Decimal)) else NotImplemented

    __rmul__ = __mul__

    def __lt__(self, other: "Money") -> bool:
        return self.compare(other) < 0 if isinstance(other, Money) else NotImplemented

    def __le__(self, other: "Money") -> bool:
        return self.compare(other) <= 0 if isinstance(other, Money) else NotImplemented

    def __gt__(self, other: "Money") -> bool:
        return self.compare(other) > 0 if isinstance(other, Money) else NotImplemented

    def __ge__(self, other: "Money") -> bool:
        return self.compare(other) >= 0 if isinstance(other, Money) else NotImplemented

    def __str__(self) -> str:
        """The amount for logs, as "50.00 KES"; in minor units if the currency is not known. See format for people."""
        try:
            return self.to_major() + " " + self.currency
        except MoneyError:
            return "%s minor units of %s" % (self.value, self.currency)

    def split(self, parts: int) -> List["Money"]:
        """Divides into parts that add up; the first ones have what is left over."""
        units = self._units()
        if not 1 <= parts <= _MAX_PARTS:
            raise BadParts("till: a split has 1 to %d parts" % _MAX_PARTS)
        each, rest = divmod(units, parts)
        return [Money(str(each + (i < rest)), self.currency) for i in range(parts)]

    def to_major(self) -> str:
        """The amount in units of the currency: "50.00"."""
        self.check()
        places = DECIMALS.get(self.currency)
        if places is None:
            raise BadCurrency("till: no currency that is known here")
        if places == 0:
            return self.value
        text = self.value.rjust(places + 1, "0")
        return text[:-places] + "." + text[-places:]

    def format(self, language: str) -> str:
        """The amount for people: "5 000 XAF" in "fr", with the narrow spaces of French, else "XAF 5,000"."""
        whole, _, fraction = self.to_major().partition(".")
        french = language == "fr" or language.startswith("fr-")
        group, point = ("\u202f", ",") if french else (",", ".")
        text = "{:,}".format(int(whole)).replace(",", group)
        if fraction:
            text += point + fraction
        return text + "\u00a0" + self.currency if french else self.currency + "\u00a0" + text

    def to_json(self) -> Dict[str, str]:
        """The amount as the service reads it."""
        return {"value": self.value, "currency": self.currency}


def _read_money(value: Any) -> Money:
    if not isinstance(value, dict):
        raise TypeError("till: it should be money")
    return Money(TEXT.read(value.get("value", "")), TEXT.read(value.get("currency", "")))


def _write_money(value: Any) -> Dict[str, str]:
    if not isinstance(value, Money):
        raise TypeError("till: an amount is Money")
    return value.to_json()


MONEY = Kind(_read_money, _write_money)
