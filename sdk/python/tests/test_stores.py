"""Every store on the engines that are here. Which one is not here is said, and not passed over in silence."""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import till
from till.db_store import _styled

from .here import missing
from .store_suite import StoreSuite


class FileStoreTest(StoreSuite, unittest.TestCase):
    def store(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        return self.again(None)

    def again(self, store):
        opened = till.FileStore(self.folder)
        self.addCleanup(opened.close)
        return opened

    def update(self, store, fn):
        with store.transaction() as tx:
            fn(tx)

    def set(self, tx, value):
        tx.set("value", value)

    def get(self, store):
        return store.get("value")

    def test_a_line_that_is_cut_goes(self):
        with self.s.transaction() as tx:
            tx.set("a", "1")
        path = os.path.join(self.folder, "till.jsonl")
        with open(path, "ab") as f:
            f.write(b'{"notes": {"a": "2"')
        self.assertEqual(self.again(None).get("a"), "1")
        with self.s.transaction() as tx:
            tx.set("b", "3")
        self.assertEqual(self.again(None).all(), {"a": "1", "b": "3"})


class DbSuite(StoreSuite):
    """A store by the DB-API; connect is the engine's."""

    def again(self, store):
        return till.DbStore(self.connect)

    def store(self):
        store = self.again(None)
        store.install()
        with store.transaction() as tx:
            store.run(tx, "CREATE TABLE yours (value VARCHAR(20))")
        return store

    def update(self, store, fn):
        with store.transaction() as tx:
            fn(tx)

    def set(self, tx, value):
        self.s.run(tx, "INSERT INTO yours VALUES (?)", (value,))

    def get(self, store):
        with store.transaction(write=False) as tx:
            found = store.run(tx, "SELECT value FROM yours").fetchone()
        return found[0] if found else ""


class SqliteTest(DbSuite, unittest.TestCase):
    mode = {"isolation_level": "DEFERRED"}

    def store(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        conn = sqlite3.connect(os.path.join(self.folder, "shop.db"))
        conn.execute("PRAGMA journal_mode = WAL")
        self.addCleanup(conn.close)
        return super().store()

    def connect(self):
        conn = sqlite3.connect(os.path.join(self.folder, "shop.db"), timeout=2, isolation_level=None)
        conn.execute("PRAGMA synchronous = OFF")
        for name, value in self.mode.items():
            setattr(conn, name, value)
        return conn

    def test_tables_of_the_first_release(self):
        """They get their column; what is in them stays."""
        conn = self.connect()
        self.addCleanup(conn.close)
        conn.execute("ALTER TABLE till_outbox DROP COLUMN details")
        conn.execute("INSERT INTO till_outbox VALUES ('k-1', 'payment', 'o-1', 1, X'7b7d', 'refused', 1, 0, 0, 0, NULL, '', 'validation_failed', 1)")
        conn.commit()
        self.s.install()
        self.s.install()
        row = self.s.newest("payment", "o-1")
        self.assertEqual((row.problem, row.details), ("validation_failed", ""))
        self.assertTrue(self.s.settle(till.Settlement("k-1", details='{"detail": "« Airtel » 😀"}')))
        self.assertEqual(self.s.newest("payment", "o-1").details, '{"detail": "« Airtel » 😀"}')

    def test_the_order_and_the_wish_are_one_commit(self):
        """As the examples have it: the shop's own connection, with its own way of transactions."""
        conn = self.connect()
        self.addCleanup(conn.close)
        teller = till.Teller(till.Till("http://127.0.0.1:1", "till_test_a_b"), self.s, lambda change, db: None)
        wish = dict(order="o-1", method="mtn_momo", country="CG", amount=till.Money.minor("5000", "XAF"), phone="242061234567")
        for fails in (True, False):
            try:
                if self.mode == {"isolation_level": None}:
                    conn.execute("BEGIN")
                with conn:
                    conn.execute("INSERT INTO yours VALUES ('order')")
                    teller.collect(conn, **wish)
                    if fails:
                        raise KeyError("the shop")
            except KeyError:
                pass
            self.assertEqual((self.get(self.s), self.s.newest("payment", "o-1") is None), ("", True) if fails else ("order", False))


class SqliteAutocommitTest(SqliteTest):
    mode = {"isolation_level": None}


if sys.version_info >= (3, 12):

    class SqlitePep249Test(SqliteTest):
        mode = {"autocommit": False}


class NamedSqliteTest(SqliteTest):
    """The style of parameters with names, which sqlite3 takes too."""

    def again(self, store):
        return till.DbStore(self.connect, paramstyle="named", dialect="sqlite")


class PostgresTest(DbSuite, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        url = os.environ.get("TILL_TEST_POSTGRES_URL")
        try:
            import psycopg2
        except ImportError:
            raise missing("psycopg2 is not installed: make sdk installs it")
        if not url:
            raise missing("there is no TILL_TEST_POSTGRES_URL: make sdk starts a PostgreSQL")
        cls.connect = staticmethod(lambda: psycopg2.connect(url, options="-c search_path=" + cls.schema))
        cls.plain = staticmethod(lambda: psycopg2.connect(url))

    def store(self):
        type(self).schema = "py_%d_%d" % (os.getpid(), time.time_ns())
        admin = self.plain()
        admin.autocommit = True
        admin.cursor().execute("CREATE SCHEMA " + self.schema)

        def drop():
            admin.cursor().execute("DROP SCHEMA " + self.schema + " CASCADE")
            admin.close()

        self.addCleanup(drop)
        return super().store()


class PostgresAutocommitTest(PostgresTest):
    def again(self, store):
        def connect():
            conn = self.connect()
            conn.autocommit = True
            return conn

        return till.DbStore(connect)


class MariaDBTest(DbSuite, unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        server = shutil.which("mariadbd") or shutil.which("mariadbd", path="/usr/sbin")
        try:
            import pymysql
        except ImportError:
            raise missing("PyMySQL is not installed: make sdk installs it")
        if not server:
            raise missing("there is no mariadbd: make sdk installs it")
        cls.folder = tempfile.mkdtemp(prefix="till-py-")  # a short name, for its socket
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        socket = os.path.join(cls.folder, "socket")
        os.mkdir(os.path.join(cls.folder, "data"))
        cls.server = subprocess.Popen(
            [server, "--no-defaults", "--datadir=" + os.path.join(cls.folder, "data"), "--socket=" + socket, "--skip-networking", "--skip-grant-tables",
             "--user=root", "--pid-file=" + os.path.join(cls.folder, "pid"), "--innodb-flush-log-at-trx-commit=0"],
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        cls.addClassCleanup(cls.server.wait)
        cls.addClassCleanup(cls.server.kill)
        cls.name = None
        cls.connect = staticmethod(lambda: pymysql.connect(unix_socket=socket, user="root", database=cls.name, charset="utf8mb4"))
        end = time.monotonic() + 60
        while True:
            try:
                cls.admin = cls.connect()
                break
            except pymysql.err.OperationalError:
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)
        cls.addClassCleanup(cls.admin.close)

    def store(self):
        type(self).name = "shop%d" % time.time_ns()
        self.admin.cursor().execute("CREATE DATABASE " + self.name)
        return super().store()


class StyleTest(unittest.TestCase):
    def test_every_style(self):
        text = "a = ? AND b IN (?, ?)"
        for style, want in (
            ("qmark", text), ("format", "a = %s AND b IN (%s, %s)"), ("pyformat", "a = %s AND b IN (%s, %s)"),
            ("numeric", "a = :1 AND b IN (:2, :3)"), ("named", "a = :p1 AND b IN (:p2, :p3)"),
        ):  # fmt: skip
            self.assertEqual(_styled(text, style), want)

    def test_a_driver_that_nobody_knows(self):
        class Connection:
            def close(self):
                pass

        self.assertRaises(till.Mistake, till.DbStore(Connection).newest, "payment", "a")
        self.assertRaises(till.Mistake, till.DbStore, Connection, dialect="oracle")

    def test_the_schema_is_that_of_all_sdks(self):
        here = os.path.dirname(os.path.abspath(__file__))
        for name in ("sqlite", "postgres", "mysql"):
            with open(os.path.join(here, "..", "till", "schema", name + ".sql")) as ours, open(os.path.join(here, "..", "..", "schema", name + ".sql")) as all_sdks:
                self.assertEqual(ours.read(), all_sdks.read())


if __name__ == "__main__":
    unittest.main()
