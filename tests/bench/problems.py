"""What is measured on: the real vectors of the demo's model, and synthetic ones of any size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / "results" / "bench" / "data"
SNIPPETS = ("hutto_movies", "hutto_tweets", "hutto_editorials", "hutto_products")
CLASSES = ("negative", "neutral", "positive")


@dataclass(frozen=True)
class Problem:
    """Rows (n, n_features) float32, standardised, with labels (n,) and hashes of ids (n,) uint64."""

    x: NDArray[np.float32]
    y: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    train_size: int
    n_partitions: int = 64

    @property
    def n_classes(self) -> int:
        return int(self.y.max()) + 1

    def draw(self) -> NDArray[np.bool_]:
        """Training subsets of round 1."""
        from advsets.aflite.partitions import draw_masks

        return draw_masks(self.hashes, self.y, self.train_size, self.n_partitions, seed=0, filtering_round=1)


def real(train_size: int = 10_000) -> Problem:
    """Vectors (mean of tokens, six layers) of all 23,703 rated snippets under the demo's model."""
    import polars as pl

    frame = pl.read_parquet(vectors_file())
    x = np.stack(frame["embedding"].to_numpy()).astype(np.float32)
    y = np.array([CLASSES.index(label) for label in frame["label"]], dtype=np.int64)
    return _problem(x, y, train_size)


def synthetic(n: int, d: int, train_size: int, n_partitions: int = 64, n_classes: int = 3) -> Problem:
    """Correlated features, of which a part tells the classes apart about as well as real embeddings do."""
    rng = np.random.default_rng(0)
    y = rng.integers(n_classes, size=n)
    centres = rng.normal(size=(n_classes, d)) * 1.4 / np.sqrt(d)
    mixing = (rng.normal(size=(d, d)) * 0.7 / np.sqrt(d) + 0.7 * np.eye(d)).astype(np.float32)
    x = np.empty((n, d), dtype=np.float32)
    for start in range(0, n, 8192):
        rows = slice(start, min(start + 8192, n))
        noise = rng.standard_normal((rows.stop - rows.start, d), dtype=np.float32)
        x[rows] = (noise + centres[y[rows]].astype(np.float32)) @ mixing
    return _problem(x, y, train_size, n_partitions)


def _problem(x: NDArray[np.float32], y: NDArray[np.int64], train_size: int, n_partitions: int = 64) -> Problem:
    from advsets.seeding import id_hashes

    for start in range(0, x.shape[1], 64):
        columns = x[:, start : start + 64]
        columns -= columns.mean(0, dtype=np.float64).astype(np.float32)
        columns /= columns.std(0, dtype=np.float64).astype(np.float32)
    return Problem(x, y, id_hashes([f"row-{i:07d}" for i in range(len(y))]), train_size, n_partitions)


def vectors_file() -> Path:
    """Table `embeddings` of the snippets, computed once."""
    from advsets.models.embed import embed
    from advsets.models.settings import EmbedSettings

    path = CACHE / "vectors.parquet"
    if not path.is_file():
        settings = EmbedSettings(dtype="float32", tokens_per_batch=4096, max_length=128)
        embed(checkpoint(), snippets(), path, settings, device="cpu")
    return path


def snippets() -> Any:
    """Table `examples` of all snippets; the label is the vote of most raters (the first of equal ones)."""
    import polars as pl

    from advsets.config import load_datasets
    from advsets.datasets import sources

    path = CACHE / "examples.parquet"
    if not path.is_file():
        rows: dict[str, list[Any]] = {"example_id": [], "text_a": [], "label": []}
        for name, row in load_datasets([ROOT / "config" / "datasets.yaml"]).items():
            if name in SNIPPETS:
                sources.fetch(row, CACHE / name)
                columns = ["id", "text", "votes"]
                raw = sources.read(row, CACHE / name, {"train": columns, "evaluation": []})["train"].columns
                rows["example_id"] += [f"{name}/{i}" for i in raw["id"]]
                rows["text_a"] += raw["text"]
                rows["label"] += [max(CLASSES, key=votes.count) for votes in raw["votes"]]
        frame = pl.DataFrame(rows).with_columns(
            text_b=pl.lit(None, pl.String),
            group_id=pl.lit(None, pl.String),
            candidates=pl.lit(None, pl.List(pl.String)),
        )
        frame.sort("example_id").write_parquet(path)
    return pl.read_parquet(path)


def model_folder() -> Path:
    """The demo's pretrained model, in the hub's format."""
    from advsets.io import read_json
    from advsets.models.sources import fetch_model

    folder = CACHE / "model"
    folder.mkdir(parents=True, exist_ok=True)
    fetch_model(model_row(), folder)
    return Path(read_json(folder / "model.json")["path"])


def model_row() -> Any:
    """The demo's model with all its layers, mean pooling."""
    from advsets.config import read_rows
    from advsets.registry import ModelRow

    return ModelRow.from_config("minilm_l6", read_rows([ROOT / "config" / "models.yaml"], "models")["minilm_l6"])


def checkpoint() -> Path:
    """Checkpoint folder of the pretrained model with a fresh head: its vectors are the pretrained ones."""
    import torch

    from advsets.models import backbone
    from advsets.models.checkpoint import save_checkpoint
    from advsets.models.classifier import new_classifier
    from advsets.registry import SEQUENCE_CLASSIFICATION

    out = CACHE / "checkpoint"
    if not out.is_dir():
        torch.manual_seed(0)
        folder, row = model_folder(), model_row()
        classifier = new_classifier(row, folder, backbone.load_config(folder), SEQUENCE_CLASSIFICATION, CLASSES)
        description = {
            "task": SEQUENCE_CLASSIFICATION,
            "label_order": list(CLASSES),
            "class_names": list(CLASSES),
            "pooling": row.pooling,
            "precision": row.precision,
            "base_model": row.name,
        }
        save_checkpoint(classifier, backbone.load_tokenizer(folder), description, out)
    return out
