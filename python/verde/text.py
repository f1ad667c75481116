"""Tokens: files that jobs read, prompts, and text that people read.

By a tokenizer.json of Hugging Face, through their library `tokenizers`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from repops import Error

from ._files import writing

# Token files as llm.c writes them (docs/jobs.md): magic number and version, by a token's bytes.
HEADERS = {2: (20240520, 1), 4: (20240801, 7)}
HEADER_NUMBERS = 256
TOKENS_MAX = 2**31 - 1
CHUNK = 1 << 20  # characters of a text that are encoded at a time


class Written(NamedTuple):
    """A token file: how many tokens, and the SHA-256 that a job's `data` names."""

    tokens: int
    sha256: str


def _pieces(path: str | os.PathLike[str]) -> Iterable[str]:
    """The text in pieces of whole lines."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            while lines := file.readlines(CHUNK):
                yield "".join(lines)
    except OSError as error:
        raise Error(f"cannot read {os.fspath(path)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Error(f"{os.fspath(path)} is not UTF-8: byte {error.start}") from None


class Tokenizer:
    """A tokenizer.json. vocab: how many tokens it knows, which a job's `model.vocab` must cover."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        try:
            import tokenizers
        except ImportError:
            raise Error("verde.text needs the package tokenizers: pip install tokenizers") from None
        try:
            self._own: Any = tokenizers.Tokenizer.from_file(os.fspath(file))
        except Exception as error:  # the library raises this type alone
            raise Error(f"{os.fspath(file)} is no tokenizer.json: {error}") from None
        self._own.no_truncation()
        self._own.no_padding()
        self.vocab: int = 1 + max(self._own.get_vocab(with_added_tokens=True).values())

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The tokens of a prompt. special: with those that the model expects around a text."""
        return list(self._own.encode(text, add_special_tokens=special).ids)

    def decode(self, tokens: Sequence[int], special: bool = False) -> str:
        """The text of tokens. special: special tokens are shown."""
        ids = [int(t) for t in tokens]
        wrong = [t for t in ids if not 0 <= t < self.vocab]
        if wrong:
            raise Error(f"token {wrong[0]} is none of the vocabulary, 0 to {self.vocab - 1}")
        return self._own.decode(ids, skip_special_tokens=not special)

    def token(self, name: str) -> int:
        """The number of a token, such as "<|endoftext|>"."""
        found = self._own.token_to_id(name)
        if found is None:
            raise Error(f"the tokenizer has no token {name!r}")
        return int(found)

    def write(
        self,
        out: str | os.PathLike[str],
        files: Iterable[str | os.PathLike[str]],
        separator: str | None = None,
    ) -> Written:
        """Writes the tokens of text files as a token file of `data: {kind: tokens}`.

        A text is encoded in pieces of about a million characters, which end at ends of lines.
        separator: a token that stands before each text, such as "<|endoftext|>"."""
        dtype = np.dtype("<u2" if self.vocab <= 1 << 16 else "<u4")
        mark = [] if separator is None else [self.token(separator)]
        count = 0
        with writing(out) as file:
            file.write(bytes(4 * HEADER_NUMBERS))
            for path in files:
                for tokens in (mark, *map(self.encode, _pieces(path))):
                    file.write(np.array(tokens, dtype).tobytes())
                    count += len(tokens)
            if not 1 <= count <= TOKENS_MAX:
                raise Error(f"the texts have {count} tokens; expected 1 to {TOKENS_MAX}")
            header = np.zeros(HEADER_NUMBERS, "<i4")
            header[:3] = (*HEADERS[dtype.itemsize], count)
            file.seek(0)
            file.write(header.tobytes())
        with open(out, "rb") as file:
            digest = hashlib.sha256()
            while piece := file.read(1 << 20):
                digest.update(piece)
        return Written(count, digest.hexdigest())


def read(file: str | os.PathLike[str]) -> np.ndarray:
    """The tokens of a token file, uint16 or uint32, in their place on disk."""
    forms = {(*head,): size for size, head in HEADERS.items()}
    try:
        header = np.fromfile(file, "<i4", HEADER_NUMBERS)
        size = forms.get(tuple(header[:2].tolist()))
        if size is None or len(header) < HEADER_NUMBERS or header[3:].any():
            raise Error(f"{os.fspath(file)} is no token file")
        tokens = np.memmap(file, f"<u{size}", "r", 4 * HEADER_NUMBERS)
    except (OSError, ValueError) as error:
        raise Error(f"cannot read {os.fspath(file)}: {error}") from None
    if len(tokens) != header[2]:
        raise Error(f"{os.fspath(file)} has {len(tokens)} tokens; its header says {header[2]}")
    return tokens.view(np.ndarray)
