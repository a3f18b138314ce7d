"""Calls: repeats, deadlines, budget, keys, lists."""

import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
from urllib.parse import parse_qs, urlsplit

import till
from till import operations_gen
from till.call import MAX_TOKENS, REPEAT_COST, Request
from till.types_gen import ErrorCode
from till.transport import Deadline, NotSent, Transport

from .service import KEY, PHONE, UUID, Script, hang_up, payment, problem, says, serve


def wish():
    return till.CreatePayment("mtn_momo", till.Money.minor("5000", "XAF"), UUID, till.CreatePaymentCustomer(PHONE), country="CG")


class TestCalls(unittest.TestCase):
    def test_create_is_repeated(self):
        """With the same bytes, and its key."""
        s = Script(self, hang_up, says(502, "<html>"), problem(500, "internal_error"), says(202, payment("pending")))
        tries = []
        c, waited = s.client(on_try=tries.append)
        self.assertEqual(c.payments.create(wish()).id, "p-1")
        self.assertEqual((len(s.bodies), len(set(s.bodies)), UUID.encode() in s.bodies[0]), (4, 1, True))
        self.assertEqual(waited, [0.125, 0.25, 0.5])
        self.assertEqual([t.status for t in tries], [0, 502, 500, 202])
        self.assertTrue(tries[0].reason and tries[3].delay)

    def test_outcomes(self):
        """Errors are told apart, and hold nothing secret."""
        for name, answers, cls, code, asked in (
            ("refused", [problem(422, "validation_failed")], till.Refused, "validation_failed", 1),
            ("unavailable", [problem(429, "rate_limited", Retry_After="3600")], till.Unavailable, "rate_limited", 1),
            ("unclear", [problem(500, "internal_error")], till.Unclear, "internal_error", 5),
            ("no answer", [hang_up], till.Unclear, "", 5),
            ("401 after no answer", [hang_up, problem(401, "invalid_api_key")], till.Unclear, "invalid_api_key", 2),
            ("conflict", [problem(409, "conflict")], till.Refused, "conflict", 1),
            ("redirect", [says(302, "", Location="http://127.0.0.1:1/")], till.Refused, "", 1),
            ("another thing", [says(200, '{"ok":true}')], till.Unclear, "", 1),
            ("a list", [says(200, "[]")], till.Unclear, "", 1),
            ("a number for a text", [says(200, '{"id":5}')], till.Unclear, "", 1),
            ("an echo", [says(400, '{"code":"bad","detail":"X-Api-Key: %s"}' % KEY)], till.Refused, "", 1),
        ):
            with self.subTest(name):
                s = Script(self, *answers)
                c, _ = s.client()
                with self.assertRaises(till.CallError) as caught:
                    c.payments.create(wish())
                e = caught.exception
                self.assertEqual((type(e), e.code, e.idempotency_key, len(s.asked)), (cls, code, UUID, asked))
                for secret in (KEY, "secretsecret", PHONE, "mtn_momo"):
                    self.assertNotIn(secret, "%s %r %r" % (e, e, vars(e)))

    def test_refused_if_absent(self):
        """A refusal after a lost answer is one only if a read by the key finds nothing."""
        for name, read, want in (
            ("absent", says(200, '{"items":[],"total":0,"limit":50,"offset":0}'), till.Refused),
            ("there", says(200, '{"items":[%s],"total":1,"limit":50,"offset":0}' % payment("processing")), None),
            ("unknown", problem(403, "insufficient_scope"), till.Unclear),
            ("portal", says(200, '{"ok":true}'), till.Unclear),
        ):
            with self.subTest(name):
                s = Script(self, hang_up, problem(422, "validation_failed"), read)
                c, _ = s.client()
                if want is None:
                    self.assertEqual(c.payments.create(wish()).status, "processing")
                else:
                    self.assertRaises(want, c.payments.create, wish())
                self.assertIn("idempotency_key=" + UUID, s.asked[2])

    def test_checkouts(self):
        """One is made again with the same bytes, and never looked up: no list finds it by its key."""

        def checkout(state, key=UUID):
            made = {"id": "c-1", "url": "https://pay.example.com/p/X", "state": state, "idempotency_key": key}
            return json.dumps(dict(made, created_at="2026-11-15T05:51:53.123456Z", return_secret="r-1"))

        order = till.CreateCheckout(till.Money.minor("5000", "XAF"), UUID.upper(), reference="order-7")
        s = Script(self, hang_up, problem(500, "internal_error"), says(201, checkout("open")))
        made = s.client()[0].checkouts.create(order)
        self.assertEqual((made.id, made.url, made.return_secret), ("c-1", "https://pay.example.com/p/X", "r-1"))
        self.assertEqual((len(s.bodies), len(set(s.bodies))), (3, 1))
        self.assertNotIn("r-1", repr(made))
        for answers in ([hang_up, problem(422, "validation_failed")], [says(200, '{"ok":true}')], [says(201, checkout("open", "another"))]):
            s = Script(self, *answers)
            c, _ = s.client()
            with self.assertRaises(till.Unclear) as caught:
                c.checkouts.create(order)
            self.assertEqual((caught.exception.idempotency_key, len(s.asked)), (UUID.upper(), len(answers)))
        self.assertRaises(till.NoIdempotencyKey, c.checkouts.create, amount=till.Money.minor("5000", "XAF"), idempotency_key="")

        page = says(200, '{"items":[%s],"total":1,"limit":50,"offset":0}' % checkout("paid"))
        s = Script(self, says(200, checkout("paid")), says(200, checkout("paid")), says(200, checkout("cancelled")), page)
        c, _ = s.client()
        self.assertEqual([c.checkouts.get("c-1").state, c.checkouts.get("c-1", 30).state, c.checkouts.cancel("c-1").state], ["paid", "paid", "cancelled"])
        narrowed = {"state": "paid", "reference": "order-7", "from_date": "2026-11-01T00:00:00Z", "to_date": "2026-12-01T00:00:00Z", "order": "asc"}
        self.assertEqual(c.checkouts.page(limit=9, **narrowed).total, 1)
        self.assertEqual([one.id for one in c.checkouts.all(**narrowed)], ["c-1"])
        asked = [urlsplit(a.split()[1]) for a in s.asked]
        self.assertEqual([u.path for u in asked], ["/v1/checkouts/c-1", "/v1/checkouts/c-1", "/v1/checkouts/c-1/cancel", "/v1/checkouts", "/v1/checkouts"])
        want = {name: [value] for name, value in narrowed.items()}
        self.assertEqual([parse_qs(u.query) for u in asked][1:], [{"wait": ["30"]}, {}, dict(want, limit=["9"]), dict(want, limit=["200"], offset=["0"])])

    def test_never_repeated(self):
        """Unless not one byte was written."""
        for answer in (hang_up, says(502, "<html>"), problem(503, "service_unavailable", Retry_After="1")):
            s = Script(self, answer)
            c, _ = s.client()
            self.assertRaises(till.Unclear, c.api_keys.create, till.CreateApiKey())
            self.assertEqual(len(s.asked), 1)
        tries = []
        c = till.Till("http://127.0.0.1:%d" % free_port(), KEY, on_try=tries.append)
        c.sleep = lambda seconds: None
        with self.assertRaises(till.Unavailable) as caught:
            c.api_keys.create(till.CreateApiKey())
        self.assertEqual((caught.exception.reason, len(tries)), ("unreachable", 5))

    def test_never_repeated_has_a_connection_of_its_own(self):
        """One that was kept may have died unseen, and then nobody would know."""
        s = Script(self, says(200, '{"items":[]}'))
        c, _ = s.client()
        places = []
        send = c.transport.send
        c.transport.send = lambda *args: places.append(args[-1]) or send(*args)
        c.api_keys.list()
        c.api_keys.create(till.CreateApiKey())
        self.assertEqual(places, [False, True])

    def test_unsent(self):
        """A failure proves that nothing was sent only if no connection was made."""
        for error, cls in ((OSError("it did not work"), till.Unclear), (EOFError(), till.Unclear), (NotSent("unreachable"), till.Unavailable)):

            class Broken:
                def send(self, *args):
                    raise error

            c = till.Till("https://pay.example.com", KEY, tries=1, transport=Broken())
            self.assertRaises(cls, c.payments.create, wish())

    def test_delete_twice(self):
        """A delete that is gone when it is repeated was done."""
        s = Script(self, hang_up, problem(404, "webhook_endpoint_not_found"))
        s.client()[0].webhooks.delete("e-1")
        s = Script(self, problem(404, "webhook_endpoint_not_found"))
        self.assertRaises(till.Refused, s.client()[0].webhooks.delete, "e-1")

    def test_retry_after(self):
        """It is the floor, and beyond the deadline the call gives up at once."""
        s = Script(self, problem(503, "service_unavailable", Retry_After="4"), says(200, payment("success")))
        c, waited = s.client()
        c.payments.get("p-1")
        self.assertEqual(waited, [4.0])
        s = Script(self, problem(503, "service_unavailable", Retry_After="31"))
        c, waited = s.client()
        with self.assertRaises(till.Unavailable) as caught:
            c.payments.get("p-1")
        self.assertEqual((caught.exception.retry_after, waited, len(s.asked)), (31.0, [], 1))

    def test_budget(self):
        """With no tokens left the first failure is the answer; successes give them back."""
        s = Script(self, says(500, ""))
        c, _ = s.client()
        for _ in range(40):
            self.assertRaises(till.Unavailable, c.payments.get, "p-1")
        self.assertEqual(len(s.asked), 40 + MAX_TOKENS // REPEAT_COST)
        s.answers = (says(200, payment("success")),)
        for _ in range(12):
            c.payments.get("p-1")
        self.assertEqual(c.budget.tokens, 12)

    def test_deadline(self):
        """A call that is slow ends with its deadline, however its bytes trickle."""
        stop = threading.Event()
        self.addCleanup(stop.set)

        def slow(handler, body):
            stop.wait(5)

        def trickle(handler, body):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            while not stop.wait(0.02):
                try:
                    handler.wfile.write(b" ")
                except OSError:
                    return

        def trickle_headers(handler, body):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-A: ")
            while not stop.wait(0.02):
                try:
                    handler.wfile.write(b"a")
                except OSError:
                    return

        for answer in (slow, trickle, trickle_headers):
            s = Script(self, answer)
            c = till.Till(s.url, KEY, deadline=0.5, try_timeout=0.2)
            began = time.monotonic()
            with self.assertRaises(till.Unclear) as caught:
                c.payments.create(wish())
            self.assertEqual(caught.exception.reason, "timeout")
            self.assertLess(time.monotonic() - began, 3)

    def test_cut(self):
        """A body that is shorter than it says, and one in pieces that ends early, are no answers."""

        def short(handler, body):
            handler.wfile.write(b"HTTP/1.1 202 Accepted\r\nContent-Length: 1000\r\n\r\n" + payment("pending").encode())
            handler.close_connection = True

        def chunked(handler, body):
            handler.wfile.write(b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n")
            handler.close_connection = True

        for answer in (short, chunked):
            s = Script(self, answer)
            with self.assertRaises(till.Unclear) as caught:
                s.client()[0].payments.create(wish())
            self.assertEqual(caught.exception.reason, "cut")

    def test_key_source(self):
        """The key is asked for each call, and once more after a 401."""
        s = Script(self, problem(401, "invalid_api_key"), says(200, payment("success")))
        n = [0]

        def key():
            n[0] += 1
            return "till_test_k%d" % n[0]

        till.Till(s.url, key).payments.get("p-1")
        self.assertEqual([a.split("_")[-1] for a in s.asked], ["k1", "k2"])
        s = Script(self, problem(401, "invalid_api_key"))
        self.assertRaises(till.Refused, s.client()[0].payments.get, "p-1")
        self.assertEqual(len(s.asked), 1)
        s = Script(self, hang_up, problem(401, "invalid_api_key"))
        keys = [KEY]  # there is none for the second question
        c, _ = s.client(api_key=keys.pop)
        with self.assertRaises(till.Unclear) as lost:  # the error of the key does not hide that it may have arrived
            c.payments.create(wish())
        self.assertEqual(lost.exception.code, "invalid_api_key")
        s = Script(self, problem(401, "invalid_api_key"))
        self.assertRaises(till.Refused, s.client()[0].payments.get, "p-1")
        for text, cls in (("", till.NoKey), ("till_live_x", till.WrongMode), ("till_test_x\n", till.BadKey), ("till_test_ x", till.BadKey)):
            with self.assertRaises(cls) as caught:
                till.Till(s.url, lambda: text, expect="test").payments.get("p-1")
            self.assertTrue(not text or text not in str(caught.exception))
        self.assertEqual(len(s.asked), 1)

    def test_base_url(self):
        for base, good in {
            "https://pay.example.com/v1": True, "http://127.0.0.1:8080/v1": True, "http://localhost:1/v1/": True, "http://[::1]:1/v1": True,
            "http://pay.example.com/v1": False, "http://10.0.0.1/v1": False, "ftp://127.0.0.1": False, "": False, "pay.example.com": False,
            "https://user:pass@pay.example.com": False, "https://pay.example.com/v1?key=1": False, "https://pay.example.com:x/": False,
            "https://pay.example.com/v1\r\nX: y": False, "http://127.0.0.1.example.com/v1": False,
        }.items():  # fmt: skip
            if good:
                till.Till(base, KEY)
            else:
                self.assertRaises(till.BadBaseURL, till.Till, base, KEY)
        till.Till("http://pay.example.com/v1", KEY, plain_http=True)
        self.assertRaises(till.NoKey, till.Till, "https://pay.example.com", None)
        for wrong in ({"tries": 0}, {"deadline": 0}, {"expect": "prod"}):
            self.assertRaises(till.Mistake, till.Till, "https://pay.example.com", KEY, **wrong)
        w = wish()
        w.idempotency_key = ""
        self.assertRaises(till.NoIdempotencyKey, till.Till("https://pay.example.com", KEY).payments.create, w)

    def test_user_agent(self):
        """Every request says who it is, and nothing else about the machine."""
        s = Script(self, says(200, payment("success")))
        s.client()[0].payments.get("p-1")
        self.assertEqual(s.headers[0]["User-Agent"], "till-sdk-python/%s (api 1.1)" % till.VERSION)
        self.assertEqual(sorted(name.lower() for name in s.headers[0].keys()), ["accept", "host", "user-agent", "x-api-key"])

    def test_connections_are_kept(self):
        places = set()

        def answer(handler, body):
            places.add(handler.client_address)
            says(200, payment("success"))(handler, body)

        s = Script(self, answer)
        c, _ = s.client()
        for _ in range(5):
            c.payments.get("p-1")
        self.assertEqual(len(places), 1)
        c.close()
        c.payments.get("p-1")
        self.assertEqual(len(places), 2)

    def test_a_kept_connection_that_died_is_not_used(self):
        def once(handler, body):
            says(200, payment("success"))(handler, body)
            handler.close_connection = True  # without saying so

        s = Script(self, once)
        tries = []
        c, _ = s.client(on_try=tries.append)
        for _ in range(3):
            c.payments.get("p-1")
            time.sleep(0.05)
        self.assertEqual([t.status for t in tries], [200, 200, 200])

    def test_operations(self):
        """Every operation of the table has its place, and no path is without its values."""
        c = till.Till("https://pay.example.com/v1", KEY)
        for op in operations_gen.OPERATIONS:
            url = c.url(Request(op, ["a/b?c"] * op.path.count("{")))
            self.assertFalse("{" in url or "?" in url, url)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class TestNetwork(unittest.TestCase):
    def test_certificate(self):
        """A certificate that is wrong is not tried again; one that is right is used, also through a proxy."""
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        key, cert = os.path.join(folder, "key.pem"), os.path.join(folder, "cert.pem")
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", key, "-out", cert, "-days", "2",
             "-subj", "/CN=pay.test", "-addext", "subjectAltName=DNS:pay.test,IP:127.0.0.1"],
            check=True, capture_output=True,
        )  # fmt: skip
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, key)
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def answer():
            while True:
                try:
                    conn, _ = listener.accept()
                    with context.wrap_socket(conn, server_side=True) as tls:
                        tls.recv(65536)
                        text = payment("success").encode()
                        tls.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(text) + text)
                except ssl.SSLError:
                    continue
                except OSError:
                    return

        threading.Thread(target=answer, daemon=True).start()
        port = listener.getsockname()[1]
        tries = []
        c = till.Till("https://127.0.0.1:%d" % port, KEY, on_try=tries.append)
        with self.assertRaises(till.Unavailable) as caught:
            c.payments.get("p-1")
        self.assertEqual((caught.exception.reason, len(tries)), ("certificate", 1))
        trust = ssl.create_default_context(cafile=cert)
        self.assertEqual(till.Till("https://127.0.0.1:%d" % port, KEY, ssl_context=trust).payments.get("p-1").id, "p-1")

        asked = []

        def connect(handler, body):
            asked.append((handler.command, handler.path, handler.headers.get("Proxy-Authorization"), handler.headers.get("X-Api-Key")))
            with socket.create_connection(("127.0.0.1", port)) as upstream:
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                copy = threading.Thread(target=pump, args=(handler.connection, upstream), daemon=True)
                copy.start()
                pump(upstream, handler.connection)
                copy.join()
            handler.close_connection = True

        proxy = serve(self, connect)[len("http://") : -len("/v1")]
        self.environment(https_proxy="http://me:pass@" + proxy)
        self.assertEqual(till.Till("https://pay.test", KEY, ssl_context=trust).payments.get("p-1").id, "p-1")
        self.assertEqual(asked, [("CONNECT", "pay.test:443", "Basic bWU6cGFzcw==", None)])

    def environment(self, **values):
        for name in ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "REQUEST_METHOD"):
            old = os.environ.pop(name, None)
            if old is not None:
                self.addCleanup(os.environ.__setitem__, name, old)
        for name, value in values.items():
            os.environ[name] = value
            self.addCleanup(os.environ.pop, name, None)

    def test_plain_proxy(self):
        s = Script(self, says(200, payment("success")))
        self.environment(http_proxy=s.url[: -len("/v1")], no_proxy="direct.test")
        till.Till("http://pay.test/v1", KEY, plain_http=True).payments.get("p-1")
        self.assertEqual(s.asked[0].split()[1], "http://pay.test/v1/payments/p-1")
        with self.assertRaises(NotSent):
            Transport(0.5).send("GET", "http://direct.test/", {}, None, Deadline(time.monotonic() + 1), False)


