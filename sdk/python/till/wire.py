"""JSON without floats: what is read keeps its digits, what is written is exact."""

from __future__ import annotations

import json
import math
import re
from datetime import datetime, timezone
from decimal import Decimal
from typing import Any, Callable, ClassVar, Dict, List, Optional, Tuple, Type, TypeVar, Union

A = TypeVar("A", bound="Answer")

_DECIMAL_FORM = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?\Z")


def is_decimal(text: Any) -> bool:
    """Tells whether a text is a decimal number, as "1.5"."""
    return isinstance(text, str) and _DECIMAL_FORM.match(text) is not None


class Timestamp(str):
    """A moment as the service writes it: RFC 3339 in UTC with six decimals.

    It stays a text, so that it can be sent back exactly as it came.
    """

    __slots__ = ()

    @property
    def time(self) -> datetime:
        """The moment; ValueError if the text is none."""
        text = str(self)
        for form in ("%Y-%m-%dT%H:%M:%S.%fZ", "%Y-%m-%dT%H:%M:%SZ"):
            try:
                return datetime.strptime(text, form).replace(tzinfo=timezone.utc)
            except ValueError:
                continue
        raise ValueError("till: no moment")

    @property
    def ms(self) -> int:
        """Milliseconds since 1970; 0 if the text is no moment."""
        try:
            delta = self.time - _EPOCH
        except ValueError:
            return 0
        return delta.days * 86_400_000 + delta.seconds * 1000 + delta.microseconds // 1000


_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def at(moment: Union[datetime, str]) -> str:
    """A moment as the service reads it. A datetime must know its time zone."""
    if isinstance(moment, str):
        return moment
    if moment.tzinfo is None:
        raise TypeError("till: a datetime without a time zone is no moment")
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _no_constant(name: str) -> Any:
    raise ValueError("till: " + name + " is no JSON")


