"""manage.py till_sweep, for cron."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import import_string

from till.sweep import SweepFailed


class Command(BaseCommand):
    """Sends what is due, reads the event log and what is open for long, and lists what needs a person."""

    help = "Sends what is due, reads the event log, and lists what needs a person. Run it every minute, or with --run for ever."

    def add_arguments(self, parser):
        parser.add_argument("--run", action="store_true", help="go on until it is interrupted, instead of once")

    def handle(self, *args, **options):
        name = getattr(settings, "TILL_TELLER", None)
        if not name:
            raise CommandError('TILL_TELLER is not set: name your teller, as TILL_TELLER = "shop.payments.teller"')
        teller = import_string(name)
        if options["run"]:
            teller.run()
            return
        try:
            report = teller.sweep()
        except SweepFailed as e:
            self.show(e.report)
            raise CommandError(str(e)) from e
        self.show(report)

    def show(self, report):
        self.stdout.write("sent %d, waiting %d, events %d, read %d" % (report.sent, report.waiting, report.applied, report.read))
        for a in report.attention:
            self.stdout.write("%s %s is %s: %s" % (a.kind, a.order, a.state, a.problem))
