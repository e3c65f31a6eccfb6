"""What stands before the first query of HMMER's report: program, files, and the options that aren't the usual ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from seqloom.core.ports import Report

from .options import HmmsearchOptions, PhmmerOptions
from .report_rows import database_names, query_names

RULE = "# - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -\n"
_PROGRAMS = {"hmmsearch": ("search profile(s) against a sequence database", "query HMM file",
                           "target sequence database"),
             "hmmscan": ("search sequence(s) against a profile database", "query sequence file",
                         "target HMM database"),
             "phmmer": ("search a protein sequence against a protein database", "query sequence file",
                        "target sequence database")}
"""By pipeline: what it does, and what its two inputs are called."""
_SCORING = {"popen": "gap open probability", "pextend": "gap extend probability",
            "mx": "subst score matrix (built-in)", "mxfile": "subst score matrix (file)"}
_CALIBRATION = {"EmL": "seq length, MSV Gumbel mu fit", "EmN": "seq number, MSV Gumbel mu fit",
                "EvL": "seq length, Vit Gumbel mu fit", "EvN": "seq number, Vit Gumbel mu fit",
                "EfL": "seq length, Fwd exp tau fit", "EfN": "seq number, Fwd exp tau fit",
                "Eft": "tail mass for Fwd exp tau fit"}
_THRESHOLDS = {"E": "sequence reporting threshold", "T": "sequence reporting threshold",
               "domE": "domain reporting threshold", "domT": "domain reporting threshold",
               "incE": "sequence inclusion threshold", "incT": "sequence inclusion threshold",
               "incdomE": "domain inclusion threshold", "incdomT": "domain inclusion threshold"}
_FLAGS = {"cut_ga": ("model-specific thresholding", "GA cutoffs"),
          "cut_nc": ("model-specific thresholding", "NC cutoffs"),
          "cut_tc": ("model-specific thresholding", "TC cutoffs"),
          "max": ("Max sensitivity mode", "on [all heuristic filters off]")}
_FILTERS = {"F1": "MSV filter P threshold", "F2": "Vit filter P threshold", "F3": "Fwd filter P threshold"}
_OFF = {"nobias": "biased composition HMM filter", "nonull2": "null2 bias corrections"}
_SIZES = {"Z": "sequence search space set to", "domZ": "domain search space set to"}


def heading(report: Report, alignments: bool, accessions: bool, width: int, usual_width: int) -> str:
    """The lines; ``width`` is 0 without a limit."""
    pipeline = report.run["pipeline"]
    what, queries, targets = _PROGRAMS.get(pipeline.removesuffix("-nucleotide"), _PROGRAMS["hmmsearch"])
    lines = [(queries, query_names(report)), (targets, database_names(report))]
    if accessions:
        lines.append(("prefer accessions over names", "yes"))
    if not alignments:
        lines.append(("show alignments in output", "no"))
    if width != usual_width:
        lines.append(("max ASCII text line length", str(width or "unlimited")))
    lines += _unusual(report.run["options"])
    text = "".join(f"# {name + ':':<32} {value}\n" for name, value in lines)
    return (f"# {pipeline} :: {what}\n# seqloom {report.run.get('version', '')}, in the words of HMMER 3.3.2\n"
            f"{RULE}{text}{RULE}\n")


def _unusual(options: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    usual = PhmmerOptions() if "popen" in options else HmmsearchOptions()
    given = {name: value for name, value in options.items() if value != getattr(usual, name, value)}
    if given.get("mxfile"):
        given["mxfile"] = given["mxfile"].partition("\n")[0].removeprefix("# ")
    yield from ((what, str(given[name])) for name, what in {**_SCORING, **_CALIBRATION}.items() if name in given)
    for name, what in _THRESHOLDS.items():
        if name in given:
            yield what, f"{'E-value <=' if name.endswith('E') else 'score >='} {given[name]:g}"
    yield from (_FLAGS[name] for name in _FLAGS if name in given and not ("popen" in options and name[:4] == "cut_"))
    yield from ((what, f"<= {given[name]:g}") for name, what in _FILTERS.items() if name in given)
    yield from ((what, "off") for name, what in _OFF.items() if name in given)
    yield from ((what, f"{given[name]:.0f}") for name, what in _SIZES.items() if name in given)
    if "seed" in given:
        yield "random number seed set to", str(given["seed"])
