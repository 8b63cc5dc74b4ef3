"""Every table's columns: name, dtype, unit and meaning. The only place where they stand.

Conventions
-----------
dtypes: "string", "bool", "int64", "float64", "list<string>", "list<int64>", "list<float64>",
"vector" (list of fixed size, float32 or float16) and "list<vector>".
Shares and rates run from 0 to 1. Columns that end in `_s` are seconds and may differ between
two runs on the same input; every other column may not.
Tables are sorted by their `key` before they are written, so equal content gives equal files.
"""

from __future__ import annotations

from advsets.tables import alternatives, collected, making, measured, questions
from advsets.tables.base import Column, Table

TABLES: dict[str, Table] = {
    table.name: table for table in (*making.LIST, *questions.LIST, *measured.LIST, *alternatives.LIST, *collected.LIST)
}

__all__ = ["TABLES", "Column", "Table"]
