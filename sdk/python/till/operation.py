"""What a call of the interface is, and when it may be made again."""

from typing import NamedTuple

SAFE = "safe"  # always
KEY = "key"  # always, because the key makes it one
NEVER = "never"  # only if not one byte was written


class Operation(NamedTuple):
    """One call, by the table that is generated."""

    id: str
    method: str
    path: str
    repeat: str
