//! Every kernel with every instruction set this CPU has, at every alignment, against the definition.

use crate::support::{Way, all_ways, fault};
use tilewise_relayout::{Cpu, Padding, Plan};
use tilewise_testing::Random;

/// Pairs of layouts that lead to every kernel, in shapes that leave vectors, lines, tiles and blocks unfinished.
const PAIRS: &[(&str, &str, &str)] = &[
    // Runs.
    ("f32[19,300]", "1,0", "1,0:T(8,128)"),
    ("f32[19,300]", "1,0:T(8,128)", "1,0:T(16,256)"),
    ("s8[17,333]", "1,0", "1,0:T(8,128)"),
    ("c128[9,31]", "1,0", "1,0:T(8,4)"),
    ("u8[4097]", "0", "0"),
    ("s8[3,24,160]", "2,1,0", "2,0,1"),
    // Rows together and apart, units of 1 to 16 bytes, 2 to 16 rows.
    ("bf16[19,300]", "1,0", "1,0:T(8,128)(2,1)"),
    ("s8[19,300]", "1,0", "1,0:T(8,128)(4,1)"),
    ("s8[19,300]", "1,0", "1,0:T(8,128)(2,1)"),
    ("s8[33,140]", "1,0", "1,0:T(8,128)(8,1)"),
    ("s8[33,140]", "1,0", "1,0:T(16,128)(16,1)"),
    ("bf16[19,140]", "1,0", "1,0:T(8,128)(4,1)"),
    ("bf16[19,140]", "1,0", "1,0:T(8,128)(8,1)"),
    ("f32[7,150]", "1,0", "1,0:T(8,128)(2,1)"),
    ("f32[7,150]", "1,0", "1,0:T(8,128)(4,1)"),
    ("f64[7,150]", "1,0", "1,0:T(8,128)(2,1)"),
    ("c128[7,70]", "1,0", "1,0:T(8,64)(2,1)"),
    ("f32[20,130]", "1,0", "1,0:T(2,2)"),
    ("bf16[16,256]", "1,0:T(8,128)", "1,0:T(8,128)(2,1)"),
    ("bf16[1,256]", "1,0", "1,0:T(2,128)(2,1)"),
    ("bf16[3,16,4,128]", "3,2,1,0", "3,1,2,0:T(8,128)(2,1)"),
    ("c128[5,8,6,6]", "3,0,2,1:T(2,16)(*,8,*,2,16)(3,8,3,2,16)", "2,0,1,3:T(4,3,5,3)(8,16)(4,16)"),
    // Edges: what is left where a byte or a short run takes whole groups.
    ("f32[21,131]", "1,0", "1,0:T(2,2)"),
    ("u4[21,131]", "1,0", "1,0:T(8,128)(8,1)E(4)"),
    ("pred[35,131]", "1,0", "1,0:T(32,128)(32,1)E(1)"),
    ("s2[131]", "0", "0:T(3,3)E(2)"),
    ("f6e3m2fn[14]", "0:T(16)(2,5)E(6)", "0:E(6)"),
    // Transposes.
    ("s8[150,141]", "1,0", "0,1"),
    ("bf16[150,141]", "1,0", "0,1"),
    ("f32[70,141]", "1,0", "0,1"),
    ("f64[70,71]", "1,0", "0,1"),
    ("c128[40,41]", "1,0", "0,1"),
    ("f32[128,128]", "1,0", "0,1"),
    ("f32[64,5,7,3]", "3,2,1,0", "0,3,2,1"),
    ("s8[100,5,7,3]", "3,2,1,0", "0,3,2,1"),
    ("f32[150,140]", "1,0", "0,1:T(8,128)"),
    ("bf16[150,140]", "1,0", "0,1:T(8,128)(2,1)"),
    ("f32[256,24]", "1,0", "0,1:T(8,128)"),
    ("f32[384,80]", "1,0", "0,1:T(8,128)"),
    ("f32[256,40]", "1,0", "0,1:T(4,128)"),
    ("f32[1030,8]", "1,0", "0,1"),
    ("f32[64,3,64,4]", "3,2,1,0", "2,0,1,3"),
    ("bf16[2,1024,5]", "2,1,0", "1,2,0:T(8,128)"),
    ("f64[96,64]", "1,0", "0,1:T(32,16)"),
    // Columns that follow each other but start on no line, in several strips: runs of rows of one line and more, all rows in one
    // run, and a run of columns longer than a strip.
    ("s8[128,2600]", "1,0", "0,1:T(8,128)"),
    ("bf16[64,1400]", "1,0", "0,1:T(8,64)"),
    ("f32[48,1300]", "1,0", "0,1:T(4,16)"),
    ("f32[64,700]", "1,0", "0,1:T(5,32)"),
    ("f32[272,700]", "1,0", "0,1"),
    ("f32[64,1024]", "1,0", "0,1:T(512,32)"),
    ("f64[32,400]", "1,0", "0,1:T(4,16)"),
    ("c128[16,200]", "1,0", "0,1:T(2,8)"),
    // Narrow elements.
    ("s4[9,333]", "1,0", "1,0:E(4)"),
    ("u4[10,334]", "1,0", "1,0:E(4)"),
    ("s4[24,300]", "1,0", "1,0:T(8,128)E(4)"),
    ("s4[24,300]", "1,0", "1,0:T(8,128)(8,1)E(4)"),
    ("u4[24,300]", "1,0", "1,0:T(8,128)(2,1)E(4)"),
    ("u4[4,8,8]", "2,0,1", "0,2,1:T(4,2)E(4)"),
    ("u4[4,80,164]", "2,0,1", "0,2,1:T(4,2)E(4)"),
    ("s2[8,12,300]", "2,0,1", "0,2,1:T(8,4)E(2)"),
    ("s2[24,600]", "1,0", "1,0:E(2)"),
    ("s2[32,300]", "1,0", "1,0:T(16,128)(16,1)E(2)"),
    ("pred[8,800]", "1,0", "1,0:E(1)"),
    ("pred[40,300]", "1,0", "1,0:T(32,128)(32,1)E(1)"),
    ("s4[16,300]", "1,0:E(4)", "1,0:T(8,128)E(4)"),
    // Bytes of several rows: 2, 4 and 8 rows in each, up to 16 bytes side by side, and whole groups, parts of them, odd rows.
    ("s4[26,300]", "1,0", "1,0:T(8,128)(8,1)E(4)"),
    ("s4[4,300]", "1,0", "1,0:T(8,128)(8,1)E(4)"),
    ("u4[29,300]", "1,0:T(8,128)", "1,0:T(8,128)(8,1)E(4)"),
    ("s4[23,300]", "1,0", "1,0:T(8,128)(4,1)E(4)"),
    ("s4[37,140]", "1,0", "1,0:T(16,128)(16,1)E(4)"),
    ("u4[43,140]", "1,0", "1,0:T(32,128)(32,1)E(4)"),
    ("s4[3,7,700]", "2,1,0", "2,1,0:T(8,128)(2,1)E(4)"),
    ("s4[3,6,700]", "2,0,1", "2,1,0:T(8,128)(2,1)E(4)"),
    ("s4[40,44]", "1,0:E(4)", "0,1"),
    ("u4[2,160,4]", "2,1,0", "0,1,2:E(4)"),
    ("u4[21,300]", "1,0:T(8,128)", "1,0:T(8,128)(2,1)E(4)"),
    ("u2[27,300]", "1,0", "1,0:T(8,128)(4,1)E(2)"),
    ("s2[24,300]", "1,0", "1,0:T(8,128)(2,1)E(2)"),
    ("s2[27,300]", "1,0", "1,0:T(8,128)(8,1)E(2)"),
    ("u2[46,300]", "1,0", "1,0:T(16,128)(16,1)E(2)"),
    ("s2[44,300]", "1,0:T(8,128)(4,1)", "1,0:T(16,128)(16,1)E(2)"),
    ("s2[45,140]", "1,0", "1,0:T(32,128)(32,1)E(2)"),
    ("u2[89,140]", "1,0", "1,0:T(64,128)(64,1)E(2)"),
    ("pred[21,300]", "1,0", "1,0:T(8,128)(8,1)E(1)"),
    ("pred[41,140]", "1,0", "1,0:T(16,128)(16,1)E(1)"),
    ("pred[83,140]", "1,0", "1,0:T(64,128)(64,1)E(1)"),
    ("pred[147,140]", "1,0", "1,0:T(128,128)(128,1)E(1)"),
    ("s4[16,100]", "1,0:E(8)", "1,0:E(32)"),
];

