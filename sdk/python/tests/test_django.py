"""The real Django: store, view, migration, command."""

import io
import os
import shutil
import tempfile
import unittest

import till

from .here import missing
from .service import SECRET, Service, event, signed
from .store_suite import StoreSuite, row

try:
    import django
except ImportError:
    django = None

FOLDER = tempfile.mkdtemp()
POSTGRES = os.environ.get("TILL_TEST_POSTGRES_URL")
made = {}  # the teller of a test, for urls and the command


def setUpModule():
    if django is None:
        raise missing("Django is not installed: make sdk installs it")
    from django.conf import settings

    databases = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(FOLDER, "db.sqlite3"), "OPTIONS": {"timeout": 10}, "ATOMIC_REQUESTS": True}}
    if POSTGRES:
        databases["pg"] = {"ENGINE": "django.db.backends.postgresql", "NAME": None, "OPTIONS": {"dsn": POSTGRES, "options": "-c search_path=django_%d" % os.getpid()}}
    settings.configure(
        DATABASES=databases,
        INSTALLED_APPS=["till.django"],
        ROOT_URLCONF="tests.test_django",
        ALLOWED_HOSTS=["*"],
        MIDDLEWARE=["tests.test_django.reader", "django.middleware.csrf.CsrfViewMiddleware"],
        TILL_TELLER="tests.test_django.made_teller",
        SECRET_KEY="x",
        USE_TZ=True,
    )
    django.setup()
    from django.core.management import call_command
    from django.db import connections
    from django.urls import path

    from till.django import till_webhook

    urlpatterns.append(path("till", till_webhook(made_teller, SECRET)))
    for name in databases:
        if name == "pg":
            with connections[name].cursor() as cursor:
                cursor.execute("CREATE SCHEMA django_%d" % os.getpid())
        call_command("migrate", database=name, verbosity=0)
        with connections[name].cursor() as cursor:
            cursor.execute("CREATE TABLE yours (value VARCHAR(20))")


def tearDownModule():
    from django.db import connections

    if POSTGRES:
        with connections["pg"].cursor() as cursor:
            cursor.execute("DROP SCHEMA django_%d CASCADE" % os.getpid())
    connections.close_all()
    shutil.rmtree(FOLDER)


class made_teller:
    """What settings.TILL_TELLER names."""

    @staticmethod
    def sweep():
        return made["teller"].sweep()

    @staticmethod
    def receive(*args):
        return made["teller"].receive(*args)


def reader(get_response):
    """A middleware that reads the body, as some do."""

    def middleware(request):
        if "reads" in request.GET:
            request.read()
        return get_response(request)

    return middleware


urlpatterns = []


class Clean:
    using = "default"

    def setUp(self):
        from django.db import connections

        self.connection = connections[self.using]
        with self.connection.cursor() as cursor:
            for table in ("till_outbox", "till_subject", "till_cursor", "yours"):
                cursor.execute("DELETE FROM " + table)
        super().setUp()


class DjangoStoreTest(Clean, StoreSuite, unittest.TestCase):
    def store(self):
        from till.django import DjangoStore

        return DjangoStore(self.using)

    def again(self, store):
        return self.store()

    def update(self, store, fn):
        from django.db import connections, transaction

        with transaction.atomic(using=self.using):
            fn(connections[self.using])

    def set(self, tx, value):
        with tx.cursor() as cursor:
            cursor.execute("INSERT INTO yours VALUES (%s)", [value])

    def get(self, store):
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT value FROM yours")
            found = cursor.fetchone()
        return found[0] if found else ""

    def test_a_count_inside_your_transaction_is_refused(self):
        """It would be undone with it, and its bytes would be sent all the same."""
        from django.db import transaction

        self.put(row("a"))
        r = self.newest()
        with self.assertRaises(RuntimeError), transaction.atomic(using=self.using):
            self.s.count(r, 1, 2)
        self.assertEqual(self.newest().tries, 0)


class DjangoPostgresTest(DjangoStoreTest):
    using = "pg"

    @classmethod
    def setUpClass(cls):
        if not POSTGRES:
            raise missing("there is no TILL_TEST_POSTGRES_URL: make sdk starts a PostgreSQL")
        super().setUpClass()


