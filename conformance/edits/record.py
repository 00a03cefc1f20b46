"""Records what XLA's own functions answer about random shapes: those of ShapeUtil, LayoutUtil and IndexUtil inside jaxlib.

    python conformance/edits/record.py --cases 4000 --seed 1 > conformance/facts/shape_edits.csv
    python conformance/edits/record.py --cases 100000 --seed 2 > /tmp/edits.csv
    TILEWISE_EDITS=/tmp/edits.csv cargo test -p tilewise --test it edits -- --nocapture

jaxlib's shared library keeps the names of its local symbols, so that the functions can be called where they lie, by the C++ calling
convention of x86-64 Linux. Questions respect each function's preconditions: where XLA aborts, nothing is asked.

Columns: `function`, in tilewise's name; `shape` and, of two shapes, `other`; `cleared`, 1 where the layout of `shape` is cleared before;
`argument`: numbers, or an element type; `answer`: a shape, numbers, `none`, or `true` and `false`; `invalid` where XLA makes a shape that its
own `ValidateShape` refuses, or a static dimension of an unbounded one.
"""

import argparse
import csv
import ctypes
import os
import random
import re
import subprocess
import sys

import jaxlib
import jaxlib.xla_client

POINTER, LONG, INT, BOOL, SIZE = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int, ctypes.c_bool, ctypes.c_size_t
SHAPE = "RKNS_5ShapeE"
OK = 1  # of absl::Status


class Library:
    def __init__(self):
        path = os.path.join(os.path.dirname(jaxlib.__file__), "libjax_common.so")
        listed = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True, check=True).stdout
        lines = (line.split() for line in listed.splitlines())
        self.symbols = {line[2]: int(line[0], 16) for line in lines if len(line) == 3 and "3xla" in line[2]}
        with open("/proc/self/maps", encoding="utf-8") as maps:
            self.base = next(int(line.split("-")[0], 16) for line in maps if "libjax_common.so" in line)

    def function(self, pattern, result, *arguments):
        (name,) = (name for name in self.symbols if re.fullmatch(pattern, name))
        return ctypes.CFUNCTYPE(result, *arguments)(self.base + self.symbols[name])


LIBRARY = Library()
KEPT = []  # Objects that XLA may still point into.


def room(size=1024):
    buffer = ctypes.create_string_buffer(size)
    KEPT.append(buffer)
    return ctypes.addressof(buffer)


def longs(values):
    array = (LONG * max(1, len(values)))(*values)
    KEPT.append(array)
    return ctypes.addressof(array), len(values)


def word(address):
    return ctypes.c_uint64.from_address(address).value


def vector(address):
    return [LONG.from_address(at).value for at in range(word(address), word(address + 8), 8)]


def numbers(values):
    return ",".join(map(str, values))


def of(scope, name, parameters, *arguments, returns=None):
    """A function; one that returns an object is given room for it first."""
    pattern = f"_ZN3xla{scope}{len(name)}{name}E{parameters}"
    if returns is not None:
        return LIBRARY.function(pattern, returns if returns is not POINTER else None, *arguments)
    function = LIBRARY.function(pattern, POINTER, POINTER, *arguments)

    def call(*values):
        place = room()
        function(place, *values)
        return place

    return call


SHAPE_UTIL, LAYOUT_UTIL, INDEX_UTIL = "9ShapeUtil", "10LayoutUtil", "9IndexUtil"
ONE, TWO, VALUE, MUTABLE = "RKNS_5ShapeE", "RKNS_5ShapeES3_", "NS_5ShapeE", "PNS_5ShapeE"
SPAN = "N4absl.*SpanIKlEE"

parse_shape = LIBRARY.function(
    "_ZN3xla10ParseShapeESt17basic_string_viewIcSt11char_traitsIcEE", POINTER, POINTER, SIZE, ctypes.c_char_p
)
to_string = LIBRARY.function(r"_ZNK3xla5Shape8ToStringB5cxx11Eb", POINTER, POINTER, POINTER, BOOL)
validate = of(SHAPE_UTIL, "ValidateShapeWithOptionalLayout", ONE, POINTER)
clear_layout = of(LAYOUT_UTIL, "ClearLayout", MUTABLE, POINTER, returns=POINTER)
equal = LIBRARY.function("_ZN3xla5Shape5EqualclERKS0_S3_", BOOL, POINTER, POINTER, POINTER)

