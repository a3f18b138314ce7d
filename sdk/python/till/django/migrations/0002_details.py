"""The column that tables of the first release lack."""

from django.db import migrations

from till.django.store import _DIALECTS


def add(apps, schema_editor):
    connection = schema_editor.connection

    def run(statement):
        cursor = connection.cursor()
        cursor.execute(statement)
        return cursor

    _DIALECTS[connection.vendor].upgrade(run)


class Migration(migrations.Migration):
    """Adds it where it is missing; it stays when this is undone, and hurts nobody."""

    dependencies = [("till", "0001_initial")]
    operations = [migrations.RunPython(add, migrations.RunPython.noop)]
