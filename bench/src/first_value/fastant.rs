//! A fresh process that takes one first value of fastant, which has calibrated in a constructor by the
//! time `main` begins. Run by the suite `clock`.

#![forbid(unsafe_code)]

mod tell;

fn main() {
    tell::tell(fastant::Instant::now);
}
