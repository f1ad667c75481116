"""An LSTM reads sentences in both directions and tags each word with its part of speech, as a job
that runs without Python.

Usage: lstm_tagger.py FOLDER

The sentences are generated here. They have different lengths, so they are padded to one length, and
the loss ignores the padding. See docs/any-model.md for what to do with FOLDER.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

import repops.jobs

WORDS = {
    "noun": ["dog", "cat", "train", "child", "river", "machine", "proof"],
    "verb": ["sees", "follows", "likes", "hears", "checks"],
    "adjective": ["small", "old", "quick", "honest"],
    "article": ["the", "a", "every"],
}
TAGS = list(WORDS)
VOCABULARY = ["<padding>", *[w for words in WORDS.values() for w in words]]
BATCH, LONGEST, WIDTH, STEPS = 8, 9, 16, 100


def sentence(random):
    """Returns words and tags of: article, adjectives, noun, verb, article, adjectives, noun."""
    tags = []
    for part in ("verb", None):
        tags += ["article", *["adjective"] * random.integers(0, 3), "noun"]
        tags += [part] if part else []
    return [VOCABULARY.index(random.choice(WORDS[t])) for t in tags], [TAGS.index(t) for t in tags]


def sentences(count):
    """Returns words and tags [count, LONGEST]. Padding has word 0 and tag -100."""
    random = np.random.default_rng(1)
    words, tags = np.zeros((count, LONGEST), np.int64), np.full((count, LONGEST), -100)
    for i in range(count):
        w, t = sentence(random)
        words[i, : len(w)], tags[i, : len(t)] = w, t
    return words, tags


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(len(VOCABULARY), WIDTH, padding_idx=0)
        self.lstm = nn.LSTM(WIDTH, WIDTH, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(2 * WIDTH, len(TAGS))

    def forward(self, words):
        return self.tags(self.lstm(self.words(words))[0])


if len(sys.argv) < 2:
    sys.exit(__doc__)
job = repops.jobs.Job(sys.argv[1], seed=7, steps=STEPS, checkpoint_interval=25)
words, tags = job.rows(*sentences(200), batch=BATCH)
with job:
    torch.manual_seed(1)
    model = Tagger()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)

    def step():
        loss = F.cross_entropy(model(words).flatten(0, 1), tags.flatten(), ignore_index=-100)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        return loss


print("program", job.capture(step, model, optimizer))
print("losses of 3 steps, the same in PyTorch and in verde:", job.check(steps=3))
