"""Load a transformers network from a hub-format folder: cut, random start, what must not be missing.

Conventions
-----------
`folder` holds config.json and weights in the Hugging Face format. Weights are loaded as
float32 on the CPU. The pooler, where a class has one, belongs to the task head: it feeds the
head, and the representation (last layer) does not pass through it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

from advsets.errors import UserError, allowed, reason
from advsets.registry import ModelRow


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep transformers' load reports and progress bars off stderr."""
    from transformers.utils import logging

    verbosity, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if bars:
            logging.enable_progress_bar()


def load_config(folder: Path) -> Any:
    """Configuration of a folder; one clear line when there is none that transformers knows."""
    from transformers import AutoConfig

    if not (folder / "config.json").is_file():
        raise UserError(f"{folder}: no config.json; allowed: a model folder in the hub's format; check the path")
    try:
        with quiet():
            return AutoConfig.from_pretrained(folder, local_files_only=True)
    except (ValueError, OSError, KeyError) as error:
        raise UserError(
            f"{folder}/config.json: transformers cannot use it ({reason(error, limit=200)}); mend it"
        ) from None


def load_tokenizer(folder: Path) -> Any:
    """Tokenizer of a folder; pads on the right."""
    from transformers import AutoTokenizer

    try:
        with quiet():
            return AutoTokenizer.from_pretrained(folder, local_files_only=True, padding_side="right")
    except Exception as error:  # any of a dozen kinds, by tokenizer class
        raise UserError(
            f"{folder}: no usable tokenizer ({reason(error, limit=200)}); add its files to the folder"
        ) from None


@contextlib.contextmanager
def building(config: Any, where: str, advice: str) -> Iterator[None]:
    """Tell whatever fails in here as a fault of the configuration, in one line that `where` opens."""
    name = type(config).__name__
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # each class checks its configuration in its own way, or not at all
        raise UserError(
            f"{where}: no network can be made of this {name} ({reason(error, n_lines=2, limit=200)}); {advice}"
        ) from None


def as_asked(model: ModelRow, config: Any) -> contextlib.AbstractContextManager[None]:
    """`building` for a row of the models table."""
    asked = f"models: {model.name}: n_layers {model.n_layers}, config_overrides {model.config_overrides or '{}'}"
    advice = "change or remove them" if changes_config(model) else "mend config.json of its source"
    return building(config, asked, advice)


def changes_config(model: ModelRow) -> bool:
    """Whether the row asks for another network than its source describes."""
    return model.n_layers is not None or bool(model.config_overrides)


def adapt_config(config: Any, model: ModelRow) -> Any:
    """Configuration cut to `n_layers` and changed by `config_overrides`.

    Raises
    ------
    UserError
        For more layers than there are, layers of an encoder-decoder model, overrides without
        a random start, or an override that the configuration does not have or take.
    """
    if model.config_overrides and not model.random_init:
        raise UserError(
            f"models: {model.name}: config_overrides with random_init: false; they need a random start;"
            " set random_init: true or remove them"
        )
    for key, value in model.config_overrides.items():
        if not hasattr(config, key):
            raise UserError(
                f"models: {model.name}: config_overrides: {key!r} is no key of {type(config).__name__};"
                f" allowed: {allowed(sorted(config.to_dict()), 30)}; mend the key"
            )
        setattr(config, key, value)
    if model.n_layers is not None:
        _cut_layers(config, model)
    config.use_cache = False
    return config


def _cut_layers(config: Any, model: ModelRow) -> None:
    if config.is_encoder_decoder:
        raise UserError(
            f"models: {model.name}: n_layers {model.n_layers}: {type(config).__name__} has an encoder and a decoder;"
            " allowed: null; remove n_layers"
        )
    n_found = getattr(config, "num_hidden_layers", None)
    if n_found is None or model.n_layers is None or model.n_layers > n_found:
        raise UserError(
            f"models: {model.name}: n_layers {model.n_layers}: the model has {n_found} layers;"
            f" allowed: 0 to {n_found}, or null; lower it"
        )
    config.num_hidden_layers = model.n_layers
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[: model.n_layers]


