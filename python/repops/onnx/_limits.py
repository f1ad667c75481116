"""What a model may be at most. Files come from strangers: each of these is checked before memory
is taken."""

FILE_BYTES_MAX = 2 << 30  # of a .onnx file; protobuf has no larger ones
EXTERNAL_BYTES_MAX = 1 << 36  # of one file of external data
NODES_MAX = 1 << 18  # nodes that are run, those of functions and of each turn of a loop too
DEPTH_MAX = 16  # graphs in nodes, functions in functions
NAME_BYTES_MAX = 4096
RANK_MAX = 32  # dimensions of a tensor
ELEMENTS_MAX = 1 << 30  # of one tensor
OPSET_MIN, OPSET_MAX = 13, 28
