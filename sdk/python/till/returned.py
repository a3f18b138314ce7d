"""The way back from a checkout's page: who signed it, and when."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from typing import Any, Mapping, Optional

from .error import TillError
from .money import digits

TOLERANCE = 600  # s, either way
_MAX_TIME = 12  # digits


class ReturnError(TillError):
    """Says why a way back is not believed, in one word: no_secret (a mistake of the program), unsigned, altered, too_old or too_new."""

    def __init__(self, word: str) -> None:
        super().__init__("till: return: " + word)
        self.word = word


def _value(query: Mapping[str, Any], name: str) -> str:
    found = query.get(name)
    if isinstance(found, list) and len(found) == 1:  # as parse_qs reads it
        found = found[0]
    return found if isinstance(found, str) else ""


def verify_return(secret: str, checkout: str, query: Mapping[str, Any], now: Optional[float] = None) -> str:
    """Returns what the way back says of a checkout, if the checkout's return_secret signed it within ten minutes of now, which is
    this machine's clock if it is not given.

    checkout is the id that you keep with the order, query that of the address to which the customer came back. The answer is
    "paid", "open" (an ask may still bring money, or the customer turned back) or "closed". It is a hint for the page that you
    show: ship by the event checkout.paid, or by a read of the checkout. Who kept the address can come again within those minutes.
    """
    state, at, given = (_value(query, name) for name in ("till_state", "till_time", "till_signature"))
    if not secret:
        raise ReturnError("no_secret")
    if not state or not at or not given:
        raise ReturnError("unsigned")
    text = "return\n%s\n%s\n%s" % (checkout, state, at)
    mac = hmac.new(secret.encode(), text.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    want = base64.urlsafe_b64encode(mac).rstrip(b"=")
    good = hmac.compare_digest(want, given.encode("utf-8", "surrogatepass"))
    if not good or _value(query, "till_checkout") != checkout or len(at) > _MAX_TIME or not digits(at):
        raise ReturnError("altered")
    age = (time.time() if now is None else now) - int(at)
    if age > TOLERANCE:
        raise ReturnError("too_old")
    if age < -TOLERANCE:
        raise ReturnError("too_new")
    return state
