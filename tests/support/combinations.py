"""The models and regularizers that tests of training run over."""

from __future__ import annotations

from support.configurations import SCHEMA, STUDIES, read

from compositional.configuration.configuration import Configuration
from compositional.plugins import available

MODELS = [
    *("primitive_attention", "lstm_attention", "lstm_input_feeding", "syntactic_attention", "meta_sequence_to_sequence"),
    *("transformer", "cnn"),
]

CONFIGURATION = Configuration(read("config.yaml", *STUDIES), SCHEMA)
COMBINATIONS = [
    (model, regularizer)
    for model in MODELS
    for regularizer in available("regularizers")
    if not CONFIGURATION.impossible("digits_concat" if model == "cnn" else "scan_jump", model, regularizer)
    # So few episodes have no two that differ in a word alone, on both sides: there is no lexicon to swap in.
    and (model, regularizer) != ("meta_sequence_to_sequence", "recombination")
]
