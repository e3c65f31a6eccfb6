"""Figures of a run, drawn by Matplotlib: for papers and slides, as SVG, PNG or PDF.

Matplotlib draws to files, looks the same everywhere, and is what most people of the field know; it comes with the extra
``seqloom[plots]`` and is imported when a figure is asked for.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.errors import MissingPackageError, OptionError, UnknownNameError
from ...core.ports import QueryBlock, Report
from ...core.terminal import printable
from .figures import (
    SHADES,
    Axis,
    Histogram,
    Scale,
    Totals,
    architectures,
    dot_lines,
    evalue_histogram,
    identity_histogram,
    residues_text,
    shortened,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORWARD, REVERSE, BAR = "#0072b2", "#c04a00", "#2670a8"
MODELS = ("#0072b2", "#d55e00", "#009e73", "#7a4fa3", "#8a6d00", "#c2447e", "#3c6e71", "#4d4d4d")
"""Colours of models, dark enough for white text on them."""
HATCHES = ("", "////", "....", "xxxx")
"""Of models beyond as many as there are colours."""
MOST = 40
"""Hits, or proteins, of a figure."""
FINE = 4000
"""Parts of an axis; lines that begin and end in the same parts are drawn once."""
FORMATS = ("svg", "png", "pdf")
_STYLE: Any = {
    "font.family": "sans-serif", "font.size": 9, "axes.spines.top": False, "axes.spines.right": False,
    "axes.titlesize": 10, "axes.titlelocation": "left", "svg.fonttype": "none", "svg.hashsalt": "seqloom",
    "pdf.fonttype": 42, "text.parse_math": False, "axes.edgecolor": "#7b8896", "figure.dpi": 100}


def picture(report: Report, kind: str, format: str, query: str = "") -> bytes:
    """A figure as a file.

    Args:
        kind: one of ``KINDS``.
        format: one of ``FORMATS``.
        query: whose hits are drawn, in figures of one query; "" for the first that has hits.

    Raises:
        UnknownNameError: there is no such kind, format or query.
        OptionError: the run has nothing that such a figure shows.
        MissingPackageError: Matplotlib isn't installed.
    """
    if kind not in KINDS:
        raise UnknownNameError("figure", kind, tuple(KINDS))
    if format not in FORMATS:
        raise UnknownNameError("format of pictures", format, FORMATS)
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise MissingPackageError("matplotlib", "plots") from error
    with matplotlib.rc_context(_STYLE):
        figure = KINDS[kind](report, query)
        out = io.BytesIO()
        undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(format, {})
        figure.savefig(out, format=format, dpi=160, metadata=undated, bbox_inches="tight", pad_inches=0.15)
    return out.getvalue()


def _sheet(width: float, height: float, title: str) -> tuple[Figure, Axes]:
    """An empty figure, in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height))
    axes = figure.add_subplot()
    axes.set_title(printable(title))
    return figure, axes


def _title(report: Report, what: str) -> str:
    return f"{report.run.get('pipeline', '')}: {what}".removeprefix(": ")


def _of_residues(axis: Any) -> None:
    """Ticks of an axis along a sequence."""
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda place, _: residues_text(round(place), max(1, round(place)))))


# ---- one query


def _chosen(report: Report, name: str) -> QueryBlock:
    """The query of a name, or the first that has hits, as a block of one."""
    seen: list[str] = []
    for block in report.blocks():
        sizes = np.diff(block.first_hits)
        wanted = [n for n, own in enumerate(block.names) if own == name] if name else np.flatnonzero(sizes).tolist()
        if wanted:
            return block.between(wanted[0], wanted[0] + 1)
        seen += block.names[: 10 - len(seen)]
    if name:
        raise UnknownNameError("query", name, seen)
    raise OptionError("no query has hits; there is nothing to draw")


def overview(report: Report, query: str) -> Figure:
    """The best hits of a query as bars along it."""
    block = _chosen(report, query)
    hits, rows = block.hits, block.hits.alignments
    shown = min(MOST, len(hits))
    scale = Scale.of(hits.bit_score, hits.score)
    classes = scale.classes(hits.bit_score, hits.score).tolist()
    figure, axes = _sheet(8, 1.2 + 0.2 * max(3, shown), _title(report, f"hits of {shortened(block.names[0])}"))
    names = dict(zip(block.targets.numbers.tolist(), block.targets.names))
    for rank, target in enumerate(hits.target[:shown].tolist()):
        own = rows.target == target
        spans = np.stack([rows.query_start[own], rows.query_end[own] - rows.query_start[own]], axis=1).tolist()
        if spans:
            begin, end = min(s for s, _ in spans), max(s + n for s, n in spans)
            axes.plot([begin, end], [rank, rank], color="#93a4b5", linewidth=1, zorder=1)
            axes.broken_barh(spans, (rank - 0.38, 0.76), facecolors=SHADES[classes[rank]], zorder=2)
    axes.set_yticks(range(shown), [printable(shortened(names[t])) for t in hits.target[:shown].tolist()])
    axes.set_ylim(shown - 0.4, -0.6)
    axes.set_xlim(0, int(block.lengths[0]))
    _of_residues(axes.xaxis)
    axes.set_xlabel(f"{shortened(printable(block.names[0]))}, {int(block.lengths[0]):,} long")
    _legend(axes, [(label, SHADES[n], "") for n, label in enumerate(scale.labels) if n in classes[:shown]],
            "bit score" if scale.bits else "score")
    return figure


