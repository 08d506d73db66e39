"""The `soft` command: a group whose commands are imported when they are called, so that --help is instant."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import click

from soft import __version__
from soft.errors import SoftError

# Command → the sentence that `soft --help` shows. The module soft.cli.<command> holds a click command of that name.
COMMANDS = {
    "explore": "Follow every path of an agent binary through a scenario; write a bundle.",
    "crosscheck": "Compare bundles: the inputs that two agents answer differently.",
    "run": "Send a scenario with given values to a live agent; print its trace.",
    "verify": "Check a bundle's predictions on the live agent.",
    "replay": "Send the findings of a crosscheck to the live agents.",
    "report": "Make the pages of a crosscheck again, or compare it with an older one.",
    "bundle": "Look into a bundle: show, audit, check, export.",
    "snapshot": "Freeze an agent after its handshake, to explore it elsewhere.",
    "tests": "List the scenarios; show one.",
    "agents": "List the agents that have a launch profile; show one.",
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in COMMANDS if importlib.util.find_spec(f"soft.cli.{name}") is not None]

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS or importlib.util.find_spec(f"soft.cli.{name}") is None:
            return None
        command = getattr(importlib.import_module(f"soft.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(ctx)])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="soft")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def soft(ctx: click.Context, debug: bool) -> None:
    """Find the inputs on which two OpenFlow switches behave differently.

    \b
    Example:
      soft explore agents/build/reference --test packet_out
      soft explore agents/build/vswitch --test packet_out
      soft crosscheck results/reference/packet_out results/vswitch/packet_out -o findings/
    """
    ctx.obj = {"debug": debug}


def main() -> None:
    """Entry point. Exit status 2 for anything that the user can mend, said in a sentence."""
    debug = "--debug" in sys.argv
    try:
        status = soft.main(standalone_mode=False)
    except SoftError as error:
        if debug:
            raise
        click.echo(f"soft: {error}", err=True)
        sys.exit(2)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (KeyboardInterrupt, click.Abort):
        click.echo("soft: stopped by the user.", err=True)
        sys.exit(130)
    except BrokenPipeError:
        # The reader of our output went away (`soft tests | head`): nothing is wrong.
        sys.stderr.close()
        sys.exit(0)
    sys.exit(status if isinstance(status, int) else 0)
