"""An API server in memory: what a Kube asks is answered from a dict of objects, without a socket."""

from __future__ import annotations

import json
import re
from collections import Counter
from http import HTTPStatus
from typing import Any

import msgspec

from trimtab.errors import NotLeading
from trimtab.live.look.cluster import WatchedCluster
from trimtab.wire.access import Access
from trimtab.wire.budget import Budget
from trimtab.wire.http import Answer, Request
from trimtab.wire.kube import Kube

PATH = re.compile(
    r"(?P<root>/api/v1|/apis/[^/]+/[^/]+)(/namespaces/(?P<space>[^/]+))?/(?P<plural>[a-z]+)(?P<rest>/.*)?"
)
Object = dict[str, Any]


class MemoryApi:
    """`objects` by path; `asked` is (method, path) of every request; `refused` answers those with a status."""

    def __init__(self, leads: bool = True) -> None:
        self.fence = (lambda: 10.0) if leads else (lambda: 0.0)
        self.objects: dict[str, Object] = {}
        self.asked: list[tuple[str, str]] = []
        self.refused: dict[tuple[str, str], int] = {}
        self.served: dict[str, list[Object]] = {}  # discovery, by the path of a group version
        self.counts: Counter[tuple[str, str, int]] = Counter()
        self.budget = Budget()

    def kube(self) -> Kube:
        kube = Kube(Access("http://in-memory"))
        kube.http = self  # type: ignore[assignment]
        return kube

    def put(self, path: str, body: Object) -> None:
        """An object at its path; name and namespace are taken from it."""
        found = PATH.fullmatch(path)
        assert found is not None and found["rest"], path
        meta = {"name": found["rest"][1:], "namespace": found["space"] or "", "resourceVersion": "1"}
        self.objects[path] = body | {"metadata": meta | body.get("metadata", {})}

    def follow(self, cluster: WatchedCluster) -> None:
        """What an informer would have seen by now."""
        for feed in cluster.feeds:
            feed.store.synced.set()
            if feed.resource is not None:
                root, plural = feed.resource.root, feed.resource.plural
                for body in self._listed(root, plural, ""):
                    feed.store.put(msgspec.convert(body, feed.kind))

    async def close(self) -> None:
        pass

    async def send(self, request: Request) -> Answer:
        if not request.reads and self.fence() <= 0:
            raise NotLeading("the lease may have passed to another operator: nothing was written")
        self.asked.append((request.method, request.path))
        if status := self.refused.get((request.method, request.path)):
            return _answer(status, {"message": "not here"})
        body = json.loads(request.body) if request.body else {}
        answer: Answer = getattr(self, f"_{request.method.lower()}")(request.path, body)
        return answer

    def _get(self, path: str, _: Object) -> Answer:
        if path in self.served:
            return _answer(HTTPStatus.OK, {"resources": self.served[path]})
        found = PATH.fullmatch(path)
        assert found is not None, path
        if not found["rest"]:
            return _answer(HTTPStatus.OK, {"items": self._listed(found["root"], found["plural"], found["space"] or "")})
        return (
            _answer(HTTPStatus.OK, self.objects[path]) if path in self.objects else _answer(404, {"message": "absent"})
        )

    def _post(self, path: str, body: Object) -> Answer:
        meta = body["metadata"]
        made = f"{path}/{meta.get('name') or meta['generateName'] + str(len(self.objects))}"
        self.put(made, body)
        return _answer(HTTPStatus.CREATED, self.objects[made])

    def _delete(self, path: str, _: Object) -> Answer:
        return _answer(HTTPStatus.OK, self.objects.pop(path, {}))

    def _patch(self, path: str, body: Object) -> Answer:
        """A merge patch, or an apply; of the scale, which is its workload's, only the replicas."""
        whole = re.sub(r"/(scale|status|resize)$", "", path)
        if whole not in self.objects:
            self.put(whole, {})
        now = self.objects[whole]
        expected = body.get("metadata", {}).get("resourceVersion")
        if expected not in (None, now["metadata"]["resourceVersion"]):
            return _answer(HTTPStatus.CONFLICT, {"message": "somebody was faster"})
        _merge(now, {key: value for key, value in body.items() if key != "metadata"})
        now["metadata"]["labels"] = now["metadata"].get("labels", {}) | body.get("metadata", {}).get("labels", {})
        now["metadata"]["resourceVersion"] = str(int(now["metadata"]["resourceVersion"]) + 1)
        return _answer(HTTPStatus.OK, now)

    def _listed(self, root: str, plural: str, space: str) -> list[Object]:
        found = [(PATH.fullmatch(path), body) for path, body in self.objects.items()]
        return [
            body
            for match, body in found
            if match and (match["root"], match["plural"]) == (root, plural) and space in ("", match["space"])
        ]


def _merge(now: Object, patch: Object) -> None:
    for key, value in patch.items():
        if isinstance(value, dict) and isinstance(now.get(key), dict):
            _merge(now[key], value)
        else:
            now[key] = value


def _answer(status: int, body: Object) -> Answer:
    return Answer(status, "", json.dumps(body).encode(), 0.0)
