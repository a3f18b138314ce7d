import os
import sqlite3

import till


def connect():
    return sqlite3.connect("shop.db", timeout=10)


# Your one function. Webhooks, the event log and the sweep all end here, and each change calls it
# once, inside a transaction of your database.
def on_change(change, db):
    if change.paid:  # success, or money that came late
        db.execute("UPDATE orders SET state = 'paid' WHERE id = ?", (change.order,))
        print("ship:", change.order)
    elif change.taken_back:
        db.execute("UPDATE orders SET state = 'stopped' WHERE id = ?", (change.order,))
    elif change.failed:
        print("not paid:", change.order, change.payment.failure_reason)


client = till.Till(os.environ["TILL_BASE_URL"], lambda: os.environ["TILL_API_KEY"], expect="test")
teller = till.Teller(client, till.DbStore(connect), on_change)
teller.store.install()

db = connect()
db.execute("CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, state TEXT)")
with db:  # one commit: the order, and the wish to be paid with its key
    db.execute("INSERT OR IGNORE INTO orders VALUES ('ORDER-1042', 'open')")
    teller.collect(db, order="ORDER-1042", method="mtn_momo", country="CG", amount=till.Money.minor("5000", "XAF"),
                   phone="242061234567", description="Two loaves")

payment = teller.wait("ORDER-1042", 90)  # sends, and reads until it is final
print("the payment is", payment.status)
