"""The application, for INSTALLED_APPS."""

from django.apps import AppConfig


class TillConfig(AppConfig):
    """The tables of the store and the command till_sweep."""

    name = "till.django"
    label = "till"
    verbose_name = "Till"
