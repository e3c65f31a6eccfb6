"""Pipelines: named slots filled with plugins, checked before any work starts.

A preset is plain data. Users fill slots otherwise (``--stage extend.ungapped=window``), set options of a slot
(``--set seed.words.threshold=12``), switch one off (``--set seed.scan.enabled=false``), or give a TOML file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from .errors import BackendError, CompositionError, InputError, OptionError, UnknownNameError
from .index import Side
from .options import build_options, options_dict
from .records import Column, Hits, Records
from .stages import KINDS, Family, IndexStage, Scope, SortOptions, Stage

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
            cuda back ends only.
        backend: back end for this slot alone; "" for the run's.
    """

    name: str
    plugin: str
    options: Mapping[str, Any] = field(default_factory=dict)
    scope: Scope = "unit"
    enabled: bool | Literal["fast"] = True
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
            Whoever changes one of these slots has chosen, and none take over. Plain data doesn't hold them: it says
            what ran.
    """

    name: str
    help: str
    family: str
    slots: tuple[Slot, ...]
    defaults: Mapping[str, Any] = field(default_factory=dict)
    writer: str = "6"
    stored: Mapping[str, str] = field(default_factory=dict)

    def slot(self, name: str) -> Slot:
        for slot in self.slots:
            if slot.name == name:
                return slot
        raise UnknownNameError(f"slot of pipeline '{self.name}'", name, [s.name for s in self.slots])

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
        slot = self.slot(name)
        key = key.replace("-", "_")
        if key == "enabled":
            if value.lower() not in ("true", "false", "yes", "no"):
                raise OptionError(f"{path} must be true or false, not '{value}'")
            return self.with_slot(replace(slot, enabled=value.lower() in ("true", "yes")))
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
                "defaults": dict(self.defaults), "slots": slots}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "pipeline") -> "Pipeline":
        """From plain data; raises ``InputError`` that names the missing or unknown key."""
        known = {"name", "help", "family", "writer", "defaults", "slots"}
        if unknown := sorted(set(data) - known):
            raise InputError(f"{where}: unknown key '{unknown[0]}'; a pipeline has {', '.join(sorted(known))}")
        if missing := [k for k in ("name", "family", "slots") if not data.get(k)]:
            raise InputError(f"{where}: missing key '{missing[0]}'")
        slots = []
        for entry in data["slots"]:
            if not isinstance(entry, Mapping):
                raise InputError(f"{where}: a slot is a table with name and plugin, not {entry!r}")
            if unknown := sorted(set(entry) - {"name", "plugin", "scope", "enabled", "backend", "options"}):
                raise InputError(f"{where}: unknown key '{unknown[0]}' in a slot")
            if missing := [k for k in ("name", "plugin") if k not in entry]:
                raise InputError(f"{where}: a slot lacks its '{missing[0]}'")
            slot = Slot(**entry)
            if slot.scope not in ("unit", "reduce") or slot.enabled not in (True, False, "fast"):
                raise InputError(f"{where}: slot '{slot.name}': scope is unit or reduce, enabled true, false or fast")
            slots.append(slot)
        return cls(data["name"], data.get("help", ""), data["family"], tuple(slots), data.get("defaults", {}),
                   data.get("writer", "6"))

    @classmethod
    def from_toml(cls, path: "str | Path", registry: "Registry") -> "Pipeline":
        """From a TOML file: a whole pipeline, or ``base = "preset"`` with ``[stages]`` and ``[set]`` tables over it."""
        import tomllib

        try:
            data = tomllib.loads(Path(path).read_text())
        except OSError as error:
            raise InputError(f"{path}: {error.strerror or error}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not valid TOML: {error}") from None
        if "base" not in data:
            return cls.from_dict(data, str(path))
        if unknown := sorted(set(data) - {"base", "name", "help", "stages", "set", "defaults"}):
            raise InputError(f"{path}: unknown key '{unknown[0]}' beside base")
        pipeline = registry.pipeline(data["base"])
        for slot, plugin in _dotted(data.get("stages", {})).items():
            pipeline = pipeline.with_stage(slot, plugin)
        for setting, value in _dotted(data.get("set", {})).items():
            pipeline = pipeline.with_setting(f"{setting}={value}")
        return replace(pipeline, name=data.get("name", pipeline.name), help=data.get("help", pipeline.help),
                       defaults={**pipeline.defaults, **data.get("defaults", {})})


def _dotted(table: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Values by dotted name, whether a TOML file wrote ``"seed.words.step" = 2`` or ``seed.words.step = 2``."""
    flat: dict[str, Any] = {}
    for key, value in table.items():
        flat |= _dotted(value, f"{before}{key}.") if isinstance(value, Mapping) else {before + key: value}
    return flat


