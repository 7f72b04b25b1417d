"""An API server in this process, without sockets: real paths, versions, status codes and watches, and an audit list.

Schemas are not enforced; a path that a real server would not have is answered with 404, as there.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import unquote

import msgspec

from tests.virtual import fields
from tests.virtual.fields import Entry, Object, Ownership, encoded
from tests.virtual.objects import Collection, Objects, key_of
from tests.virtual.served import BUILT_IN, OTHERS, Served, custom
from tests.virtual.watching import Watching
from trimtab.wire.from_kubernetes import rfc3339
from trimtab.wire.kube import Patch
from trimtab.wire.resources import Resource

AUDITED = 200_000  # requests that are remembered
ADMIN = "kubectl"
HTTP_DATE = "%a, %d %b %Y %H:%M:%S GMT"
ACCOUNT = "11111111-1111-4111-8111-111111111111"  # of the operator, until it is installed anew
METADATA_LIST = "PartialObjectMetadataList"


class Call(msgspec.Struct, frozen=True):
    """One request as it arrives."""

    who: str
    method: str
    path: str
    params: Mapping[str, str]
    body: bytes | None
    content_type: str
    accept: str = "application/json"


class Reply(NamedTuple):
    status: int
    body: bytes
    headers: Mapping[str, str] = {}


class Audited(msgspec.Struct, frozen=True):
    at: float
    who: str
    verb: str
    path: str
    body: Any
    status: int


class Place(NamedTuple):
    """Where a path leads: a collection, an object, a part of one."""

    group: str
    version: str
    namespace: str = ""
    plural: str = ""
    name: str = ""
    part: str = ""
    api_version: str = ""


GROUPS = Place("", "")  # the list of what is served


class Denied(Exception):
    """A request that ends with a Status."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.reply = Reply(status, status_body(status, reason, message))


def status_body(status: int, reason: str, message: str) -> bytes:
    kind = {"kind": "Status", "apiVersion": "v1", "status": "Failure"}
    return encoded(kind | {"reason": reason, "message": message, "code": status})


Aggregated = Callable[[tuple[str, ...], Mapping[str, str]], Reply]  # an API that another server answers for


