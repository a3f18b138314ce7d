"""Till in Flask: a view for webhooks.

    app.add_url_rule("/till", view_func=till_webhook(teller, SECRET), methods=["POST"])

The same by hand, in a view of yours: return teller.receive(SECRET, request.headers, request.get_data())
"""

from __future__ import annotations

from typing import Any, Callable, Tuple

from flask import current_app, request

from .teller import Teller
from .webhook import MAX_DELIVERY, Secrets


def till_webhook(teller: Teller, secrets: Secrets) -> Callable[..., Tuple[Any, ...]]:
    """Makes a view. While a secret is rotated, give both."""

    def till_webhook_view(**_: Any) -> Tuple[Any, ...]:
        if (request.content_length or 0) > MAX_DELIVERY:
            return "too_large", 400, {"Content-Type": "text/plain; charset=utf-8"}
        reply = teller.receive(secrets, request.headers, request.get_data(cache=False), request.method)
        if reply.status == 500 and reply.error is not None:
            error = reply.error
            current_app.log_exception((type(error), error, error.__traceback__))
        return reply

    return till_webhook_view
