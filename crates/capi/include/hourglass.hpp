// hourglass.hpp: hourglass.h for C++17, header-only. Below that it has the thesis' classes, which are C++11.
//
// Everything throws hourglass::error where hourglass.h answers a failure, unless it is noexcept. What a
// class owns is freed with it. A call-back is moved to where it stays, and destroyed when nothing calls
// it any more; one that throws ends the program (std::terminate). For threads, signals and times see the
// function of hourglass.h that a member is named after.
#ifndef HOURGLASS_HPP
#define HOURGLASS_HPP

#if __cplusplus < 201703L

// Programs for the thesis' library are of the time of -std=c++0x: its classes are here for these, too, and
// nothing else is, which says so where it is used.
#include "hourglass_thesis.hpp"

namespace hourglass
{
namespace detail
{
template <typename... Used> struct is_missing
{
    static_assert(sizeof...(Used) == 0,
                  "hourglass.hpp is C++17: compile with -std=c++17 or later, or use hourglass.h");
};
} // namespace detail
typedef detail::is_missing<void> steady_clock, fast_clock, system_clock, bounds, error, shared_clock, interrupt,
    sleeper, region, watched, watch, deadline_handler, port, timer_class, thread_handle, action, timer, timer_owner,
    timer_service, job, periodic_thread, recording, own_loop, reservation, progress;
template <typename... Used> detail::is_missing<void, Used...> sleep_for(Used &&...);
template <typename... Used> detail::is_missing<void, Used...> sleep_until(Used &&...);
template <typename... Used> detail::is_missing<void, Used...> sleep_ticks(Used &&...);
template <typename... Used> detail::is_missing<void, Used...> now_bounded(Used &&...);
} // namespace hourglass

#else // C++17

#include <chrono>
#include <cstdint>
#include <cmath>
#include <ctime>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <ratio>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "hourglass.h"

#ifdef HG_NO_FENCES_
extern "C" void __tsan_acquire(void *);
extern "C" void __tsan_release(void *);
#endif

