"""Reading a page as a browser would, as far as links, ids and nesting go."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = {"meta", "link", "br", "hr", "img", "input"}
FORBIDDEN = {"script", "link", "iframe", "object", "embed", "img", "form", "base", "foreignobject", "audio", "video"}
REFERENCES = {"href", "src", "xlink:href", "srcset", "action", "poster", "data", "formaction"}


class Page(HTMLParser):
    """Elements, ids, references and text of a page; what is nested wrongly or forbidden is in ``faults``."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.ids: list[str] = []
        self.references: list[tuple[str, str]] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.faults: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is not closed" for tag in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._element(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else, at {self.getpos()}")

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.faults.append(f"a comment: {data[:40]}")

    def _element(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.elements.append((tag, given))
        if tag in FORBIDDEN:
            self.faults.append(f"<{tag}>")
        for name, value in given.items():
            if name == "id":
                self.ids.append(value)
            if name in REFERENCES:
                self.references.append((tag, value))
            if name.startswith("on"):
                self.faults.append(f"{name} of <{tag}>")

    @property
    def is_whole(self) -> bool:
        """Whether ids are unique, and every reference inside the page leads somewhere."""
        inside = {value[1:] for _, value in self.references if value.startswith("#")}
        return not self.faults and len(self.ids) == len(set(self.ids)) and inside <= set(self.ids)

    @property
    def outside(self) -> list[tuple[str, str]]:
        """References to anything outside the page."""
        return [(tag, value) for tag, value in self.references if not value.startswith("#")]


def luminance(colour: str) -> float:
    """Return the relative luminance of "#rrggbb" (WCAG 2.2)."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours (WCAG 2.2)."""
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)
