"""A client, a store and one function of yours."""

from __future__ import annotations

import threading
from typing import Any, Callable, Dict, List, Optional

from .client import Till
from .error import TillError
from .inbox import OVERPAID, OnChange, OnOther, Pace, page_of, wall_clock
from .money import Money, MoneyError, digits
from .outbox import NotPaid, Order, order_text
from .outbox import new_key as new_key
from .store import CHECKOUT, PAYMENT, PAYOUT, REFUND, Store
from .sweep import MAX_SENDS, Report, Sweep
from .types_gen import (
    CreateCheckout,
    CreateCheckoutCharge,
    CreateCheckoutTax,
    CreatePayment,
    CreatePaymentCharge,
    CreatePaymentCustomer,
    CreatePaymentTax,
    CreatePayout,
    CreatePayoutRecipient,
    CreateRefund,
)
from .webhook import Receiver
from .wire import render

# What the service takes, checked before a row is written that it would refuse.
_MAX_ORDER = 128  # bytes
_MAX_REFERENCE = 128
_MAX_DESCRIPTION = 255
_MAX_AMOUNT = 15  # digits
_MAX_PHONE = 15


class InvalidWish(TillError, ValueError):
    """Says what is wrong with a wish before anything was written."""

    def __init__(self, member: str, problem: str) -> None:
        super().__init__("till: " + member + " " + problem)
        self.member = member
        self.problem = problem


class Teller(Sweep, Receiver):
    """Collects, opens checkouts, pays out, refunds, listens and sweeps.

    on_change(change, tx) is called once for each change of an attempt, inside a transaction of the store. If it raises, nothing
    is saved and the change comes again. What does not roll back, as mail, belongs into a queue that it writes in the
    transaction. on_progress is told about pending and processing, on_other about events that are no change of an attempt,
    each once, and about checkouts that this store did not make; without it they are accepted and forgotten.

    payment_until (checkouts, too) and payout_until (refunds, too) are how many seconds a wish is sent: nobody's phone rings at night for an order of the
    afternoon. look_after is how long after the deadline of a try the service is asked whether it arrived, open_after how
    long a payment that was taken is left to webhooks and the log. cursor names the cursor of the log, for two tellers on
    one database. on_report is told what each round of run did.

    foreign asks for news of all payments, payouts and refunds of the client, those too that this store did not make: with
    another store, or by hand. Their change has no order. Without it the function hears of its own orders only, and of
    refunds of their payments, also those that others made. Checkouts that this store did not make, as those of links, come
    to on_other either way. from_start begins a new store at the start of the event log; otherwise it
    begins at the end, as what was paid before it was made is no news.
    """

    def __init__(
        self,
        client: Till,
        store: Store,
        on_change: OnChange,
        *,
        on_progress: Optional[OnChange] = None,
        on_other: Optional[OnOther] = None,
        payment_until: float = 600.0,
        payout_until: float = 24 * 3600.0,
        look_after: float = 60.0,
        open_after: float = 120.0,
        cursor: str = "events",
        foreign: bool = False,
        from_start: bool = False,
        on_report: Optional[Callable[[Report, Optional[Exception]], object]] = None,
        clock: Callable[[], float] = wall_clock,
    ) -> None:
        self.client = client
        self.store = store
        self.on_change = on_change
        self.on_progress = on_progress
        self.on_other = on_other
        self.payment_until = int(payment_until * 1000)
        self.payout_until = int(payout_until * 1000)
        self.look_after = int(look_after * 1000)
        self.open_after = int(open_after * 1000)
        self.cursor_name = cursor
        self.foreign = foreign
        self.from_start = from_start
        self.on_report = on_report
        self.clock = clock
        self._sends = threading.Semaphore(MAX_SENDS)
        self._pace = Pace()

    def collect(
        self,
        tx: Any,
        *,
        order: Order,
        method: str,
        amount: Money,
        phone: str,
        country: str = "",
        name: str = "",
        email: str = "",
        reference: str = "",
        description: str = "",
        charge: Optional[CreatePaymentCharge] = None,
        tax: Optional[CreatePaymentTax] = None,
        metadata: Optional[Dict[str, Any]] = None,
    ) -> None:
        """Writes a wish to be paid in your transaction, beside the order, with its key and the bytes that will be sent.

        It makes no call. order is your id of what is paid, phone is digits only (see Phone.read), reference is order if empty. The
        same wish again while the attempt is open changes nothing: a double click is one payment.
        """
        order = order_text(order)
        _check(order, method, amount, phone, description, reference)

        def body(key: str) -> bytes:
            return _render(
                CreatePayment(
                    method=method,
                    amount=amount,
                    idempotency_key=key,
                    customer=CreatePaymentCustomer(phone, name or None, email or None),
                    country=country or None,
                    reference=reference or order,
                    description=description or None,
                    charge=charge,
                    tax=tax,
                    metadata=metadata,
                )
            )

        self._put(tx, PAYMENT, order, self.payment_until, body)

    def pay_out(
        self,
        tx: Any,
        *,
        order: Order,
        method: str,
        amount: Money,
        phone: str,
        country: str = "",
        reference: str = "",
        description: str = "",
        metadata: Optional[Dict[str, Any]] = None,
    ) -> None:
        """Writes a wish to pay somebody in your transaction, like collect."""
        order = order_text(order)
        _check(order, method, amount, phone, description, reference)

        def body(key: str) -> bytes:
            return _render(
                CreatePayout(
                    method=method,
                    amount=amount,
                    idempotency_key=key,
                    recipient=CreatePayoutRecipient(phone),
                    country=country or None,
                    reference=reference or order,
                    description=description or None,
                    metadata=metadata,
                )
            )

        self._put(tx, PAYOUT, order, self.payout_until, body)

    def checkout(
        self,
        tx: Any,
        *,
        order: Order,
        amount: Money,
        reference: str = "",
        description: str = "",
        charge: Optional[CreateCheckoutCharge] = None,
        tax: Optional[CreateCheckoutTax] = None,
        metadata: Optional[Dict[str, Any]] = None,
        expires_in_seconds: Optional[int] = None,
        country: str = "",
        methods: Optional[List[str]] = None,
        phone: str = "",
        phone_fixed: bool = False,
        return_url: str = "",
        language: str = "",
    ) -> None:
        """Writes a wish to be paid on a page of the service, by any number and any of your methods, in your transaction, like collect.

        An order is asked for in one way at a time: while a payment or another checkout of it may bring money, that is
        refused. The page shows reference (order if empty) and description, and leads back to return_url. send_checkout
        makes the page.
        """
        order = order_text(order)
        _check_order(order, description, reference)
        _check_amount(amount)
        if phone or phone_fixed:
            _check_phone(phone)

        def body(key: str) -> bytes:
            return _render(
                CreateCheckout(
                    amount=amount,
                    idempotency_key=key,
                    reference=reference or order,
                    description=description or None,
                    charge=charge,
                    tax=tax,
                    metadata=metadata,
                    expires_in_seconds=expires_in_seconds,
                    country=country or None,
                    methods=methods,
                    phone=phone or None,
                    phone_fixed=phone_fixed or None,
                    return_url=return_url or None,
                    language=language or None,
                )
            )

        self._put(tx, CHECKOUT, order, self.payment_until, body)

    def refund(
        self,
        tx: Any,
        *,
        order: Order,
        amount: Optional[Money] = None,
        reason: str = "",
        payment: str = "",
        reference: str = "",
        description: str = "",
        metadata: Optional[Dict[str, Any]] = None,
    ) -> None:
        """Writes a wish to give a payment back in your transaction, all that is left or an amount, to who paid it, like collect.

        The order must be paid, and no refund of it may be open: the same wish again is refused, too, because two refunds of
        the same sum may be meant. payment, as change.extra, is needed only if the order was paid more than once.
        """
        order = order_text(order)
        _check_order(order, description, reference)
        if amount is not None:
            _check_amount(amount)
        of = payment or self._paid_by(tx, order)

        def body(key: str) -> bytes:
            return _render(
                CreateRefund(
                    payment_id=of,
                    amount=amount,
                    idempotency_key=key,
                    reason=reason or None,
                    reference=reference or order,
                    description=description or None,
                    metadata=metadata,
                )
            )

        self._put(tx, REFUND, order, self.payout_until, body)

    def _paid_by(self, tx: Any, order: str) -> str:
        """The id of the one payment that an order was paid by."""
        paid = [row for kind in (PAYMENT, CHECKOUT) for row in self.store.attempts(tx, kind, order) if row.paid]
        if not paid:
            raise NotPaid(order)
        if len(paid) > 1 or paid[0].status == OVERPAID:
            raise InvalidWish("payment", "is missing: the order was paid more than once")
        return page_of(paid[0].details).get("payment_id", "") if paid[0].kind == CHECKOUT else paid[0].remote_id


