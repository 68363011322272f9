"""The recipes of config/mappings: mappings of the tables that other programs export."""

from ttf.engine.checkout import CHECKOUT
from ttf.raw.raw_tables import AUTOMATIC
from ttf.study.configuration.mapping import list_mapped_columns
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.recognition.column_terms import is_mostly, parse_times
from ttf.study.recognition.table_sample import Sample

RECIPES = "config/mappings"


def find_recipe(sample: Sample) -> tuple[str, dict] | None:
    """Return the file and the entry of the recipe by which a table can be read; None if there is none.

    The table has all columns of the recipe but the user, no other states, and times in its format.
    """
    for path in sorted((CHECKOUT / RECIPES).glob("*.yaml")):
        entry, *_ = load_yaml(path, f"{RECIPES}/{path.name}")["registry"].values()
        if "records" in entry:
            continue
        mapping = {
            key: part
            for (key, part), name in zip(entry["mapping"].items(), list_mapped_columns(entry["mapping"]), strict=True)
            if key != "user" or name in sample.rows.columns
        }
        if {*list_mapped_columns(mapping)} <= {*sample.rows.columns}:
            entry = entry | {"mapping": mapping} | sample.options
            if _has_known_states(sample, entry) and _has_known_times(sample, entry):
                return f"{RECIPES}/{path.name}", entry
    return None


def _has_known_states(sample: Sample, entry: dict) -> bool:
    status = entry["mapping"]["status"]
    words = sample.words[status if isinstance(status, str) else status["column"]].drop_nulls()
    words = words if isinstance(status, str) else words.str.extract(r"^(\S+)")
    known = {word for words in entry["outcomes"].values() for word in words}
    return "*" in known or known >= {*words}


def _has_known_times(sample: Sample, entry: dict) -> bool:
    values = sample.rows[entry["mapping"].get("start") or entry["mapping"]["submit"]]
    format = entry.get("times", {}).get("format", AUTOMATIC)
    return is_mostly(parse_times(values, format).is_not_null(), values)