EDITS = {
    "change_element_type": of(SHAPE_UTIL, "ChangeElementType", "RKNS_5ShapeENS_13PrimitiveTypeE", POINTER, INT),
    "insert_dimension_at_index": of(SHAPE_UTIL, "InsertDimensionAtIndex", "NS_5ShapeEll", POINTER, LONG, LONG),
    "insert_dimensions_at_index": of(
        SHAPE_UTIL, "InsertDimensionsAtIndex", "NS_5ShapeEl" + SPAN, POINTER, LONG, POINTER, SIZE
    ),
    "delete_dimension": of(SHAPE_UTIL, "DeleteDimension", "lNS_5ShapeE", LONG, POINTER),
    "delete_dimensions": of(SHAPE_UTIL, "DeleteDimensions", SPAN + "NS_5ShapeE", POINTER, SIZE, POINTER),
    "drop_degenerate_dimensions": of(SHAPE_UTIL, "DropDegenerateDimensions", ONE, POINTER),
    "permute_dimensions": of(SHAPE_UTIL, "PermuteDimensions", SPAN + ONE, POINTER, SIZE, POINTER),
    "move_dim_to_major": of(SHAPE_UTIL, "MoveDimToMajor", "RKNS_5ShapeEl", POINTER, LONG),
    "with_descending_layout_and_same_physical_layout": of(
        SHAPE_UTIL, "MakeShapeWithDescendingLayoutAndSamePhysicalLayout", ONE, POINTER
    ),
    "static_shape": of(SHAPE_UTIL, "MakeStaticShape", ONE, POINTER),
    "device_shape_to_host_shape": of(SHAPE_UTIL, "DeviceShapeToHostShape", VALUE, POINTER),
    "complex_component_shape": of(SHAPE_UTIL, "ComplexComponentShape", ONE, POINTER),
    "with_default_layout": of(LAYOUT_UTIL, "GetWithDefaultLayout", ONE, POINTER),
}
IN_PLACE = {
    "append_major_dimension": of(SHAPE_UTIL, "AppendMajorDimension", "iPNS_5ShapeE", INT, POINTER, returns=POINTER),
    "append_minor_dimension": of(SHAPE_UTIL, "AppendMinorDimension", "iPNS_5ShapeE", INT, POINTER, returns=POINTER),
    "update_element_size_in_bits": of(
        SHAPE_UTIL, "UpdateElementSizeInBits", "PNS_5ShapeEb", POINTER, BOOL, returns=POINTER
    ),
    "append_shape_to_tuple": of(
        SHAPE_UTIL, "AppendShapeToTuple", "RKNS_5ShapeEPS1_", POINTER, POINTER, returns=POINTER
    ),
}
PREDICATES = {
    "compatible": of(SHAPE_UTIL, "Compatible", TWO, POINTER, POINTER, returns=BOOL),
    "compatible_ignoring_element_type": of(
        SHAPE_UTIL, "CompatibleIgnoringElementType", TWO, POINTER, POINTER, returns=BOOL
    ),
    "compatible_ignoring_fp_precision": of(
        SHAPE_UTIL, "CompatibleIgnoringFpPrecision", TWO, POINTER, POINTER, returns=BOOL
    ),
    "equal_ignoring_element_type": of(SHAPE_UTIL, "EqualIgnoringElementType", TWO, POINTER, POINTER, returns=BOOL),
    "equal_structure": of(SHAPE_UTIL, "EqualStructure", TWO, POINTER, POINTER, returns=BOOL),
}
DYNAMIC_COMPATIBLE = of(SHAPE_UTIL, "DynamicShapeIsCompatible", TWO, POINTER, POINTER, returns=BOOL)
LEAF = ctypes.CFUNCTYPE(BOOL, POINTER, POINTER, POINTER)
IS_PREFIX = of(SHAPE_UTIL, "IsPrefix", TWO + "N4absl.*FunctionRefI.*", POINTER, POINTER, POINTER, LEAF, returns=BOOL)
# Leaves are compared by `Shape::Equal`, nothing ignored.
NOTHING_IGNORED = ctypes.create_string_buffer(64)
EQUAL_LEAVES = LEAF(lambda _, one, two: equal(ctypes.addressof(NOTHING_IGNORED), one, two))
BYTE_SIZE = of(SHAPE_UTIL, "ByteSizeOf", "RKNS_5ShapeEl", POINTER, LONG, returns=LONG)
BYTE_STRIDES = of(SHAPE_UTIL, "ByteStrides", "RKNS_5ShapeEN4absl.*SpanIlEE", POINTER, POINTER, SIZE)
HIGHER = of("14primitive_util", "HigherPrecisionType", "NS_13PrimitiveTypeES1_", INT, INT, returns=INT)
CAN_UPCAST = of(SHAPE_UTIL, "ElementCanUpcast", TWO, POINTER, POINTER, returns=BOOL)
IGNORING_LAYOUT = of(SHAPE_UTIL, "PermuteDimensionsIgnoringLayout", SPAN + ONE, POINTER, SIZE, POINTER)
KIND = of(SHAPE_UTIL, "CompatibleKind", "RKNS_5ShapeES3_b", POINTER, POINTER, BOOL, returns=BOOL)
SAME_DIMENSIONS = of(SHAPE_UTIL, "SameDimensions", TWO, POINTER, POINTER, returns=BOOL)
STRIDE = of(INDEX_UTIL, "GetDimensionStride", "RKNS_5ShapeEl", POINTER, LONG, returns=LONG)
COUNTS = {
    "true_rank": of(SHAPE_UTIL, "TrueNumDimensions", ONE, POINTER, returns=LONG),
    "subshape_count": of(SHAPE_UTIL, "SubshapeCount", ONE, POINTER, returns=LONG),
    "leaf_count": of(SHAPE_UTIL, "GetLeafCount", ONE, POINTER, returns=LONG),
}
SUBSHAPE = of(SHAPE_UTIL, "GetSubshape", "RKNS_5ShapeE" + SPAN, POINTER, POINTER, SIZE, returns=ctypes.c_uint64)
INDEX_IS_VALID = of(SHAPE_UTIL, "IndexIsValid", "RKNS_5ShapeE" + SPAN, POINTER, POINTER, SIZE, returns=BOOL)
UNMODIFIED = of(SHAPE_UTIL, "DimensionsUnmodifiedByReshape", TWO, POINTER, POINTER)
ONE_SIZED = of(SHAPE_UTIL, "InsertedOrDeleted1SizedDimensions", TWO, POINTER, POINTER)
LEFT = of(SHAPE_UTIL, "ReshapeLeavesDimensionsUnmodified", TWO + SPAN, POINTER, POINTER, POINTER, SIZE)

