"""The referee of PROTOCOL.md section 5, run on the providers' signed answers."""

from binary32 import F32
from collection import Collection
from notes import from_base64, from_hex, tagged
from trees import (LEAF, PART, SIGNED, SIZES, frontier, join, record, root_of_path, state_commitment, step_number,
                   tensor_bytes, tensor_commitment, tensor_leaves)

DEPTH = 4
ASKED_AT_ONCE = 1024
RECORDS_AT_ONCE = 256


class Convicted(Exception):
    """Whoever signed the answer is convicted; the argument is the grade."""


def refuses(answer):
    return isinstance(answer.get("refusal"), str)


class Over(Exception):
    """The hearing is over."""


def owed(holds, grade="bad-proof"):
    if not holds:
        raise Convicted(grade)


def hash_of(answer, name):
    value = from_hex(answer.get(name))
    owed(value is not None)
    return value


def leaf_of(proof, index, count, root):
    """The data of a leaf, with a proof that it is below the root."""
    owed(isinstance(proof, dict) and isinstance(proof.get("data"), str) and isinstance(proof.get("path"), list))
    path = [from_hex(h) for h in proof["path"]]
    owed(len(path) <= 64 and None not in path)
    data = from_base64(proof["data"])
    owed(data is not None)
    owed(root_of_path(index, count, data, path) == root)
    return data


class Tree:
    """A tree that questions are about: its name in them, its number of leaves, and the condition for its roots.

    Either `stated` has the root that each provider has stated, or `commitment` maps a root to the hash that must be the
    one in `committed`. size(leaf): the most bytes that a leaf may have."""

    def __init__(self, name, count, stated=None, commitment=None, committed=None, size=lambda leaf: 32):
        self.name, self.count, self.stated, self.size = name, count, stated, size
        self.commitment, self.committed = commitment, committed

    def root(self, p, answer):
        root = hash_of(answer, "root")
        if self.commitment:
            owed(self.commitment(root) == self.committed[p])
        elif self.stated[p] is None:
            self.stated[p] = root
        owed(self.commitment or self.stated[p] == root, "contradiction")
        return root


