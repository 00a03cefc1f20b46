//! Prints the offset of each element of a tiled array, the offsets that are padding, and the array's sizes.
//!
//! `cargo run -p tilewise-audit --example where_elements_lie`

use tilewise::{Error, Shape, Tiled};

fn main() -> Result<(), Error> {
    let shape: Shape = "f32[3,5]{1,0:T(2,2)}".parse()?;
    let tiled = Tiled::new(&shape)?;

    println!("{shape}: memory is {:?}, major to minor", tiled.physical_dimensions());
    for y in 0..3 {
        let row: Vec<u64> = (0..5).map(|x| tiled.offset_of(&[y, x])).collect::<Result<_, _>>()?;
        println!("row {y}: offsets {row:?}");
    }
    let padding = (0..tiled.physical_elements()).filter(|&offset| matches!(tiled.index_of(offset), Ok(None)));
    println!("padding at {:?}", padding.collect::<Vec<_>>());
    println!("{} bytes of data take {}", tiled.logical_bytes(), tiled.physical_bytes());
    Ok(())
}
