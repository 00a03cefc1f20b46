//! Editing, comparing and counting shapes, held against what XLA's own functions answered: `conformance/edits/record.py` records them.

use std::{env, fs, ops::ControlFlow};
use tilewise::{ElementType, Error, Shape, ShapeEqual};

/// Rows of recorded answers; `TILEWISE_EDITS` names another file of them.
fn rows() -> csv::Reader<fs::File> {
    let recorded = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conformance/facts/shape_edits.csv");
    let path = env::var("TILEWISE_EDITS").unwrap_or_else(|_| recorded.to_owned());
    csv::Reader::from_path(path).expect("recorded answers")
}

struct Row {
    shape: Shape,
    other: Option<Shape>,
    argument: String,
}

impl Row {
    fn numbers<T: std::str::FromStr>(&self) -> Vec<T> {
        let parts = self.argument.split(',').filter(|part| !part.is_empty());
        parts.map(|part| part.parse().ok().expect("a number")).collect()
    }

    fn other(&self) -> &Shape {
        self.other.as_ref().expect("another shape")
    }

    fn edited(&self, function: &str) -> Option<Result<Shape, Error>> {
        let shape = &self.shape;
        let first = || self.numbers::<u64>()[0];
        let dimensions = || self.numbers::<usize>();
        Some(match function {
            "change_element_type" => shape.change_element_type(self.argument.parse().expect("a type")),
            "append_major_dimension" => shape.append_major_dimension(first()),
            "append_minor_dimension" => shape.append_minor_dimension(first()),
            "insert_dimension_at_index" => shape.insert_dimension_at_index(dimensions()[0], self.numbers()[1]),
            "insert_dimensions_at_index" => shape.insert_dimensions_at_index(dimensions()[0], &self.numbers()[1..]),
            "delete_dimension" => shape.delete_dimension(dimensions()[0]),
            "delete_dimensions" => shape.delete_dimensions(&dimensions()),
            "drop_degenerate_dimensions" => shape.drop_degenerate_dimensions(),
            "permute_dimensions" | "permute_dimensions_ignoring_layout" => shape.permute_dimensions(&dimensions()),
            "move_dim_to_major" => shape.move_dim_to_major(dimensions()[0]),
            "with_descending_layout_and_same_physical_layout" => {
                shape.with_descending_layout_and_same_physical_layout()
            }
            "static_shape" => shape.static_shape(),
            "device_shape_to_host_shape" => Ok(shape.device_shape_to_host_shape()),
            "complex_component_shape" => shape.complex_component_shape(),
            "with_default_layout" => shape.with_default_layout(),
            "update_element_size_in_bits" => Ok(shape.update_element_size_in_bits(self.argument == "true")),
            "append_shape_to_tuple" => shape.append_shape_to_tuple(self.other()),
            _ => return None,
        })
    }

    fn answer(&self, function: &str) -> String {
        if let Some(edited) = self.edited(function) {
            return edited.map_or_else(|_| "invalid".to_owned(), |shape| shape.to_string());
        }
        let shape = &self.shape;
        let text = |numbers: &[usize]| numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let pairs = |pairs: &[(usize, usize)]| text(&pairs.iter().flat_map(|&(a, b)| [a, b]).collect::<Vec<_>>());
        match function {
            "compatible" => shape.compatible(self.other()).to_string(),
            "compatible_ignoring_element_type" => shape.compatible_ignoring_element_type(self.other()).to_string(),
            "compatible_ignoring_fp_precision" => shape.compatible_ignoring_fp_precision(self.other()).to_string(),
            "compatible_kind" => shape.compatible_kind(self.other()).to_string(),
            "equal_ignoring_element_type" => shape.equal_ignoring_element_type(self.other()).to_string(),
            "equal_structure" => shape.equal_structure(self.other()).to_string(),
            "same_dimensions" => shape.same_dimensions(self.other()).to_string(),
            "equal" => self
                .argument
                .split_whitespace()
                .fold(ShapeEqual::new(), ignoring)
                .holds(shape, self.other())
                .to_string(),
            "dynamic_shape_is_compatible" => shape.dynamic_shape_is_compatible(self.other()).to_string(),
            "is_prefix_of" => shape.is_prefix_of(self.other()).to_string(),
            "byte_size_of" => shape.byte_size_of(self.numbers()[0]).expect("a size").to_string(),
            "byte_strides" => {
                let strides = shape.as_array().expect("an array").byte_strides().expect("strides");
                strides.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
            }
            "can_upcast" => {
                let [one, two] = [shape, self.other()].map(|shape| shape.element_type().expect("an array"));
                format!("{} {}", one.can_upcast(two), one.higher_precision(two))
            }
            "true_rank" => shape.as_array().expect("an array").true_rank().to_string(),
            "subshape_count" => shape.subshapes().count().to_string(),
            "leaf_count" => shape.leaves().count().to_string(),
            "dimension_stride" => {
                let stride = shape.as_array().expect("an array").dimension_stride(self.numbers()[0]);
                stride.expect("a stride").to_string()
            }
            "subshape" => shape.subshape(&self.numbers::<usize>()).map_or("none".to_owned(), |part| part.to_string()),
            "unmodified" => pairs(&shape.dimensions_unmodified_by_reshape(self.other()).expect("as many elements")),
            "one_sized" => {
                let found = shape.inserted_or_deleted_1_sized_dimensions(self.other()).expect("as many elements");
                found.map_or("none".to_owned(), |found| format!("{};{}", text(&found.deleted), text(&found.inserted)))
            }
            "left" => {
                let left = shape.reshape_leaves_dimensions_unmodified(self.other(), &self.numbers::<usize>());
                left.expect("as many elements").map_or("none".to_owned(), |left| text(&left))
            }
            _ => panic!("unknown function {function}"),
        }
    }
}

