"""The calls about methods."""

from __future__ import annotations

from typing import Optional

from . import operations_gen as ops
from .call import Caller, Request
from .types_gen import PaymentMethodList, PaymentMethodPrediction, PredictPaymentMethod
from .wire import render


class PaymentMethods:
    """The calls about methods."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def list(self) -> PaymentMethodList:
        """The methods enabled for you."""
        return self._c.read(PaymentMethodList, Request(ops.LIST_PAYMENT_METHODS))

    def predict(self, phone: str, country: Optional[str] = None) -> PaymentMethodPrediction:
        """Reads a number as it was typed, and says which of your methods it probably belongs to.

        The country may be left out if the number begins with its calling code, or if all your
        methods are in one country.
        """
        body = render(PredictPaymentMethod(phone, country).to_json())
        return self._c.read(PaymentMethodPrediction, Request(ops.PREDICT_PAYMENT_METHOD, body=body))
