//! How two layouts relate, from programs and in arrays of 10^12 elements.

use crate::{
    measure::{Effort, medians},
    report::Report,
};
use std::{hint::black_box, time::Duration};
use tilewise::{BitcastAs, Shape};

/// Shapes that are compared each with each.
const LARGE: [&str; 14] = [
    "f32[1000000,1000000]{1,0:T(8,128)}",
    "f32[1000000,1000000]{0,1:T(8,128)}",
    "f32[1000000,1000000]{1,0}",
    "f32[1000000,1000000]{0,1}",
    "f32[1000000,1000000]{1,0:T(1024)}",
    "f32[1000000,1000000]{1,0:T(8,128)(4,1)}",
    "f32[1000000,999936]{1,0:T(8,128)}",
    "f32[1000,1000,1000000]{2,1,0:T(8,128)}",
    "f32[1000000,1000,1000]{2,1,0:T(8,128)}",
    "f32[1000,1000,1000,1000]{2,0,3,1:T(8,128)}",
    "f32[1000000000000]{0:T(1024)}",
    "f32[1000000000000]{0}",
    "bf16[1000000,1000000,2]{1,2,0:T(2,128)(2,1)}",
    "bf16[1000000,2000000]{1,0:T(8,128)(2,1)}",
];

/// Tiles that don't nest, and `*` over dimensions that no tile divides: each with each.
const TANGLED: [&str; 12] = [
    "f32[1000000,1000000]{1,0:T(5)(3)}",
    "f32[1000000,1000000]{1,0:T(*,7)}",
    "f32[1000000,1000000]{1,0:T(*,7)(3)}",
    "f32[1000000000000]{0:T(7)(3)}",
    "f32[1000000,1000000]{0,1:T(*,7)}",
    "f32[1000000,10000,100]{0,2,1:T(*,*,7)}",
    "f32[1000000,1000000]{0,1:T(*,7)(3)(2)}",
    "f32[1000000,10000,100]{0,2,1:T(*,*,7)(3)(2)}",
    "f32[1000000,100,100,100]{0,3,2,1:T(*,*,*,7)(3)(2)}",
    "f32[1000000,1000000]{1,0:T(100,100)(7,3)}",
    "f32[1000000,1000,1000]{2,1,0:T(100,100)(7,3)}",
    "f32[10000,10000,10000]{0,1,2:T(*,*,1000)(7)}",
];

pub(crate) fn run(effort: &Effort, report: &mut Report) -> anyhow::Result<()> {
    let mut programs = Vec::new();
    for line in csv::Reader::from_reader(&include_bytes!("../../conformance/facts/tpu_bitcasts.csv")[..]).records() {
        let line = line?;
        programs.push([line[1].to_owned(), line[2].to_owned()]);
    }
    let each_with_each = |shapes: &[&str]| -> Vec<[String; 2]> {
        shapes.iter().flat_map(|from| shapes.iter().map(move |to| [from, to].map(|&text| text.to_owned()))).collect()
    };
    let rows = [
        ("bitcasts and copies of TPU programs", programs),
        ("10^12 elements", each_with_each(&LARGE)),
        ("10^12 elements, tiles that don't nest", each_with_each(&TANGLED)),
    ]
    .map(|(name, pairs)| row(effort, name, &pairs));
    let rows: Vec<Vec<String>> = rows.into_iter().collect::<Result<_, _>>()?;
    let header = ["`Shape::bitcast`", "pairs", "median answer", "slowest answer", "undecided"];
    report.table("How two layouts relate: as a reshape, as a transpose, as anything.", &header, &rows);
    Ok(())
}

/// Each question by itself, in the median of rounds.
fn row(effort: &Effort, name: &str, pairs: &[[String; 2]]) -> Result<Vec<String>, tilewise::Error> {
    let (mut times, mut undecided) = (Vec::new(), 0);
    for [from, to] in pairs {
        let [from, to]: [Shape; 2] = [from.parse()?, to.parse()?];
        for reading in [BitcastAs::Reshape, BitcastAs::Transpose, BitcastAs::Any] {
            let answer = || black_box(black_box(&from).bitcast(black_box(&to), reading));
            undecided += usize::from(answer().is_err());
            times.push(medians(effort.rounds, &mut [Box::new(|| drop(answer()))])[0]);
        }
    }
    times.sort_unstable();
    let shown =
        |time: Option<&Duration>| time.map_or_else(String::new, |time| format!("{:.1} µs", time.as_secs_f64() * 1e6));
    let [median, slowest] = [times.get(times.len() / 2), times.last()].map(shown);
    Ok(vec![name.to_owned(), pairs.len().to_string(), median, slowest, undecided.to_string()])
}
