"""What a store keeps: three tables in your database. Times are milliseconds since 1970; 0 is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional, Protocol, Sequence

# Kinds of rows in the outbox.
PAYMENT = "payment"
PAYOUT = "payout"
REFUND = "refund"
CHECKOUT = "checkout"

# The other kind of attempt by which an order is paid.
OTHER_WAY = {PAYMENT: CHECKOUT, CHECKOUT: PAYMENT}

# States of a row in the outbox: written, sending, taken, ended; and refused, lapsed, lost.
WRITTEN = "written"  # provably nothing arrived at the service
SENDING = "sending"  # a try was counted, and no answer says that nothing arrived
TAKEN = "taken"  # the service has it
ENDED = "ended"  # its status is final
REFUSED = "refused"  # the service does not take it; nothing exists
LAPSED = "lapsed"  # it was not sent in its time, or withdrawn; nothing exists
LOST = "lost"  # the service had it, or of a payout or refund may have had it, and does not know it

# Words in the column problem beside codes of the service.
ABANDONED = "abandoned"
WITHDRAWN = "withdrawn"
STALE = "stale"
NEEDS_ATTENTION = "needs_attention"  # a person at the service looks at it


def brought(status: str) -> bool:
    """Tells whether a status says that money came."""
    return status in ("success", "late_success", "paid", "overpaid")


@dataclass
class Row:
    """An attempt in the outbox."""

    key: str  # the idempotency key, drawn once
    kind: str
    order: str
    attempt: int
    body: bytes  # the bytes that every try sends
    state: str = WRITTEN
    tries: int = 0
    next_at: int = 0  # when to send it, or to read it again
    lease: int = 0  # the deadline of its last try; 0 before the first
    send_until: int = 0  # after this it is posted no more; once taken, when the customer's time ends
    remote_id: str = ""  # the id of the payment, payout, refund or checkout
    status: str = ""  # the last kind of news, without its noun: success, late_success, reversed, …
    problem: str = ""  # why a person should look
    created_at: int = 0
    details: str = ""  # JSON: status, detail, request_id and errors of the problem; url, return_secret and payment_id of a checkout; "" where there are none

    @property
    def open(self) -> bool:
        """Whether an attempt may still bring money."""
        return self.state in (WRITTEN, SENDING, TAKEN, LOST) and self.problem != ABANDONED

    @property
    def paid(self) -> bool:
        """Whether an attempt brought money that stands."""
        return brought(self.status)

    @property
    def unpaid(self) -> bool:
        """Whether an attempt ended without money."""
        return self.status in ("failed", "expired", "cancelled")


@dataclass
class Settlement:
    """Changes a row of the outbox if it is as expected. None, and 0 of a time, leave a column as it is."""

    key: str = ""
    from_states: Optional[Sequence[str]] = None  # the states that it may be in; None for any
    lease: int = 0  # if not 0, its lease must be this: no other try was counted since
    state: Optional[str] = None
    next_at: int = 0
    send_until: int = 0
    remote_id: Optional[str] = None
    status: Optional[str] = None
    problem: Optional[str] = None
    details: Optional[str] = None

    def fits(self, row: Row) -> bool:
        """Tells whether a row is as expected."""
        return (self.from_states is None or row.state in self.from_states) and (not self.lease or row.lease == self.lease)


@dataclass
class Subject:
    """What is known about a payment, payout, refund or other event."""

    id: str
    rank: int = 0
    seen: List[str] = field(default_factory=list)  # kinds of news, in the order of their coming
    sequence: int = 0


@dataclass
class Cursor:
    """How far the event log was read."""

    name: str
    log: str = ""  # which log
    after: int = 0


@dataclass
class Decision:
    """What an application saves, in its transaction."""

    subject: Optional[Subject] = None
    settle: Optional[Settlement] = None
    cursor: Optional[Cursor] = None


Apply = Callable[[Any, Subject, List[Row]], Decision]


class Store(Protocol):
    """Three tables in your database. tx is your handle of a transaction, as a connection of the DB-API.

    A store of your own passes the suite in tests/store_suite.py.
    """

    def install(self) -> None:
        """Makes the tables where they are missing, and the columns that came later."""

    def attempts(self, tx: Any, kind: str, order: str) -> List[Row]:
        """The attempts of an order, oldest first, as tx sees them."""

    def put(self, tx: Any, row: Row) -> bool:
        """Inserts a row in tx. False if the order has an attempt of this number already; tx can go on then, and sees it."""

    def newest(self, kind: str, order: str) -> Optional[Row]:
        """The newest attempt of an order, None if there is none."""

    def due(self, now: int, limit: int) -> List[Row]:
        """Rows to send, those first that are due longest."""

    def count(self, row: Row, lease: int, next_at: int) -> bool:
        """Counts a try in a commit of its own, before its first byte: the row is sending from then on.

        False if another one counted first: if the lease is not that of row any more.
        """

    def settle(self, s: Settlement) -> bool:
        """Changes a row, and tells whether it was as expected."""

    def open(self, now: int, limit: int) -> List[Row]:
        """Rows that are taken and to be read again."""

    def since(self, start: int, after_key: str, limit: int) -> List[Row]:
        """Rows by key, made at or after a time, whose key is greater."""

    def attention(self, start: int, limit: int) -> List[Row]:
        """Rows made at or after a time that a person should see."""

    def apply(self, subject: str, kind: str, key: str, fn: Apply) -> None:
        """Opens a transaction, locks the subject and all attempts of the order that has the key, calls fn with them, saves
        what it decides, and commits.

        If fn fails, nothing is saved. It may be called again after a conflict with another transaction, which rolled
        the first one back.
        """

    def cursor(self, name: str) -> Cursor:
        """A cursor; with 0 if it never moved."""

    def move_cursor(self, c: Cursor, reset: bool) -> None:
        """Moves a cursor forward within its log. With reset it may go anywhere."""

    def release(self) -> None:
        """Called by a thread that will use the store no more."""
