/* Spans: what the header does by itself, what the kernel counts, and what is the caller's mistake. */
#define _GNU_SOURCE
#include <hourglass.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static hg_error error;

static long waits(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_THREAD, &usage) == 0);
    return usage.ru_nvcsw;
}

static void sleep_ms(long ms)
{
    const struct timespec length = { 0, ms * 1000000 };
    (void)nanosleep(&length, NULL);
}

/* Of so many spans the best counts: a host that takes the processor widens intervals downwards, and on a busy machine
 * a thread may wait for the CPU for longer than it slept. */
enum { TRIES = 8 };

/* Whether it had a lower end worth the name, and its cause. */
static bool a_sleep(void)
{
    hg_loss loss;
    bool good;
    const long before = waits();
    hg_span outer = hg_witness_begin();
    hg_span span = hg_witness_begin();
    sleep_ms(12);
    OK(hg_witness_end(&span, &loss, &error));
    CHECK(loss.voluntary >= 1 && loss.voluntary <= (uint64_t)(waits() - before));
    CHECK(loss.off_cpu_least_ns <= loss.off_cpu_most_ns && loss.off_cpu_most_ns >= 12 * MS);
    CHECK(loss.off_cpu_most_ns <= loss.length_ns);
    good = loss.off_cpu_least_ns >= 6 * MS && strcmp(loss.cause, "context_switch_voluntary") == 0
        && loss.confidence_ppm > 500000;
    /* Ended twice. */
    CHECK(hg_witness_end(&span, &loss, &error) == HG_STALE);
    CHECK(hg_witness_detach(&span, &error) == HG_STALE && hg_witness_attach(&span, &error) == HG_STALE);
    OK(hg_witness_end(&outer, &loss, NULL));
    CHECK(loss.voluntary >= 1);
    return good;
}

static void nothing(void)
{
    hg_loss loss;
    int at, quiet = 0;
    for (at = 0; at < 1000; at++) {
        hg_span span = hg_witness_begin();
        /* Every other end writes why it has no loss, whether the header ended it or the library. */
        hg_error *told = at & 1 ? &error : NULL;
        memset(&error, 1, sizeof error);
        const hg_status status = hg_witness_end(&span, &loss, told);
        quiet += status == HG_EMPTY;
        if (told && status == HG_EMPTY) {
            CHECK(error.kind == HG_EMPTY && error.os_errno == 0 && error.text[0] == 0);
        }
    }
    CHECK(quiet > 500);
    hg_span span = hg_witness_begin();
    memset(&error, 1, sizeof error);
    const hg_status status = hg_witness_end_call(&span, &loss, &error);
    CHECK(status == HG_OK || (error.kind == status && error.text[0] == 0));
    span = hg_witness_begin();
    CHECK(hg_witness_end(NULL, &loss, &error) == HG_NULL);
    CHECK(hg_witness_end(&span, NULL, &error) == HG_NULL);
    CHECK(hg_witness_open(NULL, &error) == HG_NULL && hg_witness_begin_call(NULL, &error) == HG_NULL);
    (void)hg_witness_end(&span, &loss, &error);
}

static void *ends_another_s(void *span)
{
    hg_loss loss;
    CHECK(hg_witness_end((hg_span *)span, &loss, &error) == HG_WRONG_THREAD);
    return NULL;
}

static void *sleeps_and_detaches(void *span)
{
    *(hg_span *)span = hg_witness_begin();
    sleep_ms(12);
    OK(hg_witness_detach((hg_span *)span, &error));
    return NULL;
}

static bool other_threads(void)
{
    pthread_t thread;
    hg_loss loss;
    hg_span span = hg_witness_begin();
    CHECK(pthread_create(&thread, NULL, ends_another_s, &span) == 0 && pthread_join(thread, NULL) == 0);
    /* It travels, and the thread in which it began is no more. */
    CHECK(pthread_create(&thread, NULL, sleeps_and_detaches, &span) == 0 && pthread_join(thread, NULL) == 0);
    /* The end of one that is detached fails, and then it is over. */
    hg_span copy = span;
    CHECK(hg_witness_end(&copy, &loss, &error) == HG_STALE);
    CHECK(hg_witness_attach(&copy, &error) == HG_STALE && hg_witness_end(&copy, &loss, &error) == HG_STALE);
    OK(hg_witness_attach(&span, &error));
    OK(hg_witness_end(&span, &loss, &error));
    CHECK(loss.voluntary >= 1 && loss.off_cpu_most_ns >= 12 * MS);
    return loss.off_cpu_least_ns >= 6 * MS;
}

static void forked(void)
{
    hg_span span = hg_witness_begin();
    int status;
    const pid_t child = fork();
    if (child == 0) {
        hg_loss loss;
        const bool told = hg_witness_end(&span, &loss, &error) == HG_FORKED;
        hg_span own = hg_witness_begin();
        sleep_ms(2);
        _exit(told && hg_witness_end(&own, &loss, &error) == HG_OK ? 0 : 1);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

int main(void)
{
    hg_witness_view view;
    int tries = 0;
    OK(hg_check_abi(&error));
    OK(hg_witness_open(&view, &error));
    while (!a_sleep()) {
        CHECK(++tries < TRIES);
    }
    nothing();
    for (tries = 0; !other_threads();) {
        CHECK(++tries < TRIES);
    }
    forked();
    return 0;
}
