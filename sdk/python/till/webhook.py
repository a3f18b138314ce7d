"""Deliveries: who signed them, and when."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import time
from typing import Any, Dict, Mapping, Optional, Sequence, Tuple, Union

from .error import Mistake, TillError
from .inbox import Inbox
from .money import digits
from .types_gen import Event
from .wire import parse

TOLERANCE = 300  # s, either way
MAX_DELIVERY = 1 << 20
MAX_SIGNATURES = 16
_MAX_STAMP = 12  # digits
_MIN_SECRET, _MAX_SECRET = 24, 64  # bytes


class WebhookError(TillError):
    """Says why a delivery is not believed, in one word."""

    word = "malformed"

    def __init__(self, skew: float = 0.0) -> None:
        super().__init__("till: webhook: " + self.word)
        self.skew = skew  # of TooOld and TooNew: how many seconds its time is from ours


class MissingHeader(WebhookError):
    """A header is missing, or its time is none."""

    word = "missing_header"


class BadSignature(WebhookError):
    """Nobody who knows a secret signed this."""

    word = "bad_signature"


class TooOld(WebhookError):
    """It was signed more than five minutes ago."""

    word = "too_old"


class TooNew(WebhookError):
    """It was signed more than five minutes from now."""

    word = "too_new"


class TooLarge(WebhookError):
    """It has more than 1 MiB."""

    word = "too_large"


class Malformed(WebhookError):
    """It is well signed, and no event."""

    word = "malformed"


class BadSecret(Mistake):
    """A webhook secret is whsec_ and the base64 of 24 to 64 bytes."""


def _decode(text: str) -> Optional[bytes]:
    """Reads base64, as strictly as it is written; None if it is none."""
    try:
        found = base64.b64decode(text.encode("ascii"), validate=True)
    except (binascii.Error, UnicodeEncodeError, ValueError):
        return None
    return found if base64.b64encode(found).decode() == text else None


def _read_secret(text: str) -> bytes:
    secret = _decode(text[6:]) if isinstance(text, str) and text.startswith("whsec_") else None
    if secret is None or not _MIN_SECRET <= len(secret) <= _MAX_SECRET:
        raise BadSecret("till: a webhook secret is whsec_ and the base64 of 24 to 64 bytes")
    return secret


Secrets = Union[str, Sequence[str]]


def header(headers: Mapping[str, Any], name: str) -> str:
    """A header by its name, whatever its letters; "" if it is not there. Headers are those of any framework, or a dict."""
    found = headers.get(name)
    if found is None:
        for other, value in headers.items():
            if other.lower() == name:
                found = value
                break
    return found if isinstance(found, str) else ""


def verify(secrets: Secrets, headers: Mapping[str, Any], body: bytes, now: Optional[float] = None) -> Event:
    """Returns the event of a delivery if one of the secrets signed it within five minutes of now, which is this machine's clock
    if it is not given.

    body is the bytes as they came, before anything parsed them. Signatures are looked at before the age, so that a stranger
    learns nothing about the clock.
    """
    if not isinstance(body, (bytes, bytearray)):
        raise TypeError("till: the body of a webhook is its bytes as they came, before anything parsed them")
    all_secrets = [secrets] if isinstance(secrets, str) else list(secrets or ())
    if not all_secrets:
        raise BadSecret("till: there is no webhook secret")
    id, stamp, given = (header(headers, name) for name in ("webhook-id", "webhook-timestamp", "webhook-signature"))
    if not id or not stamp or not given.strip():
        raise MissingHeader()
    if len(body) > MAX_DELIVERY:
        raise TooLarge()
    if len(stamp) > _MAX_STAMP or not digits(stamp) or len(stamp) > 1 and stamp[0] == "0":
        raise MissingHeader()
    good = False
    for text in all_secrets:
        good = _signed(_read_secret(text), id, stamp, given, bytes(body)) or good
    if not good:
        raise BadSignature()
    skew = int(stamp) - (time.time() if now is None else now)
    if skew < -TOLERANCE:
        raise TooOld(skew)
    if skew > TOLERANCE:
        raise TooNew(skew)
    try:
        e = Event.from_json(parse(bytes(body)))
    except (ValueError, TypeError):
        raise Malformed() from None
    if not e.id or not e.type:
        raise Malformed()
    return e


def _signed(secret: bytes, id: str, stamp: str, given: str, body: bytes) -> bool:
    """Tells whether one of the signatures is that of the secret."""
    want = hmac.new(secret, (id + "." + stamp + ".").encode("utf-8", "surrogateescape") + body, hashlib.sha256).digest()
    found = False
    for signature in given.split()[:MAX_SIGNATURES]:
        got = _decode(signature[3:]) if signature.startswith("v1,") else None
        if got is not None and hmac.compare_digest(got, want):
            found = True
    return found


class Reply(Tuple[str, int, Dict[str, str]]):
    """What a receiver answers: body, status and headers, as Flask takes them from a view."""

    error: Optional[Exception]  # why it is a 500, for your log

    def __new__(cls, body: str, status: int, headers: Optional[Dict[str, str]] = None, error: Optional[Exception] = None) -> "Reply":
        self = super().__new__(cls, (body, status, headers or {"Content-Type": "text/plain; charset=utf-8"}))  # type: ignore[arg-type]
        self.error = error
        return self

    @property
    def body(self) -> str:
        """The text."""
        return self[0]

    @property
    def status(self) -> int:
        """The status of HTTP."""
        return self[1]

    @property
    def headers(self) -> Dict[str, str]:
        """The headers."""
        return self[2]


class Receiver(Inbox):
    """The part of a Teller that receives webhooks."""

    def receive(self, secrets: Secrets, headers: Mapping[str, Any], body: bytes, method: str = "POST") -> Reply:
        """Receives a delivery, and returns what to answer.

        Give the old secret too while a rotation lasts. The answer is 204 when your function has been called or the news was
        old, 400 with one word for what is not believed, and 500 if your function failed: then the delivery comes again.
        """
        if method.upper() != "POST":
            return Reply("post", 405, {"Allow": "POST", "Content-Type": "text/plain; charset=utf-8"})
        length = header(headers, "content-length")
        if not body and length and digits(length) and length.strip("0"):
            # Something in front of this read the body.
            return Reply("body_was_read: put the Till webhook before what parses bodies", 500)
        try:
            e = verify(secrets, headers, body, self.clock())
        except WebhookError as refused:
            return Reply(refused.word + self._clock_hint(refused), 400, error=refused)
        except BadSecret as wrong:
            return Reply("no secret", 500, error=wrong)
        try:
            self.apply_event(e)
        except Exception as error:
            return Reply("not done", 500, error=error)
        return Reply("", 204)

    def _clock_hint(self, e: WebhookError) -> str:
        """Names the difference of the clocks where an answer of the service told it.

        Most deliveries that are too old are a clock that is wrong.
        """
        skew = self.client.clock_skew
        if not isinstance(e, (TooOld, TooNew)) or skew is None or abs(skew) < 60:
            return ""
        word = "behind" if skew > 0 else "ahead of"
        return ": this machine's clock is %d s %s the service's" % (abs(skew), word)
