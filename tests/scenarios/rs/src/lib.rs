//! What the variants of a scenario scale: its argument is the factor.
use std::time::Duration;

pub fn ms(n: u64) -> Duration {
    let scale: f64 = std::env::args().nth(1).map_or(1.0, |a| a.parse().unwrap());
    Duration::from_secs_f64(n as f64 * scale / 1000.0)
}
