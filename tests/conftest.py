from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

BEGUN = pytest.StashKey[float]()

# A busy machine's pause is no failure, and what failed once fails again.
settings.register_profile("citeray", deadline=None, derandomize=True)
settings.load_profile("citeray")

BESIDE_OTHERS = ("/test_embed_on_gpus.py", "/test_train_on_ray.py")
# Rounds of kills and stops, several nodes, full disks, stores, jobs on a cluster, training, the
# demo, the wheel, and what waits or draws for long: more than half of the time of all tests.
LONG = (
    "/several_nodes/",
    "/end_to_end/test_crashes.py",
    "/end_to_end/test_demo.py",
    "/end_to_end/test_embed_on_gpus.py",
    "/end_to_end/test_hostile_headers.py",
    "/end_to_end/test_hot_swap.py",
    "/end_to_end/test_index_build.py::test_a_killed_build",
    "/end_to_end/test_index_build.py::test_after_mending",
    "/end_to_end/test_index_build.py::test_damaged_sources",
    "/end_to_end/test_index_build.py::test_one_shard_and_four",
    "/end_to_end/test_index_build.py::test_the_other_sources",
    "/end_to_end/test_index_update.py",
    "/end_to_end/test_jobs.py",
    "/end_to_end/test_lost_node.py",
    "/end_to_end/test_no_token_no_entry.py",
    "/end_to_end/test_open_and_closed_rays.py",
    "/end_to_end/test_pools.py",
    "/end_to_end/test_ray_job.py",
    "/end_to_end/test_reproduce.py",
    "/end_to_end/test_role_models.py",
    "/end_to_end/test_service.py",
    "/end_to_end/test_slow_proxy.py",
    "/end_to_end/test_small_disk.py",
    "/end_to_end/test_stored_index.py",
    "/end_to_end/test_struck_graph.py",
    "/end_to_end/test_tensor_parallel.py",
    "/end_to_end/test_three_node_builds.py",
    "/end_to_end/test_train_on_ray.py",
    "/answers/test_premises.py",
    "/benchmarks/test_smallest.py::test_benchmark_runs",
    "/answers/test_real_citations.py",
    "/cluster/models/test_kept_models.py",
    "/cluster/models/test_openvino_runtime.py",
    "/cluster/models/test_store.py::test_a_gguf_model",
    "/cluster/ray/test_session.py::test_an_address_at_which",
    "/cluster/test_index.py::test_the_best_by_lucenes_bm25",
    "/evaluation/ablation/test_judged_runs.py",
    "/evaluation/ablation/test_reproduce.py::test_a_papers_table",
    "/evaluation/ablation/test_reproduce.py::test_biogen",
    "/evaluation/ablation/test_reproduce.py::test_biorag",
    "/evaluation/ablation/test_runs_go_on.py",
    "/faults/test_faults.py::test_many_more_rounds_of_faults",
    "/faults/test_faults.py::test_whatever_happens",
    "/hostile/test_injections.py::test_a_model_that_always_lies",
    "/hostile/test_pattern_time.py",
    "/hostile/test_planted_orders.py",
    "/hostile/test_the_api_keeps_its_word.py",
    "/hostile/test_xml_memory.py",
    "/pipelines/test_failing_store.py",
    "/pipelines/test_stored_index.py",
    "/pipelines/test_update_histories.py",
    "/pipelines/train/",
    "/pipelines/update/test_late_sources.py",
    "/pipelines/verify/test_damages.py::test_every_random_damage_is_named_by_its_file[five-hundred]",
    "/images/test_audit.py",
    "/images/test_build",
    "/images/test_containerfiles.py::test_the_builds_own_steps",
    # All of what is kept once more; tests/serve/saved/test_postgres.py has the short form.
    "[postgres",
    "/planning/measure/test_calibrate.py",
    "/protocol/test_protocol.py::test_the_protocol_holds_in_many_more_orders",
    # The page's first steps and a batch are tried in each run, what else it offers here.
    "/page/test_addresses.py",
    "/page/test_feedback_page.py",
    "/page/test_kept_page.py",
    "/page/test_tasks.py",
    "/page/test_verdict_shown.py",
    # The first screen, an answer and a batch are read by axe in each run; the other states here.
    *(
        f"/page/test_axe.py::test_no_violation_in_any_state_of_asking[{state}]"
        for state in ("names", "hinted", "passage", "by_hand", "refused", "compared")
    ),
    "/page/test_axe.py::test_no_violation_in_what_is_kept",
    "/page/test_axe.py::test_no_violation_in_answers_that_are_less",
    "/page/test_axe.py::test_no_violation_of_ours_in_the_documents_page",
    "/page/test_docs.py",
    "/protocol/test_protocol.py::test_without_the_compare_and_swap",
    "/test_wheel.py",
)


# After these, files are so short that no worker waits long for another's last.
LARGE = ("test_answers.py", "test_readme.py", "test_injections.py", "test_axe.py", "test_page.py")


def _turn(item: pytest.Item) -> int:
    """What starts Ray comes first: it takes longest, and one worker alone can do it."""
    return 0 if "end_to_end" in item.path.parts else 1 if item.path.name in LARGE else 2


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Files of long tests alone are not even imported where those are left out."""
    if config.option.markexpr != "not long" or collection_path.suffix != ".py":
        return None
    path = collection_path.as_posix()
    return any(part in path for part in LONG if "::" not in part) or None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_turn)
    for item in items:
        if any(part in f"{item.path.as_posix()}::{item.name}" for part in LONG):
            item.add_marker("long")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of several workers, a file's tests share one, and so do all that start Ray.

    More clusters at once would want more memory, and time out on two cores. Of more than two
    workers another may have those of several nodes, which wait for Ray rather than work, and
    BESIDE_OTHERS, small ones in folders of their own.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.partition("::")[0]
            waits = "/several_nodes/" in file or file.endswith(BESIDE_OTHERS)
            if waits and (config.getoption("numprocesses") or 0) > 2:
                return "several_nodes"
            return "end_to_end" if waits or "/end_to_end/" in file else file

    return ByFile(config, log)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--begin-within",
        type=float,
        metavar="SECONDS",
        help="Skip what is not begun by then, by name: a slow machine's run ends in time.",
    )


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.stash[BEGUN] = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    within = item.config.getoption("--begin-within")
    if within is not None and time.monotonic() - item.config.stash[BEGUN] > within:
        pytest.skip(f"not begun within {within:.0f} s")
