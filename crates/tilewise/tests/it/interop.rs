//! The NumPy and einops programs run, and the affine maps evaluated by MLIR, against this crate's own arithmetic.
//!
//! `TILEWISE_PYTHON` names a Python interpreter that has numpy, einops and jaxlib.

use proptest::{
    strategy::{Strategy, ValueTree},
    test_runner::TestRunner,
};
use serde_json::{Value, json};
use std::{fs, path::Path, process::Command};
use tilewise::{Shape, Tiled};
use tilewise_testing::{cells::unravel, shapes::small_arrays};

const WORKED_EXAMPLES: [&str; 27] = [
    "f32[]",
    "f32[]{:T(128)}",
    "s4[]{:T(*,8)E(4)}",
    "f32[7]{0}",
    "f32[7]{0:L(4)}",
    "f32[7]{0:T(4)L(3)}",
    "f32[7]{0:T(4)(3)}",
    "f32[7]{0:T(8,128)}",
    "f32[0,5]{0,1:T(2,4)(2,1)}",
    "f32[3,0,5]{2,1,0:T(*,2,4)(3)L(8)}",
    "f32[3,5]{1,0}",
    "f32[3,5]{0,1}",
    "f32[3,5]{1,0:T(2,2)}",
    "f32[3,5]{0,1:T(2,2)L(32)}",
    "f32[4,8]{1,0:T(2,4)(2,1)}",
    "f32[4,8]{1,0:T(2,4)(*,2)}",
    "f32[5,7]{1,0:T(4,4)(3,1)}",
    "f32[5,6]{1,0:T(8,*,128)}",
    "bf16[30,140]{1,0:T(8,128)(2,1)}",
    "bf16[20,3,50]{0,2,1:T(8,128)(2,1)}",
    "s8[33,130]{1,0:T(8,128)(4,1)}",
    "pred[9,130]{1,0:T(32,128)(32,1)E(1)}",
    "bf16[2,8,128]{2,1,0:T(8,128)(2,1)}",
    "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}",
    "f32[3,4,2,5,2]{0,4,2,1,3:T(*,*,2,*,3)(2,1)}",
    "f32[3,5]{1,0:T(*,3)(*,5)(*,3)(4)}",
    "bf16[2048]{0:T(1024)(128)(2,1)}",
];

const CHECK: &str = r#"
import json, sys
import numpy as np
from jaxlib.mlir import ir


def run(program, case):
    names = {}
    exec(program, names)
    x = np.arange(1, case["elements"] + 1, dtype=np.int32).reshape(case["bounds"])
    buffer = names["to_buffer"](x)
    memory = np.array(case["memory"], dtype=np.int32)
    assert buffer.dtype == x.dtype and np.array_equal(buffer, memory), buffer
    rubbish = np.where(memory == 0, -1, memory)
    back = names["from_buffer"](rubbish)
    assert back.shape == x.shape and np.array_equal(back, x), back


def evaluate(affine_map, index):
    constants = ir.AffineMap.get(0, 0, [ir.AffineConstantExpr.get(i) for i in index])
    results = [result.compose(constants) for result in affine_map.results]
    return [ir.AffineConstantExpr(result).value for result in results]


def check_maps(case):
    expanded, offset = (ir.AffineMapAttr(ir.Attribute.parse(case[name])).value for name in ("map", "offset_map"))
    assert expanded.n_dims == offset.n_dims == len(case["bounds"])
    dimensions = "".join(f"{bound}x" for bound in case["bounds"])
    assert isinstance(ir.Type.parse(f"memref<{dimensions}i8, {case['offset_map']}>"), ir.MemRefType)
    assert len(expanded.results) == len(case["physical_dimensions"]) and len(offset.results) == 1
    for sample in case["samples"]:
        assert evaluate(expanded, sample["index"]) == sample["physical_index"], sample
        assert evaluate(offset, sample["index"]) == [sample["offset"]], sample


with ir.Context():
    for case in json.load(open(sys.argv[1], encoding="utf-8")):
        try:
            run(case["numpy"], case)
            run(case["einops"], case)
            check_maps(case)
        except Exception:
            print(case["shape"], case["numpy"], case["einops"], case["map"], case["offset_map"], sep="\n", file=sys.stderr)
            raise
"#;

fn to_usize(bounds: &[u64]) -> Vec<usize> {
    bounds.iter().map(|&bound| usize::try_from(bound).expect("small")).collect()
}

fn case(shape: &Shape) -> Value {
    let tiled = Tiled::new(shape).expect("small");
    let derivation = tiled.derivation();
    let bounds = to_usize(tiled.logical_dimensions());
    let elements: usize = bounds.iter().product();

    let mut memory = vec![0; to_usize(&[tiled.physical_elements()])[0]];
    let mut samples = Vec::new();
    for position in 0..elements {
        let index: Vec<u64> = unravel(position, &bounds).iter().map(|&i| i as u64).collect();
        let offset = tiled.offset_of(&index).expect("inside");
        memory[to_usize(&[offset])[0]] = position + 1;
        // MLIR takes its time: some indices of each array, the first and the last among them.
        if position % (elements / 40 + 1) == 0 || position + 1 == elements {
            let physical_index = tiled.physical_index_of(offset).expect("inside").expect("an element");
            samples.push(json!({ "index": index, "offset": offset, "physical_index": physical_index }));
        }
    }
    for (offset, &number) in memory.iter().enumerate() {
        let index = tiled.index_of(offset as u64).expect("inside");
        assert_eq!(index.is_some(), number != 0, "{shape} @{offset}");
    }
    json!({
        "shape": shape.to_string(),
        "bounds": bounds,
        "elements": elements,
        "physical_dimensions": tiled.physical_dimensions(),
        "memory": memory,
        "samples": samples,
        "numpy": derivation.numpy().to_string(),
        "einops": derivation.einops().to_string(),
        "map": tiled.affine_map().expect("short").to_string(),
        "offset_map": tiled.affine_offset_map().expect("short").to_string(),
    })
}

