"""Every row of the figures table can be drawn from its own tables, saved, and captioned."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import jinja2
import matplotlib
import polars as pl
import pytest
import yaml
from PIL import Image

from advsets.errors import UserError
from advsets.figures import registry

ROOT = Path(__file__).resolve().parents[3]
ROWS = yaml.safe_load((ROOT / "config" / "figures.yaml").read_text(encoding="utf-8"))


def digests(paths: list[Path]) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in paths]


@pytest.mark.parametrize("name", ROWS)
def test_own_tables_suffice(name, tables_of, cases, tmp_path) -> None:
    tables = {table: tables_of("one_adversary")[table] for table in ROWS[name]["tables"]}
    paths = registry.save(*registry.draw(name, tables, cases["one_adversary"].context()), tmp_path / "a")
    assert [path.name for path in paths] == ["a.pdf", "a.png", "a.csv"]
    assert sorted(tmp_path.iterdir()) == sorted(paths)
    assert paths[0].read_bytes()[:5] == b"%PDF-"
    assert b"CreationDate" not in paths[0].read_bytes()
    with Image.open(paths[1]) as image:
        assert image.width >= 1300
        assert set(image.info) <= {"Software", "dpi"}


@pytest.mark.parametrize("name", ["rank_bump_chart", "predictability_histogram", "agreement"])
def test_row_order_changes_no_byte(name, tables_of, cases, tmp_path) -> None:
    tables, context = tables_of("one_adversary"), cases["one_adversary"].context()
    shuffled = {table: frame.sample(fraction=1, shuffle=True, seed=1) for table, frame in tables.items()}
    first = registry.save(*registry.draw(name, tables, context), tmp_path / "a")
    second = registry.save(*registry.draw(name, shuffled, context), tmp_path / "b")
    assert digests(first) == digests(second)


def test_csv_holds_the_data(tables_of, cases, tmp_path) -> None:
    figure, data = registry.draw("penalty", tables_of("small"), cases["small"].context())
    registry.save(figure, data, tmp_path / "penalty")
    assert pl.read_csv(tmp_path / "penalty.csv", schema=data.schema).equals(data)


def test_files_do_not_depend_on_the_process(tmp_path) -> None:
    code = (
        "import sys;"
        "from synthetic.cases import CASES, make_tables;"
        "from advsets.figures import registry;"
        "study = CASES['small'];"
        "figure = registry.draw('retained_share_by_round', make_tables(study), study.context());"
        "registry.save(*figure, sys.argv[1])"
    )
    path = os.pathsep.join(sys.path)
    for stem, hash_seed in (("a", "1"), ("b", "2")):
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": hash_seed, "TZ": f"UTC{hash_seed}"}
        subprocess.run([sys.executable, "-c", code, str(tmp_path / stem)], check=True, env=environment)
    for kind in ("pdf", "png", "csv"):
        assert (tmp_path / f"a.{kind}").read_bytes() == (tmp_path / f"b.{kind}").read_bytes(), kind


def test_settings_of_the_process_are_left_alone(tables_of, cases, tmp_path) -> None:
    with matplotlib.rc_context({"font.size": 31.0, "axes.grid": False}):
        before = dict(matplotlib.rcParams)
        wild = registry.save(*registry.draw("penalty", tables_of("small"), cases["small"].context()), tmp_path / "a")
        assert dict(matplotlib.rcParams) == before
    tame = registry.save(*registry.draw("penalty", tables_of("small"), cases["small"].context()), tmp_path / "b")
    assert digests(wild) == digests(tame)


@pytest.mark.parametrize("name", ["no_such_figure", "style", "a.b", "../x"])
def test_unknown_figure(name) -> None:
    with pytest.raises(UserError, match=r"config/figures.yaml: figure .* has no module; allowed"):
        registry.draw(name, {}, None)


@pytest.mark.parametrize("name", ROWS)
def test_caption_renders(name) -> None:
    from advsets.schemas import validate

    path = ROOT / "workflow" / "report" / ROWS[name]["caption"]
    config = yaml.safe_load((ROOT / "config" / "demo.yaml").read_text(encoding="utf-8"))
    template = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(path.read_text(encoding="utf-8"))
    text = template.render(snakemake=SimpleNamespace(config=validate(config, "config", "config/demo.yaml")))
    assert "{" not in text and " n" in text
    assert len(text.split("\n\n")) == 1, "one paragraph"
