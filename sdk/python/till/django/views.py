"""The view that receives webhooks."""

from __future__ import annotations

import logging
from typing import Any, Callable

from django.db import connections, transaction
from django.http import HttpRequest, HttpResponse, RawPostDataException
from django.views.decorators.csrf import csrf_exempt

from ..teller import Teller
from ..webhook import MAX_DELIVERY, Secrets

_log = logging.getLogger("django.request")  # where Django tells of views that fail


def till_webhook(teller: Teller, secrets: Secrets) -> Callable[[HttpRequest], HttpResponse]:
    """Makes a view: path("till", till_webhook(teller, SECRET)).

    It is exempt from CSRF, because the signature says who posts, and from ATOMIC_REQUESTS, because the teller has a
    transaction of its own. While a secret is rotated, give both.
    """

    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            length = int(request.META.get("CONTENT_LENGTH") or 0)
        except ValueError:
            length = 0
        if length > MAX_DELIVERY:
            return HttpResponse("too_large", status=400, content_type="text/plain; charset=utf-8")
        try:
            body = request.body
        except RawPostDataException:
            return HttpResponse("body_was_read: no middleware may read request before the Till webhook", status=500, content_type="text/plain; charset=utf-8")
        reply = teller.receive(secrets, request.headers, body, request.method or "")
        if reply.status == 500 and reply.error is not None:
            _log.error("the Till webhook failed", exc_info=reply.error, extra={"status_code": 500, "request": request})
        response = HttpResponse(reply.body, status=reply.status)
        for name, value in reply.headers.items():
            response[name] = value
        return response

    for name in connections:
        view = transaction.non_atomic_requests(name)(view)
    return csrf_exempt(view)  # type: ignore[no-any-return]
