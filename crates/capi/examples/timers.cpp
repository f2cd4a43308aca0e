// Timers with actions, and clocks of std::chrono.
#include <hourglass.hpp>

#include <atomic>
#include <iostream>

using namespace std::chrono_literals;

int main()
try {
    hourglass::timer_service service;
    hourglass::timer_owner owner = service.owner("example");
    hourglass::port port(16);

    std::atomic<int> ticks{ 0 };
    auto tick = owner.timer(hourglass::action::immediate([&](const hg_expiration &) { ++ticks; }));
    tick.arm_every(1ms);

    auto timeout = owner.timer(hourglass::action::send(port, 42));
    timeout.arm_at(hourglass::steady_clock::now() + 10ms);
    const hg_message message = port.receive();

    std::cout << "message " << message.tag << ", "
              << message.expiration.now_ns - message.expiration.expiry_ns << " ns late, after "
              << ticks << " ticks\n";
    return message.tag == 42 ? 0 : 1;
} catch (const hourglass::error &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
