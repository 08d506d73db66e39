from __future__ import annotations

from results.exploration import Explored, operations, page, sizes
from soft.bundle.model import FORMAT, Bundle, Counts, Manifest, Path
from soft.scenarios import loader
from soft.solve import terms as t

X, Y = t.var("m0.port", 16), t.var("m0.xid", 16)


def bundle(*paths: tuple[int, ...]) -> Bundle:
    is_seven, is_small = t.eq(X, t.const(7, 16)), t.ult(X, t.const(5, 16))
    return Bundle(
        manifest(len(paths)), loader.load("queue_config"), (is_seven, t.negate(is_seven), is_small), ((),),
        [Path(conditions, 0, {"m0.port": 7}) for conditions in paths],
    )  # fmt: skip


def manifest(paths: int, complete: bool = True) -> Manifest:
    return Manifest(
        FORMAT, "queue_config", "0" * 64, "reference", "0", Counts(paths, 1, 0, 3), complete,
        reasons=() if complete else ("The time limit of 1 s was reached.",),
        statistics={"seconds": 2.0, "coverage": 0.125},
    )  # fmt: skip


def test_comparisons_and_connectives_are_operations() -> None:
    small = t.ult(X, t.const(5, 16))
    assert operations(small) == 1
    assert operations(t.negate(small)) == 2
    assert operations(t.and_(small, t.ult(Y, t.const(5, 16)))) == 3


def test_arithmetic_is_no_boolean_operation() -> None:
    assert operations(t.eq(t.mul(X, Y), t.const(6, 16))) == 1


def test_a_path_condition_is_the_conjunction_of_its_conditions() -> None:
    # One comparison; a negated comparison, a comparison and the conjunction of the two.
    assert sizes(bundle((0,), (1, 2))) == (2.5, 4)


def test_a_concrete_path_has_size_zero() -> None:
    assert sizes(bundle(())) == (0.0, 0)


def test_the_page_has_our_figures_and_the_papers() -> None:
    found = {
        ("reference", "packet_out"): Explored(manifest(697), 44.81, 64),
        ("reference", "fully_symbolic"): Explored(manifest(10, complete=False), 1.0, 1),
    }
    text = "\n".join(page(found))
    assert "| packet_out | 697 | 2.0 s | 348 | 44.8 | 64 | 1 | 0 | yes | 49 | 14 s | 71.57 | 96 |" in text
    assert "| packet_out | 12.5 | – | – | 26.23 | 25.68 |" in text
    assert "| fully_symbolic | 2.0 s | 10 | 12.5 | partial | 31 h | 226224 | 42.93 |" in text
    assert "- reference, fully_symbolic: The time limit of 1 s was reached." in text
