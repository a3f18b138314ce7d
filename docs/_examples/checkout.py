import os
import sqlite3

import till


def connect():
    return sqlite3.connect("pages.db", timeout=10)


def on_change(change, db):
    if change.overpaid:  # paid once more: not another order
        print("give back:", change.extra)
    elif change.paid:  # the amount is that of the wish
        db.execute("UPDATE orders SET state = 'paid' WHERE id = ?", (change.order,))
        print("ship:", change.order)
    elif change.other_amount or change.taken_back:
        db.execute("UPDATE orders SET state = 'stopped' WHERE id = ?", (change.order,))
    elif change.failed:  # it expired or was cancelled
        print("not paid:", change.order)


client = till.Till(os.environ["TILL_BASE_URL"], lambda: os.environ["TILL_API_KEY"], expect="test")
teller = till.Teller(client, till.DbStore(connect), on_change)
teller.store.install()

db = connect()
db.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT)")
with db:  # one commit: the order, and the wish to be paid with its key
    db.execute("INSERT OR IGNORE INTO orders VALUES ('ORDER-1042', 'open')")
    teller.checkout(db, order="ORDER-1042", amount=till.Money.minor("5000", "XAF"), description="Two loaves",
                    return_url="https://shop.example/done")

page = teller.send_checkout("ORDER-1042")  # makes the page, once
print("send the customer to", page.url)
checkout = teller.wait_checkout("ORDER-1042", 90)  # a server has run and a webhook instead
print("the checkout is", checkout.state)
