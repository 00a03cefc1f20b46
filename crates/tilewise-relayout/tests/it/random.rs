//! Random pairs of layouts against the definition, in every way a plan can run.

use crate::support::{all_ways, fault};
use tilewise_relayout::Padding;
use tilewise_testing::Random;

/// Up to three tiles, longer and shorter than the rank, `*`, tail padding, element sizes.
fn layout(random: &mut Random, rank: usize, bits: u64) -> String {
    let mut order: Vec<usize> = (0..rank).collect();
    random.shuffle(&mut order);
    let mut text = order.iter().map(usize::to_string).collect::<Vec<_>>().join(",") + ":";
    for level in 0..random.below(4) {
        let length = 1 + random.below(rank + 1);
        let mut sizes = Vec::new();
        for i in 0..length {
            let any = i + 1 < length && random.below(12) == 0;
            sizes.push(if any { "*".to_owned() } else { random.choose(&[1, 2, 3, 4, 5, 8, 2, 4, 16]).to_string() });
        }
        text += &format!("{}({})", if level == 0 { "T" } else { "" }, sizes.join(","));
    }
    if random.below(8) == 0 {
        text += &format!("L({})", random.choose(&[3, 7, 16, 100]));
    }
    match random.below(6) {
        0 | 1 if bits < 8 => text += &format!("E({bits})"),
        2 => text += &format!("E({})", bits + random.choose(&[0, 1, 3, 8, 24, 61])),
        _ => {}
    }
    text.strip_suffix(':').map(str::to_owned).unwrap_or(text)
}

fn dimensions(random: &mut Random) -> Vec<u64> {
    let rank = 1 + random.below(4);
    (0..rank).map(|_| 1 + random.below(if rank > 2 { 9 } else { 40 })).collect()
}

fn check(seed: u64, cases: usize) {
    let mut random = Random::new(seed);
    let types = [
        ("s8", 8),
        ("bf16", 16),
        ("f32", 32),
        ("f64", 64),
        ("c128", 128),
        ("s4", 4),
        ("u4", 4),
        ("s2", 2),
        ("u2", 2),
        ("pred", 1),
        ("f6e3m2fn", 6),
        ("s16", 16),
    ];
    for _ in 0..cases {
        let (element, bits) = random.choose(&types);
        let dimensions = dimensions(&mut random);
        let text = dimensions.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let from = format!("{element}[{text}]{{{}}}", layout(&mut random, dimensions.len(), bits));
        let to = format!("{element}[{text}]{{{}}}", layout(&mut random, dimensions.len(), bits));
        let (Ok(source), Ok(destination)) = (from.parse(), to.parse()) else { panic!("{from} or {to}") };
        let padding = random.choose(&[Padding::Zero, Padding::Leave]);
        let ways = all_ways(&mut random);
        if std::env::var_os("RELAYOUT_TRACE").is_some() {
            eprintln!("{from} -> {to}, {padding:?}");
        }
        if let Some(fault) = fault(&source, &destination, padding, &mut random, &ways) {
            panic!("{from} -> {to}, {padding:?}: {fault}");
        }
    }
}

#[test]
fn random_pairs() {
    check(0x1234_5678_9ABC_DEF1, if cfg!(debug_assertions) { 600 } else { 6000 });
}

#[test]
#[ignore = "minutes long"]
fn many_random_pairs() {
    for seed in 1..10 {
        check(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(seed), 4000);
    }
}