fn shapes(array: &str, from: &str, to: &str) -> (tilewise::Shape, tilewise::Shape) {
    let shape = |layout: &str| format!("{array}{{{layout}}}").parse().expect("a shape");
    (shape(from), shape(to))
}

#[test]
fn every_kernel_both_ways() {
    let mut random = Random::new(0xFEED_5EED_0000_0001);
    for (array, from, to) in PAIRS {
        let (from, to) = shapes(array, from, to);
        for (from, to) in [(&from, &to), (&to, &from)] {
            for padding in [Padding::Zero, Padding::Leave] {
                let ways = all_ways(&mut random);
                if let Some(fault) = fault(from, to, padding, &mut random, &ways) {
                    panic!("{from} -> {to}, {padding:?}: {fault}");
                }
            }
        }
    }
}

#[test]
fn every_alignment() {
    let mut random = Random::new(0xFEED_5EED_0000_0002);
    for (array, from, to) in PAIRS {
        let (from, to) = shapes(array, from, to);
        for (from, to) in [(&from, &to), (&to, &from)] {
            let mut ways = Vec::new();
            for place in 0..64 {
                let other = random.choose(&[0, 16, place, (place * 37 + 5) % 64]);
                let cpu = random.choose(&Cpu::available());
                for (source_at, destination_at) in [(place, other), (other, place)] {
                    let is_non_temporal = random.below(2) == 0;
                    ways.push(Way { cpu, is_non_temporal, threads: 1, source_at, destination_at });
                }
            }
            if let Some(fault) = fault(from, to, Padding::Zero, &mut random, &ways) {
                panic!("{from} -> {to}: {fault}");
            }
        }
    }
}

