"""Jobs of many programs: PROTOCOL.md 1.4 and 7."""

from struct import pack

from notes import exactly, from_base64, from_hex, is_integer, need, need_known, tagged
from program import Program
from trees import root_of_path

ITEMS = 1 << 20


class Collection:
    """A verdict's statement about the job's programs: their number, and those in dispute."""

    def __init__(self, said):
        self.count = said.get("count") if isinstance(said, dict) else None
        need_known(not is_integer(self.count) or self.count <= ITEMS, "the collection has more items")
        exactly(said, ("count", "items", "programs"), "the collection")
        self.programs = from_hex(said["programs"])
        need(is_integer(self.count) and 1 <= self.count and self.programs, "the collection is malformed")
        need(isinstance(said["items"], list), "the collection has no list of items")
        self.hash = tagged("verde/collection/1", pack("<Q", self.count), self.programs)
        self.known, self.used = {}, set()
        for item in said["items"]:
            self.read(item)

    def read(self, item):
        exactly(item, ("item", "path", "program"), "an item")
        number, encoded = item["item"], from_base64(item["program"])
        need(is_integer(number) and 0 <= number < self.count, "an item is not one of the collection")
        need(number not in self.known, f"item {number} stands twice in the verdict")
        need(encoded is not None and isinstance(item["path"], list), f"item {number} is malformed")
        path = [from_hex(h) for h in item["path"]]
        need(len(path) <= 64 and None not in path, f"item {number} has no proof")
        digest = tagged("verde/program/1", encoded)
        need(root_of_path(number, self.count, digest, path) == self.programs, f"item {number} is no program of the job")
        self.known[number] = Program(encoded)

    def program(self, item):
        need(item in self.known, f"the verdict lacks the program of item {item}")
        self.used.add(item)
        return self.known[item]
