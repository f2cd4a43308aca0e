// The C++ classes over hourglass.h: clocks of std::chrono, what is freed with what, call-backs, errors.
#include <hourglass.hpp>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <type_traits>
#include <unistd.h>

#include "check.h"

using namespace std::chrono_literals;

// [time.clock.req], table of TrivialClock.
template <typename Clock> constexpr bool is_trivial_clock()
{
    using Duration = typename Clock::duration;
    static_assert(std::is_arithmetic_v<typename Clock::rep>);
    static_assert(std::is_same_v<Duration, std::chrono::duration<typename Clock::rep, typename Clock::period>>);
    static_assert(std::is_same_v<typename Clock::time_point::duration, Duration>);
    static_assert(std::is_same_v<decltype(Clock::now()), typename Clock::time_point>);
    static_assert(std::is_same_v<decltype(Clock::is_steady), const bool>);
    static_assert(noexcept(Clock::now()));
    return true;
}
static_assert(is_trivial_clock<hourglass::steady_clock>() && hourglass::steady_clock::is_steady);
static_assert(is_trivial_clock<hourglass::fast_clock>());
static_assert(is_trivial_clock<hourglass::system_clock>() && !hourglass::system_clock::is_steady);
#if __cplusplus >= 202002L
static_assert(std::chrono::is_clock_v<hourglass::steady_clock>);
#endif

static void clocks()
{
    using hourglass::steady_clock;
    auto last = steady_clock::now();
    for (int round = 0; round < 10000; ++round) {
        const auto now = steady_clock::now();
        CHECK(now >= last);
        last = now;
    }
    CHECK(hourglass::fast_clock::now() - last < 10s);
    const auto std_now = std::chrono::system_clock::now();
    const auto apart = hourglass::system_clock::to_std(hourglass::system_clock::now()) - std_now;
    CHECK(apart > -10s && apart < 10s);
    const std::time_t day = 86400;
    CHECK(hourglass::system_clock::to_time_t(hourglass::system_clock::from_time_t(day)) == day);
    const auto bounds = hourglass::now_bounded();
    CHECK(bounds.earliest <= bounds.latest && bounds.error() >= 0ns);
    CHECK(bounds.is_before(bounds.latest + 1ns) && bounds.is_after(bounds.earliest - 1ns));
    CHECK(!bounds.is_before(bounds.latest) && !bounds.is_after(bounds.earliest));
    CHECK(hourglass::fast_now_bounded().latest >= bounds.earliest);
    CHECK(hourglass::recent() <= steady_clock::now());
    // std's own waits take our clock.
    std::this_thread::sleep_until(steady_clock::now() + 1ms);
    CHECK(hourglass::hardware().brand[63] == '\0');
    CHECK(hourglass::version()[0] != '\0');
}

static void scales_and_sources()
{
    using hourglass::steady_clock;
    const auto boot = hourglass::now_on(HG_SCALE_BOOTTIME);
    CHECK(boot.ns + static_cast<std::int64_t>(boot.error_ns) > 0);
    try {
        (void)hourglass::now_on(17);
        CHECK(false);
    } catch (const hourglass::error &error) {
        CHECK(error.kind() == HG_INVALID);
    }
    const hg_ticks first = hourglass::ticks();
    const hg_ticks second = hourglass::ticks();
    try {
        CHECK(hourglass::elapsed(first, second).ns < 60000000000);
        hg_ticks other = second;
        other.epoch += 1000;
        (void)hourglass::elapsed(first, other);
        CHECK(false);
    } catch (const hourglass::error &error) {
        CHECK(error.kind() == HG_MIXED_TICKS);
    }
    // Wall-clock time by hand, steered, and the kernel's again.
    const auto noon = hourglass::system_clock::time_point(12h);
    hourglass::set_wall(steady_clock::now(), noon, 5us);
    CHECK(hourglass::wall().status == HG_WALL_BY_HAND && hourglass::wall().error_ns >= 5000);
    const auto apart = hourglass::system_clock::now() - noon;
    CHECK(apart > -1ms && apart < 60s);
    hourglass::steer_wall(steady_clock::now(), hourglass::system_clock::now(), 5us);
    CHECK(hourglass::wall().status == HG_WALL_STEERED);
    hourglass::release_wall();
    CHECK(hourglass::wall().status <= HG_WALL_SYNCHRONISED);
    CHECK(hourglass::examine().reason[0] != '\0' && hourglass::maintain().next_ns > 0);
    CHECK(hourglass::source_name(hourglass::source()) != std::string("unknown"));
    hourglass::set_source(HG_SOURCE_OS);
    CHECK(hourglass::source() == HG_SOURCE_OS && hourglass::clock_count(HG_EVENT_BY_HAND) >= 1);
    CHECK(!hourglass::clock_events().empty());
}

