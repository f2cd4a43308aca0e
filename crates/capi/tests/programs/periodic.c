/* Periodic threads: releases, ends, statistics, what they refuse. */
#define _DEFAULT_SOURCE
#include <hourglass.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static hg_error error;
static uint64_t jobs, misses, released, wrong_thread, verdicts;
static uint64_t own;
static hg_job *kept;
static hg_interrupt stop = HG_INTERRUPT_INIT;

static void release(void *user)
{
    __atomic_fetch_add((uint64_t *)user, 1, __ATOMIC_SEQ_CST);
}

static bool five(hg_job *job, void *user)
{
    hg_standing standing;
    hg_slept slept;
    CHECK(user == &released);
    CHECK(job->started_ns >= job->release_ns && job->deadline_ns > job->release_ns);
    CHECK(job->has_previous == (job->number > 0));
    CHECK(hg_job_check(job, &standing, NULL) == HG_OK && standing.budget_left_ns == INT64_MAX);
    CHECK(hg_job_sleep_until(job, hg_now() + 1000, &slept, NULL) == HG_OK);
    CHECK(!hg_job_is_stopping(job));
    __atomic_store_n(&kept, job, __ATOMIC_SEQ_CST);
    return __atomic_add_fetch(&jobs, 1, __ATOMIC_SEQ_CST) < 5;
}

static void by_itself(void)
{
    hg_periodic_settings settings;
    hg_periodic_statistics statistics;
    hg_periodic thread;
    hg_standing standing;
    uint32_t ended = 77;
    memset(&settings, 0, sizeof settings);
    settings.name = "five";
    settings.period_ns = MS;
    OK(hg_periodic_start(&settings, five, &released, release, &thread, &error));
    CHECK(hg_periodic_id(thread) != 0);
    OK(hg_periodic_join(thread, &ended, &error));
    CHECK(ended == HG_PERIODIC_BY_ITSELF && released == 1);
    CHECK(hg_periodic_join(thread, &ended, &error) == HG_INVALID);
    OK(hg_periodic_look(thread, &statistics, &error));
    CHECK(statistics.jobs == 5 && statistics.latency.count == 5);
    CHECK(statistics.latency.min_ns <= statistics.latency.p50_ns);
    CHECK(statistics.latency.p50_ns <= statistics.latency.max_ns);
    OK(hg_periodic_free(thread, &error));
    CHECK(hg_periodic_look(thread, &statistics, &error) == HG_STALE);
    CHECK(hg_periodic_stop(thread) == HG_STALE && hg_periodic_id(thread) == 0);
    /* A job that is over. */
    CHECK(hg_job_check(kept, &standing, &error) == HG_STALE && !hg_job_is_stopping(kept));
}

static uint64_t before;

/* The grid moves by 300 us after the second job: the third one's release shows it. */
static bool moved(hg_job *job, void *user)
{
    const uint64_t lost = job->lost_before * 5 * MS;
    (void)user;
    if (job->number == 1) {
        CHECK(hg_job_shift(job, MS / 2, NULL) == HG_OK && hg_job_shift(job, -MS / 5, NULL) == HG_OK);
    }
    if (job->number > 0) {
        CHECK(job->release_ns - before - lost == 5 * MS + (job->number == 2 ? 3 * MS / 10 : 0));
    }
    before = job->release_ns;
    return job->number < 3;
}

static void follows_a_device(void)
{
    hg_periodic_settings settings;
    hg_periodic thread;
    memset(&settings, 0, sizeof settings);
    settings.period_ns = 5 * MS;
    OK(hg_periodic_start(&settings, moved, NULL, NULL, &thread, &error));
    OK(hg_periodic_join(thread, NULL, &error));
    OK(hg_periodic_free(thread, &error));
    CHECK(hg_job_shift(NULL, 1, &error) == HG_NULL);
}