# The flags of Shape::Equal, a byte each in this order.
FLAGS = (
    "layout tiles_in_layout element_size_in_layout memory_space_in_layout element_type fp_precision dynamic_dimension "
    "dimensions tail_padding_alignment_in_elements split_config_in_layout buffer"
).split()

TYPES = {
    "pred": 1,
    "s4": 21,
    "u2": 27,
    "s8": 2,
    "f32": 11,
    "bf16": 16,
    "f8e4m3fn": 20,
    "f4e2m1fn": 32,
    "c64": 15,
    "c128": 18,
}


def parsed(text):
    place = room()
    encoded = text.encode()
    parse_shape(place, len(encoded), encoded)
    if word(place) != OK:
        raise ValueError(text)
    return place + 8


def text_of(shape):
    text = room(64)
    to_string(text, shape, True)
    return ctypes.string_at(word(text), word(text + 8)).decode()


def answered(shape):
    """The text; an unbounded dimension that became static has no size, although `ValidateShape` passes it."""
    text = text_of(shape)
    return text if word(validate(shape)) == OK and "-9223372036854775808" not in text else "invalid"


class Shapes:
    """Random shapes, as texts."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def bound(self):
        return self.random.choice([0, 1, 1, 2, 2, 3, 4, 5, 6, 8, 12, 16, 128, 300])

    def array(self, rank=None, is_static=False):
        pick = self.random
        rank = pick.choice([0, 1, 2, 2, 3, 3, 4, 5]) if rank is None else rank
        bounds = [self.bound() for _ in range(rank)]
        kinds = [0 if is_static else pick.choices([0, 1, 2], [12, 2, 1])[0] for _ in bounds]
        written = [("?" if kind == 2 else f"<={bound}" if kind else str(bound)) for bound, kind in zip(bounds, kinds)]
        order = pick.sample(range(rank), rank) if pick.random() < 0.7 else list(range(rank))[::-1]
        layout = ""
        if pick.random() < 0.5:
            for _ in range(pick.choice([1, 1, 2])):
                tile = [str(pick.choice([1, 2, 4, 8, 128])) for _ in range(pick.choice([1, 2, 2, 3]))]
                if len(tile) > 1 and pick.random() < 0.15:
                    tile[0] = "*"
                layout += f"({','.join(tile)})"
            layout = "T" + layout
        layout += pick.choice(["", "", "", "L(4)"]) + pick.choice(["", "", "", "E(4)", "E(32)"])
        layout += pick.choice(["", "", "S(1)", "S(5)"])
        physical = [bounds[dimension] for dimension in reversed(order)]
        splits = [
            f"({at}:{pick.randrange(1, bound)})"
            for at, bound in enumerate(physical)
            if bound > 1 and kinds[order[rank - 1 - at]] != 2 and pick.random() < 0.08
        ]
        layout += ("SC" + "".join(splits) if splits else "") + pick.choice(["", "", "", "M(8)"])
        element = pick.choice(list(TYPES))
        braces = f"{{{numbers(order)}{':' + layout if layout else ''}}}" if rank or layout else ""
        return f"{element}[{','.join(written)}]{braces}"

    def leaf(self):
        kind = self.random.choices(["array", "buffer", "token", "opaque"], [12, 2, 1, 1])[0]
        return {"array": self.array(), "buffer": f"b({self.array()})"}.get(kind, f"{kind}[]")

    def shape(self, depth=0):
        if depth < 3 and self.random.random() < 0.35:
            return "(" + ", ".join(self.shape(depth + 1) for _ in range(self.random.randrange(4))) + ")"
        return self.leaf()

    def like(self, text):
        """A shape that differs in a part, or not at all."""
        pick = self.random
        swaps = [
            lambda: text,
            lambda: re.sub(r"T(\([^)]*\))+", "", text).replace(":}", "}"),
            lambda: re.sub(r"S\(\d+\)", "", text).replace(":}", "}"),
            lambda: re.sub(r"[EL]\(\d+\)", "", text).replace(":}", "}"),
            lambda: re.sub(r"SC(\([^)]*\))+", "", text).replace(":}", "}"),
            lambda: re.sub(r"\b(f32|bf16|f8e4m3fn|s8)\b", lambda _: pick.choice(["f32", "bf16", "s8"]), text),
            lambda: text.replace("<=", ""),
            lambda: re.sub(r"\[(\d+)", lambda found: f"[{int(found[1]) + 1}", text),
            lambda: text.replace("?", "3"),
            lambda: re.sub(r"^b\((.*)\)$", r"\1", text),
            lambda: self.shape(),
        ]
        other = pick.choice(swaps)()
        try:
            parsed(other)
        except ValueError:
            return text
        return other

    def reshaped(self, bounds):
        """Bounds of as many elements."""
        pick = self.random
        factors = []
        for bound in bounds:
            while bound > 1 and pick.random() < 0.4:
                divisor = next(d for d in range(2, bound + 1) if bound % d == 0)
                factors.append(divisor)
                bound //= divisor
            factors.append(bound)
        result = []
        for factor in factors:
            if result and pick.random() < 0.3:
                result[-1] *= factor
            else:
                result.append(factor)
        for _ in range(pick.choice([0, 0, 1, 2])):
            result.insert(pick.randrange(len(result) + 1), 1)
        return [bound for bound in result if bound != 1 or pick.random() < 0.7]


def rank_of(text):
    bounds = re.search(r"\[([^\]]*)\]", text)[1]
    return len(bounds.split(",")) if bounds else 0


def question(shapes):
    pick = shapes.random
    function = pick.choice(
        [
            *EDITS,
            *IN_PLACE,
            *PREDICATES,
            *COUNTS,
            "compatible_kind",
            "same_dimensions",
            "equal",
            "dimension_stride",
            "subshape",
            "unmodified",
            "one_sized",
            "left",
            "is_prefix_of",
            "dynamic",
            "byte_size_of",
            "byte_strides",
            "can_upcast",
            "permute_dimensions_ignoring_layout",
        ]
    )
    if function == "is_prefix_of":
        text = "(" + ", ".join(shapes.shape(1) for _ in range(pick.randrange(4))) + ")"
        inside = text[1:-1] + (", " if text != "()" else "") + shapes.shape(2)
        other = pick.choice([shapes.like(text), f"({inside})"])
        return function, text, other, 0, "", str(IS_PREFIX(parsed(text), parsed(other), None, EQUAL_LEAVES)).lower()
    if function == "dynamic":
        # XLA aborts where an array meets a shape of another kind.
        text = shapes.shape()
        other = re.sub(
            r"(?<=[\[,])(<=)?(\d+)(?=[\],])",
            lambda found: f"{found[1] or ''}{max(0, int(found[2]) + pick.choice([0, 0, 0, 1, -1]))}",
            text,
        )
        other = re.sub(r"\{[^}]*\}", "", other) if pick.random() < 0.5 else text
        return (
            "dynamic_shape_is_compatible",
            text,
            other,
            0,
            "",
            str(DYNAMIC_COMPATIBLE(parsed(text), parsed(other))).lower(),
        )
    if function == "can_upcast":
        one, two = (pick.choice(list(TYPES)) for _ in range(2))
        higher = HIGHER(TYPES[one], TYPES[two])
        name = next(name for name, number in TYPES.items() if number == higher)
        can = str(CAN_UPCAST(parsed(f"{one}[]"), parsed(f"{two}[]"))).lower()
        return function, f"{one}[]", f"{two}[]", 0, "", f"{can} {name}"
    if function == "byte_size_of":
        text = (
            "(" + ", ".join(shapes.shape(1) for _ in range(pick.randrange(4))) + ")"
            if pick.random() < 0.4
            else shapes.array(is_static=True)
        )
        pointer = pick.choice([4, 8])
        return function, text, "", 0, str(pointer), str(BYTE_SIZE(parsed(text), pointer))
    if function == "byte_strides":
        text = shapes.array(is_static=True)
        rank = rank_of(text)
        place, _ = longs([0] * rank)
        BYTE_STRIDES(parsed(text), place, rank)
        return function, text, "", 0, "", numbers(LONG.from_address(place + 8 * at).value for at in range(rank))
    if function in PREDICATES or function in ("compatible_kind", "equal", "same_dimensions"):
        if function == "same_dimensions":
            text = shapes.array()
            other = shapes.like(text)
            if not re.match(r"[a-z]", other) or other.startswith(("token", "opaque", "b(")):
                other = text
            return function, text, other, 0, "", str(SAME_DIMENSIONS(parsed(text), parsed(other))).lower()
        text = shapes.shape()
        other = shapes.like(text)
        one, two = parsed(text), parsed(other)
        if function == "compatible_kind":
            return function, text, other, 0, "", str(KIND(one, two, False)).lower()
        if function == "equal":
            ignored = [flag for flag in FLAGS if pick.random() < 0.25]
            flags = ctypes.create_string_buffer(64)
            for flag in ignored:
                flags[FLAGS.index(flag)] = b"\1"
            return function, text, other, 0, " ".join(ignored), str(equal(ctypes.addressof(flags), one, two)).lower()
        return function, text, other, 0, "", str(PREDICATES[function](one, two)).lower()
    if function in ("unmodified", "one_sized", "left"):
        bounds = [max(shapes.bound(), 1) if pick.random() < 0.97 else 0 for _ in range(pick.randrange(6))]
        result = shapes.reshaped(bounds)
        text, other = f"f32[{numbers(bounds)}]", f"f32[{numbers(result)}]"
        one, two = parsed(text), parsed(other)
        if function == "unmodified":
            return function, text, other, 0, "", numbers(vector(UNMODIFIED(one, two)))
        if function == "one_sized":
            found = ONE_SIZED(one, two)
            is_some = ctypes.c_bool.from_address(found + 48).value
            return (
                function,
                text,
                other,
                0,
                "",
                f"{numbers(vector(found))};{numbers(vector(found + 24))}" if is_some else "none",
            )
        wanted = sorted(pick.sample(range(len(bounds)), pick.randrange(len(bounds) + 1)))
        found = LEFT(one, two, *longs(wanted))
        is_some = ctypes.c_bool.from_address(found + 24).value
        return function, text, other, 0, numbers(wanted), numbers(vector(found)) if is_some else "none"
    whole = function in (
        "subshape",
        "subshape_count",
        "leaf_count",
        "device_shape_to_host_shape",
        "static_shape",
        "with_default_layout",
        "update_element_size_in_bits",
    )
    if function == "append_shape_to_tuple":
        text, other = "(" + ", ".join(shapes.shape(2) for _ in range(pick.randrange(4))) + ")", shapes.shape(1)
        tuple_shape = parsed(text)
        IN_PLACE[function](parsed(other), tuple_shape)
        return function, text, other, 0, "", answered(tuple_shape)
    text = shapes.shape() if whole else shapes.array(is_static=function == "dimension_stride")
    if (
        not whole
        and function not in ("change_element_type", "complex_component_shape", "true_rank", "dimension_stride")
        and pick.random() < 0.1
    ):
        text = f"b({text})"
    if function == "change_element_type" and pick.random() < 0.3:
        text = "(" + ", ".join(shapes.array() for _ in range(pick.randrange(4))) + ")"
    if function == "move_dim_to_major" and pick.random() < 0.2:
        rank = pick.choice([1, 2, 3])
        text = "(" + ", ".join(shapes.array(rank) for _ in range(1 + pick.randrange(3))) + ")"
    if function == "complex_component_shape":
        text = re.sub(r"^\w+", pick.choice(["c64", "c128"]), text)
    shape = parsed(text)
    # Of a missing layout `MakeStaticShape` makes one that doesn't fit.
    has_layout = function in ("with_descending_layout_and_same_physical_layout", "dimension_stride", "static_shape")
    cleared = int(not has_layout and pick.random() < 0.1)
    if cleared:
        clear_layout(shape)
    rank = rank_of(text) if "[" in text else 0
    if function in COUNTS:
        return function, text, "", cleared, "", str(COUNTS[function](shape))
    if function == "dimension_stride":
        if not rank:
            return None
        dimension = pick.randrange(rank)
        return function, text, "", 0, str(dimension), str(STRIDE(shape, dimension))
    if function == "subshape":
        path = [pick.randrange(4) for _ in range(pick.randrange(4))]
        if not INDEX_IS_VALID(shape, *longs(path)):
            return function, text, "", cleared, numbers(path), "none"
        return function, text, "", cleared, numbers(path), text_of(SUBSHAPE(shape, *longs(path)))
    if function in IN_PLACE:
        if function == "update_element_size_in_bits":
            value = pick.random() < 0.5
            IN_PLACE[function](shape, value)
            return function, text, "", cleared, str(value).lower(), answered(shape)
        bound = shapes.bound()
        IN_PLACE[function](bound, shape)
        return function, text, "", cleared, str(bound), answered(shape)
    if function == "permute_dimensions_ignoring_layout":
        clear_layout(shape)
        permutation = pick.sample(range(rank), rank)
        return function, text, "", 1, numbers(permutation), answered(IGNORING_LAYOUT(*longs(permutation), shape))
    edit = EDITS[function]
    if function == "change_element_type":
        element = pick.choice(list(TYPES))
        return function, text, "", cleared, element, answered(edit(shape, TYPES[element]))
    if function == "insert_dimension_at_index":
        index, bound = pick.randrange(rank + 1), shapes.bound()
        return function, text, "", cleared, f"{index},{bound}", answered(edit(shape, index, bound))
    if function == "insert_dimensions_at_index":
        index, bounds = pick.randrange(rank + 1), [shapes.bound() for _ in range(pick.randrange(4))]
        return function, text, "", cleared, numbers([index, *bounds]), answered(edit(shape, index, *longs(bounds)))
    if function in ("delete_dimension", "move_dim_to_major"):
        if not rank:
            return None
        dimension = pick.randrange(rank)
        values = (dimension, shape) if function == "delete_dimension" else (shape, dimension)
        return function, text, "", cleared, str(dimension), answered(edit(*values))
    if function == "delete_dimensions":
        dimensions = sorted(pick.sample(range(rank), pick.randrange(rank + 1)))
        return function, text, "", cleared, numbers(dimensions), answered(edit(*longs(dimensions), shape))
    if function == "permute_dimensions":
        permutation = pick.sample(range(rank), rank)
        return function, text, "", cleared, numbers(permutation), answered(edit(*longs(permutation), shape))
    return function, text, "", cleared, "", answered(edit(shape))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    shapes = Shapes(arguments.seed)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["function", "shape", "other", "cleared", "argument", "answer"])
    recorded = 0
    while recorded < arguments.cases:
        row = question(shapes)
        KEPT.clear()
        if row is not None:
            writer.writerow(row)
            recorded += 1


if __name__ == "__main__":
    main()
