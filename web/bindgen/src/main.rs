//! `tilewise-bindgen FILE.wasm FOLDER`: JavaScript and TypeScript bindings, as `wasm-bindgen --target web` makes them.

use wasm_bindgen_cli_support::Bindgen;

fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(wasm), Some(folder)) = (arguments.next(), arguments.next()) else {
        anyhow::bail!("usage: tilewise-bindgen FILE.wasm FOLDER");
    };
    Bindgen::new().input_path(wasm).web(true)?.typescript(true).generate(folder)
}
