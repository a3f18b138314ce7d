"""One call: tries, repeats, deadlines, budget."""

from __future__ import annotations

import threading
import time
import urllib.parse
from email.utils import parsedate_to_datetime
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Type, TypeVar

from . import transport as net
from .error import DONE, LOOK, REFUSED, UNCLEAR, CallError, LookFirst, failure, judge
from .operation import NEVER, Operation
from .operations_gen import API_VERSION, GET_ME, VERSION
from .tried import Tried as Tried
from .types_gen import Problem
from .wire import Answer, parse

A = TypeVar("A", bound=Answer)

MAX_ANSWER = 32 << 20  # 200 payments with all they may hold
MAX_RETRY_AFTER = 24 * 3600.0  # bounds what a header can ask for

# The budget of repeats: when a service is ill, clients that all try five times keep it so.
MAX_TOKENS = 100
REPEAT_COST = 5
TIMEOUT_COST = 10
SUCCESS_GIVES = 1


class Try(NamedTuple):
    """One request, for whoever measures."""

    method: str
    route: str
    status: int  # 0 if there was no answer
    reason: str  # why there was no good one
    duration: float  # seconds
    request_id: str
    delay: float  # before it, in seconds


class Request(NamedTuple):
    """One call with its values."""

    op: Operation
    params: Sequence[str] = ()  # of the path, in order
    query: Mapping[str, str] = {}
    body: Optional[bytes] = None  # rendered once; every try sends the same bytes
    accept: str = "application/json"
    key: str = ""  # the idempotency key, for errors
    wait: float = 0.0  # the service may take this long on purpose
    stream: bool = False  # the body of a 200 is left to the caller


def repeatable(op: Operation, t: Tried) -> bool:
    """Tells whether a call may be made again after this try."""
    return t.passing and (op.repeat != NEVER or not t.sent)


def delay(n: int, retry_after: float, random: float) -> float:
    """How long to wait before repeat n, counted from 0. Random is between 0 and 1."""
    d = 0.25 * 2**n if n < 5 else 8.0
    return max(d * (0.5 + random / 2), retry_after + retry_after * random / 4)


def _date(text: str) -> Optional[float]:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (TypeError, ValueError, IndexError, OverflowError):
        return None


def retry_after(headers: Any, now: float) -> float:
    """Reads the header, in seconds or as a date.

    A date is held against the date of the answer, so that a wrong clock of ours does not matter.
    """
    text = (headers.get("Retry-After") or "").strip()
    number = text[1:] if text[:1] in ("-", "+") else text
    if number and len(number) <= 10 and not number.strip("0123456789"):
        d = float(int(text))
    else:
        at = _date(text) if text else None
        if at is None:
            return 0.0
        date = _date(headers.get("Date") or "")
        d = at - (now if date is None else date)
    return min(max(d, 0.0), MAX_RETRY_AFTER)


class Budget:
    """Tokens that repeats cost."""

    def __init__(self) -> None:
        self.tokens = MAX_TOKENS
        self._lock = threading.Lock()

    def spend(self, timeout: bool) -> bool:
        """Takes what a repeat costs, and tells whether there was enough."""
        cost = TIMEOUT_COST if timeout else REPEAT_COST
        with self._lock:
            if self.tokens < cost:
                return False
            self.tokens -= cost
            return True

    def success(self) -> None:
        """Gives a little back."""
        with self._lock:
            self.tokens = min(MAX_TOKENS, self.tokens + SUCCESS_GIVES)


