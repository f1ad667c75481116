"""Disputes of more than two providers: PROTOCOL.md 5.8, on their signed answers."""

from notes import canonical, from_hex, need, tagged
from referee import Hearing, hash_of, owed, refuses

GAME_BYTES = 48 << 20


class GameEvidence:
    """The evidence of one game. A question that a provider has answered in any game is not asked again."""

    def __init__(self, evidence, number, pair, challengers, said):
        self.evidence, self.number, self.pair = evidence, number, pair
        self.challengers, self.said, self.assignment = challengers, said, evidence.assignment
        self.asked, self.bytes = [0, 0], [0, 0]

    def ask(self, p, question, tree=None):
        provider = self.pair[p]
        if provider in self.challengers:
            question = {**question, "challenger": self.evidence.keys[provider]}
        said, plain = self.said[provider], canonical(question)
        if plain not in said:
            self.asked[p] += 1
            answer = self.evidence.ask(provider, {**question, "game": self.number}, tree)
            if self.evidence.size is None:
                return None
            self.bytes[p] += self.evidence.size
            need(self.bytes[p] <= GAME_BYTES, f"the statements of provider {provider} in a game are too large")
            said[plain] = answer
        return said[plain]


class Tournament:
    """A whole dispute between several providers."""

    def __init__(self, program, assignment, evidence):
        self.program, self.assignment, self.evidence = program, assignment, evidence
        self.keys = assignment["providers"]
        self.all = range(len(self.keys))
        self.claims, self.grades, self.fell_in = {}, {}, {}
        self.said = {p: {} for p in self.all}
        self.games, self.level, self.stuck = [], 0, False
        self.challenge = None

    def decide(self):
        self.commit_and_reveal()
        self.seats = {p: self.claims[p] for p in self.all if p in self.claims and p not in self.grades}
        self.challengers = {}
        self.play()
        first_stuck = self.stuck
        if self.assignment.get("challenge") and not self.stuck and self.standing():
            self.contest()
        return self.outcome(first_stuck)

    def commit_and_reveal(self):
        hearing, commits = Hearing(self.program, self.evidence), {p: bytes(32) for p in self.all}

        def commit(p, answer):
            commits[p] = hash_of(answer, "commit")

        def reveal(p, answer):
            salt, root = hash_of(answer, "salt"), hash_of(answer, "root")
            owed(tagged("verde/commit/1", salt, bytes.fromhex(self.keys[p]), root) == commits[p], "contradiction")
            self.claims[p] = root
        for ask, check in (("commit", commit), ("reveal", reveal)):
            more = {"commits": [commits[p].hex() for p in self.all]} if ask == "reveal" else {}
            question = hearing.question(ask, **more)
            asked = [p for p in self.all if p not in hearing.fallen]
            answers = {p: self.evidence.ask(p, question) for p in asked}
            for p in asked:
                if hearing.attend(p, answers[p]) or (hearing.fallen[p] == "conceded" and not refuses(answers[p])):
                    hearing.judge(p, check, answers[p])
        self.grades = hearing.fallen

    # ---- games ----

    def pairs(self):
        spokesmen = []
        for p in sorted(self.seats):
            if self.seats[p] not in [self.seats[q] for q in spokesmen]:
                spokesmen.append(p)
        return [spokesmen[i:i + 2] for i in range(0, len(spokesmen) - 1, 2)]

    def play(self):
        """Plays level by level until one claim is left."""
        while not self.stuck and (pairs := self.pairs()):
            self.level += 1
            ended = [self.game(pair) for pair in pairs]
            for pair, hearing in ended:
                for p in hearing.fallen:
                    del self.seats[pair[p]]
                self.stuck |= not hearing.fallen

    def game(self, pair):
        number = len(self.games) + 1
        evidence = GameEvidence(self.evidence, number, pair, self.challengers, self.said)
        hearing = Hearing(self.program, evidence)
        hearing.hear([self.seats[p] for p in pair])
        told = {"level": self.level, "providers": pair, "rounds": max(evidence.asked), **hearing.found,
                "standing": [standing_of(hearing.fallen.get(p)) for p in (0, 1)]}
        if hearing.values:
            told["values"] = [f"0x{v:08x}" for v in hearing.values]
        self.games.append(told)
        for p, grade in hearing.fallen.items():
            provider = pair[p]
            if provider in self.challengers:
                self.challengers[provider].update(grade=grade, game=number)
            else:
                self.grades[provider], self.fell_in[provider] = grade, number
        return pair, hearing

    def standing(self):
        """The claim that stands, or None if there are none or several."""
        claims = {self.claims[p] for p in self.claims if p not in self.grades}
        return claims.pop() if len(claims) == 1 else None

    # ---- second runs ----

    def contest(self):
        convicted = [p for p in self.all if self.grades.get(p, "timeout") != "timeout"]
        claim, told, contested = self.standing(), [], {}
        if not convicted:
            return
        for p in convicted:
            question = {"verde": 1, "assignment": self.evidence.assignment, "ask": "challenge",
                        "challenger": self.keys[p]}
            answer = self.evidence.ask(p, question)
            root = from_hex(answer.get("root")) if isinstance(answer, dict) and not refuses(answer) else None
            told.append({"provider": p})
            if root is not None:
                told[-1]["run_root"] = root.hex()
            if root is not None and root != claim:
                contested[p], self.seats[p] = told[-1], root
        end = "confirmed" if any("run_root" in t for t in told) else "declined"
        if contested:
            self.challengers = contested
            self.play()
            end = "upheld" if self.standing() is None else "inconclusive" if self.stuck else "failed"
        self.challenge = {"end": end, "providers": told}

    # ---- the end ----

    def outcome(self, first_stuck):
        claim = None if self.stuck else self.standing()
        outcome = {"result": "inconclusive" if first_stuck else self.result(claim), "accepted": claim is not None,
                   "rounds": max(self.evidence.asked), "games": self.games,
                   "providers": [self.provider(p) for p in self.all]}
        if claim is not None:
            outcome["run_root"] = claim.hex()
        if self.challenge:
            outcome["challenge"] = self.challenge
        return outcome

    def result(self, claim):
        convicted = {p for p, grade in self.grades.items() if grade != "timeout"}
        groups = set(self.claims.values())
        makers = {group: [p for p in self.claims if self.claims[p] == group] for group in groups}
        if claim is not None and len(groups) == 1 and not convicted:
            if len([p for p in makers[claim] if p not in self.grades]) >= 2:
                return "agreed"
        if not convicted and len(self.grades) == len(self.keys):
            return "inconclusive"  # nobody answered
        refuted = all(convicted.intersection(makers[group]) for group in groups - {claim})
        return "convicted" if convicted and refuted else "forfeit"

    def provider(self, p):
        said = {"key": self.keys[p], "standing": standing_of(self.grades.get(p))}
        if p in self.grades:
            said["grade"] = self.grades[p]
        if p in self.fell_in:
            said["game"] = self.fell_in[p]
        if p in self.claims:
            said["run_root"] = self.claims[p].hex()
        return said


def standing_of(grade):
    return "stands" if grade is None else "forfeited" if grade == "timeout" else "convicted"
