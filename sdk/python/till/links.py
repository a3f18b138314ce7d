"""The calls about addresses that anybody can pay on."""

from __future__ import annotations

from typing import Any, Iterator, Optional

from . import operations_gen as ops
from .call import Caller, Request
from .page import Moment, go_through, query
from .payments import create
from .types_gen import CreateLink, Link, LinkPage, UpdateLink
from .wire import body_of, render


class Links:
    """The calls about addresses that anybody can pay on."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def create(self, link: Optional[CreateLink] = None, **members: Any) -> Link:
        """Makes an address that anybody can pay on: each customer gets a checkout of their own.

        Give a CreateLink, or its members by name. The key must be stored before. No money is asked by it: after Unclear make
        the same call with the same key again, which answers what the first one made.
        """
        return create(self._c, ops.CREATE_LINK, body_of(CreateLink, link, members), Link, None)

    def get(self, id: str) -> Link:
        """Reads a link. What came in by it is the list of its checkouts."""
        return self._c.read(Link, Request(ops.GET_LINK, [id]))

    def update(self, id: str, link: UpdateLink) -> Link:
        """Changes what is set: its title and its end, and whether it is switched on. What is paid for never changes."""
        return self._c.read(Link, Request(ops.UPDATE_LINK, [id], body=render(link.to_json())))

    def page(
        self,
        *,
        active: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
        order: str = "",
        limit: Optional[int] = None,
        offset: Optional[int] = None,
    ) -> LinkPage:
        """Lists links, newest first, with their total. Both dates are inclusive; active is "true" or "false"."""
        q = query(active=active, from_date=from_date, to_date=to_date, order=order, limit=limit, offset=offset)
        return self._c.read(LinkPage, Request(ops.LIST_LINKS, query=q))

    def all(
        self,
        *,
        active: str = "",
        from_date: Moment = None,
        to_date: Moment = None,
        order: str = "",
    ) -> Iterator[Link]:
        """Goes through all links that match, each once, whatever changes meanwhile. order="asc" is oldest first."""
        q = query(active=active, from_date=from_date, to_date=to_date, order=order)
        return go_through(q, lambda q: self._c.read(LinkPage, Request(ops.LIST_LINKS, query=q)))
