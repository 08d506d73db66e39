"""terms.smt2: the inputs, their domain, and every term that paths and traces refer to, each defined once.

The file is plain SMT-LIB 2, one command a line, so that any solver loads it as it is. Conditions are `c0`, `c1`, ...;
larger sub-terms, and terms in traces, are `t0`, `t1`, ...
"""

from __future__ import annotations

import re

from soft.errors import SoftError
from soft.scenarios.model import Scenario
from soft.solve.smtlib import cut, is_name, parse_sort, parse_tokens, print_sort, print_term, shorten, tokens
from soft.solve.terms import Term

# Bounds on what a small file can make of itself in memory: a path of a real agent has up to some hundred conditions, a
# condition some ten nodes. Depth is bounded because terms are rewritten, and solvers work, level by level.
MOST_NODES = 4_000_000
MOST_DEPTH = 20_000
# A definition with more words than this is weighed before it is parsed.
_LONG = 200

_NAME = re.compile(r"[tc](0|[1-9][0-9]{0,8})\Z")
_TOO_MANY = f"The terms are too many; at most {MOST_NODES} nodes are allowed."
_TOO_DEEP = f"The term nests too deep; at most {MOST_DEPTH} levels are allowed."


class TermWriter:
    """Gives names to terms, and the lines that define them."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._names: dict[Term, str] = {}
        self._depths: dict[str, int] = {}
        self._conditions: dict[Term, int] = {}
        self._others = 0
        self.nodes = 0
        for variable in scenario.variables:
            if not is_name(variable.name) or _NAME.match(variable.name):
                raise SoftError(f"A variable of a scenario may not be called {shorten(variable.name)}.")

    @property
    def condition_count(self) -> int:
        return len(self._conditions)

    def head(self) -> str:
        """The lines before the first definition."""
        lines = ["; inputs and their domain, sub-terms (t), conditions (c)", "(set-logic QF_BV)"]
        lines += [f"(declare-const {v.name} {print_sort(v.width)})" for v in self._scenario.variables]
        lines += [f"(assert {print_term(term)})" for term in self._scenario.domain]
        return "".join(f"{line}\n" for line in lines)

    def adopt(self, reader: TermReader) -> None:
        """Go on after a file that was read: its definitions are known, and are not written again."""
        for name, term in reader.names.items():
            if _NAME.match(name):
                self._names[term] = name
                if name[0] == "t":
                    self._others = max(self._others, int(name[1:]) + 1)
        self.nodes = reader.nodes
        self._conditions = {term: index for index, term in enumerate(reader.conditions)}
        self._depths = reader.depths

    def condition(self, term: Term, lines: list[str]) -> int:
        """The index of a condition; appends to `lines` what defines it if it is new."""
        index = self._conditions.get(term)
        if index is None:
            index = self._conditions[term] = len(self._conditions)
            body = self._names.get(term) or self._body(term, lines)
            self._write(f"c{index}", term, body, lines)
            self._names[term] = f"c{index}"
        return index

    def reference(self, term: Term, lines: list[str]) -> str:
        """The name of a term of a trace; appends to `lines` what defines it if it is new."""
        if term.op == "var":
            name: str = term.args[0]
            return name
        known = self._names.get(term)
        if known is None:
            body = self._body(term, lines)
            known = self._name(term, body, lines)
        return known

    def _body(self, root: Term, lines: list[str]) -> str:
        for term in cut((root,), self._names):
            body = print_term(term, self._names)
            if term is root:
                return body
            self._name(term, body, lines)
        raise AssertionError("a root is always among the terms to be named")

    def _name(self, term: Term, body: str, lines: list[str]) -> str:
        name = f"t{self._others}"
        self._others += 1
        self._write(name, term, body, lines)
        self._names[term] = name
        return name

    def _write(self, name: str, term: Term, body: str, lines: list[str]) -> None:
        words = tokens(body)
        depth = _depth(words, self._depths)
        if depth > MOST_DEPTH:
            raise SoftError(_TOO_DEEP)
        self._depths[name] = depth
        self.nodes += _weight(words, len(term.variables))
        lines.append(f"(define-fun {name} () {print_sort(term.width)} {body})\n")


class TermReader:
    """Reads the lines that a TermWriter, or a stranger, wrote."""

    def __init__(self, scenario: Scenario) -> None:
        self.conditions: list[Term] = []
        self.names: dict[str, Term] = {}
        self._variables = {variable.name: variable.term for variable in scenario.variables}
        self._domain = list(scenario.domain)
        self._stated = 0
        self.depths: dict[str, int] = {}
        self.nodes = 0

    def line(self, text: str) -> None:
        """Take the next line."""
        if not text or text[0] == ";" or text == "(set-logic QF_BV)":
            return
        words = tokens(text)
        command = words[1] if len(words) > 4 and words[0] == "(" and words[-1] == ")" else text
        if command == "define-fun":
            self._define(words)
        elif command == "declare-const":
            self._declare(words)
        elif command == "assert":
            term = parse_tokens(words[2:-1], {}, self.names)
            if self._stated == len(self._domain) or term is not self._domain[self._stated]:
                raise SoftError("This is not the scenario's domain.")
            self._stated += 1
        else:
            raise SoftError(f"{shorten(command)} is not a command of a bundle.")

    def end(self) -> None:
        """Check that nothing is missing."""
        for name in self._variables:
            if name not in self.names:
                raise SoftError(f"The variable {name} of the scenario is not declared.")
        if self._stated != len(self._domain):
            raise SoftError("The scenario's domain is not stated.")

    def _declare(self, words: list[str]) -> None:
        name, width = words[2], parse_sort(words[3:-1])
        if name in self.names:
            raise SoftError(f"{shorten(name)} is declared twice.")
        variable = self._variables.get(name)
        if variable is None or variable.width != width:
            raise SoftError(f"The scenario has no variable {shorten(name)} of {width} bits.")
        self.names[name] = variable

    def _define(self, words: list[str]) -> None:
        name = words[2]
        start = 6 if words[5:6] == ["Bool"] else 10
        if words[3:5] != ["(", ")"] or len(words) <= start + 1:
            raise SoftError("A definition has the form (define-fun NAME () SORT TERM).")
        width = parse_sort(words[5:start])
        if name in self.names:
            raise SoftError(f"{shorten(name)} is defined twice.")
        if not _NAME.match(name):
            raise SoftError(f"Definitions are called t0, t1, ... or c0, c1, ...; found {shorten(name)}.")
        body = words[start:-1]
        self._bound(name, body)
        term = parse_tokens(body, {}, self.names)
        if term.width != width:
            raise SoftError(f"{name} has {print_sort(term.width)} for a sort, not {print_sort(width)}.")
        self.nodes += _weight(body, len(term.variables))
        if self.nodes > MOST_NODES:
            raise SoftError(_TOO_MANY)
        self.names[name] = term
        if name[0] == "c":
            if name != f"c{len(self.conditions)}" or width:
                raise SoftError(f"The next condition is c{len(self.conditions)}, a Bool; found {name}.")
            self.conditions.append(term)

    def _bound(self, name: str, body: list[str]) -> None:
        """Refuse a definition that would take too much memory before it takes it."""
        depth = _depth(body, self.depths)
        if depth > MOST_DEPTH:
            raise SoftError(_TOO_DEEP)
        self.depths[name] = depth
        if len(body) > _LONG:
            known = [self.names[word].variables for word in set(body) if word in self.names]
            if self.nodes + _weight(body, len(frozenset[str]().union(*known))) > MOST_NODES:
                raise SoftError(_TOO_MANY)


def _weight(words: list[str], variables: int) -> int:
    """What a definition costs in memory, in nodes: each node has a set of variables, an object of its own."""
    return (1 + len(words) // 2) * (1 + variables // 8)


def _depth(words: list[str], depths: dict[str, int]) -> int:
    """How deep a definition nests, with the definitions that it refers to."""
    level = deepest = below = 0
    for word in words:
        if word == "(":
            level += 1
            if level > deepest:
                deepest = level
        elif word == ")":
            level -= 1
        elif word[0] in "tc":
            depth = depths.get(word, 0)
            if depth > below:
                below = depth
    return deepest + below