def _render(wish: Any) -> bytes:
    try:
        return render(wish.to_json())
    except (TypeError, ValueError) as e:
        member = str(e).partition(":")[0]
        raise InvalidWish(member if hasattr(wish, member) else "metadata", "is no JSON: " + str(e)) from None


def _check(order: str, method: str, amount: Money, phone: str, description: str, reference: str) -> None:
    _check_order(order, description, reference)
    if not isinstance(method, str) or not method:
        raise InvalidWish("method", "is missing")
    _check_amount(amount)
    _check_phone(phone)


def _check_phone(phone: str) -> None:
    if not isinstance(phone, str) or not phone or len(phone) > _MAX_PHONE or not digits(phone):
        raise InvalidWish("phone", "is digits only, calling code first")


def _check_amount(amount: Money) -> None:
    if not isinstance(amount, Money):
        raise TypeError('till: an amount is Money, as Money.minor("5000", "XAF"); never a float')
    try:
        amount.check()
    except MoneyError:
        raise InvalidWish("amount", "is digits in minor units of a currency") from None
    if amount.value == "0" or len(amount.value) > _MAX_AMOUNT:
        raise InvalidWish("amount", "is more than nothing and has at most 15 digits")


def _check_order(order: str, description: str, reference: str) -> None:
    if not isinstance(order, str) or not order or len(order.encode("utf-8", "replace")) > _MAX_ORDER:
        raise InvalidWish("order", "is a text of 1 to 128 bytes, or a number")
    if len(description) > _MAX_DESCRIPTION or len(reference) > _MAX_REFERENCE:
        raise InvalidWish("description or reference", "is too long")