#[test]
fn programs_and_maps_do_what_the_layout_says() {
    let Some(python) = std::env::var_os("TILEWISE_PYTHON") else {
        println!("skipped: TILEWISE_PYTHON names no Python interpreter with numpy, einops and jaxlib");
        return;
    };
    let mut runner = TestRunner::deterministic();
    let random = (0..80).map(|_| small_arrays().new_tree(&mut runner).expect("a layout").current());
    let examples = WORKED_EXAMPLES.iter().map(|text| text.parse().expect(text));
    let cases: Vec<Value> = examples.chain(random).map(|shape| case(&shape)).collect();

    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let (script, data) = (directory.join("interop.py"), directory.join("interop.json"));
    fs::write(&script, CHECK).expect("written");
    fs::write(&data, Value::from(cases).to_string()).expect("written");
    let output = Command::new(python).arg(script).arg(data).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn programs_read_well() {
    let tiled = |text: &str| Tiled::new(&text.parse().expect(text)).expect(text);
    assert_eq!(
        tiled("bf16[300,500]{0,1:T(8,128)(2,1)}").derivation().einops().to_string(),
        r#"# bf16[300,500]{0,1:T(8,128)(2,1)}
import numpy as np
from einops import rearrange


def to_buffer(x):
    """The stored elements in the order of memory, padding filled with zeros."""
    x = np.asarray(x)
    assert x.shape == (300, 500)
    x = rearrange(x, 'y x -> x y')                                              # {0,1}
    x = np.pad(x, [(0, 4), (0, 84)])                                            # T(8,128)
    x = rearrange(x, '(x x1 x2) (y y1) -> (x y x1 y1 x2)', x1=4, x2=2, y1=128)  # T(8,128) (2,1)
    return x


def from_buffer(x):
    """The logical array, padding dropped."""
    x = np.asarray(x)
    assert x.shape == (193536,)
    x = rearrange(x, '(x y x1 y1 x2) -> (x x1 x2) (y y1)', y=3, x1=4, y1=128, x2=2)  # T(8,128) (2,1)
    x = x[:500, :300]                                                                # T(8,128)
    x = rearrange(x, 'x y -> y x')                                                   # {0,1}
    return x
"#
    );
    assert_eq!(
        tiled("s4[3,5]{1,0:T(2,2)E(4)}").derivation().numpy().to_string(),
        r#"# s4[3,5]{1,0:T(2,2)E(4)}
import numpy as np


def to_buffer(x):
    """The stored elements in the order of memory, padding filled with zeros."""
    x = np.asarray(x)
    assert x.shape == (3, 5)
    x = np.pad(x, [(0, 1), (0, 1)])  # T(2,2)
    x = x.reshape(2, 2, 3, 2)        # T(2,2)
    x = x.transpose(0, 2, 1, 3)      # T(2,2)
    x = x.reshape(24)
    # A further step: E(4) stores element k in bits 4*k to 4*(k+1)-1 of the buffer.
    return x


def from_buffer(x):
    """The logical array, padding dropped."""
    x = np.asarray(x)
    assert x.shape == (24,)
    x = x.reshape(2, 3, 2, 2)
    x = x.transpose(0, 2, 1, 3)  # T(2,2)
    x = x.reshape(4, 6)          # T(2,2)
    x = x[:3, :5]                # T(2,2)
    return x
"#
    );
}

#[test]
fn maps_of_merged_axes_are_linear() {
    let maps = |text: &str| {
        let tiled = Tiled::new(&text.parse().expect(text)).expect(text);
        [tiled.affine_map(), tiled.affine_offset_map()].map(|map| map.map(|map| map.to_string()))
    };
    let some = |maps: [&str; 2]| maps.map(|map| Some(map.to_owned()));
    assert_eq!(maps("f32[]"), some(["affine_map<() -> ()>", "affine_map<() -> (0)>"]));
    assert_eq!(
        maps("f32[3,5]{1,0:T(*,4)}"),
        some([
            "affine_map<(d0, d1) -> ((d0 * 5 + d1) floordiv 4, (d0 * 5 + d1) mod 4)>",
            "affine_map<(d0, d1) -> (d0 * 5 + d1)>"
        ])
    );
    // Sizes that cut across a merged pair of axes double the terms each time.
    let deep = format!("f32[15,15]{{1,0:T(*,15){}}}", "(*,3)(*,5)".repeat(40));
    assert_eq!(maps(&deep), [None, None]);
}
