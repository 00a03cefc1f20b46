//! Shapes as other tools and people write them. People are answered, with a note; programs get the error that says what to write.

use tilewise::Shape;

/// What a text that is no shape in XLA's notation means, as written; `None` if that is not clear.
///
/// Quotes and commas around it, names of element types as NumPy, JAX, PyTorch and MLIR have them, bounds apart from
/// their type, and the shape in front of an operation or an operand.
pub(super) fn understand(text: &str) -> Option<Shape> {
    let plain = text.trim().trim_matches(['\'', '"', '`', ',', ';']).trim();
    let candidates = [instruction(plain), Some(plain.to_owned())];
    candidates.into_iter().flatten().find_map(|candidate| {
        let readings =
            [Some(candidate.clone()), renamed(&candidate), made(&candidate), apart(&candidate), wrapped(&candidate)];
        readings.into_iter().flatten().find_map(|reading| Shape::parse_any_as_written(&reading).ok())
    })
}

/// The shape in an operation without its name, `f32[8,128]{1,0:T(8,128)} add(…)`, or in an operand `f32[8,128]{1,0} %name`.
fn instruction(text: &str) -> Option<String> {
    let (shape, rest) = text.split_at(shape_length(text));
    let is_shape = shape.contains(['[', '(']) && !rest.is_empty();
    is_shape.then(|| shape.to_owned())
}

/// The length of what stands before a blank or comma that is in no brackets.
fn shape_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let end = text.bytes().position(|byte| {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' if depth == 0 => return true,
            b')' | b']' | b'}' => depth -= 1,
            b' ' | b'\t' | b',' if depth == 0 => return true,
            _ => {}
        }
        false
    });
    end.unwrap_or(text.len())
}

/// `float32[3]`, `i32`, `torch.bfloat16[8,128]{1,0}`, `bool[]`
fn renamed(text: &str) -> Option<String> {
    let end = text.find(['[', '(', '{']).unwrap_or(text.len());
    let name = element_type(text[..end].trim())?;
    let rest = text[end..].trim();
    match rest.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inner) => bounds(inner).map(|bounds| format!("{name}[{bounds}]")),
        None if rest.is_empty() => Some(format!("{name}[]")),
        None => Some(format!("{name}{}", rest.replace(' ', ""))),
    }
}

/// `ShapeUtil::MakeShape(F32, {3, 5})`, `ShapeUtil::MakeShapeWithDenseLayout(F32, {3, 5}, {1, 0})`
fn made(text: &str) -> Option<String> {
    let (function, arguments) = text.strip_suffix(')')?.split_once('(')?;
    let function = function.strip_prefix("xla::").unwrap_or(function).strip_prefix("ShapeUtil::")?;
    let (element, lists) = arguments.split_once(',')?;
    let lists: Option<Vec<String>> = lists.split('}').map(|list| bounds(list.trim_matches([' ', ',', '{']))).collect();
    let element = element.trim().to_ascii_lowercase();
    match (function, &lists?[..]) {
        ("MakeShape", [sizes, _]) => Some(format!("{element}[{sizes}]")),
        ("MakeShapeWithDenseLayout", [sizes, order, _]) => Some(format!("{element}[{sizes}]{{{order}}}")),
        _ => None,
    }
}

/// `(3, 4) float32`, `[3, 4] f32`, `float32 (3, 4)`, `shape=(3, 4), dtype=float32`
fn apart(text: &str) -> Option<String> {
    let close = text.find([')', ']'])?;
    let open = text[..close].rfind(['(', '['])?;
    let bounds = bounds(&text[open + 1..close])?;
    let (before, after) = (&text[..open], &text[close + 1..]);
    let mut words = before.split(separates).chain(after.split(separates)).filter(|word| {
        !word.is_empty()
            && !matches!(*word, "shape" | "dtype" | "ShapeDtypeStruct" | "ShapedArray" | "torch.Size" | "Array")
    });
    let name = element_type(words.next()?)?;
    words.next().is_none().then(|| format!("{name}[{bounds}]"))
}

