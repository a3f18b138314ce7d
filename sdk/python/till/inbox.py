"""Where all news ends: one function of yours, called once for each change."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, List, Optional, Tuple

from .client import Till
from .error import CallError
from .error import Refused as CallRefused
from .money import Money
from .store import ABANDONED, ENDED, LAPSED, LOST, PAYMENT, PAYOUT, REFUND, REFUSED, TAKEN, Cursor, Decision, Row, Settlement, Store, Subject
from .types_gen import ErrorCode, Event, EventKind, FieldError, Payment, Payout, Refund
from .wire import Timestamp, parse

SWEEP_GAP = 0.05  # s between calls: at most 20 a second

LATE = "late_success"
REVERSED = "reversed"

RANK_FINAL = 3  # from here the attempt has ended
_RANKS = {"pending": 1, "processing": 2, "success": RANK_FINAL, "failed": RANK_FINAL, "expired": RANK_FINAL, "cancelled": RANK_FINAL, LATE: 4, REVERSED: 5}


def rank(status: Optional[str]) -> int:
    """Orders the news of one payment, payout or refund; 0 is no news of an attempt."""
    return _RANKS.get(status or "", 0)


@dataclass
class Change:
    """News about an attempt."""

    kind: str  # as EventKind.PAYMENT_SUCCESS; or payment.refused, .lapsed, .lost, which are no events of the service, and so for payouts and refunds
    order: str = ""  # "" for a payment that this outbox did not make; see the option foreign
    reference: str = ""  # as the payment, payout or refund has it
    attempt: int = 0  # of a refund, which one of the order's; 0 if it was made elsewhere
    key: str = ""  # the idempotency key
    late: bool = False  # the money came after it had failed or expired
    already_paid: bool = False  # another attempt of the order was paid before: give this one back
    payment: Optional[Payment] = None  # None when it was refused, lapsed or lost, and for payouts and refunds
    payout: Optional[Payout] = None
    event_id: str = ""  # "" where no event brought the news
    sequence: int = 0
    problem: str = ""  # why it was refused, lapsed or lost: a code of the service, or stale
    detail: str = ""  # of the problem, for people
    errors: List[FieldError] = field(default_factory=list)
    refund: Optional[Refund] = None
    left: Optional[Money] = None  # of a refund's payment, what can still go back, with refunded; None if the service does not know the payment

    @property
    def paid(self) -> bool:
        """The customer has paid: success, or money that came late."""
        return self.kind in (EventKind.PAYMENT_SUCCESS, EventKind.PAYMENT_LATE_SUCCESS)

    @property
    def failed(self) -> bool:
        """The payment ended without money."""
        return self.kind in (EventKind.PAYMENT_FAILED, EventKind.PAYMENT_EXPIRED)

    @property
    def taken_back(self) -> bool:
        """The operator took the money back."""
        return self.kind == EventKind.PAYMENT_REVERSED

    @property
    def paid_out(self) -> bool:
        """The recipient has the money."""
        return self.kind in (EventKind.PAYOUT_SUCCESS, EventKind.PAYOUT_LATE_SUCCESS)

    @property
    def payout_failed(self) -> bool:
        """The payout ended, and its money is yours again."""
        return self.kind in (EventKind.PAYOUT_FAILED, EventKind.PAYOUT_CANCELLED)

    @property
    def refunded(self) -> bool:
        """The customer has the money of the refund back, and left is what can still go back. Book it by refund.id."""
        return self.kind in (EventKind.REFUND_SUCCESS, EventKind.REFUND_LATE_SUCCESS)

    @property
    def refund_failed(self) -> bool:
        """The refund ended, and its money is yours again."""
        return self.kind in (EventKind.REFUND_FAILED, EventKind.REFUND_CANCELLED)

    @property
    def refused(self) -> bool:
        """The service does not take the payment, payout or refund, and why: nothing exists."""
        return self.kind.endswith("." + REFUSED)

    @property
    def lapsed(self) -> bool:
        """It was not sent in its time: nothing exists."""
        return self.kind.endswith("." + LAPSED)

    @property
    def lost(self) -> bool:
        """The service does not know a payment any more that it had, or a payout or refund that it may have had: a person looks."""
        return self.kind.endswith("." + LOST)


class Pace:
    """Keeps calls apart."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._next = 0.0

    def wait(self) -> None:
        """Waits for its turn."""
        with self._lock:
            now = time.monotonic()
            at = max(self._next, now)
            self._next = at + SWEEP_GAP
        if at > now:
            time.sleep(at - now)


