//! The bounded queue among threads. (Not beside it: `remote` is compiled for a model checker too.)

use std::sync::atomic::{AtomicU64, Ordering};

use super::remote::Ring;

#[test]
fn first_in_first_out_and_no_more_than_there_is_room() {
    let ring = Ring::<2>::new(4);
    for turn in 0..3u64 {
        for number in 0..4 {
            assert!(ring.push([turn, number]));
        }
        assert!(!ring.push([9, 9]));
        for number in 0..4 {
            assert_eq!(ring.pop(), Some([turn, number]));
        }
        assert_eq!(ring.pop(), None);
    }
}

#[test]
fn threads_lose_and_invent_nothing() {
    const EACH: u64 = 20_000;
    let ring = Ring::<2>::new(64);
    let sum = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for number in 1..=EACH {
                    while !ring.push([number, !number]) {
                        std::thread::yield_now();
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..EACH {
                    let [number, inverse] = loop {
                        match ring.pop() {
                            Some(words) => break words,
                            None => std::thread::yield_now(),
                        }
                    };
                    assert_eq!(inverse, !number);
                    sum.fetch_add(number, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(sum.into_inner(), EACH * (EACH + 1));
}
