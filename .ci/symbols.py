"""Takes the symbols of the libraries in wheels apart: wheels get small, symbols stay findable.

`symbols.py WHEEL... --out DIR` strips the extension in each wheel and writes what was stripped to
`DIR/WHEEL.debug`. On Linux the library keeps its build id and a debug link to that file, which
gdb, perf and valgrind follow; on macOS the symbols are a `.dSYM`, zipped; on Windows they stand in
a `.pdb` beside the library since it was linked, and there is nothing to strip.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def run(*command: object) -> None:
    """Runs a command, or ends with its error."""
    subprocess.run([str(word) for word in command], check=True)


def take_apart(library: Path, symbols: Path) -> None:
    """Strips `library`, in place; what is stripped is written to a file named after `symbols`."""
    if library.suffix == ".pyd":
        [pdb] = Path("target").rglob("release/shardcore.pdb")
        shutil.copy(pdb, f"{symbols}.pdb")
    elif sys.platform == "darwin":
        run("dsymutil", library, "-o", f"{symbols}.dSYM")
        shutil.make_archive(f"{symbols}.dSYM", "zip", f"{symbols}.dSYM")
        shutil.rmtree(f"{symbols}.dSYM")
        run("strip", "-x", library)
    else:
        debug = f"{symbols}.debug"
        run("objcopy", "--only-keep-debug", "--compress-debug-sections", library, debug)
        run("objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", library)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheels", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="where the symbols go")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for wheel in options.wheels:
        with tempfile.TemporaryDirectory() as folder:
            run(sys.executable, "-m", "wheel", "unpack", wheel, "--dest", folder)
            [tree] = Path(folder).iterdir()
            [library] = (tree / "shardcore").glob("_core.*.[sp][oy]*")
            take_apart(library, options.out / wheel.stem)
            run(sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", wheel.parent)


if __name__ == "__main__":
    main()
