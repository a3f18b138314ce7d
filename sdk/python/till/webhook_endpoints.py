"""The calls about addresses that events are posted to. To receive them, see Teller.receive."""

from __future__ import annotations

from typing import Any, Optional

from . import operations_gen as ops
from .call import Caller, Request
from .page import query
from .types_gen import (
    CreateWebhookEndpoint,
    DeliveryList,
    NewWebhookEndpoint,
    Replay,
    Replayed,
    RotateWebhookSecret,
    UpdateWebhookEndpoint,
    WebhookEndpoint,
    WebhookEndpointList,
    WebhookTest,
)
from .wire import body_of, render


class WebhookEndpoints:
    """The calls about addresses that events are posted to."""

    def __init__(self, client: Caller) -> None:
        self._c = client

    def create(self, endpoint: Optional[CreateWebhookEndpoint] = None, **members: Any) -> NewWebhookEndpoint:
        """Registers an address. Its secret is in the answer, this once.

        A create without an answer is not repeated: list the endpoints, and delete the one whose secret you have not seen.
        """
        return self._c.read(NewWebhookEndpoint, Request(ops.CREATE_WEBHOOK_ENDPOINT, body=render(body_of(CreateWebhookEndpoint, endpoint, members).to_json())))

    def list(self) -> WebhookEndpointList:
        """All endpoints."""
        return self._c.read(WebhookEndpointList, Request(ops.LIST_WEBHOOK_ENDPOINTS))

    def get(self, id: str) -> WebhookEndpoint:
        """Reads an endpoint."""
        return self._c.read(WebhookEndpoint, Request(ops.GET_WEBHOOK_ENDPOINT, [id]))

    def update(self, id: str, endpoint: UpdateWebhookEndpoint) -> WebhookEndpoint:
        """Changes what is set."""
        return self._c.read(WebhookEndpoint, Request(ops.UPDATE_WEBHOOK_ENDPOINT, [id], body=render(endpoint.to_json())))

    def delete(self, id: str) -> None:
        """Removes an endpoint."""
        self._c.plain(Request(ops.DELETE_WEBHOOK_ENDPOINT, [id]))

    def rotate_secret(self, id: str, how: RotateWebhookSecret) -> NewWebhookEndpoint:
        """Gives an endpoint a new secret."""
        return self._c.read(NewWebhookEndpoint, Request(ops.ROTATE_WEBHOOK_SECRET, [id], body=render(how.to_json())))

    def test(self, id: str) -> WebhookTest:
        """Posts a test event."""
        return self._c.read(WebhookTest, Request(ops.TEST_WEBHOOK_ENDPOINT, [id]))

    def deliveries(self, id: str, *, status: str = "", limit: Optional[int] = None, before: Optional[int] = None) -> DeliveryList:
        """What became of each event, newest first."""
        return self._c.read(DeliveryList, Request(ops.LIST_DELIVERIES, [id], query(status=status, limit=limit, before=before)))

    def replay(self, id: str, stretch: Replay) -> Replayed:
        """Posts a stretch of the log again."""
        return self._c.read(Replayed, Request(ops.REPLAY_EVENTS, [id], body=render(stretch.to_json())))
