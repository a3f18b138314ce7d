"""Wishes on their way to the service: the same bytes with the same key, until it is known what became of them."""

from __future__ import annotations

import json
import time
import uuid
from dataclasses import dataclass
from typing import Any, Callable, Dict, Optional, Tuple, Union

from . import operations_gen as ops
from .call import Request, Tried, delay
from .error import DONE, LOOK, UNCLEAR, CallError, Refused, TillError, failure, judge
from .error import REFUSED as VERDICT_REFUSED
from .error import UNAVAILABLE as VERDICT_UNAVAILABLE
from .inbox import RANK_FINAL, Inbox, details_of, expiry, kept_of, kind_of, page_of, rank, status_of
from .operation import Operation
from .payments import created
from .store import (
    ABANDONED,
    CHECKOUT,
    ENDED,
    LAPSED,
    LOST,
    OTHER_WAY,
    PAYMENT,
    PAYOUT,
    REFUND,
    REFUSED,
    SENDING,
    STALE,
    TAKEN,
    WITHDRAWN,
    WRITTEN,
    Row,
    Settlement,
)
from .types_gen import NewCheckout, Payment, Payout, Refund
from .wire import parse, render

FIRST_DUE = 1000  # ms: when run sends a wish that nobody called send for
LEASE_GRACE = 1000  # ms after the deadline of a try, of which nobody told the end, the next one is due
WAIT_FOR_OTHER = 1.0  # s that send leaves a row to another worker. After that both may: the key makes it one payment.
_MAX_OUTBOX_DELAY = 60_000


class NoAttempt(TillError):
    """The order has no attempt."""


class MayArrive(TillError):
    """The attempt may have arrived, so it cannot be withdrawn."""


class NotLost(TillError):
    """Only an attempt that is lost is sent again by hand."""


class NotStuck(TillError):
    """There is no open attempt to abandon."""


class OtherWrite(TillError):
    """Another program changed the attempt at the same moment."""


class AttemptOpen(TillError):
    """The order has an attempt with another wish that may still bring money; or a refund that may still give it back."""

    def __init__(self, order: str, state: str, expires_at: int) -> None:
        super().__init__("till: order %s has an open attempt (%s)" % (order, state))
        self.order = order
        self.state = state
        self.expires_at = expires_at  # ms since 1970: when the customer's time ends, or when it is sent no more


class AlreadyPaid(TillError):
    """An attempt for the order was paid."""

    def __init__(self, order: str) -> None:
        super().__init__("till: order " + order + " is paid already")
        self.order = order


class NotPaid(TillError):
    """No attempt for the order was paid, so there is nothing to give back."""

    def __init__(self, order: str) -> None:
        super().__init__("till: order " + order + " is not paid")
        self.order = order


@dataclass
class Progress:
    """How far an attempt got.

    state is "taken" (the service has it), "later" (it cannot take it now; nothing exists; it is sent again), "unclear" (not
    known yet; say "check your phone" all the same), "lapsed" (it was not sent in its time; nothing exists) or "lost"
    (the service had it, or of a payout or refund may have had it, and does not know it: a person looks).
    """

    state: str
    id: str = ""  # of the payment, payout, refund or checkout, once taken
    payment: Optional[Payment] = None  # as the service answered, if it just did
    payout: Optional[Payout] = None
    replayed: bool = False
    error: Optional[CallError] = None  # Unavailable or Unclear, for the log
    refund: Optional[Refund] = None
    checkout: Optional[NewCheckout] = None
    url: str = ""  # of a checkout, once taken: send the customer there
    return_secret: str = ""  # of a checkout, once taken: for verify_return


def taken(one: Any, replayed: bool) -> Progress:
    """The progress of a row that the service has."""
    p = Progress("taken", one.id, replayed=replayed)
    setattr(p, kind_of(one), one)
    if p.checkout is not None:
        p.url, p.return_secret = one.url or "", one.return_secret or ""
    return p


def new_key() -> str:
    """Draws a UUID of version 4."""
    return str(uuid.uuid4())


def outbox_delay(tries: int) -> int:
    """How many ms the outbox waits after a try: 1, 2, 4 … 60 s."""
    return _MAX_OUTBOX_DELAY if tries > 6 else min(_MAX_OUTBOX_DELAY, 1000 << max(tries - 1, 0))


def same_json(a: bytes, b: bytes) -> bool:
    """Compares two bodies by what they say, numbers by their digits."""
    return render(_ordered(parse(a))) == render(_ordered(parse(b)))


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _ordered(value[name]) for name in sorted(value)}
    return [_ordered(v) for v in value] if isinstance(value, list) else value


