"""Heat maps and LaTeX of training sets show the same numbers, and underline the same cells."""

from __future__ import annotations

import functools
import re

import polars as pl
import pytest
from matplotlib.lines import Line2D
from matplotlib.text import Text
from synthetic.collected import make_collected
from synthetic.collected_cases import COLLECTED
from synthetic.legible import faults

from advsets.figures import registry
from advsets.figures.context import FigureContext
from advsets.figures.latex import escape, latex

NAME = "cross_training"


def table(case: str) -> pl.DataFrame:
    return make_collected(COLLECTED[case])[NAME]


@functools.cache
def drawn(case: str):
    return registry.draw(NAME, {NAME: table(case)}, COLLECTED[case].context())


def texts(figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text)]


def maps(figure) -> list:
    return [axes for axes in figure.axes if axes.get_images() and axes.get_title(loc="left")]


def written(axes, gid: str) -> list[str]:
    return [text.get_text() for text in axes.texts if text.get_gid() == gid]


def test_a_map_per_model_in_configured_order() -> None:
    figure, data = drawn("questions")
    axes = maps(figure)
    assert [a.get_title(loc="left") for a in axes] == ["mini", "bert-large"]
    names = [label.get_text() for label in axes[0].get_yticklabels()]
    assert names == ["squad (5,400)", "D-BERT (5,400)", "squad+D-BERT (5,400)"]
    assert [label.get_text() for label in axes[-1].get_xticklabels()] == [
        "SQuAD 1.1 test",
        "AdversarialQA\nD(BERT)",
        "AdversarialQA\nD(RoBERTa)",
    ]
    assert "adversarial_qa: Exact match / F1 in %, 3 seeds" in texts(figure)
    assert data.height == 2 * 3 * 3 * 2


def test_colours_are_f1_and_words_both_measures() -> None:
    figure, data = drawn("questions")
    axes = maps(figure)[1]
    own = data.filter(evaluated_model="bert-large")
    f1 = {(row["training_set"], row["dataset"]): row["mean_score"] for row in own.filter(measure="f1").to_dicts()}
    image = axes.get_images()[0].get_array()
    for i, training_set in enumerate(("squad", "D-BERT", "squad+D-BERT")):
        for j, dataset in enumerate(("squad", "D-BERT", "D-RoBERTa")):
            assert image[i, j] == pytest.approx(f1[training_set, dataset])
    means = sorted(written(axes, "best") + written(axes, "cell"))
    assert means == sorted(f"{100 * value:.1f}" for value in own["mean_score"])
    assert sorted(written(axes, "deviation")) == sorted(f"±{100 * value:.1f}" for value in own["score_sd"])
    assert texts(axes).count("/") == 9


def test_the_best_training_set_is_underlined() -> None:
    figure, data = drawn("questions")
    for axes in maps(figure):
        own = data.filter(evaluated_model=axes.get_title(loc="left"))
        assert sorted(written(axes, "best")) == sorted(f"{100 * v:.1f}" for v in own.filter("best")["mean_score"])
        lines = [line for line in axes.get_lines() if line.get_gid() == "underline"]
        places = [text.get_window_extent() for text in axes.texts if text.get_gid() == "best"]
        assert len(lines) == len(places) == 6
        for line, box in zip(lines, places, strict=True):
            (left, y), (right, _) = axes.transData.transform(line.get_xydata())
            assert (left, right) == (pytest.approx(box.x0, abs=1), pytest.approx(box.x1, abs=1))
            assert box.y0 - 3 < y <= box.y0


def test_one_training_set_has_no_best() -> None:
    figure, data = drawn("one_model")
    assert data["best"].all() and not data["underlined"].any()
    assert not [line for line in figure.findobj(Line2D) if line.get_gid() == "underline"]
    assert "best training set of the model on this set" not in texts(figure)
    assert "underline" not in latex(table("one_model"), COLLECTED["one_model"].context())


def test_one_seed_has_no_deviation() -> None:
    figure, _ = drawn("one_model")
    assert not [text for text in texts(figure) if "±" in text]
    assert "anli: Accuracy in %, 1 seed" in texts(figure)


