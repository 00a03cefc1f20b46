#!/usr/bin/env bash
# Make `cargo build --target wasm32-unknown-unknown` work where rustup cannot download the target.
#
#     eval "$(web/wasm-toolchain.sh)"                             wasm32-unknown-unknown
#     eval "$(web/wasm-toolchain.sh aarch64-unknown-linux-gnu)"   another target, into the same sysroot (ways 1 and 2)
#
# Three ways, the first that applies:
#   1. the toolchain already has the target            -> prints nothing; plain cargo works
#   2. Debian has `rust-src` of exactly this rustc     -> builds std for the target with this same rustc, once
#   3. Debian has a rustc and a wasm32 std that match  -> unpacks those, runs them through their own loader
#
# Prints `export` lines (RUSTC, RUSTDOC, and SYSROOT for clippy or CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER); all else
# goes to stderr. After way 3 RUSTC is another version than cargo's own: use it for the wasm build only, and no clippy.
# Nothing is installed: everything lives under ${XDG_CACHE_HOME:-~/.cache}/tilewise-wasm and may be deleted at any time.
# The package mirror is the one apt is configured with; only suite names are added.
#
#     TILEWISE_WASM_WAY=2 or 3 forces a way (to test it).
set -euo pipefail

target=${1:-wasm32-unknown-unknown}
suites=(trixie-backports forky sid experimental trixie)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tilewise-wasm
way=${TILEWISE_WASM_WAY:-}

say() { echo "wasm-toolchain: $*" >&2; }
die() { say "$*"; say "on a machine that rustup can serve: rustup target add $target"; exit 1; }

