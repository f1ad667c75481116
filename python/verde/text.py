"""Tokens: token files and prompts for jobs, and answers as text.

Tokens come from a tokenizer.json by Hugging Face's library `tokenizers`; chats from the folder's
template by `jinja2`.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Union

import numpy as np

from repops import Error

from ._files import parse, writing
from ._files import read as read_bytes

# Token files as llm.c writes them (docs/jobs.md): (magic number, version) by bytes per token.
HEADERS = {2: (20240520, 1), 4: (20240801, 7)}
HEADER_NUMBERS = 256
TOKENS_MAX = 2**31 - 1
CHUNK = 1 << 20  # characters that are encoded at a time
CONFIG_MAX = 16 << 20  # bytes of tokenizer_config.json, and of a template
RESULTS_MAX = 4 << 30  # bytes of results.jsonl

Messages = Sequence[Mapping[str, Any]]  # a chat: {"role": "user", "content": "..."}, ...


class Written(NamedTuple):
    """A token file: the number of tokens, and the SHA-256 for a job's `data`."""

    tokens: int
    sha256: str


class Prompts(NamedTuple):
    """A file of prompts: their number, and the SHA-256 for a job's `prompts`."""

    prompts: int
    sha256: str


class Answer(NamedTuple):
    """A model's answer. stopped: "stop" at a token or a string, "length" at the limit."""

    key: int
    text: str
    stopped: str


