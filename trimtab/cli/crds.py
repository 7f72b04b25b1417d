"""trimtab crds: the CustomResourceDefinitions, generated from the kinds."""

from __future__ import annotations

import click

from trimtab.cli.output import dump, output_option
from trimtab.errors import InvalidInput


@click.command(name="crds")
@click.argument("kinds", nargs=-1)
@output_option("yaml", "json")
def command(kinds: tuple[str, ...], output: str) -> None:
    """Print the CustomResourceDefinitions of all KINDS, or of those named (by kind, plural or short name).

    \b
    trimtab crds | kubectl apply --server-side -f -
    trimtab crds ehpa hvpa
    """
    from trimtab.kinds.crd import CRDS, definition

    wanted = [_named(kind) for kind in kinds] or [crd.name for crd in CRDS]
    dump([definition(crd) for crd in CRDS if crd.name in wanted], output)


def _named(word: str) -> str:
    from trimtab.kinds.crd import CRDS
    from trimtab.kinds.problems import nearest

    names = {name.lower(): crd.name for crd in CRDS for name in (crd.kind, crd.plural, crd.name, *crd.short)}
    if word.lower() not in names:
        near = nearest(word, sorted(names))
        raise InvalidInput("kind", word, f"did you mean {near}?" if near else f"known: {', '.join(sorted(names))}")
    return names[word.lower()]
