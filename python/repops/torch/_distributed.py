"""torch.distributed: processes exchange tensors, and add them in the order of ranks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed

from ._call import Leftover
from ._registry import handles

Tensor = torch.Tensor
# These move data and round nothing.
_MOVEMENT = """
    broadcast_ allgather_ _allgather_base_ allgather_coalesced_ allgather_into_tensor_coalesced_
    gather_ scatter_ alltoall_ alltoall_base_ send recv_ recv_any_source_ barrier monitored_barrier_
""".split()


def _moves(name: str) -> None:
    def handler(*args: Any, **kwargs: Any) -> Any:
        return getattr(torch.ops.c10d, name).default(*args, **kwargs)

    handles("c10d::" + name)(handler)


for _name in _MOVEMENT if torch.distributed.is_available() else ():
    _moves(_name)


def _combination(boxed: Any) -> Callable[[Tensor, Tensor], Tensor]:
    op = torch.distributed.ReduceOp
    if not hasattr(op, "unbox"):
        raise Leftover("PyTorch 2.9 does not tell which reduction it is; 2.15 does")
    own = op.unbox(boxed)
    for kind, both in (
        (op.SUM, torch.add),
        (op.PRODUCT, torch.mul),
        (op.MAX, torch.maximum),
        (op.MIN, torch.minimum),
    ):
        if own == kind:
            return both
    raise Leftover("its reduction is neither a sum or product nor a maximum or minimum")


@handles("c10d::allreduce_")
def allreduce_(
    tensors: list[Tensor], group: Any, op: Any, sparse: Any = None, *rest: Any
) -> tuple[list[Tensor], Any]:
    """Gathers all tensors and combines them here, as the backend's order is not fixed. The
    broadcast changes nothing: its work object has these tensors as result, which
    DistributedDataParallel needs."""
    both, size = _combination(op), torch.distributed.ProcessGroup.unbox(group).size()
    gathered = [[torch.empty_like(t) for _ in range(size)] for t in tensors]
    _, work = torch.ops.c10d.allgather_(gathered, tensors, group, *rest)
    work.wait()
    for t, (first, *others) in zip(tensors, gathered):
        for other in others:
            first = both(first, other)
        t.copy_(first)
    return torch.ops.c10d.broadcast_(tensors, group, 0, 0, *rest)
