"""Where all news ends: one function of yours, called once for each change."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Callable, List, Optional

from .client import Till
from .events import EventKind
from .store import ABANDONED, ENDED, PAYMENT, PAYOUT, TAKEN, Cursor, Decision, Row, Settlement, Store, Subject
from .types_gen import Event, Payment, Payout
from .wire import Timestamp

LATE = "late_success"
REVERSED = "reversed"

RANK_FINAL = 3  # from here the attempt has ended
_RANKS = {"pending": 1, "processing": 2, "success": RANK_FINAL, "failed": RANK_FINAL, "expired": RANK_FINAL, "cancelled": RANK_FINAL, LATE: 4, REVERSED: 5}


def rank(status: Optional[str]) -> int:
    """Orders the news of one payment or payout; 0 is no news of an attempt."""
    return _RANKS.get(status or "", 0)


@dataclass
class Change:
    """News about an attempt."""

    kind: str  # as EventKind.PAYMENT_SUCCESS
    order: str = ""  # "" for a payment that this outbox did not make
    reference: str = ""  # as the payment has it
    attempt: int = 0
    key: str = ""  # the idempotency key
    late: bool = False  # the money came after it had failed or expired
    already_paid: bool = False  # another attempt of the order was paid before: give this one back
    payment: Optional[Payment] = None
    payout: Optional[Payout] = None
    event_id: str = ""  # "" where a read brought the news
    sequence: int = 0

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
    clock: Callable[[], float]

    def now(self) -> int:
        """The time, as exact as stores keep it."""
        return int(self.clock() * 1000)

    def apply_event(self, e: Event, cursor: Optional[Cursor] = None) -> None:
        """The road of webhooks and the log."""
        noun, _, status = e.type.partition(".")
        data = e.data
        payment, payout = (data.payment, data.payout) if data is not None else (None, None)
        if rank(status) and (noun == PAYMENT and payment is not None or noun == PAYOUT and payout is not None):
            change = Change(kind=e.type, event_id=e.id, sequence=e.sequence or 0, payment=payment, payout=payout)
            return self._apply(change, noun, status, cursor)
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

    def apply_read(self, p: Optional[Payment], o: Optional[Payout]) -> None:
        """The road of the sweep: the news is what the payment shows. A status that is not known is not final, and no news."""
        one: Any = p if p is not None else o
        if p is not None and p.reversed_at is not None:
            status = REVERSED
        elif one.late_success_at is not None:
            status = LATE
        else:
            status = one.status
        if rank(status):
            noun = PAYMENT if p is not None else PAYOUT
            self._apply(Change(kind=noun + "." + status, payment=p, payout=o), noun, status, None)

    def _apply(self, change: Change, noun: str, status: str, cursor: Optional[Cursor]) -> None:
        """Where all roads end.

        In one transaction: lock what is known; stop if this news was seen, or is older than what is known; call the
        function; save.
        """
        one: Any = change.payout if noun == PAYOUT else change.payment
        change.key, change.reference = (one.idempotency_key or "").lower(), one.reference or ""
        change.late = status == LATE

        def decide(tx: Any, s: Subject, attempts: List[Row]) -> Decision:
            if status in s.seen:
                return Decision(cursor=cursor)
            c, row = replace(change), None
            for a in attempts:
                if a.key == c.key:
                    row, c.order, c.attempt = a, a.order, a.attempt
                elif a.paid:
                    c.already_paid = True
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

        self.store.apply(one.id, noun, change.key, decide)

    def _news(self, row: Row, one: Any, status: str) -> Settlement:
        """What a change does to its row."""
        s = Settlement(key=row.key, remote_id=one.id, status=status, state=ENDED if rank(status) >= RANK_FINAL else TAKEN)
        s.send_until = expiry(one)
        s.next_at = self.now() + self.open_after
        if row.problem != ABANDONED:
            s.problem = ""
        return s


def expiry(one: Any) -> int:
    """When the customer's time ends; 0 if nobody said it."""
    return Timestamp(one.expires_at).ms if one.expires_at else 0


def wall_clock() -> float:
    """Seconds since 1970."""
    return time.time()
