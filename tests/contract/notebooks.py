"""What the notebooks of the documentation show, and what they show when they are run.

python -m tests.contract.notebooks            lists the notebooks that show something else
python -m tests.contract.notebooks --write    runs the notebooks and keeps what they show
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import nbclient
import nbformat

from tests.contract.printed import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def read(path: Path) -> Any:
    """The notebook at `path`."""
    return nbformat.read(path, nbformat.NO_CONVERT)


def run(notebook: Any, folder: Path) -> Any:
    """The notebook after all its cells ran in `folder`.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    resources = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(
        notebook,
        kernel_name="python3",
        timeout=300,
        resources=resources,
        coalesce_streams=True,  # What a cell prints may come in several messages.
    )
    done = client.execute()
    for cell in done.cells:
        cell.metadata.pop("execution", None)  # Times.
        cell.pop("execution_count", None)
        if cell.cell_type == "code":
            cell.execution_count = None
        for output in cell.get("outputs", []):
            output.pop("execution_count", None)
            if output.output_type == "execute_result":
                output.execution_count = None
    done.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return done


def shown(notebook: Any) -> list[Any]:
    """What each cell shows: text and tables."""
    return [
        [output.get("text") or output.get("data") for output in cell.get("outputs", [])]
        for cell in notebook.cells
    ]


def main() -> int:
    """List or write the notebooks that show something else when they are run."""
    parser = argparse.ArgumentParser(description="Run the notebooks of the documentation.")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    stale = 0
    for path in NOTEBOOKS:
        before = shown(read(path))
        done = run(read(path), path.parent)
        if shown(done) != before:
            stale += 1
            print(path)
            if options.write:
                nbformat.write(done, path)
    return 1 if stale and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
