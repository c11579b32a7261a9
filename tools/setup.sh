#!/usr/bin/env bash
# Sets a machine up for working on warren. Does only what is not done yet, and says what it does.
#
#   tools/setup.sh python    the virtual environment .venv with warren and its development tools
#   tools/setup.sh java      a Java runtime for Spark, if none is found that it can use
#   tools/setup.sh servers   the servers that tests and benchmarks start for themselves
set -euo pipefail
cd "$(dirname "$0")/.."

# Debian package and the file that shows that it is there. A later part of warren that needs more
# from Debian (a browser for the web page) adds its line here.
SERVERS=(
    "rabbitmq-server /usr/lib/rabbitmq/bin/rabbitmq-server"
    "etcd-server /usr/bin/etcd"
)

AZURITE=3.37.0

say() { printf 'setup: %s\n' "$*"; }

die() { printf 'setup: %s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null; then sudo "$@"
    else return 1
    fi
}

apt_install() {
    command -v apt-get >/dev/null || die "no apt-get here: please install $* yourself"
    as_root true || die "neither root nor sudo: please have $* installed"
    say "installing Debian packages: $*"
    local log; log=$(mktemp)
    if ! apt_get install "$@" >"$log" 2>&1; then
        apt_get update >"$log" 2>&1 || { cat "$log" >&2; die "apt-get update failed"; }
        apt_get install "$@" >"$log" 2>&1 || { cat "$log" >&2; die "apt-get install failed"; }
    fi
    rm -f "$log"
}

apt_get() {
    local command=$1; shift
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get "$command" -qq -y -o Dpkg::Use-Pty=0 ${1:+--no-install-recommends} "$@"
}

# Tests start servers of their own, so Debian must not start the packages' services: not now
# (policy-rc.d is how it is told) and not at the next boot.
install_servers() {
    local policy=/usr/sbin/policy-rc.d ours=
    if [ ! -e $policy ] && as_root true; then
        as_root sh -c "printf '#!/bin/sh\nexit 101\n' >$policy && chmod +x $policy"
        ours=yes
    fi
    trap '[ -z "'$ours'" ] || as_root rm -f '$policy EXIT
    apt_install "$@"
    if [ -d /run/systemd/system ]; then
        as_root systemctl disable --quiet rabbitmq-server.service etcd.service 2>/dev/null || true
    fi
}

# Microsoft's own emulator of Azure's object store is a package of npm's.
azurite() {
    [ -e .venv/azurite/node_modules/.bin/azurite-blob ] && return
    command -v npm >/dev/null || (apt_install nodejs npm) || return 0
    say "installing Azurite $AZURITE into .venv"
    npm install --silent --no-fund --no-audit --no-package-lock --prefix .venv/azurite \
        "azurite@$AZURITE" || say "npm could not: tests of ledgers in Azure are left out"
}

servers() {
    local missing=() line
    for line in "${SERVERS[@]}"; do
        read -r package file <<<"$line"
        [ -e "$file" ] || missing+=("$package")
    done
    [ ${#missing[@]} = 0 ] || install_servers "${missing[@]}"
    azurite
}

# Spark runs on Java 17 or newer. Looked for where warren.spark.session() looks for it.
has_java() {
    local each found
    for each in ${JAVA_HOME:+"$JAVA_HOME/bin/java"} "$(command -v java)" /usr/lib/jvm/*/bin/java; do
        found=$("$each" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' || true)
        [ "${found:-0}" -ge 17 ] && return 0
    done
    return 1
}

# Not called java: has_java calls that.
java_runtime() {
    if has_java; then return; fi
    local each
    for each in 17 21; do
        if (apt_install "openjdk-$each-jre-headless"); then return; fi
    done
    die "no Java for Spark: please install a Java runtime, 17 or newer"
}

find_python() {
    local each
    for each in ${PYTHON:-python3.11 python3.12 python3.13 python3}; do
        if "$each" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$each"
            return
        fi
    done
    die "no Python 3.11 or newer (PYTHON=… names one)"
}

python() {
    local python; python=$(find_python)
    if [ ! -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
        if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
            apt_install "python$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')-venv"
        fi
        say "making .venv with $("$python" --version)"
        "$python" -m venv .venv
    fi
    say "installing warren and its development tools into .venv"
    .venv/bin/python -m pip install --quiet --disable-pip-version-check \
        --constraint constraints.txt --editable '.[dev]'
}

case ${1:-} in
    python | servers) "$1" ;;
    java) java_runtime ;;
    *) die "usage: tools/setup.sh python|java|servers" ;;
esac
