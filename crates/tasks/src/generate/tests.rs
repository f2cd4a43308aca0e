//! What is drawn has the sum, the bounds and the spread that its source promises. Random tests are
//! one-sided: a test that is right fails less than once in ten thousand seeds, and the seed is fixed.

use hourglass_time::Span;
use proptest::prelude::*;

use super::*;

const SEED: u64 = 20_2020;

fn recipe(method: UtilisationMethod, tasks: usize) -> Recipe {
    let periods = Periods::List(vec![Span::from_millis(10), Span::from_millis(40)]);
    Recipe { seed: SEED, tasks, processors: 8, method, periods, ..Recipe::default() }
}

fn millionths(text: &str) -> Millionths {
    text.parse().unwrap()
}

/// Shares in millionths of a processor, as drawn.
fn shares(recipe: &Recipe, utilisation: &str, sets: u64) -> Vec<Vec<f64>> {
    let source = recipe.at(millionths(utilisation)).unwrap();
    let share = |task: &DrawnTask| task.cost as f64 / task.period as f64;
    (0..sets).map(|set| source.draw(set).unwrap().iter().map(share).collect()).collect()
}

/// The greatest distance of a sample from a distribution (Kolmogorov and Smirnov), times the root of
/// its size: over 2.2 once in ten thousand.
fn distance(mut sample: Vec<f64>, distribution: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let apart = |(at, value): (usize, &f64)| {
        let wanted = distribution(*value);
        (wanted - at as f64 / n).abs().max((wanted - (at as f64 + 1.0) / n).abs())
    };
    sample.iter().enumerate().map(apart).fold(0.0, f64::max) * n.sqrt()
}

/// With periods of 10 and 40 ms, sums of cost / period are whole quarters of a nanosecond in 10 ms.
#[test]
fn the_exact_sum_is_the_utilisation_less_rounding() {
    for (method, utilisation) in
        UtilisationMethod::ALL.iter().flat_map(|m| ["0.000001", "0.3", "0.95", "1"].map(|u| (m, u)))
    {
        for tasks in [1, 2, 7, 10] {
            let source = recipe(*method, tasks).at(millionths(utilisation)).unwrap();
            for set in 0..50 {
                let drawn = source.draw(set).unwrap();
                let sum: u64 = drawn.iter().map(|t| t.cost * (40_000_000 / t.period)).sum();
                let wanted = 40 * millionths(utilisation).count();
                let slack = 4 * (tasks as u64 + 2);
                assert!(
                    sum <= wanted && sum + slack >= wanted,
                    "{method} {utilisation}: {drawn:?}"
                );
                assert!(drawn.iter().all(|t| t.cost >= 1 && t.cost <= t.period), "{drawn:?}");
            }
        }
    }
}

/// Bini and Buttazzo 2005: of n tasks with the sum U, one has at most x with probability
/// 1 - (1 - x / U)^(n - 1), whichever of them it is.
#[test]
fn single_utilisations_are_spread_as_in_a_simplex() {
    for method in UtilisationMethod::ALL {
        let drawn = shares(&recipe(method, 5), "0.8", 4_000);
        for task in 0..5 {
            let sample = drawn.iter().map(|set| set[task]).collect();
            let found = distance(sample, |x| 1.0 - (1.0 - x / 0.8).max(0.0).powi(4));
            assert!(found < 2.2, "{method}, task {task}: {found}, seed {SEED}");
        }
    }
}

/// Davis and Burns 2009: what is left after discarding is uniform; Stafford 2006 needs no
/// discarding. So both have the same distribution where the sum is over 1, and so has
/// Dirichlet-rescale with even bounds of three tasks: there no two can be over theirs.
#[test]
fn above_one_processor_all_agree_with_discarding() {
    for (tasks, utilisation, methods) in [
        (3, "1.2", &UtilisationMethod::ALL[2..]),
        (6, "2.5", &UtilisationMethod::ALL[2..3]),
        (6, "4.5", &UtilisationMethod::ALL[2..3]),
    ] {
        let mut wanted: Vec<f64> =
            shares(&recipe(UtilisationMethod::UUniFastDiscard, tasks), utilisation, 3_000)
                .into_iter()
                .flatten()
                .collect();
        wanted.sort_by(f64::total_cmp);
        for method in methods {
            let drawn = shares(&recipe(*method, tasks), utilisation, 3_000);
            assert!(drawn.iter().flatten().all(|share| *share <= 1.0), "{method}");
            let sample: Vec<f64> = drawn.iter().map(|set| set[0]).collect();
            let below = |x: f64| wanted.partition_point(|v| *v <= x) as f64 / wanted.len() as f64;
            // Both sides are samples.
            let found = distance(sample, below);
            assert!(found < 2.9, "{method}, {tasks} tasks, {utilisation}: {found}, seed {SEED}");
        }
    }
}

