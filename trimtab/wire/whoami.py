"""Who we are, as the API server knows us: the UID of our ServiceAccount."""

from __future__ import annotations

from trimtab.wire.kube import Kube
from trimtab.wire.objects import WireRecord
from trimtab.wire.resources import SELF_REVIEWS

ACCOUNTS = "system:serviceaccount:"


class UserInfo(WireRecord, frozen=True):
    username: str = ""
    uid: str = ""


class ReviewStatus(WireRecord, frozen=True):
    user_info: UserInfo = UserInfo()


class SelfSubjectReview(WireRecord, frozen=True):
    status: ReviewStatus = ReviewStatus()


async def own_uid(kube: Kube) -> str:
    """ "" for a person: only a ServiceAccount is an installation's."""
    body = {"apiVersion": SELF_REVIEWS.api_version, "kind": SELF_REVIEWS.kind}
    found = (await kube.create(SelfSubjectReview, SELF_REVIEWS, "", body)).status.user_info
    return found.uid if found.username.startswith(ACCOUNTS) else ""
