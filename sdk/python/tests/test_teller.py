"""The teller: wishes, webhooks, news, sweeps."""

import shutil
import tempfile
import threading
import time
import unittest

import till
from till.store import LAPSED, LOST, TAKEN, Settlement

from .service import SECRET, Script, Service, event, problem, says, signed


class World(unittest.TestCase):
    """A shop with its service."""

    def world(self, **options):
        self.service = Service(self)
        self.client = till.Till(self.service.url, "till_test_a_b", expect="test")
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        self.store = till.FileStore(folder)
        self.addCleanup(self.store.close)
        self.changes, self.fail_with = [], None

        def on_change(change, tx):
            self.changes.append(change)
            if self.fail_with:
                raise self.fail_with

        self.teller = till.Teller(self.client, self.store, on_change, **options)

    def collect(self, order="o-1", **changes):
        wish = dict(order=order, method="mtn_momo", country="CG", amount=till.Money.minor("5000", "XAF"), phone="242061234567", metadata={"cart": 88})
        with self.store.transaction() as tx:
            self.teller.collect(tx, **dict(wish, **changes))

    def deliver(self, id, kind, payment, change=None, **options):
        body = event(id, kind, payment)
        headers = signed(id, body)
        if change:
            change(headers)
        return self.teller.receive(SECRET, headers, options.pop("body", body), **options)

    def test_collect_send_wait(self):
        self.world()
        self.collect()
        self.assertEqual(self.service.posts, 0)
        p = self.teller.send("o-1")
        self.assertTrue(p.state == "taken" and p.id and p.payment.id == p.id)
        self.assertEqual((self.teller.send("o-1").state, self.service.posts), ("taken", 1))
        self.service.set(status="success")
        self.assertEqual(self.teller.wait("o-1", 1).status, "success")
        (c,) = self.changes
        self.assertEqual((c.paid, c.order, c.attempt, c.already_paid), (True, "o-1", 1, False))
        self.assertRaises(till.AlreadyPaid, self.collect)
        self.assertEqual((self.service.payment()["reference"], self.service.payment()["metadata"]), ("o-1", {"cart": 88}))

    def test_an_order_may_be_a_number(self):
        self.world()
        self.collect(order=1042)
        self.assertEqual(self.teller.send(1042).state, "taken")
        self.service.set(status="success")
        self.assertEqual(self.teller.wait("1042", 1).status, "success")
        self.assertEqual((self.changes[0].order, self.service.payment()["reference"]), ("1042", "1042"))
        with self.store.transaction() as tx:
            self.teller.refund(tx, order=1042)
        self.assertEqual(self.store.newest("refund", "1042").order, "1042")

    def test_double_click(self):
        self.world()
        self.collect()
        self.collect()
        with self.assertRaises(till.AttemptOpen) as caught:
            self.collect(phone="242061111111")
        self.assertGreater(caught.exception.expires_at, time.time() * 1000)
        self.teller.send("o-1")
        self.collect()
        self.assertEqual(self.service.posts, 1)

    def test_invalid_wishes(self):
        """A wish that the service would refuse is not written."""
        self.world()
        for member, change in (
            ("order", {"order": ""}),
            ("order", {"order": "é" * 65}),
            ("order", {"order": 7.5}),
            ("order", {"order": True}),
            ("method", {"method": ""}),
            ("amount", {"amount": till.Money.minor("50.00", "KES")}),
            ("amount", {"amount": till.Money.minor("0", "KES")}),
            ("phone", {"phone": "+242061234567"}),
            ("phone", {"phone": "٢٤٢"}),
            ("metadata", {"metadata": {"f": object()}}),
            ("metadata", {"metadata": {"f": float("nan")}}),
            ("metadata", {"metadata": {"f": "\ud800"}}),
            ("charge", {"charge": till.CreatePaymentCharge([till.CreatePaymentChargeItem("a", 1.5, "1", "1")])}),
        ):
            with self.assertRaises(till.InvalidWish) as caught:
                self.collect(**change)
            self.assertEqual(caught.exception.member, member)
        self.assertRaises(TypeError, self.collect, amount=5000.0)
        self.assertRaises(till.NoAttempt, self.teller.send, "o-1")

    def test_invalid_checkouts(self):
        """A wish to be paid on a page that the service would refuse is not written, either."""
        self.world()
        for member, change in (
            ("order", {"order": "é" * 65}),
            ("amount", {"amount": till.Money.minor("0", "XAF")}),
            ("phone", {"phone_fixed": True}),
            ("phone", {"phone": "+242061234567"}),
            ("description or reference", {"description": "x" * 256}),
            ("metadata", {"metadata": {"f": object()}}),
        ):
            wish = dict({"order": "o-1", "amount": till.Money.minor("5000", "XAF")}, **change)
            with self.assertRaises(till.InvalidWish) as caught, self.store.transaction() as tx:
                self.teller.checkout(tx, **wish)
            self.assertEqual(caught.exception.member, member)
        self.assertRaises(till.NoAttempt, self.teller.send_checkout, "o-1")

    def test_foreign(self):
        """A payment that this store did not make is no news, unless it is asked for."""
        for foreign in (False, True):
            self.world(foreign=foreign)
            self.assertEqual(self.deliver("e-1", "payment.success", {"id": "p-1", "status": "success", "idempotency_key": "k"}).status, 204)
            self.assertEqual(len(self.changes), int(foreign))

    def test_webhook_answers(self):
        """A request that is not what it should be gets one word."""
        self.world(foreign=True)
        p = {"id": "p-1", "status": "success", "idempotency_key": "k", "reference": "other shop"}
        for name, change, options, want in (
            ("good", None, {}, (204, "")),
            ("again", None, {}, (204, "")),
            ("no post", None, {"method": "GET"}, (405, "post")),
            ("no header", lambda h: h.pop("webhook-id"), {}, (400, "missing_header")),
            ("forged", lambda h: h.update({"webhook-id": "x"}), {}, (400, "bad_signature")),
            ("body was read", lambda h: h.update({"Content-Length": "9"}), {"body": b""}, (500, "body_was_read: put the Till webhook before what parses bodies")),
        ):
            reply = self.deliver("e-1", "payment.success", p, change, **options)
            self.assertEqual((reply.status, reply.body), want, name)
        (c,) = self.changes
        self.assertEqual((c.order, c.reference), ("", "other shop"))
        self.fail_with = RuntimeError("no")
        reply = self.deliver("e-2", "payment.success", dict(p, id="p-2"))
        self.assertEqual((reply.status, reply.error), (500, self.fail_with))
        self.assertRaises(TypeError, self.teller.receive, SECRET, {}, {"parsed": True})
        for wrong in ("", None, "till_test_key"):
            body = event("e-1", "payment.success", p)
            self.assertEqual(self.teller.receive(wrong, signed("e-1", body), body).status, 500)

    def test_clock_hint(self):
        """A delivery that is refused for its age names the clocks, if an answer of the service told their difference."""
        self.world(clock=lambda: time.time() + 600)
        p = {"id": "p-1", "status": "success", "idempotency_key": "k"}
        self.assertEqual(self.deliver("e-1", "payment.success", p).body, "too_old")
        self.service.skew = -600
        self.collect()
        self.teller.send("o-1")
        self.assertRegex(self.deliver("e-1", "payment.success", p).body, r"^too_old: this machine's clock is (599|600|601) s ahead of the service's$")

    def test_other_and_progress(self):
        """Other kinds go to on_other once each, progress to on_progress once each."""
        others, progress = [], []
        self.world(on_other=lambda e, tx: others.append(e.type), on_progress=lambda c, tx: progress.append(c.kind), foreign=True)
        p = {"id": "p-1", "status": "processing", "idempotency_key": "k"}
        for id, kind in (
            ("e-1", "payment.pending"), ("e-1", "payment.pending"), ("e-2", "payment.processing"), ("e-9", "payment.pending"), ("e-3", "payment.updated"),
            ("e-3", "payment.updated"), ("e-4", "payment.updated"), ("e-5", "moon.rises"), ("e-6", "payment.blessed"), ("e-6", "payment.blessed"),
        ):  # fmt: skip
            self.assertEqual(self.deliver(id, kind, p).status, 204)
        self.assertEqual(progress, ["payment.pending", "payment.processing"])
        self.assertEqual(others, ["payment.updated", "payment.updated", "moon.rises", "payment.blessed"])
        self.assertEqual(self.changes, [])

    def test_another_life(self):
        """A payment that a restored service made again under another id is told again only if it brings money where there was none."""
        for first, then, want in (
            ("success", "success", ["payment.success"]),
            ("success", "failed", ["payment.success"]),
            ("failed", "failed", ["payment.failed"]),
            ("failed", "success", ["payment.failed", "payment.success"]),
            ("expired", "late_success", ["payment.expired", "payment.late_success"]),
            ("reversed", "success", ["payment.reversed"]),
        ):
            self.world()
            self.collect()
            self.teller.send("o-1")
            p = self.service.payment()
            self.deliver("e-1", "payment." + first, p)
            again = {"id": "p-again", "status": "x", "idempotency_key": p["idempotency_key"]}
            for _ in range(2):
                self.deliver("e-2", "payment.pending", again)
                self.deliver("e-3", "payment." + then, again)
            self.assertEqual([c.kind for c in self.changes], want)

    def test_lost(self):
        """A payment that the service does not know any more is lost, not posted again."""
        self.world(open_after=-1)
        self.collect()
        self.teller.send("o-1")
        self.service.payments.clear()
        with self.assertRaises(till.SweepFailed) as caught:  # there is no log here
            self.teller.sweep()
        report = caught.exception.report
        self.assertEqual(([a.state for a in report.attention], self.service.posts), ([LOST], 1))
        self.assertRaises(till.AttemptOpen, self.collect, phone="242061111111")
        self.assertEqual((self.teller.resend("o-1").state, self.service.posts), ("taken", 2))
        self.assertRaises(till.NotLost, self.teller.resend, "o-1")

    def test_news_during_a_lapse(self):
        """A wish whose time is over is not said to have lapsed if news came meanwhile."""
        now = [time.time()]
        self.world(clock=lambda: now[0], payment_until=1, look_after=0)
        s = Script(self, says(200, '{"items":[],"total":0,"limit":50,"offset":0}'))
        self.teller.client = s.client()[0]
        self.collect()
        self.store.count(self.store.newest("payment", "o-1"), int(now[0] * 1000) + 1, 0)
        apply = self.store.apply

        def hasty(subject, kind, key, fn):
            self.store.settle(Settlement(key, state=TAKEN, remote_id="p-1"))
            apply(subject, kind, key, fn)

        self.store.apply = hasty
        now[0] += 60
        self.assertEqual(self.teller.send("o-1").state, "unclear")
        self.assertEqual(self.changes, [])
        self.store.apply = apply

    def test_a_payout_that_may_have_been_sent(self):
        """It is not over because the service does not know it: the service may have been restored from a backup since."""
        now = [time.time()]
        self.world(clock=lambda: now[0], payout_until=3600, look_after=0)
        refused, nothing = problem(422, "insufficient_balance"), says(200, '{"items":[],"total":0,"limit":50,"offset":0}')
        self.teller.client = Script(self, refused, nothing, nothing, refused).client()[0]

        def pay_out(order, value):
            with self.store.transaction() as tx:
                self.teller.pay_out(tx, order=order, method="mtn_momo", country="CG", amount=till.Money.minor(value, "XAF"), phone="242061234567")

        pay_out("o-1", "2000")
        self.store.count(self.store.newest("payout", "o-1"), int(now[0] * 1000) + 1, 0)
        self.assertEqual(self.teller.send_payout("o-1").state, "unclear")  # refused, but not the try before
        now[0] += 7200
        self.assertEqual([self.teller.send_payout("o-1").state for _ in range(2)], [LOST, LOST])
        self.assertEqual([(r.state, r.problem) for r in self.store.attention(0, 9)], [(LOST, "stale")])
        self.assertRaises(till.AttemptOpen, pay_out, "o-1", "2500")
        pay_out("o-2", "2000")
        self.assertRaises(till.Refused, self.teller.send_payout, "o-2")  # at the first try nothing exists

    def test_run_stops(self):
        reports = []
        self.world(on_report=lambda report, error: reports.append(report))
        stop = threading.Event()
        thread = threading.Thread(target=self.teller.run, args=(stop,))
        self.collect()
        thread.start()
        end = time.monotonic() + 20
        while not any(r.sent for r in reports) and time.monotonic() < end:
            time.sleep(0.05)
        stop.set()
        thread.join(40)
        self.assertFalse(thread.is_alive())
        self.assertEqual(sum(r.sent for r in reports), 1)


if __name__ == "__main__":
    unittest.main()
