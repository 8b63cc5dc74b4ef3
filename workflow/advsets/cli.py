"""The `advsets` command: one function per subcommand, each a thin call into the package."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import io
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from advsets import __version__
from advsets.errors import UserError, user_errors

EXIT_CLOSED_PIPE = 141
"""What shells report for a process that ended because nobody reads its output any more (SIGPIPE)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit code."""
    try:
        with user_errors(), _standard_output():
            options = _parser().parse_args(arguments)
            options.call(options)
    except BrokenPipeError:
        return EXIT_CLOSED_PIPE
    return 0


@contextlib.contextmanager
def _standard_output() -> Iterator[None]:
    """Print what the terminal's encoding lacks as escapes, and write all out before the end."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        yield
    finally:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                _flush(stream)


def _flush(stream: TextIO) -> None:
    """Flush `stream`; if it cannot be written any more, give up what it holds, or the interpreter's end fails too."""
    try:
        stream.flush()
    except OSError:
        with contextlib.suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        raise


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="advsets",
        description="Build harder evaluation sets by adversarial means, and measure whether they are fair.",
    )
    parser.add_argument("--version", action="version", version=f"advsets {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_filter(commands)
    _add_evaluate(commands)
    _add_score(commands)
    _add_import_predictions(commands)
    _add_summary(commands)
    _add_cost(commands)
    _add_keys(commands)
    return parser


def _add_filter(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    from advsets.aflite.settings import COMBINATIONS, MEAN, FilterSettings

    parser = commands.add_parser(
        "filter",
        help="filter an evaluation set with AFLite, from embeddings of your own",
        description="AFLite on two Parquet files with columns example_id, label, embedding (or candidates) and"
        " optionally group_id. Writes retained.parquet, retained_train.parquet, round_scores.parquet and"
        " rounds.parquet. The same command goes on at its last whole round if it was killed, and has nothing to do"
        " once it has ended. A folder that holds a run on other input or settings, or files of these names that are"
        " not of a run, is left alone unless --overwrite is given.",
    )
    parser.add_argument("train", type=_path, help="embeddings of the training set (Parquet)")
    parser.add_argument("evaluation", type=_path, nargs="?", help="embeddings of the evaluation set (Parquet)")
    parser.add_argument(
        "--also",
        type=_path,
        nargs="+",
        action="append",
        default=[],
        metavar=("TRAIN", "EVALUATION"),
        help="embeddings of the same examples by one more adversary, joined by example_id; once for each",
    )
    parser.add_argument(
        "--combination",
        choices=COMBINATIONS,
        help=f"with --also: predictability over all adversaries' classifiers, or by the one that predicts a row worst"
        f" (default {MEAN})",
    )
    parser.add_argument("--out", type=_path, required=True, help="folder to write to")
    parser.add_argument("--overwrite", action="store_true", help="replace what another run has left in --out")
    parser.add_argument("--seed", type=int, default=0, help="seed of the partitions (default 0)")
    parser.add_argument("--threads", type=int, default=None, help="CPU threads (default: as many as there are)")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto", help="where to fit (default auto)")
    group = parser.add_argument_group("AFLite settings (numbers below 1 are shares of the training rows)")
    for field in dataclasses.fields(FilterSettings):
        _add_setting(group, field)
    parser.set_defaults(call=_filter)


def _path(text: str) -> Path:
    """Path, but not an empty one: that would be the current folder."""
    if not text:
        raise UserError("command line: a path is empty; allowed: a file or folder; check the shell variables in it")
    return Path(text)


def _add_setting(group: argparse._ArgumentGroup, field: dataclasses.Field[object]) -> None:
    flag = f"--{field.name.replace('_', '-')}"
    shown = f"default {'none' if field.default is None else field.default}"
    if isinstance(field.default, bool):
        group.add_argument(flag, action=argparse.BooleanOptionalAction, default=field.default, help=shown)
    elif isinstance(field.default, str):
        group.add_argument(flag, choices=["more_than", "at_least"], default=field.default, help=shown)
    else:
        kind = int if isinstance(field.default, int) else _number
        group.add_argument(flag, type=kind, default=field.default, help=shown, metavar="N")


def _number(text: str) -> int | float:
    """Integer where the text is one (a count), else a float (a share)."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def _members(options: argparse.Namespace) -> tuple[list[Path], list[Path] | None]:
    """Training and evaluation files of every adversary."""
    first = [path for path in (options.train, options.evaluation) if path is not None]
    wanted = "TRAIN EVALUATION" if len(first) == 2 else "TRAIN alone, as there is no evaluation set"
    for paths in options.also:
        if len(paths) != len(first):
            shown = " ".join(map(str, paths))
            raise UserError(f"command line: --also {shown}: {len(paths)} path(s); allowed: {wanted}; repeat --also")
    if options.combination is not None and not options.also:
        raise UserError(
            f"command line: --combination {options.combination} of one adversary; allowed: with --also only; give the"
            " embeddings of another adversary, or leave it out"
        )
    columns = list(zip(first, *options.also, strict=True))
    return list(columns[0]), list(columns[1]) if len(first) == 2 else None


def _filter(options: argparse.Namespace) -> None:
    from advsets.aflite.run import filter_files
    from advsets.aflite.settings import MEAN, FilterSettings

    names = [field.name for field in dataclasses.fields(FilterSettings)]
    settings = FilterSettings(**{name: getattr(options, name) for name in names})
    filter_files(
        *_members(options),
        options.out,
        settings,
        combination=options.combination or MEAN,
        seed=options.seed,
        threads=options.threads,
        device=options.device,
        overwrite=options.overwrite,
    )


def _add_evaluate(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "evaluate",
        help="score predictions of any model on full, filtered and random subsets",
        description="Predictions (CSV, JSON, JSONL or Parquet with example_id and predicted_label), joined by id.",
    )
    parser.add_argument("predictions", type=_path, nargs="+", help="predictions, one file per model")
    parser.add_argument(
        "--set", type=_path, required=True, dest="set_dir", help="output of `advsets filter`, or a filtered set"
    )
    parser.add_argument("--out", type=_path, default=None, help="also write the scores there (CSV or Parquet)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the resampling (default 0)")
    parser.add_argument("--n-bootstrap", type=int, default=1000, help="resampling draws (default 1000)")
    parser.add_argument("--n-random-subsets", type=int, default=100, help="size-matched random subsets (default 100)")
    parser.add_argument("--confidence", type=float, default=0.95, help="of the intervals (default 0.95)")
    parser.add_argument(
        "--other-labels", nargs="*", default=[], metavar="LABEL", help="labels that may be predicted and are never gold"
    )
    parser.set_defaults(call=_evaluate)


def _evaluate(options: argparse.Namespace) -> None:
    from advsets.evaluation.own_predictions import evaluate_predictions
    from advsets.evaluation.settings import EvaluateSettings

    settings = EvaluateSettings(
        n_bootstrap=options.n_bootstrap,
        confidence=options.confidence,
        n_random_subsets=options.n_random_subsets,
        n_agreement_bins=2,
        n_predictability_bins=2,
        seed=options.seed,
    )
    evaluate_predictions(options.predictions, options.set_dir, options.out, settings, other_labels=options.other_labels)


def _add_score(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("score", help="score answers to questions by exact match and F1")
    kinds = parser.add_subparsers(required=True, metavar="KIND")
    answers = kinds.add_parser(
        "qa",
        help="answers that are parts of passages, by the official rules of SQuAD 1.1",
        description="Exact match and F1, 0 to 100, by the official rules of SQuAD 1.1. Answers are joined by id; one"
        " that is missing counts as wrong.",
    )
    answers.add_argument("gold", type=_path, help="questions in the format of SQuAD 1.1 (JSON)")
    answers.add_argument("predictions", type=_path, help="JSON object of id to answer")
    answers.add_argument(
        "--out", type=_path, default=None, help="also write the scores of each question there (CSV or JSON)"
    )
    answers.set_defaults(call=_score_questions)


def _score_questions(options: argparse.Namespace) -> None:
    from advsets.evaluation.question_scores import score_questions

    score_questions(options.gold, options.predictions, options.out)


def _add_import_predictions(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "import-predictions",
        help="bring predictions that others made into the form of our own",
        description="Predictions (CSV, TSV, JSON, JSONL or Parquet, also .gz), joined by id, labels mapped by name."
        " Without --id-column the file is a JSON object of id to label or answer.",
    )
    parser.add_argument("file", type=_path, help="file of predictions")
    parser.add_argument(
        "--examples",
        type=_path,
        required=True,
        help="examples that they are on: a prepared evaluation.parquet, or any table with columns example_id and label",
    )
    parser.add_argument("--out", type=_path, required=True, help="Parquet file to write")
    parser.add_argument(
        "--key",
        choices=["source_id", "example_id"],
        default=None,
        help="column of the examples that the ids are (default source_id, where the examples have it)",
    )
    parser.add_argument("--id-column", default=None, metavar="COLUMN", help="ids")
    parser.add_argument(
        "--label-column", default=None, metavar="COLUMN", help="predicted labels (default: the most probable ones)"
    )
    parser.add_argument(
        "--probability-columns",
        nargs="+",
        default=[],
        metavar="COLUMN",
        help="one column of lists or mappings, or one column per label",
    )
    parser.add_argument(
        "--probability-order",
        nargs="+",
        default=[],
        metavar="LABEL",
        help="labels, as the file writes them, in the order of its probabilities",
    )
    parser.add_argument(
        "--labels",
        nargs="+",
        default=[],
        metavar="RAW=NAME",
        help="the file's labels and ours, e.g. e=entailment n=neutral (default: the same)",
    )
    parser.add_argument(
        "--label-order",
        nargs="+",
        default=[],
        metavar="NAME",
        help="order in which probabilities are written (default: the examples' labels, sorted)",
    )
    parser.add_argument(
        "--answer-column", default=None, metavar="COLUMN", help="answers to questions, instead of labels"
    )
    parser.set_defaults(call=_import_predictions)


def _import_predictions(options: argparse.Namespace) -> None:
    from advsets.evaluation.collected.import_command import import_file, label_names

    columns = options.probability_columns
    keys = {
        "key": options.key,
        "columns": {
            "id": options.id_column,
            "predicted_label": options.label_column,
            "probabilities": columns if len(columns) > 1 else next(iter(columns), None),
            "answer": options.answer_column,
        },
        "probability_order": options.probability_order,
        "labels": label_names(options.labels),
    }
    import_file(options.file, options.examples, options.out, keys, options.label_order, sys.stdout)


def _add_summary(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("summary", help="print what a finished run found and where its files lie")
    parser.add_argument("run", type=_path, help="folder of the run, e.g. results/demo")
    parser.set_defaults(call=_summary)


def _summary(options: argparse.Namespace) -> None:
    from advsets.evaluation.summary import print_summary

    print_summary(options.run, sys.stdout)


def _add_cost(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "cost",
        help="say what a run still has to do and what it will cost",
        description="Jobs, GPU hours, CPU hours and disk of what is left of a run, by stage: from the benchmarks of"
        " finished jobs where there are some, else from the assumptions under `cost` in the configuration. Nothing is"
        " run. To be called in the project's folder.",
    )
    parser.add_argument(
        "--config",
        type=_path,
        nargs="+",
        default=[Path("config/config.yaml")],
        metavar="FILE",
        help="configuration of the run (default config/config.yaml)",
    )
    parser.set_defaults(call=_cost)


def _cost(options: argparse.Namespace) -> None:
    from advsets.cost.command import print_cost

    print_cost(options.config, sys.stdout)


def _add_keys(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser("keys", help="print the reference of configuration keys (Markdown)")
    parser.set_defaults(call=lambda options: _keys())


def _keys() -> None:
    from advsets.keys import reference

    print(reference(), end="")


if __name__ == "__main__":
    sys.exit(main())
