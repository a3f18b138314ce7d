"""A receiver of webhooks. It needs nothing but Python 3.9 or newer:

    TILL_WEBHOOK_SECRET=whsec_… PORT=3000 python3 receiver.py
"""

import base64
import hashlib
import hmac
import json
import os
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOLERANCE = 5 * 60  # seconds
MAX_BODY = 1 << 20


def verify(key: bytes, headers, body: bytes) -> None:
    """Raise ValueError unless this very delivery was signed with our secret, a
    short time ago. The body is the bytes as they came."""
    delivery = headers.get("webhook-id", "")
    timestamp = headers.get("webhook-timestamp", "")
    if not delivery or not (timestamp.isascii() and timestamp.isdigit()):
        raise ValueError("a header is missing or wrong")
    if abs(time.time() - int(timestamp)) > TOLERANCE:
        raise ValueError("too old, or from the future")
    signed = f"{delivery}.{timestamp}.".encode() + body
    mac = hmac.new(key, signed, hashlib.sha256).digest()
    want = b"v1," + base64.b64encode(mac)
    given = headers.get("webhook-signature", "").split()  # two during a rotation
    if not any(hmac.compare_digest(s.encode(), want) for s in given):
        raise ValueError("no signature matches")


class Inbox:
    """Stands for a table of your database, with a unique key on the id."""

    def __init__(self):
        self.lock = threading.Lock()
        self.seen = set()
        self.work = queue.Queue()

    def add(self, event) -> None:
        with self.lock:
            if event["id"] not in self.seen:
                self.seen.add(event["id"])
                self.work.put(event)

    def run(self) -> None:
        """Do the work, after the answer was given."""
        latest = {}  # of each payment, the newest sequence that was used
        while True:
            event = self.work.get()
            payment = event["data"].get("payment")
            if not payment or event["sequence"] <= latest.get(payment["id"], 0):
                continue  # not about a payment, or older than what we know already
            latest[payment["id"]] = event["sequence"]
            print(f"payment {payment['id']} is {payment['status']}", flush=True)  # ship the goods here


KEY = base64.b64decode(os.environ["TILL_WEBHOOK_SECRET"].removeprefix("whsec_"))
INBOX = Inbox()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            size = int(self.headers.get("Content-Length", "-1"))
            if not 0 <= size <= MAX_BODY:
                raise ValueError("too large, or of unknown size")
            body = self.rfile.read(size)
            verify(KEY, self.headers, body)
            INBOX.add(json.loads(body))
        except (ValueError, KeyError):
            self.send_error(400, "refused")
            return
        self.send_response(204)  # also for what came before
        self.end_headers()

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    threading.Thread(target=INBOX.run, daemon=True).start()
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
