/* Numbers that nobody means: every function takes them, refuses or survives them, and none of them is a defect
 * (HG_PANIC), which a build with checks of overflow would tell. */
#define _DEFAULT_SOURCE
#include <hourglass.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

static const uint64_t numbers[] = {
    0, 1, 2, UINT32_MAX, (uint64_t)INT64_MAX - 1, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX - 1, UINT64_MAX,
};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

#define EACH(name)                                                                                 \
    for (size_t name##_at = 0; name##_at < NUMBERS; name##_at++)                                   \
        for (uint64_t name = numbers[name##_at], name##_once = 1; name##_once; name##_once = 0)

static hg_error error;

/* Whatever it answers, it is no defect. */
#define SURVIVES(call)                                                                             \
    do {                                                                                           \
        if ((call) == HG_PANIC) {                                                                  \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, error.text);             \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void clocks(void)
{
    hg_elapsed elapsed;
    hg_scale_time scale;
    hg_page page;
    EACH(a) {
        const hg_ticks now = hg_clock_ticks();
        hg_ticks one = now, other = now;
        one.count = a;
        SURVIVES(hg_now_on((int32_t)a, &scale, &error));
        CHECK(hg_status_name((int32_t)a) && hg_source_name((int32_t)a));
        (void)hg_clock_count((uint32_t)a);
        SURVIVES(hg_page_open((int32_t)(a | 1 << 20), &page, &error));
        SURVIVES(hg_check_abi_of((uint32_t)a, &error));
        if ((int32_t)a != HG_SOURCE_TSC && (int32_t)a != HG_SOURCE_OS) {
            SURVIVES(hg_clock_set_source((int32_t)a, &error));
        }
        EACH(b) {
            hg_wall_reference said = { a, (int64_t)b, a };
            other.count = b;
            SURVIVES(hg_clock_elapsed(one, other, &elapsed, &error));
            SURVIVES(hg_wall_set(&said, &error));
            (void)hg_wall();
            SURVIVES(hg_utc_wait_until_past((int64_t)b, 0, NULL, NULL, &error));
            SURVIVES(hg_wall_steer(&said, &error));
            said.error_ns = b;
            SURVIVES(hg_wall_steer(&said, &error));
            (void)hg_wall();
        }
    }
    hg_wall_release();
    CHECK(hg_now_ordered() > 0);
}

static void sleeps(void)
{
    static hg_interrupt set = HG_INTERRUPT_INIT;
    hg_slept slept;
    CHECK(hg_interrupt_set(&set) == HG_OK);
    EACH(a) {
        hg_sleep_settings settings = hg_sleep_defaults();
        hg_sleeper sleeper;
        SURVIVES(hg_sleep_until(a, &set, &slept, &error));
        SURVIVES(hg_sleep_for(a, &set, &slept, &error));
        SURVIVES(hg_sleep_ticks(a, &set, &slept, &error));
        SURVIVES(hg_interrupt_on_signal(&set, (int32_t)(a | 1 << 20), &error));
        settings.hz = (uint32_t)a;
        settings.per_sleep_ns = a;
        settings.share_ppm = (uint32_t)a;
        settings.quantile_ppm = (uint32_t)a;
        settings.of_wait_ppm = (uint32_t)a;
        settings.longest_margin_ns = a;
        settings.seed_ns = a;
        settings.sample_every = (uint32_t)a;
        for (settings.policy = 0; settings.policy <= HG_SLEEP_THESIS; settings.policy++) {
            if (hg_sleeper_new(&settings, &sleeper, &error) != HG_OK) {
                CHECK(error.kind == HG_INVALID);
                continue;
            }
            SURVIVES(hg_sleeper_for(sleeper, 20 * US, &slept, &error));
            CHECK(!slept.interrupted && slept.woke_ns >= slept.deadline_ns);
            EACH(b) { (void)hg_sleeper_margin(sleeper, b); }
            CHECK(hg_sleeper_interrupt(sleeper) == HG_OK);
            EACH(b) {
                SURVIVES(hg_sleeper_for(sleeper, b, &slept, &error));
                SURVIVES(hg_sleeper_until(sleeper, b, &slept, &error));
                SURVIVES(hg_sleeper_ticks(sleeper, b, &slept, &error));
            }
            OK(hg_sleeper_free(sleeper, &error));
        }
    }
    {
        hg_thread self;
        OK(hg_thread_current(&self, &error));
        EACH(a) {
            OK(hg_unpark(self, &error));
            hg_park(a);
        }
        OK(hg_thread_free(self, &error));
    }
}

static hg_verdict nonsense(const hg_fault *fault, void *user)
{
    hg_verdict verdict;
    const uint64_t number = numbers[fault->count % NUMBERS];
    (void)user;
    memset(&verdict, 0, sizeof verdict);
    verdict.kind = number == HG_VERDICT_END ? HG_VERDICT_RESUME : (uint32_t)number;
    verdict.changes = (uint32_t)fault->count & 15;
    verdict.deadline_ns = number | (UINT64_C(1) << 62); /* far away */
    verdict.scheduling.policy = (uint32_t)number;
    verdict.scheduling.priority = (int32_t)number;
    verdict.cpu = (uint32_t)number;
    return verdict;
}

static void *faults(void *unused)
{
    hg_watch_settings settings;
    hg_handler_settings how;
    hg_watched self;
    hg_handler handler;
    (void)unused;
    EACH(a) {
        memset(&settings, 0, sizeof settings);
        settings.signal = (int32_t)a;
        SURVIVES(hg_watch_begin(&settings, &error));
        (void)hg_watch_end(NULL);
    }
    memset(&settings, 0, sizeof settings);
    settings.longest_stop_ns = UINT64_MAX;
    if (hg_watch_begin(&settings, &error) != HG_OK) {
        CHECK(error.kind == HG_EXHAUSTED);
        return NULL;
    }
    OK(hg_watch_thread(&self, &error));
    EACH(a) {
        memset(&how, 0, sizeof how);
        how.scheduling.policy = HG_POLICY_DEADLINE;
        how.scheduling.runtime_ns = a;
        how.scheduling.deadline_ns = a;
        how.scheduling.period_ns = a;
        how.pinned = true;
        how.cpu = (uint32_t)a;
        if (hg_handler_install(self, &how, nonsense, NULL, NULL, &handler, &error) == HG_OK) {
            OK(hg_handler_free(handler, &error));
        }
        CHECK(error.kind != HG_PANIC);
    }
    OK(hg_handler_install(self, NULL, nonsense, NULL, NULL, &handler, &error));
    EACH(a) {
        SURVIVES(hg_watch_arm_at(a, &error));
        SURVIVES(hg_watch_arm_in(a, &error));
        SURVIVES(hg_watch_arm_budget(a, &error));
        SURVIVES(hg_watch_disarm_budget(&error));
        SURVIVES(hg_watch_begin_job_at(a, &error));
        SURVIVES(hg_watch_begin_job_in(a, &error));
        SURVIVES(hg_watch_end_job(NULL, &error));
        SURVIVES(hg_watched_fault(self, a, NULL, &error));
        EACH(b) {
            SURVIVES(hg_watch_begin_jobs(a, b, &error));
            SURVIVES(hg_watch_end_job(NULL, &error));
            SURVIVES(hg_watch_end_job(NULL, &error));
            SURVIVES(hg_watch_disarm(NULL, &error));
        }
    }
    OK(hg_handler_free(handler, &error));
    OK(hg_watched_free(self, &error));
    OK(hg_watch_end(&error));
    return NULL;
}

static void timers(void)
{
    hg_service service;
    hg_owner owner;
    hg_service_statistics statistics;
    EACH(a) {
        hg_service_settings settings;
        memset(&settings, 0, sizeof settings);
        settings.pinned = true;
        settings.cpu = (uint32_t)a;
        settings.engines = 2;
        if (hg_service_start(&settings, &service, &error) == HG_OK) {
            OK(hg_service_free(service, &error));
        } else {
            CHECK(error.kind != HG_PANIC);
        }
    }
    OK(hg_service_start(NULL, &service, &error));
    OK(hg_owner_new(service, NULL, &owner, &error));
    EACH(a) {
        uint32_t base;
        SURVIVES(hg_service_look(service, (uint32_t)a, &statistics, &error));
        for (base = HG_BASE_MONOTONIC; base <= HG_BASE_TAI; base++) {
            hg_timer_settings settings;
            hg_timer timer;
            hg_timer_status status;
            memset(&settings, 0, sizeof settings);
            settings.base = base;
            OK(hg_timer_new(owner, &settings, NULL, &timer, &error));
            EACH(b) {
                hg_arm arm = hg_arm_at((int64_t)a);
                /* Nothing within the next centuries, that is, or at once and once. */
                arm.slack_ns = (int64_t)b;
                arm.relative = b & 1;
                SURVIVES(hg_timer_arm(timer, &arm, &error));
                arm.period_ns = (int64_t)b;
                SURVIVES(hg_timer_arm(timer, &arm, &error));
                SURVIVES(hg_timer_look(timer, &status, &error));
                SURVIVES(hg_timer_cancel(timer, (uint32_t)b, NULL, &error));
            }
            OK(hg_timer_cancel(timer, HG_CANCEL_ALL, NULL, &error));
            if ((int64_t)a < 1000) {
                SURVIVES(hg_timer_sleep_until(timer, (int64_t)a, &error));
                SURVIVES(hg_timer_sleep_for(timer, (int64_t)a, &error));
            }
            OK(hg_timer_free(timer, &error));
        }
    }
    OK(hg_owner_free(owner, &error));
    OK(hg_service_free(service, &error));
}

static bool goes_on(hg_job *job, void *user)
{
    hg_standing standing;
    (void)user;
    CHECK(hg_job_check(job, &standing, NULL) == HG_OK);
    return job->number < 2;
}

static void periodic(void)
{
    hg_periodic thread;
    hg_periodic_statistics statistics;
    int field;
    EACH(a) {
        for (field = 0; field < 7; field++) {
            hg_periodic_settings settings;
            memset(&settings, 0, sizeof settings);
            settings.period_ns = MS;
            switch (field) {
            case 0: settings.period_ns = a; break;
            case 1: settings.period_ns = 0, settings.hertz = (uint32_t)a; break;
            case 2: settings.deadline_ns = a; break;
            case 3: settings.phase_ns = a; break;
            case 4: settings.budget_ns = a; break;
            case 5: settings.epoch_ns = a; break;
            default: settings.period_ns = a, settings.phase_ns = a, settings.epoch_ns = a; break;
            }
            settings.on_overrun = (uint32_t)a % 3;
            if (hg_periodic_start(&settings, goes_on, NULL, NULL, &thread, &error) != HG_OK) {
                CHECK(error.kind != HG_PANIC);
                continue;
            }
            OK(hg_sleep_for(200 * US, NULL, NULL, &error));
            OK(hg_periodic_stop(thread));
            OK(hg_periodic_join(thread, NULL, &error));
            OK(hg_periodic_look(thread, &statistics, &error));
            OK(hg_periodic_free(thread, &error));
        }
    }
}

static void work(void)
{
    hg_progress_page page;
    EACH(a) {
        hg_loop_spec spec;
        hg_loop loop;
        hg_recording recording;
        hg_recording_summary found;
        hg_request request;
        size_t count;
        memset(&spec, 0, sizeof spec);
        spec.period_ns = a;
        spec.deadline_ns = a;
        spec.gap_ns = a;
        spec.records = 10;
        if (hg_loop_start(&spec, &loop, &error) == HG_OK) {
            EACH(b) {
                OK(hg_loop_begin_due(loop, b));
                OK(hg_loop_end(loop));
            }
            OK(hg_loop_finish(loop, &recording, &error));
            OK(hg_recording_look(recording, &found, &error));
            OK(hg_recording_intervals(recording, a, NULL, 0, &count, &error));
            OK(hg_recording_free(recording, &error));
        } else {
            CHECK(error.kind == HG_INVALID);
        }
        EACH(b) {
            memset(&request, 0, sizeof request);
            request.budget_ns = a;
            request.period_ns = b;
            SURVIVES(hg_reserve_check((uint32_t)a, &request, &error));
            request.deadline_ns = a;
            request.pinned = true;
            request.cpu = (uint32_t)b;
            SURVIVES(hg_reserve_check(0, &request, &error));
        }
    }
    OK(hg_progress_open(&page, &error));
    EACH(a) {
        EACH(b) { hg_progress(&page, a, b); }
        (void)hg_progress_next_release(&page, a);
    }
    OK(hg_progress_close(&page, &error));
}

int main(void)
{
    pthread_t thread;
    clocks();
    sleeps();
    CHECK(pthread_create(&thread, NULL, faults, NULL) == 0);
    pthread_join(thread, NULL);
    timers();
    periodic();
    work();
    return 0;
}
