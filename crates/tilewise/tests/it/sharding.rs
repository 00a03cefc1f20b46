//! XLA's text of shardings: what it means, and what is refused. The copies themselves are tested where they are run, in tilewise-relayout.

use tilewise::{ErrorKind, Resharding, Shape, Sharding};

fn rows(text: &str, bounds: &[u64]) -> Vec<String> {
    let sharding: Sharding = text.parse().expect(text);
    let devices = sharding.devices().expect("a number");
    let shard = |device| sharding.shard(device, bounds).expect("fits").expect("a shard");
    (0..devices).map(shard).map(|(start, limit)| format!("{start:?}..{limit:?}")).collect()
}

/// XLA's `TileAssignment` of `<=[…]T(…)`: the devices of `[4,2]<=[2,4]T(1,0)` are 0, 4, 1, 5, 2, 6, 3, 7.
#[test]
fn devices_in_transposed_order() {
    assert_eq!(rows("{devices=[4,2]<=[2,4]T(1,0)}", &[4, 2]), rows("{devices=[4,2]0,4,1,5,2,6,3,7}", &[4, 2]),);
    assert_eq!(
        "devices=[4,2]<=[2,4]T(1,0)".parse::<Sharding>().expect("bare").to_string(),
        "{devices=[4,2]0,4,1,5,2,6,3,7}"
    );
}

#[test]
fn partly_replicated_and_uneven() {
    let replicated = "{devices=[1,2,2]<=[4] last_tile_dim_replicate}";
    assert_eq!(rows(replicated, &[3, 5]), ["[0, 0]..[3, 3]", "[0, 0]..[3, 3]", "[0, 3]..[3, 5]", "[0, 3]..[3, 5]"]);
    assert_eq!(rows("{devices=[1,2,2]<=[4] last_tile_dims={replicated}}", &[3, 5]), rows(replicated, &[3, 5]));
    // Rounded up, four shards of 5 hold 2, 2, 1 and none.
    assert_eq!(rows("{devices=[4]<=[4]}", &[5]), ["[0]..[2]", "[2]..[4]", "[4]..[5]", "[5]..[5]"]);
}

#[test]
fn what_is_no_sharding_is_named_where_it_is() {
    for (text, span) in [
        ("{manual}", 1..7),
        ("{devices=[2,2]<=[5]}", 17..19),
        ("{devices=[2,2]0,1,2}", 1..19),
        ("{devices=[2,2]0,1,2,2}", 1..21),
        ("{devices=[2,2]0,1,2,4}", 1..21),
        ("{devices=[2,0]<=[4]}", 1..14),
        ("{devices=[2,2]<=[4]T(1)}", 17..23),
        ("{devices=[2,2]<=[2,2]T(0,0)}", 17..27),
        ("{devices=[2,2]<=[4]", 19..19),
        ("{devices=[4294967296,4294967296]<=[18446744073709551615]}", 1..32),
        ("{{replicated},{replicated}}", 1..2),
        ("{devices=[2,2]<=[4] last_tile_dims={manual}}", 36..42),
        ("{replicated} x", 13..14),
        ("", 0..0),
    ] {
        let error = text.parse::<Sharding>().expect_err(text);
        assert_eq!((error.kind(), error.span()), (ErrorKind::InvalidSharding, Some(span)), "{text}: {error}");
    }
}

#[test]
fn shardings_that_do_not_fit_are_refused() {
    let [array, other]: [Shape; 2] = ["f32[4,4]", "f32[4,5]"].map(|text| text.parse().expect(text));
    let sharding = |text: &str| text.parse::<Sharding>().expect(text);
    let kind = |from: &str, to_array: &Shape, to: &str| {
        Resharding::new(&array, &sharding(from), to_array, &sharding(to)).expect_err("no fit").kind()
    };
    assert_eq!(kind("{devices=[2]<=[2]}", &array, "{replicated}"), ErrorKind::InvalidSharding);
    assert_eq!(kind("{devices=[2,1]<=[2]}", &array, "{devices=[2,2]<=[4]}"), ErrorKind::InvalidSharding);
    assert_eq!(kind("{devices=[2,1]<=[2]}", &array, "{maximal device=2}"), ErrorKind::InvalidSharding);
    assert_eq!(kind("{replicated}", &other, "{replicated}"), ErrorKind::BufferLengthMismatch);
    let whole = Resharding::new(&array, &Sharding::maximal(2), &array, &Sharding::replicated()).expect("three devices");
    assert_eq!((whole.devices(), whole.elements_over_links()), (3, 32));
}
