"""No code of a model is ever run: no pickles and no Python files.

What the model store refuses is tested in tests/cluster/models/test_store.py.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
import torch

from cluster.errors import CiteRayError, InputError
from cluster.models.adapters import model_folder
from cluster.models.encoder import Encoder
from cluster.models.store import ModelStore, as_transformers_folder
from cluster.models.tag_entities import EntityTagger
from cluster.settings.settings import load_settings
from evaluation.answers.compare_texts import BertScorer
from serve.support.check_entailment import NliSupport
from tests.security.planted import Planted
from tests.tiny_adapter import make_tiny_adapter
from tests.tiny_models import make_tiny_cross_encoder, make_tiny_encoder, make_tiny_tagger

pytestmark = pytest.mark.model

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("cluster", "pipelines", "serve", "evaluation", "planning", "commands")
FILES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))
RUN_CODE = {"pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal", "runpy", "imp"}
CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.load"}
UNSAFE = {"allow_pickle", "trust_remote_code", "shell"}
# Functions that load files from others, and the argument that makes each of them safe.
TOLD = {
    "from_pretrained": "SAFE",
    "SentenceTransformer": "SAFELY",
    "torch.load": "weights_only",
    "np.load": "allow_pickle",
}


def calls_of(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def running_code(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each call that can run the code it reads."""
    for node in ast.walk(tree):
        modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        yield from ((node.lineno, m) for m in modules if m.split(".")[0] in RUN_CODE)
    for name, call in calls_of(tree):
        if name in CALLS and not (name == "yaml.load" and "SafeLoader" in ast.unparse(tree)):
            yield call.lineno, name
        for keyword in call.keywords:
            switched_on = isinstance(keyword.value, ast.Constant) and keyword.value.value is True
            if keyword.arg in UNSAFE and switched_on:
                yield call.lineno, keyword.arg


