"""What attn-plan prints as JSON is what its published schema says."""

import json
import os
import subprocess
import sys

import pytest
from conftest import ROOT
from json_schema import Schema

REFERENCE = os.path.join(ROOT, "docs", "reference")
PLAN = os.path.join(REFERENCE, "plan.schema.json")
SURVEY = os.path.join(REFERENCE, "survey.schema.json")
SWEEP = os.path.join(REFERENCE, "sweep.schema.json")

PROBLEMS = [
    "--queries 4096 --heads 16 --head-dim 128",
    "--queries 1 --keys 4096 --heads 8 --kv-heads 2 --head-dim 64 --lse "
    "--lse-low",
    "--queries 300 --head-dim 80 --dtype f32 --precision tf32 --causal "
    "--machine l4",
    "--queries 300 --head-dim 128 --dtype f8e4m3",
    "--queries 300 --head-dim 128 --dtype f16 --precision f8_qk",
    "--queries 300 --head-dim 72 --alignment 8 --mask prefix<3>",
    "--queries 300 --head-dim 64 --machine gtx_1060 --dtype f16",
    "--queries 300 --head-dim 64 --lse --keep-weights",
    "--queries 512 --head-dim 64 --direction backward --dlse "
    "--deterministic --lse-low --mask window<8,0>",
    "--queries 0 --head-dim 64 --machine b200",
    "--queries 4 --keys 512 --heads 8 --kv-heads 1 --head-dim 64 --page 16 "
    "--mask causal_bottom_right",
    "--queries 64 --head-dim 64 --set registers_per_sm=1024",  # nothing fits
]
SURVEYS = [
    "--queries 300 --head-dim 64 --machine l4,t4 --dtype all",
    "--queries 4 --head-dim 512 --machine all --dtype f32 --direction "
    "backward",
    "--queries 1 --keys 64 --head-dim 64 --machine h100_sxm,b200",
]
SWEEPS = [
    "--queries 300 --sweep head-dim=64,512",
    "--queries 300 --head-dim 64 --machine h100_sxm,l4 --sweep "
    "smem_bytes_per_block=100..300000",
]
CASES = [(path, problem) for path, problems in (
    (PLAN, PROBLEMS), (SURVEY, SURVEYS), (SWEEP, SWEEPS))
    for problem in problems]


def printed(problem):
    done = subprocess.run(
        [sys.executable, "-m", "attn", "attn-plan", "--format", "json",
         *problem.split()], capture_output=True, text=True, check=False)
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("path, problem", CASES)
def test_every_member_is_described_and_right(path, problem):
    document = printed(problem)
    assert Schema(path, strict=True).faults(document) == []
    assert document["schema_version"] == 1


def test_another_validator_agrees():
    jsonschema = pytest.importorskip("jsonschema")
    referencing = pytest.importorskip("referencing")
    found = {}
    for path in (PLAN, SURVEY, SWEEP):
        with open(path, encoding="utf-8") as f:
            found[path] = json.load(f)
        jsonschema.Draft202012Validator.check_schema(found[path])
    registry = referencing.Registry().with_resource(
        "plan.schema.json", referencing.Resource.from_contents(found[PLAN]))
    for path, problem in CASES:
        jsonschema.Draft202012Validator(
            found[path], registry=registry).validate(printed(problem))


def paths(value, path=()):
    """Where members of objects are, of lists in the first element."""
    if isinstance(value, dict):
        for name, member in value.items():
            yield (*path, name)
            yield from paths(member, (*path, name))
    elif isinstance(value, list) and value:
        yield from paths(value[0], (*path, 0))


def short(value):
    """The same with lists of one element at most."""
    if isinstance(value, dict):
        return {name: short(member) for name, member in value.items()}
    return [short(one) for one in value[:1]] if isinstance(
        value, list) else value


def changed(document, path, change):
    copy = json.loads(json.dumps(document))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    change(holder, path[-1])
    return copy


OPTIONAL = {"lse", "tensor", "measured_hbm_bytes_per_second",
            "measured_l2_bytes_per_second", "measured_clock_hz",
            "measured_source"}


def spoil(holder, key):
    holder[key] = ["nothing", {}]


def test_it_misses_what_goes_and_sees_what_changes():
    schema, document = Schema(PLAN), short(printed(PROBLEMS[0]))
    found = list(paths(document))
    assert len(found) > 80
    for path in found:
        assert schema.faults(changed(document, path, spoil)), path
        is_free = path[-2:-1] == ("tiles",) or path[-1] in OPTIONAL
        gone = changed(document, path, lambda holder, key: holder.pop(key))
        assert bool(schema.faults(gone)) != is_free, path


@pytest.mark.parametrize("path, problem", [(SURVEY, SURVEYS[2]),
                                           (SWEEP, SWEEPS[0])])
def test_it_sees_what_changes_elsewhere(path, problem):
    schema, document = Schema(path), short(printed(problem))
    found = list(paths(document))
    assert len(found) > 60
    for path in found:
        assert schema.faults(changed(document, path, spoil)), path


def test_a_schema_with_an_unknown_word_is_an_error(tmp_path):
    path = tmp_path / "one.json"
    path.write_text('{"oneOf": []}', "utf-8")
    with pytest.raises(AttributeError):
        Schema(str(path)).faults(1)
