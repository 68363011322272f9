"""The report's source and page: templates filled with metrics, tables and charts; nothing is computed here."""
