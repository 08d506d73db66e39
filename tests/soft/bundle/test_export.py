"""What is exported is a question that three solvers read alike, and the witness answers it."""

from __future__ import annotations

from pathlib import Path

import bitwuzla
import cvc5
import pytest
import z3

from soft.bundle.export import export_all, export_group, export_path
from soft.bundle.model import Bundle
from soft.bundle.reader import read
from soft.errors import SoftError
from tests.soft.bundle.example import write


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return read(write(tmp_path_factory.mktemp("export") / "bundle"))


def ask_z3(file: Path) -> str:
    # A context of its own: definitions would stay in z3's main one, and angr's solver stumbles over them there.
    solver = z3.Solver(ctx=z3.Context())
    solver.from_file(str(file))
    return str(solver.check())


def ask_bitwuzla(file: Path) -> str:
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.PRODUCE_MODELS, True)
    parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
    parser.parse(str(file), True)
    return str(parser.bitwuzla().check_sat()).rpartition(".")[2].lower()


def ask_cvc5(file: Path) -> str:
    solver = cvc5.Solver()
    parser = cvc5.InputParser(solver)
    parser.setFileInput(cvc5.InputLanguage.SMT_LIB_2_6, str(file))
    symbols = parser.getSymbolManager()
    while not (command := parser.nextCommand()).isNull():
        answer = str(command.invoke(solver, symbols)).strip()
        assert "error" not in answer
        if command.getCommandName() == "check-sat":
            return answer
    raise AssertionError("nothing was asked")


SOLVERS = pytest.mark.parametrize("ask", [ask_z3, ask_bitwuzla, ask_cvc5])


@SOLVERS
def test_every_path_has_models_and_its_witness_is_one(bundle: Bundle, tmp_path: Path, ask: object) -> None:
    assert callable(ask)
    for number in range(len(bundle.paths)):
        for witness in (False, True):
            file = tmp_path / f"{number}.smt2"
            file.write_text("".join(export_path(bundle, number, witness=witness)))
            assert ask(file) == "sat"


@SOLVERS
def test_another_path_s_witness_is_no_model(bundle: Bundle, tmp_path: Path, ask: object) -> None:
    assert callable(ask)
    own = "".join(export_path(bundle, 0))
    other = "".join(export_path(bundle, 1, witness=True))
    asserted = other[other.index("; the witness") : other.index("(check-sat)")]
    (tmp_path / "mixed.smt2").write_text(own.replace("(check-sat)", asserted + "(check-sat)"))
    assert ask(tmp_path / "mixed.smt2") == "unsat"


@SOLVERS
def test_a_group_and_the_whole(bundle: Bundle, tmp_path: Path, ask: object) -> None:
    assert callable(ask)
    silent = next(number for number, trace in enumerate(bundle.traces) if not trace)
    (tmp_path / "group.smt2").write_text("".join(export_group(bundle, silent)))
    assert ask(tmp_path / "group.smt2") == "sat"
    whole = "".join(export_all(bundle))
    (tmp_path / "all.smt2").write_text(whole)
    assert ask(tmp_path / "all.smt2") == "sat"
    # The bundle is complete: outside of its paths there is nothing.
    (tmp_path / "none.smt2").write_text(
        whole.replace("(assert (or path0", "(assert (not (or path0").replace("path11))", "path11)))")
    )
    assert ask(tmp_path / "none.smt2") == "unsat"


@SOLVERS
def test_the_table_of_terms_is_loaded_as_it_is(tmp_path: Path, ask: object) -> None:
    assert callable(ask)
    file = write(tmp_path / "b") / "terms.smt2"
    (tmp_path / "terms.smt2").write_text(file.read_text() + "(check-sat)\n")
    assert ask(tmp_path / "terms.smt2") == "sat"


def test_what_is_not_there_cannot_be_exported(bundle: Bundle) -> None:
    with pytest.raises(SoftError, match="there is no path 99; the bundle has 12"):
        list(export_path(bundle, 99))
    with pytest.raises(SoftError, match="there is no trace -1; the bundle has 9"):
        list(export_group(bundle, -1))
