"""Only checkpoints from which everything planned is made go."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from advsets.cleaning import clean_checkpoints


class Run:
    """Folder of a run with checkpoints, and what was made from them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.embeddings: list[str] = []
        self.predictions: list[str] = []
        self.collected: dict[str, list[str]] = {}

    def checkpoint(self, role: str, model: str, seed: int = 0, dataset: str = "d") -> Path:
        return self.checkpoints_in(self.root / "models" / dataset / role / model / f"seed{seed}")

    def checkpoints_in(self, folder: Path) -> Path:
        for name in ("checkpoint", "checkpoint.work"):
            (folder / name).mkdir(parents=True)
            (folder / name / "weights").write_bytes(b"x" * 2**20)
        (folder / "training_log.parquet").write_text("log")
        return folder

    def adversary(self, model: str, splits: list[str], seed: int = 0, dataset: str = "d") -> Path:
        made = self.root / "embeddings" / dataset / model / f"seed{seed}"
        made.mkdir(parents=True)
        for split in splits:
            (made / f"{split}.parquet").write_text("vectors")
        self.embeddings.append(str(made))
        return self.checkpoint("adversary", model, seed, dataset)

    def evaluated_model(self, model: str, done: bool, seed: int = 0, dataset: str = "d") -> Path:
        made = self.root / "predictions" / dataset / model / f"seed{seed}" / "evaluation.parquet"
        made.parent.mkdir(parents=True)
        if done:
            made.write_text("predictions")
        self.predictions.append(str(made))
        return self.checkpoint("evaluated_model", model, seed, dataset)

    def collected_model(self, model: str, made: list[str], seed: int = 0, collection: str = "c") -> Path:
        """Model of a collection of the evaluation sets `standard` and `hard`, of which it has predicted `made`."""
        part = self.root / "collected" / collection
        predictions = [
            part / "predictions/t" / model / f"seed{seed}" / f"{name}.parquet" for name in ("standard", "hard")
        ]
        predictions[0].parent.mkdir(parents=True)
        for path in predictions:
            if path.stem in made:
                path.write_text("predictions")
        folder = self.checkpoints_in(part / "models/t" / model / f"seed{seed}")
        self.collected[str(folder)] = [str(path) for path in predictions]
        return folder

    def clean(self) -> list[Path]:
        return clean_checkpoints(str(self.root), self.embeddings, self.predictions, self.collected)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path / "results" / "r")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_removes_only_what_is_done(run: Run) -> None:
    done = [
        run.adversary("a", ["train", "evaluation"]),
        run.adversary("a", ["train", "evaluation"], seed=1),
        run.evaluated_model("a", done=True),
        run.evaluated_model("b", done=True, dataset="e", seed=3),
    ]
    kept = [
        run.adversary("b", ["train"]),
        run.adversary("c", ["evaluation"]),
        run.adversary("e", [], dataset="e"),
        run.evaluated_model("c", done=False),
        run.checkpoint("adversary", "not_planned"),
    ]
    removed = run.clean()
    assert sorted(removed) == sorted(folder / name for folder in done for name in ("checkpoint", "checkpoint.work"))
    assert all(names_in(folder) == ["training_log.parquet"] for folder in done)
    assert all(names_in(folder) == ["checkpoint", "checkpoint.work", "training_log.parquet"] for folder in kept)


def test_models_of_collections_go_when_all_their_sets_are_predicted(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    both = ["standard", "hard"]
    done = [run.collected_model("a", both), run.collected_model("a", both, seed=1, collection="e")]
    kept = [
        run.collected_model("b", ["standard"]),
        run.collected_model("b", ["hard"], seed=1),
        run.collected_model("a", [], collection="f"),
        run.evaluated_model("a", done=False),
    ]
    removed = run.clean()
    assert sorted(removed) == sorted(folder / name for folder in done for name in ("checkpoint", "checkpoint.work"))
    assert all(names_in(folder) == ["training_log.parquet"] for folder in done)
    assert all("checkpoint" in names_in(folder) for folder in kept)
    assert f"advsets: removed {done[1] / 'checkpoint'} (1 MiB)\n" in capsys.readouterr().err


def test_says_what_it_removed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    folder = run.adversary("a", ["train", "evaluation"])
    run.clean()
    assert capsys.readouterr().err.splitlines() == [
        f"advsets: removed {folder / 'checkpoint'} (1 MiB)",
        f"advsets: removed {folder / 'checkpoint.work'} (1 MiB)",
    ]
    assert run.clean() == []
    assert capsys.readouterr().err == "advsets: no checkpoint to remove\n"


def test_an_adversary_does_not_decide_on_the_evaluated_model_of_its_name(run: Run) -> None:
    run.adversary("a", ["train", "evaluation"])
    folder = run.evaluated_model("a", done=False)
    run.clean()
    assert (folder / "checkpoint" / "weights").is_file()


def test_a_removal_that_was_cut_short_leaves_no_half_checkpoint(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = run.adversary("a", ["train", "evaluation"])

    def killed(path: Path) -> None:
        (path / "weights").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            run.clean()
    assert not (folder / "checkpoint").exists()
    run.clean()
    assert names_in(folder) == ["training_log.parquet"]
