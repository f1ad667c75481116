"""Turns the micro-batches of a graph into a repeat: PROTOCOL.md 1.5.

Which nodes are the same in each micro-batch, and how sums are added up, is found from the nodes. If
micro-batches differ, the graph stays as it is."""

from __future__ import annotations

from typing import NamedTuple

from ._graph import CARRIED, LISTED, OUTSIDE, Graph, Node, Repeat, Value

SLOPED = ("first", "stream")  # attributes that may grow from one micro-batch to the next


class Unlike(Exception):
    """The micro-batches cannot be a repeat. The text says where they differ."""


class Addition(NamedTuple):
    number: int  # the micro-batch after which it comes
    round: int  # number of this addition of the parameter, in that micro-batch
    name: str
    node: int


class Loop:
    """The nodes of one loop over micro-batches. done: nodes before it in the new order.

    maps: for each micro-batch, from the body's node numbers to its nodes. The body is the second
    micro-batch: the first one also has nodes that are shared by all."""

    def __init__(self, nodes: list[Node], region: list[int], done: set[int], earlier: list[Loop]):
        self.nodes, self.region, self.done, self.earlier = nodes, region, set(done), earlier
        part = nodes[region[0]].part
        assert part is not None
        self.count = part.parts
        self.additions: list[Addition] = []
        self.varying: set[int] = set()
        self.members: list[list[int]] = [[] for _ in range(self.count)]
        self._sort()
        self.body = list(self.members[1])
        self.number = {i: k for k, i in enumerate(self.body)}
        self.maps: list[dict[int, int]] = []
        self.repeat = self._fold()

    # ---- nodes that vary ----

    def _sort(self) -> None:
        inside = {i for loop in self.earlier for m in loop.maps for i in m.values()}
        self.hoisted: list[int] = []
        for i in self.region:
            node = self.nodes[i]
            assert node.part is not None
            if node.part.sum is not None:
                self.additions.append(Addition(node.part.number, *node.part.sum, i))
                self.varying.add(i)
                continue
            own = any(a in SLOPED for a, _ in node.operator.attributes)
            read = {v.number for v in node.inputs if v.kind == "node"}
            if own or read & self.varying or read & inside:
                self.varying.add(i)
                self.members[node.part.number].append(i)
            else:
                self.hoisted.append(i)

    # ---- matching a micro-batch's nodes with the body's ----

    def _align(self, m: int) -> dict[int, int]:
        found: dict[int, int] = {}
        waiting: dict[object, list[int]] = {}
        for i in self.members[m]:
            waiting.setdefault(self._kind(i), []).append(i)
        for k, t in enumerate(self.body):
            left = waiting.get(self._kind(t), [])
            for at, i in enumerate(left):
                if self._alike(i, t, m, found):
                    found[k] = left.pop(at)
                    break
        return found

    def _kind(self, i: int) -> object:
        node = self.nodes[i]
        fixed = [
            word
            for word, (name, _) in zip(node.attributes, node.operator.attributes)
            if name not in SLOPED
        ]
        return node.operator.number, node.dtype, node.dims, tuple(fixed), len(node.inputs)

    def _alike(self, i: int, t: int, m: int, found: dict[int, int]) -> bool:
        pairs = zip(self.nodes[i].inputs, self.nodes[t].inputs)
        return all(self._stands_for(u, v, m, found) for u, v in pairs)

    def _stands_for(self, u: Value, v: Value, m: int, found: dict[int, int]) -> bool:
        """Does micro-batch m read u where the second one reads v?"""
        if v.kind == "node" and v.number in self.number:
            return u.kind == "node" and found.get(self.number[v.number]) == u.number
        if u[:2] == v[:2]:
            return True
        if v.kind != "node":
            return False
        if v.number in self.members[0]:  # of the micro-batch before it
            if m == 0:
                return u.kind != "node" or u.number not in self.varying
            k = next((k for k, i in self.maps[0].items() if i == v.number), None)
            return k is not None and u.kind == "node" and self.maps[m - 1].get(k) == u.number
        place = self._earlier(v.number)
        return place is not None and u.kind == "node" and self._of_earlier(place, m) == u.number

    def _earlier(self, node: int) -> tuple[int, int] | None:
        """The earlier loop whose second micro-batch has the node, and the node's number in its
        body."""
        for at, loop in enumerate(self.earlier):
            if node in loop.number and loop.count == self.count:
                return at, loop.number[node]
        return None

    def _of_earlier(self, place: tuple[int, int], m: int) -> int | None:
        return self.earlier[place[0]].maps[m].get(place[1])

    # ---- the body ----

    def _fold(self) -> Repeat:
        second = {k: i for k, i in enumerate(self.body)}
        self.maps = [self._align(0), second]
        for m in range(2, self.count):
            self.maps.append(self._align(m))
        self._keep()
        self._move_others()
        kept = sorted(self.maps[0])
        if not kept:
            raise Unlike("nothing in them is alike") if not self.body else self._unlike(0)
        self.place = {k: at for at, k in enumerate(kept)}
        repeat = Repeat(self.count, 0, len(kept))
        for k in kept:
            repeat.slopes.append(self._slope(k))
            repeat.inputs.append([self._input(k, at, repeat) for at in range(self._inputs(k))])
        self._add_up(repeat)
        return repeat

    def _inputs(self, k: int) -> int:
        return len(self.nodes[self.body[k]].inputs)

    def _keep(self) -> None:
        """Keeps body nodes that all micro-batches have and that only depend on kept ones."""
        gone = {k for k in self.maps[1] if any(k not in m for m in self.maps)}
        zeroth = {i: k for k, i in self.maps[0].items()}
        more = True
        while more:
            more = False
            for k, t in enumerate(self.body):
                read = [v.number for v in self.nodes[t].inputs if v.kind == "node"]
                own = [self.number[i] for i in read if i in self.number]
                own += [zeroth[i] for i in read if i in zeroth]
                if k not in gone and gone & set(own):
                    gone.add(k)
                    more = True
        self.first_gone = min(gone, default=None)
        self.maps = [{k: i for k, i in m.items() if k not in gone} for m in self.maps]

    def _move_others(self) -> None:
        """Moves other nodes before the body if they do not depend on it, else after it."""
        inside = {i for m in self.maps for i in m.values()} | {a.node for a in self.additions}
        before, self.after = set(self.hoisted), []
        for i in self.region:
            if i in inside or i in before:
                continue
            read = {v.number for v in self.nodes[i].inputs if v.kind == "node"}
            if read <= self.done | before:
                before.add(i)
            else:
                self.after.append(i)
        self.hoisted = sorted(before)
        self.done |= before

    def _unlike(self, k: int | None) -> Unlike:
        if k is None:
            return Unlike("its gradients")
        node = self.nodes[self.body[k]]
        where = f" at {node.place.place}" if node.place is not None else ""
        return Unlike(f"{node.name}{where}")

    def _slope(self, k: int) -> tuple[int, int] | None:
        words = [self.nodes[m[k]].attributes for m in self.maps]
        moving = [i for i, w in enumerate(words[0]) if any(v[i] != w for v in words)]
        if not moving:
            return None
        i = moving[0]
        slope = words[1][i] - words[0][i]
        steady = all(w[i] == words[0][i] + m * slope for m, w in enumerate(words))
        if len(moving) > 1 or not steady:
            raise self._unlike(k)
        return i, slope

    def _input(self, k: int, at: int, repeat: Repeat) -> tuple[int, Value | tuple[int, int]]:
        read = [self.nodes[m[k]].inputs[at] for m in self.maps]
        if all(v[:2] == read[0][:2] for v in read):
            if read[0].kind != "node" or read[0].number in self.done:
                return OUTSIDE, read[0]
            raise self._unlike(k)
        numbers = [v.number if v.kind == "node" else -1 for v in read]
        inner = self.number.get(numbers[1])
        if inner in self.place and all(m[inner] == n for m, n in zip(self.maps, numbers)):
            return LISTED, (-1, self.place[inner])
        place = self._earlier(numbers[1])
        if place is not None:
            loop = self.earlier[place[0]]
            if place[1] in loop.place and all(m[place[1]] == n for m, n in zip(loop.maps, numbers)):
                return LISTED, (place[0], loop.place[place[1]])
        carried = next((c for c, i in self.maps[0].items() if i == numbers[1]), None)
        outside = read[0].kind != "node" or read[0].number in self.done
        if (
            carried is None
            or not outside
            or any(m[carried] != n for m, n in zip(self.maps, numbers[1:]))
        ):
            raise self._unlike(k)
        return CARRIED, (repeat.carry(read[0], self.place[carried]), 0)

    # ---- sums ----

    def _add_up(self, repeat: Repeat) -> None:
        """Checks that the additions are those of the tree, in its order."""
        rest = iter(self.additions)
        first = [a for a in self.additions if (a.number, a.round) == (1, 0)]
        names = [a.name for a in first]
        second = [self.nodes[a.node].inputs[1].number for a in first]
        made = [self.number.get(i, -1) for i in second]
        for k, name in zip(made, names):
            if k not in self.place:
                raise Unlike(f"the gradient of {name}") if k < 0 else self._unlike(self.first_gone)
        totals: list[list[int]] = []
        self.sums: list[list[int]] = []  # for each micro-batch the additions after it
        for m in range(self.count):
            own, added = [self.maps[m][k] for k in made], []
            last = m == self.count - 1
            for j in range(len(totals) if last else (~m & (m + 1)).bit_length() - 1):
                before = totals.pop()
                for p, name in enumerate(names):
                    a = next(rest, None)
                    if a is None or a[:3] != (m, j, name) or not self._adds(a, before[p], own[p]):
                        raise Unlike(f"the gradient of {name}")
                    added.append(a.node)
                own = added[-len(names) :] if names else []
            totals.append(own)
            self.sums.append(added)
        if next(rest, None) is not None:
            raise Unlike("a sum that is no part of the tree")
        repeat.sums += [(self.place[k], name) for k, name in zip(made, names)]

    def _adds(self, a: Addition, first: int, second: int) -> bool:
        node = self.nodes[a.node]
        read = [(v.kind, v.number) for v in node.inputs]
        return node.operator.name == "add" and read == [("node", first), ("node", second)]

    def order(self) -> list[int]:
        """The nodes that the repeat stands for, in order."""
        meant = []
        for m, added in zip(self.maps, self.sums):
            meant += [m[k] for k in sorted(m)] + added
        return meant


def fold(graph: Graph) -> None:
    """Turns loops over micro-batches into repeats, and reorders nodes accordingly. Raises Unlike,
    and leaves the graph unchanged, if micro-batches differ."""
    loops = sorted({n.part.loop for n in graph.nodes if n.part is not None})
    order: list[int] = []
    made: list[Loop] = []
    at = 0
    for number in loops:
        region = [i for i, n in enumerate(graph.nodes) if n.part and n.part.loop == number]
        order += range(at, region[0])
        loop = Loop(graph.nodes, region, set(order), made)
        order += loop.hoisted
        loop.repeat.start = len(order)
        order += loop.order() + loop.after
        made.append(loop)
        at = region[-1] + 1
    order += range(at, len(graph.nodes))
    graph.reorder(order, [loop.repeat for loop in made])