class Caller:
    """What makes calls; Till is one."""

    base: str
    deadline: float
    try_timeout: float
    tries: int
    transport: Any
    on_try: Optional[Callable[[Try], None]]
    budget: Budget
    sleep: Callable[[float], None]
    random: Callable[[], float]
    long_poll: bool  # until the service says that it reads a payment at once only
    _skew: Optional[float]

    def key(self) -> str:
        """The API key; see Till."""
        raise NotImplementedError

    def key_again(self) -> str:
        """The key after a 401, "" if there is none now.

        Its error would hide that an earlier try may have arrived.
        """
        try:
            return self.key()
        except Exception:
            return ""

    def call(self, r: Request) -> Tried:
        """Makes a call, and repeats it as the table of repeats allows."""
        end = time.monotonic() + self.deadline + r.wait
        before, asked, wait, n = False, False, 0.0, 0
        key = self.key()
        while True:
            n += 1
            t = self.attempt(r, key, wait, end)
            verdict = judge(r.op, t, before)
            if verdict == DONE:
                self.budget.success()
                return t
            if before and t.status == 404 and r.op.method == "DELETE":
                return t  # the try without an answer did it
            if t.status == 401 and not asked:
                asked = True
                again = self.key_again()
                if again and again != key:
                    key = again
                    continue
            before = before or t.unanswered
            if n >= self.tries or not repeatable(r.op, t):
                break
            wait = delay(n - 1, t.retry_after, self.random())
            if time.monotonic() + wait > end or not self.budget.spend(t.reason == net.TIMEOUT):
                break
            self.sleep(wait)
        if verdict == LOOK:
            raise LookFirst(failure(REFUSED, t, r.key, n), failure(UNCLEAR, t, r.key, n))
        raise failure(verdict, t, r.key, n)

    def attempt(self, r: Request, key: str, waited: float = 0.0, end: Optional[float] = None) -> Tried:
        """Makes one request."""
        began = time.monotonic()
        until = began + self.try_timeout + r.wait
        t = Tried()
        self._exchange(r, key, t, net.Deadline(until if end is None else min(until, end), self.try_timeout if r.stream else None))
        if self.on_try is not None:
            self.on_try(Try(r.op.method, r.op.path, t.status, t.reason, time.monotonic() - began, t.header("X-Request-Id"), waited))
        return t

    def _exchange(self, r: Request, key: str, t: Tried, deadline: net.Deadline) -> None:
        try:
            deadline.left()
            response = self.transport.send(r.op.method, self.url(r), self.headers(r, key), r.body, deadline, r.op.repeat == NEVER)
        except net.NotSent as e:
            t.reason, t.sent = e.reason, False
            return
        except Exception as e:
            t.reason = net.reason_of(e)
            return
        t.status, t.headers = response.status, response.headers
        self._note_clock(response.headers)
        t.retry_after = retry_after(response.headers, time.time())
        if r.stream and t.status == 200:
            t.response = response
            return
        try:
            t.body = _read(response)
        except Exception as e:
            t.reason = net.TIMEOUT if net.reason_of(e) == net.TIMEOUT else net.CUT
        finally:
            response.close()
        if not t.reason:
            _understand(t, r.op, key)

    def url(self, r: Request) -> str:
        """The address of a call."""
        path = r.op.path
        for p in r.params:
            begin, end = path.index("{"), path.index("}")
            path = path[:begin] + urllib.parse.quote(p, safe="") + path[end + 1 :]
        if r.query:
            path += "?" + urllib.parse.urlencode(r.query)
        return self.base + path

    @staticmethod
    def headers(r: Request, key: str) -> Dict[str, str]:
        """The headers of a try."""
        out = {"X-Api-Key": key, "User-Agent": "till-sdk-python/%s (api %s)" % (VERSION, API_VERSION), "Accept": r.accept}
        if r.body is not None:
            out["Content-Type"] = "application/json"
        return out

    def _note_clock(self, headers: Any) -> None:
        date = _date(headers.get("Date") or "")
        if date is not None:
            self._skew = float(round(date - time.time()))

    def read(self, cls: Type[A], r: Request) -> A:
        """Makes a call and decodes its answer."""
        return decode(cls, self.plain(r), r)

    def plain(self, r: Request) -> Tried:
        """Makes a call for somebody who cannot look by a key."""
        try:
            return self.call(r)
        except LookFirst as look:
            raise look.unknown from None


def _read(response: Any) -> bytes:
    parts: List[bytes] = []
    size = 0
    while size <= MAX_ANSWER:
        part = response.read(65536)
        if not part:
            break
        parts.append(part)
        size += len(part)
    return b"".join(parts)


def _understand(t: Tried, op: Operation, key: str) -> None:
    """Reads the body by its status."""
    if len(t.body) > MAX_ANSWER:
        t.reason = net.TOO_LARGE
    elif 300 <= t.status < 400:
        t.reason = net.REDIRECT
    elif t.status >= 400 and key.encode() in t.body:
        return  # it repeats the request, as some proxies do; its texts would bring the key into logs
    elif t.status >= 400:
        try:
            p = Problem.from_json(parse(t.body))
        except (ValueError, TypeError):
            return
        if p.code:
            t.problem = p
    elif t.status != 204:
        try:
            t.value = parse(t.body)
        except ValueError:
            t.reason = net.NOT_JSON
        if not t.reason and op.method == "GET" and not _answers(op, t.value):
            t.reason = net.NOT_JSON


def _answers(op: Operation, value: Any) -> bool:
    """Tells whether a value can be the answer to a read.

    JSON of something else, as a portal sends it, is none: taken for an empty list, it would say that nothing exists.
    """
    if not isinstance(value, dict):
        return False
    if op.path.endswith("}") or op == GET_ME:
        id = value.get("key_id" if op == GET_ME else "id")
        return isinstance(id, str) and id != ""
    return isinstance(value.get("items"), list)


def decode(cls: Type[A], t: Tried, r: Request) -> A:
    """Reads the answer of a call. JSON of something else, as a portal sends it, is no answer."""
    try:
        return cls.from_json(t.value)
    except (TypeError, ValueError):
        t.reason = net.NOT_JSON
    raise failure(judge(r.op, t, True), t, r.key, 1) from None


__all__ = ["Budget", "CallError", "Caller", "Request", "Tried", "Try", "decode", "delay", "repeatable", "retry_after"]
