"""The registry: whole plugins or nothing of them, and names that two plugins claim."""

import sys
from importlib import metadata
from types import SimpleNamespace

import pytest
from seqloom.core import registry as registry_module
from seqloom.core.deferred import deferred
from seqloom.core.errors import BackendError, PluginError, UnknownNameError
from seqloom.core.hookspecs import hookimpl
from seqloom.core.records import Column
from seqloom.core.registry import Registry
from seqloom.core.stages import API_VERSION, SeedStage, Sorter, Stage

from tests.core import toy


class Plugin:
    """A plugin that offers what it is given by the name of the hook."""

    SEQLOOM_API = API_VERSION

    def __init__(self, **offers) -> None:
        self.offers = offers

    @hookimpl
    def seqloom_stages(self):
        return self.offers.get("stages", [])

    @hookimpl
    def seqloom_families(self):
        return self.offers.get("families", [])

    @hookimpl
    def seqloom_pipelines(self):
        return self.offers.get("pipelines", [])

    @hookimpl
    def seqloom_maskers(self):
        return self.offers.get("maskers", [])

    @hookimpl
    def seqloom_sorters(self):
        return self.offers.get("sorters", [])


OFFERS = {"stages": toy.WordSeeds, "families": toy.ToyFamily, "pipelines": toy.TOY, "maskers": toy.ToyMasker,
          "sorters": toy.ToySorter}


def state(registry: Registry) -> list:
    return [list(registry.inventory()), dict(registry.plugins), registry.stages(), registry.pipelines()]


def test_everything_registered_is_listed_with_provider_and_help() -> None:
    registry = Registry()
    registry.register(toy, "toy", "toys 1.0")
    assert registry.plugins == {"toy": "toy (toys 1.0)"}
    rows = list(registry.inventory())
    assert ("seed stage", "toy-words", "reference", "toy (toys 1.0)", "Pairs of equal words.") in rows
    assert ("pipeline", "toy", "", "toy (toys 1.0)", "exact matches") in rows
    assert ("sorter", "toy-sorter", "reference", "toy (toys 1.0)", "Python's own sort.") in rows
    assert {r[0] for r in rows} == {"seed stage", "index stage", "extend stage", "score stage", "sort stage", "family",
                                    "pipeline", "masker", "sorter"}
    assert registry.pipeline("toy") is toy.TOY
    assert registry.family("toy") is toy.ToyFamily
    assert registry.masker("toy-masker") is toy.ToyMasker
    assert [p.name for p in registry.pipelines()] == ["toy"]
    for find, message in ((registry.reader, "unknown input format 'x'"), (registry.writer, "unknown output format 'x'"),
                          (registry.masker, "unknown masker 'x'; known: toy-masker")):
        with pytest.raises(UnknownNameError, match=message):
            find("x")


@pytest.mark.parametrize("what", OFFERS)
def test_two_providers_of_one_name_are_both_named_and_the_second_is_left_out(what: str) -> None:
    registry = Registry()
    registry.register(toy, "toy", "toys 1.0")
    before = state(registry)
    with pytest.raises(PluginError, match=r"is provided by two plugins: toy \(toys 1.0\) and other \(others 2.0\)"):
        registry.register(Plugin(**{what: [OFFERS[what]]}), "other", "others 2.0")
    assert state(registry) == before


def test_one_plugin_that_offers_a_name_twice() -> None:
    with pytest.raises(PluginError, match="stage 'toy-words reference' is provided by two plugins: p and p"):
        Registry().register(Plugin(stages=[toy.WordSeeds, toy.WordSeeds]), "p")


def test_a_name_may_have_several_back_ends() -> None:
    class OnCpu(toy.WordSeeds):
        backend = "cpu"

    class OnCuda(toy.WordSeeds):
        backend = "cuda"

    registry = toy.registry()
    registry.register(Plugin(stages=[OnCpu, OnCuda]), "fast")
    assert registry.stage("toy-words", "reference") is toy.WordSeeds
    assert registry.stage("toy-words", "cpu") is OnCpu
    assert registry.stage("toy-words", "cuda") is OnCuda
    from seqloom.core.backends import cuda_available

    assert registry.stage("toy-words", "auto") is (OnCuda if cuda_available() else OnCpu)
    with pytest.raises(BackendError, match="stage 'toy-exact' has no cpu implementation; it has: reference"):
        registry.stage("toy-exact", "cpu")


@pytest.mark.parametrize("version", [None, 0, API_VERSION + 1, "1"])
def test_plugins_for_another_version_of_the_interface_are_refused(version) -> None:
    plugin = Plugin(stages=[toy.WordSeeds])
    plugin.SEQLOOM_API = version
    registry = Registry()
    with pytest.raises(PluginError, match=f"'p' was written for version {version} of the plugin interface; this "
                                          f"seqloom has version {API_VERSION}"):
        registry.register(plugin, "p")
    assert state(registry) == state(Registry())


