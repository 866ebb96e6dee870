#!/usr/bin/env bash
# Runs tests with another release of JAX than the one of `make test`: `.ci/with_jax.sh WHEEL TESTS...`, by default with
# the newest one; JAX='jax==0.8.0' takes that release.
#
# The wheel and what tests need are installed into an environment under .cache. It is made with $PYTHON, by default the
# newest Python of this machine from 3.12 on, which the newest JAX needs; where all are older, in a tree of Debian 13,
# whose Python is 3.13, which takes root and debootstrap.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$1
shift
jax=${JAX:-jax}
home=.cache/${jax//[^a-z0-9.]/-}
packages=("$jax" flax optax pytest pytest-xdist hypothesis distributed flatbuffers ipykernel nbclient)

# The newest Python of this machine that the newest JAX runs on.
new_python() {
  local minor each
  for minor in 14 13 12; do
    for each in "$(command -v "python3.$minor")" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python3; do
      if [ -x "$each" ] && "$each" -c 'import venv, ensurepip' 2>/dev/null; then
        echo "$each"
        return
      fi
    done
  done
  return 1
}

# Runs a command in the tree, with the checkout at /src. The mounts are those of the command alone.
in_tree() {
  unshare --mount --propagation private bash -c '
    tree=$1; shift
    for each in proc dev sys; do mount --rbind "/$each" "$tree/$each"; done
    mount --bind . "$tree/src"
    exec chroot "$tree" env -C /src "$@"' _ "$home/tree" "$@"
}

make_tree() {
  local tree=$home/tree
  if [ ! -e "$tree/done" ]; then
    rm -rf "$tree"
    debootstrap --variant=minbase --include=python3,python3-venv,ca-certificates trixie "$tree" >"$home/debootstrap.log"
    mkdir "$tree/src"
    touch "$tree/done"
  fi
  # The network and the package index of this machine.
  cp /etc/resolv.conf /etc/hosts "$tree/etc/"
  if [ -f /etc/pip.conf ]; then cp /etc/pip.conf "$tree/etc/"; fi
  if [ -d ~/.config/pip ]; then mkdir -p "$tree$HOME/.config" && cp -r ~/.config/pip "$tree$HOME/.config/"; fi
  cp -r /etc/ssl/certs/. "$tree/etc/ssl/certs/"
}

mkdir -p "$home"
if python=${PYTHON:-$(new_python)}; then
  run=(env)
  venv=$home/venv
elif [ "$(id -u)" = 0 ] && command -v debootstrap >/dev/null; then
  make_tree
  run=(in_tree)
  python=python3
  venv=/venv
else
  echo "no Python from 3.12 on: install one, or be root and have debootstrap (apt-get install debootstrap)" >&2
  exit 1
fi
export PYTHONDONTWRITEBYTECODE=1 HYPOTHESIS_STORAGE_DIRECTORY=$home/hypothesis
"${run[@]}" "$python" -m venv "$venv"
"${run[@]}" "$venv/bin/python" -m pip install --quiet --upgrade "${packages[@]}"
"${run[@]}" "$venv/bin/python" -m pip install --quiet --force-reinstall --no-deps "$wheel"
"${run[@]}" "$venv/bin/python" -m pip install --quiet "$wheel"
"${run[@]}" "$venv/bin/python" -c 'import sys, jax, jaxlib; print("Python", sys.version.split()[0], "jax", jax.__version__, "jaxlib", jaxlib.__version__)'
"${run[@]}" "$venv/bin/python" -m pytest -q -n auto --dist worksteal -p no:cacheprovider "$@"