/// Griffin, Bate and Davis 2020: each task stays within its bounds, whose sum may be all there is.
#[test]
fn bounds_of_single_tasks_hold() {
    let bounds: Vec<Bound> = ["0.1..0.2", "..0.05", "0.3..", "0.25..0.25", "0.5..0.9"]
        .map(|b| b.parse().unwrap())
        .to_vec();
    for (method, utilisation) in [
        (UtilisationMethod::DirichletRescale, "1.15"),
        (UtilisationMethod::DirichletRescale, "1.3"),
        (UtilisationMethod::DirichletRescale, "2.1"),
        (UtilisationMethod::DirichletRescale, "2.4"),
        (UtilisationMethod::UUniFastDiscard, "1.6"),
    ] {
        let recipe = Recipe { bounds: bounds.clone(), ..recipe(method, 5) };
        if method == UtilisationMethod::UUniFastDiscard {
            // A bound of one value leaves nothing to discard to.
            let source = recipe.at(millionths(utilisation)).unwrap();
            assert!(matches!(source.draw(0), Err(GenerateError::Discarded { .. })));
            continue;
        }
        for set in shares(&recipe, utilisation, 200) {
            for (share, bound) in set.iter().zip(&bounds) {
                // Rounding takes a few nanoseconds of 10 ms.
                let least = bound.least.as_f64() - 1e-6;
                assert!((least..=bound.most.as_f64() + 1e-12).contains(share), "{set:?}");
            }
        }
    }
}

/// Emberson, Stafford and Davis 2010: as many periods in each order of magnitude.
#[test]
fn periods_are_spread_as_their_name_says() {
    let drawn = |periods: &str| -> Vec<f64> {
        let recipe =
            Recipe { periods: periods.parse().unwrap(), ..recipe(UtilisationMethod::UUniFast, 1) };
        let source = recipe.at(millionths("0.5")).unwrap();
        (0..4_000).map(|set| source.draw(set).unwrap()[0].period as f64).collect()
    };
    let found = distance(drawn("log-uniform:10ms,1s"), |t| (t / 1e7).ln() / 100f64.ln());
    assert!(found < 2.2, "{found}");
    let found = distance(drawn("uniform:10ms,1s"), |t| (t - 1e7) / 9.9e8);
    assert!(found < 2.2, "{found}");
    let harmonic = drawn("harmonic:10ms,100ms");
    for period in [10e6, 20e6, 40e6, 80e6] {
        let count = harmonic.iter().filter(|t| **t == period).count();
        assert!((880..1_120).contains(&count), "{count} times {period}");
    }
    assert!(drawn("list:5ms,7ms").iter().all(|t| [5e6, 7e6].contains(t)));
}

#[test]
fn times_are_multiples_of_their_granularity_and_shares_hold() {
    let recipe = Recipe {
        periods: "uniform:10500us,99500us".parse().unwrap(),
        granularity: Span::from_millis(1),
        cost_granularity: Span::from_micros(10),
        deadlines: "share:0.5,0.9".parse().unwrap(),
        jitter: Recipe::jitter_of("0.1,0.2").unwrap(),
        ..recipe(UtilisationMethod::UUniFast, 8)
    };
    let source = recipe.at(millionths("0.7")).unwrap();
    for task in (0..100).flat_map(|set| source.draw(set).unwrap()) {
        assert_eq!((task.period % 1_000_000, task.cost % 10_000), (0, 0));
        assert!((11_000_000..=99_000_000).contains(&task.period));
        assert!(task.deadline % 1_000_000 == 0 && task.deadline <= task.period * 9 / 10);
        assert!(task.deadline + 1_000_000 > task.period / 2);
        assert!((task.period / 10..=task.period / 5).contains(&task.jitter));
    }
    let slack = Recipe { deadlines: "slack:0,1".parse().unwrap(), ..recipe };
    let source = slack.at(millionths("0.7")).unwrap();
    for task in (0..100).flat_map(|set| source.draw(set).unwrap()) {
        assert!(task.cost <= task.deadline && task.deadline <= task.period);
    }
}

