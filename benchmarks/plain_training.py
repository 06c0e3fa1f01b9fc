"""A loop as a careful user writes it, for any family: PyTorch's layers, optimizers and clipping, one run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import plain_images
import plain_sequences
import plain_transformer
import torch
from sklearn.svm import SVC
from torch import Tensor, nn
from torch.nn import functional

from compositional.kinds.sequence import SequenceSplit
from compositional.language.vocabulary import PAD, START
from compositional.models import kernel_machine
from compositional.training.problem import Problem, initial_weights

STRENGTH = 0.1  # lambda
NETWORKS: dict[str, Callable[[Problem, dict[str, Tensor]], nn.Module]] = {
    "batchnorm_cnn": plain_images.batch_normalized,
    "cgps": plain_sequences.CGPS,
    "cnn": plain_images.Convolutional,
    "dense_network": plain_images.rectified,
    "graph_structured": plain_images.Graph,
    "lstm_attention": plain_sequences.LSTMAttention,
    "lstm_input_feeding": plain_sequences.InputFeeding,
    "lstm_regressor": plain_images.Regressor,
    "meta_sequence_to_sequence": plain_sequences.MetaSequenceToSequence,
    "multilayer_perceptron": plain_images.rectified,
    "pairwise_transformer": plain_transformer.PairwiseTransformer,
    "pixel_shuffle_transformer": plain_images.PixelShuffle,
    "pointer_generator": plain_sequences.PointerGenerator,
    "primitive_attention": plain_sequences.PrimitiveAttention,
    "resnet18": plain_images.ResNet,
    "syntactic_attention": plain_sequences.SyntacticAttention,
    "transformer": plain_transformer.Transformer,
    "vision_transformer": plain_images.VisionTransformer,
}


class Trainer:
    """Run 0 of a problem, ready to take steps."""

    def __init__(self, case: Problem) -> None:
        self.case, self.data, settings = case, case.splits["train"], case.settings
        module = case.model.initialize.__module__.rpartition(".")[2]
        self.network = NETWORKS[module](case, initial_weights(case, 0))
        self.size, self.batch_of = settings["batch_size"], self.data.training_batches(settings["batch_size"])
        options = {"lr": settings["learning_rate"], "weight_decay": settings["weight_decay"]}
        if settings["optimizer"] == "sgd":
            self.optimizer = torch.optim.SGD(self.network.parameters(), momentum=settings["momentum"], **options)
        else:
            self.optimizer = torch.optim.Adam(self.network.parameters(), **options)
        every, decay = settings["decay_every"], settings["decay"]
        rate = decay ** (1 / 100) if every is None else decay
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, every or 1, rate)

    def loss(self, rows: Tensor) -> Tensor:
        """Of the examples `rows` (B,), without the regularizer: a mean over examples."""
        if isinstance(self.data, SequenceSplit):
            data, longest = self.data, int(self.data.input_lengths[rows].max())
            targets = data.targets[rows, : int(data.target_lengths[rows].max())]
            previous = functional.pad(targets[:, :-1], (1, 0), value=START)
            logits = self.network(data.inputs[rows, :longest], data.input_lengths[rows], previous)
            total = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, reduction="sum")
        else:
            batch = self.batch_of(rows.unsqueeze(0))
            total = batch.losses(self.network(batch.single()).unsqueeze(0), self.case.settings["loss"]).sum()
        return total / len(rows)

    def step(self) -> None:
        """One step, on a batch drawn uniformly with replacement, or on all examples where a batch holds them."""
        whole = self.size == len(self.data)
        loss = self.loss(torch.arange(self.size) if whole else torch.randint(len(self.data), (self.size,)))
        if self.case.regularizer is not None:
            loss = loss + STRENGTH * self.network.penalty
        self.optimizer.zero_grad()
        loss.backward()
        if self.case.settings["clip"] is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.case.settings["clip"])
        self.optimizer.step()
        self.schedule.step()


def fit(case: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Every machine of a family of kernels by scikit-learn: outputs on the training set (n, K), and its targets (n,)."""
    train, options = case.splits["train"], case.model_parameters
    items, targets, outputs = train.combinations, train.labels.numpy(), []
    agree = tuple(np.moveaxis((items[:, None] == items[None]).astype(int), 2, 0))
    for similarity in kernel_machine.family(options, items.shape[1]).values():
        gram = similarity[agree]
        machine = SVC(kernel="precomputed", C=options["penalty"], max_iter=options["iterations"]).fit(gram, targets)
        outputs.append(machine.decision_function(gram))
    return np.stack(outputs, 1), targets