rustc=${RUSTC:-rustc}
if ! command -v "$rustc" >/dev/null; then rustc=rustc; fi
has_target() {
    local dir
    dir=$("$1" --print target-libdir --target "$target" 2>/dev/null) && compgen -G "$dir/libstd-*.rlib" >/dev/null
}
if [[ -z $way ]] && has_target "$rustc"; then exit 0; fi
if [[ $rustc == "$cache"/* ]]; then rustc=rustc; fi # our own wrapper from an earlier call: start from the real one

verbose=$("$rustc" -vV)
field() { sed -n "s/^$1: //p" <<<"$verbose"; }
release=$(field release) commit=$(field commit-hash) host=$(field host)
host_sysroot=$("$rustc" --print sysroot)
root=$cache/$release-${commit:0:9}
host_lld=$host_sysroot/lib/rustlib/$host/bin/rust-lld

print_env() { # print_env DIR
    printf 'export RUSTC=%q\n' "$1/bin/rustc"
    printf 'export RUSTDOC=%q\n' "$1/bin/rustdoc"
    [[ ! -e $1/linker ]] || printf 'export CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=%q\n' "$(cat "$1/linker")"
    [[ $1 != *-2 ]] || printf 'export SYSROOT=%q\n' "$1" # clippy-driver looks here
}
finished() { [[ -x $1/bin/rustc ]] && has_target "$1/bin/rustc"; }
for n in 2 3; do
    if [[ -z $way || $way == "$n" ]] && finished "$root-$n"; then print_env "$root-$n"; exit 0; fi
done

mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9 # two builds at once: the second waits, then finds the work done
for n in 2 3; do
    if [[ -z $way || $way == "$n" ]] && finished "$root-$n"; then print_env "$root-$n"; exit 0; fi
done
command -v apt-get >/dev/null || die "$target is not installed for $release, and there is no apt to take it from"

# --- a private apt root: the system's mirror, proxy and keys, but its own suites, lists and cache --------------------
apt_root=$cache/apt
apt_opts=()
apt_setup() {
    mkdir -p "$apt_root"/{lists/partial,cache/archives/partial}
    local key=/usr/share/keyrings/debian-archive-keyring.gpg signed="" have uri
    # shellcheck disable=SC2016 # apt fills these in
    have=$(apt-get indextargets --no-release-info --format '$(REPO_URI) $(RELEASE)' | grep -E '/debian(-security)?/? ' | sort -u || true)
    uri=$(awk '$1 ~ "/debian/?$" {print $1; exit}' <<<"$have")
    [[ -n $uri ]] || die "apt has no Debian mirror configured"
    [[ ! -e $key ]] || signed="[signed-by=$key] "
    { echo "$have"; printf "$uri %s\n" "${suites[@]}"; } | sort -u | sed "s|.*|deb $signed& main|" >"$apt_root/sources.list"
    : >"$apt_root/status"
    apt_opts=(-o Dir::Etc::sourcelist="$apt_root/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o Dir::Etc::preferences=/dev/null -o Dir::Etc::preferencesparts=/dev/null
        -o Dir::State::lists="$apt_root/lists" -o Dir::State::status="$apt_root/status" -o Dir::Cache="$apt_root/cache"
        -o Acquire::Languages=none -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User=root -o APT::Update::Post-Invoke::= -q)
    say "reading package lists"
    apt-get "${apt_opts[@]}" update >&2 || say "some suites could not be read; going on with the others"
}
versions() { apt-cache "${apt_opts[@]}" madison "$1" 2>/dev/null | awk '{print $3}' | sort -Vru; }
download() (cd "$1" && shift && apt-get "${apt_opts[@]}" download "$@" >&2)

wrapper() { # wrapper FILE COMMAND...
    local file=$1; shift
    { echo '#!/bin/sh'; printf 'exec'; printf ' %q' "$@"; echo ' "$@"'; } >"$file"
    chmod +x "$file"
}

# --- way 2: this rustc, std built from the matching source ----------------------------------------------------------
build_std() {
    local out=$root-2 work=$cache/build package version
    for package in rust-src rust-web-src; do
        version=$(versions "$package" | grep -F "$release+" | head -n1 || true)
        [[ -z $version ]] || break
    done
    [[ -n $version ]] || { say "no rust-src $release in ${suites[*]}"; return 1; }
    rm -rf "$work" "$out/lib/rustlib/src"
    mkdir -p "$work"/{deb,lib,std/src} "$out/bin" "$out/lib/rustlib/$target" "$out/lib/rustlib/src/rust"
    say "building std $release for $target from $package $version (once, about half a minute)"
    download "$work/deb" "$package=$version"
    dpkg-deb --fsys-tarfile "$work"/deb/*.deb |
        tar x -C "$out/lib/rustlib/src/rust" --strip-components=4 --wildcards './usr/src/*/library'
    ln -sfn "$host_sysroot/lib/rustlib/$host" "$out/lib/rustlib/$host"
    wrapper "$out/bin/rustc" "$host_sysroot/bin/rustc" --sysroot "$out"
    wrapper "$out/bin/rustdoc" "$host_sysroot/bin/rustdoc" --sysroot "$out"
    printf '[package]\nname = "nothing"\nversion = "0.0.0"\nedition = "2021"\n[workspace]\n' >"$work/std/Cargo.toml"
    echo '#![no_std]' >"$work/std/src/lib.rs"
    # The dependencies of std come with its source, so nothing more is downloaded. Fixed paths throughout: cargo hashes them, and
    # the same std must come out each time or old target/ folders break. embed-bitcode: so that a crate's own `lto = true`
    # reaches into std. remap: no path of this machine in the output.
    local source=$out/lib/rustlib/src/rust config=()
    if [[ -d $source/library/vendor ]]; then
        config=(--offline --config 'source.crates-io.replace-with="std-vendor"'
            --config "source.std-vendor.directory=\"$source/library/vendor\"")
    fi
    local flags=(-Cembed-bitcode=yes "--remap-path-prefix=$source=/rustc/$commit")
    (
        cd "$work/std"
        unset "${!CARGO_PROFILE_@}" "${!CARGO_BUILD_@}" CARGO_TARGET_DIR RUSTC_WRAPPER RUSTC_WORKSPACE_WRAPPER
        CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f'; echo "${flags[*]}")
        export CARGO_ENCODED_RUSTFLAGS
        RUSTC=$out/bin/rustc RUSTC_BOOTSTRAP=1 CARGO_TARGET_DIR=$work/target \
            "$host_sysroot/bin/cargo" build --quiet --release --target "$target" "${config[@]}" \
            -Zbuild-std=std,panic_abort,panic_unwind,test,proc_macro >&2
    ) || { rm -rf "$work" "$out/lib/rustlib/src"; say "building std failed"; return 1; }
    rm "$work/target/$target"/release/deps/libnothing-*
    mv "$work/target/$target"/release/deps/*.rlib "$work/lib/"
    rm -rf "$out/lib/rustlib/$target/lib"
    mv "$work/lib" "$out/lib/rustlib/$target/lib"
    rm -rf "$work" "$out/lib/rustlib/src"
    finished "$out"
}

# --- way 3: Debian's own rustc with Debian's own wasm32 std ---------------------------------------------------------
unpack_debian() {
    [[ $target == wasm32-unknown-unknown ]] || return 1
    local out=$root-3 work=$cache/build version="" candidate minor deb r loader libs
    for candidate in $(versions libstd-rust-dev-wasm32); do
        [[ $candidate != *exp* ]] || continue
        if [[ $'\n'$(versions rustc)$'\n' == *$'\n'"$candidate"$'\n'* ]]; then version=$candidate; break; fi
    done
    [[ -n $version ]] || { say "no rustc with a matching libstd-rust-dev-wasm32 in ${suites[*]}"; return 1; }
    minor=$(cut -d. -f1,2 <<<"$version")
    say "unpacking Debian's rustc $version and its $target std (once)"
    rm -rf "$out" "$work"
    mkdir -p "$work/deb" "$out/tree"
    local roots=("libstd-rust-$minor") wanted
    [[ -x $host_lld ]] || roots+=(lld)
    mapfile -t wanted < <(apt-cache "${apt_opts[@]}" depends --recurse --no-recommends --no-suggests --no-conflicts \
        --no-breaks --no-replaces --no-enhances "${roots[@]}" | grep -E '^[a-z0-9]' | grep -vE "^libstd-rust|:|-base$" | sort -u)
    download "$work/deb" "rustc=$version" "libstd-rust-$minor=$version" "libstd-rust-dev=$version" \
        "libstd-rust-dev-wasm32=$version" "${wanted[@]}"
    for deb in "$work"/deb/*.deb; do
        dpkg-deb --fsys-tarfile "$deb" | tar x -C "$out/tree" --keep-directory-symlink --exclude './usr/share' --exclude './etc' \
            --exclude '*/rustlib/wasm32-wasi*'
    done
    rm -rf "$work"
    r=$out/tree
    loader=$(find "$r" -name 'ld-linux*.so.*' -print -quit)
    libs=$(find "$r" -name '*.so*' -path '*/lib/*' ! -path '*/rustlib/*' -printf '%h\n' | sort -u | paste -sd:)
    mkdir "$out/bin"
    wrapper "$out/bin/rustc" "$loader" --library-path "$libs" --argv0 "$r/usr/bin/rustc" "$r/usr/bin/rustc" --sysroot "$r/usr"
    wrapper "$out/bin/rustdoc" "$loader" --library-path "$libs" --argv0 "$r/usr/bin/rustdoc" "$r/usr/bin/rustdoc" --sysroot "$r/usr"
    if [[ -x $host_lld ]]; then
        echo "$host_lld" >"$out/linker"
    else
        wrapper "$out/bin/wasm-ld" "$loader" --library-path "$libs" --argv0 wasm-ld "$(find "$r/usr/lib" -path '*/bin/lld' | sort -V | tail -n1)"
        echo "$out/bin/wasm-ld" >"$out/linker"
    fi
    finished "$out"
}

apt_setup
if [[ $way != 3 ]] && build_std; then print_env "$root-2"
elif [[ $way != 2 ]] && unpack_debian; then print_env "$root-3"
else die "no way found to compile for $target"
fi
rm -rf "$apt_root"
