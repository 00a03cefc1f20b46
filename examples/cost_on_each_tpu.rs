//! Prints the layout that each TPU generation picks for an array, and what it takes.
//!
//! `cargo run -p tilewise-audit --example cost_on_each_tpu -- 'f32[32768,8,4]{2,1,0}'`

use tilewise::{
    Error, Shape, Tiled,
    tpu::{Generation, predict},
};

fn main() -> Result<(), Error> {
    let text = std::env::args().nth(1).unwrap_or_else(|| "f32[32768,8,4]{2,1,0}".to_owned());
    // A missing layout stays missing, so that the TPU picks the order of dimensions; otherwise it picks only the tiles.
    let shape = Shape::parse_as_written(&text)?;
    for &generation in Generation::ALL {
        let laid_out = predict(&shape, generation)?.shape;
        let tiled = Tiled::new(&laid_out)?;
        println!("{generation:>4}  {:>12} bytes, {:.2}x  {laid_out}", tiled.physical_bytes(), tiled.expansion());
    }
    Ok(())
}
