"""The calls about wallets."""

from __future__ import annotations

from . import operations_gen as ops
from .call import Caller, Request
from .types_gen import WalletList


class Wallets:
    """The calls about wallets."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def list(self) -> WalletList:
        """Your wallets, one per currency."""
        return self._c.read(WalletList, Request(ops.LIST_WALLETS))
