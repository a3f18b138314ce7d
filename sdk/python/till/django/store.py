"""The store on Django's own connection, so that your ORM writes in the same transaction."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import Any, Iterator, Sequence

from django.db import connections, transaction

from ..error import Mistake
from ..sql_store import MYSQL, POSTGRES, SQLITE, Dialect, SqlStore

_DIALECTS = {"sqlite": SQLITE, "postgresql": POSTGRES, "mysql": MYSQL}
_MARK = re.compile(r"\?")


class DjangoStore(SqlStore):
    """A store in a database of DATABASES.

    Its handle is the connection: inside transaction.atomic() say teller.collect(connection, …), with connection from
    django.db. Your function runs inside atomic(), so the ORM writes there.

    What has to be committed by itself, as the count of a try before its first byte, refuses to run inside another atomic
    block: send after your commit, for example by transaction.on_commit.
    """

    def __init__(self, using: str = "default") -> None:
        self._using = using

    def dialect(self, tx: Any) -> Dialect:
        """The dialect of the connection."""
        try:
            return _DIALECTS[tx.vendor]
        except KeyError:
            raise Mistake("till: the store is for SQLite, PostgreSQL and MySQL") from None

    def run(self, tx: Any, statement: str, args: Sequence[Any] = ()) -> Any:
        """Runs a statement and returns its cursor."""
        cursor = tx.cursor()
        if args:
            cursor.execute(_MARK.sub("%s", statement), list(args))
        else:
            cursor.execute(statement)
        return cursor

    @contextmanager
    def transaction(self, write: bool = True) -> Iterator[Any]:
        """A transaction that is committed when it ends, whatever is around it; a read may be inside another one."""
        connection = connections[self._using]
        if not connection.in_atomic_block:
            connection.close_if_unusable_or_obsolete()
        if not write:
            yield connection
            return
        with transaction.atomic(using=self._using, durable=True):
            yield connection

    def release(self) -> None:
        """Closes the connection of this thread, unless it is inside a transaction of yours."""
        connection = connections[self._using]
        if not connection.in_atomic_block:
            connection.close()
