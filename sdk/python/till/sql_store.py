"""The three tables in SQL, for stores on any way to a database."""

from __future__ import annotations

import os
import random
import time
from contextlib import AbstractContextManager
from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple

from .error import TillError
from .store import LAPSED, LOST, NEEDS_ATTENTION, REFUSED, SENDING, TAKEN, WRITTEN, Apply, Cursor, Decision, Row, Settlement, Subject

_COLUMNS = "idempotency_key, kind, order_id, attempt, body, state, tries, next_at, lease, send_until, remote_id, status, problem, created_at, details"
_MAX_CONFLICTS = 10  # how often a transaction is tried again that another one undid
_SIGNS = ("database is locked", "could not serialize", "deadlock", "lock wait timeout")
_CODES = ("40001", "40P01", "1213", "1205")


class Dialect(NamedTuple):
    """What one database says differently."""

    name: str  # of its file in schema
    ignore: str  # after an INSERT: leave what is there
    upsert: str  # after an INSERT of a cursor
    lock: str = ""  # after a SELECT: nobody else changes these rows
    rank: str = "rank"  # a reserved word in MySQL
    details: str = "details TEXT"  # the column that tables of the first release lack

    def statements(self) -> List[str]:
        """The single statements of the schema."""
        path = os.path.join(os.path.dirname(__file__), "schema", self.name + ".sql")
        with open(path, encoding="utf-8") as f:
            return [s.strip().rstrip(";") for s in f.read().split(";\n") if s.strip()]

    def upgrade(self, run: Callable[[str], Any]) -> None:
        """Adds what tables of the first release lack. Two programs may do it at once: the one that comes late finds it there."""

        def missing() -> bool:
            return all(column[0] != "details" for column in run("SELECT * FROM till_outbox WHERE 1 = 0").description)

        if missing():
            try:
                run("ALTER TABLE till_outbox ADD COLUMN " + self.details)
            except Exception:
                if self.name != "mysql" or missing():
                    raise


_UPSERT = " ON CONFLICT (name) DO UPDATE SET log_id = excluded.log_id, after_sequence = excluded.after_sequence"
SQLITE = Dialect("sqlite", " ON CONFLICT DO NOTHING", _UPSERT)
POSTGRES = Dialect("postgres", " ON CONFLICT DO NOTHING", _UPSERT, " FOR UPDATE", details="IF NOT EXISTS details TEXT")
MYSQL = Dialect(
    "mysql",
    " ON DUPLICATE KEY UPDATE {same} = {same}",
    " ON DUPLICATE KEY UPDATE log_id = VALUES(log_id), after_sequence = VALUES(after_sequence)",
    " FOR UPDATE",
    "`rank`",
    "details MEDIUMTEXT CHARACTER SET utf8mb4",
)


def conflict(e: BaseException) -> bool:
    """Tells whether the database undid a transaction because another one was in its way.

    The drivers are not imported: their errors name the codes.
    """
    codes = [getattr(e, "pgcode", None), getattr(e, "sqlstate", None), getattr(e, "errno", None), e.args[0] if e.args else None]
    if any(str(code) in _CODES for code in codes if code is not None):
        return True
    text = str(e).lower()
    return any(sign in text for sign in _SIGNS)


