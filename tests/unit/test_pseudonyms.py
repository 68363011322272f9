"""Publication hides names that are not public, and no cell is a formula in a spreadsheet."""

import stat
from pathlib import Path

import polars as pl
import pytest
import yaml
from ttf.engine.contract import ANYBODY, SOMEBODY, TEXT, Column, count, name, number, table, text, words
from ttf.engine.provenance.key import KEY, ensure_key
from ttf.page.publish.files import read_published_content
from ttf.page.publish.pseudonyms import escape_formulas, hide_prices, make_pseudonym, pseudonymise
from ttf.page.results_tables import load_all_contracts
from ttf.records.record_contracts import OF_TRACES
from ttf.study.configuration.yaml_files import load_yaml
from ttf.study.publication import PATH_KEYS, SOURCES, TRACE_PATH_KEYS, remove_paths
from ttf.study.study import Study

ROOT = Path(__file__).parents[2]
OWNERS = table(
    "owners",
    "",
    owner_by=words("", ""),
    owner=name("", "", "", by="owner_by"),
    node=name("", "", "", name_kind="node"),
    note=text("", "", "", public_pattern="none|[0-9]+"),
    jobs=count("", ""),
)
FRAME = pl.DataFrame(
    {
        "owner_by": ["user", "account", "core_count", "a new kind", "user", "all"],
        "owner": ["ann", "ann", "2-4", "ann", None, "all"],
        "node": ["n1", "n2", "n1", None, "all", "n3"],
        "note": ["ask ann", "none", "12", None, "ask ann", "none of it"],
        "jobs": [1, 2, 3, 4, 5, 6],
    }
)


def test_names_and_free_texts_are_replaced_and_other_cells_unchanged():
    published = pseudonymise(FRAME, OWNERS, b"key")
    user, account, gpus, new, blank, all_owners = published["owner"]
    assert (gpus, blank, all_owners) == ("2-4", None, "all")
    assert user == make_pseudonym("ann", "user", b"key")
    assert [owner.rpartition("-")[0] for owner in (user, account, new)] == ["user", "account", "a new kind"]
    assert len({user.split("-")[-1], account.split("-")[-1], new.split("-")[-1]}) == 3
    assert published["node"][0] == published["node"][2] == make_pseudonym("n1", "node", b"key")
    assert published["note"].to_list()[1:4] == ["none", "12", None]
    assert published["note"][0] == published["note"][4] != published["note"][5]
    assert published.select("owner_by", "jobs").equals(FRAME.select("owner_by", "jobs"))
    assert "ann" not in published.write_csv()


def test_the_order_of_rows_reveals_no_names():
    """Rows are sorted by pseudonym, each owner's in time order. Size ranges keep their order."""
    strata = table("strata", "", by=words("", ""), who=name("", "", by="by", sorted=True), t=count("", ""))
    rows = [("account", f"lab{index}", time) for index in range(9) for time in (1, 2)]
    rows = [("gpus", "2-4", 1), ("gpus", "16", 1), *rows]
    table_ = pseudonymise(strata.frame([dict(zip(strata.columns, row, strict=True)) for row in rows]), strata, b"key")
    names = table_["who"].to_list()
    assert names[:2] == ["2-4", "16"]
    assert names[2:] == sorted(names[2:])
    assert [make_pseudonym(f"lab{index}", "account", b"key") for index in range(9)] != names[2::2]
    assert table_["t"].to_list() == [1, 1, *[1, 2] * 9]


def test_a_column_of_text_that_declares_nothing_is_not_published():
    silent = table("silent", "", who=text("", ""), other=Column(TEXT, "", ""))
    published = pseudonymise(pl.DataFrame({"who": ["ann"], "other": ["ann"]}), silent, b"key")
    assert not {"ann"} & {*published.row(0)}


def test_every_contract_declares_its_columns_of_names():
    """Check every column named after users, accounts or nodes, or divided by them."""
    for contract in (*load_all_contracts().values(), *OF_TRACES):
        for column, declared in contract.columns.items():
            if declared.kind != TEXT:
                continue
            label = f"{contract.name}.{column}"
            if f"{column}_by" in contract.columns or column in ("user", "account", "node", "owner", "failed_node"):
                assert declared.names == SOMEBODY, label
            if column in ("line", "most_common", "job_id") or label == "row_account_by_part.part":
                assert declared.names == ANYBODY, label
            assert not declared.by or declared.by in contract.columns, label


# Spreadsheets ---------------------------------------------------------------------------------------------

CELLS = table("cells", "", text=words("", "", ""), number=number("", "", ""))


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-0.5", "@SUM(A1)", "\n=1", " =1", "\u200b=1", "\uff1d1", "\tx", "\rx"])
def test_a_text_that_begins_like_a_formula_is_a_text_in_a_spreadsheet(cell):
    escaped = escape_formulas(pl.DataFrame({"text": [cell], "number": [-0.5]}), CELLS)
    assert escaped.row(0) == (f"'{cell}", -0.5)


