"""What is published: the site, the archive and its metadata, tables that name nobody."""