class NoKind(Stage):
    """Lacks its kind."""

    name = "no-kind"

    def run(self):
        return None


class OddBackend(toy.WordSeeds):
    backend = "tpu"


class OddColumn(toy.WordSeeds):
    columns = (Column("Colour", "i4", "differs from colour in Python and not in SQL"),)


class OddType(toy.WordSeeds):
    columns = (Column("colour", "u2", "of the hit"),)


class NoName(SeedStage):
    """Lacks its name."""

    def run(self, context, records):
        return records


class NoRun(SeedStage):
    """Lacks its run."""

    name = "no-run"


@pytest.mark.parametrize(("offers", "message"), [
    ({"stages": [NoKind]}, "stage .*NoKind.* of plugin p is not whole: .*kind"),
    ({"stages": [OddBackend]}, "stage 'toy-words' of plugin p has kind 'seed' and back end 'tpu'"),
    ({"stages": [OddColumn]}, "OddColumn.* is not whole: column 'Colour' of type i4: names are lower-case identifiers"),
    ({"stages": [OddType]}, "OddType.* is not whole: column 'colour' of type u2: .* types i1, i4"),
    ({"stages": [NoName]}, "stage .*NoName.* of plugin p is not whole: .*name"),
    ({"stages": [NoRun]}, "stage .*NoRun.* of plugin p is not whole: .*run"),
    ({"stages": ["toy-words"]}, "stage 'toy-words' of plugin p is not whole"),
    ({"sorters": [Sorter]}, "sorter .* of plugin p is not whole"),
    ({"pipelines": [toy.ToyFamily]}, "pipeline .*ToyFamily.* of plugin p is not whole"),
    ({"stages": toy.WordSeeds}, "seqloom_stages of plugin p must give a list"),
])
def test_a_plugin_that_is_not_whole_registers_nothing(offers, message: str) -> None:
    registry = Registry()
    before = state(registry)
    others = {"families": [toy.ToyFamily]} | {"stages": [toy.TargetWords]}
    with pytest.raises(PluginError, match=message):
        registry.register(Plugin(**{**others, **offers}), "p")
    assert state(registry) == before
    registry.register(Plugin(**others), "p")
    assert [s.name for s in registry.stages()] == ["toy-target-words"], "the name p is free again"


def test_a_hook_that_does_not_exist_is_refused() -> None:
    class Misspelt:
        SEQLOOM_API = API_VERSION

        @hookimpl
        def seqloom_stage(self):
            return [toy.WordSeeds]

    registry = Registry()
    with pytest.raises(PluginError, match=r"p.*unknown hook 'seqloom_stage'"):
        registry.register(Misspelt(), "p")
    assert state(registry) == state(Registry())


SORTING = "seqloom.plugins.sorting"


def test_deferred_classes_are_imported_when_they_are_asked_for(monkeypatch) -> None:
    place = "msd_radix_reference"
    monkeypatch.delitem(sys.modules, f"{SORTING}.{place}", raising=False)
    registry = Registry()
    registry.register(Plugin(sorters=deferred(SORTING, {"msd-radix reference": f"{place}.MsdRadix"})), "p")
    assert f"{SORTING}.{place}" not in sys.modules
    assert registry.sorter("msd-radix", "reference").name == "msd-radix"
    assert f"{SORTING}.{place}" in sys.modules
    assert [row[:4] for row in registry.inventory()] == [("sorter", "msd-radix", "reference", "p")]


def test_deferred_names_are_claimed_like_others() -> None:
    registry = Registry()
    registry.register(toy, "toy")
    with pytest.raises(PluginError, match="sorter 'toy-sorter reference' is provided by two plugins: toy and p"):
        registry.register(Plugin(sorters=deferred(SORTING, {"toy-sorter reference": "none.None"})), "p")


@pytest.mark.parametrize(("label", "place", "message"), [
    ("msd-radix reference", "none.MsdRadix", "can't be loaded: No module named"),
    ("msd-radix reference", "msd_radix_reference.None_", "can't be loaded: .*has no attribute"),
    ("msd-radix cpu", "msd_radix_reference.MsdRadix", "announced as 'msd-radix' cpu; it is 'msd-radix' reference"),
    ("radix reference", "msd_radix_reference.MsdRadix", "announced as 'radix' reference; it is 'msd-radix'"),
    ("sort_key reference", "symbols.SYMBOLS", "can't be loaded"),
])
def test_deferred_classes_that_are_not_what_was_announced(label: str, place: str, message: str) -> None:
    registry = Registry()
    registry.register(Plugin(sorters=deferred(SORTING, {label: place})), "p")
    with pytest.raises(PluginError, match=message):
        registry.sorter(*label.split())
    assert list(registry.inventory()) == []
    assert list(registry.problems) == [f"sorter {label}"]


