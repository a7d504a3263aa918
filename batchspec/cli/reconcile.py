"""``batchspec reconcile``: do a server's responses add up to its counters?"""

from typing import Annotated

import typer

__all__ = ["reconcile"]


def reconcile(
    responses: Annotated[
        str, typer.Argument(help="Responses of any engine (JSONL, .gz, .zst, Parquet), or a run directory.")
    ],
    after: Annotated[
        str | None,
        typer.Option(
            help="Scrape of the server's /metrics behind the requests.", show_default="the run's metrics.prom"
        ),
    ] = None,
    before: Annotated[
        str | None, typer.Option(help="Scrape before the requests.", show_default="counters that began at zero")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the reconciliation as one JSON document.")] = False,
) -> int:
    """Add up the acceptance metrics of responses and compare every sum with a server's Prometheus counters.

    Example: batchspec reconcile responses.jsonl --before before.prom --after after.prom
    """
    from batchspec.audit.inputs import find_inputs
    from batchspec.audit.reconciling import reconcile_logs
    from batchspec.audit.tables import audit_parts
    from batchspec.cli.output import print_result

    document = reconcile_logs(find_inputs(responses, after=after, before=before))
    print_result(document, audit_parts(document), as_json=as_json)
    return int(document["verdict"] == "unexplained")
