"""A receiver of webhooks, with its sweep. It needs nothing but Python 3.9 or newer:

    TILL_WEBHOOK_SECRET=whsec_… TILL_API_KEY=till_… TILL_URL=http://127.0.0.1:8080/v1 PORT=3000 python3 receiver.py
"""

import base64
import hashlib
import hmac
import json
import os
import sys
import threading
import time
import urllib.error
import urllib.request
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


# The steps of a payment's money. It only goes forward: what comes twice, or in
# another order, tells a step that was taken before.
NOT_PAID, PAID, TAKEN_BACK = 1, 2, 3
STEPS = {
    "payment.failed": NOT_PAID, "payment.expired": NOT_PAID,
    "payment.success": PAID, "payment.late_success": PAID,
    "payment.reversed": TAKEN_BACK,
}


class Shop:
    """Stands for two tables of your database and a cursor. The file is written
    where you would commit."""

    def __init__(self, path: str):
        self.lock = threading.Lock()
        self.path = path
        self.rows = {
            "steps": {},  # of each payment, the last step
            "orders": {},  # of each order that is paid, the payment that paid it
            "log": None,  # which event log
            "cursor": 0,  # how far the sweep has read it
        }
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                self.rows = json.load(file)

    def commit(self) -> None:
        with open(self.path + ".new", "w", encoding="utf-8") as file:
            json.dump(self.rows, file)
        os.replace(self.path + ".new", self.path)

    def react(self, event) -> None:
        """Do what an event asks of us, once. Webhooks and the sweep both end here.
        It goes by the kind of the event: the status of a payment stays what it was
        when money comes late, or is taken back."""
        payment, step = event["data"].get("payment"), STEPS.get(event.get("type"), 0)
        steps, orders = self.rows["steps"], self.rows["orders"]
        if not payment or step <= steps.get(payment["id"], 0):
            return  # nothing about money, or nothing new
        steps[payment["id"]] = step
        order = payment.get("reference") or payment["id"]
        by = orders.get(order)
        if step == NOT_PAID and by is None:
            print(f"not paid: {order}", flush=True)  # say so to the customer
        elif step == PAID and by is None:
            orders[order] = payment["id"]
            print(f"ship: {order}", flush=True)
        elif step == PAID:
            print(f"give back: {payment['id']}, {order} is paid already", flush=True)  # the customer tried twice
        elif step == TAKEN_BACK and by == payment["id"]:
            del orders[order]
            print(f"stop: {order}, the money was taken back", flush=True)

    def sweep(self, base: str, api_key: str) -> None:
        """Read the event log from where it was left to its end: what no webhook
        brought is found here. A log that is another, or ends before our cursor, was
        restored from a backup: it is read from its beginning, which repeats nothing."""
        while True:
            url = f"{base}/events?after={self.rows['cursor']}&limit=200"
            request = urllib.request.Request(url, headers={"X-Api-Key": api_key})
            page = None
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    page = json.load(response)
            except urllib.error.HTTPError as error:
                if error.code != 409:
                    raise
            with self.lock:
                rows = self.rows
                if page is None or rows["log"] not in (None, page["log_id"]):
                    print("the log was set back: see the guide, 'Read the event log'", file=sys.stderr, flush=True)
                    rows["log"], rows["cursor"] = page and page["log_id"], 0
                    self.commit()
                    continue
                for event in page["items"]:
                    self.react(event)
                ended = page["next_after"] == rows["cursor"]
                rows["log"], rows["cursor"] = page["log_id"], page["next_after"]
                self.commit()
            if ended:
                return


KEY = base64.b64decode(os.environ["TILL_WEBHOOK_SECRET"].removeprefix("whsec_"))
SHOP = Shop(os.environ.get("SHOP", "shop.json"))


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        try:
            size = int(self.headers.get("Content-Length", "-1"))
            if not 0 <= size <= MAX_BODY:
                raise ValueError("too large, or of unknown size")
            body = self.rfile.read(size)
            verify(KEY, self.headers, body)
            event = json.loads(body)
        except ValueError:
            self.send_error(400, "refused")
            return
        try:
            with SHOP.lock:
                SHOP.react(event)
                SHOP.commit()
        except Exception:
            self.send_error(500, "not stored")  # it will come again
            return
        self.send_response(204)  # also for what came before
        self.end_headers()

    def log_message(self, *args):
        pass


def sweep_for_ever() -> None:
    """At the start and every five minutes."""
    while True:
        try:
            SHOP.sweep(os.environ["TILL_URL"], os.environ["TILL_API_KEY"])
        except (OSError, ValueError) as error:
            print("sweep:", error, file=sys.stderr, flush=True)  # the next one begins where this one ended
        time.sleep(float(os.environ.get("SWEEP_SECONDS", "300")))


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver)
    print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
    threading.Thread(target=sweep_for_ever, daemon=True).start()
    server.serve_forever()
