from __future__ import annotations

import json
from pathlib import Path

from tests.commands.run_here import run_here
from tests.serve.saved.kept import saved_at
from tests.serve.saved.watches.asking import check_supporting


def test_watch_commands_add_list_compare_and_remove(tmp_path: Path) -> None:
    url = (f"--set=serve.saved.url=sqlite:///{tmp_path}/saved/citeray.db", "--set=serve.port=9")
    asked = ("Does it help?", "--type", "yesno", "--filter", "year_from=2020", "--owner", "alice")
    code, out, _ = run_here("watch", "add", *asked, *url, "--json")
    added = json.loads(out)
    assert (code, added["request"]["filters"]) == (0, {"year_from": 2020})
    code, out, _ = run_here("watch", "list", *url)
    assert (code, "not asked yet" in out, "Does it help?" in out) == (0, True, True)
    code, out, err = run_here("watch", "list", "--owner", "bob", *url)
    assert (code, out, err.startswith("no saved questions")) == (0, "", True)
    assert run_here("watch", "list", "--owner", "bob", *url, "--json") == (0, "[]\n", "")
    saved = saved_at(tmp_path)
    check_supporting(saved, "v1", 1)
    check_supporting(saved, "v2", 1, 2)
    code, out, _ = run_here("watch", "diff", added["id"][:8], *url)
    assert code == 0
    assert "New evidence for the answer: PMID 2, Paper 2 (2002)." in out
    assert out.index("v2 (v2.xml.gz)") < out.index("v1 (v1.xml.gz)")
    code, out, _ = run_here("watch", "diff", added["id"], *url, "--json")
    assert json.loads(out)["history"][0]["diff"]["supporting_added"][0]["pmid"] == 2
    code, _, err = run_here("watch", "diff", "zz", *url)
    assert (code, "no saved questions have this id" in err) == (2, True)
    assert run_here("watch", "remove", added["id"], *url)[0] == 0
    assert saved.watches.list() == []


def test_watch_add_rejects_invalid_input(tmp_path: Path) -> None:
    url = (f"--set=serve.saved.url=sqlite:///{tmp_path}/saved/citeray.db", "--set=serve.port=9")
    for wrong, said in (
        (("A?", "--system", "best"), "unknown"),
        (("A?", "--filter", "colour=red"), "--filter"),
        (("A?", "--until", "soon"), "--until: 'soon' is not a day"),
        (("A?", "--webhook", "https://hooks.example.org/"), "serve.saved.webhook_hosts"),
        ((" ",), "question"),
    ):
        code, _, err = run_here("watch", "add", *wrong, *url)
        assert (code, said in err) == (2, True), err
