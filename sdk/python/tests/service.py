"""Little services for tests: one that answers a script, one that takes payments."""

import base64
import hashlib
import hmac
import json
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import till

KEY = "till_test_abc_secretsecretsecret"
PHONE = "242061234567"
UUID = "6f1c1a52-0d0c-4d5a-9a62-51f9a6f0a3c1"
SECRET = "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc="


def serve(test, answer):
    """Starts a server whose every request goes to answer(handler, body), and returns its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer(self, body)

        do_GET = do_POST = do_DELETE = do_PATCH = do_CONNECT = handle_any

        def log_message(self, *args):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()

    def stop():
        server.shutdown()
        server.server_close()
        thread.join()

    test.addCleanup(stop)
    return "http://127.0.0.1:%d/v1" % server.server_address[1]


def says(status, text, **headers):
    def answer(handler, body):
        data = text.encode()
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def problem(status, code, **headers):
    return says(status, json.dumps({"code": code, "status": status, "detail": "d", "request_id": "r-1"}), **headers)


def hang_up(handler, body):
    """Closes the connection without an answer."""
    handler.close_connection = True


def payment(status, **more):
    text = {"id": "p-1", "status": status, "idempotency_key": UUID, "created_at": "2026-11-15T05:51:53.123456Z", "resolution": {"state": "waiting"}}
    return json.dumps(dict(text, **more))


class Script:
    """A service that answers one thing after the other, and the last one for ever."""

    def __init__(self, test, *answers):
        self.answers = answers
        self.asked = []  # method, path and key of each request
        self.bodies = []
        self.headers = []
        self.lock = threading.Lock()
        self.url = serve(test, self.answer)

    def answer(self, handler, body):
        with self.lock:
            self.asked.append("%s %s %s" % (handler.command, handler.path, handler.headers.get("X-Api-Key")))
            self.bodies.append(body)
            self.headers.append(handler.headers)
            answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        answer(handler, body)

    def client(self, api_key=KEY, **options):
        """A client of the script that does not really wait, and what it would have waited."""
        client, waited = till.Till(self.url, api_key, **options), []
        client.sleep = waited.append
        client.random = lambda: 0.0
        return client, waited


class Service:
    """A little Till: it takes payments and shows them."""

    def __init__(self, test):
        self.payments = {}  # by key
        self.posts = self.reads = 0
        self.skew = 0
        self.lock = threading.Lock()
        self.url = serve(test, self.answer)

    def answer(self, handler, body):
        with self.lock:
            status, value = self.decide(handler.command, urlsplit(handler.path), body)
        data = json.dumps(value).encode()
        handler.send_response_only(status)
        handler.send_header("Date", formatdate(time.time() + self.skew, usegmt=True))
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    def decide(self, method, url, body):
        if method == "POST":
            self.posts += 1
            wish = json.loads(body)
            key = wish["idempotency_key"]
            self.payments.setdefault(key, dict(wish, id="p-" + key[:8], status="pending", resolution={"state": "waiting"}))
            return 202, self.payments[key]
        if "wait" in parse_qs(url.query):
            return 400, {"code": "invalid_parameter", "status": 400}
        self.reads += 1
        for p in self.payments.values():
            if url.path.endswith(p["id"]):
                return 200, p
        return 404, {"code": "payment_not_found", "status": 404}

    def set(self, **members):
        with self.lock:
            for p in self.payments.values():
                p.update(members)

    def payment(self):
        with self.lock:
            return dict(next(iter(self.payments.values())))


def event(id, kind, payment):
    """The bytes of an event."""
    value = {"id": id, "type": kind, "sequence": 1, "api_version": "1.1", "created_at": "2026-11-15T05:51:53.123456Z", "data": {"payment": payment}}
    return json.dumps(value).encode()


def signed(id, body, stamp=None):
    """The headers of a delivery."""
    stamp = str(int(time.time()) if stamp is None else stamp)
    mac = hmac.new(base64.b64decode(SECRET[6:]), ("%s.%s." % (id, stamp)).encode() + body, hashlib.sha256)
    return {"webhook-id": id, "webhook-timestamp": stamp, "webhook-signature": "v1," + base64.b64encode(mac.digest()).decode()}
