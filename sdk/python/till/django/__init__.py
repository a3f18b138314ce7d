"""Till in Django: a store on your database, a view for webhooks, and manage.py till_sweep.

Put "till.django" into INSTALLED_APPS (its migration makes the three tables) and name your teller:

    TILL_TELLER = "shop.payments.teller"     # settings.py; for manage.py till_sweep

    path("till", till_webhook(teller, SECRET))     # urls.py
"""

from .store import DjangoStore
from .views import till_webhook

__all__ = ["DjangoStore", "till_webhook"]
