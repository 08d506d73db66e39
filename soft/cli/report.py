"""`soft report`: make the pages of a crosscheck again, or compare it with an older one."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click


@click.command()
@click.argument("folder", metavar="FINDINGS", type=click.Path())
@click.option("--baseline", metavar="OLD", type=click.Path(), help="An older crosscheck: show what is new and gone.")
@click.option("-o", "--output", metavar="DIR", type=click.Path(file_okay=False), help="Another folder for the files.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout.")
def report(folder: str, baseline: str | None, output: str | None, as_json: bool) -> None:
    """Make report.html, junit.xml, captures and scripts again from the findings.json in FINDINGS.

    With --baseline, show what is new, gone and still there since an older crosscheck, by the findings' ids, which do
    not depend on the run: for regression testing between two versions of an agent.

    \b
    Example:
      soft report findings/
      soft report findings/ --baseline findings-1.0/

    Exit status: 0 nothing is new, 1 there are new findings, 2 bad input.
    """
    from soft.crosscheck.model import read_findings
    from soft.report.baseline import compare, document
    from soft.report.html import NAME
    from soft.report.text import change_lines, summary
    from soft.report.write import write_report

    findings = read_findings(folder)
    changes = compare(read_findings(baseline), findings) if baseline is not None else None
    given = Path(folder)
    directory = Path(output) if output is not None else given if given.is_dir() else given.parent
    write_report(findings, directory, changes)
    page = str(directory / NAME)
    if as_json:
        result: dict[str, object] = {
            "verdict": findings.verdict,
            "findings": len(findings.findings),
            "clusters": len(findings.clusters),
            "page": page,
        }
        click.echo(json.dumps(result if changes is None else {**result, "baseline": document(changes, findings)}))
    else:
        for line in change_lines(findings, changes) if changes is not None else summary(findings):
            click.echo(line)
        click.echo(f"The page is {page}.")
    sys.exit(1 if changes is not None and changes.new else 0)
