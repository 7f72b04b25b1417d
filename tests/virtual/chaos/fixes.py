"""Fixes, as what is taken away to see whether anybody notices: the row it is for, the edit, where to look."""

from __future__ import annotations

from typing import NamedTuple


class Edit(NamedTuple):
    file: str
    old: str
    new: str


class Fix(NamedTuple):
    """`faults` and `tenants`: a seed that brings one of these should notice; or a property does."""

    row: str
    undone: str
    edits: tuple[Edit, ...]
    faults: tuple[str, ...] = ()
    tenants: tuple[str, ...] = ()
    property: str = ""


READINGS = "trimtab/live/measure/readings.py"
STATUS_WRITER = "trimtab/live/tell/status_writer.py"
UNGUARDED = (  # a status that bears neither a version nor a uid
    Edit(STATUS_WRITER, """for name in ("name", "namespace", "uid")}""", """for name in ("name", "namespace")}"""),
    Edit(STATUS_WRITER, """meta | {"resourceVersion": version}""", "meta"),
)
FIXES = (
    Fix(
        "C1 a name that climbs",
        "names have no pattern and paths no guard",
        (
            Edit("trimtab/kinds/names.py", "max_length=253, pattern=DNS_NAME", "max_length=253"),
            Edit(
                "trimtab/wire/resources.py",
                """if name in ("", ".", "..") or "/" in name or "%" in name or not name.isprintable():""",
                "if not names:",
            ),
            Edit("trimtab/wire/resources.py", "quote(name, safe=UNQUOTED)", "name"),
        ),
        tenants=("reaches",),
    ),
    Fix(
        "C2 a forged Recommendation",
        "a target's namespace is believed",
        (
            Edit(
                "trimtab/advisor/adopt.py",
                "    if target.namespace not in (None, record.metadata.namespace):\n        return None\n",
                "",
            ),
            Edit(
                "trimtab/advisor/adopt.py",
                '"name": target.name, "namespace": record.metadata.namespace}',
                '"name": target.name, "namespace": target.namespace or record.metadata.namespace}',
            ),
        ),
        tenants=("forged",),
    ),
    Fix(
        "H3 caches that stopped",
        "nothing is doubted",
        (Edit("trimtab/live/look/stale_view.py", "for axis in Axis if why]", "for axis in ()]"),),
        faults=("Refusing /api/v1/pods",),
    ),
    Fix(
        "H8 the fence",
        "the lease is asked before the tick alone",
        (
            Edit(
                "trimtab/wire/http.py",
                "        if self.fence is None or request.reads:\n            return None\n",
                "        return None\n",
            ),
        ),
        property="tests/virtual/test_meanwhile.py",
    ),
    Fix(
        "H9 an Object metric on a Namespace",
        "the name that it gives is asked for",
        (
            Edit(
                "trimtab/live/measure/gather.py",
                '*(("", "") if kind == "Namespace" else (plural, name))',
                "plural, name",
            ),
        ),
        tenants=("spy",),
    ),
    Fix(
        "M1 a clock that is set",
        "what is remembered stays where it was",
        (Edit("trimtab/live/operator.py", "                self.ticker.clock_set(by_s)\n", ""),),
        property="tests/virtual/test_time.py",
    ),
    Fix(
        "M1 a memory from the future",
        "every date is kept",
        (
            Edit(
                "trimtab/core/remember.py",
                "    return _redated(memory, lambda dated: min(dated, at))\n",
                "    return memory\n",
            ),
        ),
        property="tests/virtual/test_time.py",
    ),
    Fix(
        "M1 samples from the future",
        "only old ones are stale",
        (Edit(READINGS, "abs(at - reading.at) > stale", "at - reading.at > stale"),),
        faults=("SpoiledMetrics",),
    ),
    Fix(
        "a wrong clock of the node",
        "nothing is compared with the API server's clock",
        (Edit("trimtab/wire/clock.py", "return cluster if abs(cluster - own) > EXACT_S else own", "return own"),),
        property="tests/virtual/test_time.py",
    ),
    Fix(
        "M6 pods of another namespace",
        "an owner's uid is enough",
        (
            Edit(
                "trimtab/live/look/members.py",
                "return (meta.namespace, uid) if uid else None",
                'return ("", uid) if uid else None',
            ),
            Edit(
                "trimtab/live/look/members.py",
                "return [(namespace, owner) for owner in (uid, *self._sets.get((namespace, uid), {}).values())]",
                'return [("", owner) for owner in (uid, *self._sets.get(("", uid), {}).values())]',
            ),
        ),
        faults=("ForeignPods",),
    ),
    Fix(
        "one object stops the others",
        "its failure is let through",
        (
            Edit(
                "trimtab/live/guard.py",
                "                except Exception as error:\n",
                "                except ZeroDivisionError as error:\n",
            ),
            Edit(
                "trimtab/live/guard.py",
                "            except Exception as error:\n                self._failed(",
                "            except ZeroDivisionError as error:\n                self._failed(",
            ),
        ),
        tenants=("typed",),
    ),
    Fix(
        "a window over a restart",
        "a new leader begins without a wish",
        (Edit("trimtab/core/remember.py", "wanted=seed.wanted, planned=seed.planned", "wanted=(), planned=()"),),
        faults=("Killed", "DamagedJournal"),
    ),
    Fix(
        "H8 a status that comes late",
        "it bears neither a version nor a uid",
        UNGUARDED,
        property="tests/virtual/test_meanwhile.py",
    ),
    Fix(
        "H3 edits that nobody sees",
        "only pods and workloads are doubted",
        (Edit("trimtab/live/look/stale_view.py", "[asked_by, cluster.namespaces, *measured]", "measured"),),
        property="tests/virtual/test_meanwhile.py",
    ),
    Fix(
        "another workload",
        "what is remembered of one is taken for the other's",
        (
            Edit(
                "trimtab/live/look/memory.py",
                "return memory if memory.target == target else",
                "return memory if memory.target else",
            ),
        ),
        property="tests/virtual/test_meanwhile.py",
    ),
    Fix(
        "a kind that cannot be read",
        "everybody waits for it",
        (Edit("trimtab/live/look/cluster.py", "if not feed.settled and not feed.unseen]", "if not feed.settled]"),),
        faults=("Unread",),
    ),
    Fix(
        "who may scale by such a kind",
        "nobody thinks of who may scale by it",
        (
            Edit(
                "trimtab/live/look/stale_view.py",
                "if not any(feed.unseen for feed in scale + resize):",
                "if True:",
            ),
        ),
        property="tests/virtual/test_unread_kinds.py",
    ),
    Fix(
        "what belongs to no namespace",
        "it is scaled if it has a scale",
        (
            Edit(
                "trimtab/wire/resources.py",
                """found.namespaced and f"{found.name}/scale" in names""",
                """f"{found.name}/scale" in names""",
            ),
        ),
        property="tests/virtual/test_tenants.py",
    ),
    Fix(
        "names in PromQL",
        "values are not escaped",
        (
            Edit(
                "trimtab/promql.py", "return json.dumps(value, ensure_ascii=False)", "return chr(34) + value + chr(34)"
            ),
        ),
        property="tests/history/test_hostile_labels.py",
    ),
    Fix(
        "owners that anybody tells",
        "names are not compared with the namespaces that were asked for",
        (
            Edit(
                "trimtab/history/pod_owners.py",
                "if link.is_named and (not namespaces or link.namespace in namespaces)",
                "if link",
            ),
        ),
        property="tests/history/test_hostile_labels.py",
    ),
    Fix(
        "a reinstalled operator",
        "a freeze holds every installation",
        (
            Edit(
                "trimtab/live/look/cluster.py",
                "return bool(self.uid) and self._freeze != self.uid and UID.fullmatch(self._freeze) is not None",
                "return False",
            ),
        ),
        faults=("Reinstalled",),
    ),
    Fix(
        "long annotations",
        "all of them are kept",
        (Edit("trimtab/wire/objects.py", "        return cls(read)\n", "        return cls(plain)\n"),),
        property="tests/wire/test_kept.py",
    ),
    Fix(
        "answers without an end",
        "series are not counted",
        (Edit("trimtab/wire/prometheus.py", "if len(items) > MOST_SERIES:", "if len(items) > 10**9:"),),
        property="tests/wire/test_bounds.py",
    ),
    Fix(
        "degraded is ready",
        "a kind that is not followed makes it unready",
        (Edit("trimtab/live/operator.py", "        if not self._was_ready:", "        if self._troubles():"),),
        property="tests/virtual/test_unread_kinds.py",
    ),
    Fix(
        "shares of the journal",
        "the oldest go, whoever wrote most",
        (Edit("trimtab/journal.py", "if size > most else []", "if most >= 0 else []"),),
        property="tests/test_journal.py",
    ),
    Fix(
        "what reaches a terminal",
        "control characters are printed",
        (
            Edit(
                "trimtab/cli/printable.py", "return _WORDS.sub(lambda words: printable(words[0]), text)", "return text"
            ),
        ),
        property="tests/cli/test_streams.py",
    ),
    Fix(
        "a command to copy",
        "arguments are not quoted",
        (
            Edit(
                "trimtab/web/whatif.py",
                'return join([kind, name.name, "-n", name.namespace])',
                'return " ".join([kind, name.name, "-n", name.namespace])',
            ),
        ),
        property="tests/web/test_whatif.py",
    ),
    Fix(
        "the journal over the operator's port",
        "everybody may ask",
        (Edit("trimtab/web/operator.py", "return request.remote in OWN_MACHINE", "return True"),),
        property="tests/web/test_operator.py",
    ),
    Fix(
        "files that unpack without an end",
        "their size is not looked at",
        (Edit("trimtab/history/read_file.py", "if len(held) > TEXT_BYTES:", "if not path:"),),
        property="tests/history/test_files.py",
    ),
    Fix(
        "pods without a node",
        "nobody says so",
        (
            Edit(
                "trimtab/live/tell/conditions.py",
                "for pod in pods if pod.waits_since is not None]",
                "for pod in () if pod.waits_since is not None]",
            ),
        ),
        property="tests/virtual/test_on_call.py",
    ),
    Fix(
        "advice in turns",
        "one namespace may take all places",
        (Edit("trimtab/live/measure/background.py", "Turns(at_once, share=1, kept=1)", "Turns(1, share=100)"),),
        property="tests/virtual/test_on_call.py",
    ),
)
