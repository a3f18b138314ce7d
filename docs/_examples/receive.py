import os
import sqlite3
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import till


def on_change(change, db):
    if change.paid:  # once, inside the transaction that remembers it
        print("ship:", change.payment.reference, flush=True)


client = till.Till(os.environ["TILL_BASE_URL"], lambda: os.environ["TILL_API_KEY"])
teller = till.Teller(client, till.DbStore(lambda: sqlite3.connect("shop.db", timeout=10)), on_change, foreign=True)  # of payments too that were made without this store
teller.store.install()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        body, status, headers = teller.receive(os.environ["TILL_WEBHOOK_SECRET"], self.headers, raw)  # signature, age, duplicates, order
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())


ThreadingHTTPServer(("127.0.0.1", int(os.environ["PORT"])), Receiver).serve_forever()
