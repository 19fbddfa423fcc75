#!/usr/bin/env bash
# Some tests need a browser and PostgreSQL from the system. For root on Debian this script installs
# what is missing, and says so first; SYSTEM_PACKAGES=no in the environment prevents it. Otherwise it
# only says what is missing, and the tests that need it are skipped.
set -u
missing=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
    command -v google-chrome >/dev/null || missing+=(chromium)
command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
    missing+=(postgresql)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "${SYSTEM_PACKAGES:-yes}" != no ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "Installing Debian packages that the tests need: ${missing[*]}" \
        "(apt-get install; SYSTEM_PACKAGES=no make test does not install them)"
    # A mirror that does not respond must not delay the tests for long.
    if timeout 60 apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
        timeout 240 apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null; then
        exit 0
    fi
fi
echo "Not installed: ${missing[*]}. The tests that need it are skipped" \
    "(on Debian: apt-get install ${missing[*]})." >&2
