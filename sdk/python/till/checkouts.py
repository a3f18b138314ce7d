"""The calls about orders that are paid on a page of the service."""

from __future__ import annotations

from typing import Any, Iterator, Optional

from . import operations_gen as ops
from .call import Caller, Request
from .page import Moment, go_through, query
from .payments import create, get_waiting
from .types_gen import Checkout, CheckoutPage, CreateCheckout, NewCheckout
from .wire import body_of


class Checkouts:
    """The calls about orders that are paid on a page of the service."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def create(self, checkout: Optional[CreateCheckout] = None, **members: Any) -> NewCheckout:
        """Makes a page on which a customer pays one order.

        Give a CreateCheckout, or its members by name. Send the customer to the url of the answer, and keep its return_secret
        with the order. The key must be stored before. No money is asked by it: after Unclear make the same call with the same
        key again, which answers what the first one made.
        """
        return create(self._c, ops.CREATE_CHECKOUT, body_of(CreateCheckout, checkout, members), NewCheckout, None)

    def get(self, id: str, wait: float = 0) -> Checkout:
        """Reads a checkout. With wait it answers on a change of state, or after so many seconds, where the service can."""
        return get_waiting(self._c, ops.GET_CHECKOUT, Checkout, id, wait)

    def cancel(self, id: str) -> Checkout:
        """Ends a checkout of which no ask may still bring money."""
        return self._c.read(Checkout, Request(ops.CANCEL_CHECKOUT, [id]))

    def page(
        self,
        *,
        state: str = "",
        reference: str = "",
        link_id: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
        order: str = "",
        limit: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> CheckoutPage:
        """Lists checkouts, newest first, with their total. Both dates are inclusive."""
        q = query(state=state, reference=reference, link_id=link_id, from_date=from_date, to_date=to_date, order=order, limit=limit, offset=offset)
        return self._c.read(CheckoutPage, Request(ops.LIST_CHECKOUTS, query=q))

    def all(
        self,
        *,
        state: str = "",
        reference: str = "",
        link_id: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
        order: str = "",
    ) -> Iterator[Checkout]:
        """Goes through all checkouts that match, each once, whatever changes meanwhile. order="asc" is oldest first."""
        q = query(state=state, reference=reference, link_id=link_id, from_date=from_date, to_date=to_date, order=order)
        return go_through(q, lambda q: self._c.read(CheckoutPage, Request(ops.LIST_CHECKOUTS, query=q)))