def parse(text: Union[bytes, str]) -> Any:
    """Reads JSON; numbers with a point become Decimal. ValueError if it is none."""
    if isinstance(text, bytes):
        text = text.decode("utf-8")
    try:
        return json.loads(text, parse_float=Decimal, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("till: too deep") from None


class Digits(str):
    """A number by its own digits, which are written as they are."""

    __slots__ = ()


def render(value: Any) -> bytes:
    """Writes JSON without spaces. TypeError for what JSON does not have."""
    out: List[str] = []
    _write(value, out, 0)
    return "".join(out).encode("utf-8")


_MAX_DEPTH = 64


def _write(value: Any, out: List[str], depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise TypeError("till: a value is nested too deeply")
    if isinstance(value, Digits):
        out.append(value)
    elif isinstance(value, str):
        out.append(json.dumps(value, ensure_ascii=False))
    elif value is None or isinstance(value, bool):
        out.append("null" if value is None else "true" if value else "false")
    elif isinstance(value, int):
        out.append(str(int(value)))
    elif isinstance(value, Decimal) and value.is_finite():
        out.append(format(value, "f"))
    elif isinstance(value, float) and math.isfinite(value):
        out.append(repr(value))  # in metadata; amounts and quantities refuse floats before
    elif isinstance(value, dict):
        out.append("{")
        for n, (name, member) in enumerate(value.items()):
            if not isinstance(name, str):
                raise TypeError("till: names of members are texts")
            out.append((",%s:" if n else "%s:") % json.dumps(name, ensure_ascii=False))
            _write(member, out, depth + 1)
        out.append("}")
    elif isinstance(value, (list, tuple)):
        out.append("[")
        for n, member in enumerate(value):
            if n:
                out.append(",")
            _write(member, out, depth + 1)
        out.append("]")
    else:
        raise TypeError("till: a %s is no JSON" % type(value).__name__)


class Kind:
    """How one type of member is read from JSON and written to it."""

    __slots__ = ("read", "write")

    def __init__(self, read: Callable[[Any], Any], write: Callable[[Any], Any]) -> None:
        self.read = read
        self.write = write


def _checked(kind: type, word: str) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, kind) or kind is int and isinstance(value, bool):
            raise TypeError("till: it should be " + word)
        return value

    return check


_text = _checked(str, "a text")


def _read_timestamp(value: Any) -> Timestamp:
    return Timestamp(_text(value))


def _read_decimal(value: Any) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError("till: it should be a number")


def _write_decimal(value: Any) -> Digits:
    if not is_decimal(value):
        raise TypeError('till: a quantity is a text of digits with at most one point, as "1.5"; never a float')
    return Digits(value)


TEXT = Kind(_text, _text)
TIMESTAMP = Kind(_read_timestamp, _text)
INTEGER = Kind(_checked(int, "an integer"), _checked(int, "an integer"))
BOOLEAN = Kind(_checked(bool, "true or false"), _checked(bool, "true or false"))
DECIMAL = Kind(_read_decimal, _write_decimal)
ANY = Kind(lambda value: value, lambda value: value)


def list_of(kind: Kind) -> Kind:
    """A list of members of one kind."""
    check = _checked(list, "a list")
    return Kind(lambda v: [_maybe(kind.read, x) for x in check(v)], lambda v: [_maybe(kind.write, x) for x in v])


def by_name(kind: Kind) -> Kind:
    """Members of one kind by their names."""
    check = _checked(dict, "an object")
    return Kind(
        lambda v: {name: _maybe(kind.read, x) for name, x in check(v).items()},
        lambda v: {name: _maybe(kind.write, x) for name, x in check(v).items()},
    )


def one(cls: Type[Union["Answer", "Body"]]) -> Kind:
    """A member that is an object of a class."""

    def write(value: Any) -> Any:
        if not isinstance(value, cls):
            raise TypeError("till: it should be a " + cls.__name__)
        return value.to_json()

    return Kind(lambda v: cls.from_json(v), write)  # type: ignore[union-attr]


def _maybe(convert: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else convert(value)


B = TypeVar("B", bound="Body")


def body_of(cls: Type[B], given: Optional[B], members: Dict[str, Any]) -> B:
    """What a create sends: one of its class, or its members by name."""
    if given is None:
        return cls(**members)
    if members or not isinstance(given, cls):
        raise TypeError("till: give a till.%s, or its members by name, as method=\"mtn_momo\"" % cls.__name__)
    return given


Members = Tuple[Tuple[str, Kind, bool], ...]


class Answer:
    """What the service sends. A member that it did not send is None.

    raw is the object as it came, with members that this release does not know.
    """

    _members: ClassVar[Members] = ()
    raw: Dict[str, Any]

    @classmethod
    def from_json(cls: Type[A], value: Any) -> A:
        """Reads an object. TypeError if it is something else."""
        if not isinstance(value, dict):
            raise TypeError("till: it should be an object")
        self = cls.__new__(cls)
        self.raw = value
        for name, kind, _ in cls._members:
            member = value.get(name)
            setattr(self, name, None if member is None else kind.read(member))
        return self

    def to_json(self) -> Dict[str, Any]:
        """Writes the object, with the members that were not known."""
        out: Dict[str, Any] = {}
        known = set()
        for name, kind, always in self._members:
            known.add(name)
            member = getattr(self, name)
            if member is not None or always:
                out[name] = None if member is None else kind.write(member)
        for name, member in self.raw.items():
            if name not in known:
                out[name] = member
        return out

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.to_json() == other.to_json()  # type: ignore[attr-defined]

    __hash__ = None  # type: ignore[assignment]

    _shown: ClassVar[Tuple[str, ...]] = ("id", "status", "type", "pointer", "code")

    def __repr__(self) -> str:
        # Only what no secret and no person is in: texts of errors end up in logs.
        shown = ["%s=%r" % (name, value) for name in self._shown for value in [getattr(self, name, None)] if isinstance(value, str)]
        return "<%s>" % " ".join([type(self).__name__] + shown)


class Body:
    """What a call sends."""

    _members: ClassVar[Members] = ()

    @classmethod
    def from_json(cls, value: Any) -> Any:
        """Reads an object that was written before."""
        self = cls.__new__(cls)
        for name, kind, _ in cls._members:
            member = value.get(name)
            setattr(self, name, None if member is None else kind.read(member))
        return self

    def to_json(self) -> Dict[str, Any]:
        """Writes the object; what is None is left out."""
        out: Dict[str, Any] = {}
        for name, kind, always in self._members:
            member = getattr(self, name)
            if member is None and not always:
                continue
            try:
                out[name] = kind.write(member)
            except TypeError as e:
                raise TypeError("%s: %s" % (name, e)) from None
        return out
