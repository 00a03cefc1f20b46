//! Shapes as other tools and XLA's own sources write them. Each form is read to its end, or not at all.

use tilewise::{Shape, interop::Notation};
use tilewise_hlo::OperationLine;

/// The shape of a text that isn't in XLA's notation; `None` if it could mean something else or isn't read to its end.
///
/// An operation without its name and an operand; a call of XLA's `ShapeUtil::MakeShape`; a type of MLIR; what NumPy, JAX and PyTorch print of
/// an array, with the bounds apart from the element type. A missing layout stays missing.
pub(crate) fn read(text: &str) -> Option<Shape> {
    let text = text.trim();
    OperationLine::shape_without_name(text)
        .or_else(|| [made, printed, apart].into_iter().find_map(|form| Shape::parse_as_written(&form(text)?).ok()))
        .or_else(|| mlir(text))
}

/// The unread rest of a text.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn eat(&mut self, wanted: &str) -> bool {
        let rest = self.0.trim_start();
        let found = rest.strip_prefix(wanted);
        self.0 = found.unwrap_or(self.0);
        found.is_some()
    }

    /// A name with its dots, such as `jnp.float32`.
    fn word(&mut self) -> &'a str {
        let rest = self.0.trim_start();
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        let (word, rest) = rest.split_at(rest.find(|c| !is_part(c)).unwrap_or(rest.len()));
        self.0 = rest;
        word
    }

    /// `{3, 5}`, `(3, 5,)`, `[3, 5]` as `3,5`.
    fn list(&mut self, open: &str, close: &str) -> Option<String> {
        let (inside, rest) = self.eat(open).then(|| self.0.split_once(close))??;
        self.0 = rest;
        let inside = inside.trim();
        let inside = inside.strip_suffix(',').filter(|before| !before.is_empty()).unwrap_or(inside);
        let items: Vec<&str> = inside.split(',').map(str::trim).filter(|_| !inside.is_empty()).collect();
        let is_number = |item: &&str| !item.is_empty() && item.bytes().all(|byte| byte.is_ascii_digit());
        items.iter().all(is_number).then(|| items.join(","))
    }

    /// `(3, 5)`, `[3, 5]`, `torch.Size([3, 5])`.
    fn bounds(&mut self) -> Option<String> {
        if self.eat("torch.Size(") {
            return self.list("[", "]").filter(|_| self.eat(")"));
        }
        if self.0.trim_start().starts_with('(') { self.list("(", ")") } else { self.list("[", "]") }
    }

    /// XLA's name of an element type.
    fn element_type(&mut self) -> Option<&'static str> {
        element_type(self.word())
    }

    fn is_empty(&self) -> bool {
        self.0.trim().is_empty()
    }
}

/// `ShapeUtil::MakeShape(F32, {3, 5})`, `ShapeUtil::MakeShapeWithDenseLayout(F32, {3, 5}, {1, 0}, {Tile({2, 2})})`
fn made(text: &str) -> Option<String> {
    let mut rest = Rest(text);
    rest.eat("xla::");
    if !rest.eat("ShapeUtil::") {
        return None;
    }
    let function = rest.word();
    let function = function.strip_prefix("MakeValidated").or(function.strip_prefix("Make"))?;
    let element = rest.eat("(").then(|| rest.word().to_ascii_lowercase())?;
    let list = |rest: &mut Rest<'_>| rest.eat(",").then(|| rest.list("{", "}"))?;
    let made = match function {
        "ScalarShape" => format!("{element}[]"),
        "Shape" => format!("{element}[{}]", list(&mut rest)?),
        "ShapeWithDescendingLayout" => {
            let sizes = list(&mut rest)?;
            let rank = if sizes.is_empty() { 0 } else { sizes.split(',').count() };
            let order: Vec<String> = (0..rank).rev().map(|number| number.to_string()).collect();
            format!("{element}[{sizes}]{{{}}}", order.join(","))
        }
        "ShapeWithDenseLayout" => {
            let (sizes, order) = (list(&mut rest)?, list(&mut rest)?);
            let tiles = if rest.eat(",") { tiles(&mut rest)? } else { String::new() };
            let tiles = if tiles.is_empty() { tiles } else { format!(":T{tiles}") };
            format!("{element}[{sizes}]{{{order}{tiles}}}")
        }
        _ => return None,
    };
    let is_closed = rest.eat(")");
    rest.eat(";");
    (is_closed && rest.is_empty()).then_some(made)
}

