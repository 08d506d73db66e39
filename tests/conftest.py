"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# A busy machine is no failure, and CI tries the same examples every time: what it finds, everybody can repeat.
settings.register_profile("soft", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("soft")
