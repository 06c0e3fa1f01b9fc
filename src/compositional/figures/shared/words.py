"""Names of tasks, models and regularizers in words, for titles and legends. Tables and captions keep the names as configured."""

from __future__ import annotations

from typing import Any

PARAMETERS = {
    "labels": {
        "type": "object",
        "additionalProperties": {"type": "string"},
        "default": {},
        "description": "name of a task, model or regularizer -> its words in titles and legends, instead of the built-in ones",
    },
}

WORDS = {
    # tasks
    "cogs": "COGS",
    "daxy": "English to French, one new word",
    "digits_concat": "pairs of digits",
    "geoquery_funql": "GeoQuery in FunQL: query split",
    "geoquery_funql_glued": "the same, commas glued",
    "geoquery_funql_question": "GeoQuery in FunQL: question split",
    "geoquery_query": "GeoQuery: query split",
    "geoquery_question": "GeoQuery: question split",
    "iwslt": "IWSLT'15: English to Vietnamese",
    "mnist_concat": "pairs of MNIST images",
    "scan_around_right": "SCAN: around right",
    "scan_jump": "SCAN: add jump",
    "scan_jump_episodes": "SCAN: add jump, in episodes",
    "scan_jump_virtual": "SCAN: add jump, with virtual words",
    "scan_length": "SCAN: length",
    "scan_simple": "SCAN: random split",
    "scan_turn_left": "SCAN: add turn left",
    # models
    "cnn": "CNN",
    "lstm_attention": "LSTM with attention",
    "lstm_attention_annealed": "LSTM with attention",
    "lstm_attention_copying_fast": "LSTM that copies",
    "lstm_input_feeding": "LSTM with input feeding",
    "lstm_input_feeding_small": "small LSTM with input feeding",
    "primitive_attention": "two streams",
    # regularizers
    "recombination_seen": "recombination, seen pairs",
    "recombination_terms": "recombination of terms",
    "recombination_virtual": "recombination, virtual words",
}


def of(name: str, options: dict[str, Any]) -> str:
    """The words for a name: those of the option `labels`, the built-in ones, or the name without underscores."""
    return options.get("labels", {}).get(name) or WORDS.get(name, name.replace("_", " "))


def of_method(name: str, model: str, models: list[str], options: dict[str, Any]) -> str:
    """The words for a regularizer, with its model where a figure shows several."""
    return f"{of(name, options)} ({of(model, options)})" if len(models) > 1 else of(name, options)
