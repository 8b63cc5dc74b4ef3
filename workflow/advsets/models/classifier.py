"""One module for every model: a network, how it is pooled, and a head of its own or transformers'.

Conventions
-----------
`vectors` is the representation (n_sequences, n_features): the last layer, pooled, before any
head. `scores` is (n_sequences, n_outputs): one output per class, or one per candidate.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from advsets.errors import UserError
from advsets.models import backbone
from advsets.models.first_token import keep_first_token
from advsets.models.heads import Head, pool
from advsets.models.precision import keep_half
from advsets.registry import MULTIPLE_CHOICE, ModelRow

_N_TRIAL_TOKENS = 8


class Classifier(nn.Module):
    """A network and its head.

    Parameters
    ----------
    network : nn.Module
        Sequence classification class of transformers, or, with `head`, its bare model.
    head : nn.Module, optional
        Head of our own: `Head` on the pooled vector.
    pooling : str
        `first`, `mean` or `last`.
    words_only : bool
        Use the word embeddings alone, without positions and layers.
    """

    def __init__(self, network: Any, head: nn.Module | None, pooling: str, words_only: bool) -> None:
        super().__init__()
        self.network = network
        self.head = head
        self.pooling = pooling
        self.words_only = words_only
        self.frozen_backbone = False
        keep_half(network)
        if pooling == "first" and not words_only:
            keep_first_token(network)
        parameters = inspect.signature(network.forward).parameters
        self._takes_types = "token_type_ids" in parameters and getattr(network.config, "type_vocab_size", 2) > 1

    @property
    def n_features(self) -> int:
        """Length of a representation."""
        if self.words_only:
            return int(self.network.get_input_embeddings().embedding_dim)
        return int(self.network.config.hidden_size)

    def hidden(self, inputs: dict[str, Tensor]) -> Tensor:
        """Last layer, shape (n_sequences, length, n_features); length 1 where the first token alone is computed."""
        if self.words_only:
            return self.network.get_input_embeddings()(inputs["input_ids"])
        encoder = self.network if self.head is not None else self.network.base_model
        return encoder(**self._accepted(inputs)).last_hidden_state

    def vectors(self, inputs: dict[str, Tensor]) -> Tensor:
        """Representations, shape (n_sequences, n_features)."""
        return pool(self.hidden(inputs), inputs["attention_mask"], self.pooling)

    def scores(self, inputs: dict[str, Tensor]) -> Tensor:
        """Scores before the softmax, shape (n_sequences, n_outputs)."""
        if self.head is None:
            return self.network(**self._accepted(inputs)).logits
        return self.head(self.vectors(inputs))

    def _accepted(self, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """Inputs without token types where the network has none (tokenizers may give them all the same)."""
        return {name: tensor for name, tensor in inputs.items() if name != "token_type_ids" or self._takes_types}

    def freeze(self, what: str) -> None:
        """Leave `embeddings` (of words) or the whole `backbone` as they are; `none` trains everything."""
        if what == "embeddings":
            self.network.get_input_embeddings().requires_grad_(False)
        if what == "backbone":
            self.frozen_backbone = True
            prefix = "" if self.head is not None else f"{self.network.base_model_prefix}."
            for name, parameter in self.network.named_parameters():
                parameter.requires_grad_(self.head is None and backbone.is_head_weight(name, prefix))

    def train(self, mode: bool = True) -> Classifier:
        """Training mode; a frozen backbone stays without dropout."""
        super().train(mode)
        if self.frozen_backbone:
            (self.network if self.head is not None else self.network.base_model).eval()
        return self


def new_classifier(model: ModelRow, folder: Path, config: Any, task: str, class_names: tuple[str, ...]) -> Classifier:
    """Classifier to be fine-tuned; seed torch first, as fresh weights come from its generator.

    Raises
    ------
    UserError
        For a pooling that the model's class or `n_layers: 0` does not allow, or a network that
        cannot be made as the row asks.
    """
    with backbone.as_asked(model, config):
        config = backbone.adapt_config(config, model)
        _check_pooling(model, config)
        classifier = _build(model, folder, config, task, class_names)
    return made_ready(model, config, classifier)


def made_ready(model: ModelRow, config: Any, classifier: Classifier) -> Classifier:
    """`classifier` after a trial of what its row asks for, frozen as the row says.

    Raises
    ------
    UserError
        If the network does not run on a few tokens.
    """
    if config.is_encoder_decoder:
        _require_own_decoder_inputs(model, classifier)
    elif backbone.changes_config(model):
        with backbone.as_asked(model, config):
            _try_out(classifier)
    classifier.freeze(model.freeze)
    return classifier


def _build(model: ModelRow, folder: Path, config: Any, task: str, class_names: tuple[str, ...]) -> Classifier:
    native = task != MULTIPLE_CHOICE and model.pooling == "first" and backbone.has_native_head(config)
    if native:
        config.id2label = dict(enumerate(class_names))
        config.label2id = {name: k for k, name in enumerate(class_names)}
    network: Any = backbone.load_network(
        folder, config, native_head=native, random_init=model.random_init, strict_head=False
    )
    if native and model.n_layers is not None:
        backbone.reset_pooler(network)
    classifier = Classifier(network, None, model.pooling, model.n_layers == 0)
    if not native:
        n_outputs = 1 if task == MULTIPLE_CHOICE else len(class_names)
        classifier.head = Head(classifier.n_features, n_outputs, head_dropout(config))
    return classifier


def _try_out(classifier: Classifier) -> None:
    """Scores of a few tokens, as some classes tell of a wrong configuration only then."""
    tokens = torch.ones((1, _N_TRIAL_TOKENS), dtype=torch.long)
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        classifier.eval().scores({"input_ids": tokens, "attention_mask": tokens})


def head_dropout(config: Any) -> float:
    """Dropout rate of a head of our own: the configuration's for its classifier, or for hidden layers."""
    for key in ("classifier_dropout", "hidden_dropout_prob", "dropout"):
        value = getattr(config, key, None)
        if isinstance(value, float):
            return value
    return 0.1


def _check_pooling(model: ModelRow, config: Any) -> None:
    if model.n_layers == 0 and model.pooling != "mean":
        raise UserError(
            f"models: {model.name}: pooling {model.pooling!r} with n_layers: 0 is the same vector for every text;"
            " allowed: mean; set pooling: mean"
        )
    if model.pooling == "first" and backbone.reads_last_token(config):
        raise UserError(
            f"models: {model.name}: pooling 'first': the first token of {type(config).__name__}'s decoder sees no text;"
            " allowed: last, mean; set pooling: last"
        )


def _require_own_decoder_inputs(model: ModelRow, classifier: Classifier) -> None:
    """Some encoder-decoder classes shift the text into the decoder, as BART does; others want it given."""
    one_token = torch.ones((1, 1), dtype=torch.long)
    try:
        classifier.eval().vectors({"input_ids": one_token, "attention_mask": one_token})
    except ValueError:
        raise UserError(
            f"models: {model.name}: {type(classifier.network).__name__} makes no decoder input of the text;"
            " allowed: encoders, decoders, and encoder-decoder models like BART; choose another model"
        ) from None


def check_length(classifier: Classifier, max_length: int, where: str) -> None:
    """Raise `UserError` if the model has no positions for `max_length` tokens."""
    longest = None if classifier.words_only else backbone.longest_input(classifier.network)
    if longest is not None and max_length > longest:
        raise UserError(f"{where}: max_length {max_length}; allowed: up to {longest}, the model's positions; lower it")
