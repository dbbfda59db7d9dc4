#!/usr/bin/env python3
"""A minimal receiver of allclear's notices: verifies signatures, drops repeats, and prints each notice as a JSON line.

    receive.py --key FILE [--listen 127.0.0.1:8800] [--certificate FILE --private-key FILE]

An example to start from. The list of known notices is kept in memory only.
"""

from __future__ import annotations

import argparse
import base64
import collections
import hashlib
import hmac
import http.server
import json
import ssl
import sys
import time
from email.message import Message
from typing import Any, ClassVar

TOLERANCE_S = 300  # the largest difference between the clocks of sender and receiver
REMEMBERED = 10_000  # allclear repeats a notice for at most an hour
LONGEST = 1 << 20


def key_of(path: str) -> bytes:
    with open(path, encoding="ascii") as file:
        return base64.b64decode(file.read().strip().removeprefix("whsec_"), validate=True)


def is_genuine(key: bytes, headers: Message, body: bytes, now: float) -> bool:
    """Whether the signature of exactly these bytes is valid and recent."""
    try:
        sent_at = int(headers["webhook-timestamp"])
        signed = f"{headers['webhook-id']}.{sent_at}.".encode() + body
        given = headers["webhook-signature"].split(" ")
    except (KeyError, TypeError, ValueError, AttributeError):
        return False
    if abs(now - sent_at) > TOLERANCE_S:
        return False
    expected = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(expected.encode(), one.encode()) for one in given)


class Receiver(http.server.BaseHTTPRequestHandler):
    key = b""
    seen: ClassVar[collections.OrderedDict[tuple[str, str], bool]] = collections.OrderedDict()
    timeout = 10

    def do_POST(self) -> None:
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > LONGEST:
            self.answer(413)
            return
        body = self.rfile.read(int(length))
        if not is_genuine(self.key, self.headers, body, time.time()):
            self.answer(401)
            return
        notice = json.loads(body)
        # Source and id identify a CloudEvent; a second arrival is a repeat.
        name = (notice["source"], notice["id"])
        if name not in self.seen:
            self.seen[name] = True
            if len(self.seen) > REMEMBERED:
                self.seen.popitem(last=False)
            print(json.dumps(notice), flush=True)
        self.answer(204)

    def answer(self, status: int) -> None:
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--key", required=True, help="the file that `secret_file` names at the sender")
    parser.add_argument("--listen", default="127.0.0.1:8800")
    parser.add_argument("--certificate", help="PEM, for HTTPS")
    parser.add_argument("--private-key")
    options = parser.parse_args()
    Receiver.key = key_of(options.key)
    host, port = options.listen.rsplit(":", 1)
    server = http.server.HTTPServer((host, int(port)), Receiver)
    if options.certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(options.certificate, options.private_key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    host, port = server.socket.getsockname()[:2]
    print(f"listening on {host}:{port}", file=sys.stderr, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