class Hearing:
    """One hearing between two claims: sections 5.2 to 5.5. Its result is in `found`."""

    parties = (0, 1)

    def __init__(self, program, evidence, challenger=None):
        self.collection = program if isinstance(program, Collection) else None
        self.program, self.item = None if self.collection else program, None
        self.evidence, self.challenger = evidence, challenger
        self.fallen, self.found, self.values, self.inconclusive = {}, {}, None, False

    # ---- rounds ----

    def question(self, ask, **members):
        if self.challenger is not None:
            members["challenger"] = self.challenger
        if self.item is not None:
            members["item"] = self.item
        return {"verde": 1, "assignment": self.evidence.assignment, "ask": ask, **members}

    def falls(self, p, grade):
        self.fallen.setdefault(p, grade)

    def attend(self, p, answer):
        """Applies rules 1 and 2: a provider without an answer to judge falls."""
        if isinstance(answer, dict) and answer.get("concede") is True:
            self.falls(p, "conceded")
        elif not isinstance(answer, dict) or refuses(answer):
            self.falls(p, "timeout")
        return p not in self.fallen

    def judge(self, p, check, answer):
        try:
            return check(p, answer)
        except Convicted as grade:
            self.falls(p, str(grade))
            return None

    def round(self, question, check, answered=lambda: None, tree=None):
        """Asks all parties, and returns check(p, answer) of each; ends the hearing if one of them falls."""
        answers = [self.evidence.ask(p, question, tree) for p in self.parties]
        for p in self.parties:
            self.attend(p, answers[p])
        self.end_if_fallen()
        answered()
        results = [self.judge(p, check, answers[p]) for p in self.parties]
        self.end_if_fallen()
        return results

    def end_if_fallen(self):
        if self.fallen:
            raise Over

    def convict(self, checks, grade):
        """Convicts each provider whose check is false."""
        for p in self.parties:
            if not checks[p]:
                self.falls(p, grade)
        self.end_if_fallen()

    def cannot_be(self):
        self.inconclusive = True
        raise Over

    # ---- trees ----

    def proofs(self, p, answer, tree, indices, want=lambda k, data: None):
        """The leaves in an answer to `prove`; want(k, data) judges each once it is proven."""
        root = tree.root(p, answer)
        leaves = answer.get("leaves")
        owed(isinstance(leaves, list) and len(leaves) == len(indices))
        proven = []
        for k, index in enumerate(indices):
            proven.append(leaf_of(leaves[k], index, tree.count, root))
            want(k, proven[k])
        return proven

    def prove(self, tree, indices, want=lambda p, k, data: None, after=lambda p, leaves: leaves, **more):
        def check(p, answer):
            return after(p, self.proofs(p, answer, tree, indices, lambda k, data: want(p, k, data)))
        return self.round(self.question("prove", tree=tree.name, leaves=indices), check, tree=tree, **more)

    def descend(self, tree):
        """Finds the first leaf in which two trees differ: 5.2."""
        lo, hi = 0, tree.count
        nodes = list(tree.stated or (None, None))
        while hi - lo > 1:
            places = frontier(lo, hi, DEPTH)

            def check(p, answer):
                root = tree.root(p, answer)
                hashes = answer.get("hashes")
                owed(isinstance(hashes, list) and len(hashes) == len(places))
                hashes = [from_hex(h) for h in hashes]
                owed(None not in hashes)
                owed(join(lo, hi, DEPTH, list(hashes)) == (nodes[p] or root))
                return hashes
            both = self.round(self.question("open", tree=tree.name, lo=lo, hi=hi, depth=DEPTH), check)
            first = next(k for k in range(len(places)) if both[0][k] != both[1][k])
            (lo, hi), nodes = places[first], [hashes[first] for hashes in both]
        return lo

    # ---- 5.2 and 5.3 ----

    def hear(self, claims):
        try:
            self.run(self.find_item(claims) if self.collection else claims)
        except Over:
            pass

    def find_item(self, claims):
        """For a job of many programs: each provider's claim about the first item in which they differ."""
        tree = Tree({"of": "items"}, self.collection.count, list(claims))
        item = self.descend(tree)
        proven = self.prove(tree, [item], lambda p, k, data: owed(len(data) == 32))
        self.item = self.found["item"] = item
        self.program = self.collection.program(item)
        return [leaves[0] for leaves in proven]

    def run(self, claims):
        steps = self.program.run_steps()
        before, after, i = self.differing_states(Tree({"of": "run"}, len(steps), list(claims)))
        if before is None:
            self.trace(-1, None, after)
        a, b = steps[i - 1], steps[i]
        if b - a > 1:
            before, after, i = self.differing_states(self.stated_subrun(a, b, before, after))
            a += i - 1
        self.trace(a, before, after)

    def stated_subrun(self, a, b, before, after):
        """The tree of the states from a to b; its first and last leaf must be the provider's states before and
        after."""
        count, name = b - a + 1, {"of": "subrun", "from": a, "to": b}

        def check(p, answer):
            root = hash_of(answer, "root")
            for end, index, state in (("first", 0, before), ("last", count - 1, after)):
                data = leaf_of(answer.get(end), index, count, root)
                owed(len(data) == 32)
                owed(data == state[p], "contradiction")
            return root
        return Tree(name, count, self.round(self.question("subrun", tree=name), check, tree=Tree(name, count)))

    def differing_states(self, tree):
        """Each provider's states before and after the first leaf that differs, and the leaf's index."""
        i = self.descend(tree)
        proven = self.prove(tree, [i - 1, i] if i else [0], lambda p, k, data: owed(len(data) == 32))
        after = [leaves[-1] for leaves in proven]
        return ([leaves[0] for leaves in proven] if i else None), after, i

    def trace(self, step, before, after):
        self.found["step"] = step
        graph = self.program.graph(step)
        name = {"of": "trace", "step": step}

        def check(p, answer):
            root, end = hash_of(answer, "root"), hash_of(answer, "after")
            start = hash_of(answer, "before") if before else None
            owed(end == after[p] and (before is None or start == before[p]), "contradiction")
            return root
        roots = self.round(self.question("trace", tree=name), check)
        tree = Tree(name, len(graph.nodes), roots, size=lambda node: 68 + 32 * len(graph.nodes[node].inputs))
        if roots[0] == roots[1]:
            self.equal_traces(tree, graph, step, after)
        index = self.descend(tree)
        outputs = self.records(tree, graph, step, index, before)
        self.element(graph, step, index, outputs)

    def equal_traces(self, tree, graph, step, after):
        state = self.state(step + 1, after)
        i = self.descend(state)
        mine = self.prove(state, [i], lambda p, k, data: owed(len(data) == 32))

        def follows(p, leaves):
            owed(record(leaves[0])[2] == mine[p][0], "contradiction")
        self.prove(tree, [graph.outputs[i] - graph.sources], lambda p, k, data: owed(record(data) is not None), follows)
        self.cannot_be()

    def state(self, step, committed):
        return Tree({"of": "state", "step": step}, len(self.program.leaves), committed=committed,
                    commitment=lambda root: state_commitment(self.program.hash, step, root))

    # ---- 5.4 ----

    def records(self, tree, graph, step, index, before):
        """The commitments of the node's inputs, which must agree, and each provider's of its output."""
        node = graph.nodes[index]
        kinds = [self.program.kind_of(step, value) for value in node.inputs]

        def name_it():
            self.found.update(node=index, node_name=node.name, operator=node.operator.name)

        def own(p, leaves):
            descriptor, inputs, output = record(leaves[0])
            owed(descriptor == tagged("verde/node/1", node.encoded), "wrong-graph")
            owed(len(inputs) == len(node.inputs))
            return inputs, output

        def is_record(p, k, data):
            owed(record(data) is not None)
        mine = self.prove(tree, [index], is_record, own, answered=name_it)

        def fits(p, known):
            for place, commitment in zip(kinds, mine[p][0]):
                owed(known.get(place, commitment) == commitment, "wrong-input")
        public = {("data", i): data[2] for i, data in enumerate(self.program.data)} | {("step", 0): step_number(step)}
        producers = sorted({i for kind, i in kinds if kind == "node"})
        if not producers:
            for p in self.parties:
                self.judge(p, fits, public)
            self.end_if_fallen()
        for at in range(0, len(producers), RECORDS_AT_ONCE):
            piece, known = producers[at:at + RECORDS_AT_ONCE], {} if at else public
            self.prove(tree, piece, is_record, lambda p, leaves: fits(
                p, known | {("node", i): record(data)[2] for i, data in zip(piece, leaves)}))
        leaves = sorted({i for kind, i in kinds if kind == "leaf"})
        if leaves:
            def is_input(p, k, data):
                owed(len(data) == 32)
                for kind, commitment in zip(kinds, mine[p][0]):
                    owed(kind != ("leaf", leaves[k]) or commitment == data, "wrong-input")
            self.prove(self.state(step, before), leaves, is_input)
        self.inputs = mine[0][0]
        return [output for _, output in mine]

    # ---- 5.5 ----

    def tensor(self, step, value, shape, committed):
        return Tree({"of": "tensor", "step": step, "value": value}, tensor_leaves(shape), committed=committed,
                    commitment=lambda root: tensor_commitment(shape, root), size=lambda leaf: LEAF)

    def element(self, graph, step, index, outputs):
        node, value = graph.nodes[index], graph.sources + index
        tree = self.tensor(step, value, node.shape, outputs)
        leaf, size = self.descend(tree), SIZES[node.shape[0]]
        length = min(LEAF, tensor_bytes(node.shape) - leaf * LEAF)
        both = [leaves[0] for leaves in self.prove(tree, [leaf], lambda p, k, data: owed(len(data) == length))]
        at = next(i for i in range(0, length, size) if both[0][i:i + size] != both[1][i:i + size])
        values = [int.from_bytes(data[at:at + size], "little") for data in both]
        e = (leaf * LEAF + at) // size
        self.found["element"], self.values = e, values
        fold = node.operator.fold
        if fold and fold.parts(node) > 1:
            self.long_fold(node, step, value, e)
        if fold:
            expected = self.reference(node, step, lambda x: fold.end(node, e, self.all_parts(fold, node, e, x)))
        else:
            expected = self.reference(node, step, lambda x: node.operator.element(node, e, x))
        self.settle(node, expected)

    @staticmethod
    def all_parts(fold, node, e, x):
        state = [0] * fold.words
        for j in range(fold.parts(node)):
            state = fold.step(node, e, j, state, x)
        return state

    def settle(self, node, expected):
        """Judges both elements by the expected one."""
        word = word_of(node, expected)
        self.found["expected"] = f"0x{word:08x}"
        self.convict([v == word for v in self.values], "wrong-output")
        self.cannot_be()

    def long_fold(self, node, step, value, e):
        fold = node.operator.fold
        count = fold.parts(node)
        tree = Tree({"of": "fold", "step": step, "value": value, "element": e}, count, [None, None],
                    size=lambda part: PART)

        def is_state(p, k, data):
            owed(len(data) == 4 * fold.words)
        last = [words(leaves[0]) for leaves in self.prove(tree, [count - 1], is_state)]
        ends = [fold.end(node, e, state) for state in last]
        if tree.stated[0] == tree.stated[1]:
            self.settle(node, ends[0])
        self.convict([self.values[p] == word_of(node, ends[p]) for p in self.parties], "wrong-output")
        j = self.descend(tree)
        both = self.prove(tree, [j - 1, j] if j else [0], is_state)
        self.found["part"] = j
        start = words(both[0][0]) if j else [0] * fold.words
        right = self.reference(node, step, lambda x: fold.step(node, e, j, start, x))
        self.convict([words(leaves[-1]) == right for leaves in both], "wrong-output")
        self.cannot_be()

    def kept(self):
        """Leaves of inputs that are known already, and the providers who did not give theirs."""
        return {}, set()

    def reference(self, node, step, compute):
        """The result of compute(x). Asks for leaves of inputs until none is missing."""
        known, silent = self.kept()
        while True:
            missing = set()

            def x(i, e):
                shape = node.shapes[i]
                size = SIZES[shape[0]]
                leaf, at = divmod(e * size, LEAF)
                if (i, leaf) not in known:
                    missing.add((i, leaf))
                data = known.get((i, leaf), bytes(LEAF))[at:at + size]
                return element_of(shape[0], data)
            result = compute(x)
            if not missing:
                return result
            lowest = min(i for i, _ in missing)
            leaves = sorted(leaf for i, leaf in missing if i == lowest)[:ASKED_AT_ONCE]
            self.fetch(node, step, lowest, leaves, known, silent)

    def fetch(self, node, step, i, leaves, known, silent):
        """Asks a provider for leaves of an input, and the other one if the first does not answer."""
        shape = node.shapes[i]
        tree = self.tensor(step, node.inputs[i], shape, [self.inputs[i]] * 2)
        question = self.question("prove", tree=tree.name, leaves=leaves)

        def check(p, answer):
            def whole(k, data):
                owed(len(data) == min(LEAF, tensor_bytes(shape) - leaves[k] * LEAF))
            return self.proofs(p, answer, tree, leaves, whole)
        for p in self.parties:
            if p in silent:
                continue
            answer = self.evidence.ask(p, question, tree)
            if isinstance(answer, dict) and (not refuses(answer) or answer.get("concede") is True):
                if self.attend(p, answer):
                    proven = self.judge(p, check, answer)
                self.end_if_fallen()
                known.update({(i, leaf): data for leaf, data in zip(leaves, proven)})
                return
            silent.add(p)
        for p in self.parties:
            self.falls(p, "timeout")
        self.end_if_fallen()


