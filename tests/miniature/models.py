"""The study's 18 models in miniature: their classes, tokenizers and file formats, with random weights.

`python tests/miniature/models.py FOLDER` writes a folder per row of the study in config/models.yaml, each
with the files that its original has on the hub (old names of weights and of configuration keys among them),
and FOLDER/miniature_models.yaml, a models table of the same rows whose sources are these folders.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
import yaml

ROOT = Path(__file__).resolve().parents[2]
N_PIECES = 800
HIDDEN, HEADS, WIDE, LENGTH = 32, 2, 48, 130

WORDS = {
    "turn": ("Because it rained,", "Then", "We were told that", "Who knows whether", "This time", "Yesterday"),
    "subject": ("the cook", "a tall neighbour", "this old captain", "my aunt", "a young painter", "the gardener"),
    "verb": ("carries", "found", "was rather", "is mending", "truly paints", "quite new"),
    "kind": ("lovely", "superb", "splendid", "awful", "dreary", "horrid", "dull-ish"),
    "thing": ("soup", "play", "chair", "novel", "garden", "song", "lamp", "bridge", "coat", "journey", "kettle"),
    "place": ("in the kitchen", "behind the harbour", "on a cold morning", "after the play", "and then we sang"),
    "ending": (".", "!", " and nobody minds.", ", so they say.", "; it felt dreary, truly."),
}
SCENES = (
    "A tall young tired cheerful old quiet baker pilot gardener nurse carpenter sailor teacher drummer farmer clerk"
    " carries carrying paints painting mends mending sells selling washes washing a ladder boat lantern basket bicycle"
    " fence kettle drum cart clock in the harbour market orchard workshop station courtyard. Someone is asleep and has"
    " only other things for friends, before the holiday, because of rain, to earn some money, for the first time. Use"
    " rope tar oil willow spanner hammer sponge mallet grease tweezers on it slowly, with care, in the morning, twice,"
    " at last, number 1. When? Where will they be later? What does one need more, it seems? None of the above choices"
)
"""Words of the data sets in miniature (`data.py`), so that few are cut into letters."""
LETTERS = "abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ 0123456789 . , ; : ! ? ' \" # - ( )"


def invented_sentences() -> Iterator[str]:
    """Sentences from which the tokenizers learn their pieces."""
    yield from [LETTERS, " ".join(LETTERS.replace(" ", "")), *[SCENES] * 8] * 3
    for i in range(1200):
        *words, ending = (words[i // (k + 1) % len(words)] for k, words in enumerate(WORDS.values()))
        yield " ".join(words) + ending


def _wordpiece(folder: Path, lowercase: bool) -> dict[str, int]:
    """vocab.txt of BERT and ELECTRA; returns the special tokens' ids."""
    from tokenizers import BertWordPieceTokenizer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    trained = BertWordPieceTokenizer(lowercase=lowercase)
    trained.train_from_iterator(
        invented_sentences(), vocab_size=N_PIECES, min_frequency=1, special_tokens=special, show_progress=False
    )
    trained.save_model(str(folder))
    _write_json(folder / "tokenizer_config.json", {"do_lower_case": lowercase})
    return {"vocab_size": trained.get_vocab_size(), "pad_token_id": 0}


def _byte_pairs(folder: Path, special: list[str]) -> dict[str, int]:
    """vocab.json and merges.txt of RoBERTa, BART and DeBERTa."""
    from tokenizers import ByteLevelBPETokenizer

    trained = ByteLevelBPETokenizer()
    trained.train_from_iterator(
        invented_sentences(), vocab_size=N_PIECES, min_frequency=1, special_tokens=special, show_progress=False
    )
    trained.save_model(str(folder))
    return {"vocab_size": trained.get_vocab_size()}


