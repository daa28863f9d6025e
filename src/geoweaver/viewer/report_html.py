"""HTML that cannot be injected into: text is escaped unless it was made here."""

import base64
import json
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

_VOID = {"img", "input", "meta", "br", "link"}
_BOOLEAN = {"hidden", "checked", "open", "disabled"}


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def tag(name: str, /, *children: str, **attributes: object) -> Html:
    """An element; `class_` and `aria_label` become class and aria-label, None leaves an attribute out."""
    words = "".join(
        _attribute(key, value)
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in _VOID:
        return Html(f"<{name}{words}>")
    return Html(f"<{name}{words}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """Markup as it is, all other text escaped."""
    return Html("".join(c if isinstance(c, Html) else escape(c) for c in children))


def _attribute(key: str, value: object) -> str:
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if name in _BOOLEAN else f' {name}="{escape(str(value))}"'


def json_script(name: str, value: Any) -> Html:
    """Data for the page's scripts; no '<' is left that could end the element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Html(f'<script type="application/json" id="{escape(name)}">{text}</script>')


def packed(values: np.ndarray, dtype: str) -> str:
    """Numbers as base64 of their little-endian bytes."""
    return base64.b64encode(
        np.ascontiguousarray(values, dtype=np.dtype(dtype).newbyteorder("<")).tobytes()
    ).decode()


def data_uri(kind: str, data: bytes) -> str:
    """A file inside the page."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def choice(name: str, title: str, options: Sequence[tuple[str, str]]) -> Html:
    """Radio buttons that look like one switch."""
    parts = [
        tag("label", tag("input", type="radio", name=name, value=value, checked=k == 0), tag("span", text))
        for k, (value, text) in enumerate(options)
    ]
    return tag("fieldset", tag("legend", title), *parts, class_="choice")


def check(name: str, text: str, on: bool = True) -> Html:
    return tag("label", tag("input", type="checkbox", id=name, checked=on), tag("span", text), class_="check")
