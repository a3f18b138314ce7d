"""Makes creates through the SDK and bare ones, in turns, and prints how many microseconds each took as JSON.

Its arguments are the base address, the key and how many.
"""

import http.client
import json
import os
import sys
import time
import urllib.parse
import uuid

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import till  # noqa: E402

base, key, n = sys.argv[1:]
client = till.Till(base, key)
parts = urllib.parse.urlsplit(base)
connection = http.client.HTTPConnection(parts.netloc)


def bare():
    """What a program without the SDK does: one request on a connection that it keeps, and its answer read."""
    wish = {
        "method": "mtn_momo", "country": "CG", "amount": {"value": "5000", "currency": "XAF"}, "customer": {"phone": "242061234567"},
        "idempotency_key": str(uuid.uuid4()),
    }  # fmt: skip
    connection.request("POST", parts.path + "/payments", json.dumps(wish), {"X-Api-Key": key, "Content-Type": "application/json"})
    response = connection.getresponse()
    json.loads(response.read())
    if response.status != 202:
        raise RuntimeError(response.status)


def sdk():
    """The same by the SDK."""
    client.payments.create(till.CreatePayment("mtn_momo", till.Money.minor("5000", "XAF"), str(uuid.uuid4()), till.CreatePaymentCustomer("242061234567"), country="CG"))


took = {"bare": [], "sdk": []}
for _ in range(int(n)):
    for make in (bare, sdk):
        began = time.perf_counter_ns()
        make()
        took[make.__name__].append((time.perf_counter_ns() - began) // 1000)
print(json.dumps(took))
