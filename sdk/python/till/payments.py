"""The calls about payments, and what payouts share with them."""

from __future__ import annotations

from typing import Any, Callable, Iterator, Optional, Type, TypeVar, Union

from . import operations_gen as ops
from .call import Caller, Request, Tried, decode
from .error import UNCLEAR, CallError, LookFirst, NoIdempotencyKey, Refused, failure
from .operation import Operation
from .page import Moment, go_through, query
from .transport import NOT_JSON
from .types_gen import (
    AttemptList,
    Checkout,
    CreateCheckout,
    CreateLink,
    CreatePayment,
    CreatePayout,
    CreateRefund,
    ErrorCode,
    EventList,
    Link,
    NewCheckout,
    Payment,
    PaymentPage,
    Payout,
    Refund,
)
from .wire import body_of, render

P = TypeVar("P", Payment, Payout, Refund, Checkout, NewCheckout, Link)


class Payments:
    """The calls about payments."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def create(self, payment: Optional[CreatePayment] = None, **members: Any) -> Payment:
        """Asks a customer for money. The key must be stored before: Teller does that. The answer is not final.

        Give a CreatePayment, or its members by name.
        """
        return create(self._c, ops.CREATE_PAYMENT, body_of(CreatePayment, payment, members), Payment, self.by_key)

    def by_key(self, key: str) -> Optional[Payment]:
        """Finds the payment that a key made; None if there is none."""
        for p in self.page(idempotency_key=key).items:
            if same_key(p.idempotency_key, key):
                return p
        return None

    def get(self, id: str, wait: float = 0) -> Payment:
        """Reads a payment. With wait it answers on a change of status, or after so many seconds, where the service can."""
        return get_waiting(self._c, ops.GET_PAYMENT, Payment, id, wait)

    def page(
        self,
        *,
        status: str = "",
        method: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
        reference: str = "",
        idempotency_key: str = "",
        provider_reference: str = "",
        order: str = "",
        limit: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> PaymentPage:
        """Lists payments, newest first, with their total. Both dates are inclusive."""
        q = query(
            status=status, method=method, from_date=from_date, to_date=to_date, reference=reference, idempotency_key=idempotency_key,
            provider_reference=provider_reference, order=order, limit=limit, offset=offset,
        )  # fmt: skip
        return self._c.read(PaymentPage, Request(ops.LIST_PAYMENTS, query=q))

    def all(
        self,
        *,
        status: str = "",
        method: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
        reference: str = "",
        provider_reference: str = "",
        order: str = "",
    ) -> Iterator[Payment]:
        """Goes through all payments that match, each once, whatever changes meanwhile. order="asc" is oldest first."""
        q = query(
            status=status, method=method, from_date=from_date, to_date=to_date, reference=reference, provider_reference=provider_reference, order=order
        )
        return go_through(q, lambda q: self._c.read(PaymentPage, Request(ops.LIST_PAYMENTS, query=q)))

    def attempts(self, id: str) -> AttemptList:
        """Lists the calls to the operator."""
        return self._c.read(AttemptList, Request(ops.LIST_PAYMENT_ATTEMPTS, [id]))

    def events(self, id: str) -> EventList:
        """Lists the events of a payment."""
        return self._c.read(EventList, Request(ops.LIST_PAYMENT_EVENTS, [id]))


def same_key(a: Optional[str], b: str) -> bool:
    """Compares idempotency keys, whose letters may be large."""
    return a is not None and a.lower() == b.lower()


Wish = Union[CreatePayment, CreatePayout, CreateRefund, CreateCheckout, CreateLink]


def create(client: Caller, op: Operation, body: Wish, cls: Type[P], by_key: Optional[Callable[[str], Optional[P]]]) -> P:
    """Posts a body with a key. If a try without an answer leaves open what happened, finds by the key what it made, where something can."""
    if not body.idempotency_key:
        raise NoIdempotencyKey("till: a create needs an idempotency key that you have stored; see Teller")
    r = Request(op, body=render(body.to_json()), key=body.idempotency_key)
    try:
        t = client.call(r)
    except LookFirst as look:
        if by_key is None:
            raise look.unknown from None
        try:
            found = by_key(r.key)
        except CallError:
            raise look.unknown from None
        if found is None:
            raise look.absent from None
        return found
    return created(cls, t, r)


def created(cls: Type[P], t: Tried, r: Request) -> P:
    """Reads the answer to a create. JSON of something else, as a portal sends it, is no answer."""
    p = decode(cls, t, r)
    if not p.id or not same_key(p.idempotency_key, r.key):
        t.reason = NOT_JSON
        raise failure(UNCLEAR, t, r.key, 1)
    return p


def get_waiting(client: Caller, op: Operation, cls: Type[P], id: str, wait: float) -> P:
    """Reads one thing. A service that does not know the parameter wait says so once, and is not asked again."""
    plain = Request(op, [id])
    seconds = int(wait)
    if seconds < 1 or not client.long_poll:
        return client.read(cls, plain)
    try:
        return client.read(cls, Request(op, [id], {"wait": str(seconds)}, wait=float(seconds)))
    except Refused as e:
        if e.code != ErrorCode.INVALID_PARAMETER:
            raise
    client.long_poll = False
    return client.read(cls, plain)
