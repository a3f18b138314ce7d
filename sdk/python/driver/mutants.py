"""Mistakes that can be switched on; the suite catches each."""

import base64
import hashlib
import hmac
import json
import os
import re
import sys
import threading
import time
import uuid
from dataclasses import replace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import till  # noqa: E402
from till import transport  # noqa: E402

MUTANTS = (
    "new_key_per_try", "key_not_stored", "body_anew", "no_age_check", "signature_over_parsed", "duplicates_by_event_id", "rank_ignored",
    "conflict_retried", "retry_after_ignored", "float_amount", "offset_paging", "unknown_status_final", "function_outside",
    "lapse_forgotten", "foreign_handed_over", "history_shipped",
    "refund_new_key_per_try", "refund_booked_by_amount", "refund_booked_on_202",
    "ask_shipped", "overpaid_forgotten", "failed_ask_ends",
)  # fmt: skip

KEY_FORM = re.compile(rb'"idempotency_key":"[^"]*"')
STATUS_FORM = re.compile(rb'"status":"([a-z_]+)","method"')
KNOWN = (b"pending", b"processing", b"success", b"failed", b"expired", b"cancelled")


OF_CHECKOUT = re.compile(rb'"checkout":(?=\{"id":"[^"]*","link_id":(?:null|"[^"]*"),"n":)')


def asks_alone(mutant):
    """Tells whether a shop hears of asks as of payments, as one should not."""
    return mutant in ("ask_shipped", "failed_ask_ends")


class Rewritten:
    """An answer whose body was changed."""

    def __init__(self, response, body):
        self.status, self.headers, self._response, self._body = response.status, response.headers, response, body

    def read(self, amount):
        part, self._body = self._body[:amount], self._body[amount:]
        return part

    def close(self):
        self._response.close()


class Transport(transport.Transport):
    """Carries requests, dies where it is told to, and makes mistakes."""

    def __init__(self, crash, mutant):
        super().__init__()
        self.crash, self.mutant = crash, mutant

    def send(self, method, url, headers, body, deadline, fresh):
        create = method == "POST" and url.endswith(("/payments", "/payouts", "/refunds", "/checkouts"))
        new_key = create and (self.mutant == "new_key_per_try" or self.mutant == "refund_new_key_per_try" and url.endswith("/refunds"))
        meant = body
        if new_key:
            body = KEY_FORM.sub(b'"idempotency_key":"%s"' % str(uuid.uuid4()).encode(), body)
        elif create and self.mutant == "body_anew":
            body = body[:-1] + b',"description":"at %d"}' % time.time_ns()
        response = super().send(method, url, headers, body, deadline, fresh)
        for _ in range(3 if self.mutant == "conflict_retried" else 0):
            if response.status != 409:
                break
            response.close()
            response = super().send(method, url, headers, body, deadline, fresh)
        if create:
            self.crash("after_send")
        if self.mutant == "retry_after_ignored":
            del response.headers["Retry-After"]
        if self.mutant == "unknown_status_final":
            return Rewritten(response, STATUS_FORM.sub(lambda m: m[0] if m[1] in KNOWN else b'"status":"failed","method"', whole(response)))
        if asks_alone(self.mutant):
            return Rewritten(response, OF_CHECKOUT.sub(b'"hidden":', whole(response)))
        if new_key:
            return Rewritten(response, KEY_FORM.sub(KEY_FORM.search(meant)[0], whole(response)))
        return response


def whole(response):
    out = b""
    while True:
        part = response.read(65536)
        if not part:
            return out
        out += part


request = threading.local()  # which event a request brings


class Store:
    """Dies where it is told to, and makes mistakes."""

    def __init__(self, store, crash, mutant):
        self._store, self._crash, self._mutant = store, crash, mutant

    def __getattr__(self, name):
        return getattr(self._store, name)

    def put(self, tx, row):
        self._crash("before_write")
        return self._store.put(tx, row)

    def count(self, row, lease, next_at):
        counted = self._store.count(row, lease, next_at)
        if counted:
            self._crash("after_count")
        return counted

    def settle(self, s):
        self._crash("after_answer")
        return self._store.settle(s)

    def apply(self, subject, kind, key, fn):
        if self._mutant == "duplicates_by_event_id":
            subject = getattr(request, "event", "") or str(uuid.uuid4())

        def decide(tx, s, rows):
            if self._mutant in ("rank_ignored", "duplicates_by_event_id"):
                s = replace(s, rank=0)
                rows = [replace(r, status="") for r in rows]  # it says the same
            decision = fn(tx, s, rows)
            self._crash("after_function")
            return decision

        return self._store.apply(subject, kind, key, decide)


def mutated(mutant, secrets, headers, body):
    """A delivery as a receiver with a mistake takes it."""
    headers = {name.lower(): value for name, value in headers.items()}
    request.event = headers.get("webhook-id", "") if mutant == "duplicates_by_event_id" else ""
    if mutant == "no_age_check":
        rejuvenate(secrets, headers, body)
    elif mutant == "signature_over_parsed":
        try:
            body = json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False).encode()
        except ValueError:
            pass
    return headers, body


def rejuvenate(secrets, headers, body):
    """Signs a good delivery as if it came now."""

    def sign(secret, stamp):
        key = base64.b64decode(secret[len("whsec_") :])
        text = ("%s.%s." % (headers.get("webhook-id"), stamp)).encode() + body
        return "v1," + base64.b64encode(hmac.new(key, text, hashlib.sha256).digest()).decode()

    for secret in secrets:
        if sign(secret, headers.get("webhook-timestamp")) in headers.get("webhook-signature", ""):
            headers["webhook-timestamp"] = str(int(time.time()))
            headers["webhook-signature"] = sign(secret, headers["webhook-timestamp"])
            return


def floated_major(c):
    """Reads an amount in units with floats, as one should not."""
    return till.Money.minor(str(int(float(c["major"]) * 100)), c["currency"])


def floated(text):
    return "%.6f" % float(text)


def by_offset(client, c):
    """Pages as one should not."""
    offset = 0
    while True:
        page = client.payments.page(status=c.get("status", ""), order="asc" if c.get("kind") == "asc" else "", limit=200, offset=offset)
        yield from page.items
        offset += len(page.items)
        if offset >= page.total or not page.items:
            return


def act_outside(state, order, what):
    """Notes what the shop did beside the transaction."""
    with open(os.path.join(state, "outside"), "a") as f:
        f.write("%s\t%s\n" % (order, what))


def acted_outside(state):
    try:
        with open(os.path.join(state, "outside")) as f:
            return [tuple(line.rstrip("\n").split("\t")) for line in f]
    except FileNotFoundError:
        return []


def causes(error):
    """An error and all that it joins."""
    yield error
    for e in getattr(error, "errors", ()):
        if isinstance(e, Exception):
            yield from causes(e)
