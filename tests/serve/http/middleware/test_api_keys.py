import pytest

from cluster.errors import InputError
from serve.http.middleware.api_keys import Rates, given_key, open_door, owner, read_keys

VARIABLE = "TEST_API_KEYS"
ALICE, BOB = "a" * 32, "b" * 32


def test_keys_are_read_from_the_environment_as_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"alice:{ALICE}, bob:{BOB}")
    keys = read_keys(VARIABLE)
    assert [key.name for key in keys] == ["alice", "bob"]
    assert ALICE not in repr(keys)
    assert owner(BOB, keys) == "bob"
    for other in (BOB + "x", "", "\udcff"):
        assert owner(other, keys) is None
    for value in ("", " , "):
        monkeypatch.setenv(VARIABLE, value)
        assert read_keys(VARIABLE) == ()


def test_invalid_key_entry_is_named_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, reason in (
        (ALICE, "entry 1 is not name:key"),
        (f"a b:{BOB}", "entry 1"),
        (f"alice:{ALICE} al/ice:{BOB}", "entry 2"),
        ("alice:short", "key of alice has under 16 characters"),
        (f"alice:{ALICE} alice:{BOB}", "alice has two keys"),
    ):
        monkeypatch.setenv(VARIABLE, value)
        with pytest.raises(InputError, match=reason) as caught:
            read_keys(VARIABLE)
        assert ALICE not in str(caught.value)
        assert "short" not in str(caught.value)


def test_key_is_read_from_either_header() -> None:
    for headers, key in [
        ({"authorization": "Bearer abc"}, "abc"),
        ({"authorization": "bearer  abc "}, "abc"),
        ({"x-api-key": "abc"}, "abc"),
        ({"authorization": "Basic abc"}, ""),
        ({"authorization": "Basic YW55Ym9keTphYmM6ZA=="}, "abc:d"),
        ({"authorization": "Basic abc", "x-api-key": "def"}, "def"),
        ({}, ""),
    ]:
        assert given_key(headers) == key, headers


def test_rate_limit_is_a_token_bucket() -> None:
    rates = Rates(2)
    assert [rates.wait_s("alice", now=0) for _ in range(3)] == [0, 0, 30]
    assert rates.wait_s("bob", now=0) == 0
    assert rates.wait_s("alice", now=20) == pytest.approx(10)
    assert rates.wait_s("alice", now=30) == 0
    assert rates.wait_s("alice", now=30) == pytest.approx(30)
    assert [rates.wait_s("alice", now=10_000) for _ in range(3)] == [0, 0, 30]
    unlimited = Rates(0)
    assert {unlimited.wait_s("alice", now=0) for _ in range(1000)} == {0}


def test_host_reachable_without_keys_causes_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    for host in ("0.0.0.0", "::", "192.0.2.7", "node-3"):
        said = f"at {host} may ask without a key; set keys in {VARIABLE}"
        assert said in open_door(host, VARIABLE)
    assert {open_door(host, VARIABLE) for host in ("127.0.0.1", "localhost", "::1")} == {""}
    monkeypatch.setenv(VARIABLE, f"alice:{ALICE}")
    assert open_door("0.0.0.0", VARIABLE) == ""
