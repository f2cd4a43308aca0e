/* What the library leaves to its caller as it was: errno, and that a thread which is cancelled returns. */
#define _GNU_SOURCE
#include <hourglass.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include "check.h"

#define MARK 77

/* A call that answers so, and leaves errno alone. */
#define GIVES(answer, call)                                                                        \
    do {                                                                                           \
        errno = MARK;                                                                              \
        CHECK((call) == (answer));                                                                 \
        CHECK(errno == MARK);                                                                      \
    } while (0)

/* A call whose answer is the machine's. */
#define KEEPS(call)                                                                                \
    do {                                                                                           \
        errno = MARK;                                                                              \
        (void)(call);                                                                              \
        CHECK(errno == MARK);                                                                      \
    } while (0)

static void clocks(void)
{
    hg_trust trust;
    hg_hardware hardware;
    hg_scale_time scale;
    hg_page page;
    int32_t fd = -1;
    KEEPS(hg_now_call());
    KEEPS(hg_now_bounded_ordered());
    KEEPS(hg_wall());
    KEEPS(hg_utc_bounded());
    KEEPS(hg_clock_maintain());
    GIVES(HG_OK, hg_now_on(HG_SCALE_TAI, &scale, NULL));
    GIVES(HG_OK, hg_clock_examine(&trust, NULL));
    GIVES(HG_OK, hg_hardware_look(&hardware, NULL));
    GIVES(HG_OK, hg_clock_share(&fd, NULL));
    GIVES(HG_OK, hg_page_open(fd, &page, NULL));
    KEEPS(hg_page_now(&page));
    GIVES(HG_OK, hg_page_close(&page, NULL));
    /* Not closed here, which would be a cancellation point of this program's own. */
    GIVES(HG_OS, hg_page_open(1 << 20, &page, NULL));
}

static void sleeps(void)
{
    hg_sleeper sleeper;
    GIVES(HG_OK, hg_sleep_for(MS, NULL, NULL, NULL));
    GIVES(HG_OK, hg_sleeper_new(NULL, &sleeper, NULL));
    GIVES(HG_OK, hg_sleeper_for(sleeper, 200 * US, NULL, NULL));
    KEEPS(hg_sleeper_margin(sleeper, MS));
    GIVES(HG_OK, hg_sleeper_free(sleeper, NULL));
    KEEPS((hg_park(1000), 0));
}

static void timers(void)
{
    hg_service service;
    hg_owner owner;
    hg_class class_;
    hg_port port;
    hg_timer timer;
    hg_action action;
    hg_message message;
    const hg_arm arm = hg_arm_after(MS);
    memset(&action, 0, sizeof action);
    GIVES(HG_OK, hg_service_start(NULL, &service, NULL));
    GIVES(HG_OK, hg_owner_new(service, "caller", &owner, NULL));
    GIVES(HG_OK, hg_class_new(service, "caller", NULL, &class_, NULL));
    GIVES(HG_OK, hg_port_new(2, &port, NULL));
    action.kind = HG_ACTION_SEND;
    action.port = port;
    GIVES(HG_OK, hg_timer_new(owner, NULL, &action, &timer, NULL));
    GIVES(HG_TIMEOUT, hg_port_receive(port, 1000, &message, NULL));
    GIVES(HG_OK, hg_timer_arm(timer, &arm, NULL));
    GIVES(HG_OK, hg_port_receive(port, UINT64_MAX, &message, NULL));
    GIVES(HG_OK, hg_timer_sleep_for(timer, MS, NULL));
    GIVES(HG_OK, hg_timer_free(timer, NULL));
    GIVES(HG_OK, hg_port_free(port, NULL));
    GIVES(HG_OK, hg_class_free(class_, NULL));
    GIVES(HG_OK, hg_service_free(service, NULL));
    GIVES(HG_OK, hg_owner_free(owner, NULL));
}

static bool once(hg_job *job, void *user)
{
    (void)job;
    (void)user;
    return false;
}

static hg_verdict go_on(const hg_fault *fault, void *user)
{
    const hg_verdict resume = { 0, 0, { 0, 0, 0, 0, 0, false, { 0 } }, 0, 0, 0 };
    (void)fault;
    (void)user;
    return resume;
}

static void threads_and_faults(void)
{
    hg_periodic_settings settings;
    hg_periodic thread;
    hg_watched self;
    hg_handler handler;
    memset(&settings, 0, sizeof settings);
    settings.period_ns = MS;
    GIVES(HG_OK, hg_periodic_start(&settings, once, NULL, NULL, &thread, NULL));
    GIVES(HG_OK, hg_periodic_join(thread, NULL, NULL));
    GIVES(HG_OK, hg_periodic_free(thread, NULL));
    errno = MARK;
    if (hg_watch_begin(NULL, NULL) != HG_OK) {
        CHECK(errno == MARK);
        return; /* no signals are left */
    }
    GIVES(HG_OK, hg_watch_thread(&self, NULL));
    GIVES(HG_OK, hg_handler_install(self, NULL, go_on, NULL, NULL, &handler, NULL));
    GIVES(HG_OK, hg_watch_begin_job_in((uint64_t)(600 * S), NULL));
    GIVES(HG_OK, hg_watch_end_job(NULL, NULL));
    GIVES(HG_OK, hg_handler_free(handler, NULL));
    GIVES(HG_OK, hg_watched_free(self, NULL));
    GIVES(HG_OK, hg_watch_end(NULL));
}

