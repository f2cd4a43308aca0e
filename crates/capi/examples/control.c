/* A control loop: a body once a millisecond, whose deadlines are watched while it runs. */
#include <hourglass.h>
#include <inttypes.h>
#include <stdio.h>

struct control {
    uint64_t steps;
};

static bool step(hg_job *job, void *user)
{
    struct control *control = user;
    if (job->lost_before > 0) {
        /* The job before took too long: releases were left out. */
    }
    return ++control->steps < 20;
}

/* On a thread of its own: neither allocates nor prints. */
static hg_verdict late(const hg_fault *fault, void *user)
{
    hg_verdict go_on = { 0 };
    (void)fault;
    (void)user;
    return go_on;
}

int main(void)
{
    struct control control = { 0 };
    hg_periodic_settings settings = { 0 };
    hg_periodic thread;
    hg_periodic_statistics statistics;
    hg_error error;

    settings.name = "control";
    settings.period_ns = 1000000;
    settings.deadline_ns = 500000;
    settings.on_fault = late;
    if (hg_periodic_start(&settings, step, &control, NULL, &thread, &error) != HG_OK
        || hg_periodic_join(thread, NULL, &error) != HG_OK
        || hg_periodic_look(thread, &statistics, &error) != HG_OK
        || hg_periodic_free(thread, &error) != HG_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    printf("%" PRIu64 " jobs, %" PRIu64 " late; released %" PRIu64 " ns late at most\n", statistics.jobs,
           statistics.misses, statistics.latency.max_ns);
    return statistics.jobs == 20 ? 0 : 1;
}
