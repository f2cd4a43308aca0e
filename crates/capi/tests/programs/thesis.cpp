// The thesis' class: its interface (chapter 4), as its users rely on it.
#include <hourglass.hpp>

#include <atomic>
#include <sstream>
#include <thread>
#include <vector>

#include "check.h"

using namespace HPTimer;

template <typename Work> static bool is_out_of_range(Work &&work)
{
    try {
        work();
    } catch (const std::out_of_range &) {
        return true;
    }
    return false;
}

static void construction()
{
    const HighPerTimer zero;
    CHECK(zero.IsNil() && zero == HighPerTimer::Nil() && !zero.Negative());
    const HighPerTimer time(12, 345678901);
    CHECK(time.Seconds() == 12 && time.NSeconds() == 345678901 && time.USeconds() == 345678);
    const HighPerTimer negative(12, 345678901, true);
    CHECK(negative.Negative() && negative.Seconds() == 12 && negative.NSeconds() == 345678901);
    // A sign by either part: seconds share theirs, nanoseconds alone may have one.
    CHECK(HighPerTimer(-12, 345678901) == negative);
    CHECK(HighPerTimer(0, -5).HPTics() == -5 && HighPerTimer(0, 2500000000LL).Seconds() == 2);
    CHECK(is_out_of_range([] { HighPerTimer(-1, 0, true); }));
    CHECK(is_out_of_range([] { HighPerTimer(1, -1); }));
    // Listing 4.1.
    CHECK(is_out_of_range([] { HighPerTimer(std::numeric_limits<std::int64_t>::max(), 0); }));
    CHECK(is_out_of_range([] { HighPerTimer(std::numeric_limits<std::int64_t>::min(), 0); }));
    CHECK(is_out_of_range([] { HighPerTimer(9223372036, 854775808); }));
    CHECK(HighPerTimer(9223372036, 854775807) == HighPerTimer::HPTimer_MAX);
    // Listing 4.4.
    const timeval tv{ 7, 250000 };
    const timespec ts{ 7, 250000000 };
    CHECK(HighPerTimer(tv) == HighPerTimer(ts) && HighPerTimer(tv) == HighPerTimer(7, 250000000));
    CHECK(is_out_of_range([] { HighPerTimer(timespec{ 0, 1000000000 }); }));
    CHECK(is_out_of_range([] { HighPerTimer(timeval{ 9300000000, 0 }); }));
    HighPerTimer copy(time), assigned;
    HighPerTimer moved(std::move(copy));
    assigned = moved;
    CHECK(assigned == time);
    assigned = tv;
    CHECK(assigned == HighPerTimer(ts));
    assigned = ts;
    timeval back{};
    timespec fine{};
    assigned.SetTV(back);
    assigned.SetTS(fine);
    CHECK(back.tv_sec == 7 && back.tv_usec == 250000 && fine.tv_nsec == 250000000);
    // Ticks, counted from the clock's zero and from 1970.
    CHECK(HighPerTimer(std::int64_t{ 5 }, false).HPTics() == 5);
    CHECK(HighPerTimer(std::int64_t{ 5 }).HPTics() == 5 + HighPerTimer::GetUnixZeroShift());
    CHECK(is_out_of_range([] { HighPerTimer(std::numeric_limits<std::int64_t>::max(), true); }));
}

static void arithmetic()
{
    const HighPerTimer a(5, 600000000), b(2, 700000000);
    CHECK(a + b == HighPerTimer(8, 300000000) && a - b == HighPerTimer(2, 900000000));
    CHECK((b - a).Negative() && (b - a).Seconds() == 2 && (b - a).NSeconds() == 900000000);
    CHECK(a + 3 == HighPerTimer(8, 600000000) && a - 3 == HighPerTimer(2, 600000000));
    CHECK(a > b && a >= b && b < a && b <= a && a != b && !(a == b));
    HighPerTimer sum(a);
    sum += b;
    sum -= b;
    sum += 0.5;
    sum -= 0.25;
    CHECK(sum == HighPerTimer(5, 850000000));
    sum.SecAdd(1).USecAdd(2).NSecAdd(3).TicAdd(4);
    CHECK(sum == HighPerTimer(6, 850002007));
    sum.SecSub(1).USecSub(2).NSecSub(3).TicSub(4);
    CHECK(sum == HighPerTimer(5, 850000000));
    CHECK(HighPerTimer(3, 0).InvertSign() == HighPerTimer(-3, 0));
    CHECK(HighPerTimer::DtoHPTimer(1.5) == HighPerTimer(1, 500000000));
    CHECK(HighPerTimer::HPTimertoD(HighPerTimer(-1, 500000000)) == -1.5);
    CHECK(HighPerTimer::TictoD(250000000) == 0.25);
    CHECK(HighPerTimer::HPTimertoNSec(HighPerTimer::NSectoHPTimer(-77)) == -77);
    HighPerTimer set;
    set.SetSeconds(-4);
    CHECK(set == HighPerTimer(-4, 0));
    set.SetUSeconds(-1500000);
    CHECK(set == HighPerTimer(-1, 500000000));
    set.SetNSeconds(-5);
    CHECK(set.HPTics() == -5);
    set.SetTimer(1, 2, true);
    CHECK(set.HPTics() == -1000000002);
    set.SetTics(9);
    CHECK(set.HPTics() == 9);
}

