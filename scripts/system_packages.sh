#!/usr/bin/env bash
# What some tests need of the system: a browser, and PostgreSQL. Root on Debian gets them installed;
# everybody else is told, and the tests that need them are skipped with the same message.
set -u
missing=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null ||
    command -v google-chrome >/dev/null || missing+=(chromium)
command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null ||
    missing+=(postgresql)
[ ${#missing[@]} -eq 0 ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "installing ${missing[*]} for the tests"
    # A mirror that does not answer must not hold up the tests.
    if timeout 60 apt-get -qq update && DEBIAN_FRONTEND=noninteractive \
        timeout 240 apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null; then
        exit 0
    fi
fi
echo "not here: ${missing[*]}; the tests that need it are skipped" \
    "(Debian: apt-get install ${missing[*]})" >&2
