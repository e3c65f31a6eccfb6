"""Everything that plugins have registered, by name and back end."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import pluggy

from . import hookspecs
from .deferred import Deferred
from .entry_points import Entry, entries
from .errors import BackendError, PluginError, UnknownNameError
from .options import option_infos
from .pipeline import Pipeline
from .records import COLUMN_TYPES
from .stages import API_VERSION, BACKENDS, KINDS, Family, IndexStage, Masker, Reader, Sorter, Stage, Writer

ENTRY_POINT_GROUP = "seqloom"
_BASES: dict[str, type] = {"stage": Stage, "sorter": Sorter, "family": Family, "pipeline": Pipeline, "masker": Masker,
                           "reader": Reader, "writer": Writer}
_WORDS = {"reader": "input format", "writer": "output format"}
"""What people call them, where that isn't the word of the hook."""
_SORTER_BACKENDS = {"reference": ("reference",), "cuda": ("cuda", "cpu", "reference")}
"""Back ends whose sorters the stages of a back end may use, where these are not cpu and then reference."""


class Registry:
    """Plugins of a program. ``problems`` lists those that could not be loaded, each with its reason."""

    def __init__(self) -> None:
        self._manager = pluggy.PluginManager("seqloom")
        self._manager.add_hookspecs(hookspecs)
        self._stages: dict[tuple[str, str], type[Stage]] = {}
        self._sorters: dict[tuple[str, str], type[Sorter]] = {}
        self._families: dict[str, type[Family]] = {}
        self._pipelines: dict[str, Pipeline] = {}
        self._maskers: dict[str, type[Masker]] = {}
        self._readers: dict[str, type[Reader]] = {}
        self._writers: dict[str, type[Writer]] = {}
        self._providers: dict[tuple[str, ...], str] = {}
        self.plugins: dict[str, str] = {}
        self.problems: dict[str, str] = {}

    @classmethod
    def discover(cls) -> "Registry":
        """A registry with every installed plugin. One that fails is noted in ``problems`` and left out."""
        registry = cls()

        def place(entry: Entry) -> tuple[bool, str]:
            return entry.package != "seqloom", entry.name  # no other package takes a built-in's name

        for entry in sorted(entries(ENTRY_POINT_GROUP), key=place):
            package = f"{entry.package} {entry.version}" if entry.package else "unknown distribution"
            try:
                registry.register(entry.load(), entry.name, package)
            except (Exception, SystemExit) as error:  # somebody's plugin may fail in any way; the program goes on
                registry.problems[entry.name] = f"{type(error).__name__}: {error} ({entry.value}, {package})"
        return registry

    def register(self, plugin: Any, name: str, provider: str = "") -> None:
        """Add all that ``plugin`` offers, or nothing of it.

        Raises:
            PluginError: it was written for another version of the interfaces, offers something that isn't whole, or
                claims a name that another plugin has; the message names both.
        """
        version = getattr(plugin, "SEQLOOM_API", None)
        if version != API_VERSION:
            raise PluginError(f"plugin '{name}' was written for version {version} of the plugin interface; "
                              f"this seqloom has version {API_VERSION}")
        if name in self.plugins:
            raise PluginError(f"a plugin '{name}' is provided twice: by {self.plugins[name]} and {provider or name}")
        provider = f"{name} ({provider})" if provider else name
        caller = self._manager.subset_hook_caller
        others = self._manager.get_plugins()
        if plugin in others:
            raise PluginError(f"plugin '{name}' is registered already as '{self._manager.get_name(plugin)}'")
        self._manager.register(plugin, name)
        try:
            self._manager.check_pending()
            offers = {hook: _items(hook, caller(hook, others)(), provider)
                      for hook in ("seqloom_stages", "seqloom_sorters", "seqloom_families", "seqloom_pipelines",
                                   "seqloom_maskers", "seqloom_readers", "seqloom_writers")}
            added = self._checked(offers, provider)
        except pluggy.PluginValidationError as error:
            self._manager.unregister(plugin, name)
            raise PluginError(f"plugin {provider}: {error}") from None
        except BaseException:
            self._manager.unregister(plugin, name)
            raise
        for table, key, item in added:
            table[key] = item
        self.plugins[name] = provider

    def _checked(self, offers: dict[str, list], provider: str) -> list[tuple[dict, Any, Any]]:
        added: list[tuple[dict, Any, Any]] = []
        claims: dict[tuple[str, ...], str] = {}
        tables: list[tuple[str, str, type, dict, Callable[[Any], Any]]] = [
            ("seqloom_stages", "stage", Stage, self._stages, lambda s: (s.name, s.backend)),
            ("seqloom_sorters", "sorter", Sorter, self._sorters, lambda s: (s.name, s.backend)),
            ("seqloom_families", "family", Family, self._families, lambda f: f.name),
            ("seqloom_pipelines", "pipeline", Pipeline, self._pipelines, lambda p: p.name),
            ("seqloom_maskers", "masker", Masker, self._maskers, lambda m: m.name),
            ("seqloom_readers", "reader", Reader, self._readers, lambda r: r.name),
            ("seqloom_writers", "writer", Writer, self._writers, lambda w: w.name),
        ]
        for hook, what, base, table, key_of in tables:
            for item in offers[hook]:
                try:
                    if not isinstance(item, Deferred):
                        _check(item, what, base, provider)
                    key = key_of(item)
                except (AttributeError, TypeError) as error:
                    raise PluginError(f"{what} {item!r} of plugin {provider} is not whole: {error}") from None
                label = (what, *key) if isinstance(key, tuple) else (what, key)
                other = claims.get(label) or self._providers.get(label)
                if other:
                    raise PluginError(f"{what} '{' '.join(label[1:])}' is provided by two plugins: {other} "
                                      f"and {provider}")
                claims[label] = provider
                added.append((table, key, item))
        self._providers.update(claims)
        return added

    def _loaded(self, what: str, table: dict[Any, Any], key: Any) -> Any:
        """An entry of a table, imported and checked at its first use."""
        item = table[key]
        if isinstance(item, Deferred):
            label = (what, *key) if isinstance(key, tuple) else (what, key)
            provider = self._providers[label]
            try:
                item = item.load()
                _check(item, what, _BASES[what], provider)
            except (AttributeError, TypeError, ImportError) as error:
                raise PluginError(f"{what} '{' '.join(label[1:])}' of plugin {provider} can't be loaded: {error}"
                                  ) from error
            table[key] = item
        return item

    def _listed(self, what: str, table: dict[Any, Any], keys: Iterable[Any] | None = None) -> Iterator[Any]:
        """Entries of a table by key, each loaded when it is its turn; those that can't be are noted in ``problems``."""
        for key in sorted(table) if keys is None else keys:
            try:
                yield self._loaded(what, table, key)
            except PluginError as error:
                self.problems[f"{what} {' '.join(key) if isinstance(key, tuple) else key}"] = str(error)

    def load_all(self, backends: Collection[str]) -> None:
        """Import all that is there for some back ends and what has none; who asks for what can't be loaded is told."""
        for what, table in (("stage", self._stages), ("sorter", self._sorters), ("family", self._families),
                            ("masker", self._maskers), ("reader", self._readers), ("writer", self._writers)):
            for key in sorted(table, key=str):
                with suppress(Exception):
                    if not isinstance(key, tuple) or key[1] in backends:
                        self._loaded(what, table, key)

    def stage(self, name: str, backend: str = "auto") -> type[Stage]:
        """The implementation of a stage for a back end; "auto" prefers cuda where a device is there, then cpu."""
        return self._choose("stage", self._stages, name, backend)

    def has_stage(self, name: str, backend: str) -> bool:
        """Whether a stage has an implementation for this very back end."""
        return (name, backend) in self._stages

    def sorter(self, name: str, backend: str = "auto") -> Sorter:
        """A sorter. A stage on a back end that has no such sorter of its own uses the next slower one's."""
        for candidate in _SORTER_BACKENDS.get(backend, ("cpu", "reference")):
            if (name, candidate) in self._sorters:
                return self._loaded("sorter", self._sorters, (name, candidate))()
        raise UnknownNameError("sorter", name, list(self.sorters(backend)))

    def provider(self, what: str, name: str, backend: str = "") -> str:
        """The plugin, with its package, that something comes from, such as a stage with its back end."""
        return self._providers.get((what, name, backend) if backend else (what, name), "that nobody registered")

    def _choose(self, what: str, table: dict[tuple[str, str], Any], name: str, backend: str) -> Any:
        if backend != "auto" and backend not in BACKENDS:
            raise UnknownNameError("back end", backend, ["auto", *BACKENDS])
        there = [b for b in BACKENDS if (name, b) in table]
        if not there:
            raise UnknownNameError(what, name, sorted({n for n, _ in table}))
        if backend == "auto":
            from .backends import cuda_available

            wanted = [b for b in ("cuda", "cpu", "reference") if b in there and (b != "cuda" or cuda_available())]
            if not wanted:
                raise BackendError(f"{what} '{name}' runs on CUDA devices only, and none can be used here; fill "
                                   "its slot with another stage")
            return self._loaded(what, table, (name, wanted[0]))
        if backend not in there:
            raise BackendError(f"{what} '{name}' has no {backend} implementation; it has: {', '.join(there)}")
        if backend == "cuda":
            from .backends import open_ahead

            open_ahead()
        return self._loaded(what, table, (name, backend))

    def _named(self, what: str, table: dict[str, Any], name: str) -> Any:
        """The entry of a table that a person named."""
        if name not in table:
            raise UnknownNameError(_WORDS.get(what, what), name, sorted(table))
        return self._loaded(what, table, name)

    def family(self, name: str) -> type[Family]:
        return self._named("family", self._families, name)

    def pipeline(self, name: str) -> Pipeline:
        return self._named("pipeline", self._pipelines, name)

    def masker(self, name: str) -> type[Masker]:
        return self._named("masker", self._maskers, name)

    def reader(self, name: str) -> type[Reader]:
        return self._named("reader", self._readers, name)

    def writer(self, name: str) -> type[Writer]:
        return self._named("writer", self._writers, name)

    def pipelines(self) -> list[Pipeline]:
        return [self._pipelines[n] for n in sorted(self._pipelines)]

    def readers(self) -> Iterator[type[Reader]]:
        """All readers; each is loaded when it is its turn, so that who finds the right one has loaded no other."""
        return self._listed("reader", self._readers)

    def outputs(self, family: str) -> list[str]:
        """Names of the writers that write a file beside the main output of a family's searches; none is imported."""
        return [name for name, item in self._writers.items() if family in item.beside]

    def writers(self) -> list[type[Writer]]:
        return list(self._listed("writer", self._writers))

    def stages(self) -> list[type[Stage]]:
        return list(self._listed("stage", self._stages))

    def stage_backends(self, name: str) -> list[str]:
        """Back ends on which a stage is there; none is imported."""
        return [backend for backend in BACKENDS if (name, backend) in self._stages]

    def one_of_each(self, family: str) -> list[type[Stage]]:
        """Of every stage one implementation, the quickest to import: what help needs for searches of a family.

        Stages that are there for CUDA devices alone are loaded where a device is, if they come from the family's own
        plugin, since importing them imports a compiler.
        """
        from .backends import device_in_sight

        keys: dict[tuple[str, str], None] = {}
        for name in {name for name, _ in self._stages}:
            backend = min(self.stage_backends(name), key=("reference", "cpu", "cuda").index)
            own = self.provider("stage", name, backend) == self.provider("family", family)
            mine = own and device_in_sight()
            if backend != "cuda" or mine or not isinstance(self._stages[name, backend], Deferred):
                keys[name, backend] = None
        return list(self._listed("stage", self._stages, sorted(keys)))

    def sorters(self, backend: str = "auto", threads: int = 1,
                device_memory: int | None = None) -> Mapping[str, Sorter]:
        """Every sorter that the back end can use, by name, as ``sorter`` chooses them; loaded when asked for."""
        usable = {n for n, b in self._sorters if b in _SORTER_BACKENDS.get(backend, ("cpu", "reference"))}
        return _Sorters(sorted(usable), lambda name: self.sorter(name, backend), threads, device_memory)

    def inventory(self) -> Iterable[tuple[str, str, str, str, str]]:
        """(what, name, back end, provider, help) of everything registered, in order of name."""
        for label in sorted(self._providers):
            what, name, backend = label[0], label[1], label[2] if len(label) > 2 else ""
            table = getattr(self, "_families" if what == "family" else f"_{what}s")
            found = list(self._listed(what, table, [(name, backend) if what in ("stage", "sorter") else name]))
            if not found:
                continue
            item = found[0]
            help_text = item.help if isinstance(item, Pipeline) else ((item.__doc__ or "").strip().split("\n")[0])
            yield (f"{item.kind} stage" if what == "stage" else what), name, backend, self._providers[label], help_text


