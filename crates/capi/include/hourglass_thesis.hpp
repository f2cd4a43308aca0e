// hourglass_thesis.hpp: the classes of the HighPerTimer thesis (Fedotova 2012, chapter 4) on hourglass.h.
//
// C++11, as the thesis' own library (-std=c++0x), and later. Included by hourglass.hpp. Programs written for the thesis' library change their include to that; its
// namespace is `HPTimer` here as well. What is different, all of it:
//
// - A tick is a nanosecond, whatever the source. Ticks of all sources are the same, so that the source may
//   be changed at any time and every object stays valid; the range is that of 2^63 ns, 292 years.
// - Nothing runs before main: the clock is calibrated while it runs (`SetClockSkew` is obeyed by doing
//   nothing, its answers are the same).
// - `Now` never goes backwards, and its distance to CLOCK_REALTIME is taken at first use, or by
//   `InitUnixZeroShift`, as there.
// - Sleeping takes its margin from what was measured, not from 1/HZ, and `Interrupt` ends it also while it
//   waits in the kernel, from any thread and from a signal handler. As there, an `Interrupt` that comes
//   before a sleep is cleared by that sleep.
// - An overflow is found before it happens: sums are made in 128 bits, and std::out_of_range is thrown for
//   exactly those that 64 bits do not hold; also for timespec and timeval whose parts are out of range.
//   What throws leaves the object as it was.
// - The HPET is no source of this clock: `SetTimerSource(TimeSource::HPET)` leaves the source as it is, as
//   it did where it could not be initialised, and `HpetFailReason` says what stands in its way.
#ifndef HOURGLASS_THESIS_HPP
#define HOURGLASS_THESIS_HPP

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <limits>
#include <numeric>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <sys/time.h>
#include <time.h>
#include <type_traits>

#if __cplusplus >= 201703L
#include "hourglass.hpp"
#define HG_INLINE_ inline
#else
#include "hourglass.h"
/* What C++17 has a word for. */
#define HG_INLINE_ __attribute__((weak))
#endif

namespace hourglass
{
namespace thesis
{

/// Listing 4.5.
enum class TimeSource
{
    TSC,
    HPET,
    OS
};

/// Listing 2.3.
enum class HPETFail
{
    ACCESS,
    FAULT,
    NOENT,
    MFILE,
    AGAIN,
    BUSY,
    BADF,
    NODEV,
    NOMEM,
    MC32BIT,
    UNKNOWN
};

namespace detail
{

constexpr std::int64_t BILLION = 1000000000;

[[noreturn]] inline void overflow() { throw std::out_of_range("HPTimer overflow"); }

/// What a result is made in before it is looked whether it can be kept.
__extension__ typedef __int128 wide;

/// A result, or std::out_of_range.
inline std::int64_t narrow(wide result)
{
    if (result < std::numeric_limits<std::int64_t>::min()
        || result > std::numeric_limits<std::int64_t>::max()) {
        overflow();
    }
    return static_cast<std::int64_t>(result);
}
/// `count` units of `each` nanoseconds; no two numbers of 64 bits make one that 128 do not hold.
constexpr wide units(std::uint64_t count, std::int64_t each) noexcept
{
    return static_cast<wide>(count) * each;
}
/// Seconds and nanoseconds with a sign, which both parts share.
inline std::int64_t joined(std::uint64_t seconds, std::uint64_t nanoseconds, bool sign)
{
    const wide ns = units(seconds, BILLION) + static_cast<wide>(nanoseconds);
    return narrow(sign ? -ns : ns);
}
/// Nanoseconds in seconds that a program keeps as a double: what is far beyond the range is refused at once.
inline wide from_seconds(double seconds)
{
    constexpr double FAR = 1e30;
    const double ns = seconds * 1e9;
    if (!(ns < FAR && ns > -FAR)) {
        overflow();
    }
    return static_cast<wide>(ns);
}

/// Unix time minus the clock's, ns; and whether it was looked for.
HG_INLINE_ std::atomic<std::int64_t> unix_zero_shift{ 0 };
HG_INLINE_ std::atomic<bool> has_unix_zero_shift{ false };

inline std::int64_t system_time() noexcept
{
    timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::int64_t>(now.tv_sec) * BILLION + now.tv_nsec;
}
inline void find_unix_zero_shift() noexcept
{
    // Between two reads of the other clock, as narrow as it comes.
    std::int64_t narrowest = std::numeric_limits<std::int64_t>::max();
    std::int64_t found = 0;
    for (int attempt = 0; attempt < 16; ++attempt) {
        const auto before = static_cast<std::int64_t>(hg_now_ordered());
        const std::int64_t unix_ns = system_time();
        const auto after = static_cast<std::int64_t>(hg_now_ordered());
        if (after - before < narrowest) {
            narrowest = after - before;
            found = unix_ns - (before + (after - before) / 2);
        }
    }
    unix_zero_shift.store(found, std::memory_order_relaxed);
    has_unix_zero_shift.store(true, std::memory_order_release);
}
inline std::int64_t shift() noexcept
{
    if (!has_unix_zero_shift.load(std::memory_order_acquire)) {
        find_unix_zero_shift();
    }
    return unix_zero_shift.load(std::memory_order_relaxed);
}
inline std::int64_t unix_now() noexcept
{
    const std::int64_t by = shift();
    return static_cast<std::int64_t>(hg_now_ordered()) + by;
}

} // namespace detail

/// A time, or a length of time, in nanoseconds with a sign; and the sleeps of the thesis (section 5.3).
/// Of one object sleeps are interrupted: the object has to live until `Interrupt` has returned.
class HighPerTimer
{
public:
    /// The greatest and the least value.
    static const HighPerTimer HPTimer_MAX;
    static const HighPerTimer HPTimer_MIN;

