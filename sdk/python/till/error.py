"""The errors, and the table of what an answer means."""

from __future__ import annotations

from typing import List, Optional, Type

from .operation import KEY, Operation
from .tillerror import TillError as TillError
from .tried import NOTHING_HAPPENED, Tried
from .types_gen import FieldError


class CallError(TillError):
    """What all errors of a call have in common. It holds no API key, no phone and no body."""

    kind = "failed"

    def __init__(
        self,
        *,
        code: str = "",
        status: int = 0,
        detail: str = "",
        errors: Optional[List[FieldError]] = None,
        request_id: str = "",
        retry_after: float = 0.0,
        idempotency_key: str = "",
        tries: int = 0,
        reason: str = "",
        payment_id: Optional[str] = None,
        payout_id: Optional[str] = None,
        refund_id: Optional[str] = None,
        refundable: Optional[str] = None,
    ) -> None:
        self.code = code  # of the service, as ErrorCode.VALIDATION_FAILED; "" if there was none
        self.status = status  # of HTTP; 0 if there was no answer
        self.detail = detail  # for people
        self.errors = errors or []  # every mistake, with its pointer
        self.request_id = request_id  # quote it when you ask for help
        self.retry_after = retry_after  # seconds
        self.idempotency_key = idempotency_key  # of a create
        self.tries = tries  # how many requests were made
        self.reason = reason  # why there was no good answer: timeout, reset, cut, not_json, redirect, …
        self.payment_id = payment_id  # with idempotency_key_reused: whose key it is
        self.payout_id = payout_id
        self.refund_id = refund_id  # likewise; with refund_in_progress the one that is open
        self.refundable = refundable  # with refund_exceeds_payment: what is left to give back, in minor units
        super().__init__(str(self))

    def __str__(self) -> str:
        text = ": ".join(s for s in (self.code, self.reason, self.detail) if s)
        if self.status:
            text = "%d %s" % (self.status, text)
        for f in self.errors:
            text += "; %s %s" % (f.pointer, f.code)
        if self.request_id:
            text += " (request " + self.request_id + ")"
        return "till: " + self.kind + ": " + text

    def __repr__(self) -> str:
        return "<%s %s>" % (type(self).__name__, self)


class Refused(CallError):
    """The service does not do this. Of a create: nothing exists, and the key is not used up."""

    kind = "refused"


class Unavailable(CallError):
    """Nothing happened, and it may be tried later."""

    kind = "unavailable"


class Unclear(CallError):
    """It may have happened. Ask again with the same key, never with another one."""

    kind = "unclear"


class Mistake(TillError, ValueError):
    """A mistake in the program that uses this package."""


class NoKey(Mistake):
    """There is no API key."""


class BadKey(Mistake):
    """The API key has characters that no key has."""


class WrongMode(Mistake):
    """A test key where a live one is expected, or the other way round."""


class NoIdempotencyKey(Mistake):
    """A create needs an idempotency key that you have stored; see Teller."""


class BadBaseURL(Mistake):
    """The base address is an https:// URL, or http:// on this machine."""


class NoProgress(TillError):
    """A list cannot be gone through: the service sent the same page again."""


# What one answer says about a call.
DONE = "done"
REFUSED = "refused"
UNAVAILABLE = "unavailable"
UNCLEAR = "unclear"
LOOK = "look"  # refused, if a read by the key finds nothing

_MISTAKES = (400, 413, 415, 422)


def judge(op: Operation, t: Tried, before: bool) -> str:
    """The table of outcomes.

    before tells whether an earlier try had no answer: what was asked may exist then, whatever this answer says.
    """
    if t.reason == "" and 200 <= t.status < 300:
        return DONE
    if op.method == "GET":
        answered = t.reason in ("", "redirect") and 300 <= t.status < 500 and t.status not in (408, 429)
        return REFUSED if answered else UNAVAILABLE
    if not t.sent:
        return UNCLEAR if before else UNAVAILABLE
    if t.reason not in ("", "redirect"):
        return UNCLEAR
    if t.status == 429 or t.status == 503 and t.code in NOTHING_HAPPENED:
        return UNCLEAR if before else UNAVAILABLE
    if t.status == 422 and t.code == "idempotency_key_reused":
        return REFUSED
    if t.status == 408 or t.status >= 500:
        return UNCLEAR
    if op.repeat != KEY:
        return REFUSED  # the answer to a repeat is as good as the first
    if t.status in _MISTAKES:
        return LOOK if before else REFUSED
    return UNCLEAR if before else REFUSED


_CLASSES: "dict[str, Type[CallError]]" = {REFUSED: Refused, UNAVAILABLE: Unavailable, UNCLEAR: Unclear}


def failure(verdict: str, t: Tried, key: str, tries: int) -> CallError:
    """Makes the error of a verdict."""
    p = t.problem
    return _CLASSES.get(verdict, Refused)(
        code=t.code,
        status=t.status,
        detail=(p.detail or "") if p else "",
        errors=p.errors if p else None,
        request_id=t.header("X-Request-Id") or ((p.request_id or "") if p else ""),
        retry_after=t.retry_after,
        idempotency_key=key,
        tries=tries,
        reason=t.reason,
        payment_id=p.payment_id if p else None,
        payout_id=p.payout_id if p else None,
        refund_id=p.refund_id if p else None,
        refundable=p.refundable if p else None,
    )


class LookFirst(Exception):
    """Refused if a read by the key finds nothing, else unclear."""

    def __init__(self, absent: CallError, unknown: CallError) -> None:
        super().__init__(str(unknown))
        self.absent = absent
        self.unknown = unknown