def _in_flight(row: Row, now: int) -> bool:
    """Tells whether somebody seems to be sending a row just now."""
    return row.state == SENDING and now < row.lease and row.next_at == row.lease + LEASE_GRACE


def settled(row: Row) -> Progress:
    """The progress of a row that is sent no more."""
    if row.state in (TAKEN, ENDED):
        page = page_of(row.details)
        return Progress("taken", row.remote_id, url=page.get("url", ""), return_secret=page.get("return_secret", ""))
    if row.state == LAPSED:
        return Progress("lapsed")
    if row.state == LOST:
        return Progress("lost", row.remote_id)
    why = kept_of(row.details)
    raise Refused(
        code=row.problem,
        status=why.status,
        detail=why.detail,
        errors=why.errors,
        request_id=why.request_id,
        idempotency_key=row.key,
        tries=row.tries,
    )


# What a row posts, and what it makes.
_CREATES: Dict[str, Tuple[Operation, Any]] = {
    PAYMENT: (ops.CREATE_PAYMENT, Payment), PAYOUT: (ops.CREATE_PAYOUT, Payout), REFUND: (ops.CREATE_REFUND, Refund),
    CHECKOUT: (ops.CREATE_CHECKOUT, NewCheckout),
}  # fmt: skip


Order = Union[str, int]  # your id of what is paid; a number is kept as its digits


def order_text(order: Order) -> str:
    """The text that an order is kept under."""
    return str(order) if isinstance(order, int) and not isinstance(order, bool) else order  # type: ignore[return-value]


