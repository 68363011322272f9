"""The recipes of config/mappings: mappings of the tables that other programs export."""

from ttf.raw.raw_tables import AUTOMATIC
from ttf.study.configuration.mapping import list_mapped_columns
from ttf.study.recognition.column_terms import is_mostly, parse_times
from ttf.study.recognition.format_declarations import load_recipes
from ttf.study.recognition.table_sample import Sample


def find_recipe(sample: Sample) -> tuple[str, dict, list[str]] | None:
    """Return the file and the entry of the recipe by which a table can be read, and states that it does not list.

    The table has all columns of the recipe but the user, some of its states, and times in its format.
    """
    for label, entry in load_recipes():
        if "records" in entry:
            continue
        column_by_key = dict(zip(entry["mapping"], list_mapped_columns(entry["mapping"]), strict=True))
        lacking = {key for key, name in column_by_key.items() if name not in sample.rows.columns}
        if not lacking <= {"user"}:
            continue
        listed = {word for words in entry["outcomes"].values() for word in words}
        states = {*sample.words[column_by_key["status"]].drop_nulls()}
        listed |= states if "*" in listed else set()
        starts = sample.rows[column_by_key.get("start") or column_by_key["submit"]]
        is_time = parse_times(starts, entry.get("times", {}).get("format", AUTOMATIC)).is_not_null()
        if states & listed and is_mostly(is_time, starts):
            mapping = {key: part for key, part in entry["mapping"].items() if key not in lacking}
            unclear = set() if "*" in listed else states - listed
            return label, entry | {"mapping": mapping} | sample.options, sorted(unclear)
    return None
