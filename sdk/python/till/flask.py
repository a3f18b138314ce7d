"""Till in Flask: a view for webhooks.

    app.add_url_rule("/till", view_func=till_webhook(teller, SECRET), methods=["POST"])

The same by hand, in a view of yours: return teller.receive(SECRET, request.headers, request.get_data())
"""

from __future__ import annotations

from typing import Any, Callable, Tuple

from flask import current_app, request

from .teller import Teller
from .webhook import MAX_DELIVERY, Secrets


def _body() -> bytes:
    """The bytes of the request, not many more than a delivery may have.

    A request in chunks has no length, and get_data would read all of it.
    """
    if request.content_length is not None or not request.environ.get("wsgi.input_terminated"):
        return request.get_data(cache=False)
    parts, left = [], MAX_DELIVERY + 1
    while left > 0:
        part = request.stream.read(left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return b"".join(parts) or request.get_data(cache=False)


def till_webhook(teller: Teller, secrets: Secrets) -> Callable[..., Tuple[Any, ...]]:
    """Makes a view. While a secret is rotated, give both."""

    def till_webhook_view(**_: Any) -> Tuple[Any, ...]:
        if (request.content_length or 0) > MAX_DELIVERY:
            return "too_large", 400, {"Content-Type": "text/plain; charset=utf-8"}
        reply = teller.receive(secrets, request.headers, _body(), request.method)
        if reply.status == 500 and reply.error is not None:
            error = reply.error
            current_app.log_exception((type(error), error, error.__traceback__))
        return reply

    return till_webhook_view
