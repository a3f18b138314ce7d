"""Phone numbers as people type them."""

from __future__ import annotations

from .error import TillError
from .money import digits
from .types_gen import PaymentMethodCountryPhone

_MAX_TEXT = 64
_BETWEEN = str.maketrans("", "", " \u00a0\u202f-./()")


class PhoneError(TillError, ValueError):
    """Says what is wrong with a phone number, in one word."""

    EMPTY = "empty"
    NOT_DIGITS = "not_digits"
    OTHER_COUNTRY = "other_country"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"

    def __init__(self, word: str) -> None:
        super().__init__("till: the phone number is wrong: " + word)
        self.word = word


class Phone:
    """Reads phone numbers."""

    @staticmethod
    def read(text: str, rule: PaymentMethodCountryPhone) -> str:
        """Reads what a person typed, by the rule of a country, as method.countries[0].phone.

        Returns the digits to show and to confirm, calling code first: "+242 06 123 45 67" is "242061234567". A number
        without its calling code gets it. A trunk zero goes where the country's numbers have none, and stays in
        Congo, where it belongs to the number.
        """
        if len(text) > _MAX_TEXT:
            raise PhoneError(PhoneError.TOO_LONG)
        number = text.translate(_BETWEEN)
        international = True
        if number.startswith("+"):
            number = number[1:]
        elif number.startswith("00"):
            number = number[2:]
        else:
            international = False
        if not number:
            raise PhoneError(PhoneError.EMPTY)
        if not digits(number):
            raise PhoneError(PhoneError.NOT_DIGITS)
        code, length = rule.calling_code, rule.length
        if number.startswith(code) and (international or len(number) >= length):
            pass  # it is whole, or wrong in its length
        elif international:
            raise PhoneError(PhoneError.OTHER_COUNTRY)
        elif number[0] == "0" and not rule.example.startswith(code + "0"):
            number = code + number[1:]  # a trunk zero, of the dialling at home
        elif len(number) <= length - len(code):
            number = code + number
        if len(number) < length:
            raise PhoneError(PhoneError.TOO_SHORT)
        if len(number) > length:
            raise PhoneError(PhoneError.TOO_LONG)
        if not number.startswith(code):
            raise PhoneError(PhoneError.OTHER_COUNTRY)
        return number