def reads_last_token(config: Any) -> bool:
    """Whether the first token knows nothing of the text: decoders, alone or behind an encoder."""
    from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, MODEL_FOR_MASKED_LM_MAPPING

    decoder = type(config) in MODEL_FOR_CAUSAL_LM_MAPPING and type(config) not in MODEL_FOR_MASKED_LM_MAPPING
    return bool(config.is_encoder_decoder) or decoder


def has_native_head(config: Any) -> bool:
    """Whether transformers has a sequence classification class fed by the first token."""
    from transformers import MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING

    return type(config) in MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING and not reads_last_token(config)


def load_network(folder: Path, config: Any, *, native_head: bool, random_init: bool, strict_head: bool) -> nn.Module:
    """Network with the weights of `folder`, or random ones.

    Parameters
    ----------
    native_head : bool
        With transformers' sequence classification head, or the bare network.
    strict_head : bool
        Whether weights of the head must be there too (a checkpoint that was fine-tuned).

    Raises
    ------
    UserError
        If weights cannot be read, or any outside the task head are missing or of another shape.
    Exception
        Of any kind, where the class cannot be built of `config`; callers are in `building`.
    """
    from transformers import AutoModel, AutoModelForSequenceClassification

    auto = AutoModelForSequenceClassification if native_head else AutoModel
    with quiet():
        if random_init:
            return auto.from_config(config, dtype=torch.float32)
        try:
            network, info = auto.from_pretrained(
                folder,
                config=config,
                dtype=torch.float32,
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                local_files_only=True,
            )
        except Exception as error:  # safetensors, pickle, OS and value errors alike: the weights are unusable
            auto.from_config(config, dtype=torch.float32)  # unless it is the configuration, which this tells
            raise UserError(
                f"{folder}: weights cannot be loaded ({reason(error, limit=200)}); fetch them again"
            ) from None
    _require_weights(folder, network, info, native_head, strict_head)
    return network


def _require_weights(folder: Path, network: Any, info: dict[str, Any], native_head: bool, strict_head: bool) -> None:
    new = {key: "missing" for key in info["missing_keys"]}
    new.update({item[0]: "of another shape" for item in info["mismatched_keys"]})
    prefix = f"{network.base_model_prefix}." if native_head else ""
    bad = sorted(key for key in new if (strict_head and native_head) or not is_head_weight(key, prefix))
    if bad:
        raise UserError(
            f"{folder}: {len(bad)} weights outside the task head are {new[bad[0]]}, the first is {bad[0]!r};"
            " allowed: a checkpoint with all of them; fetch it again or correct the configuration"
        )


def is_head_weight(key: str, prefix: str) -> bool:
    """Whether a weight belongs to the task head (the pooler does, see the module's conventions)."""
    return "pooler" in key.split(".") or not key.startswith(prefix)


def reset_pooler(network: Any) -> None:
    """Fresh pooler: that of a checkpoint was trained on a layer that has been cut away."""
    std = getattr(network.config, "initializer_range", 0.02)
    for name, parameter in network.named_parameters():
        if "pooler" in name.split("."):
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=std)
            else:
                nn.init.zeros_(parameter)


def longest_input(network: Any) -> int | None:
    """Most tokens of one sequence that absolute positions allow; None if there is no such limit."""
    limits = []
    for name, module in network.named_modules():
        if isinstance(module, nn.Embedding) and name.split(".")[-1] in ("position_embeddings", "embed_positions"):
            n_positions = min(module.num_embeddings, getattr(network.config, "max_position_embeddings", 2**30))
            limits.append(n_positions - (0 if module.padding_idx is None else module.padding_idx + 1))
    return min(limits, default=None)
