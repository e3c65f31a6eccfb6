"""Pipelines: named slots filled with plugins, checked before any work starts.

A preset is plain data. Users fill slots otherwise (``--stage extend.ungapped=window``), set options of a slot
(``--set seed.words.threshold=12``), switch one off (``--set seed.scan.enabled=false``), or give a TOML file.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .classes import dataclass
from .errors import BackendError, CompositionError, InputError, OptionError, SeqloomError, UnknownNameError
from .index import Side
from .options import build_options, option_infos, options_dict, parse_options
from .records import Column, Hits, Records
from .shapes import SCALAR, Table, check_shape
from .stages import BACKENDS, KINDS, ExtendStage, Family, IndexStage, Scope, SeedStage, SortOptions, Stage

if TYPE_CHECKING:
    from .registry import Registry


@dataclass(frozen=True)
class Slot:
    """A place in a pipeline and the plugin that fills it.

    Attributes:
        name: unique in its pipeline; begins with the kind of stage ("seed.words").
        plugin: name of the stage that fills it.
        options: values of the plugin's own options.
        scope: "unit" (per query batch and volume) or "reduce" (once per query batch, after its last volume).
        enabled: whether it takes part; "fast" for a slot that changes no result and is worth its time on the cpu and
            cuda back ends only, "stored" for one of the cpu that makes an index of targets where every database that is
            searched has it stored, and no device seeks.
        backend: back end for this slot alone; "" for the run's.
    """

    name: str
    plugin: str
    options: Mapping[str, Any] = field(default_factory=dict)
    scope: Scope = "unit"
    enabled: bool | Literal["fast", "stored"] = True
    backend: str = ""

    @property
    def kind(self) -> str:
        return self.name.split(".")[0]


@dataclass(frozen=True)
class Pipeline:
    """A list of slots under a name, with the family whose options and scoring they share.

    Attributes:
        name: what users write.
        help: one line.
        family: name of the family.
        slots: in order of work; reduce slots last.
        defaults: values of pipeline options that differ from the family's.
        writer: output format used when none is asked for.
        stored: plugins by slot that take over from the slots' own where every database that is searched has the index
            that one of them makes, or where a back end is asked for that they alone have. They give the same rows.
            Where one of these slots is changed none take over. Plain data doesn't hold them: it says
            what ran.
        own_from: query residues for each residue searched from which on the slots' own plugins stay, though there is
            such an index: so many are looked up sooner in an index of their own, with the time in which it is made.
            0: never.
        task: the pipeline that runs where somebody asks for the program of this name and for no task, if it is another:
            the peer's blastn does what its task megablast does. Plain data doesn't hold it either.
        source: the file that it is from, for messages; "" if none.
        devices_from: cells (query residues × target residues) of a search from which the back end ``auto`` takes CUDA
            devices; smaller ones are done before a device has started. 0: it always does.
    """

    name: str
    help: str
    family: str
    slots: tuple[Slot, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    writer: str = "6"
    stored: Mapping[str, str] = field(default_factory=dict)
    own_from: float = 0.0
    task: str = ""
    source: str = ""
    devices_from: int = 0

    def slot(self, name: str) -> Slot:
        for slot in self.slots:
            if slot.name == name:
                return slot
        raise UnknownNameError("slot", name, [s.name for s in self.slots], f"of pipeline '{self.name}'")

    def with_slot(self, changed: Slot) -> "Pipeline":
        slots = tuple(changed if s.name == changed.name else s for s in self.slots)
        return replace(self, slots=slots, stored={} if changed.name in self.stored else self.stored)

    def with_stage(self, slot: str, plugin: str) -> "Pipeline":
        """The same pipeline with a slot filled by another plugin; options of the former plugin are dropped."""
        return self.with_slot(replace(self.slot(slot), plugin=plugin, options={}))

    def with_stored(self) -> "Pipeline":
        """The same pipeline with the plugins of ``stored``."""
        pipeline = self
        for slot, plugin in self.stored.items():
            pipeline = pipeline.with_stage(slot, plugin)
        return pipeline

    def with_setting(self, assignment: str) -> "Pipeline":
        """Apply ``slot.option=value``; ``enabled`` and ``backend`` are settings of every slot."""
        path, equals, value = assignment.partition("=")
        name, dot, key = path.strip().rpartition(".")
        if not (equals and dot):
            raise OptionError(f"--set takes slot.option=value, not '{assignment}'")
        if any(path.strip() == s.name for s in self.slots):
            raise OptionError(f"{path} is a slot; --set takes slot.option=value, such as {path}.enabled=no")
        slot = self.slot(name)
        key = key.replace("-", "_")
        if key == "enabled":
            if value.lower() not in ENABLED:
                raise OptionError(f"{path} must be yes, no, fast or stored, not '{value}'")
            return self.with_slot(replace(slot, enabled=ENABLED[value.lower()]))
        if key == "backend" and value not in ("", *BACKENDS):
            raise UnknownNameError("back end", value, BACKENDS, f"of {name}")
        if key == "backend":
            return self.with_slot(replace(slot, backend=value))
        return self.with_slot(replace(slot, options={**slot.options, key: value}))

    def as_dict(self) -> dict[str, Any]:
        """Plain data: what a TOML file holds, and what is stored with a run."""
        slots = []
        for slot in self.slots:
            entry: dict[str, Any] = {"name": slot.name, "plugin": slot.plugin}
            entry |= {"scope": slot.scope} if slot.scope != "unit" else {}
            entry |= {"enabled": slot.enabled} if slot.enabled is not True else {}
            entry |= {"backend": slot.backend} if slot.backend else {}
            entry |= {"options": dict(slot.options)} if slot.options else {}
            slots.append(entry)
        return {"name": self.name, "help": self.help, "family": self.family, "writer": self.writer,
                "defaults": dict(self.defaults), "slots": slots,
                **({"devices_from": self.devices_from} if self.devices_from else {})}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "pipeline") -> "Pipeline":
        """From plain data; raises ``InputError`` that names the key that is missing, unknown or of another shape."""
        check_shape(data, SHAPE, where)
        slots = tuple(Slot(**entry) for entry in data["slots"])
        return cls(data["name"], data.get("help", ""), data["family"], slots, data.get("defaults", {}),
                   data.get("writer", "6"), devices_from=data.get("devices_from", 0))

    @classmethod
    def from_toml(cls, path: "str | Path", registry: "Registry") -> "Pipeline":
        """From a TOML file: a whole pipeline, or ``base = "preset"`` with ``[stages]`` and ``[set]`` tables over it."""
        import tomllib

        try:
            data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        except ValueError as error:
            raise InputError(f"{path}: not valid TOML: {error}") from None
        except RecursionError:
            raise InputError(f"{path}: not valid TOML: more brackets in one another than can be read") from None
        if "base" not in data:
            return replace(cls.from_dict(data, str(path)), source=str(path))
        check_shape(data, OVER_BASE, str(path))
        try:
            pipeline = registry.pipeline(data["base"])
            for slot, plugin in _dotted(data.get("stages", {})).items():
                pipeline = pipeline.with_stage(slot, plugin)
            for setting, value in _dotted(data.get("set", {})).items():
                pipeline = pipeline.with_setting(f"{setting}={value}")
        except SeqloomError as error:
            error.args = (f"{path}: {error}",)
            raise
        return replace(pipeline, name=data.get("name", pipeline.name), help=data.get("help", pipeline.help),
                       defaults={**pipeline.defaults, **data.get("defaults", {})}, source=str(path))


ENABLED: dict[str, bool | Literal["fast", "stored"]] = {
    "yes": True, "true": True, "on": True, "1": True, "no": False, "false": False, "off": False, "0": False,
    "fast": "fast", "stored": "stored"}
"""Whether a slot takes part, as it is typed."""
SHAPE = {
    "name!": str, "help": str, "family!": str, "writer": str, "devices_from": int,
    "defaults": Table((*SCALAR, type(None))),
    "slots!": [{"name!": str, "plugin!": str, "scope": {"unit", "reduce"}, "enabled": {True, False, "fast", "stored"},
                "backend": {"", *BACKENDS}, "options": Table((*SCALAR, type(None)))}]}
"""Of the plain data of a pipeline; options that are absent are None in the plain data of a run."""
OVER_BASE = {"base!": str, "name": str, "help": str, "stages": Table(str, nested=True),
             "set": Table(SCALAR, nested=True), "defaults": Table(SCALAR)}
"""Of a TOML file that changes a preset."""


def _dotted(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Values by dotted name, whether a TOML file wrote ``"seed.words.step" = 2`` or ``seed.words.step = 2``."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _dotted(value, f"{before}{key}.") if isinstance(value, Mapping) else {before + key: value}
    return flat


@dataclass(frozen=True)
class FilledSlot:
    """A slot with its stage, ready to run."""

    slot: Slot
    stage: Any

    @property
    def name(self) -> str:
        return self.slot.name

    @property
    def device(self) -> str:
        """Where the stage takes records: "host" or "cuda"."""
        return self.stage.records_on or ("cuda" if self.stage.backend == "cuda" else "host")


@dataclass(frozen=True)
class Plan:
    """A checked pipeline: stages in their slots, pipeline options and family."""

    pipeline: Pipeline
    family: Family
    options: Any
    backend: str
    stages: tuple[FilledSlot, ...]

    def indexes(self, side: Side) -> list[FilledSlot]:
        return [p for p in self.stages if isinstance(p.stage, IndexStage) and p.stage.side == side]

    def working(self, scope: Scope) -> list[FilledSlot]:
        """Stages that take and give records, of one scope, in order."""
        return [p for p in self.stages if p.slot.scope == scope and not isinstance(p.stage, IndexStage)]

    @property
    def deciding(self) -> list[str]:
        """Names of the slots that decide what is found; others are there for speed, where a back end has them."""
        return [f.name for f in self.stages if f.slot.enabled != "fast"]

    @property
    def slow(self) -> list[FilledSlot]:
        """Slots of the unit scope that are filled by the slow reference because there is nothing faster."""
        return [f for f in self.stages if f.stage.backend == "reference" and f.slot.scope == "unit"
                and (f.slot.backend or self.backend) == "auto"]

    @property
    def columns(self) -> dict[str, Column]:
        """Extra columns that some stage declares."""
        return {c.name: c for p in self.stages for c in p.stage.columns}

    def provenance(self) -> dict[str, Any]:
        """Plain data that says exactly what runs: every slot with plugin, back end and all option values."""
        slots = [{"slot": p.name, "plugin": p.stage.name, "backend": p.stage.backend, "scope": p.slot.scope,
                  "options": options_dict(p.stage.options)} for p in self.stages]
        return {"pipeline": self.pipeline.as_dict(), "family": self.family.name, "backend": self.backend,
                "options": options_dict(self.options), "slots": slots}


def compose(registry: "Registry", pipeline: Pipeline, options: Mapping[str, Any] | None = None, backend: str = "auto",
            stages: Sequence[str] = (), settings: Sequence[str] = ()) -> Plan:
    """Fill and check a pipeline.

    Args:
        registry: where plugins are found.
        pipeline: preset or file.
        options: pipeline options by name; they override the pipeline's defaults.
        backend: "auto" (for each slot the fastest there is: cuda where possible, else cpu, else reference; but cuda
            only where nothing else is there if ``Pipeline.devices_from`` says more than 0), "cpu",
            "cuda" (cpu for slots without it; where no slot has it, the plugins for stored indexes if they do), or
            "reference". Slots that only save time are left out where nothing but reference fills them, and where
            the others don't fit together with them.
        stages: ``slot=plugin`` replacements.
        settings: ``slot.option=value`` assignments.

    Raises:
        UnknownNameError, OptionError: a name or value is wrong.
        CompositionError: two slots don't fit together; names both.
        BackendError: a stage has no implementation for the back end.
    """
    for replacement in stages:
        name, equals, plugin = replacement.partition("=")
        if not equals:
            raise OptionError(f"--stage takes slot=plugin, not '{replacement}'")
        pipeline = pipeline.with_stage(name.strip(), plugin.strip())
    for setting in settings:
        pipeline = pipeline.with_setting(setting)
    family = registry.family(pipeline.family)()
    source = f"{pipeline.source}: " if pipeline.source else ""
    for info in option_infos(family.Options):
        if info.output and {info.name, info.flag.removeprefix("--")} & set(pipeline.defaults):
            raise OptionError(f"{source}pipeline '{pipeline.name}' sets {info.flag}, which names a file to write; a "
                              f"pipeline can't: take it out and give {info.flag} with the search")
    chosen = build_options(family.Options, {
        **parse_options(family.Options, pipeline.defaults, f"{source}defaults" if source else ""), **(options or {})})
    try:
        return _composed(registry, pipeline, family, chosen, backend)
    except CompositionError:
        # What only saves time gives way to a plugin that can do nothing with what it gives.
        if all(slot.enabled != "fast" for slot in pipeline.slots):
            raise
        without = replace(pipeline, slots=tuple(
            replace(slot, enabled=False) if slot.enabled == "fast" else slot for slot in pipeline.slots))
        with suppress(CompositionError):
            return _composed(registry, without, family, chosen, backend)
        raise


def _composed(registry: "Registry", pipeline: Pipeline, family: Family, chosen: Any, backend: str) -> Plan:
    """A pipeline with its slots filled and checked; for the options of its family values have been chosen."""
    source = f"{pipeline.source}: " if pipeline.source else ""
    placed = []
    for slot in pipeline.slots:
        if slot.kind not in KINDS:
            raise CompositionError(f"slot '{slot.name}' must begin with one of {', '.join(k + '.' for k in KINDS)}")
        if slot.enabled is True or (slot.enabled == "fast" and (slot.backend or backend) != "reference"):
            try:
                stage = _implementation(registry, slot, backend, not pipeline.devices_from)
            except BackendError:
                if slot.enabled != "fast" or slot.backend:
                    raise
                continue
            if slot.enabled == "fast" and stage.backend == "reference":
                continue
            if not lacking(stage, type(family)) and not stage.applies(chosen):
                continue
            if stage.kind != slot.kind:
                raise CompositionError(f"slot '{slot.name}' takes a stage of kind {slot.kind}; "
                                       f"'{slot.plugin}' is of kind {stage.kind}")
            placed.append(FilledSlot(slot, stage(build_options(stage.Options, slot.options, source + slot.name))))
    if backend == "cuda" and not any(p.stage.backend == "cuda" for p in placed):
        if any(registry.has_stage(plugin, "cuda") for plugin in pipeline.stored.values()):
            return compose(registry, pipeline.with_stored(), options_dict(chosen), backend)
        raise BackendError(f"no stage of pipeline '{pipeline.name}' has a cuda implementation; --backend cpu")
    plan = Plan(pipeline, family, chosen, backend, tuple(placed))
    _check_names(plan)
    _check_sorters(plan, registry)
    _check_flow(plan)
    return plan


def lacking(stage: type[Stage], family: type[Family]) -> str:
    """What ``stage`` needs and pipelines of ``family`` don't have, in words; "" where it may take part in them."""
    if not issubclass(family.Scoring, stage.scoring):
        return stage.scoring.__name__
    return next((f"the option '{name}'" for name in stage.uses if not hasattr(family.Options, name)), "")


