"""Fine-tuned checkpoints: hub-format weights and tokenizer, and `advsets.json` that tells the rest.

Conventions
-----------
`advsets.json`: task, label_order (of the data set), class_names (order of the outputs),
pooling, words_only, head (`transformers` or `advsets`), max_length, precision, base_model,
source, seed, tokenizer (class, versions) and weights_sha256. A folder without it is taken for
an off-the-shelf sequence classification checkpoint.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from advsets.errors import UserError, allowed
from advsets.io import read_json, write_json
from advsets.models import backbone
from advsets.models.classifier import Classifier, head_dropout
from advsets.models.heads import Head
from advsets.registry import MULTIPLE_CHOICE, SEQUENCE_CLASSIFICATION

DESCRIPTION = "advsets.json"
_HEAD = "head.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint and its description."""

    folder: Path
    classifier: Classifier
    tokenizer: Any
    description: dict[str, Any]

    @property
    def task(self) -> str:
        return self.description["task"]

    @property
    def content_key(self) -> str:
        """Hash of weights, tokenizer and description: equal keys give equal results."""
        digest = hashlib.sha256()
        for path in sorted(self.folder.glob("*.json")):
            digest.update(path.name.encode() + path.read_bytes())
        if "weights_sha256" not in self.description:
            digest.update(hash_weights(self.folder).encode())
        return digest.hexdigest()[:16]


def tokenizer_record(tokenizer: Any) -> dict[str, str]:
    """Class of a tokenizer and the versions of the libraries that run it."""
    import tokenizers
    import transformers

    return {
        "class": type(tokenizer).__name__,
        "tokenizers": tokenizers.__version__,
        "transformers": transformers.__version__,
    }


def hash_weights(folder: Path) -> str:
    """SHA-256 over the weight files of a folder, in order of name."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if p.suffix in (".safetensors", ".bin")):
        digest.update(path.name.encode())
        with path.open("rb") as handle:
            while block := handle.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()


def save_checkpoint(classifier: Classifier, tokenizer: Any, description: dict[str, Any], out: Path) -> None:
    """Write a checkpoint folder; it gets its name only when it is whole."""
    from safetensors.torch import save_file

    with _folder_being_written(out) as partial:
        with backbone.quiet():
            classifier.network.save_pretrained(partial)
            tokenizer.save_pretrained(partial)
        if classifier.head is not None:
            head = {name: tensor.contiguous().cpu() for name, tensor in classifier.head.state_dict().items()}
            save_file(head, partial / _HEAD)
        whole = {
            **description,
            "format": 1,
            "head": "transformers" if classifier.head is None else "advsets",
            "words_only": classifier.words_only,
            "tokenizer": tokenizer_record(tokenizer),
            "weights_sha256": hash_weights(partial),
        }
        write_json(partial / DESCRIPTION, whole)


@contextlib.contextmanager
def _folder_being_written(out: Path) -> Iterator[Path]:
    """Folder beside `out` that takes its place on success and is removed on failure."""
    from safetensors import SafetensorError

    partial = out.with_name(f".{out.name}.part")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        yield partial
        shutil.rmtree(out, ignore_errors=True)
        os.replace(partial, out)
    except SafetensorError as error:
        raise UserError(f"{out}: weights cannot be written ({error}); free some disk space and run again") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _classifier_of(network: Any, description: dict[str, Any]) -> Classifier:
    """Classifier with an untrained head where the head is our own."""
    classifier = Classifier(network, None, description["pooling"], description["words_only"])
    if description["head"] != "transformers":
        n_outputs = 1 if description["task"] == MULTIPLE_CHOICE else len(description["class_names"])
        classifier.head = Head(classifier.n_features, n_outputs, head_dropout(network.config))
    return classifier


def load_checkpoint(
    folder: Path,
    device: torch.device,
    tasks: tuple[str, ...] = (SEQUENCE_CLASSIFICATION, MULTIPLE_CHOICE),
    build: Callable[[Any, dict[str, Any]], Classifier] = _classifier_of,
) -> Checkpoint:
    """Checkpoint on `device`, ready to infer.

    Parameters
    ----------
    tasks : tuple of str
        Those that the caller can use.
    build : callable
        From a network and the description to the classifier, whose own head gets its weights here.

    Raises
    ------
    UserError
        If files are missing, weights are not whole, or the task is none of `tasks`.
    """
    config = backbone.load_config(folder)
    path = folder / DESCRIPTION
    description = read_json(path) if path.is_file() else _off_the_shelf(folder, config)
    if description["task"] not in tasks:
        raise UserError(
            f"{folder}: task {description['task']!r}; allowed here: {allowed(tasks)}; use a checkpoint of such a task"
        )
    native = description["head"] == "transformers"
    with backbone.building(config, f"{folder}/config.json", "fetch or fine-tune the model again"):
        network = backbone.load_network(folder, config, native_head=native, random_init=False, strict_head=True)
    classifier = build(network, description)
    if classifier.head is not None:
        _load_head(classifier.head, folder / _HEAD)
    classifier.requires_grad_(False).eval().to(device)
    return Checkpoint(folder, classifier, backbone.load_tokenizer(folder), description)


def _load_head(head: nn.Module, path: Path) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not path.is_file():
        raise UserError(f"{path}: no such file; fine-tune the model again")
    try:
        head.load_state_dict(load_file(path))
    except (SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{path}: the head's weights do not fit ({reason}); fine-tune the model again") from None


def _off_the_shelf(folder: Path, config: Any) -> dict[str, Any]:
    """Description of a sequence classification checkpoint made elsewhere."""
    names = [config.id2label[k] for k in sorted(config.id2label)]
    if not backbone.has_native_head(config):
        raise UserError(
            f"{folder}: no {DESCRIPTION}, and {type(config).__name__} has no head fed by the first token;"
            " fine-tune the model with advsets first"
        )
    return {
        "task": SEQUENCE_CLASSIFICATION,
        "label_order": None,
        "class_names": names,
        "pooling": "first",
        "head": "transformers",
        "words_only": False,
        "precision": "auto",
    }


def output_order(checkpoint: Checkpoint, label_order: tuple[str, ...]) -> list[int]:
    """Output of the network for each label of `label_order`, matched by name.

    Raises
    ------
    UserError
        If the checkpoint's outputs have no names, or other names.
    """
    names = output_names(checkpoint)
    known = {name: k for k, name in enumerate(names)}
    if not set(label_order) <= set(known):
        known = {name.lower(): k for name, k in known.items()}
        label_order = tuple(label.lower() for label in label_order)
    if len(known) != len(label_order) or not set(label_order) <= set(known):
        hint = (
            "the outputs have no names: write id2label and label2id into its config.json"
            if all(name.startswith("LABEL_") for name in names)
            else "rename the labels of the data set, or id2label and label2id in its config.json"
        )
        where = f"{checkpoint.folder}: outputs are named {allowed(names)}"
        raise UserError(f"{where}; allowed: {allowed(label_order)}; {hint}")
    return [known[label] for label in label_order]


def output_names(checkpoint: Checkpoint) -> list[str]:
    """Class name of every output, by the checkpoint's `label2id`."""
    if checkpoint.classifier.head is not None:
        return list(checkpoint.description["class_names"])
    config: Any = checkpoint.classifier.network.config
    if {int(k): name for name, k in config.label2id.items()} != {int(k): name for k, name in config.id2label.items()}:
        raise UserError(f"{checkpoint.folder}/config.json: id2label and label2id disagree; mend one of them")
    return [config.id2label[k] for k in sorted(config.id2label)]
