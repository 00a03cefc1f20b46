//! Resharding against the definition: each element, where it must be, from where it was.

use std::collections::BTreeMap;
use tilewise::{ElementType, Layout, Resharding, Shape, Sharding, Tile, Tiled};
use tilewise_relayout::Reshard;
use tilewise_testing::Random;

/// A sharding of `devices` devices for an array of that rank.
fn sharding(random: &mut Random, devices: u64, rank: usize) -> Sharding {
    let text = match random.below(8_u32) {
        0 => "{replicated}".to_owned(),
        1 => format!("{{maximal device={}}}", random.below(devices)),
        _ => {
            let mut rest = devices;
            let mut tiles = Vec::new();
            for _ in 0..rank {
                let divisors: Vec<u64> = (1..=rest).filter(|d| rest.is_multiple_of(*d)).collect();
                tiles.push(random.choose(&divisors));
                rest /= tiles[tiles.len() - 1];
            }
            random.shuffle(&mut tiles);
            let replicated = if rest > 1 { " last_tile_dim_replicate" } else { "" };
            tiles.extend((rest > 1).then_some(rest));
            let list = |numbers: &[u64]| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
            let order = match random.below(3_u32) {
                0 => format!("<=[{devices}]"),
                1 if devices.is_multiple_of(2) => format!("<=[2,{}]T(1,0)", devices / 2),
                _ => {
                    let mut order: Vec<u64> = (0..devices).collect();
                    random.shuffle(&mut order);
                    list(&order)
                }
            };
            format!("{{devices=[{}]{order}{replicated}}}", list(&tiles))
        }
    };
    let read: Sharding = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
    assert_eq!(read.to_string().parse::<Sharding>().expect("printed"), read, "{text}");
    read
}

fn array(random: &mut Random, element: ElementType, bounds: &[u64]) -> Shape {
    let mut order: Vec<usize> = (0..bounds.len()).collect();
    random.shuffle(&mut order);
    let mut tiles = Vec::new();
    for _ in 0..random.below(3_u32) {
        let sizes: Vec<u64> = (0..1 + random.below(bounds.len().max(1))).map(|_| 1 + random.below(5_u64)).collect();
        tiles.push(Tile::new(sizes).expect("a tile"));
    }
    let layout = Layout::new(order).and_then(|layout| layout.with_tiles(tiles)).expect("a layout");
    let bits = if element == ElementType::S4 && random.percent(50) { 4 } else { 0 };
    let layout = layout.with_element_size_in_bits(bits).expect("a size");
    Shape::array(element, bounds.iter().copied()).expect("an array").with_layout(layout).expect("a layout of it")
}

/// The value of an element: its row-major number, as far as the type goes.
fn value(index: &[u64], bounds: &[u64], bits: u64) -> u64 {
    let number = index.iter().zip(bounds).fold(0, |number, (i, bound)| number * bound + i);
    number.wrapping_mul(0x9e37_79b9).wrapping_add(1) % (1 << bits.min(32))
}

fn indices(start: &[u64], limit: &[u64]) -> Vec<Vec<u64>> {
    let mut indices = vec![Vec::new()];
    for (&start, &limit) in start.iter().zip(limit) {
        indices = indices.iter().flat_map(|index| (start..limit).map(move |i| [&index[..], &[i]].concat())).collect();
    }
    indices
}

/// The bits of an element in a buffer.
fn place(tiled: &Tiled, index: &[u64]) -> std::ops::Range<u64> {
    let at = tiled.offset_of(index).expect("inside") * tiled.stored_bits();
    at..at + tiled.stored_bits().min(32)
}

fn set(buffer: &mut [u8], bits: std::ops::Range<u64>, value: u64) {
    for (number, bit) in bits.enumerate() {
        let (byte, mask) = (usize::try_from(bit / 8).expect("small"), 1 << (bit % 8));
        buffer[byte] = if value >> number & 1 == 1 { buffer[byte] | mask } else { buffer[byte] & !mask };
    }
}

/// A device's shard, made element by element; all else is `filling`.
fn made(sharding: &Sharding, device: u64, shape: &Shape, bounds: &[u64], filling: u8) -> Vec<u8> {
    let tiled = Tiled::new(shape).expect("a layout");
    let mut buffer = vec![filling; usize::try_from(tiled.physical_bytes()).expect("small")];
    if let Some((start, limit)) = sharding.shard(device, bounds).expect("fits") {
        for index in indices(&start, &limit) {
            let local: Vec<u64> = index.iter().zip(&start).map(|(i, start)| i - start).collect();
            let type_bits = u64::from(shape.element_type().expect("an array").bits());
            let mut number = value(&index, bounds, type_bits);
            // A wider storage of a signed number repeats its sign.
            if type_bits == 4 && tiled.stored_bits() == 8 && number >= 8 {
                number |= 0xF0;
            }
            set(&mut buffer, place(&tiled, &local), number);
        }
    }
    buffer
}

