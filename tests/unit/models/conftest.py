"""Miniature models in the hub's format, with random weights and a word tokenizer of their own."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import torch

from advsets.models.settings import EmbedSettings, FineTuneSettings
from advsets.registry import DatasetRow, ModelRow

torch.set_num_threads(1)

_MINIATURES = Path(__file__).resolve().parents[2] / "miniature" / "models.py"
_SPEC = importlib.util.spec_from_file_location("miniature_models", _MINIATURES)
assert _SPEC is not None and _SPEC.loader is not None
miniatures = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(miniatures)

SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "initializer_range": 0.1,
}
NOUNS = ("soup", "play", "chair", "novel", "garden", "song", "lamp", "bridge", "coat", "journey")
FILLERS = (
    "the",
    "a",
    "was",
    "rather",
    "truly",
    "this",
    "we",
    "found",
    "old",
    "new",
    "and",
    "then",
    "quite",
    "dull-ish",
)
GOOD, BAD = ("lovely", "superb", "splendid"), ("awful", "dreary", "horrid")
RARE = "zyzzyva"


def _config(kind: str, n_words: int):
    import transformers as t

    common = {"vocab_size": n_words, "max_position_embeddings": 64, "pad_token_id": 0}
    match kind:
        case "bert":
            return t.BertConfig(**common, **SIZES)
        case "roberta":
            return t.RobertaConfig(**common, **SIZES, type_vocab_size=1, bos_token_id=2, eos_token_id=3)
        case "electra":
            return t.ElectraConfig(**common, **SIZES, embedding_size=16)
        case "albert":
            return t.AlbertConfig(**common, **SIZES, embedding_size=16)
        case "deberta":
            return t.DebertaV2Config(
                **common, **SIZES, relative_attention=True, pos_att_type=["p2c", "c2p"], position_biased_input=False
            )
        case "bart":
            layers = {
                f"{side}_{key}": n
                for side in ("encoder", "decoder")
                for key, n in (("layers", 1), ("attention_heads", 2), ("ffn_dim", 48))
            }
            return t.BartConfig(
                **common,
                **layers,
                d_model=32,
                bos_token_id=2,
                eos_token_id=3,
                decoder_start_token_id=3,
                forced_eos_token_id=None,
            )
        case "gpt2":
            return t.GPT2Config(
                vocab_size=n_words, n_positions=64, n_embd=32, n_layer=1, n_head=2, bos_token_id=2, eos_token_id=3
            )
        case "t5":
            return t.T5Config(vocab_size=n_words, d_model=32, d_kv=16, d_ff=48, num_layers=1, num_heads=2)
    raise ValueError(kind)


def _tokenizer(words: list[str], with_types: bool):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    vocabulary = {word: k for k, word in enumerate(words)}
    inner = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    second = ":1" if with_types else ":0"
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair=f"[CLS]:0 $A:0 [SEP]:0 $B{second} [SEP]{second}",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ["input_ids", "token_type_ids", "attention_mask"] if with_types else ["input_ids", "attention_mask"]
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        model_input_names=names,
    )


@pytest.fixture(scope="session")
def miniature(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folder of a random-weight model of one kind, the same in every run.

    `bert`, `roberta`, … have a word tokenizer; `hub:bert`, … the files of the hub, with a tokenizer
    of their class (`tests/miniature/models.py`).
    """
    from transformers import AutoModel

    made: dict[str, Path] = {}
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", RARE, *NOUNS, *FILLERS, *GOOD, *BAD]

    def build(kind: str) -> Path:
        if kind not in made and kind.startswith("hub:"):
            name = kind.removeprefix("hub:")
            made[kind] = miniatures.build(name, tmp_path_factory.mktemp(name) / "model")
        if kind not in made:
            torch.manual_seed(7)
            folder = tmp_path_factory.mktemp(kind) / "model"
            AutoModel.from_config(_config(kind, len(words))).save_pretrained(folder)
            _tokenizer(words, with_types=kind == "bert").save_pretrained(folder)
            made[kind] = folder
        return made[kind]

    return build


@pytest.fixture(scope="session")
def model_json(miniature: Callable[[str], Path]) -> Callable[[str], Path]:
    """`model.json` of a miniature, as `fetch_model` writes it."""
    from advsets.models.sources import fetch_model

    def build(kind: str) -> Path:
        folder = miniature(kind)
        fetch_model(model_row(source={"kind": "path", "path": str(folder)}), folder.parent)
        return folder.parent / "model.json"

    return build


def model_row(**changes: object) -> ModelRow:
    """Models row with the defaults of the schema."""
    defaults = {
        "name": "mini", "title": "", "source": {"kind": "path", "path": "."}, "family": "mini", "objective": "none",
        "parameters_m": None, "n_layers": None, "random_init": False, "config_overrides": {}, "freeze": "none",
        "pooling": "first", "precision": "auto", "gpus": 1, "fine_tune": {}, "licence": "none",
    }  # fmt: skip
    return ModelRow(**(defaults | changes))


