//! Facts recorded from live XLA, from the TPU compiler and from the documents' definition: `conformance/facts`, whose README says
//! where each comes from.

use std::{collections::HashMap, path::Path};
use tilewise::{BitcastAs, Error, Shape, Tiled};

struct Row(HashMap<String, String>);

impl std::ops::Index<&str> for Row {
    type Output = str;

    fn index(&self, column: &str) -> &str {
        &self.0[column]
    }
}

impl Row {
    /// The row's text, whose escaped form is the body of a JSON string.
    fn text(&self) -> String {
        match &self["escaped"] {
            "1" => serde_json::from_str(&format!("\"{}\"", &self["text"])).expect("a JSON string"),
            _ => self["text"].to_owned(),
        }
    }

    /// Whether the answer is among those a careful reader may give.
    fn allows(&self, error: &Error) -> bool {
        self["strict"].split('|').any(|kind| kind == "any" || kind == error.kind().as_str())
    }
}

fn rows(file: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance/facts").join(file);
    let mut reader = csv::Reader::from_path(path).expect("the facts are in the tree");
    let rows: Vec<Row> = reader.deserialize().map(|row| Row(row.expect("a row"))).collect();
    assert!(rows.len() > 100, "{file} has {} rows", rows.len());
    rows
}

/// A list such as `2,3`; the empty text is the empty list.
fn numbers(list: &str) -> Vec<u64> {
    list.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().expect("a number")).collect()
}

fn tiled(text: &str) -> Result<Tiled, Error> {
    Tiled::new(&text.parse()?)
}

#[test]
fn texts_are_read_and_printed_as_xla_does() {
    for file in ["shape_vectors.csv", "bad_inputs.csv"] {
        for row in rows(file) {
            let text = row.text();
            match text.parse::<Shape>() {
                Ok(shape) => {
                    assert!(row["strict"].split('|').any(|kind| kind == "ok"), "{text:?} was accepted: {shape}");
                    let columns = ["strict_canonical", "canonical", "xla_detail"].map(|column| row.0.get(column));
                    let wanted = columns.into_iter().flatten().find(|text| !text.is_empty());
                    assert_eq!(&shape.to_string(), wanted.unwrap_or(&text), "{text:?}");
                    if let Some(without) = row.0.get("without_layout").filter(|w| !w.is_empty()) {
                        assert_eq!(&shape.without_layout().to_string(), without, "{text:?}");
                    }
                }
                Err(error) => {
                    assert!(row.allows(&error), "{text:?}: wanted {}, got {error:?}", &row["strict"]);
                    let span = error.span().expect("an error about a text has a span");
                    assert!(text.get(span.clone()).is_some(), "{text:?}: {span:?} is no range of characters");
                }
            }
        }
    }
}

#[test]
fn sizes_are_the_documents_and_array_size_is_xlas() {
    for row in rows("sizes.csv") {
        let text = &row["shape"];
        let columns = ["logical_bytes", "physical_elements", "physical_bytes"];
        if columns.iter().any(|column| &row[*column] == "overflow") {
            assert_eq!(tiled(text).expect_err(text).kind().as_str(), "overflow", "{text}");
            continue;
        }
        let tiled = tiled(text).expect(text);
        let sizes = [tiled.logical_bytes(), tiled.physical_elements(), tiled.physical_bytes()];
        assert_eq!(sizes.map(|s| s.to_string()), columns.map(|column| row[column].to_owned()), "{text}");
        assert_eq!(tiled.physical_dimensions(), numbers(&row["physical_dimensions"]), "{text}");
        let xla = tiled.array().xla_array_size();
        match &row["xla_array_size"] {
            "none" | "overflow" => assert_eq!(xla, None, "{text}"),
            size => assert_eq!(xla.map(|s| s.to_string()).as_deref(), Some(size), "{text}"),
        }
    }
}

#[test]
fn indices_map_to_offsets() {
    for row in rows("index.csv").into_iter().chain(rows("combine.csv")) {
        let tiled = tiled(&row["shape"]).expect(&row["shape"]);
        let offset = tiled.offset_of(&numbers(&row["index"])).expect("inside");
        assert_eq!(offset.to_string(), &row["offset"], "{} at {}", &row["shape"], &row["index"]);
    }
}

#[test]
fn offsets_map_back_to_indices_or_padding() {
    for row in rows("inverse.csv") {
        let offset = row["offset"].parse().expect("a number");
        let found = match tiled(&row["shape"]).expect(&row["shape"]).index_of(offset) {
            Ok(Some(index)) => index.iter().map(u64::to_string).collect::<Vec<_>>().join(","),
            Ok(None) => "padding".to_owned(),
            Err(error) => error.kind().as_str().replace("offset_", ""),
        };
        assert_eq!(found, &row["index"], "{} @{offset}", &row["shape"]);
    }
}

#[test]
fn merged_dimensions_expand_as_the_document_says() {
    for row in rows("combine.csv") {
        let tiled = tiled(&row["shape"]).expect(&row["shape"]);
        assert_eq!(tiled.physical_dimensions(), numbers(&row["physical_dimensions"]), "{}", &row["shape"]);
        assert_eq!(tiled.physical_elements().to_string(), &row["physical_elements"], "{}", &row["shape"]);
    }
}

#[test]
fn argument_sizes_are_the_tpu_compilers() {
    for row in rows("tpu_argument_sizes.csv") {
        let bytes = tiled(&row["shape"]).expect(&row["shape"]).physical_bytes();
        assert_eq!(bytes.to_string(), &row["expected"], "{} on {}", &row["shape"], &row["tpu"]);
    }
}

#[test]
fn bitcasts_of_the_tpu_compiler_are_found_and_its_copies_are_not() {
    let (mut bitcasts, mut copies) = (0, 0);
    for row in rows("tpu_bitcasts.csv") {
        let [from, to] = ["from", "to"].map(|side| row[side].parse::<Shape>().expect("a shape"));
        let answer = |reading| from.bitcast(&to, reading).expect("an answer");
        let relation = answer(BitcastAs::Any);
        if &row["opcode"] == "bitcast" {
            bitcasts += 1;
            let names: &[&str] = match &row["relation"] {
                "reshape" => &["identical", "reshape"],
                "transpose" => &["transpose"],
                "same_cells" => &["transpose_reshape"],
                "other_count" => &["exposes_padding"],
                _ => &[],
            };
            assert!(relation.is_bitcast(), "{from} {to}: {relation:?}");
            assert!(names.is_empty() || names.contains(&relation.as_str()), "{from} {to}: {relation:?}");
        } else if ["other_size", "other_cells", "transpose", "same_cells"].contains(&&row["relation"]) {
            copies += 1;
            assert!(!answer(BitcastAs::Reshape).is_bitcast(), "{from} {to}");
            // The compiler copies what only a transpose, or nothing, would make free.
            let as_transpose = matches!(relation.as_str(), "transpose" | "transpose_reshape");
            assert!(as_transpose || !relation.is_bitcast(), "{from} {to}: {relation:?}");
            assert!(relation.is_bitcast() || relation.counterexample().is_some(), "{from} {to}: {relation:?}");
        }
    }
    assert_eq!((bitcasts, copies), (137, 55));
}
