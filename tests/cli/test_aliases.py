"""Every spelling of other programs reaches the option that it stands for."""

from typing import Any

import pytest
from seqloom.cli import aliases, search, searching
from seqloom.cli.main import main
from seqloom.core.options import option_infos
from seqloom.installed import registry

FILES = ["-q", "queries", "-d", "targets"]


@pytest.fixture
def values(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Carries out a command line up to the search; gives the values that the search would get."""

    def parse(*words: str) -> dict[str, Any]:
        caught: dict[str, Any] = {}
        monkeypatch.setattr(searching, "carry_out", lambda pipeline, own, given: caught.update(
            given, own={info.name: value for info, value in own}))
        assert main(list(words)) == 0
        return caught

    return parse


RUN = [
    (["-query", "a", "-db", "b"], {"query": ["a"], "db": ["b"]}),
    (["--query", "a", "--db", "b", "--db", "c"], {"db": ["b", "c"]}),
    (["-q", "a", "-d", "b", "-d", "c"], {"db": ["b", "c"]}),
    (["-query", "a", "-subject", "b"], {"db": ["b"]}),
    ([*FILES, "-out", "o", "-outfmt", "6 qseqid"], {"out": "o", "outfmt": "6 qseqid"}),
    ([*FILES, "-o", "o", "-f", "7"], {"out": "o", "outfmt": "7"}),
    ([*FILES, "-num_threads", "4"], {"num_threads": "4"}),
    ([*FILES, "--num_threads", "4"], {"num_threads": "4"}),
    ([*FILES, "--num-threads=4"], {"num_threads": "4"}),
    ([*FILES, "-p", "4"], {"num_threads": "4"}),
    ([*FILES, "-p4"], {"num_threads": "4"}),
    ([*FILES, "--threads", "4"], {"num_threads": "4"}),
    ([*FILES, "--cpu", "4"], {"num_threads": "4"}),
    ([*FILES, "-seqidlist", "f"], {"target_ids": "f"}),
    ([*FILES, "--target_ids", "f"], {"target_ids": "f"}),
    ([*FILES, "-task", "blastp"], {"task": "blastp"}),
    ([*FILES, "--no_store", "--on_bad", "skip"], {"no_store": True, "on_bad": "skip"}),
    ([*FILES, "--device_memory", "2G", "--volume_residues", "9"], {"device_memory": "2G", "volume_residues": "9"}),
]


@pytest.mark.parametrize("words, expected", RUN, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_options_of_every_search(values: Any, words: list[str], expected: dict[str, Any]) -> None:
    found = values("blastp", *words)
    assert {name: found[name] for name in expected} == expected


OWN = [
    ("blastp", ["-evalue", "1e-5"], {"evalue": "1e-5"}),
    ("blastp", ["-e", "1e-5"], {"evalue": "1e-5"}),
    ("blastp", ["-e1e-5"], {"evalue": "1e-5"}),
    ("blastp", ["-max_target_seqs", "7"], {"max_target_seqs": "7"}),
    ("blastp", ["--max-target-seqs", "7"], {"max_target_seqs": "7"}),
    ("blastp", ["--max_target_seqs", "7"], {"max_target_seqs": "7"}),
    ("blastp", ["-k", "7"], {"max_target_seqs": "7"}),
    ("blastp", ["-word_size", "3", "-comp_based_stats", "0", "-seg", "yes"],
     {"word_size": "3", "comp_based_stats": "0", "seg": "yes"}),
    ("blastp", ["-soft_masking", "true"], {"soft_masking": True}),
    ("blastp", ["-soft_masking", "false"], {"soft_masking": False}),
    ("blastp", ["-soft_masking=false"], {"soft_masking": False}),
    ("blastp", ["--soft-masking"], {"soft_masking": True}),
    ("blastp", ["--no-soft-masking"], {"soft_masking": False}),
    ("blastp", ["-lcase_masking"], {"lcase_masking": True}),
    ("blastn", ["-penalty", "-3", "-reward", "2", "-dust", "no", "-strand", "plus", "-perc_identity", "90"],
     {"penalty": "-3", "reward": "2", "dust": "no", "strand": "plus", "perc_identity": "90"}),
    ("hmmsearch", ["-E", "1e-5"], {"E": "1e-5"}),
    ("hmmsearch", ["--evalue", "1e-5"], {"E": "1e-5"}),
    ("hmmsearch", ["-T", "20", "--domE", "1", "--incE", "2", "-Z", "100"],
     {"T": "20", "domE": "1", "incE": "2", "Z": "100"}),
    ("hmmsearch", ["--cut_ga"], {"cut_ga": True}),
    ("hmmsearch", ["--F1", "0.1", "--max", "--nobias"], {"F1": "0.1", "max": True, "nobias": True}),
    ("mum", ["-mum", "-l", "30", "-b", "-n"], {"mum": True, "length": "30", "both": True, "acgt_only": True}),
    ("mum", ["-maxmatch", "-r"], {"maxmatch": True, "reverse": True}),
    ("mum", ["-mumreference"], {"mumreference": True}),
    ("mum", ["-mumcand"], {"mumreference": True}),
]


@pytest.mark.parametrize("pipeline, words, expected", OWN, ids=lambda x: " ".join(x) if isinstance(x, list) else "")
def test_options_of_pipelines(values: Any, pipeline: str, words: list[str], expected: dict[str, Any]) -> None:
    found = values(pipeline, *FILES, *words)
    assert {name: found["own"][name] for name in expected} == expected


@pytest.mark.parametrize("words", [["-task", "megablast"], ["--task", "megablast"], ["--task=megablast"]])
@pytest.mark.parametrize("command", [["blastn"], ["search", "blastn"]])
def test_a_task_is_the_pipeline_of_that_name(monkeypatch: pytest.MonkeyPatch, command: list[str],
                                             words: list[str]) -> None:
    ran = []
    monkeypatch.setattr(searching, "carry_out", lambda pipeline, own, given: ran.append(pipeline.name))
    assert main([*command, *FILES, *words]) == 0
    assert ran == ["megablast"]


def test_a_task_brings_its_own_options(values: Any) -> None:
    found = values("blastn", *FILES, "-task", "dc-megablast", "-template_length", "21")
    assert found["own"]["template_length"] == "21"


def test_further_outputs_and_words_of_the_format(values: Any) -> None:
    assert values("hmmsearch", *FILES, "--tblout", "t", "--domtblout", "d")["domtblout"] == "d"
    found = values("mum", *FILES, "-c", "-F", "-L", "-s")
    assert all(found[name.replace("-", "_")] for name in aliases.FORMAT_WORDS["exact-match"])


def test_what_is_not_given_is_not_passed_on(values: Any) -> None:
    assert values("blastp", *FILES)["own"] == {}


@pytest.mark.parametrize("pipeline", [p.name for p in registry().pipelines()])
def test_every_option_is_reached_by_three_spellings(values: Any, pipeline: str) -> None:
    family = registry().family(registry().pipeline(pipeline).family)
    for info in option_infos(family.Options):
        flag = info.name.replace("_", "-")
        for spelled in (f"--{flag}", f"--{info.name}", f"-{info.name}", *info.aliases):
            words = [spelled] if info.type is bool else [spelled, "1"]
            assert values(pipeline, *FILES, *words)["own"][info.name] in (True, "1"), spelled


def test_alias_tables_name_things_that_exist() -> None:
    plugins = registry()
    names = {i.name.replace("_", "-") for p in plugins.pipelines()
             for i in option_infos(plugins.family(p.family).Options)}
    assert set(aliases.RUN_OPTIONS) <= set(search.RUN_OPTIONS)
    assert set(aliases.PIPELINE_OPTIONS) <= names
    families = {p.family for p in plugins.pipelines()}
    assert set(aliases.OUTPUTS) <= {name for family in families for name in plugins.outputs(family)}
    assert set(aliases.FORMAT_OPTIONS) == set(aliases.FOR_PEOPLE)
    assert set(aliases.POSITIONAL) | set(aliases.FORMAT_WORDS) | set(aliases.FOR_PEOPLE) <= families
