"""Settings of fine-tuning and inference. Their defaults stand in the config schema alone."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class FineTuneSettings:
    """How a model is fine-tuned.

    `warmup_share` is the share of steps over which the learning rate rises; `selection_share`
    the share of the training rows, drawn by group, that chooses the checkpoint (0: the last
    epoch is kept); `max_train_examples` caps the rows, classes in proportion (None: all).
    `tokens_per_pass` (None: the whole batch) and `gradient_checkpointing` save memory, see
    `advsets.models.passes`; they change results by rounding and the draws of dropout alone.
    """

    learning_rate: float
    epochs: int
    batch_size: int
    max_length: int
    warmup_share: float
    weight_decay: float
    selection_share: float
    checkpoint_every_steps: int
    max_train_examples: int | None
    gradient_clip: float
    tokens_per_pass: int | None
    gradient_checkpointing: bool


@dataclass(frozen=True)
class EmbedSettings:
    """How representations and predictions are computed.

    `dtype` is `float32` or `float16` (stored vectors), `tokens_per_batch` the padded tokens
    of one batch, `max_length` the tokens kept of one text or pair.
    """

    dtype: str
    tokens_per_batch: int
    max_length: int
