"""`soft agents`: which agents there are, how each is started, and how to write a launch profile."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from soft.errors import SoftError


@click.group(invoke_without_command=True)
@click.option("--placeholders", is_flag=True, help="The placeholders that a launch profile may use.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
@click.pass_context
def agents(ctx: click.Context, placeholders: bool, as_json: bool) -> None:
    """List the agents that have a launch profile; show one.

    A launch profile is a TOML file of about ten lines that says how an agent is started. Profiles are looked for beside
    the binary, one directory up, in ./agents and among our own; `--profile FILE` names any other.

    \b
    Example:
      soft agents
      soft agents show ovs-vswitchd      # a model for a profile of your own
      soft agents --placeholders
    """
    if ctx.invoked_subcommand is not None:
        return
    if placeholders:
        _placeholders(as_json)
        return
    rows = _rows()
    if as_json:
        click.echo(json.dumps({"agents": rows}, indent=2))
        return
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        click.echo(f"{row['name']:{width}}  {row['summary'] or row.get('problem', '')}")


@agents.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def show(name: str, as_json: bool) -> None:
    """The launch profile that starts the agent NAME (or the binary at a path).

    \b
    Example:
      soft agents show vswitch
    """
    import msgspec

    from soft.launch.find import profile_for

    profile = profile_for(name)
    if as_json:
        click.echo(json.dumps({**msgspec.to_builtins(profile), "source": profile.source}, indent=2))
        return
    click.echo(f"# {profile.source}")
    try:
        click.echo(Path(profile.source).read_text(), nl=False)
    except OSError as error:
        raise SoftError(f"Cannot read {profile.source}: {error.strerror}.") from None


def _placeholders(as_json: bool) -> None:
    from soft.launch.placeholders import MEANING

    if as_json:
        click.echo(json.dumps({"placeholders": MEANING}, indent=2))
        return
    width = max(map(len, MEANING)) + 2
    for name, meaning in MEANING.items():
        click.echo(f"{'{' + name + '}':{width}}  {meaning}")


def _rows() -> list[dict[str, Any]]:
    """A row for each name; a profile that cannot be read is listed with its problem."""
    from soft.launch.find import names_to_list, profiles
    from soft.launch.profile import read_profile

    rows: dict[str, dict[str, Any]] = {}
    for path in profiles():
        try:
            profile = read_profile(path)
        except SoftError as error:
            rows.setdefault(path.stem, {"name": path.stem, "summary": "", "profile": str(path), "problem": str(error)})
            continue
        for name in names_to_list(profile):
            rows.setdefault(name, {"name": name, "summary": profile.summary, "profile": str(path)})
    return list(rows.values())
