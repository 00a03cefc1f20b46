//! Offsets in bulk, against the formula written out and against NumPy.

use crate::{
    measure::{Contender, Effort, median, medians},
    report::Report,
    rivals::Rivals,
};
use anyhow::Context;
use std::{fs, hint::black_box, time::Duration};
use tilewise::{Shape, Tiled};
use tilewise_testing::Random;

/// The document's formula for a layout of rank 2, written out by hand.
type Formula = fn(y: u64, x: u64) -> u64;

const LAYOUTS: [(&str, Formula); 3] = [
    ("f32[30000,500]{1,0:T(8,128)}", |y, x| ((y / 8 * 4 + x / 128) * 8 + y % 8) * 128 + x % 128),
    ("bf16[30000,500]{1,0:T(8,128)(2,1)}", |y, x| {
        (((y / 8 * 4 + x / 128) * 4 + y % 8 / 2) * 128 + x % 128) * 2 + y % 2
    }),
    ("f32[30000,500]{1,0}", |y, x| y * 500 + x),
];

pub(crate) fn run(effort: &Effort, rivals: &Rivals, report: &mut Report) -> anyhow::Result<()> {
    let (rounds, count) = (effort.rounds, if effort.quick { 100_000 } else { 10_000_000 });
    let folder = std::env::temp_dir().join(format!("tilewise-bench-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let file = folder.join("indices");
    let mut rows = Vec::new();
    for (text, formula) in LAYOUTS {
        let tiled = Tiled::new(&text.parse::<Shape>()?)?;
        let indices = indices(tiled.logical_dimensions(), count);
        let mut offsets = vec![0; count];
        tiled.fill_offsets(&indices, &mut offsets)?;
        fs::write(&file, little_endian(&indices))?;
        fs::write(folder.join("indices.offsets"), little_endian(&offsets))?;

        let mut by_formula = vec![0; count];
        let mut contenders: [Contender<'_>; 2] = [
            Box::new(|| _ = black_box(tiled.fill_offsets(black_box(&indices), black_box(&mut offsets)))),
            Box::new(|| {
                for (index, offset) in black_box(&indices).chunks_exact(2).zip(&mut by_formula) {
                    *offset = formula(index[0], index[1]);
                }
            }),
        ];
        let times = medians(rounds, &mut contenders);
        drop(contenders);
        anyhow::ensure!(offsets == by_formula, "{text}: the formula disagrees");
        let request = format!("offsets\t{text}\t{count}\t{}", file.to_str().context("a path that is text")?);
        let numpy: Vec<Duration> = (0..rounds).map(|_| rivals.time(&request)).collect::<Result<_, _>>()?;
        let numpy = median(numpy);
        let each = |time: Duration| format!("{:.2} ns", time.as_secs_f64() * 1e9 / count as f64);
        let ratio = |time: Duration| format!("{:.1}×", time.as_secs_f64() / times[0].as_secs_f64());
        rows.push(vec![
            format!("`{text}`"),
            each(times[0]),
            each(times[1]),
            each(numpy),
            ratio(times[1]),
            ratio(numpy),
        ]);
    }
    fs::remove_dir_all(&folder)?;
    let header = ["layout", "`fill_offsets`", "formula by hand", "NumPy", "formula ÷ ours", "NumPy ÷ ours"];
    let words = format!(
        "{count} random indices. `fill_offsets` checks bounds, the others do not. NumPy computes the same formula on columns, or \
         `ravel_multi_index` without tiles. Time per offset."
    );
    report.table(&words, &header, &rows);
    Ok(())
}

/// Random indices inside the bounds, one after the other, from a fixed seed.
fn indices(bounds: &[u64], count: usize) -> Vec<u64> {
    let mut random = Random::new(0);
    (0..count).flat_map(|_| bounds).map(|&bound| random.below(bound)).collect()
}

fn little_endian(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|n| n.to_le_bytes()).collect()
}
