"""Checks one provider at one place of its run: section 13 of PROTOCOL.md."""

from notes import Refused, exactly, from_hex, is_integer, need, tagged
from referee import Hearing, Over, Tree, hash_of, owed, refuses, words, word_of
from trees import LEAF, PART, SIZES, record, tensor_bytes

DRAWS = {"subrun": 0, "trace": 1}
DRAW_OF_FOLD = 2
SEAM_LEAVES = 256


def integers(place, names, least=0):
    need(all(is_integer(place[n]) and place[n] >= least for n in names), f"{names} of the place are no numbers")


def check_place(place, program):
    """Refuses a place that the program does not have: 13.3."""
    need(isinstance(place, dict), "the place is no object")
    seam = "leaf" in place
    kind = ("leaf", "leaves") if seam else ("element", "elements", "node")
    exactly(place, ("draws", "step", *kind), "the place", () if seam else ("part",))
    draws = place["draws"]
    need(isinstance(draws, list) and len(draws) == 3 and all(map(from_hex, draws)), "`draws` are not three hashes")
    integers(place, ("step",), -1)
    integers(place, (*kind, *(n for n in ("part",) if n in place)))
    need(place["step"] < program.steps, "the program has no such step")
    graph = program.graph(place["step"])
    if seam:
        need(1 <= place["leaves"] <= SEAM_LEAVES, "a seam has 1 to 256 leaves")
        need(place["leaf"] + place["leaves"] <= len(program.leaves), "the state has no such leaves")
        return place
    need(place["node"] < len(graph.nodes), "the graph has no such node")
    node = graph.nodes[place["node"]]
    size, first, count = SIZES[node.shape[0]], place["element"], place["elements"]
    need(count >= 1 and (first + count) * size <= tensor_bytes(node.shape), "the node has no such elements")
    need(first * size // LEAF == (first + count - 1) * size // LEAF, "the elements are in several leaves")
    fold = node.operator.fold
    parts = fold.parts(node) if fold else 1
    if parts > 1:
        need(count == 1 and "part" in place and place["part"] < parts, "the fold has no such part")
    else:
        need("part" not in place, "the element is no long fold")
    return place


class Alone(Hearing):
    """The questions to one provider about a place, and the outcome."""

    parties = (0,)

    def __init__(self, program, assignment, evidence, place):
        super().__init__(program, evidence)
        self.key, self.place, self.claim = assignment["provider"], place, None
        self.draw, self.known = None, {}

    def kept(self):
        return self.known, set()

    def question(self, ask, **members):
        question, draw = super().question(ask, **members), DRAWS.get(ask, self.draw)
        return question if draw is None else {**question, "verde": 2, "draw": self.place["draws"][draw]}

    def decide(self):
        try:
            self.commit_and_reveal()
            self.run([self.claim])
            self.standing()
        except Over:
            pass
        grade = self.fallen.get(0)
        need(grade not in (None, "timeout"), "a proof of fraud that convicts nobody")
        provider = {"key": self.key, "standing": "convicted", "grade": grade}
        if self.claim:
            provider["run_root"] = self.claim.hex()
        if self.values:
            provider["value"] = f"0x{self.values[0]:08x}"
        return {"accepted": False, "providers": [provider], "result": "convicted", "rounds": self.evidence.asked[0],
                **self.found}

    def standing(self):
        raise Refused("a proof of fraud that convicts nobody")

    def commit_and_reveal(self):
        commit = bytes(32)

        def take_commit(p, answer):
            nonlocal commit
            commit = hash_of(answer, "commit")

        def take_reveal(p, answer):
            salt, root = hash_of(answer, "salt"), hash_of(answer, "root")
            owed(tagged("verde/commit/1", salt, bytes.fromhex(self.key), root) == commit, "contradiction")
            self.claim = root
        for ask, check in (("commit", take_commit), ("reveal", take_reveal)):
            more = {"commits": [commit.hex()]} if ask == "reveal" else {}
            answer = self.evidence.ask(0, self.question(ask, **more))
            if self.attend(0, answer) or (self.fallen[0] == "conceded" and not refuses(answer)):
                self.judge(0, check, answer)
            self.end_if_fallen()

    # ---- in place of descents ----

    def run(self, claims):
        steps, step = self.program.run_steps(), self.place["step"]
        i = 0 if step < 0 else next(k for k, s in enumerate(steps) if s > step)
        before, after = self.ends(Tree({"of": "run"}, len(steps), claims), i)
        if i and steps[i] - steps[i - 1] > 1:
            before, after = self.subrun(steps[i - 1], steps[i], before, after)
        self.trace(step, before, after)

    def ends(self, tree, i):
        proven = self.prove(tree, [i - 1, i] if i else [0], lambda p, k, data: owed(len(data) == 32))[0]
        return ([proven[0]] if i else None), [proven[-1]]

    def subrun(self, a, b, before, after):
        return self.ends(self.stated_subrun(a, b, before, after), self.place["step"] - a + 1)

    def trace(self, step, before, after):
        self.found["step"] = step
        graph, name = self.program.graph(step), {"of": "trace", "step": step}

        def check(p, answer):
            root, end = hash_of(answer, "root"), hash_of(answer, "after")
            start = hash_of(answer, "before") if before else None
            owed(end == after[p] and (before is None or start == before[p]), "contradiction")
            return root
        roots = self.round(self.question("trace", tree=name), check)
        tree = Tree(name, len(graph.nodes), roots, size=lambda node: 68 + 32 * len(graph.nodes[node].inputs))
        if "leaf" in self.place:
            self.seam(tree, graph, step, after)
            return
        outputs = self.records(tree, graph, step, self.place["node"], before)
        self.elements(graph, step, self.place["node"], outputs)

    def seam(self, tree, graph, step, after):
        leaves = list(range(self.place["leaf"], self.place["leaf"] + self.place["leaves"]))
        mine = self.prove(self.state(step + 1, after), leaves, lambda p, k, data: owed(len(data) == 32))[0]
        makers = [graph.outputs[i] - graph.sources for i in leaves]
        nodes = sorted(set(makers))

        def follows(p, k, data):
            said = record(data)
            owed(said is not None)
            for maker, leaf in zip(makers, mine):
                owed(maker != nodes[k] or said[2] == leaf, "contradiction")
        self.prove(tree, nodes, follows)

    def elements(self, graph, step, index, outputs):
        node, value, first = graph.nodes[index], graph.sources + index, self.place["element"]
        tree, size = self.tensor(step, value, node.shape, outputs), SIZES[node.shape[0]]
        leaf = first * size // LEAF
        length = min(LEAF, tensor_bytes(node.shape) - leaf * LEAF)
        data = self.prove(tree, [leaf], lambda p, k, data: owed(len(data) == length))[0][0]
        for e in range(first, first + self.place["elements"]):
            self.found.pop("expected", None)
            self.found["element"] = e
            at = e * size - leaf * LEAF
            self.values = [int.from_bytes(data[at:at + size], "little")]
            if "part" in self.place:
                self.part(node, step, value, e)
                return
            self.whole(node, step, e)

    def whole(self, node, step, e):
        fold = node.operator.fold
        if fold:
            right = self.reference(node, step, lambda x: fold.end(node, e, self.all_parts(fold, node, e, x)))
        else:
            right = self.reference(node, step, lambda x: node.operator.element(node, e, x))
        self.found["expected"] = f"0x{word_of(node, right):08x}"
        self.convict([self.values[0] == word_of(node, right)], "wrong-output")

    def part(self, node, step, value, e):
        fold, j = node.operator.fold, self.place["part"]
        count = fold.parts(node)
        tree = Tree({"of": "fold", "step": step, "value": value, "element": e}, count, [None], size=lambda part: PART)

        def is_state(p, k, data):
            owed(len(data) == 4 * fold.words)
        self.draw = DRAW_OF_FOLD
        last = words(self.prove(tree, [count - 1], is_state)[0][0])
        self.draw = None
        self.convict([self.values[0] == word_of(node, fold.end(node, e, last))], "wrong-output")
        both = self.prove(tree, [j - 1, j] if j else [0], is_state)[0]
        self.found["part"] = j
        start = words(both[0]) if j else [0] * fold.words
        right = self.reference(node, step, lambda x: fold.step(node, e, j, start, x))
        self.convict([words(both[-1]) == right], "wrong-output")
