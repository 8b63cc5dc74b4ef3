"""Fine-tune a model to mark answers in passages.

Conventions
-----------
The loss of a question is the mean of two cross-entropies, of where its answer begins and ends,
each of one softmax over the passage's tokens in all of its windows. So windows without the answer
are learned from as well: their scores are what the answer's have to exceed when all windows are
read together, and no token has to stand for "not here". A step learns from `batch_size`
questions. An answer that several windows hold may be found in any of them.
The answer learned is a question's first with a known place; questions without any, or whose
answer no window holds whole, are left out and counted. What chooses the checkpoint is the exact
match of the selection questions (column `selection_accuracy` of the log), then their loss.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl
import torch
from numpy.typing import NDArray
from torch import Tensor

from advsets.answers import exact_match
from advsets.errors import UserError
from advsets.io import read_json
from advsets.models import backbone, ranks
from advsets.models.batching import Batch, cells
from advsets.models.classifier import check_length
from advsets.models.finetune import carry_out, describe_run, new_run, run_key
from advsets.models.heads import group_sequences
from advsets.models.precision import prepare_device
from advsets.models.qa.reader import new_reader
from advsets.models.qa.spans import Gold, best_answers, mark_gold
from advsets.models.qa.windows import Windows, WindowSettings, cut_windows, report_windows
from advsets.models.sampling import cap_examples, selection_mask
from advsets.models.settings import FineTuneSettings
from advsets.registry import EXTRACTIVE_QA, ModelRow
from advsets.seeding import seed_for

Place = tuple[int, int]


def fine_tune_questions(
    model: ModelRow,
    model_json: Path,
    name: str,
    train: pl.DataFrame,
    settings: FineTuneSettings,
    windows: WindowSettings,
    *,
    seed: int,
    out: Path,
    log: Path,
    work: Path,
    device: str,
) -> None:
    """Fine-tune `model` on questions and write a checkpoint folder and a training log.

    Parameters
    ----------
    model_json : Path
        What `fetch_model` wrote.
    name : str
        Of the training set, for messages and the checkpoint's description.
    train : DataFrame
        Table `questions`: rows of split `train` are learned; rows of split `validation` choose the
        checkpoint, or, without any, a slice of train by passage as `selection_share` says. Rows
        of split `test` are left alone.
    settings : FineTuneSettings
        `max_length` counts the tokens of the question and of its window; `max_train_examples`
        caps the questions that are learned.
    out, log, work, device
        As of `advsets.models.finetune.fine_tune`.

    Raises
    ------
    UserError
        As `cut_windows` and `advsets.models.finetune.fine_tune`; and for no question to learn.
    """
    source = read_json(model_json)
    folder = Path(source["path"])
    questions, places = _questions(train, settings, seed, name)
    prepare_device(device)
    tokenizer = backbone.load_tokenizer(folder)
    cut = cut_windows(questions, tokenizer, settings.max_length, windows, f"models: {model.name}")
    report_windows(cut, settings.max_length, f"fine_tune {model.name}")
    gold = mark_gold(cut, places)
    rows = _rows(questions, gold, settings.selection_share, seed, name)
    torch.manual_seed(seed_for(seed, "start"))
    reader = new_reader(model, folder, backbone.load_config(folder))
    check_length(reader, settings.max_length, f"models: {model.name}")
    answers = questions["answers"].to_list()
    marks = [array.tobytes() for array in (cut.data.tokens, cut.data.offsets, gold.begins, gold.ends, *rows)]
    run = new_run(
        model,
        reader,
        cut.data,
        Spans(cut, gold, questions["context"].to_list(), answers, replace(windows, n_best=1)),
        rows,
        settings,
        seed=seed,
        work=work,
        device=device,
        key=run_key(model, source, name, settings, seed, windows, answers, *marks),
    )
    about = {
        "task": EXTRACTIVE_QA,
        "dataset": name,
        "label_order": [],
        "class_names": [],
        "pooling": "none",
        "windows": asdict(windows),
    }
    carry_out(run, tokenizer, {**about, **describe_run(model, source, run)}, out, log)


@dataclass(frozen=True)
class Spans:
    """The begin and end of an answer among the tokens of a question's windows."""

    windows: Windows
    gold: Gold
    contexts: list[str]
    answers: list[list[str]]
    settings: WindowSettings

    def loss(self, scores: Tensor, batch: Batch) -> Tensor:
        return self._losses(scores, batch).mean()

    def outcome(self, scores: Tensor, batch: Batch) -> tuple[int, float]:
        held = torch.from_numpy(self.gold.held[batch.rows]).to(scores.device)
        loss = self._losses(scores, batch)[held].sum().item()
        flat = scores.cpu().numpy()[cells(self.windows.data, batch.rows)[0]]
        n_right, start = 0, 0
        for row in batch.rows:
            bounds = self.windows.bounds(int(row))
            stop = start + bounds[-1][1] - bounds[0][0]
            best = best_answers(self.windows, int(row), flat[start:stop], self.settings)
            n_right += bool(best) and exact_match(self.contexts[row][best[0].begin : best[0].end], self.answers[row])
            start = stop
        return n_right, loss

    def _losses(self, scores: Tensor, batch: Batch) -> Tensor:
        """Loss of each question in nats, shape (n_questions,); infinite or none where no answer is held."""
        real, flat = cells(self.windows.data, batch.rows)
        masks = [self.windows.answerable, self.gold.begins, self.gold.ends]
        allowed, begins, ends = (self._padded(mask, real, flat, scores.device) for mask in masks)
        right = torch.stack([begins, ends], -1)
        scores = scores.masked_fill(~allowed.unsqueeze(-1), -torch.inf)
        logs = group_sequences(scores, batch.counts, -torch.inf).flatten(1, 2).log_softmax(1)
        found = group_sequences(right, batch.counts, False).flatten(1, 2)
        return -logs.masked_fill(~found, -torch.inf).logsumexp(1).mean(1)

    @staticmethod
    def _padded(
        mask: NDArray[np.bool_], real: NDArray[np.bool_], flat: NDArray[np.int64], device: torch.device
    ) -> Tensor:
        out = np.zeros(real.shape, bool)
        out[real] = mask[flat]
        return torch.from_numpy(out).to(device)


