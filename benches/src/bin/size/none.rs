//! A program without a limiter, to compare with.

fn main() {
    println!("{}", std::env::args().count());
}