static bool for_ever(hg_job *job, void *user)
{
    hg_periodic self;
    (void)job;
    (void)user;
    self.handle = __atomic_load_n(&own, __ATOMIC_SEQ_CST);
    if (self.handle != 0 && hg_periodic_join(self, NULL, NULL) == HG_WRONG_THREAD
        && hg_periodic_look(self, NULL, NULL) == HG_NULL) {
        __atomic_fetch_add(&wrong_thread, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_fetch_add(&jobs, 1, __ATOMIC_SEQ_CST);
    return true;
}

static void stopped(void)
{
    hg_periodic_settings settings;
    hg_periodic thread;
    uint32_t ended = 77;
    memset(&settings, 0, sizeof settings);
    settings.hertz = 1000;
    settings.stop_on = &stop;
    OK(hg_periodic_start(&settings, for_ever, NULL, NULL, &thread, &error));
    __atomic_store_n(&own, thread.handle, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&wrong_thread, __ATOMIC_SEQ_CST) < 2) {
        hg_sleep_for(MS, NULL, NULL, NULL);
    }
    __atomic_store_n(&own, 0, __ATOMIC_SEQ_CST);
    hg_interrupt_set(&stop);
    OK(hg_periodic_join(thread, &ended, &error));
    CHECK(ended == HG_PERIODIC_STOPPED);
    OK(hg_periodic_free(thread, &error));
    /* Freeing alone stops it. */
    settings.stop_on = NULL;
    OK(hg_periodic_start(&settings, for_ever, &released, release, &thread, &error));
    OK(hg_periodic_free(thread, &error));
    CHECK(released == 2);
}

static void told(const hg_completed *job, void *user)
{
    CHECK(job->missed && job->completed_ns > job->deadline_ns);
    (void)user;
    __atomic_fetch_add(&misses, 1, __ATOMIC_SEQ_CST);
}

static hg_verdict verdict(const hg_fault *fault, void *user)
{
    hg_verdict answer;
    (void)user;
    memset(&answer, 0, sizeof answer);
    if (fault->handled_ns >= fault->deadline_ns && !fault->over_budget) {
        __atomic_fetch_add(&verdicts, 1, __ATOMIC_SEQ_CST);
    }
    if (fault->count >= 2) {
        answer.kind = HG_VERDICT_END;
    }
    return answer;
}

/* Late in every job, and told of by a call and by a handler, whose second verdict ends the thread. */
static bool late(hg_job *job, void *user)
{
    (void)user;
    while (hg_now() <= job->deadline_ns + (uint64_t)MS && hg_safepoint() == HG_OK) {
        let_signals_in();
    }
    return true;
}

static void faults(void)
{
    hg_periodic_settings settings;
    hg_periodic thread;
    uint32_t ended = 77;
    hg_status status;
    memset(&settings, 0, sizeof settings);
    settings.period_ns = 5 * MS;
    settings.deadline_ns = MS;
    settings.on_miss = told;
    settings.on_fault = verdict;
    status = hg_periodic_start(&settings, late, &released, release, &thread, &error);
    if (status == HG_EXHAUSTED) {
        printf("skipped: no signals are left: %s\n", error.text);
        return;
    }
    OK(status);
    OK(hg_periodic_join(thread, &ended, &error));
    CHECK(ended == HG_PERIODIC_BY_VERDICT && verdicts >= 2 && misses >= 1);
    OK(hg_periodic_free(thread, &error));
    CHECK(released == 3);
}

static uint64_t self_waits;

/* Waiting for a thread from within its own call-backs would do so for ever: told, and nothing done. */
static bool is_refused(void)
{
    hg_error why;
    hg_periodic self;
    self.handle = __atomic_load_n(&own, __ATOMIC_SEQ_CST);
    return self.handle != 0 && hg_periodic_free(self, &why) == HG_WRONG_THREAD
        && strstr(why.text, "call-backs") && hg_periodic_join(self, NULL, NULL) == HG_WRONG_THREAD;
}

static hg_verdict waits_for_itself(const hg_fault *fault, void *user)
{
    hg_verdict answer;
    (void)fault;
    (void)user;
    memset(&answer, 0, sizeof answer);
    if (is_refused()) {
        __atomic_fetch_add(&self_waits, 1, __ATOMIC_SEQ_CST);
        answer.kind = HG_VERDICT_END;
    }
    return answer;
}

static void misses_and_waits(const hg_completed *job, void *user)
{
    (void)job;
    (void)user;
    __atomic_fetch_add(&self_waits, is_refused() ? 1 : 0, __ATOMIC_SEQ_CST);
}

static void release_and_wait(void *user)
{
    __atomic_fetch_add(&self_waits, is_refused() ? 1 : 0, __ATOMIC_SEQ_CST);
    release(user);
}

/* Not before its handle is known to its call-backs. */
static bool late_when_known(hg_job *job, void *user)
{
    while (__atomic_load_n(&own, __ATOMIC_SEQ_CST) == 0) {
        let_signals_in();
    }
    return late(job, user);
}

static void no_call_back_waits_for_its_own_thread(void)
{
    hg_periodic_settings settings;
    hg_periodic thread;
    const uint64_t gone = __atomic_load_n(&released, __ATOMIC_SEQ_CST);
    uint32_t ended = 77;
    memset(&settings, 0, sizeof settings);
    settings.period_ns = 5 * MS;
    settings.deadline_ns = MS;
    settings.on_fault = waits_for_itself;
    settings.on_miss = misses_and_waits;
    __atomic_store_n(&self_waits, 0, __ATOMIC_SEQ_CST);
    if (hg_periodic_start(&settings, late_when_known, &released, release_and_wait, &thread, &error)
        == HG_EXHAUSTED) {
        printf("skipped: no signals are left: %s\n", error.text);
        return;
    }
    __atomic_store_n(&own, thread.handle, __ATOMIC_SEQ_CST);
    OK(hg_periodic_join(thread, &ended, &error));
    CHECK(ended == HG_PERIODIC_BY_VERDICT);
    /* By on_fault, by on_miss and by release. */
    CHECK(self_waits >= 3 && released == gone + 1);
    __atomic_store_n(&own, 0, __ATOMIC_SEQ_CST);
    OK(hg_periodic_free(thread, &error));
}

static void refused(void)
{
    hg_periodic_settings settings;
    hg_periodic thread;
    const uint64_t before = released;
    const uint32_t cpus[] = { 4000 };
    memset(&settings, 0, sizeof settings);
    CHECK(hg_periodic_start(NULL, five, &released, release, &thread, &error) == HG_NULL);
    CHECK(hg_periodic_start(&settings, NULL, &released, release, &thread, &error) == HG_NULL);
    CHECK(hg_periodic_start(&settings, five, &released, release, NULL, &error) == HG_NULL);
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_INVALID);
    CHECK(strstr(error.text, "period"));
    settings.period_ns = MS;
    settings.hertz = 5;
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_INVALID);
    settings.hertz = 0;
    settings.phase_ns = 2 * MS;
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_INVALID);
    settings.phase_ns = 0;
    settings.scheduling.policy = HG_POLICY_FIFO;
    settings.scheduling.priority = 100;
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_INVALID);
    settings.scheduling.policy = HG_POLICY_INHERITED;
    settings.cpus = cpus;
    settings.cpu_count = 1;
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_INVALID);
    CHECK(error.os_errno == 22 /* EINVAL */ && strstr(error.text, "4000"));
    settings.cpus = NULL;
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_NULL);
    settings.cpus = cpus;
    settings.cpu_count = SIZE_MAX;
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_INVALID);
    settings.cpu_count = 0;
    settings.on_overrun = 9;
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_INVALID);
    CHECK(released == before + 11);
}