class SqlStore:
    """What stores in SQL share. A store says how to begin a transaction and how to run a statement."""

    def dialect(self, tx: Any) -> Dialect:
        """The dialect of a handle."""
        raise NotImplementedError

    def run(self, tx: Any, statement: str, args: Sequence[Any] = ()) -> Any:
        """Runs a statement, whose parameters are ?, and returns its cursor."""
        raise NotImplementedError

    def transaction(self, write: bool = True) -> AbstractContextManager[Any]:
        """A transaction of the store's own, which is committed when it ends well. Without write it only reads."""
        raise NotImplementedError

    def release(self) -> None:
        """There is nothing to let go."""

    def install(self) -> None:
        """Makes the tables where they are missing, and the columns that came later."""
        with self.transaction() as tx:
            for statement in self.dialect(tx).statements():
                self.run(tx, statement)
            self.dialect(tx).upgrade(lambda statement: self.run(tx, statement))

    def _rows(self, tx: Any, rest: str, *args: Any) -> List[Row]:
        cursor = self.run(tx, "SELECT " + _COLUMNS + " FROM till_outbox WHERE " + rest, args)
        out = []
        for r in cursor.fetchall():
            out.append(Row(r[0], r[1], r[2], r[3], bytes(r[4]), r[5], r[6], r[7], r[8], r[9], r[10] or "", r[11], r[12], r[13], r[14] or ""))
        return out

    def _read(self, rest: str, *args: Any) -> List[Row]:
        with self.transaction(write=False) as tx:
            return self._rows(tx, rest, *args)

    def attempts(self, tx: Any, kind: str, order: str) -> List[Row]:
        """The attempts of an order, as tx sees them."""
        return self._rows(tx, "kind = ? AND order_id = ? ORDER BY attempt", kind, order)

    def put(self, tx: Any, row: Row) -> bool:
        """Inserts a row. It waits for another one of the same attempt, and leaves tx usable if that one was first."""
        d = self.dialect(tx)
        self.run(
            tx,
            "INSERT INTO till_outbox (" + _COLUMNS + ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, NULL, ?, ?, ?, ?)" + d.ignore.format(same="attempt"),
            (row.key, row.kind, row.order, row.attempt, row.body, row.state, row.tries, row.next_at, row.lease, row.send_until, row.status, row.problem, row.created_at, row.details),
        )
        # A locking read, because a snapshot does not show what another one inserted.
        found = self.run(tx, "SELECT idempotency_key FROM till_outbox WHERE kind = ? AND order_id = ? AND attempt = ?" + d.lock, (row.kind, row.order, row.attempt)).fetchone()
        if found is None:
            raise TillError("till: could not serialize the insert of an attempt")
        return bool(found[0] == row.key)

    def newest(self, kind: str, order: str) -> Optional[Row]:
        """The newest attempt of an order."""
        rows = self._read("kind = ? AND order_id = ? ORDER BY attempt DESC LIMIT 1", kind, order)
        return rows[0] if rows else None

    def due(self, now: int, limit: int) -> List[Row]:
        """Rows to send."""
        return self._read("state IN (?, ?) AND next_at <= ? ORDER BY next_at LIMIT ?", WRITTEN, SENDING, now, limit)

    def open(self, now: int, limit: int) -> List[Row]:
        """Rows that are taken and to be read again."""
        return self._read("state = ? AND next_at <= ? ORDER BY next_at LIMIT ?", TAKEN, now, limit)

    def since(self, start: int, after_key: str, limit: int) -> List[Row]:
        """Rows by key."""
        return self._read("created_at >= ? AND idempotency_key > ? ORDER BY idempotency_key LIMIT ?", start, after_key, limit)

    def attention(self, start: int, limit: int) -> List[Row]:
        """Rows that a person should see."""
        rest = "(state IN (?, ?, ?) OR state = ? AND problem = ?) AND created_at >= ? ORDER BY created_at, idempotency_key LIMIT ?"
        return self._read(rest, REFUSED, LAPSED, LOST, TAKEN, NEEDS_ATTENTION, start, limit)

    def _again(self, work: Any) -> Any:
        """Runs a transaction, and runs it again if another one undid it."""
        n = 0
        while True:
            try:
                with self.transaction() as tx:
                    return work(tx)
            except Exception as e:
                if n >= _MAX_CONFLICTS or not conflict(e):
                    raise
            time.sleep(random.uniform(0, 0.01 * 2 ** min(n, 5)))
            n += 1

    def count(self, row: Row, lease: int, next_at: int) -> bool:
        """Counts a try, in a commit of its own."""
        statement = "UPDATE till_outbox SET state = ?, tries = tries + 1, lease = ?, next_at = ? WHERE idempotency_key = ? AND lease = ? AND state = ?"
        return bool(self._again(lambda tx: self.run(tx, statement, (SENDING, lease, next_at, row.key, row.lease, row.state)).rowcount > 0))

    def settle(self, s: Settlement) -> bool:
        """Changes a row."""
        return bool(self._again(lambda tx: self._settle(tx, s)))

    def _settle(self, tx: Any, s: Settlement) -> bool:
        changes: List[Tuple[str, Any]] = []
        for column, value in (("state", s.state), ("next_at", s.next_at or None), ("send_until", s.send_until or None)):
            if value is not None:
                changes.append((column, value))
        for column, text in (("remote_id", s.remote_id), ("status", s.status), ("problem", s.problem), ("details", s.details)):
            if text is not None:
                changes.append((column, text))
        if not changes:
            raise TillError("till: a settlement that changes nothing")
        where, args = " WHERE idempotency_key = ?", [value for _, value in changes] + [s.key]
        if s.from_states is not None:
            where += " AND state IN (" + ", ".join("?" for _ in s.from_states) + ")"
            args += s.from_states
        if s.lease:
            where += " AND lease = ?"
            args.append(s.lease)
        sets = ", ".join(column + " = ?" for column, _ in changes)
        return bool(self.run(tx, "UPDATE till_outbox SET " + sets + where, args).rowcount > 0)

    def apply(self, subject: str, kind: str, key: str, fn: Apply) -> None:
        """The transaction of the inbox."""
        self._again(lambda tx: self._apply(tx, subject, kind, key, fn))

    def _apply(self, tx: Any, id: str, kind: str, key: str, fn: Apply) -> None:
        d = self.dialect(tx)
        # A write first: SQLite takes its one lock now, the others that of this row.
        insert = "INSERT INTO till_subject (subject, %s, seen, sequence, updated_at) VALUES (?, 0, '', 0, ?)" % d.rank
        self.run(tx, insert + d.ignore.format(same="subject"), (id, int(time.time() * 1000)))
        rank, seen, sequence = self.run(tx, "SELECT %s, seen, sequence FROM till_subject WHERE subject = ?%s" % (d.rank, d.lock), (id,)).fetchone()
        decision = fn(tx, Subject(id, rank, seen.split(), sequence), self._attempts_of(tx, kind, key))
        self._save(tx, d, decision)

    def _attempts_of(self, tx: Any, kind: str, key: str) -> List[Row]:
        """Locks all attempts of the order that a key belongs to, in one order.

        Two attempts that are paid at the same moment know of each other then.
        """
        found = self.run(tx, "SELECT order_id FROM till_outbox WHERE idempotency_key = ? AND kind = ?", (key, kind)).fetchone() if key else None
        if found is None:
            return []
        return self._rows(tx, "kind = ? AND order_id = ? ORDER BY attempt" + self.dialect(tx).lock, kind, found[0])

    def _save(self, tx: Any, d: Dialect, decision: Decision) -> None:
        s = decision.subject
        if s is not None:
            statement = "UPDATE till_subject SET %s = ?, seen = ?, sequence = ?, updated_at = ? WHERE subject = ?" % d.rank
            self.run(tx, statement, (s.rank, " ".join(s.seen), s.sequence, int(time.time() * 1000), s.id))
        if decision.settle is not None:
            self._settle(tx, decision.settle)
        if decision.cursor is not None:
            self._move(tx, decision.cursor, False)

    def cursor(self, name: str) -> Cursor:
        """A cursor."""
        with self.transaction(write=False) as tx:
            found = self.run(tx, "SELECT log_id, after_sequence FROM till_cursor WHERE name = ?", (name,)).fetchone()
        return Cursor(name, found[0], found[1]) if found else Cursor(name)

    def move_cursor(self, c: Cursor, reset: bool) -> None:
        """Moves a cursor."""
        self._again(lambda tx: self._move(tx, c, reset))

    def _move(self, tx: Any, c: Cursor, reset: bool) -> None:
        d = self.dialect(tx)
        insert = "INSERT INTO till_cursor (name, log_id, after_sequence) VALUES (?, ?, ?)"
        if reset:
            self.run(tx, insert + d.upsert, (c.name, c.log, c.after))
            return
        statement = "UPDATE till_cursor SET after_sequence = ? WHERE name = ? AND log_id = ? AND after_sequence < ?"
        if self.run(tx, statement, (c.after, c.name, c.log, c.after)).rowcount == 0:
            self.run(tx, insert + d.ignore.format(same="name"), (c.name, c.log, c.after))