def test_two_plugins_of_one_name_and_one_plugin_of_two_names() -> None:
    registry = Registry()
    plugin = Plugin(stages=[toy.WordSeeds])
    registry.register(plugin, "p", "first 1.0")
    with pytest.raises(PluginError, match=r"'p' is provided twice: by p \(first 1\.0\) and second 2\.0"):
        registry.register(Plugin(), "p", "second 2.0")
    with pytest.raises(PluginError):
        registry.register(plugin, "q", "second 2.0")
    assert [s.name for s in registry.stages()] == ["toy-words"]


def test_a_sorter_without_a_slow_version_troubles_nobody_else() -> None:
    class Fast(toy.ToySorter):
        name, backend = "fast-sorter", "cpu"

    registry = toy.registry()
    registry.register(Plugin(sorters=[Fast]), "fast")
    assert list(registry.sorters("reference")) == ["toy-sorter"]
    assert list(registry.sorters("cpu")) == ["fast-sorter", "toy-sorter"]
    sorter = registry.sorters("cpu", 3, 1000)["fast-sorter"]
    assert (sorter.threads, sorter.device_memory) == (3, 1000)
    assert isinstance(registry.sorter("fast-sorter", "cuda"), Fast)
    with pytest.raises(UnknownNameError, match="unknown sorter 'fast-sorter'"):
        registry.sorter("fast-sorter", "reference")


# ---- discovery


def entry(name: str, value: str, load) -> SimpleNamespace:
    return SimpleNamespace(name=name, value=value, load=load, package=f"{name}-dist", version="1.0")


def explode() -> None:
    raise RuntimeError("no such library")


def leave() -> None:
    sys.exit(3)


def test_broken_plugins_are_reported_and_the_others_work(monkeypatch) -> None:
    found = [entry("toy", "toy", lambda: toy), entry("broken", "some.module", explode),
             entry("leaving", "other.module", leave),
             entry("double", "double", lambda: Plugin(stages=[toy.WordSeeds])),
             entry("old", "old", SimpleNamespace), SimpleNamespace(name="alone", value="x", load=Plugin, package="")]
    asked = []
    monkeypatch.setattr(registry_module, "entries", lambda group: asked.append(group) or found)
    registry = Registry.discover()
    assert asked == ["seqloom"]
    assert set(registry.plugins) == {"alone", "double"}, "in order of name; toy comes behind double"
    assert registry.plugins["alone"] == "alone (unknown distribution)"
    assert registry.problems["broken"] == "RuntimeError: no such library (some.module, broken-dist 1.0)"
    assert "SystemExit" in registry.problems["leaving"]
    assert "is provided by two plugins: double (double-dist 1.0) and toy (toy-dist 1.0)" in registry.problems["toy"]
    assert "was written for version None" in registry.problems["old"]


def test_no_stranger_takes_the_place_of_a_built_in_plugin(monkeypatch) -> None:
    stranger = entry("aaa", "aaa", lambda: Plugin(stages=[toy.WordSeeds]))
    built_in = entry("toy", "toy", lambda: toy)
    built_in.package, built_in.version = "seqloom", "1"
    monkeypatch.setattr(registry_module, "entries", lambda group: [stranger, built_in])
    registry = Registry.discover()
    assert list(registry.plugins) == ["toy"]
    assert "is provided by two plugins: toy (seqloom 1) and aaa (aaa-dist 1.0)" in registry.problems["aaa"]


def test_two_distributions_with_one_entry_point_name(monkeypatch) -> None:
    first, second = entry("p", "a", Plugin), entry("p", "b", Plugin)
    second.package, second.version = "second", "2"
    monkeypatch.setattr(registry_module, "entries", lambda group: [first, second])
    registry = Registry.discover()
    assert registry.plugins == {"p": "p (p-dist 1.0)"}
    assert "provided twice: by p (p-dist 1.0) and second 2" in registry.problems["p"]


def test_every_built_in_plugin_loads() -> None:
    registry = Registry.discover()
    ours = {e.name for e in metadata.entry_points(group="seqloom") if e.dist and e.dist.name == "seqloom"}
    assert not ours & set(registry.problems), registry.problems
    assert ours <= set(registry.plugins)
    assert len(list(registry.inventory())) > 50, "each of them is imported and checked"
    assert not [p for p in registry.problems.values() if "(seqloom " in p]