class _Sorters(Mapping[str, Sorter]):
    """Sorters by name, of which each is loaded when it is first asked for."""

    def __init__(self, names: list[str], load: Callable[[str], Sorter], threads: int,
                 device_memory: int | None) -> None:
        self._names, self._load, self._threads, self._device_memory = names, load, threads, device_memory
        self._loaded: dict[str, Sorter] = {}

    def __getitem__(self, name: str) -> Sorter:
        if name not in self._loaded:
            if name not in self._names:
                raise KeyError(name)
            sorter = self._load(name)
            sorter.threads, sorter.device_memory = self._threads, self._device_memory
            self._loaded[name] = sorter
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _items(hook: str, lists: list, provider: str) -> list:
    """What a plugin's hook gave (pluggy wraps it in a list)."""
    for items in lists:
        if not isinstance(items, list | tuple):
            raise PluginError(f"{hook} of plugin {provider} must give a list, not {items!r}")
    return [item for items in lists for item in items]


def _check(item: Any, what: str, base: type, provider: str) -> None:
    """Refuse what isn't whole, or a stage of a kind or back end that isn't known."""
    _check_whole(item, base)
    if what == "stage" and (item.kind not in KINDS or item.backend not in BACKENDS):
        raise PluginError(f"stage '{item.name}' of plugin {provider} has kind '{item.kind}' and back end "
                          f"'{item.backend}'; kinds are {', '.join(KINDS)}, back ends {', '.join(BACKENDS)}")


def _check_whole(item: Any, base: type) -> None:
    """Raise ``TypeError`` or ``AttributeError`` for what isn't a pipeline, or a class with all its methods."""
    if base is Pipeline:
        if not isinstance(item, Pipeline):
            raise TypeError("it is no Pipeline")
    elif not (isinstance(item, type) and issubclass(item, base)):
        raise TypeError(f"it is no class derived from {base.__name__}")
    elif missing := sorted(getattr(item, "__abstractmethods__", ())):
        raise TypeError(f"it lacks {', '.join(missing)}")
    elif base is Stage:
        for name in ("name", "kind", "side", "provides") if issubclass(item, IndexStage) else ("name", "kind", "gives"):
            getattr(item, name)
        if outputs := [info.name for info in option_infos(item.Options) if info.output]:  # type: ignore[attr-defined]
            raise TypeError(f"its option '{outputs[0]}' names a file to write, which options of families alone may")
        for column in getattr(item, "columns", ()):
            if not column.name.isidentifier() or column.name != column.name.lower() or column.type not in COLUMN_TYPES:
                raise TypeError(f"column '{column.name}' of type {column.type}: names are lower-case identifiers, "
                                f"types {', '.join(COLUMN_TYPES)}")