def _questions(
    table: pl.DataFrame, settings: FineTuneSettings, seed: int, name: str
) -> tuple[pl.DataFrame, list[Place | None]]:
    """Questions of use in the order of `example_id`, and where the answer of each stands."""
    train = table.filter(pl.col("split") == "train")
    known = train.filter(pl.col("answer_starts").list.eval(pl.element() >= 0).list.any())
    if known.height < train.height:
        n_unknown = train.height - known.height
        ranks.tell(f"{name}: {n_unknown} of {train.height} training questions left out: their answers have no place")
    capped = cap_examples(known.with_columns(label=pl.lit("")), settings.max_train_examples, seed).drop("label")
    questions = pl.concat([capped, table.filter(pl.col("split") == "validation")]).sort("example_id")
    pairs = zip(questions["answers"], questions["answer_starts"], strict=True)
    return questions, [_first_known(answers.to_list(), starts.to_list()) for answers, starts in pairs]


def _first_known(answers: list[str], starts: list[int]) -> Place | None:
    known = ((start, start + len(answer)) for answer, start in zip(answers, starts, strict=True) if start >= 0)
    return next(known, None)


def _rows(
    questions: pl.DataFrame, gold: Gold, selection_share: float, seed: int, name: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the questions to learn, and of those that choose the checkpoint."""
    is_train = (questions["split"] == "train").to_numpy()
    usable = np.flatnonzero(is_train & gold.held)
    n_lost = int(is_train.sum()) - len(usable)
    if n_lost:
        ranks.tell(
            f"{name}: {n_lost} of {int(is_train.sum())} training questions left out: no window holds their answer"
        )
    if len(usable) == 0:
        raise UserError(
            f"{name}: no training question whose answer stands in a window; fine-tuning needs some;"
            " check answer_starts, or raise max_length"
        )
    if not is_train.all():
        return usable, np.flatnonzero(~is_train)
    ids, passages = questions["example_id"].to_list(), questions["passage_id"].to_list()
    chosen = selection_mask([ids[r] for r in usable], [passages[r] for r in usable], selection_share, seed)
    return usable[~chosen], usable[chosen]