fn separates(c: char) -> bool {
    c.is_whitespace() || "=,:()[]".contains(c)
}

/// `tensor<3x4xf32>`, `memref<8x128xbf16, …>`, `ShapedArray(float32[3,4])`, `ShapeDtypeStruct(shape=(3, 4),
/// dtype=float32)`
fn wrapped(text: &str) -> Option<String> {
    if let Some((name, inner)) =
        text.split_once('<').filter(|(name, _)| matches!(*name, "tensor" | "memref" | "vector"))
    {
        let inner = inner.split([',', '>']).next()?.trim();
        let (bounds, element) = inner.rsplit_once('x').unwrap_or(("", inner));
        let element = element_type(element).filter(|_| !name.is_empty())?;
        let bounds = bounds.split('x').collect::<Vec<_>>().join(",");
        return Some(format!("{element}[{bounds}]"));
    }
    let (name, inner) = text.split_once('(')?;
    let inner = inner.strip_suffix(')').filter(|_| matches!(name, "ShapedArray" | "ShapeDtypeStruct" | "Array"))?;
    renamed(inner).or_else(|| apart(inner))
}

/// `3, 4,` as `3,4`; `None` if these are no numbers.
fn bounds(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    parts.iter().all(|part| part.bytes().all(|byte| byte.is_ascii_digit())).then(|| parts.join(","))
}

/// XLA's name of an element type that another tool names.
fn element_type(name: &str) -> Option<&'static str> {
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
            ("float32[3]", "f32[3]"),
            ("i32", "s32[]"),
            ("bool", "pred[]"),
            ("int", "s32[]"),
            ("(3,4) float32", "f32[3,4]"),
            ("(3, 4), float32", "f32[3,4]"),
            ("float32 (3, 4)", "f32[3,4]"),
            ("float32(3, 4)", "f32[3,4]"),
            ("torch.Size([8, 128]) torch.bfloat16", "bf16[8,128]"),
            ("'f32[8,128]'", "f32[8,128]"),
            ("\"bf16[4,8]\",", "bf16[4,8]"),
            ("bfloat16[8,128]{0,1:T(8,128)(2,1)}", "bf16[8,128]{0,1:T(8,128)(2,1)}"),
            ("float32[3, 4]", "f32[3,4]"),
            ("ShapeDtypeStruct(shape=(3, 4), dtype=float32)", "f32[3,4]"),
            ("ShapedArray(int8[7])", "s8[7]"),
            ("tensor<3x4xf32>", "f32[3,4]"),
            ("tensor<f32>", "f32[]"),
            ("%x = f32[8,128]{1,0:T(8,128)} add(%a, %b), metadata={}", "f32[8,128]{1,0:T(8,128)}"),
            ("ShapeUtil::MakeShape(F32, {3, 5})", "f32[3,5]"),
            ("xla::ShapeUtil::MakeShape(PRED,{})", "pred[]"),
            ("ShapeUtil::MakeShapeWithDenseLayout(BF16, {3, 5}, {0, 1})", "bf16[3,5]{0,1}"),
            ("ROOT y = (f32[2]{0}, token[]) tuple(a, b)", "(f32[2]{0}, token[])"),
            ("f32[8,128]{1,0:T(8,128)} %x", "f32[8,128]{1,0:T(8,128)}"),
        ] {
            let understood = understand(text);
            assert_eq!(understood.map(|shape| shape.to_string()).as_deref(), Some(shape), "{text}");
        }
        for none in
            ["", "x", "f33[8]", "float32[-1]", "(3,x) float32", "(3) (4)", "a = b", "é[2]", "((((", " = ", "f32[2"]
        {
            assert!(understand(none).is_none(), "{none}");
        }
    }
}
