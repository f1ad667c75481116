"""python3 -m repops.onnx: jobs of ONNX models. See docs/onnx.md."""

from __future__ import annotations

import sys

from .._library import Error


def _run(words: list[str]) -> int:
    try:
        from ._command import main

        return main(words)
    except Error as error:
        print(f"repops.onnx: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(_run(sys.argv[1:]))
