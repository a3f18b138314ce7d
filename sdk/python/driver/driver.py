"""Plays the shop for the conformance suite: reads one JSON command a line and writes one JSON result a line, as
sdk/conformance/README.md says. The argument is the store: files or sqlite.

The suite judges by the service's books and by what the shop did. Mutants break one duty on purpose, to show that the
suite would notice.
"""

import os
import signal
import sqlite3
import sys
import threading
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

import mutants  # noqa: E402

import till  # noqa: E402
from till.wire import parse, render  # noqa: E402


class FileShop:
    """The shop's own notes in the file store."""

    def __init__(self, folder):
        self.store = till.FileStore(folder)

    def update(self, work):
        with self.store.transaction() as tx:
            work(tx)

    def act(self, tx, order, what):
        tx.set(order, (tx.get(order) + "\t" + what).lstrip("\t"))

    def acted(self):
        return {order: what.split("\t") for order, what in self.store.all().items()}


class SqliteShop:
    """The shop's own table beside the store's, in SQLite."""

    def __init__(self, folder):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self.path = os.path.join(folder, "shop.db")
        self.store = till.DbStore(self.connect)
        self.kept = self.connect()  # the last one that closes would copy the log into the file
        self.kept.execute("CREATE TABLE IF NOT EXISTS acts (n INTEGER PRIMARY KEY, order_id TEXT, what TEXT)")

    def connect(self):
        conn = sqlite3.connect(self.path, timeout=5, check_same_thread=False)
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("PRAGMA synchronous = NORMAL")  # a kill loses no commit without the sync, only a loss of power does
        return conn

    def update(self, work):
        conn = self.connect()
        try:
            conn.execute("BEGIN IMMEDIATE")
            with conn:
                work(conn)
        finally:
            conn.close()

    def act(self, tx, order, what):
        tx.execute("INSERT INTO acts (order_id, what) VALUES (?, ?)", (order, what))

    def acted(self):
        conn = self.connect()
        out = {}
        for order, what in conn.execute("SELECT order_id, what FROM acts ORDER BY n"):
            out.setdefault(order, []).append(what)
        conn.close()
        return out