def pump(source, target):
    try:
        while True:
            part = source.recv(65536)
            if not part:
                break
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass


class List:
    """A list of payments that grows and changes while it is read."""

    def __init__(self, test, n, at, grow=None):
        self.items, self.reads, self.grow = [], 0, grow
        self.add(n, at)
        self.url = serve(test, self.answer)

    def add(self, n, at):
        for i in range(n):
            self.items.append({"id": "p-%d" % len(self.items), "status": "pending", "created_at": "2026-11-15T00:00:00.%06dZ" % at(i)})

    def answer(self, handler, body):
        q = {name: values[0] for name, values in parse_qs(urlsplit(handler.path).query).items()}
        found = [
            p for p in self.items
            if q.get("from_date", "") <= p["created_at"] <= q.get("to_date", "9") and q.get("status", p["status"]) == p["status"]
        ]  # fmt: skip
        if q.get("order") != "asc":
            found.reverse()
        offset, limit = int(q["offset"]), int(q["limit"])
        page = {"items": found[offset : offset + limit], "total": len(found), "limit": limit, "offset": offset}
        says(200, json.dumps(page))(handler, body)
        self.reads += 1
        if self.grow:
            self.grow(self)


class TestLists(unittest.TestCase):
    def test_all(self):
        """By time: what arrives or changes meanwhile neither repeats nor hides others."""

        def changes(items):
            for p in items.items[: max(0, 1000 - items.reads * 200) : 7]:
                p["status"] = "success"

        for name, n, at, order, grow, status in (
            ("nothing", 0, int, "", None, ""),
            ("one page", 199, int, "", None, ""),
            ("exactly a page", 200, int, "", None, ""),
            ("newest first", 1001, int, "", None, ""),
            ("oldest first", 1001, int, "asc", None, ""),
            ("all at one moment", 700, lambda i: 0, "", None, ""),
            ("three at each moment", 1000, lambda i: i // 3, "asc", None, ""),
            ("while it grows", 1000, int, "", lambda x: x.add(50, lambda i: 10_000 * x.reads + i), ""),
            ("while its status changes", 1000, int, "", changes, "pending"),
        ):
            with self.subTest(name):
                items = List(self, n, at, grow)
                seen = {}
                for p in till.Till(items.url, KEY).payments.all(order=order, status=status):
                    seen[p.id] = seen.get(p.id, 0) + 1
                for i in range(n):
                    count, changed = seen.get("p-%d" % i, 0), status and items.items[i]["status"] != status
                    self.assertTrue(count == 1 or count == 0 and changed, "p-%d came %d times" % (i, count))

    def test_no_progress(self):
        page = {"items": [{"id": "p-1", "created_at": "2026-11-15T00:00:00.000000Z"}] * 200}
        s = Script(self, says(200, json.dumps(page)))
        self.assertRaises(till.NoProgress, list, s.client()[0].payments.all())

    def test_filters(self):
        from datetime import datetime, timezone

        s = Script(self, says(200, '{"items":[],"total":0,"limit":50,"offset":0}'))
        c, _ = s.client()
        c.payments.page(status="success", from_date=datetime(2026, 11, 15, 5, 51, 53, 123, tzinfo=timezone.utc), limit=5, offset=0)
        self.assertIn("?status=success&from_date=2026-11-15T05%3A51%3A53.000123Z&limit=5&offset=0 ", s.asked[0])
        self.assertRaises(TypeError, c.payments.page, from_date=datetime(2026, 11, 15))

    def test_export(self):
        """An export that is cut is not taken for the whole."""
        line = '{"id":"t-1","sequence":1,"amount":{"value":"999999999999999","currency":"XAF"}}\n'

        def cut(handler, body):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + line.encode() + line[:20].encode())
            handler.close_connection = True

        over = threading.Event()
        self.addCleanup(over.set)

        def hangs(handler, body):
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + line.encode())
            over.wait(60)
            handler.close_connection = True

        for name, answer, lines, error in (
            ("whole", says(200, line + line + "\n" + line), 3, None),
            ("without an end", says(200, line + line[:-1]), 2, None),
            ("empty", says(200, ""), 0, None),
            ("cut", cut, 1, till.Unavailable),
            ("refused", problem(403, "insufficient_scope"), 0, till.Refused),
            ("hangs", hangs, 1, till.Unavailable),
        ):
            with self.subTest(name):
                s = Script(self, answer)
                got, failed = [], None
                try:
                    for t in s.client(try_timeout=0.5)[0].transactions.export():
                        got.append(t.amount.value)
                except till.CallError as e:
                    failed = type(e)
                self.assertEqual((got, failed, len(s.asked)), (["999999999999999"] * lines, error, 1))


class TestCodes(unittest.TestCase):
    def test_constants(self):
        self.assertEqual(ErrorCode.VALIDATION_FAILED, "validation_failed")
        self.assertEqual((till.PaymentStatus.SUCCESS, till.Scope.PAYMENTS_READ), ("success", "payments:read"))


if __name__ == "__main__":
    unittest.main()