/// sleep_for(1.5ms) did not compile. No sleep is shorter than what was asked for.
static void lengths_of_any_kind()
{
    using hourglass::detail::rounded_up;
    const auto asleep = [](const auto &length) {
        const auto begun = hourglass::steady_clock::now();
        CHECK(!hourglass::sleep_for(length).interrupted);
        return hourglass::steady_clock::now() - begun;
    };
    CHECK(asleep(1.5ms) >= 1500us && asleep(0.25ms) >= 250us);
    CHECK(asleep(std::chrono::duration<float>(0.001F)) >= 999us);
    CHECK(asleep(std::chrono::duration<int, std::ratio<1, 3000>>(1)) >= 333333ns);
    CHECK(asleep(-5ms) < 1s && asleep(-0.5ms) < 1s);
    CHECK(rounded_up(1.5ms) == 1500000 && rounded_up(1ns) == 1 && rounded_up(0.1ns) == 1);
    CHECK(rounded_up(std::chrono::duration<std::uint64_t, std::pico>(1001)) == 2);
    CHECK(rounded_up(std::chrono::duration<std::int64_t, std::ratio<1, 3>>(1)) == 333333334);
    CHECK(rounded_up(std::chrono::duration<std::int64_t, std::ratio<1, 3>>(3000000000)) == 1000000000000000000);
    CHECK(rounded_up(std::chrono::nanoseconds(9000000000000000001)) == 9000000000000000001);
    CHECK(rounded_up(std::chrono::hours::max()) == UINT64_MAX && rounded_up(0ms) == 0);
    CHECK(rounded_up(std::chrono::duration<double>(1e300)) == UINT64_MAX);
    CHECK(rounded_up(std::chrono::duration<double>(std::numeric_limits<double>::quiet_NaN())) == 0);
    CHECK(rounded_up(std::chrono::duration<double>(-std::numeric_limits<double>::infinity())) == 0);
    hourglass::sleeper sleeper;
    sleeper.take_slack();
    CHECK(sleeper.sleep_for(0.1ms).woke_ns > 0);
}

static void times_of_any_clock()
{
    static hourglass::interrupt stop;
    const auto std_time = std::chrono::steady_clock::now() + 300us;
    CHECK(!hourglass::sleep_until(std_time).interrupted && std::chrono::steady_clock::now() >= std_time);
    // In units of their own, and with halves.
    const auto fine = std::chrono::steady_clock::now() + std::chrono::duration<double, std::micro>(100.5);
    CHECK(!hourglass::sleep_until(fine, stop).interrupted && std::chrono::steady_clock::now() >= fine);
    const auto fast = hourglass::fast_clock::now() + 100us;
    CHECK(!hourglass::sleep_until(fast).interrupted && hourglass::steady_clock::now() >= fast);
    const auto wall = hourglass::system_clock::now() + 200us;
    CHECK(!hourglass::sleep_until(wall).interrupted && hourglass::system_clock::now() >= wall);
    const auto std_wall = std::chrono::system_clock::now() + 200us;
    CHECK(!hourglass::sleep_until(std_wall, stop).interrupted);
    CHECK(std::chrono::system_clock::now() >= std_wall);
    // What has passed returns at once.
    CHECK(!hourglass::sleep_until(std::chrono::steady_clock::time_point()).interrupted);
    CHECK(!hourglass::sleep_until(std::chrono::system_clock::time_point()).interrupted);
    hourglass::sleeper sleeper;
    CHECK(sleeper.until(std::chrono::steady_clock::now() + 50us).woke_ns > 0);
}

