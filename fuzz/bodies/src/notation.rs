//! Readers of other systems' notations.

use tilewise::{Shape, Tiled, interop::Notation};

/// Arrays that texts are read for.
const ARRAYS: [&str; 4] = ["f32[3,5]", "bf16[20,300]{0,1:S(1)}", "s4[2,3,4]{2,1,0:E(4)}", "u8[]"];

/// A text in some notation of some array (the first two bytes): read, written and read again, it stays the same.
pub fn notation_text(data: &[u8]) {
    let [notation, array, text @ ..] = data else { return };
    let notation = Notation::ALL[usize::from(*notation) % Notation::ALL.len()];
    let array: Shape = ARRAYS[usize::from(*array) % ARRAYS.len()].parse().expect("a shape");
    let Ok(text) = std::str::from_utf8(text) else { return };
    let Ok(read) = notation.read(text, &array) else { return };
    // Tiles may be larger than any buffer.
    let Ok(tiled) = Tiled::new(&read) else { return };
    let Ok(written) = notation.write(&tiled) else { return };
    let Ok(again) = notation.read(&written, &array) else { return };
    let again = Tiled::new(&again).expect("no larger than what was written");
    assert_eq!(offsets(&again), offsets(&tiled), "{text} {written}");
}

fn offsets(tiled: &Tiled) -> Vec<u64> {
    let bounds = tiled.logical_dimensions();
    let offset = |position| tiled.offset_of(&crate::index::unravel(position, bounds)).expect("inside");
    (0..bounds.iter().product()).map(offset).collect()
}
