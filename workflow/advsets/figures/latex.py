r"""The table of training sets as LaTeX, for a document with \usepackage{booktabs}.

One table per collection, over both columns of a page that has two: rows are models and training
sets, columns evaluation sets with exact match and F1, or accuracy, in percent: mean ± sample
standard deviation over seeds. Four sets with both fit in 16 cm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from advsets.figures import collected
from advsets.figures.context import FigureContext

_SHORT = {"accuracy": "Acc.", "exact_match": "EM", "f1": "F1"}
_SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\n": " ",
    **{letter: f"\\{letter}" for letter in "&%$#_{}"},
}


def escape(text: str) -> str:
    """Text with LaTeX's own characters written so that they are printed."""
    return "".join(_SPECIAL.get(letter, letter) for letter in text)


def latex(table: pl.DataFrame, titles: FigureContext) -> str:
    r"""Tables of `cross_training`, one `table*` environment per collection.

    Parameters
    ----------
    table : pl.DataFrame
        Rows of `cross_training`.
    titles : FigureContext
        Titles and order of sets, training sets and models.

    Returns
    -------
    str
        To be read by `\input`; a comment alone where the table has no rows.
    """
    head = "% Needs \\usepackage{booktabs}.\n"
    table = collected.underlined(table)
    names = titles.order_collections(table["collection"])
    if not names:
        return head + "% No model was trained and scored.\n"
    return head + "\n".join(_table(table.filter(pl.col("collection") == name), name, titles) for name in names)


def _table(part: pl.DataFrame, collection: str, titles: FigureContext) -> str:
    measures = sorted(part["measure"].unique())
    sets = titles.order_sets(collection, part["dataset"])
    columns = [(name, measure) for name in sets for measure in measures]
    lines = [
        r"\begin{table*}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\caption{{{escape(_caption(part, collection, measures))}}}",
        rf"\label{{tab:cross-training-{_label(collection)}}}",
        rf"\begin{{tabular}}{{ll{'r' * len(columns)}}}",
        r"\toprule",
        *_header(sets, measures, titles),
        r"\midrule",
        *_body(part, collection, columns, titles),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table*}",
    ]
    return "\n".join(lines) + "\n"


def _caption(part: pl.DataFrame, collection: str, measures: Sequence[str]) -> str:
    seeds = int(part["n_seeds"].max())  # type: ignore[arg-type]
    over = f"mean ± standard deviation over {seeds} fine-tuning seeds" if seeds > 1 else "one fine-tuning seed"
    scores = " and ".join(collected.MEASURES[m].lower() if m != "f1" else "F1" for m in measures)
    best = " The best training set of each model on each set is underlined." if part["underlined"].any() else ""
    return f"{collection}: {scores} (%), {over}.{best}"


def _label(name: str) -> str:
    return "".join(letter if letter.isascii() and letter.isalnum() else "-" for letter in name)


def _header(sets: Sequence[str], measures: Sequence[str], titles: FigureContext) -> list[str]:
    width = len(measures)
    wide = rf"\parbox[b]{{{3.7 * width:g}em}}{{\centering\strut "
    over = [rf"\multicolumn{{{width}}}{{c}}{{{wide}{escape(titles.dataset_title(name))}\strut}}}}" for name in sets]
    rules = [rf"\cmidrule(lr){{{3 + width * i}-{2 + width * (i + 1)}}}" for i in range(len(sets))]
    under = [_SHORT[measure] for _ in sets for measure in measures]
    return [f" & & {' & '.join(over)} \\\\", " ".join(rules), rf"Model & Training set & {' & '.join(under)} \\"]


def _body(part: pl.DataFrame, collection: str, columns: Sequence[tuple[str, str]], titles: FigureContext) -> list[str]:
    keys = ("evaluated_model", "training_set", "dataset", "measure")
    cells = {tuple(row[key] for key in keys): row for row in part.iter_rows(named=True)}
    lines = []
    for i, model in enumerate(titles.order_models(part["evaluated_model"])):
        own = part.filter(pl.col("evaluated_model") == model)
        if i:
            lines.append(r"\addlinespace")
        for j, training_set in enumerate(titles.order_training_sets(collection, own["training_set"])):
            scores = [_score(cells.get((model, training_set, *column))) for column in columns]
            name = "" if j else escape(titles.model_title(model))
            lines.append(rf"{name} & {escape(training_set)} & {' & '.join(scores)} \\")
    return lines


def _score(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "--"
    mean = f"{100 * row['mean_score']:.1f}"
    sd = "" if row["score_sd"] is None else rf"\,{{\tiny$\pm${100 * row['score_sd']:.1f}}}"
    return (rf"\underline{{{mean}}}" if row["underlined"] else mean) + sd
