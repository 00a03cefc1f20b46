//! Every named tile format, drawn, and moved to and back by `tilewise relayout`.

use serde_json::Value;
use std::{
    fs,
    process::{Command, Output},
};
use tilewise::{ElementType, Shape, TileFormat};
use tilewise_testing::{NaiveRelayout, Random};

fn tilewise(arguments: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_tilewise")).args(arguments).output().expect("it starts");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[test]
fn every_format_is_listed_drawn_and_moved() {
    let listed = tilewise(&["tiles", "--format", "json"]).stdout;
    let rows: Vec<Value> = listed
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .collect();
    assert_eq!(rows.len(), TileFormat::all().count());

    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("UTF-8").to_owned();
    let (rows_file, tiles_file, again_file, picture) = (path("rows"), path("tiles"), path("again"), path("tiles.svg"));
    for row in rows {
        let name = row["name"].as_str().expect("a name");
        let fits = |shape: &&str| Shape::parse_any(&format!("{shape}@{name}")).is_ok();
        let plain = ["s16[70,90]", "s16[20,36,2,3]", "pred[70,90]"].into_iter().find(fits).expect(name);
        let named = format!("{plain}@{name}");

        tilewise(&["draw", &named, "-o", &picture]);
        assert!(fs::read_to_string(&picture).expect("drawn").contains("</svg>"), "{name}");

        let [from, to]: [Shape; 2] = [plain.parse().expect(plain), Shape::parse_any(&named).expect(name)];
        let bytes = |shape: &Shape| tilewise::Tiled::new(shape).expect("small").physical_bytes();
        let mut source = Random::new(1).bytes(bytes(&from));
        if from.element_type() == Some(ElementType::Pred) {
            source.iter_mut().for_each(|byte| *byte &= 1);
        }
        fs::write(&rows_file, &source).expect("written");
        tilewise(&["relayout", &rows_file, &tiles_file, "--from", plain, "--to", &named, "--check"]);
        let mut expected = vec![0; usize::try_from(bytes(&to)).expect("small")];
        NaiveRelayout::new(&from, &to).run(&source, &mut expected);
        assert!(fs::read(&tiles_file).expect("moved") == expected, "{name}");
        tilewise(&["relayout", &tiles_file, &again_file, "--from", &named, "--to", plain]);
        assert!(fs::read(&again_file).expect("moved back") == source, "{name}");
    }
}
