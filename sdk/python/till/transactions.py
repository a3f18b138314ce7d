"""The calls about the statement."""

from __future__ import annotations

from typing import Any, Iterator, Optional

from . import operations_gen as ops
from .call import Caller, Request, Tried, delay
from .error import DONE, failure, judge
from .page import Moment, go_through, query
from .transport import CUT, TIMEOUT, reason_of
from .types_gen import Transaction, TransactionPage
from .wire import parse

MAX_LINE = 1 << 20  # of an export


class Transactions:
    """The calls about the statement."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def page(
        self,
        *,
        type: str = "",
        currency: str = "",
        payment_id: str = "",
        payout_id: str = "",
        reference: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
        order: str = "",
        limit: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> TransactionPage:
        """Lists transactions, newest first, with their total. Both dates are inclusive."""
        q = query(
            type=type, currency=currency, payment_id=payment_id, payout_id=payout_id, reference=reference, from_date=from_date, to_date=to_date,
            order=order, limit=limit, offset=offset,
        )  # fmt: skip
        return self._c.read(TransactionPage, Request(ops.LIST_TRANSACTIONS, query=q))

    def all(
        self,
        *,
        type: str = "",
        currency: str = "",
        payment_id: str = "",
        payout_id: str = "",
        reference: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
        order: str = "",
    ) -> Iterator[Transaction]:
        """Goes through all transactions that match."""
        q = query(
            type=type, currency=currency, payment_id=payment_id, payout_id=payout_id, reference=reference, from_date=from_date, to_date=to_date, order=order
        )
        return go_through(q, lambda q: self._c.read(TransactionPage, Request(ops.LIST_TRANSACTIONS, query=q)))

    def export(
        self,
        *,
        type: str = "",
        currency: str = "",
        payment_id: str = "",
        payout_id: str = "",
        reference: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
    ) -> Iterator[Transaction]:
        """Streams the whole statement that the filter leaves, as of now, oldest first.

        It raises Unavailable if the stream was cut: what was given is then not the whole.
        """
        q = query(type=type, currency=currency, payment_id=payment_id, payout_id=payout_id, reference=reference, from_date=from_date, to_date=to_date)
        r = Request(ops.LIST_TRANSACTIONS, query=q, accept="application/jsonl", stream=True)
        key, n, given = self._c.key(), 0, False
        while True:  # a repeat would give lines twice, so only before the first
            n += 1
            t = self._c.attempt(r, key)
            if t.response is not None:
                for transaction in _lines(t):
                    given = True
                    yield transaction
            verdict = judge(r.op, t, False)
            if verdict == DONE:
                return
            wait = delay(n - 1, t.retry_after, self._c.random())
            if given or n >= self._c.tries or not t.passing or wait > self._c.deadline:
                raise failure(verdict, t, "", n)
            self._c.sleep(wait)


def _lines(t: Tried) -> Iterator[Transaction]:
    """Reads the lines of a stream. If it is cut, t says so."""
    response: Any = t.response
    rest = b""
    try:
        while True:
            try:
                part = response.part(65536)
                *whole, rest = (rest + part).split(b"\n")
                if not part and rest.strip():
                    whole, rest = whole + [rest], b""
                if len(rest) > MAX_LINE:
                    raise ValueError("till: a line is too long")
                found = [Transaction.from_json(parse(line)) for line in whole if line.strip()]
            except Exception as e:
                t.reason = TIMEOUT if reason_of(e) == TIMEOUT else CUT
                return
            yield from found
            if not part:
                return
    finally:
        response.close()
