"""Where we keep what can be made again, from one command to the next."""

from __future__ import annotations

import os
from pathlib import Path


def user_cache() -> Path | None:
    """Our directory in the user's cache, which need not be there yet; None where the user has no home."""
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache) / "soft"
    home = os.environ.get("HOME")
    return Path(home) / ".cache" / "soft" if home else None
