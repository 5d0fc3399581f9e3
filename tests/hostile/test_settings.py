"""Hostile settings are refused with exit code 2 and one line, quickly and with little memory."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import pytest

from cluster.errors import InputError
from cluster.settings.read_config import MAX_CONFIG_BYTES
from cluster.settings.settings import load_settings
from tests.hostile.cpu_time import cpu_within
from tests.hostile.hostile_sets import MAX_SENTENCE

LAUGHS = ", ".join(
    f"{letter}: &{letter} [{','.join([f'*{before}' if before else 'ha'] * 9)}]"
    for before, letter in zip(["", *"abcdefghijk"], "abcdefghijkl", strict=True)
)


def refused(config: str | Path | None, *overrides: str) -> str:
    with cpu_within(5), pytest.raises(InputError) as caught:
        load_settings(config, overrides)
    sentence = str(caught.value)
    assert "\n" not in sentence
    assert len(sentence) <= MAX_SENTENCE
    return sentence


VALUES = {
    "laughs": f"{{{LAUGHS}}}",
    "itself": "&a [*a]",
    "itself by key": "&a {shards: *a}",
    "deep closed list": "[" * 300 + "]" * 300,
    "deep map": "{a: " * 300 + "1" + "}" * 300,
    "object": "!!python/object/apply:os.system ['touch pwned']",
    "name": "!!python/name:os.system",
    "own tag": "!own 1",
    "no month": "2001-99-99",
    "no number": "!!int x",
    "no bytes": "!!binary x",
    "long number": "9" * 5000,
    "large hexadecimal": f"0x{'f' * 20_000}",
    "not a number": ".nan",
    "a list for a key": "{[1]: 2}",
    "two values": "4\nvalue: 5",
    "NUL": '"a\\0b"',
    "half a character": '"\\ud800"',
    "a byte that is no text": "\udc80",
}


KEYS = ("index.shards", "index.path", "llm.engine", "recogniser.labels")


@pytest.mark.slow
def test_hostile_value_is_refused_in_one_line(subtests: pytest.Subtests) -> None:
    for key, value in zip(cycle(KEYS), VALUES.values(), strict=False):
        with subtests.test(key=key, value=value):
            assert key in refused(None, f"{key}={value}")


def test_values_are_not_executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refused(None, f"llm.engine={VALUES['object']}")
    refused(None, "llm.engine=!!python/object/new:subprocess.Popen [[touch, pwned]]")
    assert list(tmp_path.iterdir()) == []


def test_hostile_key_is_refused_in_one_line(subtests: pytest.Subtests) -> None:
    for override in [
        ".".join(["a"] * 5000) + "=1",
        "x" * 100_000 + "=1",
        "index.hnsw_m" * 100 + "=" + "x" * 100_000,
        "index.shards=" + "x" * 100_000,
        "index..shards=1",
        "",
    ]:
        with subtests.test(override=override):
            refused(None, override)


@pytest.mark.slow
def test_hostile_config_file_is_refused_in_one_line(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    path = tmp_path / "hostile.yaml"
    for content in [
        b"index: \xff\xfe",
        b"index:\0",
        b"index: {shards: 3}\n" * 2 + b"\x1b[2J",
        f"x: {{{LAUGHS}}}\nllm: {{engine: *l}}".encode(),
        b"- " * 3000,
        b"{" * 100_000,
        b"#" * (MAX_CONFIG_BYTES + 1),
        b"%TAG ! tag:yaml.org,2002:python/\n---\n!name:os.system",
        b"index: !!python/object/apply:os.system [ls]",
        b"serve: [" + b"1," * 20_000 + b"1]",
        "\n".join(f"k{n}: 1" for n in range(9_000)).encode(),
    ]:
        with subtests.test(content=content):
            path.write_bytes(content)
            assert "hostile.yaml" in refused(path)


def test_config_that_is_not_a_file_is_refused_in_one_line(subtests: pytest.Subtests) -> None:
    for name in ["x" * 5000, "\udc80", "a\0b", "/dev/zero", "/", "", "../.."]:
        with subtests.test(name=name):
            assert "--config" in refused(name)


def test_yaml_aliases_are_accepted(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text("serve: {encoder: &s {deadline_s: 7}, shard: *s, writer: {<<: *s, batch: 2}}")
    serve = load_settings(path).serve
    assert {serve.encoder.deadline_s, serve.shard.deadline_s, serve.writer.deadline_s} == {7}


@pytest.mark.slow
def test_random_values_are_accepted_or_refused() -> None:
    dice = random.Random(0)
    pieces = [*"[]{}&*!|>'\"%@`#-?:, \\a1~é\t", "<<", ": ", "!!", "0x", ".inf", "1e9"]
    keys = ("index.shards", "llm.engine", "serve.http.cors_origins", "index.path", "support", "")
    for _ in range(150):
        value = "".join(dice.choices(pieces, k=dice.randrange(1, 30)))
        with suppress(InputError):
            load_settings(None, [f"{dice.choice(keys)}={value}"])
