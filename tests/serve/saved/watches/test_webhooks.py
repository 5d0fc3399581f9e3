from __future__ import annotations

import base64
import hmac
import json
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from cluster.errors import InputError
from serve.saved.stores import Saved
from serve.saved.tables import DELIVERIES
from serve.saved.watches import webhooks
from serve.saved.watches.deliveries import MOST_TRIES, Delivery
from serve.saved.watches.webhooks import (
    DeliveryError,
    check_webhook,
    deliver_due,
    is_public,
    public_address,
    read_secret,
    send,
)
from tests.recorders import Recorder, recorder
from tests.serve.saved.kept import saved_at
from tests.serve.saved.watches.asking import check_supporting

SECRET = "s" * 32
VARIABLE = "CITERAY_WEBHOOK_SECRET"
DELIVERY = Delivery("d1", "w1", "", '{"type":"watch.changed"}', 0.0, 0, "waiting", "")


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    monkeypatch.setenv(VARIABLE, SECRET)
    with recorder() as server:
        # Followed, this redirect would be another request.
        server.redirects["/hook?from=citeray"] = f"http://localhost:{server.port}/elsewhere"
        server.statuses = [204]
        yield server


def changed(folder: Path, receiver: Recorder, *, private: bool = True) -> tuple[Saved, str]:
    """Save a question with a webhook and change its answer once; return its store and its id."""
    hosts = f"['localhost:{receiver.port}']"
    saved = saved_at(folder, webhook_hosts=hosts, webhook_private=str(private).lower())
    url = f"http://localhost:{receiver.port}/hook?from=citeray"
    place = saved.watches.add("", {"question": "A?"}, url).id
    check_supporting(saved, "v1", 1)
    check_supporting(saved, "v2", 1, 2)
    return saved, place


def deliver(saved: Saved) -> int:
    return deliver_due(saved.deliveries, lambda one: send(one, saved.settings))


def last_delivery(saved: Saved, where: str) -> tuple[str, int, str]:
    last = saved.deliveries.last_of(where)
    assert last is not None
    return last.state, last.tries, last.error


def make_due(saved: Saved) -> None:
    with saved.database.write() as connection:
        connection.execute(update(DELIVERIES).values(due=0.0))


@pytest.mark.usefixtures("each_database")
def test_change_is_sent_with_a_signature(tmp_path: Path, receiver: Recorder) -> None:
    saved, place = changed(tmp_path, receiver)
    assert deliver(saved) == 1
    ((headers, body),) = receiver.requests
    message = json.loads(body)
    assert (message["type"], message["watch"]) == ("watch.changed", place)
    assert message["index_version"] == "v2"
    assert message["changes"] == ["New evidence for the answer: PMID 2, Paper 2 (2002)."]
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(SECRET.encode(), signed, "sha256").digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert headers["host"] == f"localhost:{receiver.port}"
    assert deliver(saved) == 0
    assert last_delivery(saved, place) == ("delivered", 1, "")


@pytest.mark.usefixtures("each_database")
def test_failed_delivery_is_retried_with_the_same_id(tmp_path: Path, receiver: Recorder) -> None:
    saved, place = changed(tmp_path, receiver)
    receiver.statuses = [500, 302, 204]
    for _ in range(2):
        assert deliver(saved) == 0
        assert deliver(saved) == 0  # The retry is not due yet.
        make_due(saved)
    assert deliver(saved) == 1
    assert len(receiver.requests) == 3
    assert len({headers["webhook-id"] for headers, _ in receiver.requests}) == 1
    assert last_delivery(saved, place) == ("delivered", 3, "")


def test_delivery_is_given_up_after_the_last_try_and_needs_the_lease(
    tmp_path: Path, receiver: Recorder
) -> None:
    saved, place = changed(tmp_path, receiver)
    assert deliver_due(saved.deliveries, lambda one: send(one, saved.settings), lambda: False) == 0
    receiver.statuses = [500] * MOST_TRIES
    for _ in range(MOST_TRIES + 3):
        make_due(saved)
        deliver(saved)
    assert last_delivery(saved, place) == ("given up", MOST_TRIES, "localhost: HTTP 500")
    assert len(receiver.requests) == MOST_TRIES


