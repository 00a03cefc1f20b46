//! All contenders of a case: our engine, the array libraries of Rust, and those of Python.

use super::{Work, cases::Step};
use crate::{
    measure::{Effort, Figure, Mover, contest, mover},
    rivals::Rivals,
};
use anyhow::{Context, ensure};
use ndarray::{ArrayViewD, ArrayViewMutD, IxDyn};
use serde_json::json;
use std::hint::black_box;
use tilewise::Shape;
use tilewise_relayout::Plan;

/// Every rival by the name that `rivals.py` gives it, and as it stands in tables.
pub(crate) const RIVALS: [(&str, &str); 7] = [
    ("numpy", "NumPy"),
    ("numpy_into", "NumPy, kept"),
    ("jax", "JAX"),
    ("torch", "PyTorch"),
    ("torch_into", "PyTorch, kept"),
    ("ndarray", "`ndarray`"),
    ("transpose", "`transpose`"),
];

/// The figures of our engine, and of each of [`RIVALS`] that can do the case.
pub(crate) struct Standing {
    pub(crate) ours: Figure,
    pub(crate) rivals: [Option<Figure>; RIVALS.len()],
}

impl Standing {
    /// The time of the best rival whose name starts with `prefix`, as a multiple of ours.
    pub(crate) fn lead(&self, prefix: &str) -> Option<f64> {
        let rivals = RIVALS.iter().zip(&self.rivals).filter(|((name, _), _)| name.starts_with(prefix));
        let best = rivals.filter_map(|(_, figure)| Some(figure.as_ref()?.seconds)).min_by(f64::total_cmp)?;
        Some(best / self.ours.seconds)
    }
}

/// Compares all contenders on the same work, after each has shown that its result is ours byte for byte.
pub(crate) fn compare(
    effort: &Effort,
    rivals: &Rivals,
    from: &Shape,
    to: &Shape,
    steps: &[Step],
) -> anyhow::Result<Standing> {
    let work = Work::new(&(from.clone(), to.clone()))?;
    let (source, result) = (work.source.content(), work.destination.borrow().content().to_vec());
    let width = from.element_type().context("an array")?.natural_bits() / 8;

    let mut movers: Vec<Mover<'_>> = vec![mover(|| work.run(Plan::run))];
    let mut able = Vec::new();
    let native = match width {
        1 => native::<u8>(source, &result, steps),
        2 => native::<u16>(source, &result, steps),
        _ => native::<u32>(source, &result, steps),
    }?;
    for (name, mover) in native {
        able.push(name.to_owned());
        movers.push(mover);
    }
    let case = json!({"bytes": source.len(), "width": width, "steps": steps, "crc32": crc32fast::hash(&result)});
    for name in rivals.ask(&format!("relayout\t{case}"))?.split_whitespace() {
        able.push(name.to_owned());
        let name = name.to_owned();
        movers.push(Box::new(move |calls| rivals.time(&format!("move\t{name}\t{calls}"))));
    }
    let figures = contest(effort, work.bytes(), &mut movers)?;
    let of = |name: &str| able.iter().position(|able| able == name).map(|place| figures[place + 1]);
    Ok(Standing { ours: figures[0], rivals: RIVALS.map(|(name, _)| of(name)) })
}

/// The rivals written in Rust, on elements as wide as `T`.
fn native<'a, T: bytemuck::Pod>(
    source: &'a [u8],
    result: &[u8],
    steps: &[Step],
) -> anyhow::Result<Vec<(&'static str, Mover<'a>)>> {
    let &[Step::Reshape(bounds), Step::Transpose(order)] = steps else { return Ok(Vec::new()) };
    let source: &[T] = bytemuck::try_cast_slice(source).map_err(|error| anyhow::anyhow!("the source: {error}"))?;
    let check = |name: &str, destination: &[T]| {
        ensure!(bytemuck::cast_slice::<T, u8>(destination) == result, "`{name}` gives another result");
        Ok(())
    };
    let mut rivals: Vec<(&'static str, Mover<'a>)> = Vec::new();

    let view = ArrayViewD::from_shape(IxDyn(bounds), source)?.permuted_axes(order);
    let mut destination = vec![T::zeroed(); source.len()];
    ArrayViewMutD::from_shape(view.raw_dim(), &mut destination)?.assign(&view);
    check("ndarray", &destination)?;
    rivals.push((
        "ndarray",
        mover(move || {
            let out = ArrayViewMutD::from_shape(view.raw_dim(), black_box(&mut destination));
            out.expect("just done").assign(&view);
        }),
    ));

    if let (&[rows, columns], [1, 0]) = (bounds, order) {
        let mut destination = vec![T::zeroed(); source.len()];
        transpose::transpose(source, &mut destination, columns, rows);
        check("transpose", &destination)?;
        rivals.push((
            "transpose",
            mover(move || transpose::transpose(source, black_box(&mut destination), columns, rows)),
        ));
    }
    Ok(rivals)
}
