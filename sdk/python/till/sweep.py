"""What is due, what the log tells, what is open for long."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Callable, List, Optional

from .error import Refused, TillError, Unavailable
from .inbox import RANK_FINAL, details_of, rank, status_of
from .outbox import Order, Outbox, settled
from .store import ABANDONED, CHECKOUT, ENDED, LOST, NEEDS_ATTENTION, PAYMENT, PAYOUT, REFUND, SENDING, TAKEN, WRITTEN, Cursor, Row, Settlement
from .types_gen import Checkout, ErrorCode, Payment, Payout, Refund

# Bounds of one sweep.
MAX_DUE = 100
MAX_OPEN = 200
MAX_ATTENTION = 100
LOG_PAGE = 200
LOOK_BACK = 7 * 24 * 3600 * 1000  # ms
MAX_SENDS = 4  # at a time
LONG_POLL = 30.0
_MAX_ERRORS = 3  # of reads, before a sweep leaves the rest to the next one

POLLS = (1.0, 1.0, 2.0, 3.0, 5.0)  # pauses between reads where the service has no long poll


class StillOpen(TillError):
    """The outcome is not known yet."""


class SweepFailed(TillError):
    """A part of a sweep failed; the rest was done, and the next sweep tries again."""

    def __init__(self, report: "Report", errors: List[Exception]) -> None:
        super().__init__("till: " + "; ".join(str(e) for e in errors))
        self.report = report
        self.errors = errors


@dataclass
class Attention:
    """An attempt that a person should look at."""

    kind: str
    order: str
    key: str
    state: str
    problem: str  # needs_attention, stale, withdrawn, or a code of the service


@dataclass
class Report:
    """What a sweep did."""

    sent: int = 0  # attempts that the service took
    waiting: int = 0  # attempts that are sent again later
    applied: int = 0  # events of the log that were looked at
    read: int = 0  # open attempts that were read
    attention: List[Attention] = field(default_factory=list)


class Sweep(Outbox):
    """The part of a Teller that sweeps."""

    cursor_name: str
    from_start: bool
    on_report: Optional[Callable[[Report, Optional[Exception]], object]]
    _sends: threading.Semaphore

    def sweep(self) -> Report:
        """Does all that is due, once: sends, reads the event log to its end, reads what is open for long, and lists what needs
        a person.

        Call it from cron, or use run. One failure does not stop the rest; SweepFailed joins all, with the report.
        """
        report, errors = Report(), []
        parts: List[Callable[[Report], None]] = [self._send_due, self._read_log, self._read_open, self._list_attention]
        for part in parts:
            try:
                part(report)
            except Exception as e:
                errors.append(e)
        if errors:
            raise SweepFailed(report, errors) from errors[0]
        return report

    def run(self, stop: Optional[threading.Event] = None) -> None:
        """Does the same all the time, until stop is set: waits for the log by long poll, and looks at the outbox every second.

        It returns when the calls under way have ended, which takes at most a long poll.
        """
        ended = stop or threading.Event()
        loops = [(1.0, self._send_due), (0.01, lambda r: self._read_log(r, LONG_POLL)), (15.0, self._read_open)]
        threads = [threading.Thread(target=self._loop, args=(ended, pause, work), daemon=True) for pause, work in loops]
        for t in threads:
            t.start()
        for t in threads:
            t.join()

    def _loop(self, stop: threading.Event, pause: float, work: Callable[[Report], None]) -> None:
        failures = 0
        try:
            while not stop.is_set():
                report, error = Report(), None
                try:
                    work(report)
                    failures = 0
                except Exception as e:
                    error = e
                    failures += 1
                if self.on_report is not None and not stop.is_set():
                    self.on_report(report, error)
                stop.wait(max(pause, min(60.0, float(failures))))
        finally:
            self.store.release()

    def _send_due(self, r: Report) -> None:
        """Sends what is due, four at a time."""
        rows = self.store.due(self.now(), MAX_DUE)
        errors: List[Exception] = []
        lock = threading.Lock()

        def one(row: Row) -> None:
            error, taken = None, False
            try:
                with self._sends:
                    taken = self._send(row, 1).state == "taken"
            except Refused:
                return  # it is on the attention list
            except Exception as e:
                error = e
            finally:
                self.store.release()
            with lock:
                if error is not None:
                    errors.append(error)
                elif taken:
                    r.sent += 1
                else:
                    r.waiting += 1

        if rows:
            with ThreadPoolExecutor(MAX_SENDS) as pool:
                for row in rows:
                    self._pace.wait()
                    pool.submit(one, row)
        if errors:
            raise SweepFailed(r, errors) from errors[0]

    def _read_log(self, r: Report, wait: float = 0.0) -> None:
        """Reads the event log from the cursor to its end.

        An event whose function fails holds the cursor back, and nothing else: those after it are applied, and are old
        news when they are read again.
        """
        cursor = self.store.cursor(self.cursor_name)
        if not cursor.log and not self.from_start:
            cursor = self._begin(r)
        after, reset, foreign = cursor.after, False, self.foreign
        failed: List[Exception] = []
        while True:
            self._pace.wait()
            page = None
            try:
                page = self.client.events.read(after, limit=LOG_PAGE, wait=wait)
            except Refused as e:
                if e.code != ErrorCode.CURSOR_AHEAD:
                    raise
            if page is None or cursor.log and page.log_id != cursor.log:
                if reset:
                    raise TillError("till: the event log changes while it is read")
                self._reread(self.now() - LOOK_BACK, r)
                cursor.log, cursor.after, after, reset = "", 0, 0, True
                foreign = foreign and self.from_start  # what of them is history cannot be told
                continue
            cursor.log = page.log_id
            for e in page.items:
                move = None if failed or reset else Cursor(cursor.name, cursor.log, e.sequence)
                try:
                    self.apply_event(e, move, foreign)
                except Exception as error:
                    failed.append(error)
                    continue
                r.applied += 1
                if not failed:
                    cursor.after = e.sequence
            end = page.next_after == after or not page.items
            after = page.next_after
            if not failed:
                cursor.after = page.next_after
                self.store.move_cursor(cursor, reset)
                reset = False
            if end or wait and not failed:
                break
            wait = 0.0
        if failed:
            raise SweepFailed(r, failed) from failed[0]

    def _begin(self, r: Report) -> Cursor:
        """Sets the cursor of a new store to the end of the log. What its own attempts came to before that is read from them."""
        cursor = self._log_end()
        self._reread(0, r)
        self.store.move_cursor(cursor, False)
        return cursor

    def _log_end(self) -> Cursor:
        """Finds the end of the log: the service takes no sequence beyond it, so a few calls find it, however long it is."""
        end, at, beyond = Cursor(self.cursor_name), 0, 0
        while True:
            self._pace.wait()
            try:
                page = self.client.events.read(at, limit=1)
                if end.log and page.log_id != end.log:
                    raise TillError("till: the event log changes while it is read")
                end.log, end.after = page.log_id, at
            except Refused as e:
                if e.code != ErrorCode.CURSOR_AHEAD or at == 0:
                    raise
                beyond = at
            if beyond and beyond - end.after <= 1:
                return end
            at = end.after + (beyond - end.after) // 2 if beyond else max(16, 4 * at)

    def _reread(self, start: int, r: Report) -> None:
        """Reads every attempt since a time.

        The service was restored from a backup, and its log is another one; or this store begins.
        """
        after = ""
        while True:
            rows = self.store.since(start, after, MAX_OPEN)
            for row in rows:
                after = row.key
                if row.remote_id:  # else it was not taken: the outbox sends it, or it is over
                    self._read_row(row, r)
            if len(rows) < MAX_OPEN:
                return

    def _read_open(self, r: Report) -> None:
        """Reads attempts that are taken, not ended, and left alone for long."""
        errors: List[Exception] = []
        for row in self.store.open(self.now(), MAX_OPEN):
            try:
                self._read_row(row, r)
            except Exception as e:
                errors.append(e)
                if len(errors) > _MAX_ERRORS:
                    break
        if errors:
            raise SweepFailed(r, errors) from errors[0]

    def _list_attention(self, r: Report) -> None:
        for row in self.store.attention(self.now() - LOOK_BACK, MAX_ATTENTION):
            r.attention.append(Attention(row.kind, row.order, row.key, row.state, row.problem))

    def _read_row(self, row: Row, r: Report) -> None:
        self._pace.wait()
        self._read_and_apply(row, 0.0)
        r.read += 1

    def _read_and_apply(self, row: Row, wait: float) -> Any:
        """Reads what a row made, and applies what it shows.

        What the service does not know any more is lost: that is reported, never posted by itself. A checkout is made again
        by its key as long as it can be paid: its page asks by the same keys as the lost one, so nobody is debited twice.
        """
        nouns: Any = {PAYOUT: self.client.payouts, REFUND: self.client.refunds, CHECKOUT: self.client.checkouts}
        calls: Any = nouns.get(row.kind, self.client.payments)
        try:
            one = calls.get(row.remote_id, wait)
        except Refused as e:
            if e.code != row.kind + "_not_found":
                raise
            now = self.now()
            if row.kind == CHECKOUT and row.state == TAKEN and now < row.send_until:
                self._settle(row, Settlement(from_states=[TAKEN], state=SENDING, next_at=now))
                return None
            self._end(row, Settlement(from_states=[TAKEN, ENDED], state=LOST, problem=e.code, details=details_of(e)))
            return None
        self.apply_read(one)
        s = Settlement(from_states=[TAKEN], next_at=self.now() + self.open_after)
        if row.kind != CHECKOUT and one.resolution is not None and one.resolution.state == NEEDS_ATTENTION and row.problem != ABANDONED:
            s.problem = NEEDS_ATTENTION
        self._settle(row, s)
        return one

    def wait(self, order: Order, seconds: float = 90.0) -> Payment:
        """Sends what is not sent, and reads the payment until its status is final; StillOpen if that takes longer.

        Your function has been called when it returns.
        """
        return self._wait(PAYMENT, order, seconds)  # type: ignore[no-any-return]

    def wait_payout(self, order: Order, seconds: float = 90.0) -> Payout:
        """wait for a payout."""
        return self._wait(PAYOUT, order, seconds)  # type: ignore[no-any-return]

    def wait_refund(self, order: Order, seconds: float = 90.0) -> Refund:
        """wait for the newest refund of an order."""
        return self._wait(REFUND, order, seconds)  # type: ignore[no-any-return]

    def wait_checkout(self, order: Order, seconds: float = 90.0) -> Checkout:
        """wait for the newest checkout of an order, until it is paid, expired or cancelled."""
        return self._wait(CHECKOUT, order, seconds)  # type: ignore[no-any-return]

    def _wait(self, kind: str, order: Order, seconds: float) -> Any:
        end = time.monotonic() + seconds
        still_open = StillOpen("till: the outcome is not known yet")
        n = 0
        while True:
            row = self._newest(kind, order)
            if row.state in (WRITTEN, SENDING):
                if self.now() >= row.next_at or row.tries == 0:
                    self._send(row, 1)
            elif row.state in (TAKEN, ENDED):
                try:
                    one = self._read_and_apply(row, min(end - time.monotonic(), 30.0))
                except Unavailable:
                    one = None
                if one is not None and rank(status_of(one)) >= RANK_FINAL:
                    return one
            else:
                settled(row)  # raises what was refused
                raise still_open
            pause = POLLS[min(n, len(POLLS) - 1)]
            if time.monotonic() + pause > end:
                raise still_open
            self.client.sleep(pause)
            n += 1
