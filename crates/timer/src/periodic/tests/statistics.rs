use super::*;
use std::sync::atomic::AtomicBool;

fn done(number: u64) -> JobRecord {
    let passed = MissedReleases { overrun: true, lost: 2, moved_ns: 3 };
    JobRecord {
        late: true,
        latency_ns: 1,
        response_ns: number,
        cost_ns: 5,
        missed: true,
        cost_overrun: true,
        passed,
    }
}

#[test]
fn copies_are_of_one_moment() {
    let recorder = Arc::new(Recorder::default());
    let over = Arc::new(AtomicBool::new(false));
    let readers = [(); 2].map(|()| {
        let statistics = TaskStatistics::of(Arc::clone(&recorder));
        let over = Arc::clone(&over);
        std::thread::spawn(move || {
            let mut copy = Snapshot::new();
            let mut reads = 0u64;
            while !over.load(Ordering::Acquire) || reads == 0 {
                let before = copy.jobs;
                statistics.read_into(&mut copy);
                reads += 1;
                assert!(copy.jobs >= before);
                let Snapshot { releases, jobs, .. } = copy;
                assert!(releases == jobs || releases == jobs + 1, "{releases} {jobs}");
                assert_eq!((copy.misses, copy.overruns, copy.cost_overruns), (jobs, jobs, jobs));
                assert_eq!((copy.lost, copy.drift_ns, copy.cpu_ns), (2 * jobs, 3 * jobs, 5 * jobs));
                assert_eq!((copy.late, copy.latency.count()), (jobs, jobs));
                let counted = |of: &Distribution| of.buckets().map(|(_, count)| count).sum::<u64>();
                assert_eq!(counted(&copy.latency), jobs);
                assert_eq!((counted(&copy.response), copy.response.count()), (jobs, jobs));
            }
            reads
        })
    });
    for number in 0..100_000 {
        recorder.begin();
        recorder.complete(done(number));
        if number % 64 == 0 {
            std::thread::yield_now();
        }
    }
    over.store(true, Ordering::Release);
    let reads: u64 = readers.map(|reader| reader.join().unwrap()).iter().sum();
    let last = TaskStatistics::of(recorder).read();
    println!("{reads} copies");
    assert_eq!((last.jobs, last.response.max_ns()), (100_000, Some(99_999)));
}

#[test]
fn a_half_written_moment_is_not_read() {
    let recorder = Recorder::default();
    let mut copy = Snapshot::new();
    assert!(recorder.try_read(&mut copy));
    recorder.write(|this| assert!(!this.try_read(&mut copy)));
    assert!(recorder.try_read(&mut copy));
}