class Outbox(Inbox):
    """The part of a Teller that sends."""

    payment_until: int  # ms
    look_after: int  # ms

    def _put(self, tx: Any, kind: str, order: str, until: int, body: Callable[[str], bytes]) -> None:
        """Writes an attempt, unless the order has one that stands in the way."""
        for _ in range(3):
            for row in self.store.attempts(tx, OTHER_WAY[kind], order) if kind in OTHER_WAY else []:
                if row.paid:
                    raise AlreadyPaid(order)
                if row.open:
                    raise AttemptOpen(row.order, row.state, row.send_until)
            number = 1
            for row in self.store.attempts(tx, kind, order):
                number = row.attempt + 1
                if row.open and kind == REFUND:  # another one of the same sum may well be meant
                    raise AttemptOpen(row.order, row.state, row.send_until)
                if row.paid and kind != REFUND:
                    raise AlreadyPaid(order)
                if row.open:
                    # The same wish while an attempt is open is that attempt.
                    if not same_json(body(row.key), row.body):
                        raise AttemptOpen(row.order, row.state, row.send_until)
                    return
            key = new_key()
            now = self.now()
            fresh = Row(key, kind, order, number, body(key), next_at=now + FIRST_DUE, send_until=now + until, created_at=now)
            if self.store.put(tx, fresh):
                return
        raise OtherWrite("till: another program changed the attempt at the same moment")

    def send(self, order: Order) -> Progress:
        """Posts the newest attempt of an order, and repeats it within the deadline of a call.

        What is not settled then is sent again by run or sweep. It raises Refused, or an error of the store; a lost answer is
        no error. Call it after your commit, never inside your transaction.
        """
        return self._send_order(PAYMENT, order)

    def send_payout(self, order: Order) -> Progress:
        """Posts the newest payout of an order, like send."""
        return self._send_order(PAYOUT, order)

    def send_refund(self, order: Order) -> Progress:
        """Posts the newest refund of an order, like send."""
        return self._send_order(REFUND, order)

    def send_checkout(self, order: Order) -> Progress:
        """Makes the page of the newest checkout of an order, like send. Send the customer to the url of the answer.

        Once it is taken the same call answers from the store, with the same address and the same return secret.
        """
        return self._send_order(CHECKOUT, order)

    def _latest(self, order: Order) -> Optional[Row]:
        """The newest attempt to be paid for an order, by a number or on a page."""
        row, page = self.store.newest(PAYMENT, order_text(order)), self.store.newest(CHECKOUT, order_text(order))
        return page if page is not None and (row is None or page.created_at > row.created_at) else row

    def _send_order(self, kind: str, order: Order) -> Progress:
        return self._send(self._newest(kind, order), self.client.tries)

    def _newest(self, kind: str, order: Order) -> Row:
        row = self.store.newest(kind, order_text(order))
        if row is None:
            raise NoAttempt("till: the order has no attempt")
        return row

    def _send(self, row: Row, tries: int) -> Progress:
        """Makes tries until the row is settled, or time or tries are over."""
        began = time.monotonic()
        end = began + self.client.deadline
        n = 0
        while True:
            if row.state not in (WRITTEN, SENDING):
                return settled(row)
            now = self.now()
            if now >= row.send_until:
                return self._stale(row, now)
            if n == 0 and _in_flight(row, now) and time.monotonic() < began + WAIT_FOR_OTHER:
                self.client.sleep(0.1)
                row = self.store.newest(row.kind, row.order) or row
                continue
            lease = max(now + int(self.client.try_timeout * 1000), row.lease + 1)
            if not self.store.count(row, lease, lease + LEASE_GRACE):
                # Another one was faster; see what it did.
                if time.monotonic() > end:
                    return Progress("unclear")
                row = self.store.newest(row.kind, row.order) or row
                continue
            n += 1
            before = row.state == SENDING
            row.state, row.lease, row.tries = SENDING, lease, row.tries + 1
            progress, wait = self._post(row, before)
            if progress.state == "taken" or not wait or n >= tries or time.monotonic() + wait > end:
                return progress
            self.client.sleep(wait)

    def _post(self, row: Row, before: bool) -> Tuple[Progress, float]:
        """Makes one try, which was counted, and settles the row. The number is when to try again, 0 for not now."""
        r = Request(_CREATES[row.kind][0], body=row.body, key=row.key)
        try:
            key = self.client.key()
        except Exception:
            self._back(row, before)
            raise
        got = self.client.attempt(r, key)
        if got.status == 401:
            again = self.client.key_again()
            if again and again != key:
                got = self.client.attempt(r, again)
        verdict = judge(r.op, got, before)
        if verdict == DONE:
            one = self._answered(row, got, r)
            if one is not None:
                self.client.budget.success()
                self._take(row, one)
                return taken(one, got.header("Idempotent-Replayed") == "true"), 0.0
            verdict = UNCLEAR
        if verdict == LOOK:
            try:
                found = self._find(row)
            except CallError:
                verdict = UNCLEAR
            else:
                if found is not None:
                    return self._adopt(row, found), 0.0
                # The try before of a payout or refund may have been taken, by a service that was restored since.
                verdict = VERDICT_REFUSED if row.kind in OTHER_WAY else UNCLEAR
        return self._failed(row, got, verdict, before)

    def _failed(self, row: Row, got: Tried, verdict: str, before: bool) -> Tuple[Progress, float]:
        """Settles a row after a try that did not bring the payment."""
        fail = failure(verdict, got, row.key, row.tries)
        s = Settlement(from_states=[SENDING], lease=row.lease)
        if verdict == VERDICT_REFUSED:
            s.state, s.problem, s.details = REFUSED, got.code or "refused", details_of(fail)
            self._end_or_back(row, s, before)
            raise fail
        s.next_at = self.now() + max(outbox_delay(row.tries), int(got.retry_after * 1000))
        wait = delay(min(row.tries - 1, 5), got.retry_after, self.client.random()) if got.passing else 0.0
        if verdict == VERDICT_UNAVAILABLE:  # nothing arrived, now or before
            s.state = WRITTEN
            self._settle(row, s)
            return Progress("later", error=fail), wait
        s.state = SENDING
        self._settle(row, s)
        return Progress("unclear", error=fail), wait

    def _end_or_back(self, row: Row, s: Settlement, before: bool) -> bool:
        """Ends a row. If your function fails, it was not told, and the row is as before."""
        try:
            return self._end(row, s)
        except Exception:
            self._back(row, before)
            raise

    def _back(self, row: Row, before: bool) -> None:
        """Undoes a count of which nothing was sent, or an end that your function did not take."""
        state = SENDING if before else WRITTEN
        self._settle(row, Settlement(from_states=[row.state], lease=row.lease, state=state, next_at=self.now() + outbox_delay(row.tries)))

    def _settle(self, row: Row, s: Settlement) -> bool:
        """Changes a row in the store, and in memory if the store did."""
        s.key = row.key
        done = self.store.settle(s)
        if done and s.state:
            row.state = s.state
        return done

    @staticmethod
    def _answered(row: Row, got: Tried, r: Request) -> Any:
        """Reads the answer to a create; None if it is none."""
        try:
            return created(_CREATES[row.kind][1], got, r)
        except CallError:
            return None

    def _take(self, row: Row, one: Any) -> None:
        """Notes that the service has it. News that came before the answer is not undone."""
        s = Settlement(from_states=[WRITTEN, SENDING, LAPSED, REFUSED, LOST], state=TAKEN, remote_id=one.id, send_until=expiry(one))
        s.next_at = self.now() + self.open_after
        if row.problem != ABANDONED:
            s.problem = s.details = ""
        if row.status == "" and rank(status_of(one)) < RANK_FINAL:
            s.status = status_of(one)  # what ended is told by apply, with the call of the function
        if row.kind != CHECKOUT:
            self._settle(row, s)
            return
        page = {"url": one.url or "", "return_secret": one.return_secret or ""}
        s.details = json.dumps(page)
        if not self._settle(row, s):
            # News came before the answer. Its payment is kept, and the page's address with it.
            now = self.store.newest(row.kind, row.order) or row
            self._settle(row, Settlement(from_states=[TAKEN, ENDED], details=json.dumps(dict(page_of(now.details), **page))))

    def _find(self, row: Row) -> Any:
        """Asks the service for what a row made; None if there is nothing. A checkout is not looked for: nobody was given its address."""
        if row.kind == CHECKOUT:
            return None
        calls: Any = {PAYOUT: self.client.payouts, REFUND: self.client.refunds}.get(row.kind, self.client.payments)  # type: ignore[dict-item]
        return calls.by_key(row.key)

    def _adopt(self, row: Row, one: Any) -> Progress:
        """Takes what was found, with the news that it brings."""
        self._take(row, one)
        self.apply_read(one)
        return taken(one, True)

    def _stale(self, row: Row, now: int) -> Progress:
        """Ends a wish whose time is over.

        What was never sent lapses. What may have arrived is asked for by its key, not sooner than a request can be on
        its way; it is never posted again. If the service does not know it, a payment lapses, and so does a checkout whose
        address was given to nobody. A payout or refund is lost: a service that was restored from a backup forgot what it
        had paid out since, and one more would pay twice.
        """
        if row.state == WRITTEN:
            if not self._end_or_back(row, Settlement(from_states=[WRITTEN], state=LAPSED, problem=STALE), False):
                raise OtherWrite("till: another program changed the attempt at the same moment")
            return Progress("lapsed")
        s = Settlement(from_states=[SENDING], lease=row.lease)
        if now < row.lease + self.look_after:
            s.next_at = row.lease + self.look_after
            self._settle(row, s)
            return Progress("unclear")
        try:
            found = self._find(row)
        except CallError as e:
            s.next_at = now + self.look_after
            self._settle(row, s)
            return Progress("unclear", error=e)
        if found is not None:
            return self._adopt(row, found)
        lapses = row.kind == PAYMENT or row.kind == CHECKOUT and not row.remote_id
        end = LAPSED if lapses else LOST
        s.state, s.problem = end, STALE
        return Progress(end if self._end_or_back(row, s, True) else "unclear")  # else news came meanwhile

    def withdraw(self, order: Order) -> None:
        """Ends an attempt of which provably nothing arrived, for example to offer another method."""
        row = self._latest(order) or self._newest(PAYMENT, order)
        if not self._settle(row, Settlement(from_states=[WRITTEN], state=LAPSED, problem=WITHDRAWN)):
            raise MayArrive("till: the attempt may have arrived, so it cannot be withdrawn")

    def abandon(self, order: Order) -> None:
        """Lets a new attempt begin beside one that is stuck.

        The old one is sent no more, but it may still bring money: Change.already_paid tells it then.
        """
        row = self._latest(order)
        if row is None or not row.open:
            raise NotStuck("till: there is no open attempt to abandon")
        s = Settlement(from_states=[TAKEN, LOST], problem=ABANDONED)
        if row.state in (SENDING, WRITTEN):
            s = Settlement(from_states=[WRITTEN, SENDING], problem=ABANDONED, send_until=self.now())
        if not self._settle(row, s):
            raise OtherWrite("till: another program changed the attempt at the same moment")

    def resend(self, order: Order) -> Progress:
        """Posts an attempt again that the service lost with a restored backup.

        The operator recognises it. M-Pesa does not: look at its statement first.
        """
        row = self._latest(order)
        now = self.now()
        s = Settlement(from_states=[LOST], state=SENDING, next_at=now, send_until=now + self.payment_until)
        if row is None or row.state != LOST or not self._settle(row, s):
            raise NotLost("till: only an attempt that is lost is sent again by hand")
        return self._send_order(row.kind, order)
