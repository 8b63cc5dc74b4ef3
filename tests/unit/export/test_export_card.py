"""The card is valid for the hub and states everything that shaped the set."""

from __future__ import annotations

import pytest
import yaml
from huggingface_hub import DatasetCard


def text_of(out) -> str:
    return (out / "README.md").read_text(encoding="utf-8")


def test_front_matter_is_valid_for_the_hub(made) -> None:
    out = made()
    card = DatasetCard.load(out / "README.md")
    assert card.data.pretty_name == "Inference | test, filtered by Mini: 'small' model"
    assert card.data.license == "cc-by-sa-4.0" and card.data.language == ["en"]
    assert card.data.task_categories == ["text-classification"] and card.data.size_categories == ["n<1K"]
    assert card.data.to_dict()["configs"] == [
        {
            "config_name": "default",
            "data_files": [{"split": "validation", "path": "data/validation-00000-of-00001.parquet"}],
        }
    ]
    assert yaml.safe_load(text_of(out).split("---\n")[1]) == card.data.to_dict()


@pytest.mark.parametrize(
    ("licence", "wanted"),
    [
        ("MIT", {"license": "mit"}),
        ("Apache-2.0", {"license": "apache-2.0"}),
        (
            "OANC: see page",
            {"license": "other", "license_name": "OANC: see page"},
        ),
        ("not stated", {"license": "other", "license_name": "not stated"}),
    ],
)
def test_licences(licence, wanted, made, dataset_row) -> None:
    out = made(dataset_row(licence=licence))
    found = DatasetCard.load(out / "README.md").data.to_dict()
    assert {key: found[key] for key in found if key.startswith("license")} == wanted


def test_everything_is_stated(made, synthetic) -> None:
    text = text_of(made(agreement=synthetic["agreement"]()))
    prose = " ".join(text.replace("> ", "").split())
    for wanted in (
        "not fair to every model",
        "same family (mini)",
        "annotators agree little",
        "of the 24 examples",
        "the 16 are kept",
        'load_dataset("path/to/this/folder", split="validation")',
        "0 = `entailment`, 1 = `neutral`, 2 = `contradiction`",
        "| entailment | 8 | 8 | 100.0 % |",
        "| neutral | 8 | 0 | 0.0 % |",
        "| all | 24 | 16 | 66.7 % |",
        "Examples removed by filtering round: 1: 4, 2: 4.",
        "| agreement with the gold label | all | 0.800 (0.750 to 0.850, n = 23) | 0.700 (0.650 to 0.750, n = 23) |",
        "| agreement with the gold label | neutral | 0.800",
        "| source: repo | org/mini |",
        "| source: revision | 0123456789abcdef |",
        "| representation | mean of tokens |",
        "| learning_rate | 2e-05 |",
        "| epochs | 3 |",
        "| adversary_fraction | 0.35 |",
        "| n_partitions | 64 |",
        "| threshold | 0.75 |",
        "| min_retained | none |",
        "| one_shot | no |",
        "| licence | CC BY-SA 4.0 |",
        'Über: "naïve" – # tests',
        f"train.jsonl ({'ab' * 32})",
        "Label order of `label_count`: entailment, neutral, contradiction, unclear.",
        "| `text_b` | second text of a pair |",
    ):
        assert wanted in text or wanted in prose, wanted


def test_nothing_of_the_machine_is_told(made) -> None:
    text = text_of(made())
    assert "/home/" not in text and "secret" not in text and "someone" not in text


def test_address_without_credentials(made) -> None:
    source = {"kind": "url", "url": "https://me:password@example.org/a/data.zip?token=abc", "sha256": None}
    text = text_of(made(provenance={"dataset": {"kind": "url", "requested": source, "files": []}}))
    assert "| source: url | https://example.org/a/data.zip |" in text
    assert "password" not in text and "abc" not in text


