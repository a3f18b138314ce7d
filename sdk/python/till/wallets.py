"""The calls about wallets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import operations_gen as ops
from .call import Request
from .types_gen import WalletList

if TYPE_CHECKING:
    from .client import Till


class Wallets:
    """The calls about wallets."""

    def __init__(self, client: "Till") -> None:
        self._c = client

    def list(self) -> WalletList:
        """Your wallets, one per currency."""
        return self._c.read(WalletList, Request(ops.LIST_WALLETS))
