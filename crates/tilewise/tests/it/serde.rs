//! Shapes and element types in serde's formats.

#![cfg(feature = "serde")]

use std::collections::BTreeMap;
use tilewise::{ElementType, Shape};

#[test]
fn shapes_are_their_text_as_written() {
    for text in ["f32[3,5]{1,0:T(2,2)}", "f32[3,5]", "(s8[<=4,?]{0,1:E(4)S(1)}, token[], b(u8[2]))", "()", "f32[]"] {
        let shape = Shape::parse_as_written(text).expect(text);
        let json = serde_json::to_string(&shape).expect("a string");
        assert_eq!(json, format!("\"{text}\""));
        let back: Shape = serde_json::from_str(&json).expect("its own text");
        assert!(back.identical(&shape), "{text}");
    }
}

#[test]
fn element_types_are_their_names_and_may_be_keys() {
    let counts = BTreeMap::from([(ElementType::F8e4m3fn, 2), (ElementType::Pred, 1)]);
    let json = serde_json::to_string(&counts).expect("an object");
    assert_eq!(json, r#"{"pred":1,"f8e4m3fn":2}"#);
    assert_eq!(serde_json::from_str::<BTreeMap<ElementType, i32>>(&json).expect("its own text"), counts);
}

#[test]
fn errors_say_what_is_wrong_and_what_to_write() {
    let error = serde_json::from_str::<Shape>(r#""b16[2]""#).unwrap_err().to_string();
    assert!(error.starts_with("`b16` is not an element type: did you mean `bf16`?"), "{error}");
    let error = serde_json::from_str::<ElementType>("7").unwrap_err().to_string();
    assert!(error.starts_with("invalid type: integer `7`, expected the name of an element type"), "{error}");
}