/// The bug: a time far in the future overflowed, and was past at once. Whether anybody vouches for UTC here or not.
template <typename Duration> static void never_past(Duration since_1970)
{
    static hourglass::interrupt stop;
    hg_utc_wait wait;
    const std::chrono::time_point<std::chrono::system_clock, Duration> time(since_1970);
    const hg_status end = hourglass::wait_until_past(time, stop, wait, 0);
    CHECK(end == HG_TIMEOUT || end == HG_UNSUPPORTED);
}

static void times_of_utc()
{
    using namespace std::chrono;
    using halves = duration<double>;
    never_past(13569465600s); // 2400
    never_past(hours::max());
    never_past(microseconds::max());
    for (const char *count : {"1e30", "inf", "nan"}) {
        never_past(halves(std::strtod(count, nullptr)));
    }
    CHECK(hourglass::detail::utc_ns(halves(1.5e-9)) == 2 && hourglass::detail::utc_ns(3us) == 3000);
    CHECK(hourglass::detail::utc_ns(seconds::min()) == 0 && hourglass::detail::utc_ns(halves(-1.)) == 0);
}

static void sleeping()
{
    static hourglass::interrupt stop;
    const auto deadline = hourglass::steady_clock::now() + 300us;
    const auto slept = hourglass::sleep_until(deadline);
    CHECK(!slept.interrupted && hourglass::steady_clock::now() >= deadline);
    lengths_of_any_kind();
    times_of_any_clock();
    times_of_utc();
    std::thread other([] {
        hourglass::sleep_for(5ms);
        stop.set();
    });
    CHECK(hourglass::sleep_for(600s, stop).interrupted);
    other.join();
    CHECK(stop.clear() && !stop.is_set());
    hourglass::sleeper precise(hg_sleep_precise()), frugal(hg_sleep_frugal());
    CHECK(precise.sleep_for(100us).woke_ns > 0 && frugal.sleep_for(100us).woke_ns > 0);
    hourglass::sleeper sleeper;
    CHECK(sleeper.sleep_for(100us).woke_ns > 0);
    CHECK(sleeper.margin(1ms) >= 0ns && !sleeper.sleep_ticks(100).interrupted);
    CHECK(!hourglass::sleep_ticks(100).interrupted);
    stop.set();
    CHECK(hourglass::sleep_ticks(UINT64_C(1) << 50, stop).interrupted && stop.clear());
    hourglass::sleeper moved(std::move(sleeper));
    sleeper.interrupt(); // has nothing any more
    CHECK(!moved.sleep_for(1us).interrupted);
    try {
        (void)sleeper.sleep_for(1us);
        CHECK(false);
    } catch (const hourglass::error &error) {
        CHECK(error.kind() == HG_NULL && std::string(error.what()).size() > 10);
    }
}

/// Counts those that live.
struct counted
{
    static inline std::atomic<int> living{ 0 };
    counted() { ++living; }
    counted(const counted &) { ++living; }
    counted(counted &&) noexcept { ++living; }
    ~counted() { --living; }
};

static void timers()
{
    std::atomic<int> calls{ 0 };
    {
        hourglass::timer_service service;
        auto owner = service.owner("test");
        auto deferred = service.timer_class("deferred");
        auto first = owner.timer(hourglass::action::immediate(
            [&calls, alive = counted()](const hg_expiration &expiration) {
                (void)alive;
                CHECK(expiration.now_ns >= expiration.expiry_ns);
                ++calls;
            }));
        auto second = owner.timer(hourglass::action::deferred(
            deferred, [&calls, alive = counted()](const hg_expiration &) { (void)alive, ++calls; }));
        first.arm_every(1ms);
        second.arm_after(1ms);
        while (calls < 4 || second.status().fired < 1) {
            hourglass::sleep_for(1ms);
        }
        CHECK(first.cancel() && !first.cancel());
        hourglass::port port(4);
        auto third = owner.timer(hourglass::action::send(port, 5));
        third.arm_at(hourglass::steady_clock::now() + 1ms);
        CHECK(port.receive().tag == 5 && !port.try_receive() && !port.receive(1us));
        CHECK(port.fd() >= 0 && port.lost() == 0);
        auto nap = owner.timer();
        CHECK(nap.sleep_for(1ms) && nap.sleep_until(0));
        // Waits for a timer that wakes, and for a thread.
        hourglass::thread_handle self;
        auto alarm = owner.timer(hourglass::action::wake(self));
        alarm.arm_after(2ms);
        while (alarm.status().fired < 1) {
            hourglass::park_for(60s);
        }
        std::thread([&self] { self.unpark(); }).join();
        hourglass::park();
        const auto begun = hourglass::steady_clock::now();
        hourglass::park_for(2ms);
        CHECK(hourglass::steady_clock::now() >= begun + 2ms);
        CHECK(hourglass::refresh_priority() <= 100);
        CHECK(service.statistics().fired >= 4 && counted::living == 2);
        CHECK(deferred.statistics().ran >= 1);
        owner.terminate();
        try {
            first.arm_after(1ms);
            CHECK(false);
        } catch (const hourglass::error &error) {
            CHECK(error.kind() == HG_TERMINATED);
        }
        // One that is never given away.
        auto unused = hourglass::action::immediate([alive = counted()](const hg_expiration &) { (void)alive; });
        CHECK(counted::living >= 1);
    }
    CHECK(counted::living == 0);
}

