"""Limits of a model. Files come from strangers: each limit is checked before memory is
allocated."""

FILE_BYTES_MAX = 2 << 30  # bytes of an .onnx file; protobuf has the same limit
EXTERNAL_BYTES_MAX = 1 << 36  # bytes of one file of external data
NODES_MAX = 1 << 18  # nodes that are run, counting functions' nodes and each iteration of a loop
DEPTH_MAX = 16  # nesting of graphs in nodes, and of functions
NAME_BYTES_MAX = 4096
RANK_MAX = 32  # dimensions of a tensor
ELEMENTS_MAX = 1 << 30  # elements of one tensor
OPSET_MIN, OPSET_MAX = 13, 28
