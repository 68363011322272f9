"""The tags, links, ids and text of a page."""

from html.parser import HTMLParser


class ParsedPage(HTMLParser):
    """tags: names of the start tags; attributes: (tag, values by name) of each; text: the text between all tags."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(str(text))  # Markup would escape what is added to it

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data

    def values(self, *names: str) -> list[str]:
        """List the values of the attributes with these names, in the order of the page."""
        return [value for _, values in self.attributes for name, value in values.items() if name in names]
