"""The client."""

from __future__ import annotations

import random
import ssl
import time
import urllib.parse
from typing import Any, Callable, Optional, Union

from . import operations_gen as ops
from .api_keys import ApiKeys
from .call import Budget, Caller, Request, Try
from .checkouts import Checkouts
from .error import BadBaseURL, BadKey, Mistake, NoKey, WrongMode
from .events import Events
from .links import Links
from .payment_methods import PaymentMethods
from .payments import Payments
from .payouts import Payouts
from .refunds import Refunds
from .sandbox import Sandbox
from .transactions import Transactions
from .transport import Transport, is_loopback
from .types_gen import Me
from .wallets import Wallets
from .webhook_endpoints import WebhookEndpoints


class Till(Caller):
    """Makes calls. Many threads may use one; one per program is enough.

    base_url is what you were given with your key; it ends in /v1. api_key is a text, or a function that is asked
    for each call, so that a new key needs no restart, and once more after a 401.

    deadline and try_timeout are seconds: how long a call may take in all, and how long one request. tries is how many
    requests one call may make. expect refuses keys of the other mode: "live" in production, "test" elsewhere.
    plain_http allows http:// to other machines, where anybody can read the key. on_try is told about every request,
    for whoever measures; nothing is logged.
    """

    def __init__(
        self,
        base_url: str,
        api_key: Union[str, Callable[[], str]],
        *,
        deadline: float = 30.0,
        try_timeout: float = 10.0,
        connect_timeout: float = 5.0,
        tries: int = 5,
        expect: Optional[str] = None,
        plain_http: bool = False,
        on_try: Optional[Callable[[Try], None]] = None,
        ssl_context: Optional[ssl.SSLContext] = None,
        transport: Any = None,
    ) -> None:
        if not callable(api_key) and not isinstance(api_key, str):
            raise NoKey("till: there is no API key")
        if deadline <= 0 or try_timeout <= 0 or connect_timeout <= 0 or tries < 1:
            raise Mistake("till: a deadline and the tries are more than nothing")
        if expect not in (None, "", "live", "test"):
            raise Mistake('till: what is expected is "live" or "test"')
        self.base = _base(base_url, plain_http)
        self._api_key = api_key
        self._expect = expect
        self.deadline, self.try_timeout, self.tries = deadline, try_timeout, tries
        self.on_try = on_try
        self.transport = transport or Transport(connect_timeout, ssl_context)
        self.budget = Budget()
        self.sleep = time.sleep
        self.random = random.random
        self._skew: Optional[float] = None
        self.long_poll = True  # until the service says that it reads a payment at once only

        self.payments = Payments(self)
        self.payouts = Payouts(self)
        self.refunds = Refunds(self)
        self.checkouts = Checkouts(self)
        self.links = Links(self)
        self.events = Events(self)
        self.webhooks = WebhookEndpoints(self)
        self.payment_methods = PaymentMethods(self)
        self.wallets = Wallets(self)
        self.transactions = Transactions(self)
        self.api_keys = ApiKeys(self)
        self.sandbox = Sandbox(self)

    def me(self) -> Me:
        """Whose key this is, what it may do, and where the service is reached."""
        return self.read(Me, Request(ops.GET_ME))

    def key(self) -> str:
        """Asks for the key, and refuses one that cannot be right."""
        key = self._api_key() if callable(self._api_key) else self._api_key
        if not key:
            raise NoKey("till: there is no API key")
        if any(not "!" <= c <= "~" for c in key):
            raise BadKey("till: the API key has characters that no key has")
        if self._expect and not key.startswith("till_" + self._expect + "_"):
            raise WrongMode("till: a test key where a live one is expected, or the other way round")
        return key

    @property
    def clock_skew(self) -> Optional[float]:
        """How many seconds the service's clock is ahead of this machine's; None before an answer told it."""
        return self._skew

    def close(self) -> None:
        """Closes connections that are kept."""
        self.transport.close()


def _base(text: str, plain_http: bool) -> str:
    wrong = BadBaseURL("till: the base address is an https:// URL, or http:// on this machine")
    if not isinstance(text, str) or any(not "!" <= c <= "~" for c in text):
        raise wrong
    base = text.rstrip("/")
    try:
        parts = urllib.parse.urlsplit(base)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise wrong from None
    if not host or "@" in parts.netloc or "?" in base or "#" in base:
        raise wrong
    if parts.scheme != "https" and not (parts.scheme == "http" and (plain_http or is_loopback(host))):
        raise wrong
    return base