/// `count` random reshardings, whole: the copies, that none is too many, and the content of the buffers afterwards.
fn reshardings(count: u64, seed: u64) {
    for case in 0..count {
        let mut random = Random::for_case(seed, case);
        let rank = random.below(4_usize);
        let bounds: Vec<u64> = (0..rank).map(|_| 1 + random.below(9_u64)).collect();
        let element = random.choose(&[ElementType::F32, ElementType::S16, ElementType::S8, ElementType::S4]);
        let devices = 1 + random.below(6_u64);
        let shardings = [sharding(&mut random, devices, rank), sharding(&mut random, devices, rank)];
        let shapes = [array(&mut random, element, &bounds), array(&mut random, element, &bounds)];
        let Ok(plan) = Resharding::new(&shapes[0], &shardings[0], &shapes[1], &shardings[1]) else {
            panic!("{} {} to {} {}", shapes[0], shardings[0], shapes[1], shardings[1]);
        };
        let devices = plan.devices();
        let holds = |sharding: &Sharding, device: u64| {
            let shard = sharding.shard(device, &bounds).expect("fits");
            shard.map_or_else(Vec::new, |(start, limit)| indices(&start, &limit))
        };
        // Every element that a device shall hold arrives once; what it has already crosses no link.
        let mut arrived: BTreeMap<(u64, Vec<u64>), u64> = BTreeMap::new();
        for copy in plan.copies() {
            let held = holds(&shardings[0], copy.source);
            for index in indices(&copy.start, &copy.limit) {
                assert!(held.contains(&index), "the source has what it sends");
                assert!(arrived.insert((copy.destination, index), copy.source).is_none(), "once");
            }
        }
        let mut crossing = 0;
        for device in 0..devices {
            let (before, after) = (holds(&shardings[0], device), holds(&shardings[1], device));
            for index in after {
                let source = arrived.remove(&(device, index.clone())).expect("everything arrives");
                assert_eq!(source == device, before.contains(&index), "locally if it can be");
                crossing += u64::from(source != device);
            }
        }
        assert!(arrived.is_empty(), "nothing else arrives");
        assert_eq!(plan.elements_over_links(), crossing);

        let [from, to] = [plan.source_shard(), plan.destination_shard()].map(Clone::clone);
        let sources: Vec<Vec<u8>> =
            (0..devices).map(|device| made(&shardings[0], device, &from, &bounds, 0xA5)).collect();
        let reshard = Reshard::new(plan).expect("a plan");
        let mut written =
            vec![vec![0x5A_u8; usize::try_from(reshard.destination_bytes()).expect("small")]; sources.len()];
        let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
        let mut destinations: Vec<&mut [u8]> = written.iter_mut().map(Vec::as_mut_slice).collect();
        reshard.run(&sources, &mut destinations).expect("buffers");
        for (device, written) in (0..).zip(&written) {
            let wanted = made(&shardings[1], device, &to, &bounds, 0);
            assert_eq!(written, &wanted, "{from} {} to {to} {}, device {device}", shardings[0], shardings[1]);
        }
    }
}

#[test]
fn random_reshardings_are_the_definition() {
    let count = std::env::var("TILEWISE_RESHARDINGS").ok().and_then(|count| count.parse().ok());
    reshardings(count.unwrap_or(400), 11);
}

#[test]
fn buffers_of_other_lengths_are_refused() {
    let array = "f32[4]{0}".parse().expect("an array");
    let [rows, one]: [Sharding; 2] = ["{devices=[2]<=[2]}", "{maximal device=0}"].map(|text| text.parse().expect(text));
    let reshard = Reshard::new(Resharding::new(&array, &rows, &array, &one).expect("copies")).expect("a plan");
    let (source, mut whole) = ([0; 8], [1; 16]);
    assert!(reshard.run(&[&source], &mut [&mut whole, &mut []]).is_err());
    assert!(reshard.run(&[&source, &source[1..]], &mut [&mut whole, &mut []]).is_err());
    assert!(reshard.run(&[&source, &[]], &mut [&mut whole, &mut []]).is_err());
    assert!(reshard.run(&[&source, &source], &mut [&mut whole[1..], &mut []]).is_err());
    assert_eq!(whole, [1; 16], "nothing was written");
    reshard.run(&[&source, &source], &mut [&mut whole, &mut []]).expect("a device without a shard needs no buffer");
    assert_eq!(whole, [0; 16]);
}
