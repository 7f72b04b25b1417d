"""Names are names: what may stand in a path of the API server, in a label selector or in a metric, and nothing else.

The patterns go into the CustomResourceDefinitions too, so that the API server refuses what we would refuse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from trimtab.errors import InvalidInput

_LABEL = r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_WORD = r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
DNS_NAME = f"^{_SUBDOMAIN}$"
LABEL = f"^{_LABEL}$"
KIND = r"^[A-Za-z][A-Za-z0-9]{0,62}$"
LABEL_KEY = rf"^({_SUBDOMAIN}/)?{_WORD}$"
_NOT_IN_METRICS = r"\x00-\x20\x7f/%?#\\"  # what would end, split or rewrite the path that the metric is a part of
_METRIC = rf"^\.*[^{_NOT_IN_METRICS}.][^{_NOT_IN_METRICS}]*$"  # and neither "." nor ".."

ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=DNS_NAME)]
NamespaceName = Annotated[str, Field(min_length=1, max_length=63, pattern=LABEL)]
KindName = Annotated[str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z][A-Za-z0-9]*$")]
ApiVersion = Annotated[
    str, Field(min_length=1, max_length=317, pattern=rf"^({_SUBDOMAIN}/)?[a-z]([-a-z0-9]*[a-z0-9])?$")
]
ContainerName = Annotated[str, Field(max_length=63, pattern=LABEL)]
ContainerNames = Annotated[str, Field(max_length=63, pattern=rf"^(\*|{_LABEL})$")]  # one, or "*" for all others
ResourceName = Annotated[str, Field(min_length=1, max_length=317, pattern=LABEL_KEY)]
MetricName = Annotated[str, Field(min_length=1, max_length=512, pattern=_METRIC)]
Title = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[^\x00-\x1f\x7f]+$")]  # for people
LabelKey = Annotated[str, Field(min_length=1, max_length=317, pattern=LABEL_KEY)]
LabelValue = Annotated[str, Field(max_length=63, pattern=f"^({_WORD})?$")]


def label_key_problems(keys: Iterable[str], path: str) -> Iterator[InvalidInput]:
    """Keys of a mapping have no pattern in a CustomResourceDefinition."""
    for key in keys:
        if len(key) > 317 or not re.fullmatch(LABEL_KEY[1:-1], key):
            yield InvalidInput(path, key[:80], "write the key of a label, such as app.kubernetes.io/name")