def _implementation(registry: "Registry", slot: Slot, backend: str, devices: bool) -> type[Stage]:
    """The class that fills a slot: of the slot's own back end, else of the run's; of cpu where a run has no cuda.

    devices: whether "auto" takes cuda where there is something else.
    """
    if backend == "auto" and not devices:
        otherwise = "cpu" if slot.enabled == "fast" else backend  # what only saves time is left out then
        backend = next((other for other in ("cpu", "reference") if registry.has_stage(slot.plugin, other)), otherwise)
    if not slot.backend and backend == "cuda" and not registry.has_stage(slot.plugin, "cuda"):
        backend = "cpu" if registry.has_stage(slot.plugin, "cpu") else backend
    return registry.stage(slot.plugin, slot.backend or backend)


def _check_names(plan: Plan) -> None:
    seen: set[str] = set()
    for slot in plan.pipeline.slots:
        if slot.name in seen:
            raise CompositionError(f"pipeline '{plan.pipeline.name}' has two slots named '{slot.name}'")
        seen.add(slot.name)
    declared: dict[str, tuple[Column, str]] = {}
    for p in plan.stages:
        for column in p.stage.columns:
            other, where = declared.setdefault(column.name, (column, p.name))
            if other.type != column.type:
                raise CompositionError(f"slots '{where}' and '{p.name}' declare column '{column.name}' with different "
                                       f"types ({other.type}, {column.type})")


