"""The guard fails tests that break the limits of unit tests, and no matching test is skipped."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.markers import can_match
from tests.unit_guard import Clock

pytest_plugins = ["pytester"]
# Plugins that the inner runs do not need; schemathesis takes more than a second to import.
WITHOUT = ("-p", "no:xdist", "-p", "no:cacheprovider", "-p", "no:schemathesis")

CONFTEST = """
import pytest
from tests.unit_guard import UnitGuard

def pytest_configure(config):
    guard = UnitGuard(only_units=True, limit_s=0.2)
    config.pluginmanager.register(guard, "guard-within")
    config.addinivalue_line("markers", "unit")
    config.addinivalue_line("markers", "model")

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("model") is None:
            item.add_marker("unit")
"""


@pytest.fixture
def guarded(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.syspathinsert(Path(__file__).resolve().parents[1])
    pytester.makeconftest(CONFTEST)
    # A substitute, so that the real vLLM is not imported.
    pytester.makepyfile(vllm="")
    return pytester


def run_within(guarded: pytest.Pytester, **files: str) -> pytest.RunResult:
    guarded.makepyfile(**files)
    return guarded.runpytest_inprocess(*WITHOUT)


@pytest.mark.process
def test_unit_test_that_breaks_a_limit_fails(guarded: pytest.Pytester) -> None:
    body = """
        import subprocess, time, pytest
        def test_process(): subprocess.run(["true"])
        def test_slow(): time.sleep(0.3)
        def test_import(): import vllm
        def test_quick(): pass
        @pytest.mark.model
        def test_other(): subprocess.run(["true"])
    """
    result = run_within(guarded, test_a=body)
    result.assert_outcomes(passed=2, failed=3)
    result.stdout.fnmatch_lines(
        [
            "*the test started a process (subprocess.Popen true), which a unit test may not*",
            "*the test took * s, more than 0.2, which a unit test may not*",
            "*the test imported vllm, which a unit test may not*",
        ]
    )


def test_file_of_unit_tests_that_imports_a_forbidden_package_fails(
    guarded: pytest.Pytester,
) -> None:
    said = run_within(guarded, test_a="import vllm\ndef test_a(): pass").stdout.str()
    assert "test_a.py imports vllm, which unit tests may not" in said


def test_clock_counts_sleep_and_own_work() -> None:
    clock = Clock()
    time.sleep(0.05)
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    assert 0.09 <= clock.seconds() < 1


def test_file_is_imported_only_if_one_of_its_tests_can_match(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    of_file, of_test = "pytestmark = pytest.mark.ray", "@pytest.mark.nightly\ndef test_a(): ..."
    texts = {
        "plain": "def test_a(): ...",
        "ray": of_file,
        "nightly ray": "pytestmark = [pytest.mark.ray, pytest.mark.nightly]",
        "one nightly": of_test,
        "one nightly of ray": f"{of_file}\n{of_test}",
        "a nightly case": f"{of_file}\nCASE = pytest.param(1, marks=pytest.mark.nightly)",
    }
    matching = {
        "unit": {"plain", "one nightly"},
        "not unit and not nightly": {"ray", "one nightly of ray", "a nightly case"},
        "nightly": {"nightly ray", "one nightly", "one nightly of ray", "a nightly case"},
        "not nightly": {"plain", "ray", "one nightly", "one nightly of ray", "a nightly case"},
        "nightly and durability": set(),
    }
    for name, text in texts.items():
        (tmp_path / f"{name}.py").write_text(text)
    for expression, expected in matching.items():
        with subtests.test(expression=expression):
            found = {name for name in texts if can_match(tmp_path / f"{name}.py", expression)}
            assert found == expected
