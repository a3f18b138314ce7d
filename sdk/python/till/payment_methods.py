"""The calls about methods."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import operations_gen as ops
from .call import Request
from .types_gen import PaymentMethodList

if TYPE_CHECKING:
    from .client import Till


class PaymentMethods:
    """The calls about methods."""

    def __init__(self, client: "Till") -> None:
        self._c = client

    def list(self) -> PaymentMethodList:
        """The methods enabled for you."""
        return self._c.read(PaymentMethodList, Request(ops.LIST_PAYMENT_METHODS))
