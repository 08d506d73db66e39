"""The files that a report has beside the page, and what each is for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from soft.crosscheck.model import Finding
from soft.report.scenes import slug


def folder_of(finding: Finding) -> str:
    """The folder of the finding's cluster, in that of the findings. A stranger's findings may name an odd one."""
    parts = PurePosixPath(finding.conditions).parts
    return parts[0] if len(parts) == 2 else f"cluster-{finding.cluster}"


def text_file(finding: Finding) -> str:
    return f"{folder_of(finding)}/{finding.id}.txt"


def script_file(finding: Finding) -> str:
    return f"{folder_of(finding)}/{finding.id}.py"


def capture_file(finding: Finding, place: int) -> str:
    """The capture of one of the two agents. The number keeps names apart that differ in odd characters only."""
    return f"{folder_of(finding)}/{finding.id}-{place + 1}-{slug(finding.agents[place])}.pcapng"


def finding_files(finding: Finding) -> Mapping[str, str]:
    """File → the words of a link to it."""
    return {
        script_file(finding): "stand-alone script",
        **{capture_file(finding, place): f"capture: {label}" for place, label in enumerate(finding.agents)},
        finding.conditions: "conditions (SMT-LIB)",
        text_file(finding): "text",
    }
