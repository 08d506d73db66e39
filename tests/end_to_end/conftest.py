"""Agents are built before any test that explores one."""

from __future__ import annotations

import pytest

from tests.agents.conftest import make


@pytest.fixture(scope="session", autouse=True)
def built_agents() -> None:
    make("all")
    make("variants")
