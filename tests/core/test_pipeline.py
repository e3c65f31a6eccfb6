"""Composition of pipelines: everything that doesn't fit is said before any work starts, and both slots are named."""

from dataclasses import replace

import pytest
from seqloom.core.context import Scoring
from seqloom.core.errors import BackendError, CompositionError, InputError, OptionError, UnknownNameError, UsageError
from seqloom.core.hookspecs import hookimpl
from seqloom.core.pipeline import Pipeline, Slot, compose
from seqloom.core.records import Alignments, Column
from seqloom.core.registry import Registry
from seqloom.installed import registry

from tests.core import toy

REGISTRY = toy.registry()


def plan_of(pipeline: Pipeline = toy.TOY, registry: Registry = REGISTRY, backend: str = "reference", **more):
    return compose(registry, pipeline, backend=backend, **more)


def without(name: str) -> Pipeline:
    return replace(toy.TOY, slots=tuple(s for s in toy.TOY.slots if s.name != name))


def with_slots(*slots: Slot) -> Pipeline:
    return replace(toy.TOY, slots=slots)


def refused(pipeline: Pipeline, registry: Registry = REGISTRY) -> str:
    with pytest.raises(CompositionError) as caught:
        plan_of(pipeline, registry)
    assert caught.value.exit_status == 2
    return str(caught.value)


def extended(*stages, families=()) -> Registry:
    class Extra:
        SEQLOOM_API = toy.SEQLOOM_API

        @hookimpl
        def seqloom_stages(self):
            return list(stages)

        @hookimpl
        def seqloom_families(self):
            return list(families)

    made = toy.registry()
    made.register(Extra(), "extra")
    return made


# ---- what fits


def test_a_plan_has_a_stage_in_every_slot_and_all_options() -> None:
    plan = plan_of(options={"least": "5"}, settings=["seed.words.step=2"])
    assert [p.name for p in plan.stages] == [s.name for s in toy.TOY.slots]
    assert [p.name for p in plan.indexes("query")] == ["index.queries"]
    assert [p.name for p in plan.indexes("target")] == ["index.targets"]
    assert [p.name for p in plan.working("unit")] == ["seed.words", "sort.diagonal", "extend.exact", "score.length"]
    assert [p.name for p in plan.working("reduce")] == ["sort.rank"]
    assert list(plan.columns) == ["toy_residues"]
    assert plan.options == toy.ToyOptions(least=5)
    assert {p.device for p in plan.stages} == {"host"}
    assert plan.provenance() == {
        "pipeline": plan.pipeline.as_dict(), "family": "toy", "backend": "reference",
        "options": {"least": 5, "max_target_seqs": 3, "mask": False},
        "slots": [
            {"slot": slot, "plugin": plugin, "backend": "reference", "scope": scope, "options": options}
            for slot, plugin, scope, options in [
                ("index.queries", "toy-query-words", "unit", {}),
                ("index.targets", "toy-target-words", "unit", {}),
                ("seed.words", "toy-words", "unit", {"step": 2}),
                ("sort.diagonal", "toy-diagonal", "unit", {"sorter": "toy-sorter"}),
                ("extend.exact", "toy-exact", "unit", {}),
                ("score.length", "toy-length", "unit", {}),
                ("sort.rank", "toy-rank", "reduce", {"sorter": "toy-sorter"}),
            ]
        ]}


def test_defaults_of_a_pipeline_stand_between_the_familys_and_the_users() -> None:
    preset = replace(toy.TOY, defaults={"least": 7, "max_target_seqs": 1})
    assert plan_of(preset, options={"max_target_seqs": 2}).options == toy.ToyOptions(least=7, max_target_seqs=2)


def test_slots_are_filled_otherwise_and_switched_off() -> None:
    plan = plan_of(stages=["sort.rank = toy-rank-anywhere"], settings=["score.length.enabled=no"])
    assert [p.stage.name for p in plan.stages][-2:] == ["toy-exact", "toy-rank-anywhere"]
    changed = toy.TOY.with_setting("seed.words.step=3").with_stage("seed.words", "toy-words")
    assert changed.slot("seed.words").options == {}, "options of the former plugin are dropped"
    assert toy.TOY.with_setting("seed.words.backend=cpu").slot("seed.words").backend == "cpu"


