"""The store in a folder, for scripts and first steps. Its transaction is its own file, not one of your database."""

from __future__ import annotations

import json
import os
import threading
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from .store import LAPSED, LOST, NEEDS_ATTENTION, REFUSED, SENDING, TAKEN, WRITTEN, Apply, Cursor, Row, Settlement, Subject

if os.name == "nt":
    import msvcrt

    def _lock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        while True:
            try:
                msvcrt.locking(fd, msvcrt.LK_LOCK, 1)  # type: ignore[attr-defined]
                return
            except OSError:
                continue  # it waits for ten seconds only

    def _unlock(fd: int) -> None:
        os.lseek(fd, 0, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)  # type: ignore[attr-defined]

else:
    import fcntl

    def _lock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_EX)

    def _unlock(fd: int) -> None:
        fcntl.flock(fd, fcntl.LOCK_UN)


class FileTx:
    """A transaction: what is written in it becomes one line, or nothing."""

    def __init__(self, store: "FileStore") -> None:
        self._store = store
        self.rows: List[Row] = []
        self.subjects: List[Subject] = []
        self.cursors: List[Cursor] = []
        self.notes: Dict[str, str] = {}

    def set(self, name: str, value: str) -> None:
        """Keeps a small value under a name, in the transaction."""
        self.notes[name] = value

    def get(self, name: str) -> str:
        """A value that was set; "" if none was."""
        return self.notes.get(name, self._store._notes.get(name, ""))

    def line(self) -> bytes:
        """What was written, b"" if nothing was."""
        out: Dict[str, Any] = {}
        if self.rows:
            out["rows"] = [dict(asdict(r), body=r.body.decode("utf-8")) for r in self.rows]
        if self.subjects:
            out["subjects"] = [asdict(s) for s in self.subjects]
        if self.cursors:
            out["cursors"] = [asdict(c) for c in self.cursors]
        if self.notes:
            out["notes"] = self.notes
        return json.dumps(out, ensure_ascii=False).encode("utf-8") + b"\n" if out else b""


