"""Training steps of PyTorch as jobs that run without Python, and that can be disputed.

See docs/any-model.md.
"""

from __future__ import annotations

from verde import load as load

from ._capture import CaptureError as CaptureError
from ._job import Job as Job

__all__ = ["CaptureError", "Job", "load"]
