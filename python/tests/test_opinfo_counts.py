"""docs/operators.md must match opinfo.json, and opinfo.json the block, for some operators."""

import json

import opinfo_page
import pytest
import torch

pytest.importorskip("expecttest", reason="PyTorch's samples need the package expecttest")
import opinfo
import opinfo_counts

RECORDED = json.loads(opinfo_page.RECORD.read_text())
EVERY = 50  # one operator of so many is run again, and those of ALSO
ALSO = "lgamma digamma erfc nn.functional.grid_sample kthvalue linalg.solve polygamma.polygamma_n_1"


def some():
    every = list(opinfo.operators())
    return {n: op for i, (n, op) in enumerate(every) if i % EVERY == 7 or n in ALSO.split()}


def test_the_page_is_what_the_record_says():
    assert opinfo_page.PAGE.read_text() == opinfo_page.text_of(RECORDED)


def test_the_block_is_as_the_record_says():
    if {k: RECORDED[k] for k in ("python", "torch")} != opinfo_counts.versions():
        pytest.skip("the record is of another version")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = {name: opinfo_counts.measured(op) for name, op in some().items()}
    torch.set_num_threads(threads)
    assert found == {name: RECORDED["operators"][name] for name in found}


def test_of_the_operators_that_are_taken_95_of_100_samples_are_within():
    for kind in opinfo_page.KINDS:
        operators = opinfo_page.taken(RECORDED).values()
        counts = [opinfo_page.kind_counts(found, kind) for found in operators]
        within = sum(c["within"] for c in counts)
        assert within >= 0.95 * sum(map(opinfo_page.compared, counts)) > 1000
    beyond = [n for n, f in RECORDED["operators"].items() if opinfo_page.counts(f)["beyond"]]
    assert [n for n in beyond if not opinfo_page.reason_of(n)] == []


def far(own, wanted):
    return opinfo_counts.furthest(([own], None), ([wanted], None))[0]


def test_distances_are_of_the_largest_element_and_infinite_of_other_kinds():
    wanted = torch.tensor([1.0, -4.0, float("inf"), float("nan")], dtype=torch.float64)
    assert far(wanted.float(), wanted) == 0
    assert far((wanted + 0.5).float(), wanted) == 0.125
    assert far(wanted.float().nan_to_num(), wanted) == float("inf")
    assert far(wanted[:2].float(), wanted) == float("inf")
    assert far(torch.tensor([2]), torch.tensor([3])) == float("inf")
    assert far(torch.tensor([float("inf")]), torch.tensor([1e39], dtype=torch.float64)) == 0
