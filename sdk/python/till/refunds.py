"""The calls about refunds."""

from __future__ import annotations

from typing import Any, Iterator, Optional

from . import operations_gen as ops
from .call import Caller, Request
from .page import Moment, go_through, query
from .payments import create, get_waiting, same_key
from .types_gen import AttemptList, CreateRefund, EventList, Refund, RefundList, RefundPage
from .wire import body_of


class Refunds:
    """The calls about refunds."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def create(self, refund: Optional[CreateRefund] = None, **members: Any) -> Refund:
        """Gives a payment back, to the number that paid it. The key must be stored before. The answer is not final.

        Give a CreateRefund, or its members by name.
        """
        return create(self._c, ops.CREATE_REFUND, body_of(CreateRefund, refund, members), Refund, self.by_key)

    def by_key(self, key: str) -> Optional[Refund]:
        """Finds the refund that a key made; None if there is none."""
        for p in self.page(idempotency_key=key).items:
            if same_key(p.idempotency_key, key):
                return p
        return None

    def get(self, id: str, wait: float = 0) -> Refund:
        """Reads a refund, like payments.get."""
        return get_waiting(self._c, ops.GET_REFUND, Refund, id, wait)

    def cancel(self, id: str) -> Refund:
        """Ends a refund of which nothing was sent."""
        return self._c.read(Refund, Request(ops.CANCEL_REFUND, [id]))

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
        payment_id: str = "",
        order: str = "",
        limit: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> RefundPage:
        """Lists refunds, newest first, with their total. Both dates are inclusive."""
        q = query(
            status=status, method=method, from_date=from_date, to_date=to_date, reference=reference, idempotency_key=idempotency_key,
            provider_reference=provider_reference, payment_id=payment_id, order=order, limit=limit, offset=offset,
        )  # fmt: skip
        return self._c.read(RefundPage, Request(ops.LIST_REFUNDS, query=q))

    def all(
        self,
        *,
        status: str = "",
        method: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
        reference: str = "",
        provider_reference: str = "",
        payment_id: str = "",
        order: str = "",
    ) -> Iterator[Refund]:
        """Goes through all refunds that match, each once, whatever changes meanwhile. order="asc" is oldest first."""
        q = query(
            status=status, method=method, from_date=from_date, to_date=to_date, reference=reference, provider_reference=provider_reference,
            payment_id=payment_id, order=order,
        )  # fmt: skip
        return go_through(q, lambda q: self._c.read(RefundPage, Request(ops.LIST_REFUNDS, query=q)))

    def attempts(self, id: str) -> AttemptList:
        """Lists the calls to the operator."""
        return self._c.read(AttemptList, Request(ops.LIST_REFUND_ATTEMPTS, [id]))

    def events(self, id: str) -> EventList:
        """Lists the events of a refund."""
        return self._c.read(EventList, Request(ops.LIST_REFUND_EVENTS, [id]))

    def of(self, payment: str) -> RefundList:
        """Lists the refunds of a payment, the newest first."""
        return self._c.read(RefundList, Request(ops.LIST_PAYMENT_REFUNDS, [payment]))