def _legend(axes: Axes, entries: Sequence[tuple[str, str, str]], title: str) -> None:
    """Names with their colours and hatching."""
    from matplotlib.patches import Patch

    axes.legend(handles=[Patch(facecolor=colour, edgecolor="white", hatch=hatch, label=label)
                         for label, colour, hatch in entries], title=title, frameon=False,
                loc="upper left", bbox_to_anchor=(1.01, 1), fontsize=8, title_fontsize=8)


def coverage(report: Report, query: str) -> Figure:
    """How many alignments cover each residue of a query."""
    block = _chosen(report, query)
    rows, length = block.hits.alignments, int(block.lengths[0])
    places, depth = depths(rows.query_start, rows.query_end, length)
    figure, axes = _sheet(8, 2.6, _title(report, f"coverage of {shortened(block.names[0])}"))
    axes.stairs(depth, places, fill=True, color=BAR)
    axes.set_xlim(0, length)
    axes.set_ylim(0)
    _of_residues(axes.xaxis)
    covered = int(np.diff(places)[depth > 0].sum())
    axes.set_xlabel(f"{printable(shortened(block.names[0]))}: {covered:,} of {length:,} covered")
    axes.set_ylabel("alignments")
    return figure


def depths(starts: np.ndarray, ends: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Stretches of a sequence and how many of the half-open intervals cover each: i8[n + 1] bounds, i8[n]."""
    places = np.unique(np.concatenate([[0, length], starts, ends]).astype(np.int64))
    steps = np.bincount(np.searchsorted(places, starts), minlength=len(places)) - np.bincount(
        np.searchsorted(places, ends), minlength=len(places))
    return places, np.cumsum(steps)[:-1]


# ---- the whole run


def dotplot(report: Report, query: str = "") -> Figure:
    """All alignments in the plane of targets and queries, strands in two colours."""
    lines = dot_lines(report.blocks())
    wide, high = lines.targets.length, lines.queries.length
    most = 7.0 / max(wide, high)
    figure, axes = _sheet(max(2.0, wide * most) + 1, max(2.0, high * most) + 1,
                          _title(report, f"{len(lines.ends):,} alignments"))
    for name, colour, chosen in (("forward", FORWARD, ~lines.turned), ("reverse", REVERSE, lines.turned)):
        x, y = _broken(lines.ends[chosen], max(wide, high))
        [line] = axes.plot(x, y, color=colour, linewidth=1.3, solid_capstyle="round", label=name)
        line.set_gid(name)
    for axis, sequences, bounds in ((axes.xaxis, lines.targets, axes.axvline),
                                    (axes.yaxis, lines.queries, axes.axhline)):
        _of_sequences(axis, sequences)
        for place in sequences.boundaries(0.005):
            bounds(place, color="#d5dce3", linewidth=0.6, zorder=0)
    axes.set_xlim(0, wide)
    axes.set_ylim(0, high)
    axes.spines[["top", "right"]].set_visible(True)
    if max(wide, high) < 4 * min(wide, high):
        axes.set_aspect("equal")
    axes.legend(loc="lower left", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False, fontsize=8)
    return figure


def _broken(ends: np.ndarray, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Lines as one that is broken between them; those that look the same once."""
    part = max(1.0, length / FINE)
    _, kept = np.unique(np.round(ends / part).astype(np.int64), axis=0, return_index=True)
    some = ends[np.sort(kept)]
    gaps = np.full(len(some), np.nan)
    return (np.stack([some[:, 0], some[:, 2], gaps], axis=1).ravel(),
            np.stack([some[:, 1], some[:, 3], gaps], axis=1).ravel())


def _of_sequences(axis: Any, sequences: Axis) -> None:
    """Ticks of an axis of several sequences, and the names of those that are large enough."""
    ticks = sequences.ticks(6)
    axis.set_ticks([place for place, _ in ticks], [text for _, text in ticks])
    named = sequences.named(0.06)
    if len(sequences.names) == 1:
        axis.set_label_text(printable(sequences.names[0]))
    elif named:
        across = axis.axis_name == "x"
        other = axis.axes.secondary_xaxis(-0.07) if across else axis.axes.secondary_yaxis(-0.09)
        own = other.xaxis if across else other.yaxis
        own.set_ticks([place for place, _ in named], [printable(name) for _, name in named])
        other.tick_params(length=0, labelrotation=0 if across else 90)
        other.spines[:].set_visible(False)


def domains(report: Report, query: str = "") -> Figure:
    """Proteins with the domains of all models on them, by their envelopes."""
    proteins, count = architectures(report.blocks(), MOST)
    if not proteins:
        raise OptionError("a figure of domains needs hits of a search with profile HMMs: hmmsearch, hmmscan or phmmer")
    lanes = [protein.lanes() for protein in proteins]
    rows = [max(1, len(own)) for own in lanes]
    some = f"{len(proteins)} of {count:,} proteins" if len(proteins) < count else f"{count:,} proteins"
    figure, axes = _sheet(8, 1.0 + 0.26 * sum(rows), _title(report, f"domains of {some}"))
    numbers: dict[str, int] = {}
    longest = max(protein.length for protein in proteins)
    top, middles = 0.0, []
    for protein, own, height in zip(proteins, lanes, rows):
        middle = top + height / 2
        middles.append(middle)
        axes.plot([0, protein.length], [middle, middle], color="#93a4b5", linewidth=1.5, zorder=1)
        for lane, some_domains in enumerate(own):
            for domain in some_domains:
                number = numbers.setdefault(domain.model, len(numbers))
                colour, hatch = _look(number)
                axes.broken_barh([(domain.start, domain.end - domain.start)], (top + lane + 0.12, 0.76), zorder=2,
                                 facecolor=colour if domain.included else "white", hatch=hatch,
                                 edgecolor="white" if hatch and domain.included else colour,
                                 linestyle="-" if domain.included else "--", linewidth=0.8)
                if domain.included and not hatch and (domain.end - domain.start) / longest > 0.014 * len(domain.model):
                    axes.text((domain.start + domain.end) / 2, top + lane + 0.5, printable(domain.model), zorder=3,
                              color="white", fontsize=7, ha="center", va="center_baseline")
        top += height
    axes.set_yticks(middles, [printable(shortened(protein.name)) for protein in proteins])
    axes.set_ylim(top, 0)
    axes.set_xlim(0, longest)
    axes.set_xlabel("residues; dashed below the inclusion threshold")
    _legend(axes, [(printable(shortened(name)), *_look(number)) for name, number in list(numbers.items())[:MOST]],
            "model")
    return figure


def _look(number: int) -> tuple[str, str]:
    """Colour and hatching of a model."""
    return MODELS[number % len(MODELS)], HATCHES[number // len(MODELS) % len(HATCHES)]


def identity(report: Report, query: str = "") -> Figure:
    """Alignments by their share of identical columns."""
    found = Totals.of(report.blocks()).identities
    return _bars(report, identity_histogram(found), len(found), "alignments", "identical columns")


def evalues(report: Report, query: str = "") -> Figure:
    """Hits by E-value."""
    found = Totals.of(report.blocks()).evalues
    known = found[~np.isnan(found)]
    return _bars(report, evalue_histogram(known), len(known), "hits", "E-value")


def _bars(report: Report, histogram: Histogram, count: int, what: str, across: str) -> Figure:
    if not count:
        raise OptionError(f"the run has no {what} of which a figure of {across} could be drawn")
    figure, axes = _sheet(6, 3, _title(report, f"{count:,} {what}"))
    places = np.arange(len(histogram.counts))
    axes.bar(places + 0.5, histogram.counts, width=0.94, color=BAR)
    each = max(1, -(-len(histogram.labels) // 8))
    axes.set_xticks(np.arange(len(histogram.labels))[::each], list(histogram.labels)[::each])
    axes.set_xlim(0, len(places))
    axes.set_xlabel(across)
    axes.set_ylabel(what)
    return figure


def timings(report: Report, query: str = "") -> Figure:
    """Seconds of each slot."""
    slots = report.slots()
    if not slots:
        raise OptionError("the run doesn't say how long its slots took")
    seconds = [slot["seconds"] or 0.0 for slot in slots]
    figure, axes = _sheet(6, 0.8 + 0.28 * len(slots), _title(report, f"{sum(seconds):.3g} s in its slots"))
    axes.barh(range(len(slots)), seconds, color=BAR)
    axes.set_yticks(range(len(slots)), [printable(str(slot["slot"])) for slot in slots])
    for place, value in enumerate(seconds):
        axes.text(value, place, f" {value:.3f}", va="center", fontsize=8)
    axes.set_ylim(len(slots) - 0.4, -0.6)
    axes.set_xlabel("seconds")
    return figure


KINDS: dict[str, Callable[[Report, str], Figure]] = {
    "overview": overview, "dotplot": dotplot, "domains": domains, "coverage": coverage, "identity": identity,
    "evalues": evalues, "timings": timings}
"""Figures by name."""