/// All shapes of a few elements, between layouts that cut them in every way.
#[test]
fn exhaustive_small_shapes() {
    let layouts = [
        "1,0",
        "0,1",
        "1,0:T(2,2)",
        "1,0:T(4,4)(2,1)",
        "0,1:T(2,4)",
        "1,0:T(3,2)",
        "1,0:T(*,4)",
        "1,0:T(2,1)(2,2)L(5)",
    ];
    let mut random = Random::new(0xFEED_5EED_0000_0003);
    for element in ["s8", "bf16", "f32", "s4"] {
        for rows in 1..7 {
            for columns in [1, 2, 3, 4, 5, 8, 9] {
                for from in layouts {
                    for to in layouts {
                        let (from, to) = shapes(&format!("{element}[{rows},{columns}]"), from, to);
                        let cpu = random.choose(&Cpu::available());
                        let is_non_temporal = random.below(2) == 0;
                        let way = Way { cpu, is_non_temporal, threads: 1, source_at: 3, destination_at: 16 };
                        if let Some(fault) = fault(&from, &to, Padding::Zero, &mut random, &[way]) {
                            panic!("{from} -> {to}: {fault}");
                        }
                    }
                }
            }
        }
    }
}

/// Any number of threads writes what one writes; the shapes are large enough that all of them have something to do.
#[test]
fn threads_agree() {
    let mut random = Random::new(0xFEED_5EED_0000_0004);
    for (array, from, to) in [
        ("f32[300,260]", "1,0", "0,1"),
        ("f32[300,260]", "1,0", "0,1:T(8,128)"),
        ("f32[30000,7]", "1,0", "0,1"),
        ("f32[7,30000]", "1,0", "0,1"),
        ("bf16[300,260]", "1,0", "1,0:T(8,128)(2,1)"),
        ("u8[70000]", "0", "0"),
        ("s4[90,91]", "1,0", "0,1:E(4)"),
        ("s4[400,500]", "1,0", "1,0:E(4)"),
        ("u2[400,500]", "1,0:E(2)", "1,0"),
        ("s4[90,300]", "1,0:T(8,128)(2,1)E(4)", "1,0"),
        ("s2[99,300]", "1,0:T(16,128)(16,1)E(2)", "1,0"),
    ] {
        let (from, to) = shapes(array, from, to);
        let plan = Plan::new(&from, &to).expect("a plan");
        let source = random.bytes(plan.source_bytes());
        let length = usize::try_from(plan.destination_bytes()).expect("small");
        let mut wanted = vec![0xAA; length];
        plan.run(&source, &mut wanted).expect("lengths are right");
        for threads in [0, 2, 3, 5, 16] {
            for is_non_temporal in [false, true] {
                let mut got = vec![0x55; length];
                let cpu = *Cpu::available().last().expect("one at least");
                plan.clone()
                    .with_cpu(cpu)
                    .run_loops(is_non_temporal, &source, &mut got, threads, None)
                    .expect("lengths are right");
                assert!(got == wanted, "{from} -> {to}, {threads} threads");
            }
        }
    }
}