namespace hourglass
{

/// What a call of hourglass.h answered, if it was a failure.
class error : public std::runtime_error
{
public:
    error(hg_status kind, int os_errno, const std::string &text)
        : std::runtime_error(text), kind_(kind), errno_(os_errno)
    {
    }
    /// HG_NULL, HG_STALE, ...
    hg_status kind() const noexcept { return kind_; }
    /// As errno(3), or 0.
    int os_errno() const noexcept { return errno_; }

private:
    hg_status kind_;
    int errno_;
};

namespace detail
{

[[noreturn]] inline void fail(hg_status status, const hg_error &found)
{
    const char *text = found.text[0] != '\0' ? found.text : hg_status_name(status);
    throw error(status, found.os_errno, text);
}

/// Throws for whatever is not HG_OK.
template <typename Call> void check(Call &&call)
{
    hg_error found;
    const hg_status status = call(&found);
    if (status != HG_OK) {
        fail(status, found);
    }
}

/// Throws for whatever is neither HG_OK nor `expected`; whether it was HG_OK.
template <typename Call> bool check_or(hg_status expected, Call &&call)
{
    hg_error found;
    const hg_status status = call(&found);
    if (status != HG_OK && status != expected) {
        fail(status, found);
    }
    return status == HG_OK;
}

/// For thread sanitizers, which do not see how the library hands things from thread to thread.
inline void handed_over(void *thing) noexcept
{
#ifdef HG_NO_FENCES_
    __tsan_release(thing);
#else
    (void)thing;
#endif
}
inline void taken_over(void *thing) noexcept
{
#ifdef HG_NO_FENCES_
    __tsan_acquire(thing);
#else
    (void)thing;
#endif
}

/// A call-back on the heap, with what releases it.
template <typename F> struct callback
{
    template <typename G> static void *make(G &&function)
    {
        auto *made = new F(std::forward<G>(function));
        handed_over(made);
        return made;
    }
    static F &of(void *user) noexcept
    {
        taken_over(user);
        return *static_cast<F *>(user);
    }
    static void release(void *user) noexcept
    {
        taken_over(user);
        delete static_cast<F *>(user);
    }
};

/// A handle that is freed with its owner.
template <typename Handle, hg_status (*Free)(Handle, hg_error *)> class owned
{
public:
    owned() noexcept : handle_{ 0 } {}
    explicit owned(Handle handle) noexcept : handle_(handle) {}
    owned(owned &&other) noexcept : handle_(std::exchange(other.handle_, Handle{ 0 })) {}
    owned &operator=(owned &&other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~owned()
    {
        if (handle_.handle != 0) {
            (void)Free(handle_, nullptr);
        }
    }
    owned(const owned &) = delete;
    owned &operator=(const owned &) = delete;
    Handle get() const noexcept { return handle_; }

protected:
    Handle handle_;
};

} // namespace detail

/// The library's version, as "0.1.0".
inline const char *version() noexcept { return hg_version(); }

/// Throws if the library at hand does not fit this header.
inline void check_abi()
{
    detail::check([](hg_error *e) { return hg_check_abi(e); });
}

// ---- Clocks, each a TrivialClock of std::chrono ------------------------------------------------

/// hg_now_ordered: std::chrono::steady_clock's promises, on CLOCK_MONOTONIC as that is on Linux.
struct steady_clock
{
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<steady_clock>;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return at(hg_now_ordered()); }
    /// A time of hourglass.h.
    static constexpr time_point at(std::uint64_t ns) noexcept
    {
        return time_point(duration(static_cast<rep>(ns)));
    }
    /// A time for hourglass.h; 0 for those before the clock's beginning.
    static constexpr std::uint64_t ns(time_point time) noexcept
    {
        const rep count = time.time_since_epoch().count();
        return count > 0 ? static_cast<std::uint64_t>(count) : 0;
    }
};

/// hg_now: half the cost, unordered by some tens of nanoseconds. Its times are steady_clock's.
struct fast_clock
{
    using duration = steady_clock::duration;
    using rep = steady_clock::rep;
    using period = steady_clock::period;
    using time_point = steady_clock::time_point;
    static constexpr bool is_steady = true;
    static time_point now() noexcept { return steady_clock::at(hg_now()); }
};

/// hg_wall: time since 1970, UTC.
struct system_clock
{
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<system_clock>;
    static constexpr bool is_steady = false;
    static time_point now() noexcept { return time_point(duration(hg_wall().ns)); }
    static std::time_t to_time_t(time_point time) noexcept
    {
        using std::chrono::seconds;
        return static_cast<std::time_t>(
            std::chrono::duration_cast<seconds>(time.time_since_epoch()).count());
    }
    static time_point from_time_t(std::time_t time) noexcept
    {
        return time_point(std::chrono::seconds(time));
    }
    /// The same time of std's clock.
    static std::chrono::system_clock::time_point to_std(time_point time) noexcept
    {
        using std_clock = std::chrono::system_clock;
        return std_clock::time_point(
            std::chrono::duration_cast<std_clock::duration>(time.time_since_epoch()));
    }
};

/// A time between two others.
struct bounds
{
    steady_clock::time_point earliest;
    steady_clock::time_point latest;
    std::uint32_t status; ///< HG_CLOCK_*
    /// Half the distance.
    std::chrono::nanoseconds error() const noexcept
    {
        return (latest - earliest + std::chrono::nanoseconds(1)) / 2;
    }
    /// Whether `time` has passed for certain; hg_is_after.
    bool is_after(steady_clock::time_point time) const noexcept { return earliest > time; }
    /// Whether it is still to come for certain; hg_is_before.
    bool is_before(steady_clock::time_point time) const noexcept { return latest < time; }
};

/// hg_now_bounded_ordered.
inline bounds now_bounded() noexcept
{
    const hg_bounds found = hg_now_bounded_ordered();
    return { steady_clock::at(found.earliest_ns), steady_clock::at(found.latest_ns), found.status };
}

/// The same unordered; hg_now_bounded.
inline bounds fast_now_bounded() noexcept
{
    const hg_bounds found = hg_now_bounded();
    return { steady_clock::at(found.earliest_ns), steady_clock::at(found.latest_ns), found.status };
}

/// The last time that anybody published; hg_recent.
inline steady_clock::time_point recent() noexcept { return steady_clock::at(hg_recent()); }

/// A reading of the counter that serves; hg_clock_ticks.
inline hg_ticks ticks() noexcept { return hg_clock_ticks(); }

/// The time between two readings, and the bound on its error; hg_clock_elapsed. Throws if they are of
/// different sources.
inline hg_elapsed elapsed(const hg_ticks &first, const hg_ticks &second)
{
    hg_elapsed found;
    detail::check([&](hg_error *e) { return hg_clock_elapsed(first, second, &found, e); });
    return found;
}

/// The time on a scale of the kernel, HG_SCALE_*; hg_now_on.
inline hg_scale_time now_on(std::int32_t scale)
{
    hg_scale_time found;
    detail::check([&](hg_error *e) { return hg_now_on(scale, &found, e); });
    return found;
}

/// Wall-clock time with who vouches for it; hg_wall.
inline hg_wall_time wall() noexcept { return hg_wall(); }
/// UTC between two bounds; hg_utc_bounded.
inline hg_utc utc_bounded() noexcept { return hg_utc_bounded(); }
/// Whether the first moment was before the second one, HG_BEFORE_*; hg_utc_is_before.
inline std::int32_t is_before(const hg_utc &first, const hg_utc &second) noexcept
{
    return hg_utc_is_before(first, second);
}

namespace detail
{

inline hg_wall_reference reference(steady_clock::time_point then, system_clock::time_point it_was,
                                   std::chrono::nanoseconds error) noexcept
{
    const auto error_ns = error.count() > 0 ? static_cast<std::uint64_t>(error.count()) : 0;
    return { steady_clock::ns(then), it_was.time_since_epoch().count(), error_ns };
}

} // namespace detail

/// Sets wall-clock time of this process' clock: `then` it was that time, to within `error`; hg_wall_set.
inline void set_wall(steady_clock::time_point then, system_clock::time_point it_was,
                     std::chrono::nanoseconds error)
{
    const hg_wall_reference said = detail::reference(then, it_was, error);
    detail::check([&](hg_error *e) { return hg_wall_set(&said, e); });
}
/// Steers it by such a reference; hg_wall_steer.
inline void steer_wall(steady_clock::time_point then, system_clock::time_point it_was,
                       std::chrono::nanoseconds error)
{
    const hg_wall_reference said = detail::reference(then, it_was, error);
    detail::check([&](hg_error *e) { return hg_wall_steer(&said, e); });
}
/// Lets the kernel say again what it is; hg_wall_release.
inline void release_wall() noexcept { hg_wall_release(); }

/// The source that serves, HG_SOURCE_*; hg_clock_source.
inline std::int32_t source() noexcept { return hg_clock_source(); }

/// A source's name; hg_source_name.
inline const char *source_name(std::int32_t source) noexcept { return hg_source_name(source); }

/// hg_clock_set_source.
inline void set_source(std::int32_t source)
{
    detail::check([=](hg_error *e) { return hg_clock_set_source(source, e); });
}

/// Calibrates if that is due; hg_clock_maintain.
inline hg_maintained maintain() noexcept { return hg_clock_maintain(); }

/// Gathers the whole evidence about the source; hg_clock_examine.
inline hg_trust examine()
{
    hg_trust found;
    detail::check([&](hg_error *e) { return hg_clock_examine(&found, e); });
    return found;
}

/// How often something happened to the clock, HG_EVENT_*; hg_clock_count.
inline std::uint64_t clock_count(std::uint32_t kind) noexcept { return hg_clock_count(kind); }

/// A descriptor by which other processes read this clock, to be closed with close(2); hg_clock_share.
inline int share_clock()
{
    std::int32_t fd = -1;
    detail::check([&](hg_error *e) { return hg_clock_share(&fd, e); });
    return fd;
}

/// hg_hardware_look.
inline hg_hardware hardware()
{
    hg_hardware found;
    detail::check([&](hg_error *e) { return hg_hardware_look(&found, e); });
    return found;
}

/// The latest events of the clock.
inline std::vector<hg_clock_event> clock_events()
{
    std::vector<hg_clock_event> found(64);
    std::size_t count = 0;
    detail::check([&](hg_error *e) { return hg_clock_events(found.data(), found.size(), &count, e); });
    found.resize(count < found.size() ? count : found.size());
    return found;
}

/// A clock that another process keeps, by a descriptor that hg_clock_share gave.
class shared_clock
{
public:
    explicit shared_clock(int fd) : page_{}
    {
        detail::check([&](hg_error *e) { return hg_page_open(fd, &page_, e); });
    }
    ~shared_clock() { (void)hg_page_close(&page_, nullptr); }
    shared_clock(const shared_clock &) = delete;
    shared_clock &operator=(const shared_clock &) = delete;
    steady_clock::time_point now() const noexcept
    {
        return steady_clock::at(hg_page_now_ordered(&page_));
    }
    /// Unordered.
    steady_clock::time_point fast_now() const noexcept { return steady_clock::at(hg_page_now(&page_)); }
    bounds now_bounded() const noexcept
    {
        const hg_bounds found = hg_page_now_bounded(&page_);
        return { steady_clock::at(found.earliest_ns), steady_clock::at(found.latest_ns), found.status };
    }
    hg_page_writer writer() const
    {
        hg_page_writer found;
        detail::check([&](hg_error *e) { return hg_page_writer_of(&page_, &found, e); });
        return found;
    }

private:
    hg_page page_;
};

// ---- Sleeping ----------------------------------------------------------------------------------

/// Ends sleeps; hg_interrupt. Neither copied nor moved, since others know its address.
class interrupt
{
public:
    interrupt() noexcept : word_ HG_INTERRUPT_INIT {}
    interrupt(const interrupt &) = delete;
    interrupt &operator=(const interrupt &) = delete;
    void set() const noexcept { (void)hg_interrupt_set(&word_); }
    bool clear() const noexcept { return hg_interrupt_clear(&word_); }
    bool is_set() const noexcept { return hg_interrupt_is_set(&word_); }
    /// This has to live until the process ends.
    void on_signal(int signal) const
    {
        detail::check([&](hg_error *e) { return hg_interrupt_on_signal(&word_, signal, e); });
    }
    hg_interrupt *get() const noexcept { return &word_; }

private:
    mutable hg_interrupt word_;
};

namespace detail
{

inline std::uint64_t length(std::chrono::nanoseconds length) noexcept
{
    return length.count() > 0 ? static_cast<std::uint64_t>(length.count()) : 0;
}

/// Any length in whole nanoseconds, rounded up, so that no sleep is shorter than what was asked for. 0 for those
/// that are not positive, and for what is no number; UINT64_MAX, which never comes, beyond 2^63.
template <typename Rep, typename Period>
std::uint64_t rounded_up(const std::chrono::duration<Rep, Period> &length) noexcept
{
    using in_ns = std::ratio_divide<Period, std::nano>;
    constexpr long double BEYOND = 9.2e18L;
    const Rep count = length.count();
    if (!(count > Rep(0))) {
        return 0;
    }
    const long double about = static_cast<long double>(count) * in_ns::num / in_ns::den;
    if (!(about < BEYOND)) {
        return std::numeric_limits<std::uint64_t>::max();
    }
    if constexpr (std::is_integral_v<Rep>) {
        // Exact: whole and broken parts one by one, so that no product leaves 64 bits.
        const auto whole = static_cast<std::uint64_t>(count) / in_ns::den;
        const auto rest = static_cast<std::uint64_t>(count) % in_ns::den;
        return whole * in_ns::num + (rest * in_ns::num + in_ns::den - 1) / in_ns::den;
    } else {
        return static_cast<std::uint64_t>(std::ceil(about));
    }
}

/// A time since 1970 in whole nanoseconds, rounded up; what is no number never comes, and before 1970 is past as 1970 is.
template <typename Rep, typename Period>
std::int64_t utc_ns(const std::chrono::duration<Rep, Period> &since) noexcept
{
    constexpr std::int64_t LAST = std::numeric_limits<std::int64_t>::max();
    const Rep count = since.count();
    if (!(count > Rep(0) || count <= Rep(0))) {
        return LAST;
    }
    const std::uint64_t found = rounded_up(since);
    return found < static_cast<std::uint64_t>(LAST) ? static_cast<std::int64_t>(found) : LAST;
}
template <typename Clock, typename Duration>
std::int64_t utc_ns(const std::chrono::time_point<Clock, Duration> &time) noexcept
{
    static_assert(std::is_same<Clock, system_clock>::value ||
                      std::is_same<Clock, std::chrono::system_clock>::value,
                  "UTC is what a system_clock tells");
    return utc_ns(time.time_since_epoch());
}

/// A time of CLOCK_MONOTONIC, which std::chrono::steady_clock is on Linux, rounded up.
template <typename Duration>
std::uint64_t monotonic(const std::chrono::time_point<std::chrono::steady_clock, Duration> &time) noexcept
{
    return rounded_up(time.time_since_epoch());
}
template <typename Duration>
std::uint64_t monotonic(const std::chrono::time_point<steady_clock, Duration> &time) noexcept
{
    return rounded_up(time.time_since_epoch());
}
/// Whether a clock's times are such.
template <typename Clock>
inline constexpr bool is_monotonic =
    std::is_same_v<Clock, steady_clock> || std::is_same_v<Clock, std::chrono::steady_clock>;

template <typename Call> hg_slept slept(Call &&call)
{
    hg_slept found{};
    check_or(HG_INTERRUPTED, [&](hg_error *e) { return call(&found, e); });
    return found;
}

} // namespace detail

/// hg_sleep_until, for a time of hourglass::steady_clock, fast_clock or std::chrono::steady_clock in any unit,
/// rounded up to a nanosecond. An interrupted sleep says so in what it returns.
template <typename Clock, typename Duration, std::enable_if_t<detail::is_monotonic<Clock>, int> = 0>
hg_slept sleep_until(const std::chrono::time_point<Clock, Duration> &time)
{
    return detail::slept([&](hg_slept *slept, hg_error *e) {
        return hg_sleep_until(detail::monotonic(time), nullptr, slept, e);
    });
}
template <typename Clock, typename Duration, std::enable_if_t<detail::is_monotonic<Clock>, int> = 0>
hg_slept sleep_until(const std::chrono::time_point<Clock, Duration> &time, const interrupt &by)
{
    return detail::slept([&](hg_slept *slept, hg_error *e) {
        return hg_sleep_until(detail::monotonic(time), by.get(), slept, e);
    });
}

/// While it lives, utc_bounded and wait_until_past answer by chronyd, ClockBound or ptp4l, too; hg_utc_keeper.
class utc_keeper : public detail::owned<hg_utc_keeper, hg_utc_keeper_free>
{
public:
    utc_keeper()
    {
        detail::check([&](hg_error *e) { return hg_utc_keeper_start(&handle_, e); });
    }
    /// Who vouches, and what it said; throws with the reason of each source where none does.
    hg_utc_source source() const
    {
        hg_utc_source found;
        detail::check([&](hg_error *e) { return hg_utc_keeper_look(handle_, &found, e); });
        return found;
    }
};

/// hg_utc_wait_until_past, for a time of hourglass::system_clock or std::chrono::system_clock, rounded up to a nanosecond.
template <typename Clock, typename Duration>
hg_utc_wait wait_until_past(const std::chrono::time_point<Clock, Duration> &time,
                            std::uint64_t at_most_ns = UINT64_MAX)
{
    hg_utc_wait wait;
    detail::check([&](hg_error *e) {
        return hg_utc_wait_until_past(detail::utc_ns(time), at_most_ns, nullptr, &wait, e);
    });
    return wait;
}
/// The same, with how it ended: HG_OK if the time has passed for certain, HG_INTERRUPTED, HG_TIMEOUT or HG_UNSUPPORTED; `wait` says how
/// long it waited. Throws for any other.
template <typename Clock, typename Duration>
hg_status wait_until_past(const std::chrono::time_point<Clock, Duration> &time, const interrupt &by,
                          hg_utc_wait &wait, std::uint64_t at_most_ns = UINT64_MAX)
{
    hg_error found;
    const hg_status end =
        hg_utc_wait_until_past(detail::utc_ns(time), at_most_ns, by.get(), &wait, &found);
    if (end != HG_OK && end != HG_INTERRUPTED && end != HG_TIMEOUT && end != HG_UNSUPPORTED) {
        detail::fail(end, found);
    }
    return end;
}

/// hg_sleep_for, for a length in any unit, floating-point ones too (1.5ms), rounded up to a nanosecond.
template <typename Rep, typename Period> hg_slept sleep_for(const std::chrono::duration<Rep, Period> &length)
{
    return detail::slept([&](hg_slept *slept, hg_error *e) {
        return hg_sleep_for(detail::rounded_up(length), nullptr, slept, e);
    });
}
template <typename Rep, typename Period>
hg_slept sleep_for(const std::chrono::duration<Rep, Period> &length, const interrupt &by)
{
    return detail::slept([&](hg_slept *slept, hg_error *e) {
        return hg_sleep_for(detail::rounded_up(length), by.get(), slept, e);
    });
}

namespace detail
{

/// Until a clock that may be set says so: asked again after each sleep, as std::this_thread does.
template <typename Clock, typename Duration, typename Sleep>
hg_slept until_it_says(const std::chrono::time_point<Clock, Duration> &time, Sleep &&sleep)
{
    for (;;) {
        const auto now = Clock::now();
        const hg_slept found = now < time ? sleep(time - now) : sleep(std::chrono::nanoseconds(0));
        if (found.interrupted || Clock::now() >= time) {
            return found;
        }
    }
}

} // namespace detail

/// Until a time of any other clock: hourglass::system_clock, std::chrono::system_clock or one's own. It has come
/// by that clock when this returns; one that is set forward meanwhile is noticed at the end of the sleep (a timer
/// on HG_BASE_REALTIME notices at once). Returns the result of the last sleep.
template <typename Clock, typename Duration, std::enable_if_t<!detail::is_monotonic<Clock>, int> = 0>
hg_slept sleep_until(const std::chrono::time_point<Clock, Duration> &time)
{
    return detail::until_it_says(time, [](const auto &length) { return sleep_for(length); });
}
template <typename Clock, typename Duration, std::enable_if_t<!detail::is_monotonic<Clock>, int> = 0>
hg_slept sleep_until(const std::chrono::time_point<Clock, Duration> &time, const interrupt &by)
{
    return detail::until_it_says(time, [&](const auto &length) { return sleep_for(length, by); });
}

/// Sleeps until the counter has counted `count` ticks from now; hg_sleep_ticks.
inline hg_slept sleep_ticks(std::uint64_t count)
{
    return detail::slept(
        [&](hg_slept *slept, hg_error *e) { return hg_sleep_ticks(count, nullptr, slept, e); });
}
inline hg_slept sleep_ticks(std::uint64_t count, const interrupt &by)
{
    return detail::slept(
        [&](hg_slept *slept, hg_error *e) { return hg_sleep_ticks(count, by.get(), slept, e); });
}

/// A sleeper with settings of its own: hg_sleep_defaults(), hg_sleep_frugal(), hg_sleep_precise(), or
/// what is made of these.
class sleeper : public detail::owned<hg_sleeper, hg_sleeper_free>
{
public:
    sleeper() : sleeper(hg_sleep_defaults()) {}
    explicit sleeper(const hg_sleep_settings &settings)
    {
        detail::check([&](hg_error *e) { return hg_sleeper_new(&settings, &handle_, e); });
    }
    /// A time of one of the clocks of hourglass::sleep_until that are not set.
    template <typename Clock, typename Duration>
    hg_slept until(const std::chrono::time_point<Clock, Duration> &time)
    {
        return detail::slept([&](hg_slept *slept, hg_error *e) {
            return hg_sleeper_until(handle_, detail::monotonic(time), slept, e);
        });
    }
    /// As hourglass::sleep_for.
    template <typename Rep, typename Period>
    hg_slept sleep_for(const std::chrono::duration<Rep, Period> &length)
    {
        return detail::slept([&](hg_slept *slept, hg_error *e) {
            return hg_sleeper_for(handle_, detail::rounded_up(length), slept, e);
        });
    }
    hg_slept sleep_ticks(std::uint64_t count)
    {
        return detail::slept([&](hg_slept *slept, hg_error *e) {
            return hg_sleeper_ticks(handle_, count, slept, e);
        });
    }
    /// No timer slack in the calling thread any more, which is to sleep by it.
    void take_slack()
    {
        detail::check([&](hg_error *e) { return hg_sleeper_take_slack(handle_, e); });
    }
    /// No idle states that take longer to leave, as long as it lives.
    void hold_idle_latency(std::chrono::microseconds most)
    {
        const auto us = static_cast<std::uint32_t>(detail::length(most) / 1000);
        detail::check([&](hg_error *e) { return hg_sleeper_hold_idle_latency(handle_, us, e); });
    }
    /// The margin of a sleep of that length, in the thread that slept by it last; else 0.
    std::chrono::nanoseconds margin(std::chrono::nanoseconds length) const noexcept
    {
        const std::uint64_t found = hg_sleeper_margin(handle_, detail::length(length));
        return std::chrono::nanoseconds(static_cast<std::int64_t>(found));
    }
    void interrupt() const noexcept { (void)hg_sleeper_interrupt(handle_); }
    bool clear() const noexcept { return hg_sleeper_clear(handle_); }
};

// ---- Clock devices ------------------------------------------------------------------------------

/// A clock device, served by the thread that made it; hg_clock_device_open.
class clock_device : public detail::owned<hg_clock_device, hg_clock_device_free>
{
public:
    /// By name: "baseline", "timerfd", "posix", "rtc".
    explicit clock_device(const char *name = "baseline")
    {
        detail::check([&](hg_error *e) { return hg_clock_device_open(name, &handle_, e); });
    }
    /// The name of device number `number`, from 0; null after the last.
    static const char *name(std::uint32_t number) noexcept { return hg_clock_device_name(number); }
    /// Ticks at the period nearest to `desired`, if that is at most `skew` away; the actual one.
    std::chrono::nanoseconds resolution(std::chrono::nanoseconds desired, std::chrono::nanoseconds skew)
    {
        std::uint64_t actual = 0;
        detail::check([&](hg_error *e) {
            return hg_clock_device_set_resolution(handle_, detail::length(desired), detail::length(skew), &actual,
                                                  e);
        });
        return std::chrono::nanoseconds(static_cast<std::int64_t>(actual));
    }
    /// Waits for its next tick; false if a kick or a signal ended the wait.
    bool wait()
    {
        return detail::check_or(HG_INTERRUPTED, [&](hg_error *e) {
            return hg_clock_device_wait(handle_, UINT64_MAX, e);
        });
    }
    void kick() const noexcept { (void)hg_clock_device_kick(handle_); }
    /// The time at its last tick: one load.
    steady_clock::time_point now() const noexcept { return steady_clock::at(hg_clock_device_now(handle_)); }
    /// A timer that carries `tag`, not armed.
    hg_device_timer timer(std::uint64_t tag)
    {
        hg_device_timer made{};
        detail::check([&](hg_error *e) { return hg_device_timer_new(handle_, tag, &made, e); });
        return made;
    }
    /// For a time, and then every `period`, unless that is zero.
    void arm(hg_device_timer timer, steady_clock::time_point expiry,
             std::chrono::nanoseconds period = std::chrono::nanoseconds::zero())
    {
        detail::check([&](hg_error *e) {
            return hg_device_timer_arm(handle_, timer, steady_clock::ns(expiry), detail::length(period), e);
        });
    }
    /// Cancels its next expiration, or all.
    void cancel(hg_device_timer timer, bool all = true)
    {
        detail::check([&](hg_error *e) { return hg_device_timer_cancel(handle_, timer, all, e); });
    }
    /// Takes it away, armed or not.
    void remove(hg_device_timer timer)
    {
        detail::check([&](hg_error *e) { return hg_device_timer_free(handle_, timer, e); });
    }
    /// The next timer that expired by the last tick.
    std::optional<hg_device_expiry> expired()
    {
        hg_device_expiry found;
        const bool some = detail::check_or(
            HG_EMPTY, [&](hg_error *e) { return hg_clock_device_expired(handle_, &found, e); });
        return some ? std::optional<hg_device_expiry>(found) : std::nullopt;
    }
};

// ---- Timing faults -----------------------------------------------------------------------------

/// A region in which the calling thread is not stopped; hg_defer_enter.
class region
{
public:
    region() noexcept { hg_defer_enter(); }
    ~region() { (void)hg_defer_leave(nullptr); }
    region(const region &) = delete;
    region &operator=(const region &) = delete;
};

/// A watched thread, as others see it.
class watched : public detail::owned<hg_watched, hg_watched_free>
{
public:
    using owned::owned;
    /// Whether it is still watched.
    bool fault(steady_clock::time_point deadline) const
    {
        bool notified = false;
        detail::check([&](hg_error *e) {
            return hg_watched_fault(handle_, steady_clock::ns(deadline), &notified, e);
        });
        return notified;
    }
    /// Deadlines that it has passed.
    std::uint64_t faults() const { return counted().first; }
    /// Passed deadlines that no handler received.
    std::uint64_t untold() const { return counted().second; }

private:
    std::pair<std::uint64_t, std::uint64_t> counted() const
    {
        std::uint64_t faults = 0, untold = 0;
        detail::check([&](hg_error *e) { return hg_watched_faults(handle_, &faults, &untold, e); });
        return { faults, untold };
    }
};

/// The calling thread's watch over its deadlines: made, used and destroyed in it. Members that a verdict
/// may end return whether the thread is to go on.
class watch
{
public:
    explicit watch(const hg_watch_settings &settings = hg_watch_settings{})
    {
        detail::check([&](hg_error *e) { return hg_watch_begin(&settings, e); });
    }
    ~watch() { (void)hg_watch_end(nullptr); }
    watch(const watch &) = delete;
    watch &operator=(const watch &) = delete;
    watched thread() const
    {
        hg_watched found;
        detail::check([&](hg_error *e) { return hg_watch_thread(&found, e); });
        return watched(found);
    }
    /// Watches it in another way, from the next fault on.
    void set(const hg_watch_settings &settings)
    {
        detail::check([&](hg_error *e) { return hg_watch_set(&settings, e); });
    }
    bool arm(steady_clock::time_point deadline)
    {
        return detail::check_or(HG_ENDED, [&](hg_error *e) {
            return hg_watch_arm_at(steady_clock::ns(deadline), e);
        });
    }
    /// So far from now.
    bool arm(std::chrono::nanoseconds deadline)
    {
        return detail::check_or(HG_ENDED, [&](hg_error *e) {
            return hg_watch_arm_in(detail::length(deadline), e);
        });
    }
    /// Raises a fault when the thread has used this CPU time from now on.
    bool arm_budget(std::chrono::nanoseconds budget)
    {
        return detail::check_or(HG_ENDED, [&](hg_error *e) {
            return hg_watch_arm_budget(detail::length(budget), e);
        });
    }
    bool disarm_budget()
    {
        return detail::check_or(HG_ENDED, [](hg_error *e) { return hg_watch_disarm_budget(e); });
    }
    bool begin_job(steady_clock::time_point deadline)
    {
        return detail::check_or(HG_ENDED, [&](hg_error *e) {
            return hg_watch_begin_job_at(steady_clock::ns(deadline), e);
        });
    }
    /// So far from now.
    bool begin_job(std::chrono::nanoseconds deadline)
    {
        return detail::check_or(HG_ENDED, [&](hg_error *e) {
            return hg_watch_begin_job_in(detail::length(deadline), e);
        });
    }
    bool begin_jobs(steady_clock::time_point first, std::chrono::nanoseconds period)
    {
        return detail::check_or(HG_ENDED, [&](hg_error *e) {
            return hg_watch_begin_jobs(steady_clock::ns(first), detail::length(period), e);
        });
    }
    bool end_job(hg_ending *ending = nullptr)
    {
        return detail::check_or(HG_ENDED, [&](hg_error *e) { return hg_watch_end_job(ending, e); });
    }
    bool disarm()
    {
        return detail::check_or(HG_ENDED, [](hg_error *e) { return hg_watch_disarm(nullptr, e); });
    }
    hg_watch_state state() const
    {
        hg_watch_state found;
        detail::check([&](hg_error *e) { return hg_watch_look(&found, e); });
        return found;
    }
};

/// Whether the calling thread is to go on; hg_safepoint.
inline bool safepoint() noexcept { return hg_safepoint() == HG_OK; }

/// Verdicts.
inline hg_verdict resume() noexcept { return hg_verdict{}; }
inline hg_verdict resume_by(std::chrono::nanoseconds from_now) noexcept
{
    hg_verdict verdict{};
    verdict.changes = HG_CHANGE_DEADLINE_IN;
    verdict.deadline_ns = detail::length(from_now);
    return verdict;
}
inline hg_verdict keep_demoted() noexcept
{
    hg_verdict verdict{};
    verdict.kind = HG_VERDICT_KEEP_DEMOTED;
    return verdict;
}
inline hg_verdict end_thread() noexcept
{
    hg_verdict verdict{};
    verdict.kind = HG_VERDICT_END;
    return verdict;
}

/// A deadline handler: `entry` is called with a `const hg_fault &` and returns an hg_verdict.
class deadline_handler : public detail::owned<hg_handler, hg_handler_free>
{
public:
    template <typename F>
    deadline_handler(const watched &thread, F &&entry,
                     const hg_handler_settings &settings = hg_handler_settings{})
    {
        using call = detail::callback<std::decay_t<F>>;
        const hg_fault_fn run = [](const hg_fault *fault, void *user) noexcept -> hg_verdict {
            const hg_verdict verdict = call::of(user)(*fault);
            detail::handed_over(user);
            return verdict;
        };
        void *user = call::make(std::forward<F>(entry));
        detail::check([&](hg_error *e) {
            return hg_handler_install(thread.get(), &settings, run, user, call::release, &handle_, e);
        });
    }
    hg_handled handled() const
    {
        hg_handled found;
        detail::check([&](hg_error *e) { return hg_handler_look(handle_, &found, e); });
        return found;
    }
};

// ---- Timers ------------------------------------------------------------------------------------

/// Where messages of timers arrive.
class port : public detail::owned<hg_port, hg_port_free>
{
public:
    explicit port(std::uint32_t room)
    {
        detail::check([&](hg_error *e) { return hg_port_new(room, &handle_, e); });
    }
    int fd() const noexcept { return hg_port_fd(handle_); }
    std::uint64_t lost() const noexcept { return hg_port_lost(handle_); }
    std::optional<hg_message> try_receive()
    {
        hg_message found;
        const bool some = detail::check_or(
            HG_EMPTY, [&](hg_error *e) { return hg_port_try_receive(handle_, &found, e); });
        return some ? std::optional<hg_message>(found) : std::nullopt;
    }
    std::optional<hg_message> receive(std::chrono::nanoseconds limit)
    {
        return receive_for(detail::length(limit));
    }
    hg_message receive() { return *receive_for(UINT64_MAX); }

private:
    std::optional<hg_message> receive_for(std::uint64_t limit_ns)
    {
        hg_message found;
        const bool some = detail::check_or(HG_TIMEOUT, [&](hg_error *e) {
            return hg_port_receive(handle_, limit_ns, &found, e);
        });
        return some ? std::optional<hg_message>(found) : std::nullopt;
    }
};

/// A class of deferred actions.
class timer_class : public detail::owned<hg_class, hg_class_free>
{
public:
    using owned::owned;
    hg_class_statistics statistics() const
    {
        hg_class_statistics found;
        detail::check([&](hg_error *e) { return hg_class_look(handle_, &found, e); });
        return found;
    }
};

/// The thread that makes this, for others to wake from hourglass::park; hg_thread_current.
class thread_handle : public detail::owned<hg_thread, hg_thread_free>
{
public:
    thread_handle()
    {
        detail::check([&](hg_error *e) { return hg_thread_current(&handle_, e); });
    }
    void unpark() const
    {
        detail::check([&](hg_error *e) { return hg_unpark(handle_, e); });
    }
};

/// Waits until the calling thread is woken; may return without a reason. hg_park.
inline void park() noexcept { hg_park(UINT64_MAX); }
/// Like park(), for `limit` at most.
inline void park_for(std::chrono::nanoseconds limit) noexcept { hg_park(detail::length(limit)); }

/// Reads the calling thread's real-time priority anew, for timers that it arms; hg_refresh_priority.
inline std::uint32_t refresh_priority() noexcept { return hg_refresh_priority(); }

/// What a timer does. Given to one timer, once.
class action
{
public:
    /// Nothing.
    action() noexcept : action_{} {}
    action(action &&other) noexcept : action_(std::exchange(other.action_, hg_action{})) {}
    action(const action &) = delete;
    action &operator=(const action &) = delete;
    ~action()
    {
        if (action_.release != nullptr) {
            action_.release(action_.user);
        }
    }
    /// Wakes a thread from hourglass::park.
    static action wake(const thread_handle &thread) noexcept
    {
        action made;
        made.action_.kind = HG_ACTION_WAKE;
        made.action_.thread = thread.get();
        return made;
    }
    /// Sends `tag` and the time to a port.
    static action send(const port &to, std::uint64_t tag) noexcept
    {
        action made;
        made.action_.kind = HG_ACTION_SEND;
        made.action_.port = to.get();
        made.action_.tag = tag;
        return made;
    }
    /// Calls `call` with a `const hg_expiration &` on the engine's thread: it must not block.
    template <typename F> static action immediate(F &&call)
    {
        return calling(HG_ACTION_IMMEDIATE, hg_class{ 0 }, std::forward<F>(call));
    }
    /// Calls it on the thread of a class.
    template <typename F> static action deferred(const timer_class &to, F &&call)
    {
        return calling(HG_ACTION_DEFERRED, to.get(), std::forward<F>(call));
    }
    /// Faults a thread.
    static action fault(const watched &thread) noexcept
    {
        action made;
        made.action_.kind = HG_ACTION_FAULT;
        made.action_.watched = thread.get();
        return made;
    }
    /// For hourglass.h, which releases it from then on.
    hg_action take() noexcept { return std::exchange(action_, hg_action{}); }

private:
    template <typename F> static action calling(std::uint32_t kind, hg_class to, F &&function)
    {
        using call = detail::callback<std::decay_t<F>>;
        action made;
        made.action_.kind = kind;
        made.action_.class_ = to;
        made.action_.call = [](const hg_expiration *expiration, void *user) noexcept {
            call::of(user)(*expiration);
            detail::handed_over(user);
        };
        made.action_.user = call::make(std::forward<F>(function));
        made.action_.release = call::release;
        return made;
    }
    hg_action action_;
};

/// A timer.
class timer : public detail::owned<hg_timer, hg_timer_free>
{
public:
    using owned::owned;
    void arm(const hg_arm &arm)
    {
        detail::check([&](hg_error *e) { return hg_timer_arm(handle_, &arm, e); });
    }
    void arm_at(steady_clock::time_point time)
    {
        arm(hg_arm_at(static_cast<std::int64_t>(steady_clock::ns(time))));
    }
    void arm_after(std::chrono::nanoseconds length) { arm(hg_arm_after(length.count())); }
    void arm_every(std::chrono::nanoseconds period) { arm(hg_arm_every(period.count())); }
    /// Whether there was something to cancel.
    bool cancel(std::uint32_t which = HG_CANCEL_ALL)
    {
        bool found = false;
        detail::check([&](hg_error *e) { return hg_timer_cancel(handle_, which, &found, e); });
        return found;
    }
    /// Whether it was slept out; false if it was cancelled or armed anew.
    bool sleep_for(std::chrono::nanoseconds length)
    {
        return detail::check_or(HG_CANCELLED, [&](hg_error *e) {
            return hg_timer_sleep_for(handle_, length.count(), e);
        });
    }
    /// The same until a time of the timer's clock, ns.
    bool sleep_until(std::int64_t at_ns)
    {
        return detail::check_or(HG_CANCELLED, [&](hg_error *e) {
            return hg_timer_sleep_until(handle_, at_ns, e);
        });
    }
    hg_timer_status status() const
    {
        hg_timer_status found;
        detail::check([&](hg_error *e) { return hg_timer_look(handle_, &found, e); });
        return found;
    }
    void terminate()
    {
        detail::check([&](hg_error *e) { return hg_timer_terminate(handle_, e); });
    }
};

/// An owner of timers.
class timer_owner : public detail::owned<hg_owner, hg_owner_free>
{
public:
    using owned::owned;
    hourglass::timer timer(action does = action(),
                           const hg_timer_settings &settings = hg_timer_settings{})
    {
        hg_timer made;
        const hg_action given = does.take();
        detail::check([&](hg_error *e) { return hg_timer_new(handle_, &settings, &given, &made, e); });
        return hourglass::timer(made);
    }
    void terminate()
    {
        detail::check([&](hg_error *e) { return hg_owner_terminate(handle_, e); });
    }
};

/// A timer service.
class timer_service : public detail::owned<hg_service, hg_service_free>
{
public:
    explicit timer_service(const hg_service_settings &settings = hg_service_settings{})
    {
        detail::check([&](hg_error *e) { return hg_service_start(&settings, &handle_, e); });
    }
    timer_owner owner(const char *name)
    {
        hg_owner made;
        detail::check([&](hg_error *e) { return hg_owner_new(handle_, name, &made, e); });
        return timer_owner(made);
    }
    hourglass::timer_class timer_class(const char *name,
                                       const hg_class_settings &settings = hg_class_settings{})
    {
        hg_class made;
        detail::check([&](hg_error *e) { return hg_class_new(handle_, name, &settings, &made, e); });
        return hourglass::timer_class(made);
    }
    hg_service_statistics statistics(std::uint32_t engine = 0) const
    {
        hg_service_statistics found;
        detail::check([&](hg_error *e) { return hg_service_look(handle_, engine, &found, e); });
        return found;
    }
};

// ---- Periodic threads --------------------------------------------------------------------------

/// A job that runs; to be used in the body that it was given to.
class job
{
public:
    explicit job(hg_job *inner) noexcept : inner_(inner) {}
    const hg_job &facts() const noexcept { return *inner_; }
    steady_clock::time_point release() const noexcept { return steady_clock::at(inner_->release_ns); }
    steady_clock::time_point deadline() const noexcept { return steady_clock::at(inner_->deadline_ns); }
    std::uint64_t number() const noexcept { return inner_->number; }
    bool late() const noexcept { return inner_->late; }
    std::uint64_t lost_before() const noexcept { return inner_->lost_before; }
    bool is_stopping() const noexcept { return hg_job_is_stopping(inner_); }
    /// Moves all releases after this one, by less than a period in all.
    void shift(std::chrono::nanoseconds by) const
    {
        detail::check([&](hg_error *e) { return hg_job_shift(inner_, by.count(), e); });
    }
    hg_standing check() const
    {
        hg_standing found;
        detail::check([&](hg_error *e) { return hg_job_check(inner_, &found, e); });
        return found;
    }
    /// A time of one of the clocks of hourglass::sleep_until that are not set.
    template <typename Clock, typename Duration>
    hg_slept sleep_until(const std::chrono::time_point<Clock, Duration> &time) const
    {
        return detail::slept([&](hg_slept *slept, hg_error *e) {
            return hg_job_sleep_until(inner_, detail::monotonic(time), slept, e);
        });
    }

private:
    hg_job *inner_;
};

/// A periodic thread. Its body is called with a `job &`, and may return whether there is to be another.
class periodic_thread : public detail::owned<hg_periodic, hg_periodic_free>
{
public:
    /// With the period alone; hg_periodic_start.
    template <typename F> periodic_thread(std::chrono::nanoseconds period, F &&body)
    {
        hg_periodic_settings settings{};
        settings.period_ns = detail::length(period);
        start(settings, nullptr, std::forward<F>(body));
    }
    /// With all there is. Call-backs of `settings` are C functions, and get the address of `body`.
    template <typename F> periodic_thread(const hg_periodic_settings &settings, F &&body)
    {
        start(settings, nullptr, std::forward<F>(body));
    }
    /// With what the thread does first: hg_periodic_start_with. `on_start` may return whether the thread is to
    /// go on; what it throws, this throws.
    template <typename S, typename F>
    periodic_thread(const hg_periodic_settings &settings, S &&on_start, F &&body)
    {
        using both = hooked<std::decay_t<S>, std::decay_t<F>>;
        const auto thrown = std::make_shared<std::exception_ptr>();
        try {
            start(settings, both::first, both{ std::forward<S>(on_start), std::forward<F>(body), thrown });
        } catch (const error &) {
            if (*thrown) {
                std::rethrow_exception(*thrown);
            }
            throw;
        }
    }
    void stop() const noexcept { (void)hg_periodic_stop(handle_); }
    /// HG_PERIODIC_*.
    std::uint32_t join()
    {
        std::uint32_t ended = 0;
        detail::check([&](hg_error *e) { return hg_periodic_join(handle_, &ended, e); });
        return ended;
    }
    std::uint32_t id() const noexcept { return hg_periodic_id(handle_); }
    hg_periodic_statistics statistics() const
    {
        hg_periodic_statistics found;
        detail::check([&](hg_error *e) { return hg_periodic_look(handle_, &found, e); });
        return found;
    }

private:
    /// A body with what comes before it.
    template <typename S, typename F> struct hooked
    {
        S on_start;
        F body;
        std::shared_ptr<std::exception_ptr> thrown;

        decltype(auto) operator()(job &running) { return body(running); }
        static bool first(void *user) noexcept
        {
            auto &both = detail::callback<hooked>::of(user);
            bool goes_on = true;
            try {
                if constexpr (std::is_void_v<decltype(both.on_start())>) {
                    both.on_start();
                } else {
                    goes_on = both.on_start();
                }
            } catch (...) {
                *both.thrown = std::current_exception();
                goes_on = false;
            }
            detail::handed_over(user);
            return goes_on;
        }
    };
    template <typename F>
    void start(const hg_periodic_settings &settings, hg_start_fn on_start, F &&body)
    {
        using call = detail::callback<std::decay_t<F>>;
        const hg_body_fn run = [](hg_job *inner, void *user) noexcept -> bool {
            job running(inner);
            auto &function = call::of(user);
            bool goes_on = true;
            if constexpr (std::is_void_v<decltype(function(running))>) {
                function(running);
            } else {
                goes_on = function(running);
            }
            detail::handed_over(user);
            return goes_on;
        };
        void *user = call::make(std::forward<F>(body));
        detail::check([&](hg_error *e) {
            return hg_periodic_start_with(&settings, on_start, run, user, call::release, &handle_, e);
        });
    }
};

// ---- The recorder, for a loop of one's own -----------------------------------------------------

/// What was measured of a loop.
class recording : public detail::owned<hg_recording, hg_recording_free>
{
public:
    using owned::owned;
    hg_recording_summary summary() const
    {
        hg_recording_summary found;
        detail::check([&](hg_error *e) { return hg_recording_look(handle_, &found, e); });
        return found;
    }
    std::vector<hg_interval> intervals() const
    {
        std::size_t count = 0;
        detail::check([&](hg_error *e) {
            return hg_recording_intervals(handle_, 0, nullptr, 0, &count, e);
        });
        std::vector<hg_interval> found(count);
        detail::check([&](hg_error *e) {
            return hg_recording_intervals(handle_, 0, found.data(), found.size(), &count, e);
        });
        return found;
    }
};

/// A loop that is measured, in the thread that makes this.
class own_loop
{
public:
    explicit own_loop(const hg_loop_spec &spec) : loop_{ 0 }
    {
        detail::check([&](hg_error *e) { return hg_loop_start(&spec, &loop_, e); });
    }
    explicit own_loop(std::chrono::nanoseconds period) : own_loop(every(period, nullptr)) {}
    /// Kept in a folder that does not exist yet, for `hourglass show` and `report`.
    own_loop(std::chrono::nanoseconds period, const std::string &folder)
        : own_loop(every(period, folder.c_str()))
    {
    }
    ~own_loop()
    {
        hg_recording last;
        if (loop_.handle != 0 && hg_loop_finish(loop_, &last, nullptr) == HG_OK) {
            (void)hg_recording_free(last, nullptr);
        }
    }
    own_loop(const own_loop &) = delete;
    own_loop &operator=(const own_loop &) = delete;
    void begin_period() noexcept { (void)hg_loop_begin(loop_); }
    void begin_period(steady_clock::time_point due) noexcept
    {
        (void)hg_loop_begin_due(loop_, steady_clock::ns(due));
    }
    void check() noexcept { (void)hg_loop_check(loop_); }
    void end_period() noexcept { (void)hg_loop_end(loop_); }
    hg_deadlines deadlines() const
    {
        hg_deadlines found;
        detail::check([&](hg_error *e) { return hg_loop_deadlines(loop_, &found, e); });
        return found;
    }
    /// Ends measuring; nothing is marked after that. Throws if the folder cannot be written, and then
    /// there is no recording either.
    recording finish()
    {
        hg_recording made{ 0 };
        hg_error found;
        const hg_status status = hg_loop_finish(loop_, &made, &found);
        recording finished(made);
        if (status != HG_OK) {
            detail::fail(status, found);
        }
        loop_ = hg_loop{ 0 };
        return finished;
    }

private:
    static hg_loop_spec every(std::chrono::nanoseconds period, const char *folder) noexcept
    {
        hg_loop_spec spec{};
        spec.period_ns = detail::length(period);
        spec.folder = folder;
        return spec;
    }
    hg_loop loop_;
};

// ---- Reservations and progress -----------------------------------------------------------------

namespace detail
{

inline hg_request request(std::chrono::nanoseconds budget, std::chrono::nanoseconds period) noexcept
{
    hg_request made{};
    made.budget_ns = length(budget);
    made.period_ns = length(period);
    return made;
}

} // namespace detail

/// What stands in the way of a reservation, as far as can be seen: its kind and the line that mends it, or
/// nothing. Reserves nothing; hg_reserve_check.
inline std::optional<error> reserve_check(const hg_request &request, std::uint32_t thread = 0)
{
    hg_error found;
    const hg_status status = hg_reserve_check(thread, &request, &found);
    if (status == HG_OK) {
        return std::nullopt;
    }
    return error(status, found.os_errno, found.text);
}
inline std::optional<error> reserve_check(std::chrono::nanoseconds budget,
                                          std::chrono::nanoseconds period)
{
    return reserve_check(detail::request(budget, period));
}

/// A thread, the calling one by default, under a reservation of the deadline class, until this is
/// destroyed.
class reservation : public detail::owned<hg_reservation, hg_reserve_release>
{
public:
    explicit reservation(const hg_request &request, std::uint32_t thread = 0)
    {
        detail::check([&](hg_error *e) { return hg_reserve_thread(thread, &request, &handle_, e); });
    }
    reservation(std::chrono::nanoseconds budget, std::chrono::nanoseconds period)
        : reservation(detail::request(budget, period))
    {
    }
    hg_supply supply() const
    {
        hg_supply found;
        detail::check([&](hg_error *e) { return hg_reserve_look(handle_, &found, e); });
        return found;
    }
};

/// Tells how far the program is with its reserved work; by one thread.
class progress
{
public:
    progress() : page_{}
    {
        detail::check([&](hg_error *e) { return hg_progress_open(&page_, e); });
    }
    ~progress() { (void)hg_progress_close(&page_, nullptr); }
    progress(const progress &) = delete;
    progress &operator=(const progress &) = delete;
    void begin() noexcept { hg_progress_begin(&page_); }
    void report(std::uint64_t done, std::uint64_t total) noexcept { hg_progress(&page_, done, total); }
    /// No value without a grid.
    std::optional<steady_clock::time_point> next_release() const noexcept
    {
        const std::uint64_t next = hg_progress_next_release(&page_, hg_now_ordered());
        return next == 0 ? std::nullopt : std::make_optional(steady_clock::at(next));
    }

private:
    hg_progress_page page_;
};

// ---- What the scheduler did to a span -----------------------------------------------------------

/// Makes the calling thread's witness ready, which its first span would do.
inline void open_witness()
{
    hg_witness_view view;
    detail::check([&](hg_error *e) { return hg_witness_open(&view, e); });
}

/// A span of the calling thread, from its construction to end(). Must be ended in the thread that made it, or be
/// detached there and attached where it goes on.
class span
{
public:
    span() noexcept : span_(hg_witness_begin()) {}
    /// What it lost; nothing if nothing took the thread away. Once.
    std::optional<hg_loss> end()
    {
        hg_loss loss;
        const bool lost =
            detail::check_or(HG_EMPTY, [&](hg_error *e) { return hg_witness_end(&span_, &loss, e); });
        return lost ? std::optional<hg_loss>(loss) : std::nullopt;
    }
    /// It does not wait by itself: a wait that is counted is then a stop.
    span &busy() noexcept
    {
        span_.busy = true;
        return *this;
    }
    void detach()
    {
        detail::check([&](hg_error *e) { return hg_witness_detach(&span_, e); });
    }
    void attach()
    {
        detail::check([&](hg_error *e) { return hg_witness_attach(&span_, e); });
    }

private:
    hg_span span_;
};

/// A span as long as its scope; its loss, if there is one, goes to `then`, which must not throw. Nothing is said of a
/// span that is destroyed in another thread.
template <typename Then> class witnessed
{
public:
    explicit witnessed(Then then) : then_(std::move(then)), span_(hg_witness_begin()) {}
    ~witnessed()
    {
        hg_loss loss;
        if (hg_witness_end(&span_, &loss, nullptr) == HG_OK) {
            then_(static_cast<const hg_loss &>(loss));
        }
    }
    witnessed(const witnessed &) = delete;
    witnessed &operator=(const witnessed &) = delete;

private:
    Then then_;
    hg_span span_;
};

/// For google-benchmark: the span of a benchmark's loop. When it ends, the state has counters, so that repetitions show
/// which of them the scheduler disturbed: `disturbed` (0 or 1), `switches`, `off_cpu_ns` and `off_cpu_least_ns`.
///
///     void parses(benchmark::State &state)
///     {
///         hourglass::benchmark_span span(state); // the last line before the loop
///         for (auto _ : state) {
///             parse();
///         }
///     }
///
/// Several threads: each makes its own, and google-benchmark adds them up. What the span cannot tell, in a forked
/// child, is `disturbed` without other counters. Any state will do whose `counters` is a map of strings to numbers.
template <typename State> class benchmark_span
{
public:
    explicit benchmark_span(State &state) : state_(state) { span_ = hg_witness_begin(); }
    ~benchmark_span()
    {
        hg_loss loss;
        const hg_status ended = hg_witness_end(&span_, &loss, nullptr);
        state_.counters["disturbed"] = ended == HG_EMPTY ? 0.0 : 1.0;
        if (ended != HG_OK && ended != HG_EMPTY) {
            return;
        }
        const auto number = [](std::uint64_t of) { return static_cast<double>(of); };
        const bool lost = ended == HG_OK;
        state_.counters["switches"] = lost ? number(loss.voluntary + loss.involuntary) : 0.0;
        state_.counters["off_cpu_ns"] = lost ? number(loss.off_cpu_most_ns) : 0.0;
        state_.counters["off_cpu_least_ns"] = lost ? number(loss.off_cpu_least_ns) : 0.0;
    }
    benchmark_span(const benchmark_span &) = delete;
    benchmark_span &operator=(const benchmark_span &) = delete;

private:
    State &state_;
    hg_span span_;
};

} // namespace hourglass

#ifdef __SIZEOF_INT128__ // a processor of 64 bits
#include "hourglass_thesis.hpp"
#endif

#endif // C++17

#endif
