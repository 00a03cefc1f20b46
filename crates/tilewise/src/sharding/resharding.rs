//! From one sharding to another: the copies between devices.

use super::{Division, Sharding, invalid};
use crate::{Error, ErrorKind, Layout, Shape};
use alloc::{format, vec, vec::Vec};

/// The copies that make the shards of another sharding from those of an array.
///
/// Every element that a device shall hold is copied to it once: from its own shard if it has the element already, else
/// from one of the devices that have it, each in turn. This takes the fewest bytes over links.
///
/// ```
/// use tilewise::Resharding;
///
/// // From rows to columns, four devices.
/// let from = "bf16[512,512]{1,0:T(8,128)(2,1)}".parse()?;
/// let plan = Resharding::new(&from, &"{devices=[4,1]<=[4]}".parse()?, &from, &"{devices=[1,4]<=[4]}".parse()?)?;
/// assert_eq!(plan.source_shard().to_string(), "bf16[128,512]{1,0:T(8,128)(2,1)}");
/// assert_eq!((plan.copies().len(), plan.elements_over_links()), (16, 512 * 512 * 3 / 4));
/// let copy = &plan.copies()[1];                        // the first device has a quarter of its columns itself
/// assert_eq!((copy.source, copy.destination), (1, 0));
/// assert_eq!((&copy.start[..], &copy.limit[..]), (&[128, 0][..], &[256, 128][..]));
/// # Ok::<(), tilewise::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Resharding {
    shards: [Shape; 2],
    devices: [u64; 2],
    copies: Vec<ShardCopy>,
}

/// One copy from a shard to another. Indices are of the whole array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardCopy {
    /// The device whose shard is read.
    pub source: u64,
    /// The device whose shard is written.
    pub destination: u64,
    /// The first index that is copied, for each dimension.
    pub start: Vec<u64>,
    /// The limit behind the last index that is copied, for each dimension.
    pub limit: Vec<u64>,
    /// The index of `start` in the source's shard.
    pub source_start: Vec<u64>,
    /// The index of `start` in the destination's shard.
    pub destination_start: Vec<u64>,
}

impl ShardCopy {
    /// The number of elements that are copied.
    #[must_use]
    pub fn elements(&self) -> u64 {
        self.start.iter().zip(&self.limit).map(|(start, limit)| limit - start).product()
    }

    /// Whether source and destination are the same device.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.source == self.destination
    }

    /// The limit behind the last index that is copied, in the source's shard.
    #[must_use]
    pub fn source_limit(&self) -> Vec<u64> {
        self.limit_from(&self.source_start)
    }

    /// The limit behind the last index that is copied, in the destination's shard.
    #[must_use]
    pub fn destination_limit(&self) -> Vec<u64> {
        self.limit_from(&self.destination_start)
    }

    fn limit_from(&self, shard: &[u64]) -> Vec<u64> {
        let sizes = self.start.iter().zip(&self.limit).map(|(start, limit)| limit - start);
        shard.iter().zip(sizes).map(|(start, size)| start + size).collect()
    }
}

/// Maximum number of copies; more are refused.
const MOST_COPIES: usize = 1 << 20;

impl Resharding {
    /// The copies from the shards of an array, each in the layout of `from`, to those of the same array in the layout of `to`.
    ///
    /// The shapes are those of the whole array. If neither sharding gives the number of devices, it is 1, or as large
    /// as the device of a maximal sharding needs.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidSharding`] where a sharding doesn't fit the array, the numbers of devices differ, or there are more than 2^20
    /// copies; [`ErrorKind::NotAnArray`], [`ErrorKind::UnboundedDimension`], [`ErrorKind::MissingLayout`]; [`ErrorKind::BufferLengthMismatch`]
    /// where the shapes are of different arrays.
    pub fn new(from: &Shape, from_sharding: &Sharding, to: &Shape, to_sharding: &Sharding) -> Result<Self, Error> {
        Self::of([from, to], [from_sharding, to_sharding], None)
    }

    /// As [`new`](Self::new), on `devices` devices; a sharding with another number is an error.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    ///
    /// ```
    /// use tilewise::{Resharding, Sharding};
    ///
    /// let (array, everywhere) = ("f32[8]{0}".parse()?, Sharding::replicated());
    /// let plan = Resharding::on(4, &array, &Sharding::maximal(0), &array, &everywhere)?;
    /// assert_eq!((plan.copies().len(), plan.elements_over_links()), (4, 24));
    /// # Ok::<(), tilewise::Error>(())
    /// ```
    pub fn on(
        devices: u64,
        from: &Shape,
        from_sharding: &Sharding,
        to: &Shape,
        to_sharding: &Sharding,
    ) -> Result<Self, Error> {
        Self::of([from, to], [from_sharding, to_sharding], Some(devices))
    }

