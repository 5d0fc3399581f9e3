"""Rules of the house that no single module can show."""

import ast
import re
from collections import Counter
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

# Parsing all modules takes seconds.
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("cluster", "pipelines", "serve", "evaluation", "planning", "commands")
MAY_IMPORT_RAY = {
    "cluster/ray/jobs.py",
    "cluster/ray/session.py",
    "pipelines/build/embed_sources.py",
    "pipelines/build/index_tasks.py",
    "pipelines/build/jobs.py",
    "pipelines/train/ray_workers.py",
    "serve/app.py",
    "serve/graph/deployments.py",
    "serve/llm_app.py",
    "serve/graph/ray_meters.py",
}
FORBIDDEN = {
    "cluster": {"pipelines", "serve", "evaluation", "planning", "commands"},
    "pipelines": {"serve", "evaluation", "planning", "commands"},
    "serve": {"pipelines", "evaluation", "planning", "commands"},
    "evaluation": {"pipelines", "planning", "commands"},
    "planning": {"evaluation", "commands"},
    "commands": set(),
}
MODULES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))


@cache
def parsed(source: str) -> ast.Module:
    return ast.parse(source)


def tree_of(path: Path) -> ast.Module:
    return parsed(path.read_text(encoding="utf-8"))


@cache
def imported_packages(path: Path) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add(node.module or "")
    return frozenset(name.split(".")[0] for name in names)


def test_imports_go_one_way() -> None:
    upward = {
        str(path.relative_to(ROOT)): wrong
        for path in MODULES
        if (wrong := imported_packages(path) & FORBIDDEN[path.relative_to(ROOT).parts[0]])
    }
    assert upward == {}


def test_only_the_wiring_imports_ray() -> None:
    found = {str(path.relative_to(ROOT)) for path in MODULES if "ray" in imported_packages(path)}
    assert found == MAY_IMPORT_RAY


def test_nothing_unsafe_is_loaded() -> None:
    unsafe = re.compile("trust_remote_code=True|allow_pickle=True")
    found = [
        str(path.relative_to(ROOT))
        for path in MODULES
        if "pickle" in imported_packages(path) or unsafe.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []


MOST_MODULES = 15


def test_a_folder_holds_few_modules() -> None:
    counts = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    too_full = {str(f.relative_to(ROOT)): n for f, n in counts.items() if n > MOST_MODULES}
    assert too_full == {}


MOST_LINES = 50


def lines_of_functions(path: Path) -> dict[str, int]:
    """Lines from `def` to the end, by function; one within another counts by itself alone."""
    found: dict[str, int] = {}

    def visit(node: ast.AST) -> int:
        inside = sum(visit(child) for child in ast.iter_child_nodes(node))
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return inside
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        found[f"{node.lineno} {node.name}"] = lines - inside
        return lines

    visit(tree_of(path))
    return found


def test_a_function_fits_a_screen() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{name}: {lines} lines"
        for path in MODULES
        for name, lines in lines_of_functions(path).items()
        if lines > MOST_LINES
    ]
    assert found == []


def test_no_imports_go_in_a_circle() -> None:
    names = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in MODULES}
    imports = {name: imported_modules(path) & names.keys() for name, path in names.items()}
    # Kahn's: what imports nothing that is left goes; what stays stands in a circle or above one.
    left = dict(imports)
    while free := [name for name, wanted in left.items() if not wanted & left.keys()]:
        for name in free:
            del left[name]
    assert left == {}


def imported_modules(path: Path) -> set[str]:
    """What a module imports when it is imported itself: not in its functions, nor for types."""
    found: set[str] = set()
    waiting: list[ast.AST] = [tree_of(path)]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.ImportFrom):
                found.add(node.module or "")
                found.update(f"{node.module}.{alias.name}" for alias in node.names)
            elif isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not for_types:
                waiting.append(node)
    return found


