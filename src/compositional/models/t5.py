"""T5 (Raffel et al., JMLR 2020) of the library `transformers`, built from a configuration: initialized at random, not downloaded.

It is a `Network` (`training.networks`). T5 has one vocabulary: input words come first, then output symbols. It needs the packages
of envs/optional.txt; the version of `transformers` is part of a run's identity.
"""

from __future__ import annotations

from torch import Tensor, nn

KIND = "sequence"
PACKAGES = ("transformers",)
REPRESENTATIONS = {"word_embedding": "t5.encoder.embed_tokens", "encoder_states": "t5.encoder.final_layer_norm"}
PARAMETERS = {
    "width": {"type": "integer", "minimum": 1, "default": 128, "description": "width of all states (d_model)"},
    "heads": {"type": "integer", "minimum": 1, "default": 8, "description": "heads of every attention"},
    "head_width": {"type": "integer", "minimum": 1, "default": 16, "description": "width of keys and values of a head (d_kv)"},
    "feedforward_width": {"type": "integer", "minimum": 1, "default": 256, "description": "hidden units of every layer (d_ff)"},
    "layers": {"type": "integer", "minimum": 1, "default": 2, "description": "layers of the encoder, and of the decoder"},
    "dropout": {
        "type": "number",
        "minimum": 0,
        "exclusiveMaximum": 1,
        "default": 0.1,
        "description": "share of units dropped in training",
    },
}


class Network(nn.Module):
    """The network of one run."""

    def __init__(self, parameters: dict, task: dict) -> None:
        super().__init__()
        from transformers import T5Config, T5ForConditionalGeneration

        self.offset = len(task["source_words"])
        self.t5 = T5ForConditionalGeneration(
            T5Config(
                vocab_size=self.offset + len(task["target_words"]),
                d_model=parameters["width"],
                d_kv=parameters["head_width"],
                d_ff=parameters["feedforward_width"],
                num_layers=parameters["layers"],
                num_heads=parameters["heads"],
                dropout_rate=parameters["dropout"],
                use_cache=False,
            )
        )

    def forward(self, batch) -> Tensor:
        """Logits (B, T, symbols) under teacher forcing; batch: `kinds.sequence.Single`."""
        previous, mask = batch.previous + self.offset, batch.input_mask.long()
        outputs = self.t5(input_ids=batch.inputs, attention_mask=mask, decoder_input_ids=previous)
        return outputs.logits[..., self.offset :]
