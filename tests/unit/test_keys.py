"""config/README.md is written out of the schemas and says every key."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from advsets import keys
from advsets.schemas import schema

PROJECT = Path(__file__).resolve().parents[2]
ROWS = [line for line in keys.reference().splitlines() if line.startswith("| `") and line.count("|") > 3]
CELLS = {row.split("|")[1].strip().strip("`"): [cell.strip() for cell in row.split(" | ")] for row in ROWS}


def test_readme_is_up_to_date() -> None:
    found = (PROJECT / "config" / "README.md").read_text(encoding="utf-8")
    assert found == keys.reference(), "run `make docs`"


def test_every_key_has_type_meaning_and_default() -> None:
    for row in ROWS:
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 5, row
        assert cells[1] and cells[3], row
        assert cells[2] or cells[1] == "mapping", row


@pytest.mark.parametrize(
    ("key", "kind", "default"),
    [
        ("run", "string", "required"),
        ("seed", "integer", "`0`"),
        ("filter.min_retained", "number or null", "`null`"),
        ("fine_tuning_seeds.adversary", "list of integer", "`[0]`"),
        ("embed.dtype", '`"float32"` or `"float16"`', '`"float32"`'),
        ("columns.text_a", "string or list of string", '`"text"`'),
        ("labels", "mapping or null", "`null`"),
        ("source", "mapping", "required"),
        ("source(pypi).reader", "string", "required"),
        ("source(url).evaluation", "string or null", "`null`"),
        ("source(package).folder", "string", "required"),
        ("category", "string", "required"),
    ],
)
def test_rows(key: str, kind: str, default: str) -> None:
    assert CELLS[key][1:3] == [kind, default]


def test_every_schema_key_is_listed() -> None:
    for name in ("config", "datasets", "models", "figures"):
        node = schema(name)
        node = node if "properties" in node else node["additionalProperties"]
        for key, child in node["properties"].items():
            assert key in CELLS
            for inner in child.get("properties", {}):
                assert f"{key}.{inner}" in CELLS


def test_sources_of_defaults_name_keys_that_exist() -> None:
    assert set(keys._SOURCES) <= set(CELLS)
    assert CELLS["filter.n_partitions"][4].startswith("64 in Le Bras et al. 2020")


def test_defaults_can_be_copied_into_yaml() -> None:
    found = {key: node["default"] for key, node in schema("config")["properties"]["fine_tune"]["properties"].items()}
    shown = {key: yaml.safe_load(CELLS[f"fine_tune.{key}"][2].strip("`")) for key in found}
    assert shown == found
    assert CELLS["filter.tolerance"][2] == "`1.0e-05`"


def test_files_that_the_page_names_are_there() -> None:
    names = re.findall(r"`(\w+\.yaml)`", keys.reference())
    assert names and all((PROJECT / "config" / name).is_file() for name in names)
