"""Walk over terms without recursion: paths of real agents nest terms deeper than Python's stack."""

from collections.abc import Container, Iterable, Iterator

from soft.solve.terms import Term


def children(term: Term) -> tuple[Term, ...]:
    """The sub-terms of a term, without the numbers of `extract` and `sign_extend`."""
    op = term.op
    if op == "const" or op == "var":
        return ()
    if op == "extract":
        return (term.args[2],)
    if op == "sign_extend":
        return (term.args[1],)
    return term.args


def post_order(roots: Iterable[Term], done: Container[Term] = ()) -> Iterator[Term]:
    """Every distinct sub-term of the roots once, sub-terms before the terms that use them, left to right.

    Terms in `done` are left out with all below them. The caller may add to `done` while it iterates.
    """
    seen: set[Term] = set()
    for root in roots:
        if root in seen or root in done:
            continue
        stack: list[tuple[Term, Iterator[Term]]] = [(root, iter(children(root)))]
        seen.add(root)
        while stack:
            term, pending = stack[-1]
            for child in pending:
                if child not in seen and child not in done:
                    seen.add(child)
                    stack.append((child, iter(children(child))))
                    break
            else:
                stack.pop()
                yield term
