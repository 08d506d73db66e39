"""Bring a running agent and its controller together again, without a start: its channel is closed, or not clean."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

from soft.launch.control import ControlEnd
from soft.launch.helpers import Helpers
from soft.launch.namespace import Namespace
from soft.launch.profile import Profile, commands_of


def meeting(
    profile: Profile, first: ControlEnd, address: str, directory: Path, namespace: Namespace | None, helpers: Helpers
) -> Callable[[float], ControlEnd] | None:
    """What does it, until a deadline, and returns where they meet; None if the profile does not say how.

    An agent that listens is found where it was. One that connects is sent to another place: to the same one it would
    come back in its own time.
    """
    commands = profile.reconnect
    if commands is None:
        return None
    names = (f"control{number}" for number in itertools.count(2))

    def meet(deadline: float) -> ControlEnd:
        end = first
        if profile.connection == "connect":
            end = ControlEnd(profile.connection, address, directory, namespace, next(names))
        try:
            helpers.later(end.placeholders(), deadline).run(commands_of(commands))
        except BaseException:
            end.close()
            raise
        return end

    return meet