class FileStore:
    """A store in a folder: a line for each change, synced, and a lock between programs."""

    def __init__(self, folder: str) -> None:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        flags = os.O_CREAT | os.O_RDWR | getattr(os, "O_BINARY", 0)
        self._turn = os.open(os.path.join(folder, "lock"), flags, 0o600)  # who holds its lock may read on and append
        self._file = os.open(os.path.join(folder, "till.jsonl"), flags, 0o600)
        self._mutex = threading.Lock()
        self._read = 0  # how much of the file is known
        self._rows: Dict[str, Row] = {}
        self._orders: Dict[Tuple[str, str], List[str]] = {}  # keys, oldest first
        self._subjects: Dict[str, Subject] = {}
        self._cursors: Dict[str, Cursor] = {}
        self._notes: Dict[str, str] = {}
        with self._view():
            pass

    def close(self) -> None:
        """Closes the files."""
        os.close(self._file)
        os.close(self._turn)

    def install(self) -> None:
        """The folder is made already."""

    def release(self) -> None:
        """There is nothing to let go."""

    @contextmanager
    def transaction(self) -> Iterator[FileTx]:
        """A transaction. Nobody else writes meanwhile, so it makes no calls but collect, pay_out, set and get."""
        with self._view():
            tx = FileTx(self)
            yield tx
            self._append(tx)

    def get(self, name: str) -> str:
        """A value that a transaction set."""
        with self._view():
            return self._notes.get(name, "")

    def all(self) -> Dict[str, str]:
        """Every value that transactions set, by name."""
        with self._view():
            return dict(self._notes)

    @contextmanager
    def _view(self) -> Iterator[None]:
        """Takes its turn, and reads on."""
        with self._mutex:
            _lock(self._turn)
            try:
                self._catch_up()
                yield
            finally:
                _unlock(self._turn)

    def _catch_up(self) -> None:
        """Reads the lines that others wrote.

        A line without an end is that of a program that died: nobody was told that it was written, so it goes.
        """
        size = os.fstat(self._file).st_size
        if size == self._read:
            return
        os.lseek(self._file, self._read, os.SEEK_SET)
        with os.fdopen(os.dup(self._file), "rb") as f:
            for line in f:
                if not line.endswith(b"\n"):
                    os.ftruncate(self._file, self._read)
                    return
                self._add(json.loads(line.decode("utf-8")))
                self._read += len(line)

    def _append(self, tx: FileTx) -> None:
        """Writes a line and syncs it. A line that is not written whole is taken back."""
        line = tx.line()
        if not line:
            return
        try:
            os.lseek(self._file, self._read, os.SEEK_SET)
            left = memoryview(line)
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except BaseException:
            os.ftruncate(self._file, self._read)
            raise
        self._read += len(line)
        self._add(json.loads(line.decode("utf-8")))

    def _add(self, change: Dict[str, Any]) -> None:
        for r in change.get("rows", ()):
            row = Row(**dict(r, body=r["body"].encode("utf-8")))
            if row.key not in self._rows:
                self._orders.setdefault((row.kind, row.order), []).append(row.key)
            self._rows[row.key] = row
        for s in change.get("subjects", ()):
            self._subjects[s["id"]] = Subject(**s)
        for c in change.get("cursors", ()):
            self._cursors[c["name"]] = Cursor(**c)
        self._notes.update(change.get("notes", {}))

    def _attempts(self, kind: str, order: str) -> List[Row]:
        return [replace(self._rows[key]) for key in self._orders.get((kind, order), ())]

    def attempts(self, tx: FileTx, kind: str, order: str) -> List[Row]:
        """The attempts of an order, as tx sees them."""
        return self._attempts(kind, order) + [replace(r) for r in tx.rows if r.kind == kind and r.order == order]

    def put(self, tx: FileTx, row: Row) -> bool:
        """Inserts a row."""
        if any(r.attempt == row.attempt for r in self.attempts(tx, row.kind, row.order)):
            return False
        tx.rows.append(replace(row))
        return True

    def newest(self, kind: str, order: str) -> Optional[Row]:
        """The newest attempt of an order."""
        with self._view():
            found = self._attempts(kind, order)
        return found[-1] if found else None

    def _some(self, limit: int, match: Callable[[Row], bool], order: Callable[[Row], Any]) -> List[Row]:
        """The first rows that match, in an order."""
        with self._view():
            found = [replace(r) for r in self._rows.values() if match(r)]
        return sorted(found, key=order)[:limit]

    def due(self, now: int, limit: int) -> List[Row]:
        """Rows to send."""
        return self._some(limit, lambda r: r.state in (WRITTEN, SENDING) and r.next_at <= now, lambda r: (r.next_at, r.key))

    def open(self, now: int, limit: int) -> List[Row]:
        """Rows that are taken and to be read again."""
        return self._some(limit, lambda r: r.state == TAKEN and r.next_at <= now, lambda r: (r.next_at, r.key))

    def since(self, start: int, after_key: str, limit: int) -> List[Row]:
        """Rows by key."""
        return self._some(limit, lambda r: r.created_at >= start and r.key > after_key, lambda r: r.key)

    def attention(self, start: int, limit: int) -> List[Row]:
        """Rows that a person should see."""

        def match(r: Row) -> bool:
            return r.created_at >= start and (r.state in (REFUSED, LAPSED, LOST) or r.state == TAKEN and r.problem == NEEDS_ATTENTION)

        return self._some(limit, match, lambda r: (r.created_at, r.key))

    def count(self, row: Row, lease: int, next_at: int) -> bool:
        """Counts a try."""
        with self.transaction() as tx:
            r = self._rows.get(row.key)
            if r is None or r.lease != row.lease or r.state != row.state:
                return False
            tx.rows.append(replace(r, state=SENDING, lease=lease, next_at=next_at, tries=r.tries + 1))
        return True

    def settle(self, s: Settlement) -> bool:
        """Changes a row."""
        with self.transaction() as tx:
            return self._settle(tx, s)

    def _settle(self, tx: FileTx, s: Settlement) -> bool:
        r = self._rows.get(s.key)
        if r is None or not s.fits(r):
            return False
        changes: Dict[str, Any] = {name: getattr(s, name) for name in ("next_at", "send_until") if getattr(s, name)}
        for name in ("state", "remote_id", "status", "problem", "details"):
            if getattr(s, name) is not None:
                changes[name] = getattr(s, name)
        tx.rows.append(replace(r, **changes))
        return True

    def apply(self, subject: str, kind: str, key: str, fn: Apply) -> None:
        """The transaction of the inbox."""
        with self.transaction() as tx:
            known = self._subjects.get(subject) or Subject(subject)
            row = self._rows.get(key)
            attempts = self._attempts(kind, row.order) if row is not None and row.kind == kind else []
            d = fn(tx, replace(known, seen=list(known.seen)), attempts)
            if d.subject is not None:
                tx.subjects.append(d.subject)
            if d.settle is not None:
                self._settle(tx, d.settle)
            if d.cursor is not None and self._forward(d.cursor):
                tx.cursors.append(d.cursor)

    def _forward(self, c: Cursor) -> bool:
        """Tells whether a cursor may move there."""
        old = self._cursors.get(c.name)
        return old is None or old.log == c.log and old.after < c.after

    def cursor(self, name: str) -> Cursor:
        """A cursor."""
        with self._view():
            return replace(self._cursors.get(name) or Cursor(name))

    def move_cursor(self, c: Cursor, reset: bool) -> None:
        """Moves a cursor."""
        with self.transaction() as tx:
            if reset or self._forward(c):
                tx.cursors.append(replace(c))
