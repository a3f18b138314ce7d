"""The calls about the event log."""

from __future__ import annotations

from typing import Optional

from . import operations_gen as ops
from .call import Caller, Request
from .page import query
from .types_gen import Event, EventPage, Redeliver, Redelivered
from .wire import render


class Events:
    """The calls about the event log."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def read(self, after: int = 0, *, limit: Optional[int] = None, wait: float = 0) -> EventPage:
        """The events after a sequence, oldest first. It waits for one if there is none, at most 60 s."""
        seconds = int(wait)
        q = query(after=after, limit=limit, wait=seconds or None)
        return self._c.read(EventPage, Request(ops.LIST_EVENTS, query=q, wait=float(seconds)))

    def get(self, id: str) -> Event:
        """Reads an event."""
        return self._c.read(Event, Request(ops.GET_EVENT, [id]))

    def redeliver(self, id: str, to: Redeliver) -> Redelivered:
        """Posts an event again, to one endpoint or to all."""
        return self._c.read(Redelivered, Request(ops.REDELIVER_EVENT, [id], body=render(to.to_json())))
