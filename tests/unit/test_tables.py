"""The declarations of every table keep the rules that the module states."""

from __future__ import annotations

import pytest

from advsets.tables import TABLES, Column, Table, alternatives, collected, making, measured, questions

DTYPES = {
    "string",
    "bool",
    "int64",
    "float64",
    "list<string>",
    "list<int64>",
    "list<float64>",
    "vector",
    "list<vector>",
}
ALL = pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))


def columns_of(table: Table) -> dict[str, Column]:
    return {column.name: column for column in table.columns}


def test_names_are_unique() -> None:
    assert [
        t.name for t in [*making.LIST, *questions.LIST, *measured.LIST, *alternatives.LIST, *collected.LIST]
    ] == list(TABLES)


@ALL
def test_columns_are_declared_in_full(table: Table) -> None:
    assert len(set(table.column_names)) == len(table.columns)
    for column in table.columns:
        assert column.dtype in DTYPES, column
        assert column.meaning and "\n" not in column.meaning, column


@ALL
def test_key_is_made_of_columns(table: Table) -> None:
    assert table.key and set(table.key) <= set(table.column_names)
    assert all(not columns_of(table)[name].dtype.startswith(("list", "vector")) for name in table.key)


@ALL
def test_units_follow_the_names(table: Table) -> None:
    for column in table.columns:
        if column.name.endswith("_s"):
            assert column.unit == "s", column
        if column.name.endswith("_bits") or "_bits_" in column.name:
            assert column.unit == "bits", column
        if column.name.endswith(("_share", "_rate")) or column.name in ("accuracy", "agreement", "predictability"):
            assert column.dtype == "float64" and (not column.unit or column.unit == "share"), column
        if column.name.startswith("n_"):
            assert column.dtype == "int64", column


@ALL
def test_names_of_the_house_rules(table: Table) -> None:
    banned = {"filtered", "round", "target", "model_name", "id", "label_id", "score"}
    assert not banned & set(table.column_names)


def test_columns_that_are_always_nullable() -> None:
    for table in TABLES.values():
        for name in ("removed_in_round", "predictability", "margin", "group_id"):
            if name in columns_of(table):
                assert columns_of(table)[name].nullable, (table.name, name)


def test_one_column_has_one_dtype_across_tables() -> None:
    # `candidates` holds texts in `examples` and vectors in `candidate_embeddings`.
    dtypes: dict[str, set[str]] = {}
    for table in TABLES.values():
        for column in table.columns:
            dtypes.setdefault(column.name, set()).add(column.dtype)
    assert {name: kinds for name, kinds in dtypes.items() if len(kinds) > 1} == {
        "candidates": {"list<string>", "list<vector>"}
    }
