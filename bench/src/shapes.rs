//! Reading and printing shapes, and computing their layouts.

use crate::{
    measure::{Effort, nanoseconds_a_call},
    report::Report,
};
use std::hint::black_box;
use tilewise::{Shape, Tiled};

const TEXTS: [&str; 5] = [
    "f32[]",
    "f32[2,3]{1,0}",
    "bf16[8,1,1280,16384]{3,2,0,1:T(8,128)(2,1)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "(f32[1024,1000]{0,1:T(8,128)S(1)}, f32[1024,1000]{0,1:T(8,128)}, u32[]{:S(2)})",
];

pub(crate) fn run(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for text in TEXTS {
        let shape: Shape = text.parse()?;
        let parse = nanoseconds_a_call(effort.rounds, || {
            black_box(black_box(text).parse::<Shape>().is_ok());
        });
        let print = nanoseconds_a_call(effort.rounds, || {
            black_box(black_box(&shape).to_string());
        });
        let tiled = match Tiled::new(&shape) {
            Ok(_) => {
                format!("{:.0} ns", nanoseconds_a_call(effort.rounds, || _ = black_box(Tiled::new(black_box(&shape)))))
            }
            Err(_) => "–".to_owned(),
        };
        rows.push(vec![format!("`{text}`"), format!("{parse:.0} ns"), format!("{print:.0} ns"), tiled]);
    }
    let header = ["shape", "parse", "print", "`Tiled::new`"];
    report.table("One shape at a time, from text to value and back.", &header, &rows);
    Ok(())
}
