"""The calls about methods."""

from __future__ import annotations

from . import operations_gen as ops
from .call import Caller, Request
from .types_gen import PaymentMethodList


class PaymentMethods:
    """The calls about methods."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def list(self) -> PaymentMethodList:
        """The methods enabled for you."""
        return self._c.read(PaymentMethodList, Request(ops.LIST_PAYMENT_METHODS))