def _digest(path: str | os.PathLike[str]) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _pieces(path: str | os.PathLike[str]) -> Iterable[str]:
    """Yields the text in pieces of whole lines."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            while lines := file.readlines(CHUNK):
                yield "".join(lines)
    except OSError as error:
        raise Error(f"cannot read {os.fspath(path)}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise Error(f"{os.fspath(path)} is not UTF-8: byte {error.start}") from None


def _named(value: Any) -> str | None:
    """A token in tokenizer_config.json: a text, or an object with the text as `content`."""
    found = value.get("content") if isinstance(value, dict) else value
    return found if isinstance(found, str) else None


class Tokenizer:
    """A tokenizer.json, or a folder with one and perhaps with a template for chats.

    vocab: the number of tokens, which a job's `model.vocab` must cover."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        try:
            import tokenizers
        except ImportError:
            raise Error("verde.text needs the package tokenizers: pip install tokenizers") from None
        folder = Path(file) if os.path.isdir(file) else None
        path = folder / "tokenizer.json" if folder else file
        try:
            self._own: Any = tokenizers.Tokenizer.from_file(os.fspath(path))
        except Exception as error:  # the only type that the library raises
            raise Error(f"{os.fspath(path)} is no tokenizer.json: {error}") from None
        self._own.no_truncation()
        self._own.no_padding()
        self.vocab: int = 1 + max(self._own.get_vocab(with_added_tokens=True).values())
        self._template: str | None = None
        self._marks: dict[str, str] = {}
        if folder:
            self._read_config(folder)

    def _read_config(self, folder: Path) -> None:
        """Reads the template for chats, and the tokens that it names."""
        config: dict[str, Any] = {}
        if (folder / "tokenizer_config.json").exists():
            path = folder / "tokenizer_config.json"
            config = parse(read_bytes(path, CONFIG_MAX), os.fspath(path))
        for name in ("bos_token", "eos_token", "unk_token", "pad_token"):
            text = _named(config.get(name))
            if text is not None:
                self._marks[name] = text
        template = config.get("chat_template")
        if isinstance(template, list):  # several, by name
            named = {t.get("name"): t.get("template") for t in template if isinstance(t, dict)}
            template = named.get("default")
        if (folder / "chat_template.jinja").exists():
            template = read_bytes(folder / "chat_template.jinja", CONFIG_MAX).decode()
        self._template = template if isinstance(template, str) else None

    def chat(self, messages: Messages, **more: Any) -> list[int]:
        """The tokens of a chat up to where the model answers, by the folder's template.

        The template runs in jinja2's sandbox and has no date, so that a chat has the same
        tokens on every day. more: further variables for it, such as enable_thinking=False."""
        return self.encode(self._render(messages, more))

    def _render(self, messages: Messages, more: Mapping[str, Any]) -> str:
        if self._template is None:
            raise Error("the tokenizer's folder has no template of chats")
        try:
            from jinja2 import TemplateError
            from jinja2.ext import loopcontrols
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError:
            raise Error("chats need the package jinja2: pip install jinja2") from None

        def refuse(message: str) -> None:
            raise TemplateError(message)

        def to_json(x: Any, ensure_ascii: bool = False, indent: int | None = None) -> str:
            return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent)

        jinja = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
        )
        jinja.filters["tojson"] = to_json
        jinja.globals["raise_exception"] = refuse
        known = {"messages": messages, "add_generation_prompt": True, **self._marks, **more}
        try:
            return jinja.from_string(self._template).render(known)
        except (TemplateError, TypeError, ValueError) as error:
            raise Error(f"the template of chats refuses this one: {error}") from None

    def prompts(
        self,
        out: str | os.PathLike[str],
        texts: Iterable[Union[str, Messages]],
        max_tokens: int | None = None,
    ) -> Prompts:
        """Writes the file of a job's `prompts`: the key of each is its number, from 0.

        Texts get the special tokens that the model expects around them; a chat's template adds its
        own. max_tokens: a limit for these prompts, below the job's."""
        count = 0
        limit = {} if max_tokens is None else {"max_tokens": max_tokens}
        with writing(out) as file:
            for key, text in enumerate(texts):
                ids = self.encode(text, special=True) if isinstance(text, str) else self.chat(text)
                if not ids:
                    raise Error(f"prompt {key} has no tokens")
                file.write(json.dumps({"key": key, "ids": ids, **limit}).encode() + b"\n")
                count += 1
            if not count:
                raise Error("there are no prompts")
        return Prompts(count, _digest(out))

    def answers(self, results: str | os.PathLike[str], stop: Sequence[str] = ()) -> list[Answer]:
        """The answers in a job's results.jsonl as text, in the order of the prompts.

        stop: texts are cut at the first of these strings. Tokens after it were generated, too, and
        the run commits to them."""
        lines = read_bytes(results, RESULTS_MAX).splitlines()
        answers = []
        for number, line in enumerate(lines, 1):
            what = f"{os.fspath(results)}:{number}"
            said = parse(line, what)
            key, ids, stopped = said.get("key"), said.get("ids"), said.get("stopped")
            if (
                not isinstance(key, int)
                or not isinstance(ids, list)
                or not isinstance(stopped, str)
            ):
                raise Error(f"{what} is no result of a job that generates")
            text = self.decode(ids)
            ends = [at for s in stop if s and (at := text.find(s)) >= 0]
            if ends:
                text, stopped = text[: min(ends)], "stop"
            answers.append(Answer(key, text, stopped))
        return answers

    def encode(self, text: str, special: bool = False) -> list[int]:
        """The tokens of a prompt. special: add the tokens that the model expects around a text."""
        return list(self._own.encode(text, add_special_tokens=special).ids)

    def decode(self, tokens: Sequence[int], special: bool = False) -> str:
        """The text of tokens. special: show special tokens."""
        ids = [int(t) for t in tokens]
        wrong = [t for t in ids if not 0 <= t < self.vocab]
        if wrong:
            raise Error(f"token {wrong[0]} is none of the vocabulary, 0 to {self.vocab - 1}")
        return self._own.decode(ids, skip_special_tokens=not special)

    def token(self, name: str) -> int:
        """The number of a token such as "<|endoftext|>"."""
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
        separator: a token that is put before each text, such as "<|endoftext|>"."""
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
        return Written(count, _digest(out))


def read(file: str | os.PathLike[str]) -> np.ndarray:
    """The tokens of a token file, uint16 or uint32, mapped from disk."""
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
