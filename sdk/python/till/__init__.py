"""The Python SDK of Till, which collects money from mobile money wallets.

It does the duties of a client, so that a shop that crashes, loses answers and hears everything twice asks each customer
once and ships each order once.

A Till makes calls: it repeats what may be repeated, within a deadline and a budget, and tells three kinds of failure apart:
Refused (nothing exists), Unavailable (nothing happened, try later) and Unclear (it may have happened). A store is three
tables in your database: DbStore, FileStore, or till.django.DjangoStore. A Teller is both and one function of yours:

- collect writes the wish, with its key, in your transaction beside the order. send posts it; what is not settled is sent
  again by run or sweep, the same bytes with the same key.
- receive (webhooks), the event log and the sweep are three roads to your function. It is called once for each change,
  inside a transaction of your database.

An order is your own id for what is being paid. An attempt is one payment for an order, a try is one HTTP request. Amounts
are texts in minor units, never floats.

Start reading at Teller. The interface itself is described in api/openapi.yaml, from which the types here are generated.
"""

from . import types_gen
from .call import Try
from .client import Till
from .db_store import DbStore
from .error import (
    BadBaseURL,
    BadKey,
    CallError,
    Mistake,
    NoIdempotencyKey,
    NoKey,
    NoProgress,
    Refused,
    TillError,
    Unavailable,
    Unclear,
    WrongMode,
)
from .file_store import FileStore, FileTx
from .inbox import Change
from .money import BadAmount, BadCurrency, BadParts, Money, MoneyError, Negative, NotExact, OtherCurrency, TooManyDecimals
from .operations_gen import API_VERSION, VERSION
from .outbox import AlreadyPaid, AttemptOpen, MayArrive, NoAttempt, NotLost, NotPaid, NotStuck, OtherWrite, Progress
from .phone import Phone, PhoneError
from .returned import ReturnError, verify_return
from .store import Cursor, Decision, Row, Settlement, Store, Subject
from .sweep import Attention, Report, StillOpen, SweepFailed
from .teller import InvalidWish, Teller
from .types_gen import *  # noqa: F403
from .webhook import BadSecret, BadSignature, Malformed, MissingHeader, Reply, TooLarge, TooNew, TooOld, WebhookError, verify
from .wire import Timestamp, at

__version__ = VERSION

__all__ = [
    "API_VERSION",
    "AlreadyPaid",
    "AttemptOpen",
    "Attention",
    "BadAmount",
    "BadBaseURL",
    "BadCurrency",
    "BadKey",
    "BadParts",
    "BadSecret",
    "BadSignature",
    "CallError",
    "Change",
    "Cursor",
    "DbStore",
    "Decision",
    "FileStore",
    "FileTx",
    "InvalidWish",
    "Malformed",
    "MayArrive",
    "MissingHeader",
    "Mistake",
    "Money",
    "MoneyError",
    "Negative",
    "NoAttempt",
    "NoIdempotencyKey",
    "NoKey",
    "NoProgress",
    "NotExact",
    "NotLost",
    "NotPaid",
    "NotStuck",
    "OtherCurrency",
    "OtherWrite",
    "Phone",
    "PhoneError",
    "Progress",
    "Refused",
    "Reply",
    "Report",
    "ReturnError",
    "Row",
    "Settlement",
    "StillOpen",
    "Store",
    "Subject",
    "SweepFailed",
    "Teller",
    "Till",
    "TillError",
    "Timestamp",
    "TooLarge",
    "TooManyDecimals",
    "TooNew",
    "TooOld",
    "Try",
    "Unavailable",
    "Unclear",
    "VERSION",
    "WebhookError",
    "WrongMode",
    "at",
    "verify",
    "verify_return",
]
__all__ += types_gen.__all__