def dataset_row(task: str = "sequence_classification", label_order: tuple[str, ...] = ("bad", "good")) -> DatasetRow:
    """Data sets row of a made-up task."""
    known = {"name": "made_up", "task": task, "label_order": label_order if task != "multiple_choice" else ()}
    return DatasetRow(**{f.name: known.get(f.name, "") for f in dataclasses.fields(DatasetRow)})


def examples_frame(texts: list[str], labels: list[str], **columns: list) -> pl.DataFrame:
    """Table `examples`, the columns that models read; ids sort like the rows."""
    n = len(texts)
    whole = {
        "example_id": [f"e{i:05d}" for i in range(n)], "text_a": texts, "text_b": [None] * n,
        "candidates": [None] * n, "label": labels, "group_id": [None] * n,
    } | columns  # fmt: skip
    kinds = {"text_b": pl.String(), "candidates": pl.List(pl.String()), "group_id": pl.String()}
    return pl.DataFrame(whole, schema_overrides=kinds)


def sentences(n: int) -> pl.DataFrame:
    """Invented sentences whose label is told by one adjective."""
    texts, labels = [], []
    for i in range(n):
        words = [FILLERS[(i * k + k) % len(FILLERS)] for k in range(1, 3 + i % 7)]
        words.insert(i % len(words), (GOOD if i % 2 else BAD)[i // 2 % 3])
        texts.append(" ".join([*words, NOUNS[i // 3 % len(NOUNS)]]))
        labels.append("good" if i % 2 else "bad")
    return examples_frame(texts, labels)


def choices(n: int) -> pl.DataFrame:
    """Invented questions with two to four answers, of which one is lovely."""
    answers, labels = [], []
    for i in range(n):
        count, right = 2 + i % 3, i % (2 + i % 3)
        words = [(GOOD if k == right else BAD)[i // 3 % 3] for k in range(count)]
        answers.append([f"{word} {NOUNS[(i + k) % len(NOUNS)]}" for k, word in enumerate(words)])
        labels.append(str(right))
    return examples_frame([f"then we found {NOUNS[i % len(NOUNS)]}" for i in range(n)], labels, candidates=answers)


SETTINGS = FineTuneSettings(
    learning_rate=3e-3, epochs=4, batch_size=8, max_length=32, warmup_share=0.1, weight_decay=0.01,
    selection_share=0.2, checkpoint_every_steps=7, max_train_examples=None, gradient_clip=1.0,
    tokens_per_pass=None, gradient_checkpointing=False,
)  # fmt: skip
INFERENCE = EmbedSettings(dtype="float32", tokens_per_batch=256, max_length=32)


class Kit:
    """What the tests of this folder share, reached through the fixture `kit` (there is no package to import)."""

    GOOD, BAD, RARE, FINE_TUNE, INFERENCE = GOOD, BAD, RARE, SETTINGS, INFERENCE
    model_row, dataset_row = staticmethod(model_row), staticmethod(dataset_row)
    sentences, choices, examples_frame = staticmethod(sentences), staticmethod(choices), staticmethod(examples_frame)

    def __init__(self, model_json: Callable[[str], Path]) -> None:
        self.model_json = model_json

    def tune(
        self, kind: str, train: pl.DataFrame, out: Path, *, dataset=None, seed: int = 0, settings=None, **row
    ) -> Path:
        """Checkpoint of a miniature fine-tuned on `train`."""
        from advsets.models.finetune import fine_tune

        path = self.model_json(kind)
        fine_tune(
            model_row(**row), path, dataset or dataset_row(), train, settings or SETTINGS, seed=seed,
            out=out / "checkpoint", log=out / "training_log.parquet", work=out / "work", device="cpu",
        )  # fmt: skip
        return out / "checkpoint"

    @staticmethod
    def embed(checkpoint: Path, examples: pl.DataFrame, out: Path, **changes) -> pl.DataFrame:
        """Table of representations."""
        from advsets.models.embed import embed

        embed(checkpoint, examples, out, dataclasses.replace(INFERENCE, **changes), device="cpu")
        return pl.read_parquet(out)

    @staticmethod
    def predict(checkpoint: Path, examples: pl.DataFrame, out: Path, **more) -> pl.DataFrame:
        """Table of predictions."""
        from advsets.models.predict import predict

        predict(checkpoint, examples, out, INFERENCE, device="cpu", **more)
        return pl.read_parquet(out)

    @staticmethod
    def edit_json(path: Path, **changes: object) -> None:
        """Change keys of a JSON file."""
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture(scope="session")
def kit(model_json: Callable[[str], Path]) -> Kit:
    return Kit(model_json)


@pytest.fixture(scope="session")
def tuned(kit: Kit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoint of a BERT miniature that has learned `sentences`; do not change it."""
    return kit.tune("bert", kit.sentences(120), tmp_path_factory.mktemp("tuned"))


@pytest.fixture(scope="session")
def chooser(kit: Kit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoint of a BERT miniature that has learned `choices`; do not change it."""
    return kit.tune(
        "bert", kit.choices(120), tmp_path_factory.mktemp("chooser"), dataset=kit.dataset_row("multiple_choice")
    )
