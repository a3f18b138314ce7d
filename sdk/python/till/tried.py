"""What came of one request."""

from __future__ import annotations

from typing import Any, Optional

from . import transport as net
from .types_gen import Problem

NOTHING_HAPPENED = ("method_unavailable", "payouts_held")  # codes of a 503 that took nothing


class Tried:
    """What came of one request."""

    def __init__(self, status: int = 0, reason: str = "", sent: bool = True, problem: Optional[Problem] = None) -> None:
        self.status = status
        self.reason = reason  # "" for a complete answer
        self.sent = sent  # a byte may have been written
        self.problem = problem
        self.headers: Any = {}
        self.body = b""
        self.value: Any = None  # the body, read
        self.retry_after = 0.0
        self.response: Optional[net.Response] = None  # of a stream

    @property
    def code(self) -> str:
        """The service's word, "" if it said none."""
        return (self.problem.code or "") if self.problem else ""

    def header(self, name: str) -> str:
        """A header, "" if it is not there."""
        return self.headers.get(name) or ""

    @property
    def passing(self) -> bool:
        """Whether the failure may go away by itself."""
        if self.reason:
            return self.reason not in (net.CERTIFICATE, "cancelled", net.TOO_LARGE, net.REDIRECT)
        return self.status in (408, 429, 500, 502, 503, 504)

    @property
    def unanswered(self) -> bool:
        """Whether it may have been done although the answer does not say so."""
        if not self.sent or self.reason == net.REDIRECT:
            return False
        return self.reason != "" or self.status == 408 or self.status >= 500 and self.code not in NOTHING_HAPPENED