@pytest.mark.parametrize("cell", ["a=1", "", None, "'=1", "2-4"])
def test_other_texts_are_unchanged(cell):
    assert escape_formulas(pl.DataFrame({"text": [cell], "number": [1.0]}, CELLS.schema), CELLS).row(0) == (cell, 1.0)


def test_published_tables_are_safe_and_those_of_the_study_true(tmp_path):
    source = tmp_path / "cells.csv"
    source.write_text("text,number\n=1+1,-0.5\nx,\n")
    assert read_published_content(source, CELLS) == b"text,number\n'=1+1,-0.5\nx,\n"
    assert source.read_text() == "text,number\n=1+1,-0.5\nx,\n"
    source.write_text("text,number\nx,-5e-1\n")
    assert read_published_content(source, CELLS) == source.read_bytes()


# The key and the traces it is for ---------------------------------------------------------------------------


def test_the_key_is_made_once_for_its_owner_alone(tmp_path):
    key = ensure_key(tmp_path / "data" / "key")
    content = key.read_bytes()
    assert len(content) == 32
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert ensure_key(key).read_bytes() == content
    assert list(key.parent.iterdir()) == [key]


def test_the_key_lies_beside_the_raw_data_and_no_archive_takes_it(tmp_path):
    ensure_key(tmp_path / KEY)
    assert KEY.parts[0] == "data" not in SOURCES


def study_of(tmp_path, **config):
    (tmp_path / "a.txt").write_text("JobIDRaw|State|Submit|Start|End|User\n")
    registry = {"mine": {"format": "sacct", "folder": str(tmp_path)} | config.pop("entry", {})}
    defaults = load_yaml(ROOT / "config" / "config.yaml")
    return Study([("config", defaults), ("my.yaml", {"registry": registry} | config)])


def test_names_are_hidden_unless_the_entry_says_that_they_are_public(tmp_path):
    assert study_of(tmp_path, study=["mine", "sample_slurm"]).pseudonymised_traces == ["mine"]
    assert study_of(tmp_path, study=["mine"], entry={"names": "public"}).pseudonymised_traces == []
    assert study_of(tmp_path, study=["mine"], publish={"names": "kept"}).pseudonymised_traces == []


PRICES = {"price_per_gpu_hour": 2.5, "currency": "EUR"}


@pytest.mark.parametrize("publish", [{}, {"prices": "left_out"}, {"prices": "kept"}])
def test_prices_are_published_only_if_a_key_asks_for_them(tmp_path, publish):
    study = study_of(tmp_path, study=["mine"], entry={"names": "public"}, ledger=PRICES | {"pue": 1.2}, publish=publish)
    is_kept = publish.get("prices") == "kept"
    assert study.edited_traces == ([] if is_kept else ["mine"]) and study.pseudonymised_traces == []
    assert study.published_config["ledger"] == {"pue": 1.2} | (PRICES if is_kept else {})
    assert study.published_config.keys() == study.config.keys()


def test_every_cost_of_every_table_is_blank_without_prices():
    for contract in load_all_contracts(()).values():
        cost_columns = {name for name in contract.columns if "cost" in name.split("_") or name == "currency"}
        cost_columns -= {name for name in cost_columns if name.endswith("gpu_hours")}
        frame = pl.DataFrame({name: ["1"] for name in contract.columns})
        blank = {name for name, cells in hide_prices(frame, contract).to_dict().items() if not cells.count()}
        assert blank == cost_columns, contract.name


def test_every_trace_of_the_registry_says_that_its_names_are_public():
    registry = load_yaml(ROOT / "config" / "traces.yaml")
    assert [key for key, entry in registry.items() if "synthetic" not in entry and entry.get("names") != "public"] == []


def test_the_published_configuration_has_no_paths():
    """Check every key that a schema declares as a path."""
    config, registry = (
        yaml.safe_load((ROOT / f"workflow/schemas/{name}.schema.yaml").read_text()) for name in ("config", "registry")
    )
    (entry,) = registry["patternProperties"].values()

    def paths(keys):
        return {key for key, spec in keys.items() if "path" in f"{spec.get('type')} {spec.get('items')}"}

    assert paths(config["properties"]) == {*PATH_KEYS}
    assert paths(entry["properties"]) | {"files"} == {*TRACE_PATH_KEYS}
    settings = {"taxonomy": "ann.yaml", "seed": 1, "registry": {"mine": {"folder": "ann", "format": "sacct"}}}
    assert remove_paths(settings) == {"seed": 1, "registry": {"mine": {"format": "sacct"}}}