def test_a_back_end_of_one_slot() -> None:
    class OnCpu(toy.ScoreLength):
        backend = "cpu"

    plan = plan_of(registry=extended(OnCpu), settings=["score.length.backend=cpu"])
    assert [p.stage.backend for p in plan.stages if p.name == "score.length"] == ["cpu"]
    assert {p.stage.backend for p in plan.stages if p.name != "score.length"} == {"reference"}


@pytest.mark.parametrize(("backend", "there"), [("reference", False), ("cpu", True)])
def test_a_slot_for_fast_back_ends_only(backend: str, there: bool) -> None:
    """A scan that changes no result stands in front of the words where it is worth its time."""
    fast = tuple(type(s.__name__, (s,), {"backend": "cpu"}) for s in REGISTRY.stages() if s.backend == "reference")

    class Scan(toy.WordPairs):
        backend = "cpu"

    class Narrowed(toy.WordSeeds):
        backend = "cpu"

    registry = extended(Scan, Narrowed, *(s for s in fast if s.name not in ("toy-all-pairs", "toy-words")))
    slots = list(toy.TOY.slots)
    slots.insert(2, Slot("seed.scan", "toy-all-pairs", enabled="fast"))
    plan = plan_of(replace(toy.TOY, slots=tuple(slots)), registry, backend)
    assert ("seed.scan" in [p.name for p in plan.stages]) == there
    assert Pipeline.from_dict(plan.pipeline.as_dict()) == plan.pipeline


def test_auto_takes_the_fastest_of_each_slot_and_reference_where_there_is_nothing_else() -> None:
    class OnCpu(toy.ScoreLength):
        backend = "cpu"

    plan = plan_of(backend="auto")
    assert {p.stage.backend for p in plan.stages} == {"reference"} and plan.slow == [
        p for p in plan.stages if p.slot.scope == "unit"]
    mixed = plan_of(registry=extended(OnCpu), backend="auto")
    assert [p.name for p in mixed.stages if p.stage.backend == "cpu"] == ["score.length"]
    assert "score.length" not in {p.name for p in mixed.slow} and len(mixed.slow) == len(plan.slow) - 1
    assert not plan_of(backend="reference").slow


def test_a_scan_gives_way_to_a_plugin_that_can_do_nothing_with_what_it_finds() -> None:
    class Scan(toy.WordPairs):
        backend = "cpu"

    class Alone(toy.WordSeeds):
        name, takes = "toy-alone", (None,)

    slots = list(toy.TOY.slots)
    slots.insert(2, Slot("seed.scan", "toy-all-pairs", enabled="fast"))
    pipeline = replace(toy.TOY, slots=tuple(slots)).with_stage("seed.words", "toy-alone")
    registry = extended(Scan, Alone)
    plan = plan_of(pipeline, registry, "auto")
    assert "seed.scan" not in [p.name for p in plan.stages]
    again = plan_of(Pipeline.from_dict(plan.pipeline.as_dict()), registry, "auto")
    assert again.provenance() == plan.provenance()
    with pytest.raises(CompositionError, match=r"'seed.words' .'toy-alone'. takes nothing; 'seed.scan' gives Pairs; "
                                               r"--set seed\.scan\.enabled=no leaves that one out"):
        plan_of(pipeline.with_setting("seed.scan.enabled=yes"), registry, "auto")


# ---- what doesn't fit


def test_names_that_nobody_knows() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown slot 'seed.word' of pipeline 'toy'; did you mean 'seed.words"):
        plan_of(stages=["seed.word=toy-words"])
    with pytest.raises(UnknownNameError, match="unknown stage 'toy-wods'; did you mean 'toy-words'"):
        plan_of(stages=["seed.words=toy-wods"])
    with pytest.raises(UnknownNameError, match=r"unknown option 'stop' of seed.words; did you mean 'step'"):
        plan_of(settings=["seed.words.stop=1"])
    with pytest.raises(UnknownNameError, match="unknown option 'leest'; did you mean 'least'"):
        plan_of(options={"leest": 3})
    with pytest.raises(UnknownNameError, match="unknown family 'tot'"):
        plan_of(replace(toy.TOY, family="tot"))
    with pytest.raises(UnknownNameError, match="unknown sorter 'bubble'; known: toy-sorter"):
        plan_of(settings=["sort.rank.sorter=bubble"])
    with pytest.raises(UnknownNameError, match="unknown back end 'gpu'"):
        plan_of(backend="gpu")