static void the_ends_throw()
{
    const HighPerTimer &max = HighPerTimer::HPTimer_MAX, &min = HighPerTimer::HPTimer_MIN;
    const HighPerTimer one(std::int64_t{ 1 }, false);
    CHECK(max.Seconds() == 9223372036 && min.Negative() && max > min);
    CHECK(is_out_of_range([&] { max + one; }) && is_out_of_range([&] { min - one; }));
    CHECK(is_out_of_range([&] { one - min; }) && is_out_of_range([&] { max - min; }));
    CHECK(is_out_of_range([&] { max + 1; }) && is_out_of_range([&] { min - 1; }));
    CHECK(is_out_of_range([&] { HighPerTimer t(max); t.SecAdd(1); }));
    CHECK(is_out_of_range([&] { HighPerTimer t; t.USecAdd(UINT64_MAX); }));
    CHECK(is_out_of_range([&] { HighPerTimer t(min); t.NSecSub(1); }));
    CHECK(is_out_of_range([&] { HighPerTimer t; t += 1e30; }));
    CHECK(is_out_of_range([&] { HighPerTimer t; t -= std::nan(""); }));
    CHECK(is_out_of_range([&] { HighPerTimer t(min); t.InvertSign(); }));
    CHECK(is_out_of_range([&] { HighPerTimer t; t.SetSeconds(std::numeric_limits<std::int64_t>::max()); }));
    CHECK(is_out_of_range([&] { HighPerTimer::DtoHPTimer(1e10); }));
    // What can be kept does not throw, however large the parts are of which it is made.
    CHECK(HighPerTimer(9223372036, 854775808, true) == min);
    CHECK(HighPerTimer(timespec{ -9223372037, 145224192 }) == min);
    CHECK(is_out_of_range([] { HighPerTimer(timespec{ -9223372037, 145224191 }); }));
    CHECK(HighPerTimer(std::int64_t{ -1 }, false) - min == max && (max + min).HPTics() == -1);
    HighPerTimer far(min);
    CHECK(far.SecAdd(18446744073) == HighPerTimer(9223372036, 145224192));
    far.SetTics(max.HPTics());
    CHECK(far.NSecSub(UINT64_MAX) == min);
    CHECK(far.NSecAdd(UINT64_MAX) == max && far.USecSub(18446744073709551)
              == HighPerTimer(-9223372036, 854775193));
    far.SetTics(min.HPTics());
    CHECK((far += 1e10) == HighPerTimer(776627963, 145224192));
    far.SetTics(max.HPTics());
    CHECK((far -= 1e10) == HighPerTimer(-776627963, 145224193));
    far.SetSeconds(-9223372036);
    CHECK(far.Seconds() == 9223372036 && far.Negative());
    far.SetTimer(9223372036, 854775808, true);
    CHECK(far == min);
    CHECK(is_out_of_range([&] { far.SetTimer(9223372036, 854775808); }) && far == min);
    // What throws leaves the object as it was.
    HighPerTimer kept(max);
    CHECK(is_out_of_range([&] { kept += one; }) && kept == max);
}

static void printing()
{
    std::ostringstream stream;
    stream << HighPerTimer(12, 5) << "|" << HighPerTimer(-12, 5);
    CHECK(stream.str() == "        12.000000005|       -12.000000005");
    CHECK(HighPerTimer(1, 5).PrintTime(true) == "1000000005");
    CHECK(HighPerTimer(1234567890, 5).PrintTime() == "1234567890.000000005");
    const std::string local = HighPerTimer(1234567890, 5).PrintTime(false, false);
    CHECK(local.find("2009") != std::string::npos && local.find(".000000005\t") != std::string::npos);
    CHECK(HighPerTimer(-1, 0).PrintTime(false, false) == "        -1.000000000");
    CHECK(HighPerTimer::SysNow().find('.') != std::string::npos);
}