fn ignoring(equal: ShapeEqual, part: &str) -> ShapeEqual {
    match part {
        "layout" => equal.ignore_layout(),
        "tiles_in_layout" => equal.ignore_tiles_in_layout(),
        "element_size_in_layout" => equal.ignore_element_size_in_layout(),
        "memory_space_in_layout" => equal.ignore_memory_space_in_layout(),
        "element_type" => equal.ignore_element_type(),
        "fp_precision" => equal.ignore_fp_precision(),
        "dynamic_dimension" => equal.ignore_dynamic_dimension(),
        "dimensions" => equal.ignore_dimensions(),
        "tail_padding_alignment_in_elements" => equal.ignore_tail_padding_alignment_in_elements(),
        "split_config_in_layout" => equal.ignore_split_config_in_layout(),
        "buffer" => equal.ignore_buffer(),
        _ => panic!("unknown part {part}"),
    }
}

/// CORRECTNESS.md says where XLA answers and tilewise refuses: a token has no element type to change.
#[test]
fn answers_are_xlas() {
    let (mut compared, mut differ) = (0, Vec::new());
    for row in rows().records() {
        let row = row.expect("a row");
        let [function, shape, other, cleared, argument, answer] = [0, 1, 2, 3, 4, 5].map(|column| &row[column]);
        let read = |text: &str| text.parse::<Shape>().unwrap_or_else(|error| panic!("{text}: {error}"));
        let shape = if cleared == "1" { read(shape).clear_layout() } else { read(shape) };
        let other = (!other.is_empty()).then(|| read(other));
        let own = Row { shape, other, argument: argument.to_owned() }.answer(function);
        compared += 1;
        if own != answer {
            differ.push(format!("{row:?}: {own}"));
        }
    }
    println!("{compared} answers of XLA's functions compared, {} differ", differ.len());
    assert!(compared > 1000 && differ.is_empty(), "{} differ: {:#?}", differ.len(), &differ[..differ.len().min(12)]);
}

/// A tuple comes behind its elements, and what the function makes of those is in it.
#[test]
fn walks_in_post_order_are_the_definition() {
    fn defined(shape: &Shape, path: &[usize], parts: &mut Vec<(Vec<usize>, Shape)>) {
        if shape.as_array().is_none() {
            for (position, element) in shape.elements().enumerate() {
                defined(&element, &[path, &[position]].concat(), parts);
            }
        }
        parts.push((path.to_vec(), shape.clone()));
    }
    for text in ["f32[2]", "()", "(f32[2], ((), token[], (s8[])), (u8[1], b(f32[3])))"] {
        let shape: Shape = text.parse().expect(text);
        let mut parts = Vec::new();
        defined(&shape, &[], &mut parts);
        assert_eq!(shape.subshapes_post_order(), parts, "{text}");
        let mut visited = Vec::new();
        let mapped = shape.map_subshapes_post_order(|path, part| {
            visited.push((path.to_vec(), part.clone()));
            Ok::<_, Error>(part.clone())
        });
        assert_eq!((mapped, visited), (Ok(shape), parts), "{text}");
    }
}

#[test]
fn what_xla_aborts_on_is_an_error() {
    let shape: Shape = "f32[3,5]{1,0:T(2,2)}".parse().expect("a shape");
    for refused in [
        shape.delete_dimension(2),
        shape.delete_dimensions(&[0, 0]),
        shape.insert_dimension_at_index(3, 1),
        shape.permute_dimensions(&[0]),
        shape.permute_dimensions(&[0, 0]),
        shape.move_dim_to_major(2),
        shape.complex_component_shape(),
        shape.append_major_dimension(1 << 63),
        shape.append_minor_dimension(1 << 62),
        shape.append_shape_to_tuple(&shape),
        shape.slice_tuple(0..0),
        shape.replace_subshape(&[0], &shape),
        Shape::token().change_element_type(ElementType::S8),
        Shape::tuple([Shape::token()]).change_element_type(ElementType::S8),
        Shape::opaque().append_minor_dimension(1),
        "f32[?]".parse::<Shape>().expect("a shape").static_shape(),
        "f32[?]".parse::<Shape>().expect("a shape").insert_dimension_at_index(0, 1),
        shape.clear_layout().with_descending_layout_and_same_physical_layout(),
    ] {
        assert!(refused.is_err(), "{refused:?}");
    }
    assert!(shape.dimensions_unmodified_by_reshape(&"f32[16]".parse().expect("a shape")).is_err());
    let array = shape.as_array().expect("an array");
    let visit = |_: &[u64]| ControlFlow::<()>::Continue(());
    assert!(array.for_each_index_in(&[0, 0], &[3, 6], &[1, 1], visit).is_err());
    assert!(array.for_each_index_in(&[0, 0], &[3, 5], &[1, 0], visit).is_err());
    assert!(array.for_each_index_in(&[0], &[3], &[1], visit).is_err());
    assert!(array.bump_indices(&mut [0, 5]).is_err());
}