static void work(void)
{
    hg_loop_spec spec;
    hg_loop loop;
    hg_recording recording;
    hg_progress_page page;
    hg_request request;
    memset(&spec, 0, sizeof spec);
    memset(&request, 0, sizeof request);
    spec.period_ns = MS;
    spec.records = 100;
    GIVES(HG_OK, hg_loop_start(&spec, &loop, NULL));
    GIVES(HG_OK, hg_loop_begin(loop));
    GIVES(HG_OK, hg_loop_end(loop));
    GIVES(HG_OK, hg_loop_finish(loop, &recording, NULL));
    GIVES(HG_OK, hg_recording_free(recording, NULL));
    GIVES(HG_OK, hg_progress_open(&page, NULL));
    GIVES(HG_OK, hg_progress_close(&page, NULL));
    request.budget_ns = MS;
    request.period_ns = 100 * MS;
    KEEPS(hg_reserve_check(0, &request, NULL));
}

static void all_of_it(void)
{
    clocks();
    sleeps();
    timers();
    threads_and_faults();
    work();
}

/* A request is pending all the time: the first cancellation point within the library would unwind its frames,
 * which aborts the process. */
static void *cancelled_before(void *reached)
{
    CHECK(pthread_cancel(pthread_self()) == 0);
    all_of_it();
    *(bool *)reached = true;
    pthread_testcancel();
    return NULL;
}

/* And one that comes at any moment. */
static void *cancelled_within(void *sleeps_)
{
    while (sleeps_) {
        hg_sleep_for(300 * US, NULL, NULL, NULL);
        hg_clock_maintain();
        __atomic_fetch_add((uint64_t *)sleeps_, 1, __ATOMIC_SEQ_CST);
        pthread_testcancel();
    }
    return NULL;
}

static void cancelling(void)
{
    pthread_t thread;
    void *ended = NULL;
    bool reached = false;
    uint64_t count = 0;
    int round;
    CHECK(pthread_create(&thread, NULL, cancelled_before, &reached) == 0);
    CHECK(pthread_join(thread, &ended) == 0);
    CHECK(reached && ended == PTHREAD_CANCELED);
    for (round = 0; round < 20; round++) {
        __atomic_store_n(&count, 0, __ATOMIC_SEQ_CST);
        CHECK(pthread_create(&thread, NULL, cancelled_within, &count) == 0);
        while (__atomic_load_n(&count, __ATOMIC_SEQ_CST) < 2) {
            hg_sleep_for(50 * US, NULL, NULL, NULL);
        }
        CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &ended) == 0);
        CHECK(ended == PTHREAD_CANCELED);
    }
}

/* What a thread has of the library's ends with it, however it ends. */
static void *ends_within(void *by_exit)
{
    if (hg_watch_begin(NULL, NULL) == HG_OK) {
        hg_watch_arm_in((uint64_t)(600 * S), NULL);
        hg_watch_arm_budget((uint64_t)(600 * S), NULL);
    }
    hg_defer_enter();
    hg_park(1);
    hg_sleep_for(1000, NULL, NULL, NULL);
    if (by_exit) {
        pthread_exit(PTHREAD_CANCELED);
    }
    CHECK(pthread_cancel(pthread_self()) == 0);
    pthread_testcancel();
    return NULL;
}

static void ending(void)
{
    pthread_t thread;
    void *ended = NULL;
    int round;
    for (round = 0; round < 20; round++) {
        CHECK(pthread_create(&thread, NULL, ends_within, round & 1 ? &round : NULL) == 0);
        CHECK(pthread_join(thread, &ended) == 0 && ended == PTHREAD_CANCELED);
    }
}

/* The state that was set is the one that is found. */
static void not_cancelled(void)
{
    int before = 0;
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before) == 0);
    CHECK(before == PTHREAD_CANCEL_ENABLE);
    hg_now_call();
    CHECK(pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &before) == 0);
    CHECK(before == PTHREAD_CANCEL_DISABLE);
}

static hg_interrupt stop = HG_INTERRUPT_INIT;

/* Saves no errno, as a handler has to that calls anything else. */
static void handler(int signal_)
{
    (void)signal_;
    (void)hg_now_call();
    (void)hg_now();
    (void)hg_wall();
    (void)hg_utc_bounded();
    (void)hg_interrupt_set(&stop);
    (void)hg_interrupt_clear(&stop);
}

static void in_a_signal_handler(void)
{
    struct sigaction action;
    int round;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (round = 0; round < 200; round++) {
        errno = MARK;
        CHECK(raise(SIGUSR1) == 0 && errno == MARK);
        hg_sleep_for(20 * US, NULL, NULL, NULL);
    }
}

int main(void)
{
    /* The first read of the process calibrates, and looks for files that may not be there. */
    KEEPS(hg_now());
    all_of_it();
    cancelling();
    ending();
    not_cancelled();
    in_a_signal_handler();
    return 0;
}