def test_a_cell_without_a_score_is_a_dash() -> None:
    rows = table("questions")
    gap = (pl.col("training_set") == "squad") & (pl.col("dataset") == "D-BERT") & (pl.col("evaluated_model") == "mini")
    figure, _ = registry.draw(NAME, {NAME: rows.filter(~gap)}, COLLECTED["questions"].context())
    assert texts(maps(figure)[0]).count("–") == 2 and "–" not in texts(maps(figure)[1])
    (line,) = [x for x in latex(rows.filter(~gap), COLLECTED["questions"].context()).split("\n") if "& --" in x]
    assert line.startswith("mini & squad & ") and line.count("& --") == 2


def test_nothing_to_show_is_said() -> None:
    figure, data = drawn("none")
    assert data.is_empty() and "This run has no collection of adversarial sets." in texts(figure)
    assert {"planned", "No model was trained and scored for this collection."} <= set(texts(drawn("empty")[0]))
    assert "No model was trained and scored for this collection." in texts(drawn("only_imported")[0])


@pytest.mark.parametrize("case", ["base", "both", "many", "one_model", "empty", "none"])
def test_text_is_legible(case, monkeypatch) -> None:
    figure, _ = registry.draw(NAME, {NAME: table(case)}, COLLECTED[case].context())
    assert faults(figure, monkeypatch) == {}


def test_row_order_changes_no_byte(tmp_path) -> None:
    rows, context = table("questions"), COLLECTED["questions"].context()
    shuffled = rows.sample(fraction=1, shuffle=True, seed=1)
    files = [
        registry.save(*registry.draw(NAME, {NAME: made}, context), tmp_path / stem)
        for stem, made in (("a", rows), ("b", shuffled))
    ]
    assert [a.read_bytes() == b.read_bytes() for a, b in zip(*files, strict=True)] == [True] * 3
    assert latex(rows, context) == latex(shuffled, context)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("squad+d_bert", r"squad+d\_bert"),
        ("100 % & $5 #1", r"100 \% \& \$5 \#1"),
        ("{a}", r"\{a\}"),
        ("a\\b", r"a\textbackslash{}b"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("<|>", r"\textless{}\textbar{}\textgreater{}"),
        ("two\nlines", "two lines"),
        ("é…", "é…"),
    ],
)
def test_latex_escapes_its_own_characters(text, wanted) -> None:
    assert escape(text) == wanted


def test_latex_has_every_number_in_its_column() -> None:
    rows, context = table("both"), COLLECTED["both"].context()
    text = latex(rows, context)
    anli, questions = re.findall(r"\\begin\{table\*\}.*?\\end\{table\*\}", text, re.DOTALL)
    for part, n_columns in ((anli, 5), (questions, 6)):
        assert rf"\begin{{tabular}}{{ll{'r' * n_columns}}}" in part
        body = part.split("\\midrule\n")[1].split("\n\\bottomrule")[0].split("\n")
        lines = [line for line in body if line != r"\addlinespace"]
        assert all(line.endswith(r" \\") and line.count(" & ") == n_columns + 1 for line in lines)
        assert [part.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
    own = rows.filter(evaluated_model="mini", training_set="D-BERT", dataset="D-RoBERTa", measure="f1").row(
        0, named=True
    )
    (line,) = [line for line in questions.split("\n") if line.startswith(" & D-BERT")][:1]
    mean, sd = f"{100 * own['mean_score']:.1f}", f"{100 * own['score_sd']:.1f}"
    score = rf"\underline{{{mean}}}" if own["best"] else mean
    assert line.endswith(rf"& {score}\,{{\tiny$\pm${sd}}} \\")
    assert questions.count(r"\underline{") == rows.filter(collection="adversarial_qa")["best"].sum()
    assert r"\multicolumn{2}{c}{\parbox[b]{7.4em}{\centering\strut AdversarialQA D(BERT)\strut}}" in questions
    assert r"\cmidrule(lr){3-4} \cmidrule(lr){5-6} \cmidrule(lr){7-8}" in questions
    assert (
        r"\caption{adversarial\_qa: exact match and F1 (\%), mean ± standard deviation over 3 fine-tuning" in questions
    )


def test_latex_without_rows_is_a_comment() -> None:
    text = latex(table("none"), FigureContext())
    assert all(line.startswith("%") for line in text.strip().split("\n"))


def test_latex_titles_are_escaped() -> None:
    context = FigureContext(dataset_titles={"R1": "R&D {1}"}, model_titles={"mini": "50% of_it"})
    text = latex(table("one_model"), context)
    assert (
        r"\multicolumn{1}{c}{\parbox[b]{3.7em}{\centering\strut R\&D \{1\}\strut}}" in text
        and r"50\% of\_it & snli\_mnli &" in text
    )
