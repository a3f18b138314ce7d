"""The real Flask."""

import io
import os
import shutil
import sqlite3
import tempfile
import unittest

import till

from .here import missing
from .service import SECRET, event, signed

try:
    import flask
except ImportError:
    flask = None


class FlaskTest(unittest.TestCase):
    def setUp(self):
        if flask is None:
            raise missing("Flask is not installed: make sdk installs it")
        from till.flask import till_webhook

        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.connect = lambda: sqlite3.connect(os.path.join(folder, "shop.db"))
        store = till.DbStore(self.connect)
        store.install()
        db = self.connect()
        self.addCleanup(db.close)
        self.db = db
        db.execute("CREATE TABLE orders (id TEXT, paid INTEGER)")
        self.fails = None

        def on_change(change, db):
            if change.paid:
                db.execute("INSERT INTO orders VALUES (?, 1)", (change.reference,))
            if self.fails:
                raise self.fails

        teller = till.Teller(till.Till("http://127.0.0.1:1", "till_test_a_b"), store, on_change, foreign=True)
        app = flask.Flask("shop")
        app.add_url_rule("/till", view_func=till_webhook(teller, [SECRET]), methods=["POST"])

        @app.route("/by-hand", methods=["GET", "POST"])
        def hook():
            return teller.receive(SECRET, flask.request.headers, flask.request.get_data(), flask.request.method)

        @app.before_request
        def reads():
            if "reads" in flask.request.args:
                flask.request.stream.read()

        self.app, self.http = app, app.test_client()

    def post(self, path, id="e-1", body=None, headers=None):
        body = event(id, "payment.success", {"id": "p-" + id, "status": "success", "idempotency_key": "k", "reference": id}) if body is None else body
        return self.http.post(path, data=body, headers=signed(id, body) if headers is None else headers, content_type="application/json")

    def paid(self):
        return [order for (order,) in self.db.execute("SELECT id FROM orders ORDER BY id")]

    def test_webhook(self):
        for n, path in enumerate(("/till", "/by-hand")):
            id = "e-%d" % n
            for _ in range(2):
                reply = self.post(path, id)
                self.assertEqual((reply.status_code, reply.data), (204, b""))
            self.assertEqual(self.paid(), ["e-%d" % i for i in range(n + 1)])
            self.assertEqual(self.http.get(path).status_code, 405)
            forged = self.post(path, headers=signed("e-1", b"other"))
            self.assertEqual((forged.status_code, forged.data, forged.mimetype), (400, b"bad_signature", "text/plain"))
            self.assertEqual(self.post(path, body=b"x" * (1 << 20 | 1)).data, b"too_large")
            read = self.post(path + "?reads=1", "e-9")
            self.assertEqual((read.status_code, read.data[:13]), (500, b"body_was_read"))

    def test_a_delivery_in_chunks(self):
        """It has no length, and not more of it is read than a delivery may have."""
        body = event("e-1", "payment.success", {"id": "p-1", "status": "success", "idempotency_key": "k", "reference": "e-1"})
        for sent, status, text, most in ((body, 204, b"", len(body)), (b"x" * (8 << 20), 400, b"too_large", (1 << 20) + 1)):
            stream = io.BytesIO(sent)
            chunked = {"wsgi.input": stream, "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
            reply = self.http.post("/till", headers=signed("e-1", body), environ_overrides=chunked)
            self.assertEqual((reply.status_code, reply.data), (status, text))
            self.assertLessEqual(stream.tell(), most)

    def test_webhook_whose_function_fails(self):
        self.fails = KeyError("undefined order")
        with self.assertLogs(self.app.logger, "ERROR") as logged:
            reply = self.post("/till")
        self.assertEqual((reply.status_code, reply.data, self.paid()), (500, b"not done", []))
        self.assertIn("undefined order", "".join(logged.output))
        self.fails = None
        self.assertEqual((self.post("/till").status_code, self.paid()), (204, ["e-1"]))


if __name__ == "__main__":
    unittest.main()
