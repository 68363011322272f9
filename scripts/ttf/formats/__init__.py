"""The formats: each a declaration (<name>.yaml) or a room (<name>/) with its declaration, code, reader and sample."""
