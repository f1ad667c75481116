"""Verde's runs and verdicts in Python, and the files that its jobs read.

>>> import verde
>>> state = verde.load("run")             # the last checkpoint, compared with its commitment
>>> state["wte"], state.torch()["wte"]
>>> verde.Verdict("verdict.json")         # a table, in a notebook
>>> verde.text.Tokenizer("tokenizer.json").write("train.bin", ["book.txt"])
"""

from __future__ import annotations

from repops import Error as Error

from . import text as text
from ._run import Program as Program
from ._run import Run as Run
from ._run import State as State
from ._run import load as load
from ._verdict import Verdict as Verdict

__all__ = ["Error", "Program", "Run", "State", "Verdict", "load", "text"]
