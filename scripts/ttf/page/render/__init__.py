"""From the text of a page to its file."""
