"""Training steps of PyTorch as jobs that run without Python, and that can be disputed.

See docs/any-model.md.
"""

from __future__ import annotations

from ._answered import load_answers as load_answers
from ._answers import Answers as Answers
from ._job import Job as Job
from ._refusal import CaptureError as CaptureError
from ._result import Result as Result
from ._result import load as load
from ._run import Step as Step

__all__ = ["Answers", "CaptureError", "Job", "Result", "Step", "load", "load_answers"]
