"""The made-up collections that tests draw."""

from __future__ import annotations

from synthetic.collected import IMPORTED, CollectedStudy, Collection

QA = Collection(
    "adversarial_qa",
    questions=True,
    standard=("squad",),
    adversarial=("D-BERT", "D-RoBERTa"),
    training_sets=("squad", "D-BERT", "squad+D-BERT"),
    models=("mini", "bert-large"),
    imported=(),
)
LONG = {f"m{i:02d}": f"organisation-{i:02d}/very-long-pretrained-model-name-v3-large-{i:02d}" for i in range(12)}
WIDE = {f"S{i:02d}": f"Collected against generation {i:02d} of an assistant, validation" for i in range(12)}
COLLECTED = {
    "base": CollectedStudy(),
    "questions": CollectedStudy((QA,)),
    "both": CollectedStudy((Collection(), QA), without_rows=("planned",)),
    "no_imported": CollectedStudy((Collection(imported=()),)),
    "only_imported": CollectedStudy((Collection(models=(), training_sets=()),)),
    "no_standard": CollectedStudy((Collection(standard=()),)),
    "one_model": CollectedStudy((Collection(models=("mini",), imported=(), adversarial=("R1",), seeds=(0,)),)),
    "no_bounds": CollectedStudy((Collection(with_bounds=False, seeds=(0,)),)),
    "many": CollectedStudy(
        (Collection(models=tuple(LONG), adversarial=tuple(WIDE), imported=(), seeds=(0, 1), titles=LONG | WIDE),)
    ),
    "many_imported": CollectedStudy(
        (
            Collection(
                adversarial=tuple(WIDE)[:6],
                titles=WIDE | {name: f"{name}-with-a-long-title-of-its-own-v2" for name in IMPORTED},
            ),
        )
    ),
    "empty": CollectedStudy((), without_rows=("planned",)),
    "none": CollectedStudy(()),
}
