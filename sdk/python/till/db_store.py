"""The store on any connection of the DB-API: sqlite3, psycopg2, psycopg, PyMySQL, mysqlclient, …"""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import Any, Callable, Iterator, Optional, Sequence

from .error import Mistake
from .sql_store import MYSQL, POSTGRES, SQLITE, Dialect, SqlStore

# Drivers by the name of their module; other drivers are named by the arguments of DbStore.
_DRIVERS = {
    "sqlite3": SQLITE, "pysqlite3": SQLITE, "sqlcipher3": SQLITE,
    "psycopg2": POSTGRES, "psycopg": POSTGRES, "pg8000": POSTGRES,
    "pymysql": MYSQL, "MySQLdb": MYSQL, "mysql": MYSQL, "mariadb": MYSQL,
}  # fmt: skip
_DIALECTS = {"sqlite": SQLITE, "postgres": POSTGRES, "mysql": MYSQL}

_MARK = re.compile(r"\?")


def _styled(statement: str, paramstyle: str) -> str:
    """Writes a statement, whose parameters are ?, in the style of a driver."""
    if paramstyle == "qmark":
        return statement
    if paramstyle in ("format", "pyformat"):
        return _MARK.sub("%s", statement)
    n = 0

    def numbered(_: Any) -> str:
        nonlocal n
        n += 1
        return ":%d" % n if paramstyle == "numeric" else ":p%d" % n

    return _MARK.sub(numbered, statement)


class DbStore(SqlStore):
    """A store in your database.

    connect opens a connection. The store opens one for each of its own transactions and closes it; give release to do
    something else, as DbStore(pool.getconn, pool.putconn). Where your transaction is meant (collect, your function), it is on your
    connection, or on one that your function is given.

    The database and its style of parameters are known from the driver; dialect is "sqlite", "postgres" or "mysql" otherwise, and
    paramstyle one of the five of the DB-API.
    """

    def __init__(
        self,
        connect: Callable[[], Any],
        release: Optional[Callable[[Any], object]] = None,
        *,
        dialect: Optional[str] = None,
        paramstyle: Optional[str] = None,
    ) -> None:
        if dialect is not None and dialect not in _DIALECTS:
            raise Mistake("till: the dialect is sqlite, postgres or mysql")
        self._connect = connect
        self._release = release or (lambda conn: conn.close())
        self._dialect = dialect
        self._paramstyle = paramstyle

    def _driver(self, tx: Any) -> Any:
        """The driver's module, by the class of a connection or one of its bases."""
        for cls in type(tx).__mro__:
            name = cls.__module__.partition(".")[0]
            if name in _DRIVERS:
                return sys.modules[name if name != "mysql" else "mysql.connector"]
        return None

    def dialect(self, tx: Any) -> Dialect:
        """The dialect of a connection."""
        if self._dialect is not None:
            return _DIALECTS[self._dialect]
        driver = self._driver(tx)
        if driver is None:
            raise Mistake("till: DbStore does not know this driver: give it a dialect and a paramstyle")
        return _DRIVERS[driver.__name__.partition(".")[0]]

    def run(self, tx: Any, statement: str, args: Sequence[Any] = ()) -> Any:
        """Runs a statement and returns its cursor."""
        style = self._paramstyle or getattr(self._driver(tx), "paramstyle", None)
        if style is None:
            raise Mistake("till: DbStore does not know this driver: give it a dialect and a paramstyle")
        cursor = tx.cursor()
        text = _styled(statement, style)
        if not args:
            cursor.execute(text)
        elif style == "named":
            cursor.execute(text, {"p%d" % (n + 1): value for n, value in enumerate(args)})
        else:
            cursor.execute(text, tuple(args))
        return cursor

    @contextmanager
    def transaction(self, write: bool = True) -> Iterator[Any]:
        """A transaction on a connection of the store's own."""
        conn = self._connect()
        try:
            began = self._begin(conn, write)
            try:
                yield conn
            except BaseException:
                conn.cursor().execute("ROLLBACK") if began else conn.rollback()
                raise
            conn.cursor().execute("COMMIT") if began else conn.commit()
        finally:
            self._release(conn)

    def _begin(self, conn: Any, write: bool) -> bool:
        """Begins where the driver would not: a connection may commit each statement by itself. Tells whether it did."""
        d = self.dialect(conn)
        if d is SQLITE:
            if conn.in_transaction or not write:
                return False
            # At once for writing: a read that becomes a write may find that it is too late.
            conn.cursor().execute("BEGIN IMMEDIATE")
            return True
        if d is POSTGRES and getattr(conn, "autocommit", None) is not True:
            return False  # it begins by itself
        conn.cursor().execute("BEGIN")
        return True
