//! Factors of operations: what XLA does, by conformance/factors.

#![allow(clippy::unwrap_used)] // in helpers, which the lint does not take for tests

use std::collections::{HashMap, HashSet};

use tilewise::{Shape, Tiled};
use tilewise_hlo::{
    Instruction, Module, Opcode,
    dataflow::{Factor, FactorKind, Factors},
    read,
};
use tilewise_testing::{Random, programs};

const RULES: &str = include_str!("../../../../conformance/factors/rules.hlo");

/// The factors of a line, whose computations are those at the head of the rules.
fn factors(line: &str) -> String {
    let head: String =
        RULES.lines().filter(|line| line.contains(" { ")).map(|line| line.replace("  ", "\n") + "\n").collect();
    let module = Module::parse(format!("{head}main {{\nx {line}\n}}\n")).unwrap();
    let instruction = module.computation("main").unwrap().root().unwrap();
    Factors::of(&instruction).unwrap().to_string()
}

#[test]
fn factors_are_those_that_xla_was_seen_to_have() {
    let mut rule = "";
    let mut count = 0;
    let mut wrong = Vec::new();
    for line in RULES.lines() {
        if line.starts_with('(') {
            rule = line;
        } else if line.starts_with("= ") {
            count += 1;
            let found = factors(line);
            if std::env::var_os("TILEWISE_PRINT_FACTORS").is_some() {
                println!("{found}");
            } else if found != rule {
                wrong.push(format!("{line}\n  {found}\n  {rule}"));
            }
        }
    }
    assert!(count > 80 && wrong.is_empty(), "{count}\n{}", wrong.join("\n"));
}

/// Every program that is one module, and the factors of each of its operations on arrays.
fn all() -> impl Iterator<Item = (String, Module)> {
    programs::all().into_iter().filter_map(|path| Some((path.display().to_string(), read(&path).ok()?)))
}

/// The bounds of the arrays of an operation, operands and results alike.
fn bounds(at: &Instruction<'_>) -> Option<Vec<Vec<u64>>> {
    let operands: Option<Vec<Shape>> = at.operands().map(|operand| operand.instruction()?.shape().ok()).collect();
    let result = at.shape().ok()?;
    let arrays = operands?.into_iter().chain(result.leaves().map(|(_, leaf)| leaf));
    arrays.map(|array| array.dimensions().iter().map(|dimension| dimension.bound()).collect()).collect()
}

#[test]
fn dimensions_are_products_of_their_factors() {
    let mut count = 0;
    for (name, module) in all() {
        for at in module.instructions() {
            let (Some(factors), Some(arrays)) = (Factors::of(&at), bounds(&at)) else { continue };
            for (array, bounds) in arrays.iter().enumerate() {
                for (dimension, bound) in bounds.iter().enumerate().filter(|(_, bound)| **bound > 0) {
                    let product: u64 =
                        factors.of_dimension(array, dimension).map(|factor| factors.factors()[factor].size).product();
                    assert_eq!(product, *bound, "{name}: {} {factors}", at.name());
                    count += 1;
                }
            }
        }
    }
    assert!(count > 5000, "{count}");
}

/// Of the bitcasts that a TPU's compiler made: elements at one offset have one place along each factor that passes.
#[test]
fn bitcasts_pass_what_stays_where_it_is() {
    let (mut seen, mut passing, mut mixed) = (HashSet::new(), 0, 0);
    let mut random = Random::new(1);
    for (name, module) in all() {
        for at in module.instructions().filter(|at| at.opcode() == Opcode::Bitcast) {
            let Some(from) = at.operands().next().and_then(|operand| operand.instruction()) else { continue };
            if !seen.insert((from.shape_text().to_owned(), at.shape_text().to_owned())) {
                continue;
            }
            let (Ok(one), Ok(other)) = (from.shape(), at.shape()) else { continue };
            let (Ok(one), Ok(other)) = (Tiled::new(&one), Tiled::new(&other)) else { continue };
            if one.stored_bits() != other.stored_bits() || one.logical_dimensions().contains(&0) {
                continue;
            }
            let factors = Factors::of(&at).unwrap();
            for factor in factors.factors() {
                *if factor.kind == FactorKind::Pass { &mut passing } else { &mut mixed } += 1;
            }
            for _ in 0..50 {
                let index: Vec<u64> = one.logical_dimensions().iter().map(|bound| random.below(*bound)).collect();
                let Some(moved) = other.index_of(one.offset_of(&index).unwrap()).unwrap() else { continue };
                let digits = [digits(&factors, 0, &index), digits(&factors, 1, &moved)];
                for (factor, digit) in &digits[0] {
                    let same = digits[1].get(factor).is_none_or(|other| other == digit);
                    assert!(same, "{name}: {} {factors} {index:?} {moved:?}", at.name());
                }
            }
        }
    }
    assert!(passing > 200 && mixed * 20 < passing, "{passing} {mixed}");
}

/// The place of an index along each factor of an array that passes.
fn digits(factors: &Factors, array: usize, index: &[u64]) -> HashMap<usize, u64> {
    let mut found = HashMap::new();
    for (dimension, place) in index.iter().enumerate() {
        let mut place = *place;
        let own: Vec<usize> = factors.of_dimension(array, dimension).collect();
        for factor in own.into_iter().rev() {
            let Factor { size, kind, .. } = factors.factors()[factor];
            if kind == FactorKind::Pass {
                found.insert(factor, place % size);
            }
            place /= size;
        }
    }
    found
}