    /// Changes the source; the one that serves then.
    static TimeSource SetTimerSource(const TimeSource source) noexcept
    {
        if (source == TimeSource::OS) {
            (void)hg_clock_set_source(HG_SOURCE_OS, nullptr);
        } else if (source == TimeSource::TSC
                   && hg_clock_set_source(HG_SOURCE_TSC, nullptr) != HG_OK) {
            (void)hg_clock_set_source(HG_SOURCE_CNTVCT, nullptr);
        }
        return source_now();
    }
    /// Whether the delay is one of 0.02, 0.1, 1 and 10 s. The clock needs none.
    static bool SetClockSkew(const double delay) noexcept
    {
        const auto is = [=](double allowed) { return std::fabs(delay - allowed) < 1e-12; };
        return is(0.02) || is(0.1) || is(1.0) || is(10.0);
    }
    /// Takes the distance to Unix time anew.
    static void InitUnixZeroShift() noexcept { detail::find_unix_zero_shift(); }

    /// Zero.
    constexpr HighPerTimer() noexcept = default;
    /// Throws std::out_of_range for negative parts with a sign, for negative nanoseconds with seconds, and
    /// beyond the range.
    HighPerTimer(std::int64_t seconds, std::int64_t nanoseconds, bool sign = false)
    {
        if (((seconds < 0 || nanoseconds < 0) && sign) || (nanoseconds < 0 && seconds != 0)) {
            throw std::out_of_range("illegal init Parameters of HighPerTimer");
        }
        tics_ = detail::joined(magnitude(seconds), magnitude(nanoseconds),
                               sign || seconds < 0 || nanoseconds < 0);
    }
    /// A number of ticks; with `shift` counted from the clock's own zero rather than from 1970.
    HighPerTimer(std::int64_t tics) : tics_(detail::narrow(detail::wide(tics) + detail::shift())) {}
    /// (Of two numbers the second one are nanoseconds: only a bool is one.)
    template <typename Bool,
              typename = typename std::enable_if<std::is_same<Bool, bool>::value>::type>
    HighPerTimer(std::int64_t tics, Bool shift)
        : tics_(detail::narrow(detail::wide(tics) + (shift ? detail::shift() : 0)))
    {
    }
    HighPerTimer(const timeval &time) : tics_(of(time)) {}
    HighPerTimer(const timespec &time) : tics_(of(time)) {}
    constexpr HighPerTimer(const HighPerTimer &other) noexcept : tics_(other.tics_) {}
    constexpr HighPerTimer(HighPerTimer &&other) noexcept : tics_(other.tics_) {}