@pytest.mark.parametrize(("more", "message"), [
    ({"settings": ["seed.words.step=0"]}, r"seed\.words\.step must be at least 1, not 0"),
    ({"settings": ["seed.words.step"]}, r"--set takes slot\.option=value, not 'seed\.words\.step'"),
    ({"settings": ["step=2"]}, r"--set takes slot\.option=value, not 'step=2'"),
    ({"settings": ["seed.words=2"]}, r"seed\.words is a slot; --set .* such as seed\.words\.enabled=no"),
    ({"settings": ["score.length=no"]}, r"score\.length is a slot; .* such as score\.length\.enabled=no"),
    ({"settings": ["seed.words.enabled=maybe"]}, r"seed\.words\.enabled must be yes, no, fast or stored, not 'maybe'"),
    ({"stages": ["seed.words"]}, r"--stage takes slot=plugin, not 'seed\.words'"),
])
def test_requests_that_make_no_sense(more, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        plan_of(**more)


def test_a_back_end_without_implementation_says_what_there_is() -> None:
    with pytest.raises(BackendError, match="stage 'toy-query-words' has no cuda implementation; it has: reference"):
        plan_of(backend="cuda")
    with pytest.raises(BackendError, match="has no cpu implementation; it has: reference"):
        plan_of(backend="cpu")


def test_slots_of_another_kind() -> None:
    assert refused(with_slots(Slot("scan.words", "toy-words"))) == (
        "slot 'scan.words' must begin with one of index., seed., extend., score., sort.")
    assert refused(toy.TOY.with_stage("seed.words", "toy-rank")) == (
        "slot 'seed.words' takes a stage of kind seed; 'toy-rank' is of kind sort")
    assert refused(replace(toy.TOY, slots=(*toy.TOY.slots, toy.TOY.slots[0]))) == (
        "pipeline 'toy' has two slots named 'index.queries'")


def test_an_index_that_nobody_makes_or_that_is_made_too_late() -> None:
    message = refused(without("index.targets"))
    assert message == ("slot 'seed.words' ('toy-words') reads an index of kind 'toy-target-words', and no earlier slot "
                       "makes one; made are 'toy-query-words' by 'index.queries'")
    slots = toy.TOY.slots
    assert "no earlier slot makes one" in refused(replace(toy.TOY, slots=(*slots[1:], slots[0])))


def test_an_index_that_another_index_reads() -> None:
    class Reading(toy.TargetWords):
        name, reads = "toy-reading", ("suffix-array",)

    assert "slot 'index.targets' ('toy-reading') reads an index of kind 'suffix-array'" in refused(
        toy.TOY.with_stage("index.targets", "toy-reading"), extended(Reading))


def test_an_index_of_a_volume_is_not_there_in_the_reduce_scope() -> None:
    class Reading(toy.Rank):
        name, reads = "toy-reading", ("toy-target-words",)

    assert refused(toy.TOY.with_stage("sort.rank", "toy-reading"), extended(Reading)) == (
        "slot 'sort.rank' ('toy-reading') of the reduce scope reads an index of kind 'toy-target-words', which "
        "'index.targets' makes of each volume; only indexes of queries are there in the reduce scope")


def test_two_slots_that_make_the_same_kind_of_index() -> None:
    twice = replace(toy.TOY, slots=(Slot("index.again", "toy-query-words"), *toy.TOY.slots))
    assert refused(twice) == ("slots 'index.again' and 'index.queries' both make an index of kind 'toy-query-words'; "
                              "switch one of them off")


def test_records_that_a_slot_does_not_take() -> None:
    assert refused(without("extend.exact")) == (
        "slot 'score.length' ('toy-length') takes Alignments; 'sort.diagonal' gives Seeds")
    assert refused(without("seed.words")) == (
        "slot 'sort.diagonal' ('toy-diagonal') takes Seeds; 'the start' gives nothing")
    assert refused(toy.TOY.with_stage("seed.words", "toy-all-pairs")) == (
        "slot 'sort.diagonal' ('toy-diagonal') takes Seeds; 'seed.words' gives Pairs")


def test_an_order_that_nobody_makes() -> None:
    assert refused(without("sort.diagonal")) == (
        "slot 'extend.exact' ('toy-exact') takes records ordered by query, target, diagonal; 'seed.words' gives them "
        "ordered by nothing in particular")

    class OtherWay(toy.SortDiagonal):
        name, gives_order = "toy-other-way", ("target", "query")

    assert "'sort.diagonal' gives them ordered by target, query" in refused(
        toy.TOY.with_stage("sort.diagonal", "toy-other-way"), extended(OtherWay))


def test_partial_results_of_volumes_have_no_order() -> None:
    class Picky(toy.Rank):
        name, takes_order = "toy-picky", ("query", "target")

    assert "slot 'sort.rank' ('toy-picky') takes records ordered by query, target" in refused(
        toy.TOY.with_stage("sort.rank", "toy-picky"), extended(Picky))


def test_scopes() -> None:
    assert refused(toy.TOY.with_slot(replace(toy.TOY.slot("sort.rank"), scope="unit"))) == (
        "slot 'sort.rank': 'toy-rank' can't run in the unit scope, only in reduce")
    hits_first = with_slots(*toy.TOY.slots[:5], Slot("sort.rank", "toy-rank", scope="reduce"),
                            Slot("score.length", "toy-length"))
    assert refused(hits_first) == (
        "slot 'score.length' is of the unit scope and stands behind 'sort.rank' of the reduce scope; "
        "unit slots come first")
    assert refused(toy.TOY.with_slot(replace(toy.TOY.slot("index.targets"), scope="reduce"))) == (
        "slot 'index.targets': 'toy-target-words' can't run in the reduce scope, only in unit")


def test_a_pipeline_ends_with_hits() -> None:
    assert refused(without("sort.rank")) == (
        "pipeline 'toy' ends with 'score.length', which gives Alignments; the last slot must give Hits")
    assert refused(with_slots()) == (
        "pipeline 'toy' ends with 'the start', which gives nothing; the last slot must give Hits")


def test_scoring_that_the_family_does_not_give() -> None:
    class Other(toy.ToyFamily):
        name, Scoring = "other", Scoring

    message = refused(replace(toy.TOY, family="other"), extended(families=[Other]))
    assert message == (
        "slot 'index.queries' ('toy-query-words') needs ToyScoring, which family 'other' of pipeline 'toy' "
        "doesn't give")


def test_one_column_with_two_types() -> None:
    class Other(toy.ScoreLength):
        name, columns = "toy-other", (Column("toy_residues", "i4", "number of residues"),)

    assert refused(toy.TOY.with_stage("score.length", "toy-other"), extended(Other)) == (
        "slots 'extend.exact' and 'score.length' declare column 'toy_residues' with different types (str, i4)")


# ---- files


def test_plain_data_makes_the_same_pipeline_again() -> None:
    changed = toy.TOY.with_setting("seed.words.step=2").with_setting("score.length.enabled=false")
    assert Pipeline.from_dict(changed.as_dict()) == changed
    assert Pipeline.from_dict(toy.TOY.as_dict()) == toy.TOY


WHOLE = """
name = "mine"
family = "toy"
defaults = { least = 5 }

[[slots]]
name = "index.queries"
plugin = "toy-query-words"
[[slots]]
name = "index.targets"
plugin = "toy-target-words"
[[slots]]
name = "seed.words"
plugin = "toy-words"
options = { step = 2 }
[[slots]]
name = "sort.diagonal"
plugin = "toy-diagonal"
[[slots]]
name = "extend.exact"
plugin = "toy-exact"
[[slots]]
name = "sort.rank"
plugin = "toy-rank"
scope = "reduce"
"""


def test_a_file_holds_a_whole_pipeline(tmp_path) -> None:
    (tmp_path / "mine.toml").write_text(WHOLE)
    made = Pipeline.from_toml(tmp_path / "mine.toml", REGISTRY)
    plan = plan_of(made)
    assert plan.options.least == 5
    assert plan.stages[2].stage.options.step == 2


@pytest.mark.parametrize("changes", [
    '[stages]\n"sort.rank" = "toy-rank-anywhere"\n[set]\n"seed.words.step" = 2\n"score.length.enabled" = false\n',
    '[stages]\nsort.rank = "toy-rank-anywhere"\n[set]\nseed.words.step = 2\nscore.length.enabled = false\n',
    '[stages.sort]\nrank = "toy-rank-anywhere"\n[set.seed.words]\nstep = "2"\n[set.score]\nlength.enabled = "no"\n',
])
def test_a_file_holds_changes_to_a_preset(tmp_path, changes: str) -> None:
    (tmp_path / "mine.toml").write_text('base = "toy"\nname = "mine"\n' + changes + "[defaults]\nleast = 6\n")
    plan = plan_of(Pipeline.from_toml(tmp_path / "mine.toml", REGISTRY))
    assert plan.pipeline.name == "mine"
    assert plan.options.least == 6
    assert plan.stages[2].stage.options.step == 2
    assert [p.stage.name for p in plan.stages][-2:] == ["toy-exact", "toy-rank-anywhere"]


@pytest.mark.parametrize(("text", "message"), [
    ("base = ", "not valid TOML"),
    ("name = 'x'\nfamily = 'toy'\n", "missing key 'slots'"),
    ("name = 'x'\nslots = [{name = 'seed.a', plugin = 'b'}]\n", "missing key 'family'"),
    ("name = 'x'\nfamily = 'toy'\nslot = 1\n", "unknown key 'slot'; known are name, help, "),
    ("name = 'x'\nfamily = 'toy'\nslots = [{name = 'seed.a'}]\n", "missing key 'plugin' in slots[1]"),
    ("name = 'x'\nfamily = 'toy'\nslots = [{name = 'seed.a', plugin = 'b', step = 3}]\n", "unknown key 'step' in"),
    ("name = 'x'\nfamily = 'toy'\nslots = ['seed.words']\n", "slots[1] must be a table, not 'seed.words'"),
    ("name = 'x'\nfamily = 'toy'\nslots = [{name = 'seed.a', plugin = 'b', scope = 'all'}]\n",
     "slots[1].scope must be 'reduce' or 'unit', not 'all'"),
    ("name = 'x'\nfamily = 'toy'\nslots = [{name = 'seed.a', plugin = 'b', enabled = 'no'}]\n",
     "slots[1].enabled must be false or true or 'fast' or 'stored', not 'no'"),
    ("base = 'toy'\nslots = []\n", "unknown key 'slots'; known are base, name, "),
    ("base = 'toy'\nstages = 3\n", "stages must be a table, not 3"),
    ("base = 'toy'\n[stages]\nsort.rank = []\n", "stages.sort.rank must be text, not a list"),
    ("base = 'toy'\nset = 'x'\n", "set must be a table, not 'x'"),
    ("base = 'toy'\n[set]\nseed.words.step = 1979-05-27\n", "set.seed.words.step must be text or true or false or a "),
    ("base = 'toy'\n[set]\n" + "a." * 5000 + "b = 1\n", "more than 20 tables or lists in one another"),
    ("base = 5\n", "base must be text, not 5"),
    ("base = []\n", "base must be text, not a list"),
    ("base = ''\n", "missing key 'base'"),
    ("base = 'toy'\nhelp = true\n", "help must be text, not true"),
    ("base = 'toy'\ndefaults = 3\n", "defaults must be a table, not 3"),
    ("base = 'toy'\n[defaults]\nleast = {}\n", "defaults.least must be text or true or false or a whole number or a "),
    ("name = 'x'\nfamily = 'toy'\nslots = 5\n", "slots must be a list, not 5"),
    ("name = 'x'\nfamily = 'toy'\nslots = 'ab'\n", "slots must be a list, not 'ab'"),
    ("name = 'x'\nfamily = 'toy'\nslots = [{name = 5, plugin = 'b'}]\n", "slots[1].name must be text, not 5"),
    ("name = 'x'\nfamily = 'toy'\nslots = [{name = 'a', plugin = []}]\n", "slots[1].plugin must be text, not a"),
    ("name = 'x'\nfamily = 'toy'\nslots = [{name = 'a', plugin = 'b', options = 1}]\n", "slots[1].options must be"),
    ("name = 'x'\nfamily = 'toy'\nslots = [{name = 'a', plugin = 'b', backend = 'gpu'}]\n", "slots[1].backend must"),
    ("name = 'x'\nfamily = 'toy'\nwriter = 3\n", "writer must be text, not 3"),
    ("name = " + "[" * 5000 + "]" * 5000, "not valid TOML: more brackets in one another than can be read"),
    ("name = " + "1" * 5000, "not valid TOML: "),
])
def test_a_file_that_is_wrong_is_named_with_what_is_wrong(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        Pipeline.from_toml(path, REGISTRY)
    assert str(path) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("text", "message"), [
    ("base = 'tow'\n", "unknown pipeline 'tow'; did you mean 'toy'?"),
    ("base = 'toy'\n[stages]\n'sort.rnk' = 'x'\n",
     "unknown slot 'sort.rnk' of pipeline 'toy'; did you mean 'sort.rank'?"),
    ("base = 'toy'\n[set]\nseed.words.step = 'x'\n", "seed.words.step needs a value of type int, not 'x'"),
    ("base = 'toy'\n[set]\nseed.words.stp = 1\n", "unknown option 'stp' of {}: seed.words; did you mean 'step'?"),
    ("base = 'toy'\n[defaults]\nleast = 'x'\n", "defaults.least needs a value of type int, not 'x'"),
    ("base = 'toy'\n[set]\n\"seed.words\\n.step\" = 1\n",
     "unknown slot 'seed.words\\n' of pipeline 'toy'; did you mean 'seed.words'?"),
])
def test_values_of_a_file_that_are_wrong_are_named_with_the_file(tmp_path, text: str, message: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        plan_of(Pipeline.from_toml(path, REGISTRY))
    assert str(caught.value) in (f"{path}: {message}", message.format(path))


def test_a_file_that_is_not_there(tmp_path) -> None:
    with pytest.raises(InputError, match=r"missing\.toml: No such file"):
        Pipeline.from_toml(tmp_path / "missing.toml", REGISTRY)
    (tmp_path / "mine.toml").write_text("base = 'tow'\n")
    with pytest.raises(UnknownNameError, match="unknown pipeline 'tow'; did you mean 'toy'"):
        Pipeline.from_toml(tmp_path / "mine.toml", REGISTRY)


def test_record_types_are_taken_with_their_subclasses() -> None:
    class Special(Alignments):
        """Alignments of a family of its own."""

    class Giving(toy.ExtendExact):
        name, gives = "toy-special", Special

    assert plan_of(toy.TOY.with_stage("extend.exact", "toy-special"), extended(Giving))


def test_cuda_runs_what_has_it_and_the_rest_on_the_cpu() -> None:
    plugins = registry()
    plan = compose(plugins, plugins.pipeline("exact"), backend="cuda")
    assert {p.stage.backend for p in plan.stages} == {"cuda", "cpu"}
    plan = compose(plugins, plugins.pipeline("blastp"), backend="cuda")
    assert {p.name for p in plan.stages if p.stage.backend == "cuda"} == {
        "index.targets", "seed.scan", "extend.gapped"}
    with pytest.raises(BackendError, match="no stage of pipeline 'hmmscan' has a cuda implementation; --backend cpu"):
        compose(plugins, plugins.pipeline("hmmscan"), backend="cuda")


def test_cuda_takes_the_plugins_for_stored_indexes_where_they_alone_have_it() -> None:
    plugins = registry()
    plan = compose(plugins, plugins.pipeline("mum"), {"length": 12}, backend="cuda", settings=["sort.rank.backend=cpu"])
    assert {p.name: p.stage.backend for p in plan.stages if p.stage.name.startswith("fm-")} == {
        "index.references": "cpu", "seed.matches": "cuda"}
    assert plan.options.length == 12
    with pytest.raises(BackendError, match="no stage of pipeline 'mum' has a cuda implementation"):
        compose(plugins, plugins.pipeline("mum"), backend="cuda", stages=["seed.matches=minimizer-matches"])
