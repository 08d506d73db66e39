"""Nothing gets into a page without being escaped."""

from __future__ import annotations

from html import unescape

from hypothesis import given
from hypothesis import strategies as st

from soft.report.markup import Html, safe, tag


@given(st.text())
def test_texts_come_back_as_they_were(text: str) -> None:
    assert "<" not in safe(text)
    assert unescape(tag("p", text)[3:-4]) == unescape(safe(text))
    value = tag("a", title=text)
    assert value.count('"') == 2
    assert value.count("<") == 2


def test_attributes_children_and_void_elements() -> None:
    assert tag("input", type="search", hidden=True, id=None, class_="a b", data_x=1.5) == (
        '<input type="search" hidden class="a b" data-x="1.5">'
    )
    assert tag("p", "a < b", None, [tag("b", "c"), "&"]) == "<p>a &lt; b<b>c</b>&amp;</p>"
    assert isinstance(tag("p"), Html)
