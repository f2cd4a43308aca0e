/* Bounded reads between readings of the kernel's clock, inline and by the call; with SLEW=1 while the rate of
 * that clock is changed as a daemon does: it went up by 100 ppm for 1.2 s and back, and 7.9 of 70 million
 * reads were outside their bounds, by up to 57 us. What is changed is put back, also when this is killed. */
#define _GNU_SOURCE
#include <hourglass.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static uint64_t kernel_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t reads, outside, worst_ns, by_counter;

static void judge(uint64_t before, hg_bounds bounds, uint64_t after)
{
    uint64_t off = 0;
    if (bounds.latest_ns < before) {
        off = before - bounds.latest_ns;
    } else if (bounds.earliest_ns > after) {
        off = bounds.earliest_ns - after;
    }
    reads++;
    outside += off != 0;
    worst_ns = off > worst_ns ? off : worst_ns;
    by_counter += bounds.status == HG_CLOCK_STEADY || bounds.status == HG_CLOCK_SETTLING;
}

/* Reads for so long, every way there is. */
static void bracket(const hg_page *page, int64_t for_ns)
{
    const uint64_t end = kernel_ns() + (uint64_t)for_ns;
    uint64_t before = kernel_ns(), turn;
    for (turn = 0; before < end; turn++) {
        hg_bounds bounds;
        uint64_t after;
        switch (turn % 4) {
        case 0: bounds = hg_now_bounded(); break;
        case 1: bounds = hg_now_bounded_ordered(); break;
        case 2: bounds = hg_now_bounded_call(); break;
        default: bounds = hg_page_now_bounded(page); break;
        }
        after = kernel_ns();
        judge(before, bounds, after);
        before = after;
    }
}

static void set(unsigned modes, long frequency_ppm, long tick_us)
{
    struct timex state;
    memset(&state, 0, sizeof state);
    state.modes = modes;
    state.freq = frequency_ppm * 65536;
    state.tick = tick_us;
    CHECK(adjtimex(&state) != -1);
}

/* A child that puts rate and tick back when the other end of the line is closed, by whatever. */
static pid_t guard(struct timex before, int line[2])
{
    pid_t child;
    CHECK(pipe(line) == 0);
    child = fork();
    if (child == 0) {
        char byte;
        setsid();
        signal(SIGTERM, SIG_IGN);
        close(line[1]);
        while (read(line[0], &byte, 1) == -1 && errno == EINTR) {
        }
        before.modes = ADJ_FREQUENCY | ADJ_TICK;
        _exit(adjtimex(&before) == -1);
    }
    CHECK(child > 0);
    close(line[0]);
    return child;
}

static void slew(const hg_page *page)
{
    static const struct {
        unsigned modes;
        long frequency_ppm, tick_us;
        int64_t for_ns;
    } steps[] = {
        { ADJ_FREQUENCY, 100, 0, 200 * MS },   { ADJ_FREQUENCY, 0, 0, 50 * MS },
        { ADJ_FREQUENCY, 500, 0, 30 * MS },    { ADJ_FREQUENCY, -500, 0, 30 * MS },
        { ADJ_TICK, 0, 10833, 30 * MS },       { ADJ_TICK, 0, 9167, 30 * MS },
        { ADJ_TICK, 0, 10000, 10 * MS },       { ADJ_FREQUENCY, 0, 0, 50 * MS },
    };
    struct timex before;
    int line[2], status, round;
    size_t step;
    pid_t child;
    memset(&before, 0, sizeof before);
    CHECK(adjtimex(&before) != -1);
    if (!(before.status & STA_UNSYNC)) {
        printf("not slewed: a daemon keeps this machine's clock\n");
        return;
    }
    before.modes = ADJ_FREQUENCY | ADJ_TICK;
    if (adjtimex(&before) == -1) {
        printf("not slewed: CAP_SYS_TIME is missing\n");
        return;
    }
    child = guard(before, line);
    for (round = 0; round < 2; round++) {
        for (step = 0; step < sizeof steps / sizeof steps[0]; step++) {
            set(steps[step].modes, steps[step].frequency_ppm, steps[step].tick_us);
            bracket(page, steps[step].for_ns);
        }
    }
    close(line[1]);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    const char *wanted = getenv("SLEW");
    hg_error error;
    hg_page page;
    int32_t fd;
    OK(hg_clock_share(&fd, &error));
    OK(hg_page_open(fd, &page, &error));
    close(fd);
    bracket(&page, 60 * MS);
    if (wanted && wanted[0] == '1') {
        slew(&page);
    }
    printf("%llu reads, %llu outside, by %llu ns at most, %llu by a counter\n", (unsigned long long)reads,
           (unsigned long long)outside, (unsigned long long)worst_ns, (unsigned long long)by_counter);
    CHECK(outside == 0);
    OK(hg_page_close(&page, &error));
    return 0;
}