    /// The processor's own counter, whatever the source.
    static std::int64_t CPU_Tics() noexcept
    {
#ifdef HG_COUNTER_
        return static_cast<std::int64_t>(hg_counter_ordered_());
#else
        return 0;
#endif
    }
    static void CPU_Tics(std::int64_t &tics) noexcept { tics = CPU_Tics(); }

    bool operator==(const HighPerTimer &other) const noexcept { return tics_ == other.tics_; }
    bool operator!=(const HighPerTimer &other) const noexcept { return tics_ != other.tics_; }
    bool operator<(const HighPerTimer &other) const noexcept { return tics_ < other.tics_; }
    bool operator<=(const HighPerTimer &other) const noexcept { return tics_ <= other.tics_; }
    bool operator>(const HighPerTimer &other) const noexcept { return tics_ > other.tics_; }
    bool operator>=(const HighPerTimer &other) const noexcept { return tics_ >= other.tics_; }

    const HighPerTimer &operator=(const timeval &time)
    {
        tics_ = of(time);
        return *this;
    }
    const HighPerTimer &operator=(const timespec &time)
    {
        tics_ = of(time);
        return *this;
    }
    HighPerTimer &operator=(const HighPerTimer &other) noexcept
    {
        tics_ = other.tics_;
        return *this;
    }
    HighPerTimer &operator=(HighPerTimer &&other) noexcept
    {
        tics_ = other.tics_;
        return *this;
    }
    HighPerTimer &operator+=(const HighPerTimer &other) { return add(other.tics_); }
    HighPerTimer &operator-=(const HighPerTimer &other) { return add(-detail::wide(other.tics_)); }
    HighPerTimer &operator+=(const double seconds) { return add(detail::from_seconds(seconds)); }
    HighPerTimer &operator-=(const double seconds) { return add(-detail::from_seconds(seconds)); }

    /// Zero.
    static HighPerTimer Nil() noexcept { return HighPerTimer(); }

    HighPerTimer &SecAdd(const std::uint64_t seconds)
    {
        return add(detail::units(seconds, detail::BILLION));
    }
    HighPerTimer &USecAdd(const std::uint64_t microseconds) { return add(detail::units(microseconds, 1000)); }
    HighPerTimer &NSecAdd(const std::uint64_t nanoseconds) { return add(detail::units(nanoseconds, 1)); }
    HighPerTimer &TicAdd(const std::uint64_t tics) { return add(detail::units(tics, 1)); }
    HighPerTimer &SecSub(const std::uint64_t seconds)
    {
        return add(-detail::units(seconds, detail::BILLION));
    }
    HighPerTimer &USecSub(const std::uint64_t microseconds) { return add(-detail::units(microseconds, 1000)); }
    HighPerTimer &NSecSub(const std::uint64_t nanoseconds) { return add(-detail::units(nanoseconds, 1)); }
    HighPerTimer &TicSub(const std::uint64_t tics) { return add(-detail::units(tics, 1)); }

    /// Sleeps for this time from now.
    void USecSleep(const std::uint64_t microseconds) const noexcept
    {
        std::uint64_t ns;
        sleep_for(__builtin_mul_overflow(microseconds, UINT64_C(1000), &ns) ? UINT64_MAX : ns);
    }
    void NSecSleep(const std::uint64_t nanoseconds) const noexcept { sleep_for(nanoseconds); }
    void TicsSleep(const std::uint64_t tics) const noexcept { sleep_for(tics); }
    /// Sleeps until a time of the clock itself, not counted from 1970.
    void SleepTo(const std::int64_t tics) const noexcept { sleep_until(tics); }
    /// Sleeps until that time since 1970.
    void SleepTo(const HighPerTimer &time) const noexcept
    {
        std::int64_t own;
        const bool out = __builtin_sub_overflow(time.tics_, detail::shift(), &own);
        sleep_until(out ? (time.tics_ < 0 ? 0 : std::numeric_limits<std::int64_t>::max()) : own);
    }
    /// Sleeps until this time.
    void SleepToThis() const noexcept { SleepTo(*this); }
    /// Sleeps as long as this is.
    void Sleep() const noexcept { sleep_for(tics_ > 0 ? static_cast<std::uint64_t>(tics_) : 0); }
    /// Ends the sleep in progress on this object. Any thread; a signal handler, too.
    void Interrupt() noexcept { (void)hg_interrupt_set(own_interrupt()); }