def unsafe_loaders(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield (line, name) of each loader that is called without the argument that makes it safe."""
    for name, call in calls_of(tree):
        wanted = TOLD.get(name) or TOLD.get(name.rpartition(".")[2])
        said = ast.unparse(call) if wanted else ""
        # models/adapters.py requires safetensors before peft reads an adapter.
        is_peft = name == "PeftModel.from_pretrained"
        if wanted and not is_peft and wanted not in said and "**weights" not in said:
            yield call.lineno, name


@pytest.mark.parametrize("guilty", [running_code, unsafe_loaders])
def test_no_module_runs_code_that_it_reads(
    guilty: Callable[[ast.Module], Iterator[tuple[int, str]]],
) -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in FILES}
    assert len(trees) > 300
    found = [f"{path}: line {n}: {name}" for path in FILES for n, name in guilty(trees[path])]
    assert not found, "\n".join(found)


def test_module_that_runs_code_it_reads_is_detected() -> None:
    for guilty, text in (
        (running_code, "import cloudpickle"),
        (running_code, "from pickle import loads"),
        (running_code, "eval(text)"),
        (running_code, "yaml.load(file)"),
        (running_code, "np.load(path, allow_pickle=True)"),
        (unsafe_loaders, "AutoModel.from_pretrained(folder)"),
        (unsafe_loaders, "torch.load(path)"),
    ):
        assert list(guilty(ast.parse(text))), text


@pytest.fixture
def mark(tmp_path: Path) -> Path:
    return tmp_path / "the-code-was-run"


def code(mark: Path) -> str:
    return f"import pathlib\npathlib.Path({str(mark)!r}).touch()\n"


def pickled_only(folder: Path, mark: Path) -> Path:
    """Replace the weights by pickles under each name that loaders look for."""
    for weights in folder.rglob("*.safetensors"):
        weights.unlink()
    for name in ("pytorch_model.bin", "adapter_model.bin", "model.pkl", "training_args.bin"):
        torch.save(Planted(mark), folder / name)
    return folder


def with_own_code(folder: Path, mark: Path) -> Path:
    """Let the model name its own classes, in a Python file next to it."""
    (folder / "own.py").write_text(code(mark))
    config = json.loads((folder / "config.json").read_text())
    classes = ("AutoConfig", "AutoModel", "AutoModelForTokenClassification")
    named = dict.fromkeys((*classes, "AutoModelForSequenceClassification"), "own.Own")
    config |= {"model_type": "own", "auto_map": named, "architectures": ["Own"]}
    (folder / "config.json").write_text(json.dumps(config))
    tokenizer_config = json.loads((folder / "tokenizer_config.json").read_text())
    tokenizer_config |= {
        "auto_map": {"AutoTokenizer": ["own.Own", "own.Own"]},
        "tokenizer_class": "Own",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer_config))
    return folder


def load_encoder(folder: Path) -> object:
    return Encoder(folder, device="cpu")


LOADERS: dict[str, tuple[Callable[[Path], Path], Callable[[Path], object]]] = {
    "encoder": (make_tiny_encoder, load_encoder),
    "recogniser": (
        lambda p: make_tiny_tagger(p, ["a", "drug"]),
        lambda p: EntityTagger.load(p, "cpu"),
    ),
    "claim checker": (
        lambda p: make_tiny_cross_encoder(p, labels=3),
        lambda p: NliSupport(str(p)),
    ),
    "language model": (make_tiny_cross_encoder, lambda p: BertScorer(p)),
}


def test_model_with_code_is_refused_and_its_code_not_run(
    tmp_path_factory: pytest.TempPathFactory, mark: Path, subtests: pytest.Subtests
) -> None:
    for kind, spoil in product(LOADERS, [pickled_only, with_own_code]):
        with subtests.test(spoil=spoil, kind=kind):
            tmp_path = tmp_path_factory.mktemp("case")
            make, load = LOADERS[kind]
            folder = spoil(make(tmp_path), mark)
            with pytest.raises(InputError) as refused:
                load(folder)
            assert str(folder) in str(refused.value)
            assert "\n" not in str(refused.value)
            assert not mark.exists()


def test_module_in_an_encoder_is_not_imported(tmp_path: Path, mark: Path) -> None:
    folder = make_tiny_encoder(tmp_path)
    (folder / "own.py").write_text(code(mark))
    modules = json.loads((folder / "modules.json").read_text())
    modules[-1]["type"] = "own.Own"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match="asks for code of its own to be run"):
        load_encoder(folder)
    assert not mark.exists()


def test_pickle_is_refused_under_any_name(tmp_path: Path, mark: Path) -> None:
    def plant(path: Path) -> Path:
        torch.save(Planted(mark), path)
        return path

    for name in ("m.pkl", "m.pickle", "m.bin", "m.pt", "m.ckpt", "m.joblib"):
        with pytest.raises(InputError, match="only as pickle"):
            ModelStore(tmp_path / "store").resolve(f"file:{plant(tmp_path / name)}")
    with pytest.raises(CiteRayError, match=r"cannot read .* as GGUF"):
        as_transformers_folder(plant(tmp_path / "model.gguf"))
    folder = plant(make_tiny_encoder(tmp_path) / "model.safetensors").parent
    with pytest.raises(InputError, match="does not load as an encoder"):
        load_encoder(folder)
    assert not mark.exists()


@pytest.mark.parametrize("how", ["pickled", "disguised"])
def test_pickled_adapter_is_refused(how: str, tmp_path: Path, mark: Path) -> None:
    base = make_tiny_encoder(tmp_path / "base")
    adapter = make_tiny_adapter(base, tmp_path / "adapter")
    if how == "pickled":
        pickled_only(adapter, mark)
    else:
        torch.save(Planted(mark), adapter / "adapter_model.safetensors")
    chosen = [f"encoder.model=file:{base}", f"encoder.adapter=file:{adapter}", "encoder.sha256="]
    settings = load_settings(overrides=chosen)
    with pytest.raises(InputError, match="adapter"):
        model_folder(settings.encoder, ModelStore(tmp_path / "store"))
    assert not mark.exists()
