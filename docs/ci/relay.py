"""Receives the service's webhooks and starts a GitHub workflow for each (`repository_dispatch`).

Run it behind TLS where the service can reach it: `python relay.py`. It needs `pip install standardwebhooks` and the
environment variables WEBHOOK_SECRET (the service's), GITHUB_REPOSITORY (owner/name) and GITHUB_TOKEN (may write the
contents of that repository). HOST and PORT default to 127.0.0.1 and 8080.
"""

import json
import os
import urllib.error
import urllib.request
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

MAX_BODY_BYTES = 100_000
WEBHOOK = Webhook(os.environ["WEBHOOK_SECRET"])
API = os.environ.get("GITHUB_API_URL", "https://api.github.com")
DISPATCHES = f"{API}/repos/{os.environ['GITHUB_REPOSITORY']}/dispatches"
#: Webhooks arrive at least once: those already passed on are only acknowledged.
seen: deque[str] = deque(maxlen=10_000)


class Relay(BaseHTTPRequestHandler):
    timeout = 15

    def do_POST(self) -> None:
        body = self.rfile.read(min(int(self.headers.get("content-length", 0)), MAX_BODY_BYTES))
        try:
            payload = WEBHOOK.verify(body, dict(self.headers.items()))
        except WebhookVerificationError:
            self.answer(401)
            return
        id_ = self.headers["webhook-id"]
        if id_ not in seen:
            try:
                dispatch(payload)
            except (urllib.error.URLError, TimeoutError):
                # On anything but a 2xx the service tries again, for a day.
                self.answer(502)
                return
            seen.append(id_)
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.end_headers()


def dispatch(payload: dict[str, object]) -> None:
    """Start the workflows that wait for this type of event."""
    request = urllib.request.Request(  # noqa: S310 - the address is the operator's
        DISPATCHES,
        data=json.dumps({"event_type": payload["type"], "client_payload": payload}).encode(),
        headers={
            "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
            "Accept": "application/vnd.github+json",
            "Content-Type": "application/json",
        },
        method="POST",
    )
    with urllib.request.urlopen(request, timeout=8):  # noqa: S310
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer((os.environ.get("HOST", "127.0.0.1"), int(os.environ.get("PORT", "8080"))), Relay)
    print(f"relay listens on port {server.server_address[1]}", flush=True)
    server.serve_forever()
