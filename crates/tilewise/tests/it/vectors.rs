//! `vectors/`: what others test themselves with holds here.

#![allow(clippy::cast_possible_truncation, reason = "small numbers")]

use csv::StringRecord;
use tilewise::{Shape, Tiled};
use tilewise_testing::Random;

fn rows(name: &str) -> Vec<StringRecord> {
    let path = format!("{}/../../vectors/{name}.csv", env!("CARGO_MANIFEST_DIR"));
    csv::Reader::from_path(path).expect("a table").records().map(|row| row.expect("a row")).collect()
}

fn tiled(text: &str) -> Tiled {
    Tiled::new(&text.parse::<Shape>().expect(text)).expect(text)
}

fn numbers(text: &str) -> Vec<u64> {
    text.split(',').filter(|number| !number.is_empty()).map(|number| number.parse().expect(text)).collect()
}

#[test]
fn sizes() {
    for row in rows("sizes") {
        let tiled = tiled(&row[0]);
        assert_eq!(tiled.physical_dimensions(), numbers(&row[1]), "{}", &row[0]);
        let sizes =
            [tiled.logical_bytes(), tiled.physical_elements(), tiled.physical_bytes()].map(|size| size.to_string());
        assert_eq!(sizes, [&row[2], &row[3], &row[4]], "{}", &row[0]);
    }
}

#[test]
fn offsets() {
    for row in rows("offsets") {
        let offset = row[1].parse().expect("an offset");
        let wanted = (&row[2] != "padding").then(|| numbers(&row[2]));
        assert_eq!(tiled(&row[0]).index_of(offset).expect("inside"), wanted, "{} @{offset}", &row[0]);
    }
}

/// Worked out by another program in another language, from the document's words.
#[test]
fn runs() {
    for row in rows("runs") {
        let found = tiled(&row[0]).slice_runs(&numbers(&row[1]), &numbers(&row[2])).expect("a slice");
        let told: Vec<String> = found.map(|run| format!("{}:{}", run.start, run.end - run.start)).collect();
        assert_eq!(told.join(" "), &row[3], "{} {} {}", &row[0], &row[1], &row[2]);
    }
}

/// In every default layout that libtpu gave, a slice's runs are the offsets of its elements, and those have its indices.
#[test]
fn every_default_layout_is_addressed() {
    let (mut asked, mut random) = (0, Random::new(5));
    for row in rows("default_layouts") {
        let (types, layouts) =
            (row[1].split(' '), row[3].split(' ').map(|one| one.split_once('=').expect("a layout").1));
        let layouts: Vec<&str> = layouts.collect();
        for element in types {
            for (number, layout) in layouts.iter().enumerate() {
                asked += 1;
                // Generations mostly agree.
                if layouts[..number].contains(layout) {
                    continue;
                }
                let shape = format!("{element}[{}]{layout}", &row[2]);
                let tiled = tiled(&shape);
                let (mut start, mut limit) = (Vec::new(), Vec::new());
                for &bound in tiled.logical_dimensions() {
                    let from = random.below(bound.max(1));
                    start.push(from.min(bound));
                    limit.push((from + 1 + random.below(4_u64)).min(bound));
                }
                let mut indices = vec![Vec::new()];
                for (&start, &limit) in start.iter().zip(&limit) {
                    let values = |index: Vec<u64>| (start..limit).map(move |i| [&index[..], &[i]].concat());
                    indices = indices.into_iter().flat_map(values).take(4096).collect();
                }
                let Ok(runs) = tiled.slice_runs(&start, &limit) else { panic!("{shape} {start:?} {limit:?}") };
                if runs.elements() > 300 {
                    continue;
                }
                let mut offsets: Vec<u64> =
                    indices.iter().map(|index| tiled.offset_of(index).expect("inside")).collect();
                for (index, &offset) in indices.iter().zip(&offsets) {
                    assert_eq!(tiled.index_of(offset).expect("inside").as_ref(), Some(index), "{shape}");
                }
                offsets.sort_unstable();
                let bits = tiled.stored_bits();
                let told = runs.flat_map(|run| (run.start / bits)..(run.end / bits));
                assert_eq!(told.collect::<Vec<_>>(), offsets, "{shape} {start:?} {limit:?}");
            }
        }
    }
    assert_eq!(asked, 41_650);
}
