//! The stub of the package's native half, from the signatures and documentation that PyO3 keeps in the library.

use crate::{python, tools::target_folder};
use anyhow::{Context, ensure};
use std::{
    env::consts::{DLL_PREFIX, DLL_SUFFIX},
    path::Path,
};
use xshell::{Shell, cmd};

const STUB: &str = "python/package/tilewise/_tilewise.pyi";

/// The imports of annotations, beside PyO3's.
const PRELUDE: &str = "\
import builtins
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, SupportsIndex, TypeVar, overload

import numpy as np
import numpy.typing as npt
from typing_extensions import Self

from tilewise._fit.advice import AdviceCheck
from tilewise._base.types import ArrayLike, BytesLike, DtypeLike, HasShape, Integers, Notation, ShapeLike, SupportsDLPack, Tpu

_Out = TypeVar(\"_Out\", bound=SupportsDLPack)
";

/// `cargo xtask stub`: renews the stub.
pub(crate) fn run(shell: &Shell) -> anyhow::Result<()> {
    Ok(shell.write_file(STUB, made(shell, &python::environment(shell)?)?)?)
}

/// Fails if the stub is out of date.
pub(crate) fn check(shell: &Shell, python: &Path) -> anyhow::Result<()> {
    ensure!(shell.read_file(STUB)? == made(shell, python)?, "{STUB} is out of date: run `cargo xtask stub`");
    Ok(())
}

fn made(shell: &Shell, python: &Path) -> anyhow::Result<String> {
    let target = target_folder(shell);
    let (tools, folder) = (target.join("xtask/tools"), target.join("stub"));
    // The tool of PyO3's version. Maturin has it, too, but strips the library before it looks.
    cmd!(shell, "cargo install --quiet --root {tools} --version ^0.30 pyo3-introspection").quiet().run()?;
    cmd!(shell, "cargo build --quiet --locked --package tilewise-python --features stub").quiet().run()?;
    let library = target.join("debug").join(format!("{DLL_PREFIX}_tilewise{DLL_SUFFIX}"));
    cmd!(shell, "{tools}/bin/pyo3-introspection {library} _tilewise {folder}").quiet().run()?;
    let file = folder.join("_tilewise.pyi");
    shell.write_file(&file, stub(&shell.read_file(folder.join("__init__.pyi"))?)?)?;
    for verb in [&["check", "--fix"][..], &["format"]] {
        cmd!(shell, "{python} -m ruff --quiet {verb...} --config python/pyproject.toml {file}").quiet().run()?;
    }
    Ok(shell.read_file(file)?)
}

/// PyO3's stub with the types that it has as strings.
fn stub(made: &str) -> anyhow::Result<String> {
    let (imports, members) = made.split_once("\n\n").context("PyO3's stub has no imports")?;
    let mut text = ["# Made by `cargo xtask stub`.\n", imports, "\n", PRELUDE].concat();
    let (mut class, mut in_documentation) = ("", false);
    for line in members.lines() {
        let ends = line.trim() == "\"\"\"";
        in_documentation ^= ends;
        text.push('\n');
        if in_documentation || ends || !line.trim_start().starts_with("def ") {
            class = line.strip_prefix("class ").unwrap_or(class);
            text += line;
            continue;
        }
        let line = overloaded(unquoted(line));
        // In its class, `Shape.tuple` hides the type.
        text += &if class == "Shape:" { line.replace("tuple[", "builtins.tuple[") } else { line };
    }
    Ok(text)
}

/// The line of a function with its annotations as types; of its strings only defaults stay, which follow `= `.
fn unquoted(line: &str) -> String {
    let mut parts = line.split('"');
    let mut text = parts.next().unwrap_or_default().to_owned();
    while let (Some(quoted), Some(rest)) = (parts.next(), parts.next()) {
        text += &if text.ends_with("= ") { format!("\"{quoted}\"") } else { quoted.to_owned() };
        text += rest;
    }
    text
}

/// The line of a function, with another before it if it returns the `out` that it is given.
fn overloaded(line: String) -> String {
    let parts = line.split_once("Out = None").and_then(|(before, rest)| Some((before, rest.split_once("Out | ")?)));
    let Some((before, (between, made))) = parts else { return line };
    format!("@overload\n{before}None = None{between}{made} ...\n@overload\n{before}_Out{between}_Out:")
}
