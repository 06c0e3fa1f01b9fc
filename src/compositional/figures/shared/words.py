"""Names of tasks, models and regularizers in words, for titles and legends. Tables and captions keep the configured names."""

from __future__ import annotations

from typing import Any

import pandas as pd

from compositional.runs import format_lambda

# Every figure has this option (see configuration/figures.py); it can also be set for all figures together.
PARAMETERS = {
    "labels": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "task, model, regularizer or category -> its words in titles and legends, instead of the built-in ones",
    },
}

WORDS = {
    # tasks
    "cogs": "COGS",
    "daxy": "English to French, one new word",
    "digits_concat": "pairs of digits",
    "digits_concat_b": "pairs of digits, setting B",
    "digits_concat_longer": "pairs of digits, longer training",
    "geoquery_funql": "GeoQuery in FunQL: query split",
    "geoquery_funql_glued": "GeoQuery in FunQL: query split, commas glued",
    "geoquery_funql_files": "GeoQuery in FunQL: query split, as in the files",
    "geoquery_funql_plain": "GeoQuery in FunQL: query split, as in the files but with separate commas",
    "geoquery_funql_question": "GeoQuery in FunQL: question split",
    "digits_concat_refit": "pairs of digits, refitted",
    "digits_concat_select_offset": "pairs of digits",
    "digits_concat_select_pairs": "pairs of digits",
    "geoquery_query": "GeoQuery: query split",
    "geoquery_question": "GeoQuery: question split",
    "iwslt": "IWSLT'15: English to Vietnamese",
    "mnist_concat": "pairs of MNIST images",
    "mnist_concat_b": "pairs of MNIST images, setting B",
    "mnist_concat_select_pairs": "pairs of MNIST images",
    "multi30k": "captions: English to German",
    "multi30k_fr": "captions: English to French",
    "scan_around_right": "SCAN: around right",
    "scan_around_right_verbs1": "SCAN: around right, from one verb",
    "scan_around_right_verbs2": "SCAN: around right, from two verbs",
    "scan_around_right_verbs3": "SCAN: around right, from three verbs",
    "scan_jump": "SCAN: add jump",
    "scan_jump_b": "SCAN: add jump, setting B",
    "scan_jump_longer": "SCAN: add jump, longer training",
    "scan_jump_select_look": "SCAN: add jump",
    "scan_jump_episodes": "SCAN: add jump, in episodes",
    "scan_jump_episodes_copies": "SCAN: add jump, in episodes, half copies",
    "scan_jump_mlc": "SCAN: add jump, episodes of MLC",
    "scan_jump_virtual": "SCAN: add jump, with virtual words",
    "scan_length": "SCAN: length",
    "scan_opposite_right": "SCAN: opposite right",
    "scan_right": "SCAN: right after a verb",
    "scan_simple": "SCAN: random split",
    "scan_turn_left": "SCAN: add turn left",
    "slog": "SLOG",
    # models
    "batchnorm_cnn": "CNN with batch normalization",
    "cgps": "CGPS",
    "cnn": "CNN",
    "lstm_attention": "LSTM with attention",
    "lstm_attention_annealed": "LSTM with attention, annealed",
    "lstm_attention_annealed_longer": "LSTM, three times the steps",
    "lstm_attention_copying": "LSTM that copies",
    "lstm_attention_copying_fast": "small LSTM that copies",
    "lstm_attention_translation": "LSTM with attention, for translation",
    "lstm_input_feeding": "LSTM with input feeding",
    "lstm_input_feeding_small": "small LSTM with input feeding",
    "lstm_regressor": "LSTM, read as a number",
    "meta_sequence_to_sequence": "meta seq2seq",
    "meta_sequence_to_sequence_small": "small meta seq2seq",
    "pairwise_transformer_small": "small pairwise transformer",
    "pointer_generator": "LSTM that copies or writes",
    "pointer_generator_small": "small LSTM that copies or writes",
    "primitive_attention": "two streams",
    "resnet18": "ResNet-18",
    "syntactic_attention_small": "small syntactic attention",
    "t5": "T5",
    "transformer_small": "small transformer",
    "transformer_small_doubled": "small transformer, twice the steps",
    "transformer_small_long": "small transformer, long",
    "transformer_small_longer": "small transformer, longer",
    # regularizers
    "none": "plain",
    "entropy_noise": "entropy: noise alone",
    "entropy_norm": "entropy: norm alone",
    "recombination_seen": "recombination, seen pairs",
    "recombination_terms": "recombination of terms",
    "recombination_virtual": "recombination, virtual words",
    "smoothness_embeddings": "smoothness of embeddings",
    "smoothness_states": "smoothness of states",
}

# Abbreviations in the categories of COGS, from their paper.
_ABBREVIATED = {
    "cp": "CP",
    "do": "double-object",
    "inf": "infinitive",
    "arg": "argument",
    "obj": "object",
    "pp": "PP",
    "prim": "primitive",
    "subj": "subject",
    "unacc": "unaccusative",
    "unerg": "unergative",
}


def of(name: str, options: dict[str, Any]) -> str:
    """The words for a name: those of the option `labels`, the built-in ones, or the name without underscores."""
    return options.get("labels", {}).get(name) or WORDS.get(name, name.replace("_", " "))


def published(value: float) -> str:
    """A published number with three decimals, or all if it has more: 0.9995 is not 1."""
    return max(f"{value:.3f}", f"{value:g}", key=len)


def of_category(name: str, options: dict[str, Any]) -> str:
    """The words for a category of a test set, or for its part after "/"."""
    spelled = " ".join(_ABBREVIATED.get(word, word) for word in name.rpartition("/")[2].replace("_", " ").split())
    return options.get("labels", {}).get(name, spelled)


def of_label(label: str, rows: pd.DataFrame, options: dict[str, Any]) -> str:
    """The configured name of a method (`style.methods`), or words for its model and regularizer if it has no name."""
    model, name, strength = rows[["model", "regularizer", "lambda"]].iloc[0]
    if label not in (model, f"{model} + {name} {format_lambda(strength)}"):
        return label
    return of(model, options) + ("" if name == "none" else f" + {of(name, options)}, lambda {format_lambda(strength)}")


def of_method(name: str, model: str, models: list[str], options: dict[str, Any]) -> str:
    """The words for a regularizer, with its model if a figure shows several."""
    return f"{of(name, options)} ({of(model, options)})" if len(models) > 1 else of(name, options)


def runs(number: int) -> str:
    """A number of runs in words."""
    return f"{number} run{'' if number == 1 else 's'}"
