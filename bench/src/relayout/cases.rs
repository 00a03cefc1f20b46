//! The cases, as data.

use serde::Serialize;
use tilewise::{ElementType, Shape};

/// A conversion, its target ratio to the fastest copy, and its steps in array libraries.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
    pub(crate) target: f64,
    pub(crate) steps: &'static [Step],
}

/// A step with an array library, from a flat array of units as wide as an element.
#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Step {
    Reshape(&'static [usize]),
    Transpose(&'static [usize]),
    /// Zeros before and after each dimension.
    Pad(&'static [[usize; 2]]),
    /// The first elements of each dimension, this many.
    Cut(&'static [usize]),
    /// Two neighbours' lower halves in one byte.
    Nibbles {},
}

use Step::{Cut, Nibbles, Pad, Reshape, Transpose};

const fn case(name: &'static str, from: &'static str, to: &'static str, target: f64, steps: &'static [Step]) -> Case {
    Case { name, from, to, target, steps }
}

/// The conversions that TPUs need, at sizes far past the caches.
pub(crate) const CASES: [Case; 18] = [
    case(
        "tile f32",
        "f32[4096,4096]{1,0}",
        "f32[4096,4096]{1,0:T(8,128)}",
        0.90,
        &[Reshape(&[512, 8, 32, 128]), Transpose(&[0, 2, 1, 3])],
    ),
    case(
        "untile f32",
        "f32[4096,4096]{1,0:T(8,128)}",
        "f32[4096,4096]{1,0}",
        0.90,
        &[Reshape(&[512, 32, 8, 128]), Transpose(&[0, 2, 1, 3])],
    ),
    case(
        "tile bf16, one level",
        "bf16[4096,8192]{1,0}",
        "bf16[4096,8192]{1,0:T(8,128)}",
        0.83,
        &[Reshape(&[512, 8, 64, 128]), Transpose(&[0, 2, 1, 3])],
    ),
    case(
        "tile s8, one level",
        "s8[8192,8192]{1,0}",
        "s8[8192,8192]{1,0:T(8,128)}",
        0.89,
        &[Reshape(&[1024, 8, 64, 128]), Transpose(&[0, 2, 1, 3])],
    ),
    case(
        "tile ragged f32",
        "f32[4093,4001]{1,0}",
        "f32[4093,4001]{1,0:T(8,128)}",
        0.87,
        &[Reshape(&[4093, 4001]), Pad(&[[0, 3], [0, 95]]), Reshape(&[512, 8, 32, 128]), Transpose(&[0, 2, 1, 3])],
    ),
    case(
        "untile ragged f32",
        "f32[4093,4001]{1,0:T(8,128)}",
        "f32[4093,4001]{1,0}",
        0.91,
        &[Reshape(&[512, 32, 8, 128]), Transpose(&[0, 2, 1, 3]), Reshape(&[4096, 4096]), Cut(&[4093, 4001])],
    ),
    case(
        "T(2,2)",
        "f32[4096,4096]{1,0}",
        "f32[4096,4096]{1,0:T(2,2)}",
        0.86,
        &[Reshape(&[2048, 2, 2048, 2]), Transpose(&[0, 2, 1, 3])],
    ),
    case(
        "transpose and tile f32",
        "f32[4096,4096]{1,0}",
        "f32[4096,4096]{0,1:T(8,128)}",
        0.56,
        &[Reshape(&[32, 128, 512, 8]), Transpose(&[2, 0, 3, 1])],
    ),
    case(
        "transpose f32",
        "f32[4096,4096]{1,0}",
        "f32[4096,4096]{0,1}",
        0.60,
        &[Reshape(&[4096, 4096]), Transpose(&[1, 0])],
    ),
    case(
        "pack bf16",
        "bf16[4096,8192]{1,0}",
        "bf16[4096,8192]{1,0:T(8,128)(2,1)}",
        0.82,
        &[Reshape(&[512, 4, 2, 64, 128]), Transpose(&[0, 3, 1, 4, 2])],
    ),
    case(
        "unpack bf16",
        "bf16[4096,8192]{1,0:T(8,128)(2,1)}",
        "bf16[4096,8192]{1,0}",
        0.89,
        &[Reshape(&[512, 64, 4, 128, 2]), Transpose(&[0, 2, 4, 1, 3])],
    ),
    case(
        "pack s8",
        "s8[8192,8192]{1,0}",
        "s8[8192,8192]{1,0:T(8,128)(4,1)}",
        0.88,
        &[Reshape(&[1024, 2, 4, 64, 128]), Transpose(&[0, 3, 1, 4, 2])],
    ),
    case(
        "unpack s8",
        "s8[8192,8192]{1,0:T(8,128)(4,1)}",
        "s8[8192,8192]{1,0}",
        0.90,
        &[Reshape(&[1024, 64, 2, 128, 4]), Transpose(&[0, 2, 4, 1, 3])],
    ),
    case(
        "retile bf16",
        "bf16[4096,8192]{1,0:T(8,128)(2,1)}",
        "bf16[4096,8192]{1,0:T(16,128)(2,1)}",
        0.89,
        &[Reshape(&[256, 2, 64, 4, 128, 2]), Transpose(&[0, 2, 1, 3, 4, 5])],
    ),
    case(
        "pack s4 into bits",
        "s4[8192,8192]{1,0}",
        "s4[8192,8192]{1,0:E(4)}",
        0.83,
        &[Reshape(&[8192, 8192]), Nibbles {}],
    ),
    case(
        "tile s4 into bits",
        "s4[8192,8192]{1,0}",
        "s4[8192,8192]{1,0:T(8,128)(8,1)E(4)}",
        0.76,
        &[Reshape(&[1024, 8, 64, 128]), Transpose(&[0, 2, 3, 1]), Nibbles {}],
    ),
    case(
        "activations f32",
        "f32[64,224,224,3]{3,2,1,0}",
        "f32[64,224,224,3]{0,3,2,1}",
        0.57,
        &[Reshape(&[64, 224, 224, 3]), Transpose(&[1, 2, 3, 0])],
    ),
    case(
        "KV cache bf16",
        "bf16[16,2048,8,128]{3,2,1,0}",
        "bf16[16,2048,8,128]{3,1,2,0:T(8,128)(2,1)}",
        0.85,
        &[Reshape(&[16, 256, 4, 2, 8, 128]), Transpose(&[0, 4, 1, 2, 5, 3])],
    ),
];

/// Bounds and permutation of the shapes that XLA's own transpose benchmark has.
pub(crate) const XLA_SHAPES: [(&[usize], &[usize]); 15] = [
    (&[256, 256], &[1, 0]),
    (&[512, 512], &[1, 0]),
    (&[1024, 1024], &[1, 0]),
    (&[256, 256, 256], &[0, 2, 1]),
    (&[256, 256, 256], &[1, 0, 2]),
    (&[256, 256, 256], &[1, 2, 0]),
    (&[256, 256, 256], &[2, 0, 1]),
    (&[256, 256, 256], &[2, 1, 0]),
    (&[512, 512, 512], &[0, 2, 1]),
    (&[512, 512, 512], &[1, 0, 2]),
    (&[512, 512, 512], &[1, 2, 0]),
    (&[512, 512, 512], &[2, 0, 1]),
    (&[512, 512, 512], &[2, 1, 0]),
    (&[64, 224, 224, 3], &[1, 2, 3, 0]),
    (&[256, 64, 64, 3], &[1, 3, 2, 0]),
];

/// Arrays whose fixed costs count.
pub(crate) const SMALL: [(&str, &str); 5] = [
    ("f32[128,128]{1,0}", "f32[128,128]{1,0:T(8,128)}"),
    ("f32[128,128]{1,0:T(8,128)}", "f32[128,128]{1,0}"),
    ("f32[3,5]{1,0}", "f32[3,5]{1,0:T(8,128)}"),
    ("f32[3,5]{1,0:T(8,128)}", "f32[3,5]{1,0}"),
    ("f32[3,5]{1,0}", "f32[3,5]{1,0:T(2,2)}"),
];

/// A conversion at any size.
pub(crate) struct Family {
    pub(crate) name: &'static str,
    element: &'static str,
    from: &'static str,
    to: &'static str,
    /// Ratios to reach with 256 KiB and 8 MiB a side, each with buffers on lines and 16 bytes behind them; 0 for none.
    pub(crate) in_cache: [[f64; 2]; 2],
}

pub(crate) const TILE: Family = Family {
    name: "tile f32",
    element: "f32",
    from: "1,0",
    to: "1,0:T(8,128)",
    in_cache: [[0.61, 0.54], [0.94, 0.91]],
};
pub(crate) const PACK: Family = Family {
    name: "pack bf16",
    element: "bf16",
    from: "1,0",
    to: "1,0:T(8,128)(2,1)",
    in_cache: [[0.51, 0.50], [0.92, 0.92]],
};
pub(crate) const UNPACK: Family =
    Family { name: "unpack bf16", element: "bf16", from: "1,0:T(8,128)(2,1)", to: "1,0", in_cache: [[0.0; 2]; 2] };
pub(crate) const TRANSPOSE: Family =
    Family { name: "transpose f32", element: "f32", from: "1,0", to: "0,1", in_cache: [[0.44, 0.30], [0.36, 0.20]] };

/// The conversions that are measured inside the caches.
pub(crate) const FAMILIES: [Family; 9] = [
    TILE,
    Family {
        name: "untile f32",
        element: "f32",
        from: "1,0:T(8,128)",
        to: "1,0",
        in_cache: [[0.61, 0.54], [0.97, 0.96]],
    },
    PACK,
    UNPACK,
    Family {
        name: "pack s8",
        element: "s8",
        from: "1,0",
        to: "1,0:T(8,128)(4,1)",
        in_cache: [[0.52, 0.50], [0.92, 0.92]],
    },
    Family { name: "T(2,2)", element: "f32", from: "1,0", to: "1,0:T(2,2)", in_cache: [[0.50, 0.50], [0.96, 0.96]] },
    Family {
        name: "tile s4 into bits",
        element: "s4",
        from: "1,0",
        to: "1,0:T(8,128)(8,1)E(4)",
        in_cache: [[0.52, 0.49], [0.97, 0.94]],
    },
    TRANSPOSE,
    Family { name: "transpose u8", element: "u8", from: "1,0", to: "0,1", in_cache: [[0.38, 0.0], [0.0, 0.0]] },
];

impl Family {
    /// Both shapes of the member whose source has that many bytes: nearly square, and no wider than 4096.
    pub(crate) fn member(&self, bytes: u64) -> anyhow::Result<(Shape, Shape)> {
        let element: ElementType = self.element.parse()?;
        let elements = bytes / u64::from(element.natural_bits() / 8);
        let columns = (1 << elements.ilog2().div_ceil(2)).min(4096);
        let array = format!("{element}[{},{columns}]", elements / columns);
        let shape = |layout: &str| format!("{array}{{{layout}}}").parse();
        Ok((shape(self.from)?, shape(self.to)?))
    }
}
