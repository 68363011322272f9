"""Files as they come: fetched, unpacked, read against their schema, ingested."""
