"""Send signed messages to the webhooks of saved questions, on hosts that the operator allows.

Signatures follow https://www.standardwebhooks.com: HMAC-SHA256 over `id.timestamp.body`.
"""

from __future__ import annotations

import base64
import hmac
import os
import socket
import time
from collections.abc import Callable
from hashlib import sha256
from ipaddress import IPv6Address, ip_address, ip_network

import httpx

from cluster.errors import CiteRayError, InputError, cut
from cluster.settings.saved_settings import SavedSettings
from serve.saved.watches.deliveries import Delivery, DeliveryStore

TIMEOUT_S = 10.0
MOST_URL = 2000
MIN_SECRET_CHARACTERS = 24
PREFIX = "whsec_"
# Public-looking IPv6 ranges that embed IPv4 addresses, which may be private.
TUNNELS = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")))
Send = Callable[[Delivery], None]


class DeliveryError(CiteRayError):
    """Message that was not delivered."""


def read_secret(variable: str) -> bytes:
    """Return the signing secret in the environment variable.

    Raises InputError, without the secret in its message, if it is missing, too short or malformed.
    """
    given = os.environ.get(variable, "").strip()
    if not given:
        raise InputError(f"webhook: this server has no secret to sign with; set {variable}")
    if len(given) < MIN_SECRET_CHARACTERS:
        raise InputError(
            f"{variable}: has under {MIN_SECRET_CHARACTERS} characters; create a secret with "
            "`openssl rand -hex 32`"
        )
    if not given.startswith(PREFIX):
        return given.encode(errors="surrogateescape")
    try:
        return base64.b64decode(given.removeprefix(PREFIX), validate=True)
    except ValueError:
        raise InputError(
            f"{variable}: begins with {PREFIX}, but there is no base64 after it"
        ) from None


def check_webhook(url: str, settings: SavedSettings) -> httpx.URL:
    """Return the parsed URL. Raises InputError if the operator does not allow it.

    The host name is resolved and checked only when a message is sent.
    """
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise InputError(f"webhook: {cut(url)}: {error}") from None
    if len(url) > MOST_URL or not found.host or found.userinfo or found.fragment:
        raise InputError(
            f"webhook: {cut(url)}: give https://HOST/PATH of at most {MOST_URL:,} characters, "
            "without a name, password or fragment"
        )
    if found.scheme != "https" and not (found.scheme == "http" and settings.webhook_private):
        raise InputError(f"webhook: {cut(url)}: must begin with https://")
    where = f"{found.host}:{found.port}" if found.port else found.host
    if where.casefold() not in {host.casefold() for host in settings.webhook_hosts}:
        raise InputError(
            f"webhook: {cut(where)} is not one of the hosts that this server may call; the "
            "operator lists them in serve.saved.webhook_hosts"
        )
    return found


def signature(secret: bytes, delivery_id: str, timestamp: str, body: bytes) -> str:
    """Return the value of the header `webhook-signature`."""
    signed = b".".join((delivery_id.encode(), timestamp.encode(), body))
    return f"v1,{base64.b64encode(hmac.digest(secret, signed, sha256)).decode()}"


def public_address(host: str, port: int, *, private: bool) -> str:
    """Resolve `host` and return its first address.

    Raises DeliveryError if the name cannot be resolved, or if any of its addresses is private and
    `private` is False.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise DeliveryError(f"{host}: cannot be resolved: {error}") from error
    addresses = [str(entry[4][0]) for entry in found]
    if not private and not all(map(is_public, addresses)):
        raise DeliveryError(f"{host}: resolves to a private address, which is not allowed")
    return addresses[0]


def is_public(address: str) -> bool:
    """Return True if the address is a public unicast address."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv6Address):
        if ip.ipv4_mapped is not None:
            return is_public(str(ip.ipv4_mapped))
        if any(ip in network for network in TUNNELS):
            return False
    return ip.is_global and not ip.is_multicast


def send(delivery: Delivery, settings: SavedSettings) -> None:
    """Post a message once, without following redirects.

    Connects to the address that was checked, so that a later DNS answer cannot redirect it. Raises
    DeliveryError if the delivery fails, and InputError if the URL is no longer allowed.
    """
    secret = read_secret(settings.webhook_secret_env)
    url = check_webhook(delivery.url, settings)
    port = url.port or (443 if url.scheme == "https" else 80)
    address = public_address(url.host, port, private=settings.webhook_private)
    body = delivery.body.encode()
    timestamp = str(int(time.time()))
    headers = {
        "Host": url.netloc.decode(),
        "Content-Type": "application/json",
        "User-Agent": "CiteRay",
        "webhook-id": delivery.id,
        "webhook-timestamp": timestamp,
        "webhook-signature": signature(secret, delivery.id, timestamp, body),
    }
    try:
        # Ignore proxies and credentials in the environment.
        with (
            httpx.Client(trust_env=False, timeout=TIMEOUT_S) as client,
            client.stream(
                "POST",
                url.copy_with(host=address),
                content=body,
                headers=headers,
                extensions={"sni_hostname": url.host},
            ) as response,
        ):
            if not response.is_success:
                raise DeliveryError(f"{url.host}: HTTP {response.status_code}")
    except httpx.HTTPError as error:
        raise DeliveryError(f"{url.host}: {error or type(error).__name__}") from error


def deliver_due(
    store: DeliveryStore, send_one: Send, renew: Callable[[], bool] = lambda: True
) -> int:
    """Send each due message once, record the results, and return the number of deliveries.

    `renew` renews the caller's lease before each message; if it returns False, sending stops.
    A message is sent again if its delivery could not be recorded; receivers can drop the duplicate
    by its id.
    """
    arrived = 0
    for delivery in store.due():
        if not renew():
            break
        try:
            send_one(delivery)
        except (DeliveryError, InputError) as error:
            store.failed(delivery, str(error))
        else:
            store.delivered(delivery)
            arrived += 1
    return arrived