    /// The time since 1970.
    static HighPerTimer Now() noexcept
    {
        HighPerTimer now;
        now.tics_ = detail::unix_now();
        return now;
    }
    static void Now(HighPerTimer &timer) noexcept { timer.tics_ = detail::unix_now(); }
    void SetNow() noexcept { tics_ = detail::unix_now(); }

    static HighPerTimer DtoHPTimer(const double seconds)
    {
        return HighPerTimer(detail::narrow(detail::from_seconds(seconds)), false);
    }
    static double HPTimertoD(const HighPerTimer &timer) noexcept { return TictoD(timer.tics_); }
    static double TictoD(const std::int64_t tics) noexcept
    {
        return static_cast<double>(tics) / 1e9;
    }
    static HighPerTimer NSectoHPTimer(const std::int64_t nanoseconds)
    {
        return HighPerTimer(nanoseconds, false);
    }
    static std::int64_t HPTimertoNSec(const HighPerTimer &timer) noexcept { return timer.tics_; }

    /// The sign is left out.
    void SetTV(timeval &time) const noexcept
    {
        time.tv_sec = static_cast<time_t>(Seconds());
        time.tv_usec = static_cast<suseconds_t>(USeconds());
    }
    void SetTS(timespec &time) const noexcept
    {
        time.tv_sec = static_cast<time_t>(Seconds());
        time.tv_nsec = static_cast<long>(NSeconds());
    }
    void SetTimer(const std::uint64_t seconds, const std::uint64_t nanoseconds,
                  const bool sign = false)
    {
        tics_ = detail::joined(seconds, nanoseconds, sign);
    }
    void SetTimer(const timeval time) { tics_ = of(time); }
    void SetTimer(const timespec time) { tics_ = of(time); }
    void SetSeconds(const std::int64_t seconds)
    {
        SetTimer(magnitude(seconds), 0, seconds < 0);
    }
    void SetUSeconds(const std::int64_t microseconds)
    {
        const std::uint64_t all = magnitude(microseconds);
        SetTimer(all / 1000000, all % 1000000 * 1000, microseconds < 0);
    }
    void SetNSeconds(const std::int64_t nanoseconds) noexcept { tics_ = nanoseconds; }
    void SetTics(const std::int64_t tics) noexcept { tics_ = tics; }
    HighPerTimer &InvertSign() { return set(detail::narrow(-detail::wide(tics_))); }

    /// The whole seconds, the microseconds and the nanoseconds beyond them, without the sign.
    std::uint64_t Seconds() const noexcept { return magnitude(tics_) / detail::BILLION; }
    std::uint64_t USeconds() const noexcept { return NSeconds() / 1000; }
    std::uint64_t NSeconds() const noexcept { return magnitude(tics_) % detail::BILLION; }
    std::int64_t HPTics() const noexcept { return tics_; }
    bool Negative() const noexcept { return tics_ < 0; }
    bool IsNil() const noexcept { return tics_ == 0; }

    /// Ticks in a microsecond.
    static std::int64_t GetHPFrequency() noexcept { return 1000; }
    static double GetNsecPerTic() noexcept { return 1.0; }
    static TimeSource GetHPSource() noexcept
    {
        // A clock that was just used for the first time has not judged the machine yet.
        static const bool settled = settle();
        (void)settled;
        return source_now();
    }
    static std::int64_t GetUnixZeroShift() noexcept { return detail::shift(); }
    static std::string GetSourceString()
    {
        return GetHPSource() == TimeSource::TSC ? "TSC" : "OS";
    }

