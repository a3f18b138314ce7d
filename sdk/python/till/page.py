"""Lists: by page, and all of them by time."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Callable, Dict, Iterator, Optional, Set, TypeVar, Union

from .error import NoProgress
from .wire import at

I = TypeVar("I")

MAX_PAGE = 200  # the most that one page holds

Moment = Union[datetime, str, None]


def query(**values: Any) -> Dict[str, str]:
    """A query of what is not empty."""
    out = {}
    for name, value in values.items():
        if value is None or value == "":
            continue
        out[name] = at(value) if isinstance(value, datetime) else str(value)
    return out


def go_through(
    filter: Dict[str, str], fetch: Callable[[Dict[str, str]], Any], id: Callable[[Any], str] = lambda x: x.id, when: Callable[[Any], str] = lambda x: x.created_at
) -> Iterator[Any]:
    """Goes through a list by time, not by offset.

    The next page begins at the last moment that was seen, and drops what was given of that moment. Records that change
    or arrive meanwhile neither repeat nor hide others.
    """
    bound = "from_date" if filter.get("order") == "asc" else "to_date"
    given: Set[str] = set()  # ids at the last moment
    last: Optional[str] = None
    offset = 0
    q = dict(filter, limit=str(MAX_PAGE))
    while True:
        q["offset"] = str(offset)
        items = fetch(q).items or []
        fresh, start = 0, last
        for item in items:
            if when(item) == last and id(item) in given:
                continue
            if when(item) != last:
                last = when(item)
                given.clear()
            given.add(id(item))
            fresh += 1
            yield item
        if len(items) < MAX_PAGE:
            return
        if last != start:
            offset = 0
            q[bound] = str(last)
        elif fresh or offset == 0:
            offset += len(items)  # more than a page at one moment
        else:
            raise NoProgress("till: the list does not go on")
