"""A shop that receives webhooks with Flask and the SDK for Python."""

import os
import sqlite3

import flask
from werkzeug.serving import make_server

import till
from till.flask import till_webhook


def connect():
    return sqlite3.connect(os.path.join(os.environ["FOLDER"], "shop.db"), timeout=10)


def on_change(change, db):
    if change.paid:
        db.execute("INSERT INTO acted VALUES (?, ?)", (change.payment.id, change.payment.amount.value))


store = till.DbStore(connect)
store.install()
connect().execute("CREATE TABLE acted (payment TEXT, amount TEXT)")
teller = till.Teller(till.Till("http://127.0.0.1:1/v1", "till_test_a_b"), store, on_change, foreign=True)
app = flask.Flask("shop")
app.add_url_rule("/till", view_func=till_webhook(teller, os.environ["TILL_WEBHOOK_SECRET"]), methods=["POST"])
make_server("127.0.0.1", int(os.environ["PORT"]), app, threaded=True).serve_forever()
