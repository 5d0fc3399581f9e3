import asyncio
from functools import partial

import pytest

from cluster.errors import InputError
from cluster.settings.settings import Settings, load_settings
from cluster.settings.used_models import used_models
from serve.llm.model_roles import (
    ModelRoles,
    Role,
    find_models,
    in_place_of_the_writer,
    serves_models,
)
from serve.llm_app import build_llm_app, llm_options, served_here, served_model
from tests.serve.chat_endpoint import ChatEndpoint, chat_endpoint

pytestmark = pytest.mark.model

HELLO = [{"role": "user", "content": "Hello"}]
ZEPHYR = "{kind: vllm, model: 'hf:castorini/rank_zephyr_7b_v1_full@main', model_id: zephyr"


def settings_with(*models: str, kind: str = "none") -> Settings:
    return load_settings(None, [f"llm.kind={kind}", *(f"models.{model}" for model in models)])


def remote(endpoint: ChatEndpoint, model_id: str, more: str = "") -> str:
    return f"{{kind: url, url: '{endpoint.url}', model_id: {model_id}{more}}}"


def ask(models: ModelRoles, role: Role, turn: int = 0) -> str:
    model = models.of(role, turn)
    assert model is not None
    return asyncio.run(model.chat(HELLO, max_tokens=8, temperature=0.0))  # type: ignore[arg-type]


def test_roles_use_their_own_models() -> None:
    with chat_endpoint("one") as one, chat_endpoint("two") as two, chat_endpoint("[1]") as rank:
        rewriters = f"rewriters=[{remote(one, 'a')}, {remote(two, 'b')}]"
        models = find_models(settings_with(rewriters, f"ranker={remote(rank, 'r')}"))
        said = [ask(models, "rewriter", turn) for turn in range(3)]
        assert said == ["one", "two", "one"]
        assert ask(models, "ranker") == "[1]"
    assert (one.asked[0]["model"], two.asked[0]["model"]) == ("a", "b")
    assert models.of("writer") is None


def test_role_without_a_model_uses_the_writer() -> None:
    with chat_endpoint("mine") as endpoint:
        url = ["llm.kind=url", f"llm.url={endpoint.url}"]
        models = find_models(load_settings(None, url))
        assert [ask(models, role) for role in ("writer", "rewriter", "ranker")] == ["mine"] * 3


def test_judge_is_not_part_of_the_graph() -> None:
    settings = settings_with(f"judge={ZEPHYR}}}")
    assert not serves_models(settings)
    assert served_here(settings) == {}
    assert find_models(settings).every() == []
    with pytest.raises(InputError, match="this cluster serves no language model"):
        build_llm_app(settings)


def test_completion_model_gets_the_joined_texts() -> None:
    with chat_endpoint("It does.") as endpoint:
        ranker = remote(endpoint, "biogpt", ", completion: true")
        model = find_models(settings_with(f"ranker={ranker}")).of("ranker")
        assert model is not None
        messages = [{"role": "system", "content": "Continue."}, *HELLO]
        heard: list[str] = []
        chat = partial(model.chat, messages, max_tokens=8, temperature=0.0)
        assert asyncio.run(chat()) == "It does."
        said = asyncio.run(chat(say=heard.append))
        shares = asyncio.run(chat(weigh=("yes", "no")))
    assert [body["prompt"] for body in endpoint.asked] == ["Continue.\n\nHello"] * 3
    assert all("messages" not in body for body in endpoint.asked)
    assert (said, heard) == ("It does.", ["It does."])
    assert 0.8 < float(shares.split('"yes": ')[1].split(",")[0]) < 0.9


def test_served_models_are_deployments_of_one_application() -> None:
    settings = settings_with(
        f"ranker={ZEPHYR}, tensor_parallel: 2, engine: {{max_model_len: 4096}}}}", kind="vllm"
    )
    served = served_here(settings)
    assert list(served) == ["", "ranker"]
    assert served["ranker"].llm.engine == {"max_model_len": 4096}
    assert served[""].llm.model == settings.llm.model
    names = [llm_options(own, name)["name"] for name, own in served.items()]
    assert names == ["LanguageModel", "LanguageModel-ranker"]
    assert len(llm_options(served["ranker"], "ranker")["placement_group_bundles"]) == 2
    assert len(find_models(settings, served_model).every()) == 2


def test_role_can_have_its_own_replica_settings() -> None:
    stage = "{min_replicas: 2, max_replicas: 2, cpus: 3, gpus: 1, max_ongoing: 4, deadline_s: 9}"
    settings = settings_with(f"ranker={ZEPHYR}, stage: {stage}}}")
    ranker = settings.models.ranker
    assert ranker is not None
    own = in_place_of_the_writer(settings, ranker)
    assert (own.serve.llm.gpus, own.serve.llm.min_replicas) == (1, 2)
    assert (own.llm.kind, own.llm.model_id) == ("vllm", "zephyr")
    assert own.llm.ideal_tokens == settings.llm.ideal_tokens


def test_models_of_roles_are_downloaded() -> None:
    found = used_models(settings_with(f"rewriters=[{ZEPHYR}}}]", f"judge={ZEPHYR}}}"))
    assert found["rewriter-0"] == found["judge"] == "hf:castorini/rank_zephyr_7b_v1_full@main"


def test_invalid_role_settings_are_rejected() -> None:
    for role, message in [
        ("{kind: none, model_id: m}", "remove the role"),
        ("{kind: url, model_id: m}", "kind url needs url"),
        ("{kind: vllm, model_id: m}", "kind vllm needs model"),
    ]:
        with pytest.raises(InputError, match=rf"models\.ranker.*{message}"):
            settings_with(f"ranker={role}")
