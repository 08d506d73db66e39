"""What has no model is named."""

from __future__ import annotations

import pytest

from harness.kernel.names import name_of
from harness.kernel.table import CALLS


@pytest.mark.parametrize(("number", "name"), [(0, "read"), (167, "swapon"), (334, "rseq"), (425, "io_uring_setup")])
def test_names(number: int, name: str) -> None:
    assert name_of(number) == name


def test_a_number_without_a_name() -> None:
    assert name_of(400) == "400"
    assert name_of(1 << 40) == str(1 << 40)


def test_the_model_has_its_calls_under_the_kernel_s_names() -> None:
    ours = {number: call.name for number, call in CALLS.items()}
    shared = {"frozen", "sync"}  # one function for several calls
    wrong = {
        number: (name, name_of(number))
        for number, name in ours.items()
        if name.strip("_") not in shared and name != name_of(number)
    }
    assert wrong == {}