/// `{Tile({8, 128}), Tile({2, 1})}` as `(8,128)(2,1)`.
fn tiles(rest: &mut Rest<'_>) -> Option<String> {
    let mut tiles = String::new();
    if !rest.eat("{") {
        return None;
    }
    while !rest.eat("}") {
        rest.eat("xla::");
        let is_named = rest.eat("Tile(");
        tiles += &format!("({})", rest.list("{", "}")?);
        if is_named && !rest.eat(")") {
            return None;
        }
        rest.eat(",");
    }
    Some(tiles)
}

/// `ShapedArray(float32[3,4])`, `ShapeDtypeStruct(shape=(3, 4), dtype=float32)`
fn printed(text: &str) -> Option<String> {
    let mut rest = Rest(text);
    let name = rest.word();
    let name = name.strip_prefix("jax.").unwrap_or(name);
    let is_known = matches!(name, "ShapedArray" | "ShapeDtypeStruct" | "Array") && rest.eat("(");
    let inside = is_known.then(|| rest.0.trim().strip_suffix(')'))??;
    let aval = || {
        let mut rest = Rest(inside);
        let (element, bounds) = (rest.element_type()?, rest.list("[", "]")?);
        rest.is_empty().then(|| format!("{element}[{bounds}]"))
    };
    aval().or_else(|| apart(inside))
}

/// `(3, 4) float32`, `[3, 4], f32`, `float32 (3, 4)`, `shape=(3, 4), dtype=float32`
fn apart(text: &str) -> Option<String> {
    let mut rest = Rest(text);
    let (element, bounds) = if rest.0.starts_with(['(', '[']) || rest.0.starts_with("torch.Size") {
        let bounds = rest.bounds()?;
        if !rest.eat(",") && !rest.0.starts_with(' ') {
            return None;
        }
        (rest.element_type()?, bounds)
    } else if rest.eat("shape=") {
        let bounds = rest.bounds()?;
        (rest.eat(",") && rest.eat("dtype=")).then(|| rest.element_type().map(|element| (element, bounds)))??
    } else {
        rest.eat("dtype=");
        let word = rest.word();
        // `f32(2)` is XLA's notation with the wrong brackets.
        let element = element_type(word).filter(|name| *name != word)?;
        rest.eat(",");
        rest.eat("shape=");
        let is_bracketed = rest.0.trim_start().starts_with('(') || rest.0.trim_start().starts_with("torch.Size");
        is_bracketed.then(|| rest.bounds().map(|bounds| (element, bounds)))??
    };
    rest.is_empty().then(|| format!("{element}[{bounds}]"))
}

/// `tensor<3x4xf32>`, `vector<8x128xbf16>`, `memref<3x5xf32, strided<[8, 1]>>`
fn mlir(text: &str) -> Option<Shape> {
    let (name, inside) = text.strip_suffix('>')?.split_once('<')?;
    let (sizes, layout) = inside.split_once(',').map_or((inside, None), |(sizes, layout)| (sizes, Some(layout)));
    let (bounds, element) = sizes.trim().rsplit_once('x').unwrap_or(("", sizes.trim()));
    let is_bound = |bound: &str| bound == "?" || (!bound.is_empty() && bound.bytes().all(|byte| byte.is_ascii_digit()));
    let bounds: Vec<&str> = bounds.split('x').filter(|_| !bounds.is_empty()).collect();
    if !matches!(name, "tensor" | "memref" | "vector") || !bounds.iter().all(|bound| is_bound(bound)) {
        return None;
    }
    let plain = format!("{}[{}]", element_type(element)?, bounds.join(","));
    match layout {
        None => Shape::parse_as_written(&plain).ok(),
        Some(_) if name == "memref" => Notation::Memref.read(text, &plain.parse().ok()?).ok(),
        Some(_) => None,
    }
}

