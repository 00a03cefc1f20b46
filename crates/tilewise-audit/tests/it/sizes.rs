//! Bytes are data and padding, in every row of every program that this repository has.

use std::{fs, path::PathBuf};
use tilewise::Shape;
use tilewise_audit::{AuditOptions, Content, Report};
use tilewise_hlo::Module;
use tilewise_testing::programs;

/// Programs that were compiled for TPUs, and some that no compiler made.
fn reports() -> Vec<(PathBuf, Report)> {
    let mut reports = Vec::new();
    for path in programs::all() {
        for content in Content::read(fs::read(&path).expect("a file")) {
            if let Ok(Content::Program(program)) = content {
                reports.push((path.clone(), program.audit(AuditOptions::default())));
            }
        }
    }
    reports
}

/// Bytes of an array's elements one after the other, of anything else `None`.
fn data(shape: &Shape) -> Option<u64> {
    let array = shape.as_array()?;
    let elements: u64 = array.dimensions().iter().map(|dimension| dimension.bound().expect("a bound")).product();
    let natural = u64::from(array.element_type().natural_bits());
    let bits = array.layout()?.element_size_in_bits().map_or(natural, |bits| bits.min(natural));
    Some((elements * bits).div_ceil(8))
}

#[test]
fn bytes_are_data_and_padding() {
    let reports = reports();
    assert!(reports.len() > 50, "{} programs", reports.len());
    let mut rows = 0;
    for (path, report) in &reports {
        let place = |name: &str| format!("{}: {name} of {}", path.display(), report.module_name);
        for row in report.buffers() {
            let (row, sizes) = (place(&row.instruction), row.sizes);
            assert_eq!(sizes.physical_bytes, sizes.logical_bytes + sizes.padding_bytes(), "{row}");
        }
        for row in report.plan_rows() {
            let (data, bytes) = (row.shape().and_then(|shape| data(&shape)), row.value.bytes);
            assert_eq!(row.logical_bytes(), data.unwrap_or(bytes), "{}", place(row.instruction.name()));
            assert_eq!(bytes, row.logical_bytes() + row.padding_bytes(), "{}", place(row.instruction.name()));
            rows += 1;
        }
        for space in &report.memory_spaces {
            let Some(peak) = &space.peak else { continue };
            for row in &peak.rows {
                let place = place(&row.instruction);
                assert_eq!(row.bytes, row.logical_bytes + row.padding_bytes, "{place}");
                assert_eq!(row.padding_bytes == 0, row.causes.is_empty(), "{place}: {:?}", row.causes);
                if let Some(data) = data(&row.shape) {
                    assert_eq!(row.logical_bytes, data * row.count as u64, "{place}");
                }
            }
            let sum = |bytes: fn(&tilewise_audit::PeakRow) -> u64| peak.rows.iter().map(bytes).sum::<u64>();
            assert_eq!(sum(|row| row.bytes), peak.live_bytes, "{}", place("the peak"));
            assert_eq!(sum(|row| row.padding_bytes), peak.padding_bytes, "{}", place("the peak"));
        }
        let Some(timeline) = report.timeline(0) else { continue };
        for (piece, drawn) in report.pieces(0).iter().zip(&timeline.pieces) {
            assert_eq!(drawn.bytes, piece.row.logical_bytes() + drawn.padding_bytes, "{}", place(&drawn.instruction));
        }
    }
    assert!(rows > 1_000, "{rows} rows");
}

/// What no tile of the first level alone, and no layout at all, tells.
#[test]
fn all_levels_and_blocks_are_counted() {
    let text = "HloModule m, is_scheduled=true\n\nENTRY main {
  levels = f32[7,130]{1,0:T(4,128)(3,1)} parameter(0)
  plain = s8[33]{0} parameter(1)
  signal = u32[]{:T(128)S(2)} parameter(2)
  ROOT sum = f32[8,128]{1,0:T(8,128)} custom-call(levels, plain, signal)\n}\n";
    let report = tilewise_audit::audit(&Module::parse(text).expect("a module"));
    let row = |name: &str| {
        let rows = report.memory_spaces.iter().filter_map(|space| space.peak.as_ref()).flat_map(|peak| &peak.rows);
        let row = rows.into_iter().find(|row| row.instruction == name).expect(name);
        (row.bytes, row.logical_bytes, row.padding_bytes, row.causes.last().map(String::as_str))
    };
    // 4 × 2 tiles of 128 × 3 × 2 elements: the 4 rows of a tile are padded to 6.
    let (bytes, logical, padding, _) = row("levels");
    assert_eq!((bytes, logical, padding), (2 * 2 * 128 * 6 * 4, 7 * 130 * 4, 12_288 - 3640));
    assert_eq!(row("plain"), (4096, 33, 4063, Some("an array without tiles fills blocks of 4096 bytes")));
    assert_eq!(row("signal"), (4, 4, 0, None));
}
