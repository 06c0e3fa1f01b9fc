"""The settings of training by gradient descent. They are declared here, so that reading them does not import PyTorch."""

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
        "description": "sgd: gradient descent; group_rmsprop: gradient descent with the step divided by a running root mean "
        "square of the norm of the whole gradient",
    },
    "momentum": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.0,
        "description": "for sgd: the share of the previous change that is added to the next one",
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
        "description": "factor on the learning rate per 100 steps (applied smoothly), or every `decay_every` steps (in one drop)",
    },
    "decay_every": {
        "type": ["integer", "null"],
        "minimum": 1,
        "default": None,
        "description": "steps between two drops of the learning rate by `decay`; null: the decay is smooth",
    },
    "warmup": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "steps over which the learning rate rises from 0 (Vaswani et al. 2017), in addition to `decay`",
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
        "description": "hinge: the largest margin violation; categorical_hinge: Keras' variant of it; squared: squared distance "
        "from the target number, or from 1 at the label and -1 elsewhere; logistic: for targets that are signs; absolute, huber "
        "(threshold 1): for numbers. Each kind of task supports some of them",
    },
    "stop_loss": {
        "type": ["number", "null"],
        "exclusiveMinimum": 0,
        "default": None,
        "description": "a run ends before its last step if its training loss stays below this value; null: never",
    },
    "stop_steps": {
        "type": "integer",
        "minimum": 0,
        "default": 2525,
        "description": "for how many steps the recorded training losses must stay below `stop_loss`; 0: one record is enough",
    },
    "seeded_as": {
        "type": ["string", "null"],
        "default": None,
        "description": "the task whose runs use the same initialization, batches and noise, seed by seed; null: no such task",
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
        "description": "steps at which additional points of the curves are recorded; 0 is before the first step",
    },
    "curve_examples": {
        "type": "integer",
        "minimum": 16,
        "default": 512,
        "description": "examples of each split on which the curves are measured; final metrics use all examples",
    },
    "influence_examples": {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "examples of each split for which the curves hold gradient norms by component (tasks with components)",
    },
    "record_outputs": {
        "type": "array",
        "uniqueItems": True,
        "items": {"type": "string"},
        "default": [],
        "description": "splits for which the curves hold every example's margin (point tasks only)",
    },
    "cuda_width": {
        "type": ["integer", "null"],
        "minimum": 1,
        "default": None,
        "description": "how many runs are always computed together on CUDA; null: 64, or the number that the model's module sets",
    },
}