def test_pytest_goes_into_every_folder_of_tests(pytestconfig: pytest.Config) -> None:
    """By default it leaves out folders of some names, such as build, which is a package's here."""
    left_out = pytestconfig.getini("norecursedirs")
    folders = {path.parent.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert [f for f in folders if any(fnmatch(f, pattern) for pattern in left_out)] == []


# What renders text with Rich's markup and emoji codes unless told otherwise: `commands/terminal.py`
# makes consoles and columns that do not.
RENDERERS = {
    "Console", "TextColumn", "RichHandler", "Panel", "Prompt", "Confirm", "Status", "Spinner",
    "from_markup",
}  # fmt: skip
MAKES_CONSOLES = "commands/terminal.py"


def calls_of_rich(source: str) -> list[str]:
    """`line name` of what renders markup: a call of RENDERERS, or `rich.print` imported."""
    found: list[str] = []
    if "rich" not in source:
        return found
    from_rich: set[str] = {"from_markup"}
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "rich":
            from_rich.update(alias.asname or alias.name for alias in node.names)
            renamed = {a.name for a in node.names if a.asname} & RENDERERS
            found += [f"{node.lineno} {name}" for name in sorted(renamed)]
            if node.module in ("rich", "rich.markup"):
                found.append(f"{node.lineno} from {node.module}")
        elif isinstance(node, ast.Import):
            found += [
                f"{node.lineno} {a.name}" for a in node.names if a.name.split(".")[0] == "rich"
            ]
        elif isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if name in RENDERERS and name in from_rich:
                found.append(f"{node.lineno} {name}")
    return found


def test_only_the_factory_makes_consoles() -> None:
    found = {
        str(p.relative_to(ROOT)): calls
        for p in MODULES
        if (calls := calls_of_rich(p.read_text(encoding="utf-8")))
    }
    assert found.keys() == {MAKES_CONSOLES}, found


def test_the_rule_of_consoles_finds_each_way_around_the_factory() -> None:
    ways = [
        "from rich.console import Console\nConsole()",
        "from rich.console import Console as C\nC()",
        "import rich.console\nrich.console.Console()",
        "from rich import print\nprint('x')",
        "from rich.progress import TextColumn\nTextColumn('x')",
        "from rich.text import Text\nText.from_markup('x')",
        "from rich.markup import escape\nescape('x')",
        "from rich.logging import RichHandler\nRichHandler()",
    ]
    assert [way for way in ways if not calls_of_rich(way)] == []
    taken = "from rich.console import Console\ndef f(out: Console) -> None:\n    out.print(1)"
    assert calls_of_rich(taken) == []


# Clients that read proxies from the environment by themselves. `cluster/http_clients.py` and
# `cluster/requests_adapter.py` leave them out for this machine.
CLIENTS = {
    "httpx": {
        "Client", "AsyncClient", "HTTPTransport", "AsyncHTTPTransport",
        "get", "post", "put", "patch", "delete", "head", "options", "request", "stream",
    },
    "requests": {"get", "post", "put", "patch", "delete", "head", "options", "request"},
    "aiohttp": {"ClientSession", "request"},
    "urllib.request": {"urlopen", "urlretrieve", "build_opener"},
    "http.client": {"HTTPConnection", "HTTPSConnection"},
}  # fmt: skip
MAKES_CLIENTS = {"cluster/http_clients.py"}


def clients_made(source: str) -> list[str]:
    """`line name` of each client of CLIENTS that is made without `trust_env=False`."""
    found: list[str] = []
    if not any(module in source for module in CLIENTS):
        return found
    names = {f"{module}.{name}" for module, held in CLIENTS.items() for name in held}
    for node in ast.walk(parsed(source)):
        if isinstance(node, ast.ImportFrom):
            imported = {f"{node.module}.{alias.name}" for alias in node.names}
            found += [f"{node.lineno} {name}" for name in sorted(imported & names)]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in names:
            alone = any(
                k.arg == "trust_env" and ast.unparse(k.value) == "False" for k in node.keywords
            )
            if not alone:
                found.append(f"{node.lineno} {ast.unparse(node.func)}")
    return found


def test_only_the_factory_makes_http_clients() -> None:
    found = {
        str(p.relative_to(ROOT)): clients
        for p in MODULES
        if (clients := clients_made(p.read_text(encoding="utf-8")))
    }
    assert found.keys() - MAKES_CLIENTS == set(), found


def test_the_rule_of_clients_finds_each_way_around_the_factory() -> None:
    ways = [
        "import httpx\nhttpx.get('x')",
        "import httpx\nhttpx.AsyncClient(timeout=1)",
        "from httpx import Client\nClient()",
        "import requests\nrequests.post('x')",
        "import urllib.request\nurllib.request.urlopen('x')",
        "from urllib.request import urlopen",
        "import aiohttp\naiohttp.ClientSession()",
    ]
    assert [way for way in ways if not clients_made(way)] == []
    assert clients_made("import httpx\nhttpx.Client(trust_env=False, timeout=1)") == []