static void now()
{
    const HighPerTimer before = HighPerTimer::NSectoHPTimer(HighPerTimer::GetSysTime());
    HighPerTimer read;
    HighPerTimer::Now(read);
    const HighPerTimer after = HighPerTimer::NSectoHPTimer(HighPerTimer::GetSysTime());
    // From the Unix epoch. One-sided by a second each, since somebody may set the clock.
    CHECK(read + 1 > before && read < after + 1);
    HighPerTimer last = HighPerTimer::Now();
    for (int round = 0; round < 10000; ++round) {
        const HighPerTimer next = HighPerTimer::Now();
        CHECK(next >= last);
        last = next;
    }
    last.SetNow();
    std::int64_t tics = 0;
    HighPerTimer::CPU_Tics(tics);
    CHECK(HighPerTimer::CPU_Tics() >= tics);
    HighPerTimer::InitUnixZeroShift();
}

template <typename Sleep> static void lasts(std::int64_t at_least_ns, Sleep &&sleep)
{
    const HighPerTimer before = HighPerTimer::Now();
    sleep();
    CHECK((HighPerTimer::Now() - before).HPTics() >= at_least_ns);
}

static void sleeping()
{
    const HighPerTimer timer(0, 400000);
    lasts(300000, [&] { timer.USecSleep(300); });
    lasts(300000, [&] { timer.NSecSleep(300000); });
    lasts(300000, [&] { timer.TicsSleep(300000); });
    lasts(400000, [&] { timer.Sleep(); });
    const HighPerTimer wake = HighPerTimer::Now() + HighPerTimer(0, 500000);
    wake.SleepToThis();
    CHECK(HighPerTimer::Now() >= wake);
    const HighPerTimer later = HighPerTimer::Now() + HighPerTimer(0, 500000);
    timer.SleepTo(later);
    CHECK(HighPerTimer::Now() >= later);
    timer.SleepTo(static_cast<std::int64_t>(hg_now() + 1000));
    HighPerTimer::HPTimer_MIN.SleepToThis();
    HighPerTimer(-1, 0).Sleep();
}

static void interrupting()
{
    HighPerTimer timer;
    // Early: cleared by the next sleep, as in listing 5.5.
    timer.Interrupt();
    lasts(300000, [&] { timer.USecSleep(300); });
    std::atomic<bool> over{ false };
    std::thread other([&] {
        // Again and again, since one that comes before the sleep is cleared by it.
        while (!over) {
            timer.Interrupt();
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    });
    timer.USecSleep(600000000);
    timer.SleepTo(HighPerTimer::HPTimer_MAX);
    over = true;
    other.join();
    // Each object has its own, wherever it lies: before C++17 a vector gives an object 16 bytes to be aligned to,
    // and sleeps of such objects were refused without a word.
    std::vector<HighPerTimer> several(4);
    for (const HighPerTimer &one : several) {
        lasts(300000, [&] { one.USecSleep(300); });
    }
    several[0].Interrupt();
    lasts(300000, [&] { several[1].USecSleep(300); });
}

static void sources_and_hardware()
{
    const TimeSource source = HighPerTimer::GetHPSource();
    CHECK(source != TimeSource::HPET && HighPerTimer::SetTimerSource(TimeSource::HPET) == source);
    const HighPerTimer before = HighPerTimer::Now();
    CHECK(HighPerTimer::SetTimerSource(TimeSource::OS) == TimeSource::OS);
    CHECK(HighPerTimer::GetSourceString() == "OS" && HighPerTimer::Now() >= before);
    CHECK(HighPerTimer::GetHPFrequency() == 1000 && HighPerTimer::GetNsecPerTic() == 1.0);
    CHECK(HighPerTimer::SetClockSkew(0.1) && !HighPerTimer::SetClockSkew(0.3));
    (void)AccessTimeHardware::IsRDTSCPSupported();
    (void)AccessTimeHardware::IsConstantTSC();
    (void)AccessTimeHardware::IsInvariantTSC();
    (void)AccessTimeHardware::GetBrandString();
    (void)AccessTimeHardware::HpetFailReason();
}

int main()
{
    construction();
    arithmetic();
    the_ends_throw();
    printing();
    now();
    sleeping();
    interrupting();
    sources_and_hardware();
    return 0;
}
