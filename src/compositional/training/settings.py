"""The settings of training by gradient descent: declared here, read without importing PyTorch."""

from __future__ import annotations

PARAMETERS = {
    "steps": {
        "type": "integer",
        "minimum": 1,
        "default": 2000,
        "description": "gradient steps; the budget is fixed, nothing is selected on the test set",
    },
    "batch_size": {
        "type": "integer",
        "minimum": 1,
        "default": 256,
        "description": "examples per step (sequences: a multiple of 16)",
    },
    "optimizer": {
        "enum": ["adam", "sgd", "group_rmsprop"],
        "default": "adam",
        "description": "sgd: gradient descent; group_rmsprop: its step divided by a running mean of the whole gradient's norm",
    },
    "momentum": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.0,
        "description": "of sgd: the share of the last change that is added to the next one",
    },
    "learning_rate": {
        "type": "number",
        "exclusiveMinimum": 0,
        "default": 0.01,
        "description": "step size at the start",
    },
    "decay": {
        "type": "number",
        "exclusiveMinimum": 0,
        "maximum": 1,
        "default": 0.96,
        "description": "factor on the learning rate every 100 steps (smooth), or every `decay_every` steps (at once)",
    },
    "decay_every": {
        "type": ["integer", "null"],
        "minimum": 1,
        "default": None,
        "description": "steps between two drops of the learning rate by `decay`; null: smooth",
    },
    "warmup": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "steps over which the learning rate rises from 0 (Vaswani et al. 2017), beside `decay`",
    },
    "weight_decay": {
        "type": "number",
        "minimum": 0,
        "default": 0.0,
        "description": "multiple of the weights that is added to their (clipped) gradient",
    },
    "clip": {
        "type": ["number", "null"],
        "exclusiveMinimum": 0,
        "default": 1.0,
        "description": "largest norm of a run's gradient over all its weights; null: no clipping",
    },
    "loss": {
        "enum": ["cross_entropy", "hinge", "categorical_hinge", "squared", "logistic", "absolute", "huber"],
        "default": "cross_entropy",
        "description": "hinge: the largest margin violation; categorical_hinge: Keras' variant of it; squared: to the target "
        "number, or to 1 at the label and -1 elsewhere; logistic: of a sign; absolute, huber (threshold 1): of a number. Each "
        "kind of task takes some of them",
    },
    "stop_loss": {
        "type": ["number", "null"],
        "exclusiveMinimum": 0,
        "default": None,
        "description": "a run ends before its steps are over when its training loss stays below this; null: never",
    },
    "stop_steps": {
        "type": "integer",
        "minimum": 0,
        "default": 2525,
        "description": "for how many steps it must stay there, as far as the recorded points show; 0: it ends at the first",
    },
    "seeded_as": {
        "type": ["string", "null"],
        "default": None,
        "description": "the task with whose runs these share initialization, batches and noise, seed by seed; null: with none",
    },
    "record_every": {
        "type": "integer",
        "minimum": 1,
        "default": 200,
        "description": "steps between two points of the curves in history.csv",
    },
    "record_steps": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "integer", "minimum": 0},
        "default": [],
        "description": "more points of the curves; 0 is before the first step",
    },
    "curve_examples": {
        "type": "integer",
        "minimum": 16,
        "default": 512,
        "description": "examples of each split that the curves are measured on; final metrics use all",
    },
    "influence_examples": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "examples of each split on which the curves hold gradient norms by component (where a task has them)",
    },
    "record_outputs": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "string"},
        "default": [],
        "description": "splits of which the curves hold every example's margin (point tasks)",
    },
    "cuda_width": {
        "type": ["integer", "null"],
        "minimum": 1,
        "default": None,
        "description": "on CUDA, how many runs compute together, always; null: 64, or what the model's module says",
    },
}