/// A thread that never saw the last call destroys what was captured: nothing for a thread sanitizer to tell.
static void released_by_another_thread()
{
    std::atomic<int> calls{ 0 };
    hourglass::timer_service service;
    auto owner = service.owner("test");
    auto deferred = service.timer_class("deferred");
    auto count = [&calls](const hg_expiration &) { ++calls; };
    auto first = owner.timer(hourglass::action::immediate(count));
    auto second = owner.timer(hourglass::action::deferred(deferred, count));
    first.arm_every(500us);
    second.arm_every(500us);
    hourglass::sleep_for(10ms);
}

/// What a periodic thread does first: it may go on, say no, or throw.
static void on_start()
{
    hg_periodic_settings settings{};
    settings.period_ns = 500000;
    std::atomic<int> first{ 0 }, jobs{ 0 };
    std::thread::id started, ran;
    {
        const auto hook = [&, alive = counted()] {
            (void)alive;
            CHECK(jobs == 0);
            started = std::this_thread::get_id();
            ++first;
        };
        const auto body = [&, alive = counted()](hourglass::job &job) {
            (void)alive;
            CHECK(first == 1);
            job.sleep_until(std::chrono::steady_clock::now() + 1us);
            job.shift(-1us);
            ran = std::this_thread::get_id();
            return ++jobs < 3;
        };
        hourglass::periodic_thread thread(settings, hook, body);
        CHECK(first == 1 && thread.join() == HG_PERIODIC_BY_ITSELF && started == ran && jobs == 3);
        try {
            hourglass::periodic_thread none(settings, [] { return false; }, body);
            CHECK(false);
        } catch (const hourglass::error &error) {
            CHECK(error.kind() == HG_START_FAILED);
        }
        try {
            hourglass::periodic_thread none(settings, [] { throw std::string("no device"); }, body);
            CHECK(false);
        } catch (const std::string &thrown) {
            CHECK(thrown == "no device" && jobs == 3);
        }
    }
    CHECK(counted::living == 0);
}

static void periodic()
{
    on_start();
    std::atomic<int> jobs{ 0 };
    {
        hourglass::periodic_thread thread(1ms, [&jobs, alive = counted()](hourglass::job &job) {
            (void)alive;
            CHECK(job.release() <= hourglass::steady_clock::now() && job.deadline() > job.release());
            CHECK(job.number() == job.facts().number && job.late() == job.facts().late);
            CHECK(job.lost_before() == job.facts().lost_before);
            CHECK(job.check().until_deadline_ns <= 1000000 && !job.is_stopping());
            return ++jobs < 5;
        });
        CHECK(thread.join() == HG_PERIODIC_BY_ITSELF && thread.statistics().jobs == 5);
        hourglass::periodic_thread endless(500us, [alive = counted()](hourglass::job &) { (void)alive; });
        CHECK(endless.id() != 0);
        endless.stop();
        CHECK(endless.join() == HG_PERIODIC_STOPPED);
        try {
            hourglass::periodic_thread none(0ns, [alive = counted()](hourglass::job &) { (void)alive; });
            CHECK(false);
        } catch (const hourglass::error &error) {
            CHECK(error.kind() == HG_INVALID);
        }
    }
    CHECK(counted::living == 0);
}

