//! Pictures of layouts that TPUs and documents use, kept to show what a change does to them.

use crate::support::tiled;
use tilewise_draw::{Options, Scene, View};

fn snapshot(name: &str, scene: &Scene) {
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!(format!("{name}-svg"), scene.to_svg());
        insta::assert_snapshot!(format!("{name}-terminal"), scene.to_terminal(100));
    });
}

fn both(name: &str, shape: &str) {
    snapshot(name, &Scene::of(&tiled(shape), &Options::new()).expect(shape));
}

#[test]
fn one_tile() {
    both("one-tile", "f32[8,128]{1,0:T(8,128)}");
}

#[test]
fn bf16() {
    both("bf16", "bf16[16,256]{1,0:T(8,128)(2,1)}");
}

#[test]
fn int4() {
    both("int4", "s4[64,256]{1,0:T(8,128)(8,1)E(4)}");
}

#[test]
fn merged() {
    both("merged", "f32[2,7,8,11,10]{4,3,2,1,0:T(*,*,2,*,3)}");
}

#[test]
fn transposed() {
    both("transposed", "f32[2,3,4,5,6]{1,3,0,4,2}");
}

#[test]
fn words() {
    let options = Options::new().with_view(View::Word).with_highlight([13, 130]);
    snapshot("words", &Scene::of(&tiled("s4[64,256]{1,0:T(8,128)(8,1)E(4)}"), &options).expect("inside"));
}

#[test]
fn compared() {
    let options = Options::new().with_view(View::Compare(Box::new(tiled("f32[4,6]{0,1:T(2,2)}"))));
    snapshot("compared", &Scene::of(&tiled("f32[4,6]{1,0}"), &options).expect("one array"));
}

#[test]
fn plan() {
    let (picture, options) = (crate::plan::small(), Options::new());
    insta::with_settings!({ prepend_module_to_snapshot => false, omit_expression => true }, {
        insta::assert_snapshot!("plan-svg", picture.to_svg(&options));
        insta::assert_snapshot!("plan-terminal", picture.to_terminal(&options, 80));
    });
}

#[test]
fn steps() {
    snapshot("steps", &Scene::steps(&tiled("f32[3,5]{1,0:T(2,2)}"), &Options::new()).expect("no index"));
}
