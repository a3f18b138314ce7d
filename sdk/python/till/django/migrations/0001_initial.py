"""The three tables of a store, the same as in sdk/schema."""

from django.db import migrations

from till.django.store import _DIALECTS


def make(apps, schema_editor):
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        for statement in _DIALECTS[connection.vendor].statements():
            cursor.execute(statement)


def remove(apps, schema_editor):
    with schema_editor.connection.cursor() as cursor:
        for table in ("till_outbox", "till_subject", "till_cursor"):
            cursor.execute("DROP TABLE IF EXISTS " + table)


class Migration(migrations.Migration):
    """Makes the tables where they are missing."""

    dependencies = []
    operations = [migrations.RunPython(make, remove)]