class ApiServer:
    """`handle` answers anything but a watch at once; `watch` opens a stream."""

    def __init__(self, now: Callable[[], float], kinds: Iterable[Served] | None = None) -> None:
        self.now, self.store = now, Objects(now)
        self.clock = now  # that the dates of answers are of
        self.served: dict[tuple[str, str], Served] = {}
        self.aggregated: dict[str, Aggregated] = {}  # by group
        self.audit: deque[Audited] = deque(maxlen=AUDITED)
        self.watching = Watching(self.store)
        self.accounts: dict[str, str] = {}  # uids of ServiceAccounts, by who asks; others share one
        self.streams_lists = True  # sendInitialEvents, from Kubernetes 1.32 on
        for served in (*BUILT_IN, *((*custom(), *OTHERS) if kinds is None else kinds)):
            self.install(served)

    def install(self, served: Served) -> None:
        self.served[served.resource.api_version, served.resource.plural] = served
        self.store.serve(served.resource)

    def uninstall(self, resource: Resource) -> None:
        """As deleting a CRD does: its objects go, its watches end, its paths are unknown."""
        for namespace, name in list(self.store.of(resource).items):
            self.store.delete(resource, namespace, name)
        self.watching.cut(resource.plural)
        del self.served[resource.api_version, resource.plural]

    def handle(self, call: Call) -> Reply:
        body = msgspec.json.decode(call.body) if call.body else None
        try:
            verb, reply = self._answer(call, body)
        except Denied as denied:
            verb, reply = call.method.lower(), denied.reply
        self.note(call, verb, body, reply.status)
        date = time.strftime(HTTP_DATE, time.gmtime(self.clock()))
        return Reply(reply.status, reply.body, {**reply.headers, "Date": date})

    def note(self, call: Call, verb: str, body: Any, status: int) -> None:
        self.audit.append(Audited(self.now(), call.who, verb, call.path, body, status))

    def collection(self, path: str) -> Collection:
        """What a path is about."""
        return self._collection(place_of(path))

    def put(self, path: str, body: Object, manager: str = ADMIN) -> Object:
        """An object at its path, as it is, written by somebody; name and namespace are taken from the path."""
        place = place_of(path)
        served = self._served(place)
        meta = {"name": place.name} | ({"namespace": place.namespace} if place.namespace else {})
        whole = {**body, "metadata": body.get("metadata", {}) | meta}
        return self.store.write(served.resource, whole, Entry(manager))

    def _answer(self, call: Call, body: Any) -> tuple[str, Reply]:
        place = place_of(call.path)
        if place == GROUPS:
            return "get", self._groups()
        if place.group in self.aggregated:
            return "get", self.aggregated[place.group](segments(call.path)[2:], call.params)
        if not place.plural:
            return "get", self._discover(place)
        if place.plural == "selfsubjectreviews":
            return "get", self._who_is(call.who)  # nothing is stored
        served = self._served(place)
        if call.method == "GET" and not place.name:
            return "list", self._list(place, call)
        if call.method == "GET":
            return "get", Reply(200, self._shown(served, place))
        if call.method == "POST" and not place.name:
            return "create", self._create(served, place, body, call)
        if call.method == "PATCH" and place.name:
            return "patch", self._patch(served, place, body, call)
        if call.method == "DELETE" and place.name:
            return "delete", self._delete(served, place, body or {})
        raise Denied(405, "MethodNotAllowed", f"{call.method} {call.path}")

    def _served(self, place: Place) -> Served:
        served = self.served.get((place.api_version, place.plural))
        if served is None or (place.part and place.part not in served.parts):
            raise Denied(404, "NotFound", "the server could not find the requested resource")
        return served

    def _collection(self, place: Place) -> Collection:
        return self.store.of(self._served(place).resource)

    def _who_is(self, who: str) -> Reply:
        name = who if who == ADMIN else f"system:serviceaccount:trimtab-system:{who}"
        info = {"username": name} | ({} if who == ADMIN else {"uid": self.accounts.get(who, ACCOUNT)})
        return Reply(201, encoded({"kind": "SelfSubjectReview", "status": {"userInfo": info}}))

    def _groups(self) -> Reply:
        versions = sorted({served.resource.api_version for served in self.served.values()})
        rows = [{"versions": [{"groupVersion": version}]} for version in versions if "/" in version]
        return Reply(200, encoded({"kind": "APIGroupList", "groups": rows}))

    def _discover(self, place: Place) -> Reply:
        found = [served for served in self.served.values() if served.resource.api_version == place.api_version]
        if not found:
            raise Denied(404, "NotFound", "the server could not find the requested resource")
        rows = []
        for served in found:
            resource = served.resource
            row = {"name": resource.plural, "kind": resource.kind, "namespaced": resource.namespaced}
            rows += [row, *(row | {"name": f"{resource.plural}/{part}"} for part in sorted(served.parts))]
        return Reply(200, encoded({"kind": "APIResourceList", "groupVersion": place.api_version, "resources": rows}))

    def _list(self, place: Place, call: Call) -> Reply:
        params, metadata_only = call.params, METADATA_LIST in call.accept
        items = selected(self._collection(place), place.namespace, params)
        start, limit = int(params.get("continue") or 0), int(params.get("limit") or 0)
        page = items[start : start + limit] if limit else items
        meta: Object = {"resourceVersion": str(self.store.version)}
        if limit and start + limit < len(items):
            meta["continue"] = str(start + limit)
        if metadata_only:
            head = {"kind": METADATA_LIST, "apiVersion": "meta.k8s.io/v1", "metadata": meta}
            return Reply(200, encoded(head | {"items": [partial(found) for found in page]}))
        return Reply(200, encoded({"kind": "List", "apiVersion": "v1", "metadata": meta, "items": page}))

    def _found(self, served: Served, place: Place) -> Object:
        found = self.store.get(served.resource, place.namespace, place.name)
        if found is None:
            raise Denied(404, "NotFound", f'{served.resource.plural} "{place.name}" not found')
        return found

    def _shown(self, served: Served, place: Place) -> bytes:
        found = self._found(served, place)
        if place.part == "scale":
            return encoded(scale_of(found))
        owners = self.store.of(served.resource).owners[key_of(found)]
        meta = found["metadata"] | {"managedFields": fields.managed_fields(owners)}
        return encoded(found | {"metadata": meta})

    def _create(self, served: Served, place: Place, body: Object, call: Call) -> Reply:
        meta = dict(body.get("metadata") or {})
        if "name" not in meta and "generateName" in meta:
            meta["name"] = f"{meta['generateName']}{self.store.version:05d}"
        if not meta.get("name"):
            raise Denied(422, "Invalid", "metadata.name: Required value: name or generateName is required")
        if meta.setdefault("namespace", place.namespace) != place.namespace:
            raise Denied(400, "BadRequest", "the namespace of the object does not match the namespace on the request")
        if not place.namespace:
            del meta["namespace"]
        if self.store.get(served.resource, place.namespace, meta["name"]) is not None:
            raise Denied(409, "AlreadyExists", f'{served.resource.plural} "{meta["name"]}" already exists')
        entry = Entry(call.params.get("fieldManager") or call.who)
        return Reply(201, encoded(self.store.write(served.resource, {**body, "metadata": meta}, entry)))

    def _patch(self, served: Served, place: Place, body: Object, call: Call) -> Reply:
        if call.content_type == Patch.APPLY:
            return self._apply(served, place, body, call)
        now = self._found(served, place)
        self._check(now, body)
        how = fields.strategic if call.content_type == Patch.STRATEGIC else fields.merged
        after = self._within(served, place, now, how(now, _of_part(body, place)))
        if (after.get("spec") or {}).get("replicas", 0) < 0:
            raise Denied(422, "Invalid", "spec.replicas: must be greater than or equal to 0")
        entry = Entry(call.params.get("fieldManager") or call.who, "Update", place.part)
        written = self.store.write(served.resource, after, entry)
        return Reply(200, encoded(scale_of(written) if place.part == "scale" else written))

    def _apply(self, served: Served, place: Place, body: Object, call: Call) -> Reply:
        now = self.store.get(served.resource, place.namespace, place.name)
        if now is None and place.part:
            self._found(served, place)
        self._check(now or {}, body)
        held = self.store.of(served.resource)
        owners = held.owners.get((place.namespace, place.name), {})
        entry = Entry(call.params.get("fieldManager") or call.who, "Apply", place.part)
        meta: Object = {"name": place.name} | ({"namespace": place.namespace} if place.namespace else {})
        base = now or {"metadata": meta}
        wanted = self._within(served, place, {}, body)
        others = fields.conflicts(owners, entry, base, wanted)
        if others and call.params.get("force") != "true":
            raise Denied(409, "Conflict", f"Apply failed with conflicts with {', '.join(others)}")
        after, owners = fields.applied(base, wanted, owners, entry, rfc3339(self.now()))
        after = after | {"metadata": base["metadata"] | after["metadata"] | meta}
        return Reply(200 if now else 201, encoded(self.store.put(served.resource, after, owners)))

    def _check(self, now: Object, body: Object) -> None:
        """A version or uid in the body guards the write."""
        meta, known = body.get("metadata") or {}, now.get("metadata") or {}
        for name in ("resourceVersion", "uid"):
            if now and meta.get(name) not in (None, "", known.get(name)):
                raise Denied(409, "Conflict", "the object has been modified; please apply your changes to the latest")

    def _within(self, served: Served, place: Place, now: Object, after: Object) -> Object:
        """A part's door changes that part alone, the main door everything else."""
        if place.part in ("status", "scale", "resize"):
            head = {"metadata": after["metadata"]} if "metadata" in after else {}
            name = "status" if place.part == "status" else "spec"
            return now | ({name: after[name]} if name in after else {}) | ({} if now else head)
        if "status" in served.parts:
            kept = {"status": now["status"]} if "status" in now else {}
            return {name: value for name, value in after.items() if name != "status"} | kept
        return after

    def _delete(self, served: Served, place: Place, body: Object) -> Reply:
        found = self._found(served, place)
        uid = (body.get("preconditions") or {}).get("uid")
        if uid not in (None, found["metadata"]["uid"]):
            raise Denied(409, "Conflict", "the UID in the precondition does not match")
        return Reply(200, encoded(self.store.delete(served.resource, place.namespace, place.name)))