def _check_sorters(plan: Plan, registry: "Registry") -> None:
    for p in plan.stages:
        if isinstance(p.stage.options, SortOptions):
            registry.sorter(p.stage.options.sorter, p.stage.backend)


def _check_flow(plan: Plan) -> None:
    """Records of each slot must fit the next one, and indexes must be made before they are read."""
    made: dict[str, FilledSlot] = {}
    current: type[Records] | None = None
    before: type[Records] | None = None
    source, order, scope = "the start", (), "unit"
    narrowed, unfinished = False, ""
    for p in plan.stages:
        stage, slot = p.stage, p.slot
        if lack := lacking(type(stage), type(plan.family)):
            raise CompositionError(f"slot '{p.name}' ('{stage.name}') needs {lack}, which family "
                                   f"'{plan.family.name}' of pipeline '{plan.pipeline.name}' doesn't give")
        for kind in stage.reads:
            if kind not in made:
                raise CompositionError(f"slot '{p.name}' ('{stage.name}') reads an index of kind '{kind}', and no "
                                       f"earlier slot makes one{_listing(made)}")
            if slot.scope == "reduce" and made[kind].stage.side == "target":
                raise CompositionError(f"slot '{p.name}' ('{stage.name}') of the reduce scope reads an index of kind "
                                       f"'{kind}', which '{made[kind].name}' makes of each volume; only indexes of "
                                       "queries are there in the reduce scope")
        if slot.scope not in stage.scopes:
            raise CompositionError(f"slot '{p.name}': '{stage.name}' can't run in the {slot.scope} scope, only in "
                                   + " or ".join(stage.scopes))
        if isinstance(stage, IndexStage):
            if stage.provides in made:
                raise CompositionError(f"slots '{made[stage.provides].name}' and '{p.name}' both make an index of kind "
                                       f"'{stage.provides}'; switch one of them off")
            made[stage.provides] = p
            continue
        if scope == "reduce" and slot.scope == "unit":
            raise CompositionError(f"slot '{p.name}' is of the unit scope and stands behind '{source}' of the reduce "
                                   "scope; unit slots come first")
        if slot.scope != scope:
            order = ()  # partial results of several volumes stand one behind the other
        scope = slot.scope
        if not any(_fits(current, wanted) for wanted in stage.takes):
            wants = " or ".join("nothing" if t is None else t.__name__ for t in stage.takes)
            gives = "nothing" if current is None else current.__name__
            raise CompositionError(f"slot '{p.name}' ('{stage.name}') takes {wants}; '{source}' gives {gives}"
                                   + _needless(source, before, stage) + _switched_off(plan.pipeline))
        if narrowed and not isinstance(stage, SeedStage):
            raise CompositionError(f"slot '{p.name}' ('{stage.name}') takes what was found; '{source}' only says where "
                                   "to look, and a seed stage must follow it" + _switched_off(plan.pipeline))
        if unfinished and not isinstance(stage, ExtendStage) and (idle := _left_out(plan)):
            raise CompositionError(f"slot '{p.name}' ('{stage.name}') takes final alignments, and '{unfinished}' gives "
                                   "preliminary ones" + idle + _switched_off(plan.pipeline))
        unfinished = p.name if isinstance(stage, ExtendStage) and stage.preliminary else ""
        narrowed = isinstance(stage, SeedStage) and stage.narrows
        if stage.takes_order and tuple(order[: len(stage.takes_order)]) != stage.takes_order:
            raise CompositionError(f"slot '{p.name}' ('{stage.name}') takes records ordered by "
                                   f"{', '.join(stage.takes_order)}; '{source}' gives them ordered by "
                                   f"{', '.join(order) or 'nothing in particular'}")
        before, current, source = current, stage.gives, p.name
        order = order if stage.gives_order is None else stage.gives_order
    if current is None or not issubclass(current, Hits):
        raise CompositionError(f"pipeline '{plan.pipeline.name}' ends with '{source}', which gives "
                               f"{current.__name__ if current else 'nothing'}; the last slot must give Hits"
                               + _switched_off(plan.pipeline))