class Driver:
    """One shop."""

    def __init__(self, shop):
        self.open_shop = shop
        self.armed = ""  # the point at which to die
        self.fails = 0  # how often the function is still to fail
        self.booked = set()  # refunds, by order and amount, as one should not
        self.server = None

    def crash(self, point):
        """Ends the program at once if it is to die here."""
        if self.armed == point:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)

    def do_new(self, c):
        options = c.get("options") or {}

        def seconds(name, otherwise):
            return options.get(name, otherwise * 1000) / 1000

        self.mutant, self.state = c.get("mutant") or "", c["state"]
        if self.mutant and self.mutant not in mutants.MUTANTS:
            raise ValueError("there is no mutant " + self.mutant)
        self.gives_back = bool(options.get("give_back"))  # the function gives back what was paid twice
        folder = os.path.join(self.state, "forgotten-%d" % os.getpid()) if self.mutant == "key_not_stored" else self.state
        self.shop = self.open_shop(folder)

        def key():
            time.sleep(seconds("key_wait", 0))
            with open(c["key_file"]) as f:
                return f.read().strip()

        self.client = till.Till(
            c["base_url"],
            key,
            deadline=seconds("deadline", 20),
            try_timeout=seconds("try_timeout", 3),
            tries=options.get("tries", 5),
            expect=c.get("expect"),
            transport=mutants.Transport(self.crash, self.mutant),
        )
        self.teller = till.Teller(
            self.client,
            mutants.Store(self.shop.store, self.crash, self.mutant),
            self.on_change,
            payment_until=seconds("send_until", 600),
            payout_until=seconds("send_until", 24 * 3600),
            look_after=seconds("look_after", 60),
            open_after=seconds("open_after", 120),
            clock=lambda: time.time() + seconds("clock", 0),
            foreign=bool(options.get("foreign")) or self.mutant == "foreign_handed_over" or mutants.asks_alone(self.mutant),
            from_start=not options.get("from_end") or self.mutant == "history_shipped",
        )
        self.shop.store.install()

    def write(self, c):
        """Writes a wish beside an order, in one transaction."""
        if c.get("major"):
            amount = mutants.floated_major(c) if self.mutant == "float_amount" else till.Money.major(c["major"], c["currency"])
        else:
            amount = till.Money.minor(c["value"], c["currency"])
        charge = None
        if c.get("quantity"):
            quantity = mutants.floated(c["quantity"]) if self.mutant == "float_amount" else c["quantity"]
            charge = till.CreatePaymentCharge([till.CreatePaymentChargeItem("thing", quantity, "0", "0")])
        wish = dict(order=c["order"], method=c["method"], country=c.get("country", ""), amount=amount, phone=c["phone"])
        if c["do"] == "payout":
            self.shop.update(lambda tx: self.teller.pay_out(tx, **wish))
        else:
            self.shop.update(lambda tx: self.teller.collect(tx, metadata=c.get("metadata"), charge=charge, **wish))
        self.crash("after_write")

    do_collect = do_payout = write

    def do_refund(self, c):
        """Writes a wish to give a payment back; without a value, all that is left."""
        amount = till.Money.minor(c["value"], c["currency"]) if c.get("value") else None
        self.shop.update(lambda tx: self.teller.refund(tx, order=c["order"], amount=amount, reason=c.get("reason", "")))
        self.crash("after_write")

    def do_checkout(self, c):
        """Writes a wish to be paid on a page. With a phone, no other one may pay."""
        amount, phone = till.Money.minor(c["value"], c["currency"]), c.get("phone", "")
        wish = dict(order=c["order"], amount=amount, phone=phone, phone_fixed=bool(phone), return_url=c.get("return_url", ""))
        self.shop.update(lambda tx: self.teller.checkout(tx, **wish))
        self.crash("after_write")

    def do_open_checkouts(self, c):
        """Writes and makes pages for many orders, as customers do who go to the till."""

        def one(n):
            order = "b-%d" % (c["from"] + n)
            try:
                self.do_checkout(dict(c, order=order))
            except till.AlreadyPaid:
                return
            self.teller.send_checkout(order)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(c["n"])))

    def do_come_back(self, c):
        """Verifies the way back of a customer, with what is kept with the order."""
        p = self.teller.send_checkout(c["order"])
        return {"state": till.verify_return(p.return_secret, p.id, dict(urllib.parse.parse_qsl(c["query"])))}

    def misheard(self, c):
        """Makes the mistakes about asks: ships on each that succeeds and not on the checkout, takes one that fails for the
        end of the order, or forgets what was paid twice. Tells whether the change is not heard."""
        if self.mutant == "overpaid_forgotten":
            return c.overpaid
        if not mutants.asks_alone(self.mutant):
            return False
        ships = self.mutant == "ask_shipped"
        if c.checkout is not None:
            return c.paid and ships
        c.order = c.order or c.reference
        return c.paid and not ships or c.failed and ships

    def on_change(self, c, tx):
        """The shop's one function."""
        if self.misheard(c):
            return
        order = c.order or "foreign " + c.reference
        self.fails -= 1
        if self.fails >= 0:
            raise RuntimeError("the shop's function fails")
        what = c.kind.replace(".", " ")
        if c.paid:
            what = "give back" if c.already_paid else "paid"
        for yes, word in ((c.failed, "failed"), (c.taken_back, "taken back"), (c.paid_out, "paid out"), (c.payout_failed, "payout failed"), (c.refund_failed, "refund failed")):
            what = word if yes else what
        if c.checkout is not None:
            what = on_page(c, what)
        if c.refunded:
            what = "refunded %s left %s" % (c.refund.amount.value, c.left.value if c.left else "?")
        if c.refused or c.lapsed or c.lost:
            what = " ".join([c.kind.partition(".")[2]] + [f.pointer for f in c.errors])
        if c.lapsed and self.mutant == "lapse_forgotten":
            return
        if c.refunded and self.misbooked(c):
            return
        self.crash("in_function")
        if self.gives_back and (c.already_paid or c.overpaid):
            self.teller.refund(tx, order=c.order, payment=c.extra, reason="duplicate")
        if self.mutant == "function_outside":
            mutants.act_outside(self.state, order, what)
        else:
            self.shop.act(tx, order, what)

    def misbooked(self, c):
        """Tells whether a mistake keeps the shop from booking a refund."""
        if self.mutant == "refund_booked_on_202":
            return True
        booked = (c.order, c.refund.amount.value) in self.booked
        self.booked.add((c.order, c.refund.amount.value))
        return booked and self.mutant == "refund_booked_by_amount"

    def do_send(self, c):
        if c.get("kind") == "refund":
            p = self.teller.send_refund(c["order"])
            if self.mutant == "refund_booked_on_202" and p.refund is not None:
                self.shop.update(lambda tx: self.shop.act(tx, c["order"], "refunded " + p.refund.amount.value))
            return sent(p)
        if c.get("kind") == "checkout":
            p = self.teller.send_checkout(c["order"])
            return dict(sent(p), url=p.url, page=bool(p.url and p.return_secret))
        return sent(self.teller.send_payout(c["order"]) if c.get("kind") == "payout" else self.teller.send(c["order"]))

    def do_resend(self, c):
        return sent(self.teller.resend(c["order"]))

    def do_withdraw(self, c):
        self.teller.withdraw(c["order"])

    def do_abandon(self, c):
        self.teller.abandon(c["order"])

    def do_wait(self, c):
        if c.get("kind") == "checkout":
            return {"status": self.teller.wait_checkout(c["order"], float(c.get("seconds", 0))).state}
        wait = {"payout": self.teller.wait_payout, "refund": self.teller.wait_refund}.get(c.get("kind"), self.teller.wait)
        return {"status": wait(c["order"], float(c.get("seconds", 0))).status}

    def do_sweep(self, c):
        error = None
        try:
            r = self.teller.sweep()
        except till.SweepFailed as e:
            error, r = e, e.report
        attention = {a.order: a.state for a in r.attention}
        return told(error, {"sent": r.sent, "waiting": r.waiting, "applied": r.applied, "read": r.read, "attention": attention})

    def do_buy(self, c):
        def one(n):
            order = "b-%d" % (c["from"] + n)
            try:
                self.write(dict(c, do="collect", order=order))
            except till.AlreadyPaid:
                return  # a customer who clicks again
            self.teller.send(order)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(c["n"])))

    def do_give_back(self, c):
        """Writes and sends refunds of every second order: all of it, or a part. One that was written before is not written again."""

        def one(n):
            order = "b-%d" % n
            if n % 2 == 0:
                if self.shop.store.newest("refund", order) is None:
                    self.do_refund(dict(c, order=order, value="" if n % 4 == 0 else c["value"]))
                self.teller.send_refund(order)

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(c["from"], c["from"] + c["n"])))

    def do_run(self, c):
        threading.Thread(target=self.teller.run, daemon=True).start()

    def do_serve(self, c):
        if self.server is not None:
            self.server.shutdown()
            self.server.server_close()
        host, _, port = c["addr"].rpartition(":")
        teller, mutant, secrets = self.teller, self.mutant, c["secrets"]

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers, body = mutants.mutated(mutant, secrets, dict(self.headers), body)
                reply = teller.receive(secrets, headers, body)
                text = reply.body.encode()
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                if reply.status != 204:
                    self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *args):
                pass

        self.server = ThreadingHTTPServer((host, int(port)), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def do_crash_at(self, c):
        self.armed = c["point"]

    def do_fail(self, c):
        self.fails = c["n"]

    def do_acted(self, c):
        acted = self.shop.acted()
        for order, what in mutants.acted_outside(self.state):
            acted.setdefault(order, []).append(what)
        return {"acted": acted}

    def do_list(self, c):
        ids, twice = {}, 0
        if self.mutant == "offset_paging":
            each = mutants.by_offset(self.client, c)
        else:
            each = self.client.payments.all(status=c.get("status", ""), order="asc" if c.get("kind") == "asc" else "")
        for p in each:
            twice += p.id in ids
            ids[p.id] = True
            if c.get("n") and len(ids) % c["n"] == 0:
                time.sleep(0.02)  # somebody reads slowly
        return {"count": len(ids), "twice": twice, "ids": list(ids)}

    def do_cancel(self, c):
        if c.get("kind") == "checkout":
            return {"status": self.client.checkouts.cancel(self.teller.send_checkout(c["order"]).id).state}
        try:
            payout = self.teller.wait_payout(c["order"], 0)
        except till.StillOpen:
            payout = self.client.payouts.page(reference=c["order"]).items[0]
        return {"status": self.client.payouts.cancel(payout.id).status}

    def do_get(self, c):
        p = self.client.payments.get(c["id"])
        return {"status": p.status, "raw": p.raw}

    def do_create_key(self, c):
        self.client.api_keys.create(till.CreateApiKey(name="suite"))


def on_page(c, what):
    """What the shop notes of a checkout."""
    if c.paid:
        return "paid late" if c.late and what == "paid" else what
    return "paid twice" if c.overpaid else "other amount" if c.other_amount else c.kind.partition(".")[2]


def sent(p):
    out = {"state": p.state, "replayed": p.replayed}
    if p.error is not None:
        out["why"] = told(p.error, {})["error"]
    return out


WORDS = (
    (till.AttemptOpen, "attempt_open"), (till.AlreadyPaid, "already_paid"), (till.NotPaid, "not_paid"), (till.InvalidWish, "invalid"), (till.MoneyError, "invalid"),
    (till.StillOpen, "still_open"), (till.MayArrive, "may_have_arrived"), (till.WrongMode, "wrong_mode"), (till.Refused, "refused"),
    (till.Unavailable, "unavailable"), (till.Unclear, "unclear"),
)  # fmt: skip


def told(error, result):
    """Puts an error into one word, with its code."""
    if error is None:
        return result
    causes = list(mutants.causes(error))
    for cls, word in WORDS:
        if any(isinstance(e, cls) for e in causes):
            result["error"] = word
            break
    else:
        result["error"] = "other"
    for e in causes:
        if isinstance(e, till.CallError):
            result.update(code=e.code, status=e.status, retry_after=int(e.retry_after), tries=e.tries, detail=e.detail, pointers=[f.pointer for f in e.errors])
            break
        if isinstance(e, till.InvalidWish):
            result["member"] = e.member
        if isinstance(e, till.ReturnError):
            result["error"] = e.word
    result["text"] = repr(error)
    return result


def main():
    driver = Driver({"files": FileShop, "sqlite": SqliteShop}[sys.argv[1]])
    for line in sys.stdin.buffer:
        c = parse(line)
        work = getattr(driver, "do_" + c["do"], None)
        try:
            result = {"error": "no such command"} if work is None else work(c) or {}
        except Exception as e:
            result = told(e, {})
        sys.stdout.buffer.write(render(result) + b"\n")
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
