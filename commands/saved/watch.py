"""`citeray watch`: saved questions, and what changed in their answers."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import typer
from rich.text import Text

from cluster.errors import InputError
from commands.context import Config, Json, Overrides, make_context
from commands.options import (
    DesignOption,
    FilterOption,
    SystemOption,
    Until,
    check_options,
    explain_options,
    read_filters,
)
from commands.saved.kept_here import OwnerOption, open_stores
from serve.http.workbench.watch_forms import WatchRequest
from serve.http.workbench.watches_api import describe_watch, request_fields, summarise_watch
from serve.saved.stores import Saved

watch = typer.Typer(
    help="Manage saved questions, which are asked again after each new index version.",
    no_args_is_help=True,
    add_completion=False,
)
WatchId = Annotated[str, typer.Argument(help="The saved question's id, or a unique prefix of it.")]


@watch.command("add")
def add(
    question: Annotated[str, typer.Argument(help="The question, in plain English.")],
    question_type: Annotated[
        str, typer.Option("--type", help="yesno, factoid, list or summary (default: detected).")
    ] = "unknown",
    system: SystemOption = None,
    filters: FilterOption = None,
    until: Until = None,
    designs: DesignOption = None,
    webhook: Annotated[
        str, typer.Option(help="URL to notify of changes; serve.saved.webhook_hosts must allow it.")
    ] = "",
    owner: Annotated[str, typer.Option(help="Name of the API key that may see it.")] = "",
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Save a question. A running endpoint asks it at once; otherwise use `citeray watch run`."""
    from pydantic import ValidationError

    context = make_context(config, overrides, json)
    chosen = check_options(context, system, question_type)
    if chosen.here:
        raise InputError(
            f"--system {system}: the endpoint does not know that file; name it in serve.systems"
        )
    asked: dict[str, Any] = {"question": question, "type": question_type, "system": chosen.system}
    asked |= {"filters": read_filters(filters, until, designs), "webhook": webhook}
    saved = open_stores(context)
    try:
        request = WatchRequest.model_validate(asked)
    except ValidationError as error:
        raise InputError(explain_options(error.errors())) from error
    fields = request_fields(request, saved, chosen.system)
    added = saved.watches.add(owner, fields, webhook)
    if json:
        context.print_json(summarise_watch(added).model_dump())
    else:
        context.out.print(f"{added.id}  {added.question}", soft_wrap=True)


@watch.command("list")
def list_all(
    owner: OwnerOption = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """List the saved questions, newest first, with the time of each one's last check."""
    context = make_context(config, overrides, json)
    found = [summarise_watch(item) for item in open_stores(context).watches.list(owner)]
    if json:
        context.print_json([item.model_dump() for item in found])
        return
    if not found:
        context.log.print("no saved questions; save one with `citeray watch add QUESTION`")
    for item in found:
        state = f"{item.index_version} {item.checked}" if item.checked else "not asked yet"
        line = Text(f"{item.id}  {state}  {item.question}")
        if item.error:
            line.append(f"  {item.error}", style="red")
        context.out.print(line, soft_wrap=True)


@watch.command("diff")
def diff(
    watch_id: WatchId,
    limit: Annotated[
        int, typer.Option(min=1, max=500, help="Number of versions to show, newest first.")
    ] = 10,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Show how the answer to a saved question changed, version by version."""
    context = make_context(config, overrides, json)
    saved = open_stores(context)
    found = describe_watch(saved, whole_id(saved, watch_id), None, limit)
    if json:
        context.print_json(found.model_dump(mode="json"))
        return
    context.out.print(found.question, style="bold", soft_wrap=True)
    for check in found.history:
        context.out.print(f"{check.index_version} ({check.last_source}), {check.created}")
        for line in check.changes:
            context.out.print(f"  {line}", soft_wrap=True)
    if not found.history:
        context.out.print("not asked yet")
    if found.error:
        context.out.print(f"last check failed: {found.error}", style="red")


@watch.command("remove")
def remove(
    watch_id: WatchId,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Permanently remove a saved question and its history."""
    context = make_context(config, overrides, json)
    saved = open_stores(context)
    gone = whole_id(saved, watch_id)
    saved.watches.delete(gone)
    if json:
        context.print_json({"removed": gone})
    else:
        context.out.print(f"removed {gone}")


@watch.command("run")
def run(
    most: Annotated[
        int | None, typer.Option(min=1, help="Maximum number of questions (default: all).")
    ] = None,
    config: Config = None,
    overrides: Overrides = None,
    json: Json = False,
) -> None:
    """Ask the saved questions against the published index now, without an endpoint.

    At most serve.saved.checks_per_minute questions are asked per minute, longest unasked first. An
    interrupted run resumes when run again. A running endpoint does this by itself.
    """
    from serve.client.open_client import check_same_store
    from serve.client.run_graph import served_models
    from serve.graph.load_stages import open_manifest
    from serve.graph.local_graph import local_answerer
    from serve.http.workbench.ask_service import ServiceAsk
    from serve.saved.watches.check_watches import Budget, check_watches

    context = make_context(config, overrides, json)
    settings, saved = context.settings, open_stores(context)
    check_same_store(settings, "index.path")
    version = open_manifest(settings).version
    waiting = saved.watches.waiting(version)
    context.log.print(f"{waiting} saved questions to ask against {version}")
    done = {"asked": 0, "notable": 0, "failed": 0}
    if waiting:
        with served_models(settings) as models:
            answerer = local_answerer(settings, models)
            ask = ServiceAsk(answerer, settings.serve.system)
            budget = Budget(settings.serve.saved.checks_per_minute, most)
            checked = asyncio.run(check_watches(saved.watches, ask, version, budget))
        done = {name: getattr(checked, name) for name in done}
    if json:
        context.print_json({"index_version": version, **done})
    else:
        words = "{asked} asked, {notable} with a relevant change, {failed} failed"
        context.out.print(words.format(**done))
    raise typer.Exit(1 if done["failed"] else 0)


def whole_id(saved: Saved, begins: str) -> str:
    """Return the id with the prefix `begins`; raise InputError if there is not exactly one."""
    found = [item.id for item in saved.watches.list() if item.id.startswith(begins)]
    if len(found) != 1 or not begins:
        count = "no" if not found else f"{len(found)}"
        raise InputError(
            f"{begins}: {count} saved questions have this id; see `citeray watch list`"
        )
    return found[0]
