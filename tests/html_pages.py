"""Reading pages of HTML in tests."""

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "rect", "line", "path"}
IMPLIED = {"tr": {"tr", "td", "th"}, "td": {"td", "th"}, "th": {"td", "th"}, "tbody": {"tr", "td", "th"}}
"""Elements that end where one begins: end tags of cells and rows may be left out."""


@dataclass
class Element:
    """An element with its attributes, children and texts, in order."""

    tag: str
    attributes: dict[str, str]
    children: "list[Element | str]" = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    def all(self, tag: str = "", **wanted: str) -> "list[Element]":
        """Elements within of a tag whose attributes have the words that are wanted; ``class_`` is the class."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if tag in ("", child.tag) and all(
                        word in child.attributes.get(name.rstrip("_").replace("_", "-"), "").split()
                        for name, word in wanted.items()):
                    found.append(child)
                found += child.all(tag, **wanted)
        return found

    def one(self, tag: str = "", **wanted: str) -> "Element":
        found = self.all(tag, **wanted)
        assert found, f"no {tag} {wanted}"
        return found[0]

    def rows(self) -> list[dict[str, str]]:
        """Rows of a table by its headings."""
        heads = [cell.text.strip() for cell in self.one("thead").all("th")]
        return [dict(zip(heads, [cell.text.strip() for cell in row.children if isinstance(cell, Element)], strict=True))
                for row in self.one("tbody").all("tr")]


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]

    def handle_starttag(self, tag: str, attributes: "list[tuple[str, str | None]]") -> None:
        while self._open[-1].tag in IMPLIED.get(tag, ()):
            self._open.pop()
        made = Element(tag, {name: value or "" for name, value in attributes})
        self._open[-1].children.append(made)
        if tag not in VOID:
            self._open.append(made)

    def handle_startendtag(self, tag: str, attributes: "list[tuple[str, str | None]]") -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attributes}))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        while self._open[-1].tag in ("tr", "td", "th") and self._open[-1].tag != tag:
            self._open.pop()
        assert self._open[-1].tag == tag, f"</{tag}> ends <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(data)


def parsed(text: str) -> Element:
    """A page as a tree; fails where elements overlap or don't end."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert [element.tag for element in reader._open] == [""], reader._open[-1].tag
    return reader.root
