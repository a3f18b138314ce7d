"""Carries requests by http.client, with one deadline for a whole try."""

from __future__ import annotations

import base64
import http.client
import io
import selectors
import socket
import ssl
import threading
import time
import urllib.parse
import urllib.request
from typing import Any, Dict, List, Optional, Tuple

MAX_IDLE = 16
IDLE_SECONDS = 60.0

# Why there was no complete answer.
TIMEOUT = "timeout"
CERTIFICATE = "certificate"
UNREACHABLE = "unreachable"
RESET = "reset"
CUT = "cut"
NOT_JSON = "not_json"
TOO_LARGE = "too_large"
REDIRECT = "redirect"
CONNECTION = "connection"


class NotSent(Exception):
    """There was no connection, so not one byte was written."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def reason_of(e: BaseException) -> str:
    """Puts an error of the network into one word: its text may name addresses."""
    if isinstance(e, (TimeoutError, socket.timeout)):
        return TIMEOUT
    if isinstance(e, ssl.SSLCertVerificationError):
        return CERTIFICATE
    if isinstance(e, (ConnectionRefusedError, socket.gaierror)):
        return UNREACHABLE
    if isinstance(e, http.client.IncompleteRead):
        return CUT
    if isinstance(e, (ConnectionError, EOFError, ssl.SSLEOFError, ssl.SSLZeroReturnError)):
        return RESET
    return CONNECTION


class Deadline:
    """When a try ends. A stream has none, but no pause of it may be longer than idle."""

    def __init__(self, end: float, idle: Optional[float] = None) -> None:
        self.end = end
        self.idle = idle

    def left(self) -> float:
        """Seconds that are left; TimeoutError if none are."""
        if self.idle is not None:
            return self.idle
        left = self.end - time.monotonic()
        if left <= 0:
            raise TimeoutError("till: timeout")
        return left


class _Reader(io.RawIOBase):
    """Reads a socket until the deadline, however the bytes trickle."""

    def __init__(self, owner: "_Socket") -> None:
        self._owner = owner

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._owner.sock.settimeout(self._owner.deadline.left())
        return self._owner.sock.recv_into(buffer)


class _Socket:
    """A socket as http.client wants it, that holds to a deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self.sock = sock
        self.deadline = deadline

    def sendall(self, data: Any) -> None:
        self.sock.settimeout(self.deadline.left())
        self.sock.sendall(data)  # the timeout is for all of it

    def makefile(self, mode: str, *_: Any) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self))

    def close(self) -> None:
        self.sock.close()

    def dead(self) -> bool:
        """Tells whether the other side closed, or said something unasked."""
        try:
            with selectors.DefaultSelector() as s:
                s.register(self.sock, selectors.EVENT_READ)
                return bool(s.select(0))
        except (OSError, ValueError):
            return True


class Response:
    """An answer whose body is still to be read."""

    def __init__(self, transport: "Transport", conn: http.client.HTTPConnection, res: http.client.HTTPResponse) -> None:
        self._transport, self._conn, self._res = transport, conn, res
        self.status = res.status
        self.headers = res.headers

    def read(self, amount: int) -> bytes:
        """Reads some bytes, b"" at the end. A body that is cut is an error."""
        text = self._res.read(amount)
        if not text and self._res.length:
            raise http.client.IncompleteRead(b"", self._res.length)
        return text

    def part(self, amount: int) -> bytes:
        """Reads what has come, b"" at the end, so that a slow stream brings its lines when they come."""
        text = self._res.read1(amount)
        if not text and self._res.length:
            raise http.client.IncompleteRead(b"", self._res.length)
        return text

    def close(self) -> None:
        """Gives the connection back if the body was read to its end."""
        if self._res.isclosed() and not self._res.will_close:
            self._transport.keep(self._conn)
        else:
            self._conn.close()


