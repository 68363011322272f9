"""The formats: each a declaration (<name>.yaml) or a folder (<name>/) with its declaration, code, reader and sample."""
