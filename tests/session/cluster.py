"""Works off the edits of the tests on a Dask cluster of this machine, and prints the rows."""

from __future__ import annotations

import json
import logging

from distributed import Client, LocalCluster
from shardcore import Module

from tests.session.test_evaluate import EDITS
from tests.session.test_session import TEXT


def main() -> None:
    session = Module.parse(TEXT).session()
    session.set("params/b/b", "P('model')")
    options = {"n_workers": 2, "threads_per_worker": 2, "dashboard_address": None}
    with (
        LocalCluster(**options, silence_logs=logging.CRITICAL) as cluster,
        Client(cluster) as client,
    ):
        executor = client.get_executor()
        rows = [
            [row.record() for row in session.evaluate(EDITS, hardware, executor)]
            for hardware in (None, "tpu-v5e")
        ]
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
