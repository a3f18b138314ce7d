"""The calls about keys."""

from __future__ import annotations

from typing import Any, Optional

from . import operations_gen as ops
from .call import Caller, Request, decode
from .types_gen import ApiKeyList, CreateApiKey, NewApiKey, RevokedApiKey, RotateApiKey
from .wire import body_of, render


class ApiKeys:
    """The calls about keys."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def list(self) -> ApiKeyList:
        """Your keys."""
        return self._c.read(ApiKeyList, Request(ops.LIST_API_KEYS))

    def create(self, key: Optional[CreateApiKey] = None, **members: Any) -> NewApiKey:
        """Makes a key, which is in the answer this once.

        It is never repeated: without an answer, list the keys and revoke the one that you have not seen.
        """
        return self._c.read(NewApiKey, Request(ops.CREATE_API_KEY, body=render(body_of(CreateApiKey, key, members).to_json())))

    def rotate(self, id: str, how: RotateApiKey) -> NewApiKey:
        """Makes the successor of a key. It is never repeated, like create."""
        return self._c.read(NewApiKey, Request(ops.ROTATE_API_KEY, [id], body=render(how.to_json())))

    def revoke(self, id: str) -> None:
        """Ends a key and those that it made."""
        self._c.plain(Request(ops.REVOKE_API_KEY, [id]))

    def revoke_all(self, id: str) -> Optional[RevokedApiKey]:
        """Ends a key that leaked, with all that descends from it. None if the key was gone already."""
        r = Request(ops.REVOKE_API_KEY, [id], {"cascade": "true"})
        t = self._c.plain(r)
        return decode(RevokedApiKey, t, r) if t.status == 200 else None