@dataclass(frozen=True)
class PlacedStage:
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
    stages: tuple[PlacedStage, ...]

    def indexes(self, side: Side) -> list[PlacedStage]:
        return [p for p in self.stages if isinstance(p.stage, IndexStage) and p.stage.side == side]

    def working(self, scope: Scope) -> list[PlacedStage]:
        """Stages that take and give records, of one scope, in order."""
        return [p for p in self.stages if p.slot.scope == scope and not isinstance(p.stage, IndexStage)]

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
        backend: "auto" (cuda where possible, else cpu), "cpu", "cuda" (cpu for slots without it; where no slot has it,
            the plugins for stored indexes if they do), or "reference".
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
    chosen = build_options(family.Options, {**pipeline.defaults, **(options or {})})
    placed = []
    for slot in pipeline.slots:
        if slot.kind not in KINDS:
            raise CompositionError(f"slot '{slot.name}' must begin with one of {', '.join(k + '.' for k in KINDS)}")
        chosen_backend = slot.backend or backend
        if slot.enabled is True or (slot.enabled == "fast" and chosen_backend != "reference"):
            stage = _implementation(registry, slot, backend)
            if stage.kind != slot.kind:
                raise CompositionError(f"slot '{slot.name}' takes a stage of kind {slot.kind}; "
                                       f"'{slot.plugin}' is of kind {stage.kind}")
            placed.append(PlacedStage(slot, stage(build_options(stage.Options, slot.options, slot.name))))
    if backend == "cuda" and not any(p.stage.backend == "cuda" for p in placed):
        if any(registry.has_stage(plugin, "cuda") for plugin in pipeline.stored.values()):
            return compose(registry, pipeline.with_stored(), options, backend)
        raise BackendError(f"no stage of pipeline '{pipeline.name}' has a cuda implementation; --backend cpu")
    plan = Plan(pipeline, family, chosen, backend, tuple(placed))
    _check_names(plan)
    _check_sorters(plan, registry)
    _check_flow(plan)
    return plan


def _implementation(registry: "Registry", slot: Slot, backend: str) -> type[Stage]:
    """The class that fills a slot: of the slot's own back end, else of the run's; of cpu where a run has no cuda."""
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
    made: dict[str, PlacedStage] = {}
    current: type[Records] | None = None
    source, order, scope = "the start", (), "unit"
    for p in plan.stages:
        stage, slot = p.stage, p.slot
        if not issubclass(plan.family.Scoring, stage.scoring):
            raise CompositionError(f"slot '{p.name}' ('{stage.name}') needs {stage.scoring.__name__}, which family "
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
            raise CompositionError(f"slot '{p.name}' ('{stage.name}') takes {wants}; '{source}' gives {gives}")
        if stage.takes_order and tuple(order[: len(stage.takes_order)]) != stage.takes_order:
            raise CompositionError(f"slot '{p.name}' ('{stage.name}') takes records ordered by "
                                   f"{', '.join(stage.takes_order)}; '{source}' gives them ordered by "
                                   f"{', '.join(order) or 'nothing in particular'}")
        current, source = stage.gives, p.name
        order = order if stage.gives_order is None else stage.gives_order
    if current is None or not issubclass(current, Hits):
        raise CompositionError(f"pipeline '{plan.pipeline.name}' ends with '{source}', which gives "
                               f"{current.__name__ if current else 'nothing'}; the last slot must give Hits")


def _fits(given: type[Records] | None, wanted: type[Records] | None) -> bool:
    return given is wanted if given is None or wanted is None else issubclass(given, wanted)


def _listing(made: Mapping[str, PlacedStage]) -> str:
    return "; made are " + ", ".join(f"'{k}' by '{p.name}'" for k, p in made.items()) if made else ""