/* UINT64_MAX was a period of 292 years, and so whatever a subtraction that went wrong had made. */
static void more_than_there_is(void)
{
    hg_periodic_settings settings;
    hg_periodic thread = { 7 };
    uint64_t before = released;
    memset(&settings, 0, sizeof settings);
    settings.period_ns = UINT64_MAX;
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_INVALID);
    CHECK(strstr(error.text, "period_ns of 18446744073709551615"));
    settings.period_ns = MS;
    settings.deadline_ns = UINT64_C(1) << 63;
    CHECK(hg_periodic_start(&settings, five, &released, release, &thread, &error) == HG_INVALID);
    CHECK(strstr(error.text, "deadline_ns") && released == before + 2 && thread.handle == 7);
}

static uint64_t starts, starts_at_first_job, first_release, start_ended;
static bool start_answer;

/* Sanitizers do not see what the library hands from thread to thread. */
static uint64_t now_of(uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static bool start_hook(void *user)
{
    CHECK(user == &released && __atomic_load_n(&jobs, __ATOMIC_SEQ_CST) == 0);
    OK(hg_sleep_for(3 * MS, NULL, NULL, NULL));
    __atomic_fetch_add(&starts, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&start_ended, hg_now(), __ATOMIC_SEQ_CST);
    return __atomic_load_n(&start_answer, __ATOMIC_SEQ_CST);
}

static bool first_job(hg_job *job, void *user)
{
    (void)user;
    __atomic_store_n(&starts_at_first_job, __atomic_load_n(&starts, __ATOMIC_SEQ_CST), __ATOMIC_SEQ_CST);
    __atomic_store_n(&first_release, job->release_ns, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&jobs, 1, __ATOMIC_SEQ_CST);
    return false;
}

/* A hook before the first job. */
static void on_start(void)
{
    hg_periodic_settings settings;
    hg_periodic thread = { 7 };
    uint64_t before = now_of(&released);
    memset(&settings, 0, sizeof settings);
    settings.period_ns = MS;
    __atomic_store_n(&jobs, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&start_answer, true, __ATOMIC_SEQ_CST);
    OK(hg_periodic_start_with(&settings, start_hook, first_job, &released, release, &thread, &error));
    CHECK(now_of(&starts) == 1);
    OK(hg_periodic_join(thread, NULL, &error));
    CHECK(now_of(&starts_at_first_job) == 1 && now_of(&first_release) >= now_of(&start_ended));
    OK(hg_periodic_free(thread, &error));
    CHECK(now_of(&released) == before + 1);
    __atomic_store_n(&jobs, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&start_answer, false, __ATOMIC_SEQ_CST);
    thread.handle = 7;
    CHECK(hg_periodic_start_with(&settings, start_hook, first_job, &released, release, &thread, &error)
          == HG_START_FAILED);
    CHECK(strstr(error.text, "hook") && now_of(&starts) == 2 && now_of(&jobs) == 0);
    CHECK(thread.handle == 7 && now_of(&released) == before + 2);
    OK(hg_periodic_start_with(&settings, NULL, first_job, &released, release, &thread, &error));
    OK(hg_periodic_free(thread, &error));
}

int main(void)
{
    more_than_there_is();
    on_start();
    __atomic_store_n(&jobs, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&released, 0, __ATOMIC_SEQ_CST);
    by_itself();
    follows_a_device();
    stopped();
    faults();
    no_call_back_waits_for_its_own_thread();
    refused();
    return 0;
}