    /// The counter alone; else the seconds since 1970; or the local time, of times that are not negative.
    std::string PrintTime(bool HPTimer_only = false, bool UnixTime = true) const
    {
        if (HPTimer_only) {
            return std::to_string(tics_);
        }
        char fraction[16];
        std::snprintf(fraction, sizeof fraction, ".%09u", static_cast<unsigned>(NSeconds()));
        std::string seconds = std::to_string(Seconds());
        if (Negative()) {
            const std::size_t fill = seconds.size() < 9 ? 9 - seconds.size() : 0;
            return std::string(fill, ' ') + "-" + seconds + fraction;
        }
        if (UnixTime) {
            const std::size_t fill = seconds.size() < 10 ? 10 - seconds.size() : 0;
            return std::string(fill, ' ') + seconds + fraction;
        }
        const auto time = static_cast<time_t>(Seconds());
        tm local;
        char text[64];
        if (localtime_r(&time, &local) == nullptr
            || std::strftime(text, sizeof text, "%a %b %d %Y %H:%M:%S", &local) == 0) {
            return std::string();
        }
        return std::string(text) + fraction + "\t Timer counter: " + std::to_string(tics_);
    }

    /// CLOCK_REALTIME, ns.
    static std::int64_t GetSysTime() noexcept { return detail::system_time(); }
    /// The same as "seconds.nanoseconds".
    static std::string SysNow()
    {
        const std::int64_t now = GetSysTime();
        char text[48];
        std::snprintf(text, sizeof text, "%lld.%09lld", static_cast<long long>(now / detail::BILLION),
                      static_cast<long long>(now % detail::BILLION));
        return text;
    }

private:
    struct exactly
    {
        std::int64_t tics;
    };
    constexpr explicit HighPerTimer(exactly value) noexcept : tics_(value.tics) {}

    static constexpr std::uint64_t magnitude(std::int64_t value) noexcept
    {
        return value < 0 ? UINT64_C(0) - static_cast<std::uint64_t>(value)
                         : static_cast<std::uint64_t>(value);
    }
    static std::int64_t of(const timeval &time)
    {
        if (time.tv_usec < 0 || time.tv_usec >= 1000000) {
            throw std::out_of_range("illegal init Parameters of HighPerTimer");
        }
        return of(timespec{ time.tv_sec, time.tv_usec * 1000 });
    }
    static std::int64_t of(const timespec &time)
    {
        if (time.tv_nsec < 0 || time.tv_nsec >= detail::BILLION) {
            throw std::out_of_range("illegal init Parameters of HighPerTimer");
        }
        return detail::narrow(detail::wide(time.tv_sec) * detail::BILLION + time.tv_nsec);
    }
    HighPerTimer &set(std::int64_t tics) noexcept
    {
        tics_ = tics;
        return *this;
    }
    HighPerTimer &add(detail::wide ns) { return set(detail::narrow(tics_ + ns)); }
    hg_interrupt *own_interrupt() const noexcept
    {
        constexpr std::uintptr_t ALIGNED = alignof(hg_interrupt);
        static_assert(ALIGNED <= sizeof(hg_interrupt), "there is room for any place of the object");
        const auto begin = reinterpret_cast<std::uintptr_t>(room_);
        return reinterpret_cast<hg_interrupt *>((begin + ALIGNED - 1) / ALIGNED * ALIGNED);
    }
    void sleep_for(std::uint64_t length_ns) const noexcept
    {
        (void)hg_interrupt_clear(own_interrupt());
        (void)hg_sleep_for(length_ns, own_interrupt(), nullptr, nullptr);
    }
    void sleep_until(std::int64_t time_ns) const noexcept
    {
        (void)hg_interrupt_clear(own_interrupt());
        const auto time = time_ns > 0 ? static_cast<std::uint64_t>(time_ns) : 0;
        (void)hg_sleep_until(time, own_interrupt(), nullptr, nullptr);
    }
    static TimeSource source_now() noexcept
    {
        return hg_clock_source() == HG_SOURCE_OS ? TimeSource::OS : TimeSource::TSC;
    }
    static bool settle() noexcept
    {
        for (int attempt = 0; attempt < 8 && hg_clock_source() == HG_SOURCE_OS; ++attempt) {
            const hg_maintained done = hg_clock_maintain();
            (void)hg_sleep_for(std::min(done.next_ns, UINT64_C(2000000)), nullptr, nullptr, nullptr);
        }
        return true;
    }

