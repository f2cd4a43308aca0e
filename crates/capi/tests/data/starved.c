/* A loop of 1 ms at FIFO 10 that keeps its run: `starved FOLDER CPU`. Compiled as C and as C++. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#include <hourglass.hpp>
#else
#include <hourglass.h>
#endif

#define PERIOD_NS 1000000

/* After the recorder was made, as most programs do. */
static int take(int cpu)
{
    struct sched_param priority;
    cpu_set_t cpus;
    memset(&priority, 0, sizeof priority);
    priority.sched_priority = 10;
    CPU_ZERO(&cpus);
    CPU_SET(cpu, &cpus);
    return sched_setaffinity(0, sizeof cpus, &cpus) != 0 || sched_setscheduler(0, SCHED_FIFO, &priority) != 0;
}

#ifdef __cplusplus
static int control(const char *folder, int cpu)
{
    hourglass::own_loop loop(std::chrono::nanoseconds(PERIOD_NS), folder);
    if (take(cpu))
        return 3;
    uint64_t due = hg_now();
    for (int period = 0; period < 400; period++, due += PERIOD_NS) {
        hg_sleep_until(due, nullptr, nullptr, nullptr);
        loop.begin_period(hourglass::steady_clock::time_point(std::chrono::nanoseconds(due)));
        loop.end_period();
    }
    return loop.finish().summary().gaps > 0 ? 0 : 1;
}
#else
static int control(const char *folder, int cpu)
{
    hg_loop_spec spec = { 0 };
    hg_loop loop;
    hg_recording recording;
    hg_recording_summary found;
    spec.period_ns = PERIOD_NS;
    spec.folder = folder;
    if (hg_loop_start(&spec, &loop, NULL) != HG_OK)
        return 2;
    if (take(cpu))
        return 3;
    uint64_t due = hg_now();
    for (int period = 0; period < 400; period++, due += PERIOD_NS) {
        hg_sleep_until(due, NULL, NULL, NULL);
        hg_loop_begin_due(loop, due);
        hg_loop_end(loop);
    }
    if (hg_loop_finish(loop, &recording, NULL) != HG_OK || hg_recording_look(recording, &found, NULL) != HG_OK
        || hg_recording_free(recording, NULL) != HG_OK)
        return 2;
    return found.gaps > 0 ? 0 : 1;
}
#endif

int main(int count, char **words)
{
    return count == 3 ? control(words[1], atoi(words[2])) : 2;
}
