"""The root of the errors, below what money and answers are made of."""


class TillError(Exception):
    """What all errors of this package have in common."""
