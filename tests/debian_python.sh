#!/bin/sh
# The Python of a newer Debian in the folder .debian, for `make test-pythons`. Root only.
#
#   tests/debian_python.sh make                  makes the folder by debootstrap: a minute, 0.7 GB
#   tests/debian_python.sh run python3.13 -V     runs a command there, on this tree
#
# Variables: RELEASE (trixie), MIRROR (that of this machine), and BIND, folders that the command finds there as well,
# such as those of a package index.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
folder=$root/.debian

refuse() {
    echo "$1" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || refuse "$folder is made and entered by root only"
case ${1:-} in
make)
    command -v debootstrap >/dev/null || refuse "debootstrap is missing: apt install debootstrap"
    mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        sed -nE 's#^(URIs:|deb)( \[.*\])? +([a-z]+://[^ ]+/debian/?)( .*)?$#\3#p' | head -n 1)
    packages=python3,python3-venv,python3-dev,ca-certificates,gcc,libc6-dev,make,git
    rm -rf "$folder.part" "$folder"
    debootstrap --variant=minbase --include=$packages "${RELEASE:-trixie}" "$folder.part" ${MIRROR:-$mirror}
    mv "$folder.part" "$folder"
    ;;
run)
    shift
    for file in /etc/resolv.conf /etc/pip.conf; do
        [ ! -e $file ] || cp -L $file "$folder$file"
    done
    # the mounts are those of this command alone and end with it
    exec unshare --mount sh -euc '
        root=$1 folder=$2 && shift 2
        for place in "$root" /proc /dev /etc/ssl/certs "$HOME/.config/pip" ${BIND:-}; do
            [ ! -d "$place" ] || { mkdir -p "$folder$place" && mount --rbind "$place" "$folder$place"; }
        done
        exec chroot "$folder" sh -euc "cd \"\$0\" && exec \"\$@\"" "$root" "$@"
    ' sh "$root" "$folder" "$@"
    ;;
*)
    refuse "say make or run"
    ;;
esac