def test_agreement_by_flag_and_without(made, synthetic) -> None:
    flagged = text_of(made(agreement=synthetic["agreement"](flagged=True)))
    cell = "0.200 (0.100 to 0.300, n = 23)"
    assert f"| flagged for low agreement | all | {cell} | {cell} |" in flagged
    assert "agreement with the gold label |" not in flagged
    none = text_of(made(agreement=synthetic["agreement"](dataset="another")))
    assert "The data set has no annotator labels, so it is not known." in none
    assert "Not measured." in text_of(made())


def test_agreement_of_the_exported_seed(made, synthetic) -> None:
    settings = {"seed": 0, "adversary_seed": 1}
    text = text_of(made(agreement=synthetic["agreement"](), settings=settings))
    assert "| agreement with the gold label | all | 0.800 (0.750 to 0.850, n = 23) | 0.600 (" in text


def test_multiple_choice_card(made, synthetic, choice_row) -> None:
    out = made(choice_row, synthetic["choice"]())
    assert DatasetCard.load(out / "README.md").data.task_categories == ["multiple-choice"]
    assert "`label` is the index of the right candidate in `candidates`." in text_of(out)
    assert "label_count" not in text_of(out)


def test_tables_survive_odd_titles(made, model_row) -> None:
    text = text_of(made(model=model_row(objective="a | b\nc")))
    assert "| pretraining objective | a \\| b c |" in text
    assert text.count("\n---\n") == 1


@pytest.mark.parametrize(
    ("combination", "meaning"),
    [
        ("mean", "the classifiers on all of their representations count alike"),
        ("minimum", "predictability is that by the adversary whose classifiers predict the example worst"),
    ],
)
def test_the_card_of_an_ensemble_states_members_and_combination(
    made, synthetic, ensemble, combination, meaning
) -> None:
    agreement = synthetic["agreement"](adversary="both")
    out = made(adversary=ensemble(combination), agreement=agreement)
    text = text_of(out)
    prose = " ".join(text.replace("> ", "").split())
    assert DatasetCard.load(out / "README.md").data.pretty_name == "Inference | test, filtered by the ensemble both"
    for wanted in (
        "representations of 2 adversaries (*Mini: 'small' model* and *Other | model*; together the ensemble `both`,"
        f" by the {combination} of their scores)",
        "It was built against Mini: 'small' model and Other | model.",
        "the same base models, and to a lesser degree models of the same families (mini, other)",
        "any adversary's own accuracy",
        "## Adversaries",
        "|  | Mini: 'small' model | Other \\| model |",
        "| name | mini | other |",
        "| representation | mean of tokens | first token |",
        "| source: repo | org/mini | – |",
        "| setting | Mini: 'small' model | Other \\| model |",
        "| seed | 0 | 0 |",
        "| learning_rate | 2e-05 | 1e-05 |",
        "| epochs | 3 | – |",
        "| warmup | – | 0.1 |",
        "| adversaries | mini, other |",
        f"| combination | {combination} |",
        "| threshold | 0.75 |",
        f"With the combination `{combination}` {meaning}",
        "| agreement with the gold label | all | 0.800 (0.750 to 0.850, n = 23) | 0.700 (0.650 to 0.750, n = 23) |",
    ):
        assert wanted in text or wanted in prose, wanted
    assert "/x" not in text and "/home/" not in text


def test_one_adversary_alone_has_no_combination(made) -> None:
    text = text_of(made())
    assert "## Adversary\n" in text and "combination" not in text and "ensemble" not in text


def test_an_ensemble_that_one_member_is_left_of_is_told_like_it(made, ensemble) -> None:
    from advsets.export.adversary import Adversary

    one = Adversary("without_other", ensemble().members[:1])
    assert text_of(made(adversary=one)) == text_of(made())


def test_agreement_of_the_ensemble_itself(made, synthetic, ensemble) -> None:
    from advsets.errors import UserError

    with pytest.raises(UserError, match="no rows of adversary 'both', seed 0; found: mini"):
        made(adversary=ensemble(), agreement=synthetic["agreement"]())
