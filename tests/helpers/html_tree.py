"""A page as a tree, by the standard library's parser, which is strict here about tags that do not close."""

from html.parser import HTMLParser

_VOID = {"meta", "link", "br", "hr", "img", "input", "base", "col"}


class Element:
    """A tag with its attributes, and what is in it: elements and texts."""

    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.content = tag, dict(attributes), []

    def all(self, tag=None, **attributes):
        """The elements below of a tag and with these attributes, in the order of the page; ``class_`` is a class."""
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        for child in self.content:
            if isinstance(child, Element):
                if tag in (None, child.tag) and all(child._has(*one) for one in wanted.items()):
                    yield child
                yield from child.all(tag, **attributes)

    def one(self, tag=None, **attributes):
        """The only such element."""
        (found,) = self.all(tag, **attributes)
        return found

    @property
    def text(self):
        """All text in it, of which white space between words counts as one space."""
        return " ".join("".join(self._texts()).split())

    def _texts(self):
        for child in self.content:
            yield from [child] if isinstance(child, str) else child._texts()

    def _has(self, name, value):
        own = self.attributes.get(name)
        return own is not None and (value in own.split() if name == "class" else own == value)


class _TreeBuilder(HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.root = Element("page", [])
        self.open = [self.root]

    def handle_starttag(self, tag, attributes):
        names = [name for name, _ in attributes]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        element = Element(tag, attributes)
        self.open[-1].content.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag, attributes):
        self.open[-1].content.append(Element(tag, attributes))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].content.append(data)


def parse_page(text):
    """The tree of a page; an AssertionError for a tag that closes another one, or none."""
    builder = _TreeBuilder()
    builder.feed(text)
    builder.close()
    assert builder.open == [builder.root], f"<{builder.open[-1].tag}> is never closed"
    return builder.root