static void faults()
{
    std::thread([] {
        hg_watch_settings settings{};
        settings.strength = HG_STRENGTH_SUSPEND;
        try {
            hourglass::watch watch(settings);
            std::atomic<int> told{ 0 };
            hourglass::deadline_handler handler(watch.thread(), [&told](const hg_fault &fault) {
                ++told;
                return fault.count < 2 ? hourglass::resume_by(1ms) : hourglass::end_thread();
            });
            CHECK(watch.begin_job(1ms));
            while (hourglass::safepoint()) {
                let_signals_in();
            }
            CHECK(told == 2 && handler.handled().faults == 2 && watch.state().faults == 2);
            CHECK(!watch.arm(hourglass::steady_clock::now() + 1s) && !watch.end_job());
            CHECK(watch.thread().faults() == 2 && watch.thread().untold() == 0);
        } catch (const hourglass::error &error) {
            CHECK(error.kind() == HG_EXHAUSTED);
            std::printf("skipped: %s\n", error.what());
        }
    }).join();
    hourglass::region outer, inner;
}

static void budgets()
{
    std::thread([] {
        try {
            hourglass::watch watch;
            std::atomic<bool> over{ false };
            hourglass::deadline_handler handler(watch.thread(), [&over](const hg_fault &fault) {
                over = fault.over_budget;
                return hourglass::resume();
            });
            hg_watch_settings settings{};
            settings.strength = HG_STRENGTH_NOTIFY;
            watch.set(settings);
            CHECK(watch.arm(600s) && watch.disarm());
            CHECK(watch.begin_job(hourglass::steady_clock::now() + 600s) && watch.end_job());
            CHECK(watch.arm_budget(1ms));
            while (!over) {
                let_signals_in();
            }
            CHECK(watch.disarm_budget() && watch.state().faults >= 1);
            try {
                (void)watch.arm_budget(0ns);
                CHECK(false);
            } catch (const hourglass::error &error) {
                CHECK(error.kind() == HG_INVALID);
            }
        } catch (const hourglass::error &error) {
            CHECK(error.kind() == HG_EXHAUSTED);
            std::printf("skipped: %s\n", error.what());
        }
    }).join();
}

static void recorder()
{
    hourglass::own_loop loop(10ms);
    for (int period = 0; period < 3; ++period) {
        loop.begin_period();
        loop.check();
        loop.end_period();
        hourglass::sleep_for(10ms);
    }
    CHECK(loop.deadlines().completed == 3);
    const auto recording = loop.finish();
    CHECK(recording.summary().deadlines.completed == 3);
    CHECK(recording.intervals().size() == recording.summary().intervals);
    // Kept in a folder, which a second loop does not write over.
    char place[] = "/tmp/hourglass-wrappers-XXXXXX";
    CHECK(mkdtemp(place) != nullptr);
    const std::string folder = std::string(place) + "/run";
    hourglass::own_loop kept(10ms, folder);
    kept.begin_period();
    kept.end_period();
    CHECK(kept.finish().summary().deadlines.completed == 1);
    CHECK(std::filesystem::exists(folder + "/manifest.json"));
    try {
        const hourglass::own_loop again(10ms, folder);
        CHECK(false);
    } catch (const hourglass::error &error) {
        CHECK(error.kind() == HG_INVALID);
    }
    std::filesystem::remove_all(place);
}

static void pages()
{
    const int fd = hourglass::share_clock();
    const hourglass::shared_clock shared(fd);
    close(fd);
    const auto apart = shared.now() - hourglass::steady_clock::now();
    CHECK(shared.fast_now() > shared.now() - 10s && shared.now_bounded().latest > shared.now() - 10s);
    CHECK(apart < 1s && apart > -10s && shared.writer().pid == static_cast<std::uint64_t>(getpid()));
    try {
        const hourglass::shared_clock none(-1);
        CHECK(false);
    } catch (const hourglass::error &error) {
        CHECK(error.kind() == HG_INVALID);
    }
}

