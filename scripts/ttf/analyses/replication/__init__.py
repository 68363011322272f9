"""Published analyses, repeated: the analyses of this section of the page."""