def words(data):
    return [int.from_bytes(data[i:i + 4], "little") for i in range(0, len(data), 4)]


def element_of(dtype, data):
    """An element as operators read it: F32 for f32, an integer for i32 or i8, else bits."""
    word = int.from_bytes(data, "little", signed=dtype in SIGNED)
    return F32(word) if dtype == 1 else word


def word_of(node, value):
    word = value.word if isinstance(value, F32) else value
    return word & (1 << 8 * SIZES[node.shape[0]]) - 1


class Dispute:
    """Both hearings of a dispute, and the outcome."""

    def __init__(self, program, assignment, evidence):
        self.program, self.assignment, self.evidence = program, assignment, evidence
        self.keys = assignment["providers"]
        self.claims = [None, None]
        self.challenge = None
        self.first = Hearing(program, evidence)

    def decide(self):
        self.commit_and_reveal()
        standing = [p for p in (0, 1) if p not in self.first.fallen]
        if len(standing) == 2:
            self.agreed = self.claims[0] == self.claims[1]
            if not self.agreed:
                self.first.hear(self.claims)
        else:
            self.agreed = False
        fallen = dict(self.first.fallen)
        convicted = [p for p, grade in fallen.items() if grade != "timeout"]
        if self.assignment.get("challenge") and len(convicted) == len(fallen) == 1 and self.claims[1 - convicted[0]]:
            self.contest(convicted[0], fallen)
        return self.outcome(fallen)

    def commit_and_reveal(self):
        first, commits = self.first, [bytes(32)] * 2

        def commit(p, answer):
            commits[p] = hash_of(answer, "commit")

        def reveal(p, answer):
            salt, root = hash_of(answer, "salt"), hash_of(answer, "root")
            owed(tagged("verde/commit/1", salt, bytes.fromhex(self.keys[p]), root) == commits[p], "contradiction")
            self.claims[p] = root
        for ask, check in (("commit", commit), ("reveal", reveal)):
            more = {"commits": [c.hex() for c in commits]} if ask == "reveal" else {}
            question = first.question(ask, **more)
            asked = [p for p in (0, 1) if p not in first.fallen]
            answers = {p: self.evidence.ask(p, question) for p in asked}
            for p in asked:
                if first.attend(p, answers[p]) or (first.fallen[p] == "conceded" and not refuses(answers[p])):
                    first.judge(p, check, answers[p])

    def contest(self, challenger, fallen):
        """5.7: the challenger states the result of its second run; a second hearing judges the claim left standing."""
        maker = 1 - challenger
        claim = self.claims[maker]
        second = Hearing(self.program, self.evidence, self.keys[challenger])
        self.challenge = {"provider": challenger}
        answer = self.evidence.ask(challenger, second.question("challenge"))
        root = from_hex(answer.get("root")) if isinstance(answer, dict) and not refuses(answer) else None
        if root is None:
            self.challenge["end"] = "declined"
            return
        self.challenge["run_root"] = root.hex()
        if root == claim:
            self.challenge["end"] = "confirmed"
            return
        claims = [None, None]
        claims[challenger], claims[maker] = root, claim
        second.hear(claims)
        self.challenge.update(second.found)
        if second.values:
            self.challenge["values"] = [f"0x{v:08x}" for v in second.values]
        if challenger in second.fallen:
            self.challenge["grade"] = second.fallen[challenger]
        if maker in second.fallen:
            self.challenge["end"] = "upheld"
            fallen[maker] = second.fallen[maker]
        else:
            self.challenge["end"] = "failed" if challenger in second.fallen else "inconclusive"

    def outcome(self, fallen):
        grades = set(fallen.values())
        if grades - {"timeout"}:
            result = "convicted"
        elif len(fallen) == 2:
            result = "inconclusive"  # silence proves nothing about the claims
        elif grades:
            result = "forfeit"
        else:
            result = "agreed" if self.agreed else "inconclusive"
        accepted = [c for p, c in enumerate(self.claims) if p not in fallen and c]
        if result == "inconclusive" or (self.challenge and self.challenge["end"] == "inconclusive"):
            accepted = []
        outcome = {"result": result, "accepted": bool(accepted), "rounds": max(self.evidence.asked),
                   "providers": [self.provider(p, fallen) for p in (0, 1)], **self.first.found}
        if accepted:
            outcome["run_root"] = accepted[0].hex()
        if self.challenge:
            outcome["challenge"] = self.challenge
        return outcome

    def provider(self, p, fallen):
        said = {"key": self.keys[p], "standing": "stands"}
        if p in fallen:
            said["grade"] = fallen[p]
            said["standing"] = "forfeited" if fallen[p] == "timeout" else "convicted"
        if self.claims[p]:
            said["run_root"] = self.claims[p].hex()
        if self.first.values:
            said["value"] = f"0x{self.first.values[p]:08x}"
        return said