static void reserving()
{
    hourglass::progress progress;
    progress.begin();
    for (std::uint64_t row = 1; row <= 10; ++row) {
        progress.report(row, 10);
    }
    CHECK(!progress.next_release());
    const auto cannot = hourglass::reserve_check(10ms, 1ms);
    CHECK(cannot && cannot->kind() == HG_INVALID && cannot->what()[0] != '\0');
    const auto can = hourglass::reserve_check(1ms, 10ms);
    CHECK(!can || can->kind() == HG_PERMISSION || can->kind() == HG_BUSY || can->kind() == HG_INVALID
          || can->kind() == HG_UNSUPPORTED);
    try {
        hourglass::reservation reserved(1ms, 10ms);
        hourglass::sleep_for(1ms);
        CHECK(reserved.supply().missed <= reserved.supply().periods);
    } catch (const hourglass::error &error) {
        std::printf("skipped: %s\n", error.what());
    }
    try {
        hourglass::reservation none(10ms, 1ms);
        CHECK(false);
    } catch (const hourglass::error &error) {
        CHECK(error.kind() == HG_INVALID);
    }
}

void clock_devices()
{
    hourglass::clock_device clock;
    const auto actual = clock.resolution(1ms, 50us);
    CHECK(actual >= 950us && actual <= 1050us);
    const auto due = hourglass::steady_clock::now() + 3ms;
    const auto timer = clock.timer(5);
    clock.arm(timer, due);
    for (;;) {
        if (clock.wait()) {
            if (const auto expired = clock.expired()) {
                CHECK(expired->tag == 5 && expired->tick_ns >= hourglass::steady_clock::ns(due));
                break;
            }
        }
    }
    CHECK(clock.now() >= due && !clock.expired());
    clock.cancel(timer);
    clock.remove(timer);
    clock.kick();
    CHECK(hourglass::clock_device::name(0) != nullptr && hourglass::clock_device::name(99) == nullptr);
}

void spans()
{
    hourglass::open_witness();
    hourglass::span slept;
    std::uint64_t waits = 0;
    {
        const hourglass::witnessed scope([&](const hg_loss &loss) { waits += loss.voluntary; });
        std::this_thread::sleep_for(2ms);
    }
    CHECK(waits >= 1);
    std::thread([&] {
        bool told = false;
        try {
            (void)slept.end();
        } catch (const hourglass::error &wrong) {
            told = wrong.kind() == HG_WRONG_THREAD;
        }
        CHECK(told);
    }).join();
    // A host that takes the processor widens intervals downwards: the best of forty.
    std::uint64_t least = 0;
    for (int tries = 0; tries < 40 && least < 6000000; tries++) {
        hourglass::span follows;
        std::this_thread::sleep_for(12ms);
        follows.detach();
        std::thread([&] {
            follows.attach();
            const auto loss = follows.busy().end();
            CHECK(loss && loss->voluntary >= 1 && loss->off_cpu_most_ns >= 12000000);
            least = loss->off_cpu_least_ns;
        }).join();
    }
    CHECK(least >= 6000000);
}

/// What of google-benchmark's state a span of a benchmark touches.
struct benchmark_state {
    std::map<std::string, double> counters;
};

void benchmark_spans()
{
    benchmark_state slept;
    {
        const hourglass::benchmark_span span(slept);
        std::this_thread::sleep_for(2ms);
    }
    CHECK(slept.counters.size() == 4 && slept.counters["disturbed"] == 1.0);
    CHECK(slept.counters["switches"] >= 1.0 && slept.counters["off_cpu_ns"] >= 2e6);
    CHECK(slept.counters["off_cpu_least_ns"] <= slept.counters["off_cpu_ns"]);
    // The best of many: a machine may interrupt any of them.
    double undisturbed = 0;
    for (int turn = 0; turn < 1000; turn++) {
        benchmark_state quiet;
        {
            const hourglass::benchmark_span span(quiet);
        }
        undisturbed += 1.0 - quiet.counters["disturbed"];
        CHECK(quiet.counters["disturbed"] == 1.0 || quiet.counters["off_cpu_ns"] == 0.0);
    }
    CHECK(undisturbed > 0);
}

int main()
{
    hourglass::check_abi();
    spans();
    benchmark_spans();
    clocks();
    sleeping();
    timers();
    clock_devices();
    released_by_another_thread();
    periodic();
    faults();
    budgets();
    recorder();
    pages();
    reserving();
    scales_and_sources();
    return 0;
}
