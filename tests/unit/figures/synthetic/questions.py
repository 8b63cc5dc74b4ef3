"""Made-up statistics of questions."""

from __future__ import annotations

from synthetic.study import Study

from advsets.evaluation.collected.kinds import ANSWER_TYPES, QUESTION_WORDS


def _per_split(study: Study, dataset: str) -> list[dict]:
    return [{"collection": "written", "dataset": dataset, "split": split} for split in ("train", "validation", "test")]


def _question_statistics(study: Study, dataset: str) -> list[dict]:
    return [
        {
            **split,
            "n_documents": 442,
            "n_passages": 18_891,
            "n_questions": 87_599,
            "question_words_mean": 10.3,
            "question_words_sd": 3.6,
            "answer_words_mean": None if split["split"] == "train" else 3.2,
            "answer_words_sd": None if split["split"] == "train" else 3.0,
            "overlap_mean": 3.0,
            "overlap_sd": None if split["split"] == "train" else 1.8,
        }
        for split in _per_split(study, dataset)
    ]


def _question_overlap(study: Study, dataset: str) -> list[dict]:
    counts = [1, 14, 30, 22, 12, 8, 4, 3, 2, 1, 1, 0, 2]
    return [
        {**split, "overlap": n, "n_questions": count, "share": count / 100}
        for split in _per_split(study, dataset)
        for n, count in enumerate(counts)
    ]


def _question_kinds(study: Study, dataset: str) -> list[dict]:
    return [
        {**split, "aspect": aspect, "kind": kind, "n_questions": n, "share": n / (len(kinds) * (len(kinds) + 1) / 2)}
        for split in _per_split(study, dataset)
        for aspect, kinds in (("question_word", QUESTION_WORDS), ("answer_type", ANSWER_TYPES))
        for n, kind in enumerate(kinds, 1)
    ]


BUILDERS = {
    "question_statistics": _question_statistics,
    "question_overlap": _question_overlap,
    "question_kinds": _question_kinds,
}