/// XLA's name of an element type that another tool names.
pub(crate) fn element_type(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix("np.").or(name.strip_prefix("jnp.")).or(name.strip_prefix("torch.")).unwrap_or(name);
    let name = name.strip_prefix("numpy.").or(name.strip_prefix("tf.")).unwrap_or(name);
    Some(match name {
        "bool" | "i1" | "pred" => "pred",
        "int2" | "i2" | "s2" => "s2",
        "int4" | "i4" | "s4" => "s4",
        "int8" | "i8" | "s8" => "s8",
        "int16" | "i16" | "short" | "s16" => "s16",
        "int32" | "i32" | "int" | "s32" => "s32",
        "int64" | "i64" | "long" | "s64" => "s64",
        "uint2" | "ui2" | "u2" => "u2",
        "uint4" | "ui4" | "u4" => "u4",
        "uint8" | "ui8" | "u8" => "u8",
        "uint16" | "ui16" | "u16" => "u16",
        "uint32" | "ui32" | "u32" => "u32",
        "uint64" | "ui64" | "u64" => "u64",
        "float16" | "half" | "f16" => "f16",
        "bfloat16" | "bf16" => "bf16",
        "float32" | "float" | "f32" => "f32",
        "float64" | "double" | "f64" => "f64",
        "complex64" | "c64" => "c64",
        "complex128" | "c128" => "c128",
        "float8_e4m3fn" | "f8E4M3FN" | "f8e4m3fn" => "f8e4m3fn",
        "float8_e5m2" | "f8E5M2" | "f8e5m2" => "f8e5m2",
        "float4_e2m1fn" | "f4E2M1FN" | "f4e2m1fn" => "f4e2m1fn",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_notations() {
        for (text, shape) in [
            ("(3,4) float32", "f32[3,4]"),
            ("(3, 4), float32", "f32[3,4]"),
            ("[3, 4] f32", "f32[3,4]"),
            ("float32 (3, 4)", "f32[3,4]"),
            ("float32(3, 4)", "f32[3,4]"),
            ("(7,) int8", "s8[7]"),
            ("torch.Size([8, 128]) torch.bfloat16", "bf16[8,128]"),
            ("shape=(3, 4), dtype=float32", "f32[3,4]"),
            ("ShapeDtypeStruct(shape=(3, 4), dtype=float32)", "f32[3,4]"),
            ("jax.ShapeDtypeStruct(shape=(3,4), dtype=float32)", "f32[3,4]"),
            ("ShapedArray(int8[7])", "s8[7]"),
            ("tensor<3x4xf32>", "f32[3,4]"),
            ("tensor<?x4xf32>", "f32[?,4]"),
            ("tensor<f32>", "f32[]"),
            ("memref<3x5xf32, strided<[8, 1]>>", "f32[3,5]{1,0:T(8)}"),
            ("ShapeUtil::MakeShape(F32, {3, 5})", "f32[3,5]"),
            ("xla::ShapeUtil::MakeShape(PRED,{});", "pred[]"),
            ("ShapeUtil::MakeShapeWithDenseLayout(BF16, {3, 5}, {0, 1})", "bf16[3,5]{0,1}"),
            ("ShapeUtil::MakeShapeWithDenseLayout(F32, {3, 5}, {1, 0}, {Tile({2, 2})})", "f32[3,5]{1,0:T(2,2)}"),
            ("ShapeUtil::MakeShapeWithDescendingLayout(F32, {3, 5})", "f32[3,5]{1,0}"),
            ("ShapeUtil::MakeScalarShape(S32)", "s32[]"),
            ("f32[8,128]{1,0:T(8,128)} %x", "f32[8,128]{1,0:T(8,128)}"),
            ("f32[8,128]{1,0:T(8,128)} add(%a, %b), metadata={}", "f32[8,128]{1,0:T(8,128)}"),
        ] {
            assert_eq!(read(text).map(|shape| shape.to_string()).as_deref(), Some(shape), "{text}");
        }
    }

    /// A text with an unread rest has none of these forms.
    #[test]
    fn nothing_is_dropped() {
        for text in [
            "",
            "x",
            "f33[8]",
            "(3,x) float32",
            "(3) (4)",
            "(3,4) float32 (2,1)",
            "(3,4) float32 ()",
            "(3,4)float32",
            "f32(3,4)",
            "f32 (3,4)",
            "float32 [3,4]",
            "float32 (3,4){1,0}",
            "shape=(3, 4), dtype=float32, sharding=x",
            "ShapedArray(int8[7], weak_type=True)",
            "torch.Size([8, 128]) torch.bfloat16 T(8)",
            "tensor<3x4xf32, #dense>",
            "tensor<3x4xf32> (2,1)",
            "tensor<3x xf32>",
            "memref<3x5xf32, what>",
            "ShapeUtil::MakeShape(F32, {3, 5}) (2,2)",
            "ShapeUtil::MakeShape(F32, {3, 5}, {true, false})",
            "ShapeUtil::MakeShape(F32, {A, B, C, D})",
            "ShapeUtil::MakeShape(F32, {3,, 5})",
            "F32[4,8] (2,4)(2,1)",
            "F32[3,5]{1,0} T(2,2)",
            "f32[16]{0} L(32)",
            "F32[2,3] minor_to_major [0, 1]",
            "f32[8]{0} %x T(2)",
            "f32[8]{0} add(%a) T(2)",
            "é[2]",
            "((((",
            " = ",
            "f32[2",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