OnChange = Callable[[Change, Any], object]
OnOther = Callable[[Event, Any], object]


class Inbox:
    """The part of a Teller that hears news."""

    client: "Till"
    store: Store
    on_change: OnChange
    on_other: Optional[OnOther]
    on_progress: Optional[OnChange]
    open_after: int  # ms
    foreign: bool
    clock: Callable[[], float]
    _pace: Pace

    def now(self) -> int:
        """The time, as exact as stores keep it."""
        return int(self.clock() * 1000)

    def apply_event(self, e: Event, cursor: Optional[Cursor] = None, foreign: Optional[bool] = None) -> None:
        """The road of webhooks and the log. foreign hands over what this store did not make."""
        noun, _, status = e.type.partition(".")
        one = getattr(e.data, noun, None) if noun in (PAYMENT, PAYOUT, REFUND) else None
        if rank(status) and one is not None:
            change = Change(kind=e.type, event_id=e.id, sequence=e.sequence or 0)
            return self._apply(change, one, noun, status, cursor, self.foreign if foreign is None else foreign)
        if self.on_other is None:
            return None
        on_other = self.on_other

        def other(tx: Any, s: Subject, _: List[Row]) -> Decision:
            if e.type in s.seen:
                return Decision(cursor=cursor)
            s = replace(s, seen=s.seen + [e.type], sequence=e.sequence or 0)
            on_other(e, tx)
            return Decision(subject=s, cursor=cursor)

        return self.store.apply(e.id, "", "", other)

    def apply_read(self, one: Any) -> None:
        """The road of the sweep: the news is what the payment shows. A status that is not known is not final, and no news."""
        if getattr(one, "reversed_at", None) is not None:
            status = REVERSED
        elif one.late_success_at is not None:
            status = LATE
        else:
            status = one.status
        if rank(status):
            noun = kind_of(one)
            self._apply(Change(kind=noun + "." + status), one, noun, status, None, self.foreign)

    def _of_payment(self, change: Change, one: Refund, status: str) -> Tuple[str, str]:
        """Adds to news of a refund what is left of its payment, and says by which kind and key of a row its order is found.

        A refund that was not made by this outbox is its payment's. News that was seen needs neither.
        """
        own = seen = False

        def look(_tx: Any, s: Subject, attempts: List[Row]) -> Decision:
            nonlocal own, seen
            own, seen = bool(attempts), status in s.seen
            return Decision()

        self.store.apply(one.id, REFUND, change.key, look)
        if seen or own and not change.refunded:
            return REFUND, change.key
        try:
            p = self.client.payments.get(one.payment_id)
        except CallRefused as e:
            if e.code != ErrorCode.PAYMENT_NOT_FOUND:
                raise
            return REFUND, change.key
        if change.refunded and p.refunds is not None:
            change.left = Money.minor(p.refunds.refundable, p.amount.currency)
        return (REFUND, change.key) if own else (PAYMENT, (p.idempotency_key or "").lower())

    def _apply(self, change: Change, one: Any, noun: str, status: str, cursor: Optional[Cursor], foreign: bool) -> None:
        """Where all roads end.

        In one transaction: lock what is known; stop if this news was seen, or is older than what is known; call the
        function; save.
        """
        setattr(change, noun, one)
        change.key, change.reference = (one.idempotency_key or "").lower(), one.reference or ""
        change.late = status == LATE
        kind, key = noun, change.key
        if noun == REFUND and rank(status) >= RANK_FINAL:
            if cursor is not None:
                self._pace.wait()  # it may read the payment, and the log is read without haste
            kind, key = self._of_payment(change, one, status)

        def decide(tx: Any, s: Subject, attempts: List[Row]) -> Decision:
            if status in s.seen:
                return Decision(cursor=cursor)
            c, row = replace(change), None
            for a in attempts:
                if a.key == c.key:
                    row, c.order, c.attempt = a, a.order, a.attempt
                elif a.key == key:  # the payment of a refund that was made elsewhere
                    c.order = a.order
                elif a.paid and noun != REFUND:  # of a payment there may be several refunds
                    c.already_paid = True
            if not c.order and not foreign:
                return Decision(cursor=cursor)
            s = replace(s, seen=s.seen + [status], sequence=max(s.sequence, c.sequence))
            d = Decision(subject=s, cursor=cursor)
            if rank(status) <= s.rank:
                return d
            if row is not None and s.rank < RANK_FINAL and rank(row.status) >= RANK_FINAL:
                # The attempt ended under another id: a restored service made it
                # again. What it brought before is no news, but money after none is.
                if not row.unpaid or status not in ("success", LATE):
                    s.rank = rank(status)
                    d.settle = self._news(row, one, row.status)
                    return d
            s.rank = rank(status)
            if row is not None:
                d.settle = self._news(row, one, status)
            if s.rank >= RANK_FINAL:
                self.on_change(c, tx)
            elif self.on_progress is not None:
                self.on_progress(c, tx)
            return d

        self.store.apply(one.id, kind, key, decide)

    def _news(self, row: Row, one: Any, status: str) -> Settlement:
        """What a change does to its row."""
        s = Settlement(key=row.key, remote_id=one.id, status=status, state=ENDED if rank(status) >= RANK_FINAL else TAKEN)
        s.send_until = expiry(one)
        s.next_at = self.now() + self.open_after
        if row.problem != ABANDONED:
            s.problem = s.details = ""
        return s

    def _end(self, row: Row, s: Settlement) -> bool:
        """Settles a row that is sent no more, as refused, lapsed or lost, and tells it.

        In one transaction, and once, because the row must be as expected. It returns whether it was.
        """
        s.key = row.key
        why = kept_of(s.details)
        reference = parse(row.body).get("reference") or ""
        change = Change(row.kind + "." + (s.state or ""), row.order, reference, row.attempt, row.key, problem=s.problem or "", detail=why.detail, errors=why.errors)
        done = False

        def decide(tx: Any, _: Subject, attempts: List[Row]) -> Decision:
            nonlocal done
            done = any(a.key == row.key and s.fits(a) for a in attempts)
            if not done:
                return Decision()
            paid = row.kind != REFUND and any(a.paid for a in attempts if a.key != row.key)
            self.on_change(replace(change, already_paid=paid), tx)
            return Decision(settle=s)

        self.store.apply(row.key, row.kind, row.key, decide)
        if done:
            row.state = s.state or ""
        return done


@dataclass
class Kept:
    """What a row keeps of an answer, beside its code."""

    status: int = 0
    detail: str = ""
    request_id: str = ""
    errors: List[FieldError] = field(default_factory=list)


def details_of(e: CallError) -> str:
    """Writes what a row keeps of an error."""
    errors = [{"pointer": f.pointer, "code": f.code, "detail": f.detail} for f in e.errors]
    return json.dumps({"status": e.status, "detail": e.detail, "request_id": e.request_id, "errors": errors}, ensure_ascii=False)


def kept_of(details: Optional[str]) -> Kept:
    """Reads it again."""
    value = json.loads(details) if details else {}
    errors = [FieldError.from_json(f) for f in value.get("errors") or []]
    return Kept(value.get("status", 0), value.get("detail", ""), value.get("request_id", ""), errors)


def kind_of(one: Any) -> str:
    """The kind of row that makes such a thing."""
    return PAYOUT if isinstance(one, Payout) else REFUND if isinstance(one, Refund) else PAYMENT


def expiry(one: Any) -> int:
    """When the customer's time ends; 0 if nobody said it."""
    return Timestamp(one.expires_at).ms if one.expires_at else 0


def wall_clock() -> float:
    """Seconds since 1970."""
    return time.time()