    fn of(
        [from, to]: [&Shape; 2],
        [from_sharding, to_sharding]: [&Sharding; 2],
        devices: Option<u64>,
    ) -> Result<Self, Error> {
        let bounds = bounds(from)?;
        if from.element_type() != to.element_type() || bounds != self::bounds(to)? {
            let message =
                format!("`{from}` and `{to}` are different arrays: dimensions and element type must be the same");
            return Err(Error::new(ErrorKind::BufferLengthMismatch, message));
        }
        let devices = count_devices(from_sharding, to_sharding, devices)?;
        let shards = [shard(from, from_sharding, &bounds)?, shard(to, to_sharding, &bounds)?];
        let sizes = [from_sharding.shard_dimensions(&bounds)?, to_sharding.shard_dimensions(&bounds)?];
        let tiles = from_sharding.tiles(bounds.len());
        let mut copies = Vec::new();
        // The turn of each shard's holders: the number of copies so far.
        let mut turns = vec![0_usize; tiles.iter().product::<u64>().try_into().unwrap_or(0)];
        for destination in 0..devices {
            let Some(own) = to_sharding.shard_of(destination) else { continue };
            let (start, limit) = to_sharding.bounds_of(own, &sizes[1], &bounds);
            if start.iter().zip(&limit).any(|(start, limit)| start >= limit) {
                continue;
            }
            // The source's shards that this one meets: a range along each dimension.
            let firsts: Vec<u64> = start.iter().zip(&sizes[0]).map(|(start, size)| start / size).collect();
            let lasts: Vec<u64> = limit.iter().zip(&sizes[0]).map(|(limit, size)| (limit - 1) / size).collect();
            let mut tile = firsts.clone();
            loop {
                let shard = tile.iter().zip(&tiles).fold(0, |shard, (tile, tiles)| shard * tiles + tile);
                let shard = usize::try_from(shard).unwrap_or(usize::MAX);
                let (held, ends) = from_sharding.bounds_of(shard, &sizes[0], &bounds);
                let begin: Vec<u64> = start.iter().zip(&held).map(|(a, b)| *a.max(b)).collect();
                if copies.len() == MOST_COPIES {
                    return Err(invalid(format!("there are more than {MOST_COPIES} copies")));
                }
                copies.push(ShardCopy {
                    source: from_sharding.holder(shard, destination, devices, &mut turns),
                    destination,
                    limit: limit.iter().zip(&ends).map(|(a, b)| *a.min(b)).collect(),
                    source_start: begin.iter().zip(&held).map(|(at, start)| at - start).collect(),
                    destination_start: begin.iter().zip(&start).map(|(at, start)| at - start).collect(),
                    start: begin,
                });
                let Some(next) = (0..tile.len()).rev().find(|&dimension| tile[dimension] < lasts[dimension]) else {
                    break;
                };
                tile[next] += 1;
                tile[next + 1..].copy_from_slice(&firsts[next + 1..]);
            }
        }
        Ok(Self { shards, devices: [devices; 2], copies })
    }

    /// The shape of every device's shard before, with the layout.
    #[must_use]
    pub fn source_shard(&self) -> &Shape {
        &self.shards[0]
    }

    /// The shape of every device's shard afterwards, with the layout.
    #[must_use]
    pub fn destination_shard(&self) -> &Shape {
        &self.shards[1]
    }

    /// The number of devices.
    #[must_use]
    pub fn devices(&self) -> u64 {
        self.devices[0]
    }

    /// The copies, by destination.
    #[must_use]
    pub fn copies(&self) -> &[ShardCopy] {
        &self.copies
    }

    /// The number of elements that go from one device to another.
    #[must_use]
    pub fn elements_over_links(&self) -> u64 {
        self.copies.iter().filter(|copy| !copy.is_local()).map(ShardCopy::elements).sum()
    }
}

impl Sharding {
    /// A device that holds a shard: the one that asks, or else each in turn.
    fn holder(&self, shard: usize, asking: u64, devices: u64, turns: &mut [usize]) -> u64 {
        if self.shard_of(asking) == Some(shard) {
            return asking;
        }
        let mut turn = |count: usize| {
            let turn = turns[shard] % count;
            turns[shard] += 1;
            turn
        };
        match &self.0 {
            Division::Maximal(device) => *device,
            Division::Replicated => turn(usize::try_from(devices).unwrap_or(1)) as u64,
            Division::Tiled { replicas, devices, .. } => devices[shard * replicas + turn(*replicas)],
        }
    }
}

/// The number of devices: as wanted, as in both shardings, or as few as they need.
fn count_devices(from: &Sharding, to: &Sharding, wanted: Option<u64>) -> Result<u64, Error> {
    let least = |sharding: &Sharding| match sharding.0 {
        Division::Maximal(device) => device.saturating_add(1),
        _ => 1,
    };
    let least = least(from).max(least(to));
    let known = [wanted, from.devices(), to.devices()];
    let devices = known.into_iter().flatten().next().unwrap_or(least);
    if let Some(other) = known.into_iter().flatten().find(|&other| other != devices) {
        return Err(invalid(format!("the array is on {devices} devices, and on {other}")));
    }
    if devices < least || devices > super::MOST_DEVICES {
        return Err(invalid(format!("device {} is none of {devices}", least - 1)));
    }
    Ok(devices)
}

fn bounds(shape: &Shape) -> Result<Vec<u64>, Error> {
    let array = shape.array_or_error()?;
    let bound = |dimension: &crate::Dimension| {
        let unbounded = || Error::new(ErrorKind::UnboundedDimension, "a dimension without a bound can't be divided");
        dimension.bound().ok_or_else(unbounded)
    };
    array.dimensions().iter().map(bound).collect()
}

fn shard(shape: &Shape, sharding: &Sharding, bounds: &[u64]) -> Result<Shape, Error> {
    let array = shape.array_or_error()?;
    let missing = || Error::new(ErrorKind::MissingLayout, format!("`{shape}` has no layout"));
    let layout: Layout = array.layout().cloned().ok_or_else(missing)?;
    Shape::array(array.element_type(), sharding.shard_dimensions(bounds)?)?.with_layout(layout)
}