    std::int64_t tics_ = 0;
    /// Room for an interrupt where it is aligned as it has to be: before C++17 no `new` and no vector aligns an
    /// object to 64 bytes. All zero is HG_INTERRUPT_INIT.
    mutable unsigned char room_[2 * sizeof(hg_interrupt) - 1] = {};
};

// Made by the compiler: there before anything runs.
HG_INLINE_ const HighPerTimer HighPerTimer::HPTimer_MAX{ exactly{
    std::numeric_limits<std::int64_t>::max() } };
HG_INLINE_ const HighPerTimer HighPerTimer::HPTimer_MIN{ exactly{
    std::numeric_limits<std::int64_t>::min() } };

inline HighPerTimer operator+(const HighPerTimer &timer, const std::uint64_t seconds)
{
    HighPerTimer sum(timer);
    return sum.SecAdd(seconds);
}
inline HighPerTimer operator-(const HighPerTimer &timer, const std::uint64_t seconds)
{
    HighPerTimer difference(timer);
    return difference.SecSub(seconds);
}
inline HighPerTimer operator+(const HighPerTimer &a, const HighPerTimer &b)
{
    HighPerTimer sum(a);
    return sum += b;
}
inline HighPerTimer operator-(const HighPerTimer &a, const HighPerTimer &b)
{
    HighPerTimer difference(a);
    return difference -= b;
}
inline std::ostream &operator<<(std::ostream &stream, const HighPerTimer &timer)
{
    return stream << timer.PrintTime();
}

/// Facts about CPU, TSC and HPET.
class AccessTimeHardware
{
public:
    AccessTimeHardware() = delete;
    static bool IsRDTSCPSupported() { return hardware().rdtscp; }
    static bool IsConstantTSC() { return hardware().constant_tsc; }
    static bool IsInvariantTSC() { return hardware().invariant_tsc; }
    static std::string GetBrandString() { return hardware().brand; }
    /// Why the HPET cannot be used; UNKNOWN also where it can.
    static HPETFail HpetFailReason()
    {
        switch (hardware().hpet) {
        case HG_HPET_NOT_PRESENT:
            return HPETFail::NOENT;
        case HG_HPET_PERMISSION:
            return HPETFail::ACCESS;
        case HG_HPET_BUSY:
            return HPETFail::BUSY;
        case HG_HPET_TOO_MANY_FILES:
            return HPETFail::MFILE;
        case HG_HPET_NO_MEMORY:
            return HPETFail::NOMEM;
        case HG_HPET_MAP_REFUSED:
            return HPETFail::NODEV;
        case HG_HPET_WIDTH32:
            return HPETFail::MC32BIT;
        default:
            return HPETFail::UNKNOWN;
        }
    }

private:
    /// Looked at once.
    static const hg_hardware &hardware()
    {
        static const hg_hardware found = look();
        return found;
    }
    static hg_hardware look()
    {
        hg_hardware found;
        hg_error error;
        if (hg_hardware_look(&found, &error) != HG_OK) {
            throw std::runtime_error(error.text);
        }
        return found;
    }
};

} // namespace thesis

using thesis::AccessTimeHardware;
using thesis::HighPerTimer;
using thesis::HPETFail;
using thesis::TimeSource;

} // namespace hourglass

/// Where the thesis' library has them.
namespace HPTimer = hourglass::thesis;

#undef HG_INLINE_

#endif
