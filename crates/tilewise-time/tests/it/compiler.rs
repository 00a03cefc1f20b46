//! Cycles of a run against `testing/programs/cycles.csv`.

use tilewise_hlo::{dataflow::Dataflow, read};
use tilewise_testing::programs;
use tilewise_time::{Kind, NoTime, Time};

#[test]
fn cycles_are_those_of_an_independent_walk() {
    let mut priced = 0;
    for row in programs::table("cycles.csv") {
        let [program, tpu, cycles, matmul, copy, operations, loops] = &row[..] else { panic!("{row:?}") };
        let flow = Dataflow::new(&read(programs::path(program)).unwrap());
        let time = Time::of(&flow, tpu.parse().unwrap());
        if operations == "0" {
            let reason = time.expect_err(program);
            assert!(matches!(reason, NoTime::BeforeCodeGeneration | NoTime::NothingPriced), "{program}: {reason}");
            continue;
        }
        let time = time.unwrap_or_else(|none| panic!("{program}: {none}"));
        let found = [time.cycles(), time.cycles_of(Kind::Matmul), time.cycles_of(Kind::Copy)];
        assert_eq!(found.map(|cycles| cycles.to_string()), [cycles, matmul, copy].map(String::clone), "{program}");
        let unknown = time.loops.iter().filter(|row| row.trips.is_none()).count();
        assert_eq!(unknown.to_string(), *loops, "{program}");
        assert!(unknown == 0 || time.is_at_least, "{program}");
        assert!(time.total.floor <= time.total.estimate, "{program}: {:?}", time.total);
        let rows: f64 = time.rows.iter().map(|row| row.total().estimate).sum();
        assert!((rows / time.total.estimate - 1.0).abs() < 1e-9, "{program}: rows are {rows} s of {:?}", time.total);
        priced += 1;
    }
    assert!(priced >= 20, "{priced} priced programs");
}
