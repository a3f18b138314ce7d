"""What a programmer of this language types without looking it up."""

import base64
import decimal
import hashlib
import hmac
import time
import unittest

import till
from till import Money



class OfMoney(unittest.TestCase):
    def test_operators(self):
        a, b = Money.minor(5000, "XAF"), Money.minor("250", "XAF")
        self.assertEqual(a + b, Money("5250", "XAF"))
        self.assertEqual(a - b, Money("4750", "XAF"))
        self.assertEqual(sum([a, b, b]), Money("5500", "XAF"))
        self.assertEqual(a * 2, Money("10000", "XAF"))
        self.assertEqual(decimal.Decimal("1.5") * b, Money("375", "XAF"))
        self.assertTrue(b < a and b <= a and a > b and a >= b and not a < b)
        self.assertEqual(sorted([a, b])[0], b)
        self.assertEqual(str(Money.minor(5000, "KES")), "50.00 KES")
        self.assertEqual(str(Money("5000", "QQQ")), "5000 minor units of QQQ")

    def test_operators_refuse_what_is_no_sum_of_money(self):
        a, k = Money.minor(5000, "XAF"), Money.minor(5000, "KES")
        for wrong, error in [
            (lambda: a + k, till.MoneyError),
            (lambda: a < k, till.MoneyError),
            (lambda: Money("1", "XAF") - a, till.MoneyError),
            (lambda: a * "0.0001", till.MoneyError),
            (lambda: a * 1.5, TypeError),
            (lambda: a + 1, TypeError),
            (lambda: 1 + a, TypeError),
            (lambda: a < 1, TypeError),
            (lambda: a * a, TypeError),
        ]:
            self.assertRaises(error, wrong)


class OfCreates(unittest.TestCase):
    def body(self, *args, **members):
        return till.wire.body_of(till.CreateRefund, args[0] if args else None, members)

    def test_members_by_name(self):
        want = till.CreateRefund(payment_id="p", idempotency_key="k")
        self.assertEqual(self.body(payment_id="p", idempotency_key="k").to_json(), want.to_json())
        self.assertIs(self.body(want), want)
        for wrong in [lambda: self.body(want, reason="x"), lambda: self.body({"payment_id": "p"}), lambda: self.body(reson="x")]:
            self.assertRaises(TypeError, wrong)


class OfVerify(unittest.TestCase):
    def test_the_clock_is_this_machines(self):
        key, body = b"k" * 32, b'{"id":"e-1","type":"payment.success"}'

        def headers(at):
            mac = hmac.new(key, b"m-1.%d." % at + body, hashlib.sha256).digest()
            return {"webhook-id": "m-1", "webhook-timestamp": str(at), "webhook-signature": "v1," + base64.b64encode(mac).decode()}

        secret = "whsec_" + base64.b64encode(key).decode()
        self.assertEqual(till.verify(secret, headers(int(time.time())), body).id, "e-1")
        self.assertRaises(till.TooOld, till.verify, secret, headers(int(time.time()) - 3600), body)


class OfPrints(unittest.TestCase):
    def test_no_person_and_no_secret(self):
        mistake = till.FieldError.from_json({"pointer": "/customer/phone", "code": "invalid_phone", "detail": "242061234567 is too short"})
        self.assertEqual(repr(mistake), "<FieldError pointer='/customer/phone' code='invalid_phone'>")
        payment = till.Payment.from_json({"id": "p-1", "status": "pending", "customer": {"phone": "242061234567"}})
        self.assertEqual(repr(payment), "<Payment id='p-1' status='pending'>")


if __name__ == "__main__":
    unittest.main()
