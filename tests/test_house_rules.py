"""Rules about the whole source tree."""

import ast
import re
from collections import Counter
from collections.abc import Mapping, Set
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
    "cluster/ray/map_tasks.py",
    "cluster/ray/session.py",
    "pipelines/indexing/staging/embed_sources.py",
    "pipelines/indexing/index_tasks.py",
    "pipelines/indexing/jobs.py",
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
# Packages and modules of serve/ from top to bottom: each imports only from the lines below it.
LAYERS = (
    {"client"},
    {"app"},
    {"graph"},
    {"http", "llm_app"},
    {"strategy"},
    {"pipeline", "references", "saved"},
    {"batches", "search"},
    {"answer", "question"},
    {"formats"},
    {"contracts"},
    {"llm", "support", "wording"},
)
MODULES = sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py"))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imported_names(path: Path, *, at_import: bool = False) -> frozenset[str]:
    """Return all names that a module imports, such as "serve.app" and "serve.app.build".

    With `at_import`, those in functions or for types are left out.
    """
    names: set[str] = set()
    waiting: list[ast.AST] = [tree_of(path)]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.Import):
                names.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                names.add(node.module or "")
                names.update(f"{node.module}.{alias.name}" for alias in node.names)
            for_types = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
            is_later = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or for_types
            if not (at_import and is_later):
                waiting.append(node)
    return frozenset(names)


def imported_packages(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported_names(path)}


def unit_of(name: str) -> str:
    """Return the package of a name: "serve.search" or "pipelines.train", otherwise "cluster"."""
    depth = 2 if name.startswith(("serve.", "pipelines.")) else 1
    return ".".join(name.split(".")[:depth])


@cache
def imports_between_packages() -> dict[str, set[str]]:
    imports: dict[str, set[str]] = {}
    for path in MODULES:
        unit = unit_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        imports.setdefault(unit, set()).update(map(unit_of, imported_names(path)))
    return {unit: (found & imports.keys()) - {unit} for unit, found in imports.items()}


def left_in_cycles(imports: Mapping[str, Set[str]]) -> dict[str, set[str]]:
    """Return the nodes in a cycle and those that import one (Kahn's algorithm)."""
    left = dict(imports)
    while free := [name for name, wanted in left.items() if not wanted & left.keys()]:
        for name in free:
            del left[name]
    return {name: set(wanted & left.keys()) for name, wanted in left.items()}


def test_imports_follow_the_layers_of_packages() -> None:
    upward = {
        str(path.relative_to(ROOT)): wrong
        for path in MODULES
        if (wrong := imported_packages(path) & FORBIDDEN[path.relative_to(ROOT).parts[0]])
    }
    assert upward == {}


def test_only_allowed_modules_import_ray() -> None:
    found = {str(path.relative_to(ROOT)) for path in MODULES if "ray" in imported_packages(path)}
    assert found == MAY_IMPORT_RAY


MOST_MODULES = 15


def test_folders_have_a_limited_number_of_modules() -> None:
    counts = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    too_full = {str(f.relative_to(ROOT)): n for f, n in counts.items() if n > MOST_MODULES}
    assert too_full == {}


MOST_LINES = 50


def lines_of_functions(path: Path) -> dict[str, int]:
    """Return the number of lines of each function, without those of nested functions."""
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


def test_functions_have_a_limited_number_of_lines() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{name}: {lines} lines"
        for path in MODULES
        for name, lines in lines_of_functions(path).items()
        if lines > MOST_LINES
    ]
    assert found == []


def test_imports_of_modules_are_acyclic() -> None:
    paths = {".".join(p.relative_to(ROOT).with_suffix("").parts): p for p in MODULES}
    imports = {
        name: imported_names(path, at_import=True) & paths.keys() for name, path in paths.items()
    }
    assert left_in_cycles(imports) == {}


def test_imports_of_packages_are_acyclic() -> None:
    """Packages of serve/ and pipelines/ count separately, and so do imports in functions."""
    assert left_in_cycles(imports_between_packages()) == {}


def test_layers_of_serve_import_downwards() -> None:
    level = {f"serve.{name}": position for position, names in enumerate(LAYERS) for name in names}
    upward = {
        (unit, other)
        for unit, found in imports_between_packages().items()
        for other in found & level.keys()
        if unit in level and level[other] <= level[unit]
    }
    assert upward == set()
    # A new package of serve/ needs a place in LAYERS.
    units = {unit for unit in imports_between_packages() if unit.startswith("serve.")}
    assert units - {"serve.__init__"} == level.keys()


def test_pytest_collects_every_folder_of_tests(pytestconfig: pytest.Config) -> None:
    """By default, pytest skips folders with some names, such as build."""
    left_out = pytestconfig.getini("norecursedirs")
    folders = {path.parent.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert [f for f in folders if any(fnmatch(f, pattern) for pattern in left_out)] == []


# Rich renders markup and emoji codes in these by default; commands/terminal.py turns that off.
RENDERS_MARKUP = re.compile(
    r"(?<![\w.])(Console|TextColumn|RichHandler|Panel|Status|Spinner)\(|"
    r"\bfrom_markup\(|^from rich(\.markup|\.prompt)? import|^import rich|"
    r"^from rich\.\S+ import .* as ",
    re.MULTILINE,
)
# Clients that read proxies from the environment by themselves, also for this machine.
MAKES_CLIENT = re.compile(
    r"\b(httpx\.((Async)?(Client|HTTPTransport)|get|post|put|patch|delete|head|request|stream)|"
    r"requests\.(get|post|put|patch|delete|head|request)|aiohttp\.(ClientSession|request)|"
    r"http\.client\.HTTPS?Connection)\((?!trust_env=False)|"
    r"^from (httpx|requests|aiohttp|http\.client) import .*(Client|Transport|Connection|request)\b|"
    r"\burl(open|retrieve)\b|\bbuild_opener\b",
    re.MULTILINE,
)


def modules_with(pattern: re.Pattern[str]) -> set[str]:
    found = (path for path in MODULES if pattern.search(path.read_text(encoding="utf-8")))
    return {str(path.relative_to(ROOT)) for path in found}


def test_only_the_factory_makes_consoles() -> None:
    assert modules_with(RENDERS_MARKUP) == {"commands/terminal.py"}


def test_only_the_factory_makes_http_clients() -> None:
    assert modules_with(MAKES_CLIENT) <= {"cluster/http_clients.py"}


def test_patterns_detect_each_way_to_bypass_the_factories() -> None:
    for pattern, texts in (
        (RENDERS_MARKUP, ("x = Console()", "import rich.console", "from rich import print")),
        (RENDERS_MARKUP, ("from rich.console import Console as C", "Text.from_markup('x')")),
        (MAKES_CLIENT, ("httpx.get('x')", "httpx.AsyncClient(timeout=1)", "requests.post('x')")),
        (MAKES_CLIENT, ("from httpx import Client", "urllib.request.urlopen('x')")),
    ):
        assert [text for text in texts if not pattern.search(text)] == []
    assert not MAKES_CLIENT.search("httpx.Client(trust_env=False, timeout=1)")
    assert not RENDERS_MARKUP.search("from rich.console import Console\nout.print(1)")
