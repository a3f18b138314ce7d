"""Where all news ends: one function of yours, called once for each change."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Dict, List, Optional, Tuple, Union

from .client import Till
from .error import CallError
from .error import Refused as CallRefused
from .money import Money
from .store import (
    ABANDONED,
    CHECKOUT,
    ENDED,
    LAPSED,
    LOST,
    NEEDS_ATTENTION,
    OTHER_WAY,
    PAYMENT,
    PAYOUT,
    REFUND,
    REFUSED,
    TAKEN,
    Cursor,
    Decision,
    Row,
    Settlement,
    Store,
    Subject,
    brought,
)
from .types_gen import Checkout, CheckoutSnapshot, CheckoutState, ErrorCode, Event, EventKind, FieldError, NewCheckout, Payment, Payout, Refund
from .wire import Timestamp, parse

SWEEP_GAP = 0.05  # s between calls: at most 20 a second

LATE = "late_success"
REVERSED = "reversed"
OVERPAID = "overpaid"
OTHER_AMOUNT = "other_amount"  # what a checkout shows is not what was wished for

RANK_FINAL = 3  # from here the attempt has ended
_RANKS = {
    "pending": 1, "open": 1, "processing": 2, "success": RANK_FINAL, "failed": RANK_FINAL, "expired": RANK_FINAL, "cancelled": RANK_FINAL,
    LATE: 4, "paid": 4,  # money that comes to a checkout after it had expired wins
    REVERSED: 5, OVERPAID: 5,
}  # fmt: skip


def rank(status: Optional[str]) -> int:
    """Orders the news of one payment, payout, refund or checkout; 0 is no news of an attempt."""
    return _RANKS.get(status or "", 0)


@dataclass
class Change:
    """News about an attempt."""

    kind: str  # as EventKind.PAYMENT_SUCCESS; or payment.refused, .lapsed, .lost, which are no events of the service, and so for payouts, refunds and checkouts
    order: str = ""  # "" for a payment that this outbox did not make; see the option foreign
    reference: str = ""  # as the payment, payout, refund or checkout has it
    attempt: int = 0  # of a refund, which one of the order's; 0 if it was made elsewhere
    key: str = ""  # the idempotency key
    late: bool = False  # the money came after it had failed, expired or been cancelled
    already_paid: bool = False  # another attempt of the order was paid before: give this one back
    payment: Optional[Payment] = None  # None when it was refused, lapsed or lost, and for payouts, refunds and checkouts
    payout: Optional[Payout] = None
    event_id: str = ""  # "" where no event brought the news
    sequence: int = 0
    problem: str = ""  # why it was refused, lapsed or lost: a code of the service, or stale
    detail: str = ""  # of the problem, for people
    errors: List[FieldError] = field(default_factory=list)
    refund: Optional[Refund] = None
    left: Optional[Money] = None  # of a refund's payment, what can still go back, with refunded; None if the service does not know the payment
    checkout: Union[Checkout, CheckoutSnapshot, None] = None

    @property
    def paid(self) -> bool:
        """The customer has paid: success, or money that came late. Of a checkout it is the amount of your wish."""
        return self.kind in (EventKind.PAYMENT_SUCCESS, EventKind.PAYMENT_LATE_SUCCESS, EventKind.CHECKOUT_PAID)

    @property
    def failed(self) -> bool:
        """The payment ended without money, or the checkout expired or was cancelled.

        A customer who declines on a page may pay by another number, so that is no news.
        """
        return self.kind in (EventKind.PAYMENT_FAILED, EventKind.PAYMENT_EXPIRED, EventKind.CHECKOUT_EXPIRED, EventKind.CHECKOUT_CANCELLED)

    @property
    def overpaid(self) -> bool:
        """A checkout that was paid was paid once more: give back the payment extra. The order was shipped when it was paid first."""
        return self.kind == EventKind.CHECKOUT_OVERPAID

    @property
    def other_amount(self) -> bool:
        """A checkout says of itself that it was paid, and shows another amount or currency than your wish. Do not ship: a person looks."""
        return self.kind == CHECKOUT + "." + OTHER_AMOUNT

    @property
    def extra(self) -> str:
        """The payment that is to be given back: the second one of an overpaid checkout, or the one that paid an order that was
        paid before; "" otherwise."""
        if self.paid and self.already_paid:
            return (self.checkout.payment_id if self.checkout is not None else self.payment.id if self.payment is not None else "") or ""
        if not self.overpaid or self.checkout is None:
            return ""
        return next((a.payment_id for a in self.checkout.asks if a.status == "success" and a.payment_id and a.payment_id != self.checkout.payment_id), "")

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
        """The service does not take the payment, payout, refund or checkout, and why: nothing exists."""
        return self.kind.endswith("." + REFUSED)

    @property
    def lapsed(self) -> bool:
        """It was not sent in its time: nothing exists that somebody could pay."""
        return self.kind.endswith("." + LAPSED)

    @property
    def lost(self) -> bool:
        """The service does not know a payment or checkout any more that it had, or a payout or refund that it may have had: a person looks."""
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
        one = getattr(e.data, noun, None) if noun in (PAYMENT, PAYOUT, REFUND, CHECKOUT) else None
        if rank(status) and one is not None:
            change = Change(kind=e.type, event_id=e.id, sequence=e.sequence or 0)
            return self._apply(change, one, noun, status, cursor, self.foreign if foreign is None else foreign, e if noun == CHECKOUT else None)
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
        elif getattr(one, "late_success_at", None) is not None:
            status = LATE
        else:
            status = status_of(one)
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
        return (REFUND, change.key) if own else self._of_checkout(p)

    def _of_checkout(self, p: Payment) -> Tuple[str, str]:
        """Says whose a payment is that may be an ask of a checkout. A checkout that the service does not know is nobody's."""
        if p.checkout is not None:
            try:
                return CHECKOUT, (self.client.checkouts.get(p.checkout.id).idempotency_key or "").lower()
            except CallRefused as e:
                if e.code != ErrorCode.CHECKOUT_NOT_FOUND:
                    raise
        return PAYMENT, (p.idempotency_key or "").lower()

    def _paid_besides(self, tx: Any, row: Row) -> bool:
        """Tells whether the order of a row was paid in the other way: by a number, or on a page."""
        kind = OTHER_WAY.get(row.kind)
        return kind is not None and any(a.paid for a in self.store.attempts(tx, kind, row.order))

    def _other_amount(self, tx: Any, c: Change, row: Row, s: Subject, cursor: Optional[Cursor]) -> Decision:
        """Tells, once, that a checkout shows another amount than its wish.

        It is no end of it: the row is read until the service shows what was wished for.
        """
        if OTHER_AMOUNT in s.seen:
            return Decision(cursor=cursor)
        s = replace(s, seen=s.seen + [OTHER_AMOUNT], sequence=max(s.sequence, c.sequence))
        settle = Settlement(key=row.key, problem=NEEDS_ATTENTION)
        if row.remote_id:
            settle.state, settle.next_at = TAKEN, self.now()
        self.on_change(replace(c, kind=CHECKOUT + "." + OTHER_AMOUNT), tx)
        return Decision(subject=s, settle=settle, cursor=cursor)

    def _apply(
        self, change: Change, one: Any, noun: str, status: str, cursor: Optional[Cursor], foreign: bool, event: Optional[Event] = None
    ) -> None:
        """Where all roads end.

        In one transaction: lock what is known; stop if this news was seen, or is older than what is known; call the
        function; save. The event of a checkout that this outbox did not make is handed to on_other.
        """
        setattr(change, noun, one)
        change.key, change.reference = (one.idempotency_key or "").lower(), one.reference or ""
        change.late = status == LATE or noun == CHECKOUT and bool(one.late)
        kind, key = noun, change.key
        ask = noun == PAYMENT and one.checkout is not None
        if ask and status != REVERSED and not foreign:
            return  # its checkout tells what became of the order
        if ask or noun == REFUND and rank(status) >= RANK_FINAL:
            if cursor is not None:
                self._pace.wait()  # it may read the payment or checkout, and the log is read without haste
            kind, key = self._of_checkout(one) if ask else self._of_payment(change, one, status)
        if noun == CHECKOUT and status == OVERPAID:  # it was paid once before, whether or not that was heard
            self._apply(replace(change, kind=EventKind.CHECKOUT_PAID), one, noun, CheckoutState.PAID, None, foreign)
        other = self.on_other if event is not None else None

        def decide(tx: Any, s: Subject, attempts: List[Row]) -> Decision:
            if status in s.seen:
                return Decision(cursor=cursor)
            c, row, page = replace(change), None, None
            for a in attempts:
                if a.key == c.key:
                    row, c.order, c.attempt = a, a.order, a.attempt
                elif a.key == key:  # the payment or checkout of a refund that was made elsewhere; the checkout of an ask
                    c.order, page = a.order, a if ask else None
                elif a.paid and noun != REFUND:  # of a payment there may be several refunds
                    c.already_paid = True
            known, s = s, replace(s, seen=s.seen + [status], sequence=max(s.sequence, c.sequence))
            d = Decision(subject=s, cursor=cursor)
            if not c.order and other is not None:
                other(event, tx)  # type: ignore[arg-type]
                return d
            if not c.order and (not foreign or noun == CHECKOUT) or page is not None and status != REVERSED:
                return Decision(cursor=cursor)
            if row is not None and self._paid_besides(tx, row):
                c.already_paid = True
            if row is not None and noun == CHECKOUT and brought(status) and not _wished(row, one):
                return self._other_amount(tx, c, row, known, cursor)
            if rank(status) <= s.rank:
                return d
            if row is not None and s.rank < RANK_FINAL and rank(row.status) >= RANK_FINAL:
                # The attempt ended under another id: a restored service made it
                # again. What it brought before is no news, but money after none is.
                if not row.unpaid or not brought(status):
                    s.rank = rank(status)
                    d.settle = self._news(row, one, row.status)
                    return d
            s.rank = rank(status)
            if row is not None:
                d.settle = self._news(row, one, status)
            elif page is not None and page.status == CheckoutState.PAID:
                d.settle = Settlement(key=page.key, status=status)
            if row is not None and row.kind == CHECKOUT and row.state in (LAPSED, REFUSED) and not brought(status):
                return d  # nobody had the address of a page that was told to be none
            if s.rank >= RANK_FINAL:
                self.on_change(c, tx)
            elif self.on_progress is not None and noun != CHECKOUT:
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
        if row.kind == CHECKOUT:
            s.details = json.dumps(dict(page_of(row.details), payment_id=one.payment_id or ""))
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
            paid = row.kind != REFUND and any(a.paid for a in attempts if a.key != row.key) or self._paid_besides(tx, row)
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
    if isinstance(one, (Checkout, CheckoutSnapshot, NewCheckout)):
        return CHECKOUT
    return PAYOUT if isinstance(one, Payout) else REFUND if isinstance(one, Refund) else PAYMENT


def status_of(one: Any) -> str:
    """The last kind of news that a thing shows by itself."""
    if kind_of(one) != CHECKOUT:
        return one.status or ""
    return OVERPAID if one.overpaid else one.state or ""


def page_of(details: Optional[str]) -> Dict[str, str]:
    """What a row keeps of a checkout: its address, its return secret, and the payment that paid it."""
    value = json.loads(details) if details else {}
    return {name: value[name] for name in ("url", "return_secret", "payment_id") if value.get(name)}


def _wished(row: Row, checkout: Any) -> bool:
    """Tells whether a row is a wish for what a checkout shows."""
    wish = parse(row.body)["amount"]
    return bool(wish["value"] == checkout.amount.value and wish["currency"] == checkout.amount.currency)


def expiry(one: Any) -> int:
    """When the customer's time ends; 0 if nobody said it."""
    return Timestamp(one.expires_at).ms if one.expires_at else 0


def wall_clock() -> float:
    """Seconds since 1970."""
    return time.time()