/// A set depends on its number, not on what was drawn before; another purpose leaves the rest alone.
#[test]
fn a_set_is_known_by_its_number() {
    let plain = recipe(UtilisationMethod::RandFixedSum, 6);
    let source = plain.at(millionths("0.9")).unwrap();
    let late = source.draw(7).unwrap();
    let forwards: Vec<_> = (0..10).map(|set| source.draw(set).unwrap()).collect();
    assert_eq!(forwards[7], late);
    assert_ne!(forwards[7], forwards[8]);
    let other = Recipe { deadlines: "share:0.5,1".parse().unwrap(), ..plain.clone() };
    let other = other.at(millionths("0.9")).unwrap().draw(7).unwrap();
    let costs = |set: &[DrawnTask]| set.iter().map(|t| (t.cost, t.period)).collect::<Vec<_>>();
    assert_eq!(costs(&other), costs(&late));
    let reseeded = Recipe { seed: SEED + 1, ..plain };
    assert_ne!(reseeded.at(millionths("0.9")).unwrap().draw(7).unwrap(), late);
}

#[test]
fn what_cannot_be_drawn_is_refused() {
    let refused =
        |recipe: Recipe, utilisation: &str| recipe.at(millionths(utilisation)).unwrap_err();
    let plain = || recipe(UtilisationMethod::RandFixedSum, 3);
    let bounds = |text: &str| Recipe {
        bounds: text.split(',').map(|b| b.parse().unwrap()).collect(),
        ..recipe(UtilisationMethod::DirichletRescale, 3)
    };
    for (error, part) in [
        (refused(plain(), "0"), "a utilisation of 0"),
        (refused(plain(), "8.000001"), "over the number of processors, 8"),
        (refused(plain(), "3.5"), "over 3, the most that 3 tasks"),
        (refused(recipe(UtilisationMethod::UUniFast, 3), "1.1"), "uunifast-discard"),
        (refused(Recipe { tasks: 0, ..plain() }, "0.5"), "0 tasks"),
        (refused(bounds("0.1..0.2"), "0.7"), "over 0.6"),
        (refused(bounds("0.3.."), "0.7"), "under 0.9"),
        (refused(bounds("0.1..0.2,0.1.."), "0.7"), "2 bounds for 3 tasks"),
        (refused(bounds("0.5..0.4"), "0.7"), "0.5..0.4"),
        (
            refused(
                Recipe { method: UtilisationMethod::RandFixedSum, ..bounds("0..1,0..1,0..0.5") },
                "0.7",
            ),
            "drs",
        ),
        (refused(Recipe { granularity: Span::ZERO, ..plain() }, "0.5"), "granularity"),
        (
            refused(Recipe { cost_granularity: Span::from_millis(9), ..plain() }, "0.5"),
            "3 tasks of at least 9ms",
        ),
    ] {
        assert!(error.to_string().contains(part), "{error}");
    }
}

proptest! {
    /// For every recipe, drawing ends with valid tasks, or an error.
    #[test]
    fn any_recipe_ends(
        seed in any::<u64>(), tasks in 0..40usize, processors in 0..9u32, total in 0..9_000_000u64,
        method in 0..4usize, least in 0..400_000u64, most in 0..1_100_000u64, granule in 1..50_000_000i64
    ) {
        let recipe = Recipe {
            seed, tasks, processors, method: UtilisationMethod::ALL[method],
            bounds: vec![Bound { least: Millionths::new(least), most: Millionths::new(most) }],
            granularity: Span::from_nanos(granule),
            cost_granularity: Span::from_nanos(granule / 100_000 + 1),
            ..Recipe::default()
        };
        if let Ok(source) = recipe.at(Millionths::new(total)) && let Ok(drawn) = source.draw(seed) {
            prop_assert_eq!(drawn.len(), tasks);
            prop_assert!(drawn.iter().all(|t| t.cost >= 1 && t.cost <= t.period && t.deadline >= 1));
        }
    }

    /// Scaling to what a set has already changes no more than a nanosecond, and to less never gives more.
    #[test]
    fn scaling_keeps_proportions(costs in proptest::collection::vec(1..1_000_000u64, 1..8), part in 1..100u64) {
        let tasks: Vec<(u64, u64)> = costs.iter().map(|cost| (*cost, 10_000_000)).collect();
        let sum: u64 = costs.iter().sum();
        // Rounded up to a millionth of 10 ms.
        let now = Millionths::new(sum.div_ceil(10));
        let same = scaled_costs(&tasks, now).unwrap();
        for (new, old) in same.iter().zip(&costs) {
            prop_assert!(new + 1 >= *old && *new <= old + 11, "{:?} {:?}", same, costs);
        }
        let target = Millionths::new((now.count() * part / 100).max(1));
        if let Some(less) = scaled_costs(&tasks, target) {
            prop_assert!(less.iter().sum::<u64>() <= target.count() * 10);
        }
    }
}
