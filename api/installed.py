"""The program's registry of plugins, discovered on first use, and the pipelines that people ask for."""

import os
from functools import cache

from .core.errors import InputError, UsageError
from .core.pipeline import Pipeline
from .core.registry import Registry


@cache
def registry() -> Registry:
    """Every installed plugin; those that could not be loaded are named in ``problems``."""
    return Registry.discover()


def strategy(plugins: Registry, path: str) -> Pipeline:
    """The pipeline of a TOML file.

    Raises:
        InputError: the file is none, such as a search strategy of BLAST+.
    """
    with open(path, "rb") as file:
        start = file.read(64)
    if start.lstrip().startswith(b"Blast4-request"):
        raise InputError(f"{path}: a search strategy of BLAST+ (ASN.1), which isn't read; seqloom's are TOML files: "
                         "-export_search_strategy FILE.toml")
    return Pipeline.from_toml(path, plugins)


def find_pipeline(plugins: Registry, pipeline: "str | Pipeline", task: str = "") -> Pipeline:
    """A preset by name or the one that is its task, or a pipeline from a TOML file.

    Args:
        task: the pipeline that is asked for instead; it takes all options of the other one.

    Raises:
        UsageError: the task lacks options that the pipeline has.
    """
    if isinstance(pipeline, Pipeline):
        found = pipeline
    elif pipeline.endswith(".toml"):
        found = Pipeline.from_toml(pipeline, plugins)
    else:
        found = plugins.pipeline(pipeline)
        task = task or found.task
    if not task or task == found.name:
        return found
    asked = strategy(plugins, task) if os.path.isfile(task) or task.endswith(".toml") else plugins.pipeline(task)
    here, there = (plugins.family(p.family).Options for p in (found, asked))
    if not issubclass(there, here):
        raise UsageError(f"--task {task} is no task of '{found.name}'; seqloom {task} runs it")
    return asked
