"""What every object has: metadata, the workload it points at, and the annotations by which people steer it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, ClassVar

from msgspec.structs import replace
from pydantic import ConfigDict
from pydantic.alias_generators import to_camel

from trimtab.errors import InvalidInput
from trimtab.kinds.amounts import INT32
from trimtab.kinds.annotations import BOOKKEEPING, PAUSED, PAUSED_UNTIL, PIN, PIN_UNTIL
from trimtab.kinds.manifest_part import ABSENT, FieldRule, ManifestPart, shown
from trimtab.kinds.names import ApiVersion, KindName, NamespaceName, ObjectName
from trimtab.policy import Admit, Mode
from trimtab.quantity import is_whole

_SERVER_FIELDS = frozenset(
    [
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "managedFields",
        "selfLink",
        "ownerReferences",
        "finalizers",
    ]
)
LONGEST_TIME, LONGEST_COUNT = 64, 10  # characters of annotations that are read


class Meta(ManifestPart):
    """Kubernetes' own metadata; what we do not read is kept as it is."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True, alias_generator=to_camel)

    name: ObjectName | None = None
    generate_name: str | None = None
    namespace: NamespaceName | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        if not self.name and not self.generate_name:
            yield InvalidInput("name", ABSENT, "give the object a name")

    def written(self, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """The names, labels and annotations people wrote, without what the server and other tools added."""
        kept = {name: value for name, value in self.manifest().items() if name not in _SERVER_FIELDS}
        for name in ("labels", "annotations"):
            values = kept.pop(name, {})
            if own := {key: text for key, text in values.items() if not key.startswith((*BOOKKEEPING, *without))}:
                kept[name] = own
        return kept


class ObjectRef(ManifestPart):
    """Another object of the same namespace."""

    api_version: ApiVersion | None = None
    """Group and version, such as apps/v1."""
    kind: KindName
    """Such as Deployment."""
    name: ObjectName
    """Its name, in the namespace of this object."""

    @property
    def text(self) -> str:
        return f"{self.kind}/{self.name}"


class TargetRef(ObjectRef):
    """The workload to scale; as Kubernetes has it, the group must be named (only ReplicationControllers have none)."""

    rules: ClassVar[tuple[FieldRule, ...]] = (
        FieldRule(
            lambda t: t.kind == "ReplicationController" or "/" in (t.api_version or ""),
            at="apiVersion",
            fix='write the group and version of the workload, such as "apps/v1"',
            cel="self.kind == 'ReplicationController' || (has(self.apiVersion) && self.apiVersion.contains('/'))",
        ),
    )


class Kind(ManifestPart):
    """One object a user applies; each kind adds its spec, `target` and `to_policy(at)`."""

    api_version: str
    kind: str
    metadata: Meta
    status: dict[str, Any] | None = None

    crd: ClassVar[bool] = True
    ignored: ClassVar[dict[str, str]] = {}
    """Fields that are accepted and change nothing, each with the reason; `[]` stands for every item of a list."""

    @property
    def name(self) -> str:
        return self.metadata.name or f"{self.metadata.generate_name}*"

    @property
    def namespace(self) -> str:
        return self.metadata.namespace or "default"

    @property
    def title(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def own_annotations(self) -> tuple[str, ...]:
        """The annotations of ours that only some kinds read."""
        return ()

    def problems(self) -> Iterator[InvalidInput]:
        yield from super().problems()
        readers = {PAUSED_UNTIL: when, PIN_UNTIL: when, PIN: _pin, PAUSED: flag}
        yield from annotation_problems(self.metadata.annotations, readers)

    def admit(self, mode: Mode = Mode.AUTO) -> Admit:
        """The mode of the spec, overruled by the annotations."""
        notes = self.metadata.annotations
        return replace(
            Admit(mode=Mode.PAUSED if flag(notes.get(PAUSED), "") else mode),
            paused_until=when(notes.get(PAUSED_UNTIL), ""),
            pin=_pin(notes.get(PIN), ""),
            pin_until=when(notes.get(PIN_UNTIL), ""),
        )


def annotation_problems(
    notes: Mapping[str, str], readers: Mapping[str, Callable[[str | None, str], object]]
) -> Iterator[InvalidInput]:
    """What is wrong with annotations that are read."""
    for key, read in readers.items():
        try:
            read(notes.get(key), "")
        except InvalidInput as problem:
            yield InvalidInput(f'metadata.annotations["{key}"]', problem.value, problem.fix)


def when(text: str | None, path: str) -> float | None:
    """Seconds since 1970 of an RFC 3339 time."""
    if text is None:
        return None
    at = seconds_of(text[:LONGEST_TIME])
    if at is None:
        raise InvalidInput(path, shown(text), 'write a time with its zone, such as "2026-11-15T18:00:00Z"')
    return at


def seconds_of(text: object) -> float | None:
    """Of an RFC 3339 time; None for everything else that may stand where one belongs.

    Nor is one beyond the years 1 to 9999 of UTC a time: whatever is read is told again, and nobody could write it.
    """
    try:
        moment = datetime.fromisoformat(text) if isinstance(text, str) else None
        if moment is None or moment.tzinfo is None:
            return None
        at = moment.timestamp()
        datetime.fromtimestamp(at, UTC)
    except (ValueError, OverflowError):
        return None
    return at


def _pin(text: str | None, path: str) -> int | None:
    if text is None:
        return None
    if not is_whole(text) or len(text) > LONGEST_COUNT or int(text) > INT32:
        raise InvalidInput(path, shown(text), 'write a whole number of replicas, such as "6"')
    return int(text)


def predictive(text: str | None, path: str) -> bool:
    """Predictive HPA's switch, in whatever quotes its page was copied with: true, 'True' and ’true’ are one word."""
    word = (text or "false").strip().strip("'\"\u2018\u2019\u201c\u201d`").lower()
    if word not in ("true", "false"):
        raise InvalidInput(path, text, 'write "true" or "false"')
    return word == "true"


def flag(text: str | None, path: str) -> bool:
    if text not in (None, "true", "false"):
        raise InvalidInput(path, shown(text), 'write "true" or "false"')
    return text == "true"