def _of_part(body: Object, place: Place) -> Object:
    """What a patch may say: versions are checked, not written; of a scale only the replicas."""
    if place.part == "scale":
        return {"spec": {"replicas": body["spec"]["replicas"]}}
    meta = {name: value for name, value in (body.get("metadata") or {}).items() if name in ("labels", "annotations")}
    said = {name: value for name, value in body.items() if name != "metadata"}
    return said | {"metadata": meta} if meta else said


def scale_of(found: Object) -> Object:
    names = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {name: value for name, value in found["metadata"].items() if name in names},
        "spec": {"replicas": (found.get("spec") or {}).get("replicas", 1)},
        "status": {"replicas": (found.get("status") or {}).get("replicas", 0), "selector": ""},
    }


def partial(found: Object) -> Object:
    """Who asks for metadata alone gets no more."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": found["metadata"]}


def selected(held: Collection, namespace: str, params: Mapping[str, str]) -> list[Object]:
    keep = selector(namespace, params)
    return [found for found in held.items.values() if keep(found)]


def selector(namespace: str, params: Mapping[str, str]) -> Callable[[Object], bool]:
    wanted = [part for part in (params.get("labelSelector") or "").split(",") if part]
    labels = dict(part.split("=", 1) for part in wanted if "=" in part)
    present = {part for part in wanted if "=" not in part}
    names = [_field(part) for part in (params.get("fieldSelector") or "").split(",") if part]

    def keep(found: Object) -> bool:
        meta = found["metadata"]
        if namespace and meta.get("namespace", "") != namespace:
            return False
        for field, equal, value in names:
            if (meta.get(field, "") == value) is not equal:
                return False
        if not wanted:
            return True
        has = meta.get("labels") or {}
        return labels.items() <= has.items() and present <= has.keys()

    return keep


def _field(part: str) -> tuple[str, bool, str]:
    """metadata.FIELD=VALUE or metadata.FIELD!=VALUE, of the two fields that every kind can be chosen by."""
    label, _, value = part.partition("=")
    field = label.removesuffix("!").removeprefix("metadata.")
    if field not in ("name", "namespace"):
        raise Denied(400, "BadRequest", f"field label not supported: {label}")
    return field, not label.endswith("!"), value


@lru_cache(maxsize=10_000)
def segments(path: str) -> tuple[str, ...]:
    return tuple(unquote(part) for part in path.split("/")[1:])


@lru_cache(maxsize=10_000)
def place_of(path: str) -> Place:
    """/api/v1/... and /apis/GROUP/VERSION/...; anything else is no path of this server."""
    parts = segments(path)
    if parts == ("apis",):
        return GROUPS
    head, rest = (2, parts[2:]) if parts[0] == "api" else (3, parts[3:])
    if len(parts) < head or parts[0] not in ("api", "apis") or "" in parts:
        raise Denied(404, "NotFound", "the server could not find the requested resource")
    group, version = ("", parts[1]) if head == 2 else (parts[1], parts[2])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces" and (len(rest) > 3 or rest[2] not in ("status",)):
        namespace, rest = rest[1], rest[2:]
    if len(rest) > 3:
        raise Denied(404, "NotFound", "the server could not find the requested resource")
    plural, name, part = [*rest, "", "", ""][:3]
    return Place(group, version, namespace, plural, name, part, f"{group}/{version}" if group else version)


__all__ = ["ADMIN", "ApiServer", "Audited", "Call", "Denied", "HTTPStatus", "Ownership", "Reply", "selector"]
