// A program for the thesis' library, which only changed its include (was: "HighPerTimer.h").
#include <hourglass.hpp>

#include <iostream>
#include <vector>

using namespace HPTimer;

int main()
{
    std::cout << "Source: " << HighPerTimer::GetSourceString() << ", "
              << HighPerTimer::GetHPFrequency() << " ticks a microsecond\n"
              << "From " << HighPerTimer::HPTimer_MIN << " to " << HighPerTimer::HPTimer_MAX << '\n'
              << "CPU: " << AccessTimeHardware::GetBrandString() << '\n';

    HighPerTimer before, after, took;
    std::vector<double> late;
    for (int round = 0; round < 100; ++round) {
        HighPerTimer::Now(before);
        before.USecSleep(100);
        HighPerTimer::Now(after);
        took = after - before;
        took.USecSub(100);
        late.push_back(HighPerTimer::HPTimertoD(took));
    }
    const double mean = std::accumulate(late.begin(), late.end(), 0.0) / 100;
    std::cout << "Mean miss: " << mean << " s, now " << after << '\n';
    return 0;
}
