"""Installs a wheel into an empty environment, and runs it there as a user would.

`check_wheel.py WHEEL` fails when the wheel is over 10 MB, lacks its licence or SBOM, or when what
is installed does not complete, cost, partition and prove a program.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

MOST_BYTES = 10_000_000

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
                %b: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
"""


def check_contents(wheel: Path) -> None:
    """Size, licence, SBOM."""
    size = wheel.stat().st_size
    if size > MOST_BYTES:
        sys.exit(f"{wheel.name} has {size} bytes, over {MOST_BYTES}")
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [sbom] = [name for name in names if "/sboms/" in name]
        components = {part["name"] for part in json.loads(archive.read(sbom))["components"]}
    if not {"pyo3", "memchr", "rustc-hash"} <= components:
        sys.exit(f"{sbom} lists {sorted(components)}")
    if not any(name.endswith("/licenses/LICENSE") for name in names):
        sys.exit(f"{wheel.name} has no licence")
    print(f"{wheel.name}: {size} bytes, SBOM of {len(components)} components")


def check_runs(wheel: Path) -> None:
    """Completes, costs, partitions and proves a program, outside of the checkout."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        venv.create(home / "venv", with_pip=True)
        scripts = home / "venv" / ("Scripts" if sys.platform == "win32" else "bin")
        install = [scripts / "python", "-m", "pip", "install", "--quiet", wheel.resolve()]
        subprocess.run(install, check=True, cwd=home)
        (home / "program.mlir").write_text(PROGRAM)
        for words in (
            ["--version"],
            ["propagate", "program.mlir"],
            ["cost", "program.mlir", "--hardware", "tpu-v5p"],
            ["partition", "program.mlir", "--prove"],
        ):
            subprocess.run([scripts / "shardcore", *words], check=True, cwd=home)


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("wheel", type=Path)
    wheel = parser.parse_args().wheel
    check_contents(wheel)
    check_runs(wheel)


if __name__ == "__main__":
    main()