class Transport:
    """Makes connections and keeps a few for the next request."""

    def __init__(self, connect_timeout: float = 5.0, context: Optional[ssl.SSLContext] = None) -> None:
        self._connect_timeout = connect_timeout
        self._context = context
        self._lock = threading.Lock()
        self._idle: Dict[Tuple[str, str], List[Tuple[float, http.client.HTTPConnection]]] = {}

    def send(self, method: str, url: str, headers: Dict[str, str], body: Optional[bytes], deadline: Deadline, fresh: bool) -> Response:
        """Makes one request. NotSent says that certainly no byte of it left; any other error says nothing.

        fresh asks for a connection of its own: one that was kept may have died unseen.
        """
        parts = urllib.parse.urlsplit(url)
        target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
        proxy = _proxy(parts.scheme, parts.hostname or "")
        if proxy and parts.scheme == "http":
            target = url
            headers = dict(headers, **_authorization(proxy))
        place = (parts.scheme, parts.netloc)
        conn = None if fresh else self._kept(place, deadline)
        if conn is None:
            try:
                conn = self._connect(parts, proxy, deadline)
            except Exception as e:
                raise NotSent(reason_of(e)) from None
            conn.place = place  # type: ignore[attr-defined]
        try:
            conn.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            conn.putheader("Host", parts.netloc)
            for name, value in headers.items():
                conn.putheader(name, value)
            if body is not None:
                conn.putheader("Content-Length", str(len(body)))
            elif method not in ("GET", "HEAD", "DELETE"):
                conn.putheader("Content-Length", "0")
            conn.endheaders(body)
            return Response(self, conn, conn.getresponse())
        except BaseException:
            conn.close()
            raise

    def _connect(self, parts: urllib.parse.SplitResult, proxy: str, deadline: Deadline) -> http.client.HTTPConnection:
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        timeout = min(self._connect_timeout, deadline.left())
        if not proxy:
            sock = socket.create_connection((host, port), timeout)
        else:
            via = urllib.parse.urlsplit(proxy if "://" in proxy else "http://" + proxy)
            if parts.scheme == "https":
                tunnel = http.client.HTTPConnection(via.hostname or "", via.port or 80, timeout=timeout)
                tunnel.set_tunnel(host, port, _authorization(proxy))
                tunnel.connect()
                sock = tunnel.sock
            else:
                sock = socket.create_connection((via.hostname or "", via.port or 80), timeout)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if parts.scheme == "https":
                sock.settimeout(min(self._connect_timeout, deadline.left()))
                context = self._context or ssl.create_default_context()
                sock = context.wrap_socket(sock, server_hostname=host)
        except BaseException:
            sock.close()
            raise
        conn = http.client.HTTPConnection(host, port)
        conn.auto_open = 0  # it never connects by itself: a repeat is decided elsewhere
        conn.sock = _Socket(sock, deadline)  # type: ignore[assignment]
        return conn

    def _kept(self, place: Tuple[str, str], deadline: Deadline) -> Optional[http.client.HTTPConnection]:
        """A connection of before that is still good."""
        while True:
            with self._lock:
                idle = self._idle.get(place)
                if not idle:
                    return None
                since, conn = idle.pop()
            sock: Any = conn.sock
            if sock is not None and time.monotonic() - since < IDLE_SECONDS and not sock.dead():
                sock.deadline = deadline
                return conn
            conn.close()

    def keep(self, conn: http.client.HTTPConnection) -> None:
        """Keeps a connection for the next request, a few of them."""
        with self._lock:
            idle = self._idle.setdefault(conn.place, [])  # type: ignore[attr-defined]
            if len(idle) < MAX_IDLE:
                idle.append((time.monotonic(), conn))
                return
        conn.close()

    def close(self) -> None:
        """Closes what is kept."""
        with self._lock:
            all_idle, self._idle = self._idle, {}
        for idle in all_idle.values():
            for _, conn in idle:
                conn.close()

    def __del__(self) -> None:
        self.close()


def _proxy(scheme: str, host: str) -> str:
    """The proxy of the environment, "" for none. This machine is never asked through one."""
    if is_loopback(host):
        return ""
    proxy = urllib.request.getproxies_environment().get(scheme, "")
    if not proxy or urllib.request.proxy_bypass_environment(host):
        return ""
    return proxy


def _authorization(proxy: str) -> Dict[str, str]:
    via = urllib.parse.urlsplit(proxy if "://" in proxy else "http://" + proxy)
    if not via.username:
        return {}
    text = urllib.parse.unquote(via.username) + ":" + urllib.parse.unquote(via.password or "")
    return {"Proxy-Authorization": "Basic " + base64.b64encode(text.encode()).decode()}


def is_loopback(host: str) -> bool:
    """Tells whether a host is this machine."""
    import ipaddress

    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
