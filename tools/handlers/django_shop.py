"""A shop that receives webhooks with Django and the SDK for Python."""

import os
import socketserver
import sys
from wsgiref.simple_server import WSGIServer, make_server

import django
from django.conf import settings

settings.configure(
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(os.environ["FOLDER"], "shop.db"), "OPTIONS": {"timeout": 10}}},
    INSTALLED_APPS=["till.django"],
    ROOT_URLCONF="django_shop",
    ALLOWED_HOSTS=["*"],
    MIDDLEWARE=["django.middleware.csrf.CsrfViewMiddleware"],
    SECRET_KEY="x",
    USE_TZ=True,
)
sys.modules.setdefault("django_shop", sys.modules["__main__"])
django.setup()

from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.db import connection  # noqa: E402
from django.urls import path  # noqa: E402

import till  # noqa: E402
from till.django import DjangoStore, till_webhook  # noqa: E402


def on_change(change, db):
    if change.paid:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO acted VALUES (%s, %s)", (change.payment.id, change.payment.amount.value))


teller = till.Teller(till.Till("http://127.0.0.1:1/v1", "till_test_a_b"), DjangoStore(), on_change, foreign=True)
urlpatterns = [path("till", till_webhook(teller, os.environ["TILL_WEBHOOK_SECRET"]))]


class Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True


call_command("migrate", verbosity=0)
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE acted (payment TEXT, amount TEXT)")
make_server("127.0.0.1", int(os.environ["PORT"]), get_wsgi_application(), Server).serve_forever()
