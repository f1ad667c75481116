"""Verdicts (PROTOCOL.md section 7), as tables."""

from __future__ import annotations

import base64
import html
import os
import shutil
import struct
import subprocess
from pathlib import Path
from typing import Any

from repops import Error

from ._files import parse, read

# Limits: bytes of a file without games, bytes for each game, and games (PROTOCOL.md section 9). Two
# hearings of two providers are two games.
VERDICT_MAX, GAME_MAX, GAMES_MAX = 128 << 20, 296 << 20, 126
TYPE = "application/vnd.in-toto+json"
KINDS = ("https://verde.invalid/verdict/v1", "https://verde.invalid/verdict/v2")


def _payload(note: dict[str, Any], what: str) -> dict[str, Any]:
    if note.get("payloadType") != TYPE or not isinstance(note.get("payload"), str):
        raise Error(f"{what} is no verdict: its type is not {TYPE}")
    try:
        data = base64.b64decode(note["payload"], validate=True)
    except ValueError:
        raise Error(f"{what} is no verdict: its payload is not base64") from None
    return parse(data, what)


def _place(o: dict[str, Any]) -> str:
    """Where two runs differ, as far as a hearing went; "": nowhere."""
    if "step" not in o:
        return ""
    place = [f"step {o['step']}"]
    if "node" in o:
        place.append(f"node {o['node']} {o.get('node_name', '')} ({o.get('operator', '')})")
    if "element" in o:
        place.append(f"element {o['element']}")
    return ", ".join(place)


def _game(game: dict[str, Any]) -> str:
    """The two players of a game, and how each stands afterwards."""
    try:
        providers, standing = list(game["providers"]), list(game["standing"])
        text = "; ".join(f"provider {int(p) + 1} {s}" for p, s in zip(providers, standing))
    except (KeyError, TypeError, ValueError):
        return str(game)
    if len(providers) != len(standing):
        return str(game)
    place = _place(game)
    return f"level {game.get('level')}: {text}{f'; {place}' if place else ''}"


def _number(bits: Any) -> str:
    """An element's bits, and the number that they encode."""
    try:
        value = struct.unpack("<f", struct.pack("<I", int(bits, 16)))[0]
    except (TypeError, ValueError, struct.error):
        return str(bits)
    return f"{value:.9g} ({bits})"


class Verdict:
    """The content of a verdict's file. Nothing is verified until `verify` is called.

    outcome: the members of PROTOCOL.md section 7, unchanged. games: those of a dispute between
    more than two, else empty. signer: the key in the note.
    verified: the result of `verify`; None: it was not called."""

    def __init__(self, file: str | os.PathLike[str]) -> None:
        self.file = Path(file)
        data = read(file, VERDICT_MAX + GAMES_MAX * GAME_MAX)
        note = parse(data, str(file))
        statement = _payload(note, str(file))
        kind = statement.get("predicateType")
        if kind not in KINDS:
            known = " and ".join(KINDS)
            raise Error(f"{file}: `predicateType` is {kind}; this verde reads {known}")
        try:
            predicate = statement["predicate"]
            self.outcome: dict[str, Any] = dict(predicate["outcome"])
            self.cost: dict[str, Any] = dict(predicate["cost"])
            self.program = str(statement["subject"][0]["digest"]["sha256"])
            self.signer = str(note["signatures"][0]["keyid"])
            self.providers = [dict(p) for p in self.outcome["providers"]]
            self.games = [dict(game) for game in self.outcome.get("games", ())]
            self.result = str(self.outcome["result"])
        except (KeyError, IndexError, TypeError, ValueError):
            raise Error(f"{file} is no verdict: a member is missing") from None
        played = len(self.games) or 2
        limit = VERDICT_MAX + played * GAME_MAX
        if len(data) > limit:
            raise Error(f"{file}: expected at most {limit} bytes of {played} games")
        self.verified: bool | None = None

    def verify(self, command: str | None = None, referee: str | None = None) -> bool:
        """Runs `verde verify`, which decides again from the evidence; False: the verdict does not
        hold.

        Raises Error if it cannot decide, as for a verdict of a later version. command: the program;
        else the variable VERDE, else `verde` in PATH. referee: the required signer."""
        program = command or os.environ.get("VERDE") or shutil.which("verde")
        if not program:
            raise Error("there is no command `verde`: give it, or set VERDE")
        options = ["--referee", referee] if referee else []
        run = [program, "verify", os.fspath(self.file), "--quiet", *options]
        done = subprocess.run(run, capture_output=True, text=True)
        if done.returncode not in (0, 6):
            raise Error(done.stderr.strip() or f"verde verify ended with {done.returncode}")
        self.verified = done.returncode == 0
        return self.verified

    def rows(self) -> list[tuple[str, str]]:
        """The verdict as pairs of a heading and a text."""
        said = {
            None: "not verified here: call verify()",
            True: "verified: the evidence gives this outcome",
            False: "DOES NOT HOLD: the evidence gives another outcome, or was changed",
        }
        found = [("result", self.result), ("verdict", said[self.verified])]
        o = self.outcome
        if "step" in o:
            found.append(("where", _place(o)))
        if "expected" in o:
            found.append(("reference", _number(o["expected"])))
        for i, p in enumerate(self.providers):
            found.append((f"provider {i + 1}", self._provider(p)))
        found += [(f"game {i + 1}", _game(game)) for i, game in enumerate(self.games)]
        if "run_root" in o:
            found.append(("accepted", str(o["run_root"])))
        found += [("program", self.program), ("referee", self.signer)]
        return found

    def _provider(self, p: dict[str, Any]) -> str:
        text = f"{p.get('standing')}, {p.get('key')}"
        if "value" in p:
            text += f", element {_number(p['value'])}"
        return text + (f", {p['grade']}: {p.get('reason', '')}" if "grade" in p else "")

    def __repr__(self) -> str:
        return "\n".join(f"{name:12} {value}" for name, value in self.rows())

    def _repr_html_(self) -> str:
        """A table for notebooks; the file's texts are escaped."""
        color = {None: "gray", True: "green", False: "red"}[self.verified]
        rows = []
        for name, value in self.rows():
            style = f"text-align: left{f'; color: {color}' if name == 'verdict' else ''}"
            cells = [
                f'<{tag} style="{style}">{html.escape(cell)}</{tag}>'
                for tag, cell in (("th", name), ("td", value))
            ]
            rows.append(f"<tr>{''.join(cells)}</tr>")
        return f"<table>{''.join(rows)}</table>"
