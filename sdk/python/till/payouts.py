"""The calls about payouts."""

from __future__ import annotations

from typing import Any, Iterator, Optional

from . import operations_gen as ops
from .call import Caller, Request
from .page import Moment, go_through, query
from .payments import create, get_waiting, same_key
from .types_gen import AttemptList, CreatePayout, EventList, Payout, PayoutPage
from .wire import body_of


class Payouts:
    """The calls about payouts."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def create(self, payout: Optional[CreatePayout] = None, **members: Any) -> Payout:
        """Sends money to a recipient. The key must be stored before: Teller does that. The answer is not final.

        Give a CreatePayout, or its members by name.
        """
        return create(self._c, ops.CREATE_PAYOUT, body_of(CreatePayout, payout, members), Payout, self.by_key)

    def by_key(self, key: str) -> Optional[Payout]:
        """Finds the payout that a key made; None if there is none."""
        for p in self.page(idempotency_key=key).items:
            if same_key(p.idempotency_key, key):
                return p
        return None

    def get(self, id: str, wait: float = 0) -> Payout:
        """Reads a payout, like payments.get."""
        return get_waiting(self._c, ops.GET_PAYOUT, Payout, id, wait)

    def cancel(self, id: str) -> Payout:
        """Ends a payout of which nothing was sent."""
        return self._c.read(Payout, Request(ops.CANCEL_PAYOUT, [id]))

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
    ) -> PayoutPage:
        """Lists payouts, newest first, with their total. Both dates are inclusive."""
        q = query(
            status=status, method=method, from_date=from_date, to_date=to_date, reference=reference, idempotency_key=idempotency_key,
            provider_reference=provider_reference, order=order, limit=limit, offset=offset,
        )  # fmt: skip
        return self._c.read(PayoutPage, Request(ops.LIST_PAYOUTS, query=q))

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
    ) -> Iterator[Payout]:
        """Goes through all payouts that match, each once, whatever changes meanwhile. order="asc" is oldest first."""
        q = query(
            status=status, method=method, from_date=from_date, to_date=to_date, reference=reference, provider_reference=provider_reference, order=order
        )
        return go_through(q, lambda q: self._c.read(PayoutPage, Request(ops.LIST_PAYOUTS, query=q)))

    def attempts(self, id: str) -> AttemptList:
        """Lists the calls to the operator."""
        return self._c.read(AttemptList, Request(ops.LIST_PAYOUT_ATTEMPTS, [id]))

    def events(self, id: str) -> EventList:
        """Lists the events of a payout."""
        return self._c.read(EventList, Request(ops.LIST_PAYOUT_EVENTS, [id]))
