#!/usr/bin/env bash
# Prepares everything that `make demo` and `make test` need, and skips what is already there:
# a virtual environment from the lock file, Elixir, and the compiled client.
# Prints the shell variables of the environment on standard output; all else goes to standard error.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD

say() { printf '%s\n' "$*" >&2; }
fail() { say "nutkin: $*"; exit 1; }

# Only root, or a user whom sudo asks nothing, may install system packages without a question.
as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then sudo -n "$@"
  else return 1
  fi
}

apt_install() {
  command -v apt-get >/dev/null && as_root true 2>/dev/null || return 1
  say "installing $* with apt-get"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get update -qq </dev/null >/dev/null || true
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

# --- where things go: in the checkout if this user may write there, else in the user's cache folder
state=$root
if [ ! -w "$root" ]; then
  state=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/nutkin/checkout-$(printf %s "$root" | sha256sum | cut -c1-12)
  mkdir -p "$state" 2>/dev/null || state=${TMPDIR:-/tmp}/nutkin-$(id -u) && mkdir -p "$state"
fi

# --- Python: the newest from 3.11 up, on PATH or among pyenv's versions
newest_python() {
  local candidate found
  for candidate in $(compgen -c python3 | grep -E '^python3(\.[0-9]+)?$' | sort -u) \
    "${PYENV_ROOT:-${HOME:-/nonexistent}/.pyenv}"/versions/*/bin/python3; do
    found=$("$candidate" -c 'import sys; v = sys.version_info
if v >= (3, 11) and v.releaselevel == "final" and sys.implementation.name == "cpython": print(v.minor, sys.executable)' 2>/dev/null) || continue
    if [ -n "$found" ]; then printf '%s\n' "$found"; fi
  done | sort -k1,1nr -k2,2 | head -n 1 | cut -d' ' -f2-
}

stamp_of() { { cat requirements.lock pyproject.toml; printf '%s\n' "$1" "$root"; } | sha256sum | cut -c1-16; }

ready() { # an environment that was made from these files, and runs for this user
  [ -x "$1/bin/python" ] && [ -f "$1/nutkin.stamp" ] &&
    [ "$(cat "$1/nutkin.stamp")" = "$(stamp_of "$("$1/bin/python" -c 'import sys; print(sys.version)' 2>/dev/null)")" ]
}

venv=$root/.venv
if ! ready "$venv"; then
  venv=$state/.venv
  if ! ready "$venv"; then
    python=$(newest_python)
    if [ -z "$python" ]; then
      apt_install python3 python3-venv || fail "needs Python 3.11 or later: sudo apt-get install python3 python3-venv"
      python=$(newest_python)
      [ -n "$python" ] || fail "needs Python 3.11 or later; found none on PATH or in pyenv"
    fi
    "$python" -c 'import ensurepip' 2>/dev/null || apt_install python3-venv ||
      fail "$python cannot make virtual environments: sudo apt-get install python3-venv"
    say "making a virtual environment with $("$python" --version) in $venv (once; about a minute)"
    rm -rf "$venv"
    "$python" -m venv "$venv" >&2
    install() {
      "$venv/bin/python" -m pip install --disable-pip-version-check "$@" </dev/null >>"$venv/install.log" 2>&1 ||
        { tail -n 40 "$venv/install.log" >&2; fail "pip could not install (see above, or $venv/install.log)"; }
    }
    install -r requirements.lock
    install --no-deps --no-build-isolation -e .
    stamp_of "$("$venv/bin/python" -c 'import sys; print(sys.version)')" >"$venv/nutkin.stamp"
  fi
fi

# --- Elixir
command -v mix >/dev/null || apt_install elixir ||
  fail "needs Elixir 1.14 or later: sudo apt-get install --no-install-recommends elixir"

build=$root/elixir_client/_build
[ -w "$root/elixir_client" ] && { [ ! -e "$build" ] || [ -w "$build" ]; } || build=$state/_build

# An Elixir without a locale of its own warns about latin1 at every start.
case "${LC_ALL:-${LC_CTYPE:-${LANG:-}}}" in *UTF-8* | *utf8*) locale= ;; *) locale='export LC_ALL=C.UTF-8' ;; esac

cat <<VARIABLES
export NUTKIN_PYTHON='$venv/bin/python'
export PATH='$venv/bin':"\$PATH"
export NUTKIN_BUILD='$build'
export RUFF_CACHE_DIR='$state/.ruff_cache'
export PYTEST_ADDOPTS='-o cache_dir=$state/.pytest_cache'
export HYPOTHESIS_STORAGE_DIRECTORY='$state/.hypothesis'
$locale
VARIABLES
