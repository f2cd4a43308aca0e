/* Spans of a signal handler within those of the thread that it interrupts, for a second, or until there are enough: each is compared with what
 * the kernel counted for the thread just outside of it and just inside of it. */
#define _GNU_SOURCE
#include <hourglass.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>

#include "check.h"

static hg_error error;

/* Of the handler: spans, those that are unknown because they came while the kernel was asked, wrong answers. */
static volatile sig_atomic_t ended, busy, wrong;

static uint64_t switches(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_THREAD, &usage) != 0) {
        wrong++;
        return 0;
    }
    return (uint64_t)(usage.ru_nvcsw + usage.ru_nivcsw);
}

/* Whether an answer is right of a span within `outside` switches, with `inside` switches in it. */
static bool right(hg_status status, const hg_loss *loss, uint64_t outside, uint64_t inside)
{
    const uint64_t found = loss->voluntary + loss->involuntary;
    if (status == HG_EMPTY) {
        return inside == 0;
    }
    return status == HG_OK && found > 0 && found >= inside && found <= outside
        && loss->off_cpu_least_ns <= loss->off_cpu_most_ns && loss->off_cpu_most_ns <= loss->length_ns;
}

static void spans(int depth)
{
    const uint64_t first = switches();
    hg_span span = hg_witness_begin();
    const uint64_t second = switches();
    if (depth > 0) {
        const struct timespec length = { 0, 20000 };
        (void)nanosleep(&length, NULL);
        spans(depth - 1);
    }
    const uint64_t third = switches();
    hg_loss loss;
    const hg_status status = hg_witness_end(&span, &loss, NULL);
    ended++;
    if (status == HG_BUSY) {
        busy++;
    } else if (!right(status, &loss, switches() - first, third - second)) {
        wrong++;
    }
}

/* Anew each time, or a slow machine does nothing but handle signals. */
static void signal_soon(void)
{
    const struct itimerval soon = { { 0, 0 }, { 0, 300 } };
    if (setitimer(ITIMER_REAL, &soon, NULL) != 0) {
        wrong++;
    }
}

static void on_signal(int number)
{
    (void)number;
    spans(1);
    signal_soon();
}

static double now_s(void)
{
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(void)
{
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    struct sigaction action = { 0 };
    hg_witness_view view;
    long all = 0, lost = 0;
    OK(hg_check_abi(&error));
    OK(hg_witness_open(&view, &error));
    action.sa_handler = on_signal;
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    signal_soon();
    const double begun = now_s();
    while (now_s() < begun + 1 || ((ended < 20 || lost < 10) && now_s() < begun + 60)) {
        const uint64_t first = switches();
        hg_span outer = hg_witness_begin();
        const uint64_t second = switches();
        hg_span inner = hg_witness_begin();
        hg_loss loss;
        volatile unsigned turn;
        for (turn = 0; turn < (unsigned)(all % 7) * 1000; turn++) {
        }
        const hg_status of_inner = hg_witness_end(&inner, &loss, NULL);
        CHECK(of_inner == HG_EMPTY || of_inner == HG_OK);
        const uint64_t third = switches();
        const hg_status status = hg_witness_end(&outer, &loss, NULL);
        CHECK(right(status, &loss, switches() - first, third - second));
        lost += status == HG_OK;
        all++;
        let_signals_in();
    }
    CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
    if (wrong != 0 || ended < 20 || lost < 10) {
        fprintf(stderr, "%ld spans, %ld lost; of the handler %d, %d busy, %d wrong\n", all, lost, (int)ended, (int)busy,
                (int)wrong);
        return 1;
    }
    return 0;
}
