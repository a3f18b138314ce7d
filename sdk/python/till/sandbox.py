"""The calls that play the customer, with test keys only."""

from __future__ import annotations

from . import operations_gen as ops
from .call import Caller, Request
from .types_gen import DecideSandboxPrompt, SandboxDecision, SandboxPromptList, SandboxStoryList, WebhookEndpoint
from .wire import render


class Sandbox:
    """The calls that play the customer, with test keys only."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def prompts(self) -> SandboxPromptList:
        """What waits for a decision."""
        return self._c.read(SandboxPromptList, Request(ops.LIST_SANDBOX_PROMPTS))

    def decide(self, payment_id: str, action: str) -> SandboxDecision:
        """The customer's "approve" or "decline", or one of the ends "wrong_pin" and "no_funds"."""
        body = render(DecideSandboxPrompt(action).to_json())
        return self._c.read(SandboxDecision, Request(ops.DECIDE_SANDBOX_PROMPT, [payment_id], body=body))

    def stories(self) -> SandboxStoryList:
        """What the sandbox plays, by the last digits of a phone."""
        return self._c.read(SandboxStoryList, Request(ops.LIST_SANDBOX_STORIES))

    def disable_endpoint(self, id: str) -> WebhookEndpoint:
        """Disables an endpoint as if it had failed for five days."""
        return self._c.read(WebhookEndpoint, Request(ops.DISABLE_SANDBOX_ENDPOINT, [id]))
