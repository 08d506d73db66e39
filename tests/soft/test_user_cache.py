"""Where the user's cache is."""

from __future__ import annotations

from pathlib import Path

import pytest

from soft.user_cache import user_cache


@pytest.mark.parametrize(
    ("cache", "home", "expected"),
    [("/c", "/h", "/c/soft"), ("", "/h", "/h/.cache/soft"), (None, "/h", "/h/.cache/soft"), (None, None, None)],
)
def test_it_is_where_the_desktop_s_convention_says(
    cache: str | None, home: str | None, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("XDG_CACHE_HOME", cache), ("HOME", home)):
        if value is None:
            monkeypatch.delenv(name)
        else:
            monkeypatch.setenv(name, value)
    assert user_cache() == (Path(expected) if expected else None)
