//! A small comparison with live XLA; `cargo xtask conformance` makes the large ones.

use std::{env, process::Command};

/// `TILEWISE_PYTHON` names a Python interpreter that has jaxlib, `SHAPES` how many shapes are compared.
#[test]
fn live_xla_agrees() {
    let Some(python) = env::var_os("TILEWISE_PYTHON") else {
        println!("skipped: TILEWISE_PYTHON names no Python interpreter with jaxlib");
        return;
    };
    let shapes = env::var("SHAPES").unwrap_or_else(|_| "10000".to_owned());
    let mut comparison = Command::new(env!("CARGO_BIN_EXE_tilewise-conformance"));
    let output = comparison.arg("--python").arg(python).args(["--shapes", &shapes]).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
