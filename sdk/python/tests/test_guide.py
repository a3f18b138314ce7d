"""The shops of the guide, as they stand there, with the real frameworks. The first one is run by TestGuides, with a real service."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest

from .here import missing
from .service import SECRET, Service

HERE = os.path.dirname(os.path.abspath(__file__))


def block(name):
    """A file of the guide."""
    with open(os.path.join(HERE, "..", "..", "..", "docs", "guide", "sdk-python.md"), encoding="utf-8") as f:
        return re.search(r"<!-- test: file %s -->\n(?:<!--[^\n]*-->\n)*```python\n(.*?)```" % re.escape(name), f.read(), re.S).group(1)


class TestGuide(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        self.service = Service(self)
        self.path = os.path.join(self.folder, "shop.db")
        self.environment = dict(
            os.environ, TILL_BASE_URL=self.service.url, TILL_API_KEY="till_test_a_b", TILL_WEBHOOK_SECRET=SECRET, SHOP_DB=self.path, PYTHONPATH=os.path.join(HERE, "..")
        )

    def run_shop(self, program, files):
        """Runs a program beside files, which prints what it did."""
        for name, text in files.items():
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=self.folder, env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    DELIVERY = """
import os, sqlite3, sys
sys.path.insert(0, %r)
from tests.service import event, signed
db = sqlite3.connect(os.environ["SHOP_DB"])
key = db.execute("SELECT idempotency_key FROM till_outbox").fetchone()[0]
body = event("e-1", "payment.success", {"id": "p-" + key[:8], "status": "success", "idempotency_key": key})
headers = signed("e-1", body)
""" % os.path.join(HERE, "..")

    def test_flask(self):
        try:
            import flask  # noqa: F401
        except ImportError:
            raise missing("Flask is not installed: make sdk installs it")
        db = sqlite3.connect(self.path)
        db.execute("CREATE TABLE orders (id TEXT, state TEXT)")
        db.close()
        program = (
            "import flask_shop\nflask_shop.teller.store.install()\nhttp = flask_shop.app.test_client()\n"
            + "print(http.post('/orders', data={'order': 'o-1', 'phone': '242061234567'}).status_code)"
            + self.DELIVERY
            + "for _ in range(2):\n    print(http.post('/till', data=body, headers=headers, content_type='application/json').status_code)\n"
            + "print(db.execute('SELECT state FROM orders').fetchone()[0])\n"
        )
        self.assertEqual(self.run_shop(program, {"flask_shop.py": block("flask_shop.py")}), ["202", "204", "204", "paid"])
        self.assertEqual(self.service.posts, 1)

    def test_django(self):
        try:
            import django  # noqa: F401
        except ImportError:
            raise missing("Django is not installed: make sdk installs it")
        files = {
            "orders/__init__.py": "",
            "orders/models.py": "from django.db import models\n\n\nclass Order(models.Model):\n    id = models.CharField(max_length=64, primary_key=True)\n    state = models.CharField(max_length=20)\n",
            "django_shop.py": block("django_shop.py"),
        }
        program = (
            "import os, django\nfrom django.conf import settings\n"
            + "settings.configure(DATABASES={'default': {'ENGINE': 'django.db.backends.sqlite3', 'NAME': os.environ['SHOP_DB'], 'ATOMIC_REQUESTS': True}},"
            + " INSTALLED_APPS=['orders', 'till.django'], ROOT_URLCONF='django_shop', ALLOWED_HOSTS=['*'], SECRET_KEY='x')\ndjango.setup()\n"
            + "from django.core.management import call_command\nfrom django.test import Client\ncall_command('migrate', run_syncdb=True, verbosity=0)\n"
            + "http = Client()\nprint(http.post('/orders', {'order': 'o-1', 'phone': '242061234567'}).status_code)"
            + self.DELIVERY
            + "named = {'HTTP_' + name.upper().replace('-', '_'): value for name, value in headers.items()}\n"
            + "for _ in range(2):\n    print(http.post('/till', body, content_type='application/json', **named).status_code)\n"
            + "print(db.execute('SELECT state FROM orders_order').fetchone()[0])\n"
        )
        self.assertEqual(self.run_shop(program, files), ["202", "204", "204", "paid"])
        self.assertEqual(self.service.posts, 1)


if __name__ == "__main__":
    unittest.main()
