"""Frequencies of rotary positions as transformers computes them: tests/vectors/torch/rope.txt.

A line for each configuration: kind, base, factor, low, high, original positions and the number of pairs, then the
frequencies in radians.
"""

from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

HEAD = 64
KINDS = {"linear": 1, "llama3": 2}
LLAMA3 = {"low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}
WANTED = [
    (500000.0, {"rope_type": "llama3", "factor": 8.0, **LLAMA3}),
    (500000.0, {"rope_type": "llama3", "factor": 32.0, **LLAMA3}),
    (10000.0, {"rope_type": "llama3", "factor": 3.5, "low_freq_factor": 0.5, "high_freq_factor": 20.0,
               "original_max_position_embeddings": 2048}),
    (10000.0, {"rope_type": "linear", "factor": 4.0}),
]


def main():
    with open("tests/vectors/torch/rope.txt", "w") as out:
        for base, scaling in WANTED:
            config = LlamaConfig(hidden_size=4 * HEAD, num_attention_heads=4, max_position_embeddings=131072,
                                 rope_parameters={"rope_theta": base, **scaling})
            frequencies, _ = ROPE_INIT_FUNCTIONS[scaling["rope_type"]](config, "cpu")
            print(KINDS[scaling["rope_type"]], base, scaling["factor"], scaling.get("low_freq_factor", 0),
                  scaling.get("high_freq_factor", 0), scaling.get("original_max_position_embeddings", 0),
                  len(frequencies), *(repr(float(f)) for f in frequencies), file=out)


main()
