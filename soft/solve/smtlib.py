"""Terms as SMT-LIB 2 text and back: `parse_term(print_term(t), ...)` is `t`.

The printer gives a name to every larger sub-term, so that the text is as long as the shared term, not as its tree. The
parser reads text of strangers: it takes the operations of `soft.solve.terms` and nothing else, checks every width, does
not recurse, and builds exactly what it reads (no simplification), so that what was printed comes back as it was.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from soft.errors import SoftError
from soft.solve.terms import FALSE, TRUE, Term
from soft.solve.terms import _make as make
from soft.solve.walk import children, post_order

# Nodes that a definition may hold before a sub-term gets a definition of its own: a comparison of a field with a
# constant stays in one piece, a checksum is cut.
INLINE_NODES = 12
# Widest bit-vector: a frame of 8 KiB in one term. Without a bound, ten lines of doubling `concat`s claim a terabyte.
MAX_WIDTH = 65_536
# Multiplication and division become circuits of the square of their width; no machine instruction is wider than this.
MAX_ARITHMETIC_WIDTH = 256

# A simple symbol of SMT-LIB, without those that begin with the solvers' own `@` or `.`.
SYMBOL = re.compile(r"[A-Za-z_?~!$%^&*+=<>/-][A-Za-z0-9_.?~!$%^&*+=<>/-]{0,199}\Z")

_LITERAL = re.compile(r"#(x[0-9a-fA-F]+|b[01]+)\Z")

_ADDITIVE = {"bvadd", "bvsub", "bvand", "bvor", "bvxor", "bvshl", "bvlshr", "bvashr"}
_COSTLY = {"bvmul", "bvudiv", "bvurem", "bvsdiv", "bvsrem"}
_SAME_WIDTH = _ADDITIVE | _COSTLY
_COMPARISONS = {"bvult", "bvule", "bvslt", "bvsle"}
_OTHERS = {"=", "and", "or", "not", "ite", "concat", "extract", "sign_extend", "bvnot", "bvneg"}
_RESERVED = _SAME_WIDTH | _COMPARISONS | _OTHERS | {"true", "false", "let", "_", "Bool", "BitVec"}


# ---------------------------------------------------------------------------------------------- printing


def print_sort(width: int) -> str:
    return f"(_ BitVec {width})" if width else "Bool"


def print_term(term: Term, names: Mapping[Term, str] | None = None) -> str:
    """The term as text; a sub-term (or the term) in `names` is printed as its name.

    Without `names`, larger sub-terms are bound by `let`: the text stands alone.
    """
    if names is not None:
        return _print(term, names)
    bound: dict[Term, str] = {}
    heads = []
    for part in cut((term,), bound):
        if part is not term:
            text = _print(part, bound)
            bound[part] = f"?{len(bound)}"
            heads.append(f"(let (({bound[part]} {text})) ")
    return "".join(heads) + _print(term, bound) + ")" * len(heads)


def cut(roots: Iterable[Term], named: Mapping[Term, str]) -> Iterator[Term]:
    """The sub-terms of the roots that should get a name, sub-terms first: those above INLINE_NODES.

    Roots come out too, unless they are in `named`. The caller names each term before it takes the next.
    """
    wanted = roots if isinstance(roots, tuple) else tuple(roots)
    tops = set(wanted)
    sizes: dict[Term, int] = {}
    for term in post_order(wanted, named):
        size = 1
        for child in children(term):
            size += 1 if child in named else sizes[child]
        if term in tops or size > INLINE_NODES:
            yield term
        sizes[term] = 1 if term in named else size


def _print(root: Term, names: Mapping[Term, str]) -> str:
    out: list[str] = []
    stack: list[Term | str] = [root]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        name = names.get(item)
        if name is not None:
            out.append(name)
            continue
        op = item.op
        if op == "const":
            out.append(print_constant(item.args[0], item.width))
        elif op == "var":
            out.append(item.args[0])
        else:
            if op == "extract":
                out.append(f"((_ extract {item.args[0]} {item.args[1]})")
            elif op == "sign_extend":
                out.append(f"((_ sign_extend {item.args[0]})")
            else:
                out.append(f"({op}")
            stack.append(")")
            for child in reversed(children(item)):
                stack.append(child)
                stack.append(" ")
    return "".join(out)


def print_constant(value: int, width: int) -> str:
    if not width:
        return "true" if value else "false"
    return f"#b{value:0{width}b}" if width % 4 else f"#x{value:0{width // 4}x}"


# ---------------------------------------------------------------------------------------------- parsing


def tokens(text: str) -> list[str]:
    """Cut text into parentheses and atoms. Strings, quoted symbols and comments are not part of the language."""
    for character in '"|;\\':
        if character in text:
            raise SoftError(f"The character {character} does not belong into a term.")
    return text.replace("(", " ( ").replace(")", " ) ").split()


def parse_sort(words: list[str]) -> int:
    """The width that the tokens of a sort mean: 0 for Bool."""
    if words == ["Bool"]:
        return 0
    if len(words) == 5 and words[:3] == ["(", "_", "BitVec"] and words[4] == ")":
        width = _number(words[3])
        if width < 1 or width > MAX_WIDTH:
            raise SoftError(f"A bit-vector of {width} bits is not allowed; the width must be 1 to {MAX_WIDTH}.")
        return width
    raise SoftError(f"{shorten(' '.join(words))} is not a sort; expected Bool or (_ BitVec N).")


def parse_term(text: str, variables: Mapping[str, Term], definitions: Mapping[str, Term]) -> Term:
    """The term that `text` denotes, over the given variables and defined names."""
    return parse_tokens(tokens(text), variables, definitions)


class _Frame:
    """An open parenthesis: its operation, the numbers of an indexed one, and the arguments so far."""

    __slots__ = ("args", "bound", "name", "numbers", "op", "outer")

    def __init__(self, op: str, numbers: tuple[int, ...] = (), name: str = "") -> None:
        self.op = op
        self.numbers = numbers
        self.args: list[Term] = []
        # Of a `let`: the name, whether its term has been read, and what the name means outside.
        self.name = name
        self.bound = False
        self.outer: Term | None = None


def parse_tokens(words: list[str], variables: Mapping[str, Term], definitions: Mapping[str, Term]) -> Term:
    stack: list[_Frame] = []
    bound: dict[str, Term] = {}
    position, end = 0, len(words)
    while position < end:
        word = words[position]
        position += 1
        if word == "(":
            frame, position = _open(words, position)
            stack.append(frame)
            continue
        if word == ")":
            if not stack:
                raise SoftError("There is a closing parenthesis too many.")
            frame = stack.pop()
            term = _close_let(frame, bound) if frame.op == "let" else build(frame.op, frame.numbers, frame.args)
        else:
            found = bound.get(word) or definitions.get(word) or variables.get(word)
            term = found if found is not None else parse_constant(word)
        if not stack:
            if position != end:
                raise SoftError(f"After the end of the term stands {shorten(' '.join(words[position:]))}.")
            return term
        frame = stack[-1]
        if frame.op == "let" and not frame.bound:
            if words[position : position + 2] != [")", ")"]:
                raise SoftError("A let binds one name to one term, as in (let ((name term)) body).")
            position += 2
            frame.bound = True
            frame.outer = bound.get(frame.name)
            bound[frame.name] = term
        else:
            frame.args.append(term)
    raise SoftError("The term ends too early: a closing parenthesis is missing." if words else "There is no term.")


def _open(words: list[str], position: int) -> tuple[_Frame, int]:
    """Read what follows an opening parenthesis, up to the first argument."""
    head = words[position : position + 6]
    if not head:
        raise SoftError("The term ends after an opening parenthesis.")
    if head[0] == "let":
        if head[1:3] != ["(", "("] or len(head) < 4 or not is_name(head[3]):
            raise SoftError("A let binds one name to one term, as in (let ((name term)) body).")
        return _Frame("let", name=head[3]), position + 4
    if head[0] != "(":
        return _Frame(head[0]), position + 1
    if head[1:3] == ["_", "sign_extend"] and head[4:5] == [")"]:
        return _Frame("sign_extend", (_number(head[3]),)), position + 5
    if head[1:3] == ["_", "extract"] and head[5:6] == [")"]:
        return _Frame("extract", (_number(head[3]), _number(head[4]))), position + 6
    raise SoftError(f"{shorten(' '.join(head))} does not begin an operation.")


def _close_let(frame: _Frame, bound: dict[str, Term]) -> Term:
    if len(frame.args) != 1:
        raise SoftError("A let has one body, as in (let ((name term)) body).")
    if frame.outer is None:
        del bound[frame.name]
    else:
        bound[frame.name] = frame.outer
    return frame.args[0]


def parse_constant(word: str) -> Term:
    """A literal. Everything that is neither a literal nor a known name is an error here."""
    if word == "true":
        return TRUE
    if word == "false":
        return FALSE
    if _LITERAL.match(word):
        bits = 4 if word[1] == "x" else 1
        width = bits * (len(word) - 2)
        if width > MAX_WIDTH:
            raise SoftError(f"A constant of {width} bits is too wide; at most {MAX_WIDTH} are allowed.")
        return make("const", (int(word[2:], 1 << bits),), width)
    if is_name(word):
        raise SoftError(f"The name {shorten(word)} is used but not defined before.")
    raise SoftError(f"{shorten(word)} is neither a name nor a constant.")


def build(op: str, numbers: tuple[int, ...], args: list[Term]) -> Term:
    """The term of an operation, after checking the number and the widths of its arguments."""
    count = len(args)
    widths = [arg.width for arg in args]
    if op in _SAME_WIDTH:
        if count == 2 and widths[0] == widths[1] != 0:
            if op in _COSTLY and widths[0] > MAX_ARITHMETIC_WIDTH:
                raise SoftError(f"{op} on {widths[0]} bits is too costly; at most {MAX_ARITHMETIC_WIDTH} are allowed.")
            return make(op, tuple(args), widths[0])
    elif op == "=":
        if count == 2 and widths[0] == widths[1]:
            return make(op, tuple(args), 0)
    elif op in _COMPARISONS:
        if count == 2 and widths[0] == widths[1] != 0:
            return make(op, tuple(args), 0)
    elif op == "not":
        if widths == [0]:
            return make(op, tuple(args), 0)
    elif op == "and" or op == "or":
        if count > 1 and not any(widths):
            return make(op, tuple(args), 0)
    elif op == "extract":
        hi, lo = numbers
        if count == 1 and lo <= hi < widths[0]:
            return make(op, (hi, lo, args[0]), hi - lo + 1)
    elif op == "concat":
        width = sum(widths)
        if count > 1 and all(widths):
            if width > MAX_WIDTH:
                raise SoftError(f"A bit-vector of {width} bits is too wide; at most {MAX_WIDTH} are allowed.")
            return make(op, tuple(args), width)
    elif op == "ite":
        if count == 3 and not widths[0] and widths[1] == widths[2]:
            return make(op, tuple(args), widths[1])
    elif op == "bvnot" or op == "bvneg":
        if count == 1 and widths[0]:
            return make(op, tuple(args), widths[0])
    elif op == "sign_extend":
        if count == 1 and widths[0] and numbers[0]:
            width = widths[0] + numbers[0]
            if width > MAX_WIDTH:
                raise SoftError(f"A bit-vector of {width} bits is too wide; at most {MAX_WIDTH} are allowed.")
            return make(op, (numbers[0], args[0]), width)
    else:
        raise SoftError(f"There is no operation {shorten(op)}.")
    operation = f"(_ {op} {' '.join(map(str, numbers))})" if numbers else op
    sorts = " and ".join(print_sort(width) for width in widths[:4]) or "nothing"
    raise SoftError(f"{operation} does not apply to {sorts}{' and more' if count > 4 else ''}.")


def is_name(word: str) -> bool:
    """May this be the name of a variable or a definition?"""
    return SYMBOL.match(word) is not None and word not in _RESERVED


def _number(word: str) -> int:
    # Eight digits are more than any width or index, and few enough for int() to be quick.
    if not (word.isascii() and word.isdigit() and len(word) <= 8):
        raise SoftError(f"{shorten(word)} is not a number that fits here.")
    return int(word)


def shorten(text: str) -> str:
    """Text of a stranger for an error message: printable, and no longer than a line."""
    printable = "".join(character if character.isprintable() else "?" for character in text[:60])
    return f"`{printable}{'...' if len(text) > 60 else ''}`"