def test_private_address_receives_nothing(tmp_path: Path, receiver: Recorder) -> None:
    saved, place = changed(tmp_path, receiver, private=False)
    secure = f"https://localhost:{receiver.port}/"
    with saved.database.write() as connection:
        connection.execute(update(DELIVERIES).values(url=secure))
    assert deliver(saved) == 0
    assert receiver.requests == []
    assert "private address" in last_delivery(saved, place)[2]


def test_message_is_sent_to_the_checked_address(
    tmp_path: Path, receiver: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = f"hooks.invalid:{receiver.port}"
    saved = saved_at(tmp_path, webhook_hosts=f"['{where}']", webhook_private="true")
    real, looked = socket.getaddrinfo, []

    def resolve(host: str, *rest: Any, **named: Any) -> Any:
        """Resolve the name to this host once, and fail afterwards."""
        looked.append(host)
        known = host == "hooks.invalid" and looked.count(host) == 1
        return real("127.0.0.1" if known else host, *rest, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    send(replace(DELIVERY, url=f"http://{where}/"), saved.settings)
    assert receiver.requests[0][0]["host"] == where
    assert looked.count("hooks.invalid") == 1


def test_private_addresses_are_recognised_in_every_form(
    subtests: pytest.Subtests, monkeypatch: pytest.MonkeyPatch
) -> None:
    private = (
        "127.0.0.1 10.1.2.3 192.168.0.1 169.254.169.254 100.64.0.1 0.0.0.0 224.0.0.1 ::1 "
        "fe80::1%eth0 fd00::1 ::ffff:10.0.0.1 64:ff9b::a00:1 2002:a00:1::"
    )
    for public, addresses in ((True, "8.8.8.8 2606:4700::1111"), (False, private)):
        for address in addresses.split():
            with subtests.test(address=address):
                assert is_public(address) is public
    found = [(0, 0, 0, "", (ip, 443)) for ip in ("8.8.8.8", "10.0.0.1")]
    monkeypatch.setattr(webhooks.socket, "getaddrinfo", lambda *_, **__: found)
    with pytest.raises(DeliveryError, match="private address"):
        public_address("hooks.example.org", 443, private=False)


def test_webhook_url_must_be_allowed(tmp_path: Path, subtests: pytest.Subtests) -> None:
    settings = saved_at(tmp_path, webhook_hosts="['hooks.example.org']").settings
    for url, said in [
        ("http://hooks.example.org/", "must begin with https://"),
        ("https://other.example.org/", "not one of the hosts"),
        ("https://hooks.example.org:8443/", "not one of the hosts"),
        ("https://hooks.example.org@evil.example/", "without a name"),
        ("https://user:word@hooks.example.org/", "without a name"),
        ("https:///x", "give https://HOST/PATH"),
        ("file:///etc/passwd", "give https://HOST/PATH"),
        ("https://hooks.example.org/" + "x" * 2000, "at most 2,000 characters"),
    ]:
        with subtests.test(url=url, said=said), pytest.raises(InputError, match=said):
            check_webhook(url, settings)
    assert check_webhook("https://HOOKS.example.org/a", settings).host == "hooks.example.org"


def test_invalid_secret_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    coded = "whsec_" + "é" * 30
    for secret, said in (("", "no secret"), ("short", "under 24 char"), (coded, "no base64")):
        monkeypatch.setenv(VARIABLE, secret)
        with pytest.raises(InputError, match=said) as caught:
            read_secret(VARIABLE)
        assert not secret or secret not in str(caught.value)
    monkeypatch.setenv(VARIABLE, "whsec_" + base64.b64encode(b"k" * 24).decode())
    assert read_secret(VARIABLE) == b"k" * 24