class DjangoShopTest(Clean, unittest.TestCase):
    def setUp(self):
        from django.db import connection
        from django.test import Client

        from till.django import DjangoStore

        super().setUp()
        self.service = Service(self)
        self.fails = None

        def on_change(change, db):
            with connection.cursor() as cursor:  # or the ORM: it is the same connection
                cursor.execute("INSERT INTO yours VALUES (%s)", [change.kind])
            if self.fails:
                raise self.fails

        made["teller"] = self.teller = till.Teller(till.Till(self.service.url, "till_test_a_b"), DjangoStore(), on_change, foreign=True)
        self.http = Client(enforce_csrf_checks=True, raise_request_exception=False)

    def post(self, id="e-1", path="/till", body=None, headers=None, status="success"):
        body = event(id, "payment." + status, {"id": "p-1", "status": status, "idempotency_key": "k"}) if body is None else body
        headers = signed(id, body) if headers is None else headers
        return self.http.post(path, body, content_type="application/json", **{"HTTP_" + name.upper().replace("-", "_"): v for name, v in headers.items()})

    def yours(self):
        with self.connection.cursor() as cursor:
            cursor.execute("SELECT value FROM yours")
            return [value for (value,) in cursor.fetchall()]

    def wish(self):
        from django.db import connection

        self.teller.collect(connection, order="o-1", method="mtn_momo", country="CG", amount=till.Money.minor("5000", "XAF"), phone="242061234567")

    def test_webhook(self):
        self.assertEqual([self.post().status_code for _ in range(2)], [204, 204])
        self.assertEqual(self.yours(), ["payment.success"])
        self.assertEqual(self.http.get("/till").status_code, 405)
        forged = self.post(headers=signed("e-1", b"other"))
        self.assertEqual((forged.status_code, forged.content), (400, b"bad_signature"))
        self.assertEqual(self.post(body=b"x" * (1 << 20 | 1)).content, b"too_large")
        read = self.post("e-2", "/till?reads=1")
        self.assertEqual((read.status_code, read.content[:13]), (500, b"body_was_read"))

    def test_webhook_whose_function_fails(self):
        self.fails = KeyError("undefined order")
        with self.assertLogs("django.request", "ERROR") as logged:
            reply = self.post()
        self.assertEqual((reply.status_code, reply.content, self.yours()), (500, b"not done", []))
        self.assertIn("undefined order", "".join(logged.output))
        self.fails = None
        self.assertEqual((self.post().status_code, self.yours()), (204, ["payment.success"]))

    def test_the_order_and_the_wish_are_one_commit(self):
        from django.db import transaction

        with self.assertRaises(KeyError), transaction.atomic():
            self.wish()
            raise KeyError("the shop")
        self.assertRaises(till.NoAttempt, self.teller.send, "o-1")
        sent = []
        with transaction.atomic():
            self.wish()
            transaction.on_commit(lambda: sent.append(self.teller.send("o-1").state))
            # Before the commit nothing may leave: a crash would forget the key.
            self.assertRaises(RuntimeError, self.teller.send, "o-1")
            self.assertEqual(self.service.posts, 0)
        self.assertEqual((sent, self.service.posts), (["taken"], 1))
        self.service.set(status="success")
        self.assertEqual(self.teller.wait("o-1", 1).status, "success")
        self.assertEqual(self.yours(), ["payment.success"])

    def test_command(self):
        from django.core.management import CommandError, call_command

        self.wish()
        with self.connection.cursor() as cursor:
            cursor.execute("UPDATE till_outbox SET next_at = 0")
        out = io.StringIO()
        with self.assertRaises(CommandError):  # this little service has no log
            call_command("till_sweep", stdout=out)
        self.assertEqual(out.getvalue(), "sent 1, waiting 0, events 0, read 0\n")

    def test_migration_back_and_forth(self):
        from django.core.management import call_command

        call_command("migrate", "till", "zero", verbosity=0)
        self.assertNotIn("till_outbox", self.connection.introspection.table_names())
        call_command("migrate", "till", verbosity=0)
        self.assertIn("till_outbox", self.connection.introspection.table_names())


if __name__ == "__main__":
    unittest.main()