def _needless(source: str, before: type[Records] | None, stage: Stage) -> str:
    """Says how to leave the slot ``source`` out where ``stage`` takes what there is without it."""
    fits = any(_fits(before, wanted) for wanted in stage.takes)
    return f"; --set {source}.enabled=no leaves that one out" if fits and source != "the start" else ""


def _left_out(plan: Plan) -> str:
    """Goes on with the extensions that take no part, since one of them may be what is missing; "" where all do."""
    there = {p.name for p in plan.stages}
    idle = [f"'{slot.plugin}' in slot '{slot.name}'" for slot in plan.pipeline.slots
            if slot.kind == "extend" and slot.enabled is True and slot.name not in there]
    has = "has" if len(idle) == 1 else "have"
    return f"; with these options {' and '.join(idle)} {has} nothing to do" if idle else ""


def _switched_off(pipeline: Pipeline) -> str:
    """Ends a message on records that don't fit, since a slot that is switched off may be why."""
    off = [f"'{slot.name}'" for slot in pipeline.slots if slot.enabled is False]
    return f"; switched off: {', '.join(off)}" if off else ""


def _fits(given: type[Records] | None, wanted: type[Records] | None) -> bool:
    return given is wanted if given is None or wanted is None else issubclass(given, wanted)


def _listing(made: Mapping[str, FilledSlot]) -> str:
    return "; made are " + ", ".join(f"'{k}' by '{p.name}'" for k, p in made.items()) if made else ""
