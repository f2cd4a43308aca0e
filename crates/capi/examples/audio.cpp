// Blocks of audio: 64 samples at 48 kHz, one block every 1.333 ms on a thread of its own, handed to whoever
// plays them by waking that one; all times are of std::chrono.
#include <hourglass.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <iostream>

using namespace std::chrono_literals;
using hourglass::steady_clock;

namespace
{

constexpr int BLOCK = 64, RATE = 48000, BLOCKS = 100;

struct synth
{
    double phase = 0.0;
    std::array<float, BLOCK> block{};

    void fill() noexcept
    {
        constexpr double STEP = 2.0 * 3.14159265358979 * 440.0 / RATE;
        for (float &sample : block) {
            sample = static_cast<float>(std::sin(phase));
            phase = std::fmod(phase + STEP, 2.0 * 3.14159265358979);
        }
    }
};

} // namespace

int main()
try {
    hourglass::check_abi();
    if (const auto why = hourglass::reserve_check(300us, 1333us)) {
        std::cout << "without a reservation: " << why->what() << '\n';
    }

    // 750 blocks a second, exactly, in the long run.
    hg_periodic_settings settings{};
    settings.name = "audio";
    settings.hertz = RATE / BLOCK;
    settings.budget_ns = 1000000;

    synth voice;
    std::atomic<int> blocks{ 0 };
    hourglass::thread_handle player;
    std::chrono::nanoseconds latest{ 0 };
    hourglass::periodic_thread audio(settings, [&](hourglass::job &job) {
        const auto begun = steady_clock::now();
        latest = std::max(latest, begun - job.release());
        voice.fill();
        const bool goes_on = ++blocks < BLOCKS;
        player.unpark();
        return goes_on;
    });

    // The player: woken by each block, or by nobody for 50 ms.
    int heard = 0;
    while (heard < BLOCKS) {
        hourglass::park_for(50ms);
        heard = blocks;
    }
    audio.join();

    const hg_periodic_statistics found = audio.statistics();
    std::cout << found.jobs << " blocks, " << found.misses << " late, " << found.lost
              << " left out; begun at most "
              << std::chrono::duration_cast<std::chrono::microseconds>(latest).count()
              << " us after their time\n";
    return found.jobs == BLOCKS ? 0 : 1;
} catch (const hourglass::error &error) {
    std::cerr << hg_status_name(error.kind()) << ": " << error.what() << '\n';
    return 1;
}