def _sentence_pieces(folder: Path, name: str, **settings: Any) -> dict[str, int]:
    """SentencePiece model of ALBERT and DeBERTa v2."""
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=invented_sentences(),
        model_writer=model,
        vocab_size=400,
        hard_vocab_limit=False,
        model_type="unigram",
        minloglevel=2,
        num_threads=1,
        **settings,
    )
    (folder / name).write_bytes(model.getvalue())
    return {"vocab_size": sentencepiece.SentencePieceProcessor(model_proto=model.getvalue()).get_piece_size() + 1}


def _bert(folder: Path, n_layers: int) -> dict[str, Any]:
    known = _wordpiece(folder, lowercase=False)
    return {**known, **_encoder(n_layers), "architectures": ["BertForMaskedLM"], "type_vocab_size": 2}


def _electra(folder: Path, n_layers: int) -> dict[str, Any]:
    known = _wordpiece(folder, lowercase=True)
    own = {"embedding_size": 16, "summary_type": "first", "summary_use_proj": True, "summary_activation": "gelu"}
    return {**known, **_encoder(n_layers), **own, "architectures": ["ElectraForPreTraining"], "type_vocab_size": 2}


def _roberta(folder: Path, n_layers: int) -> dict[str, Any]:
    known = _byte_pairs(folder, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
    own = {"layer_norm_eps": 1e-5, "type_vocab_size": 1, "architectures": ["RobertaForMaskedLM"]}
    return {**known, **ids, **_encoder(n_layers), **own}


def _bart(folder: Path, n_layers: int) -> dict[str, Any]:
    known = _byte_pairs(folder, ["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    sides = {
        f"{side}_{key}": n
        for side in ("encoder", "decoder")
        for key, n in (("layers", n_layers), ("attention_heads", HEADS), ("ffn_dim", WIDE), ("layerdrop", 0.0))
    }
    ids = {"bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2}
    generation = {"early_stopping": True, "no_repeat_ngram_size": 3, "num_beams": 4, "forced_bos_token_id": 0}
    own = {"d_model": HIDDEN, "dropout": 0.1, "activation_dropout": 0.1, "attention_dropout": 0.1, "init_std": 0.1}
    old = {
        "add_bias_logits": False,
        "add_final_layer_norm": False,
        "normalize_embedding": True,
        "gradient_checkpointing": False,
    }
    rest = {"max_position_embeddings": LENGTH, "num_hidden_layers": n_layers, "classifier_dropout": 0.0}
    whole = {**known, **ids, **sides, **generation, **own, **old, **rest}
    return {**whole, "is_encoder_decoder": True, "architectures": ["BartModel"]}


def _albert(folder: Path, n_layers: int) -> dict[str, Any]:
    pieces = {"pad_piece": "<pad>", "unk_piece": "<unk>", "control_symbols": ["[CLS]", "[SEP]"]}
    ids = {"pad_id": 0, "unk_id": 1, "bos_id": -1, "eos_id": -1, "user_defined_symbols": ["[MASK]"]}
    known = _sentence_pieces(folder, "spiece.model", **pieces, **ids)
    own = {"embedding_size": 16, "inner_group_num": 1, "num_hidden_groups": 1, "net_structure_type": 0, "gap_size": 0}
    tokens = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "type_vocab_size": 2}
    dropout = {"hidden_dropout_prob": 0, "attention_probs_dropout_prob": 0, "classifier_dropout_prob": 0.1}
    return {**known, **_encoder(n_layers), **own, **tokens, **dropout, "architectures": ["AlbertForMaskedLM"]}


RELATIVE = {
    "relative_attention": True,
    "max_relative_positions": -1,
    "position_biased_input": False,
    "padding_idx": 0,
    "type_vocab_size": 0,
    "layer_norm_eps": 1e-7,
    "pooler_dropout": 0,
    "pooler_hidden_act": "gelu",
    "pooler_hidden_size": HIDDEN,
}


def _deberta(folder: Path, n_layers: int) -> dict[str, Any]:
    known = _byte_pairs(folder, ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"])
    _write_json(folder / "tokenizer_config.json", {"do_lower_case": False, "vocab_type": "gpt2"})
    return {**known, **_encoder(n_layers), **RELATIVE, "pos_att_type": "c2p|p2c"}


def _deberta_v2(folder: Path, n_layers: int) -> dict[str, Any]:
    ids = {"pad_id": 0, "bos_id": 1, "eos_id": 2, "unk_id": 3}
    pieces = {"pad_piece": "[PAD]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "unk_piece": "[UNK]"}
    known = _sentence_pieces(folder, "spm.model", **ids, **pieces)
    _write_json(folder / "tokenizer_config.json", {"do_lower_case": False, "vocab_type": "spm"})
    own = {"position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True, "pos_att_type": "p2c|c2p"}
    conv = {"conv_kernel_size": 3, "conv_act": "gelu", "attention_head_size": HIDDEN // HEADS}
    return {**known, **_encoder(n_layers), **RELATIVE, **own, **conv}


def _encoder(n_layers: int) -> dict[str, Any]:
    return {
        "hidden_size": HIDDEN,
        "num_hidden_layers": n_layers,
        "num_attention_heads": HEADS,
        "intermediate_size": WIDE,
        "max_position_embeddings": LENGTH,
        "initializer_range": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
    }


MAKERS = {
    "bert": _bert,
    "electra": _electra,
    "roberta": _roberta,
    "bart": _bart,
    "albert": _albert,
    "deberta": _deberta,
    "deberta-v2": _deberta_v2,
}


def build(model_type: str, folder: Path, n_layers: int = 2, seed: int = 7) -> Path:
    """Folder of a miniature of one class, in the format of the hub's files; equal arguments give equal files."""
    from transformers import AutoConfig, AutoModelForPreTraining
    from transformers.utils import logging

    folder.mkdir(parents=True)
    logging.set_verbosity_error()
    _write_json(folder / "config.json", {**MAKERS[model_type](folder, n_layers), "model_type": model_type})
    torch.manual_seed(seed)
    network = AutoModelForPreTraining.from_config(AutoConfig.from_pretrained(folder))
    if model_type == "bart":
        network = network.model
    weights = {name: tensor.contiguous() for name, tensor in network.state_dict().items()}
    if model_type == "bert":  # names of the first checkpoints
        old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
        for new, former in old.items():
            weights = {name.replace(new, former): tensor for name, tensor in weights.items()}
    torch.save(weights, folder / "pytorch_model.bin")
    return folder


def model_type_of(repo: str) -> str:
    """Class of a model by its id on the hub."""
    name = repo.split("/")[1]
    return next(
        kind for kind in ("deberta-v2", "deberta", "roberta", "albert", "electra", "bart", "bert") if kind in name
    )


def study_rows() -> dict[str, dict[str, Any]]:
    """Rows of the study in config/models.yaml."""
    run = yaml.safe_load((ROOT / "config" / "config.yaml").read_text(encoding="utf-8"))
    rows = yaml.safe_load((ROOT / "config" / "models.yaml").read_text(encoding="utf-8"))
    return {name: rows[name] for name in run["evaluated_models"]}


def build_study(folder: Path, **fine_tune: Any) -> Path:
    """Miniatures of the study's models and the table of them; `fine_tune` is over the rows' own settings."""
    table = {}
    for number, (name, row) in enumerate(study_rows().items()):
        is_large = any(size in name for size in ("large", "xl"))
        path = build(model_type_of(row["source"]["repo"]), folder / name, 3 if is_large else 2, seed=number)
        table[name] = {
            **row,
            "source": {"kind": "path", "path": str(path.resolve())},
            "fine_tune": {**row.get("fine_tune", {}), **fine_tune},
            "licence": "none",
        }
    path = folder / "miniature_models.yaml"
    path.write_text(yaml.safe_dump(table, sort_keys=False), encoding="utf-8")
    return path


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2), encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python tests/miniature/models.py FOLDER")
    print(build_study(Path(sys.argv[1]).resolve(), learning_rate=3e-3, epochs=3))
