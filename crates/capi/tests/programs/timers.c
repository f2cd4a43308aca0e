/* Timers with each of their actions, and their ends. */
#define _DEFAULT_SOURCE
#include <hourglass.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static hg_error error;
static hg_service service;
static hg_owner owner;
static uint64_t calls, early, released;
static uint64_t own_timer;

static void count(const hg_expiration *expiration, void *user)
{
    CHECK(user == &calls && expiration->base == HG_BASE_MONOTONIC);
    if (expiration->now_ns < expiration->expiry_ns) {
        __atomic_fetch_add(&early, 1, __ATOMIC_SEQ_CST);
    }
    __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
}

static void release(void *user)
{
    CHECK(user == &calls);
    __atomic_fetch_add(&released, 1, __ATOMIC_SEQ_CST);
}

static void wait_for(uint64_t *counter, uint64_t wanted)
{
    int tries;
    for (tries = 0; __atomic_load_n(counter, __ATOMIC_SEQ_CST) < wanted; tries++) {
        CHECK(tries < 60000);
        hg_sleep_for(MS, NULL, NULL, NULL);
    }
}

static hg_action calling(uint32_t kind)
{
    hg_action action;
    memset(&action, 0, sizeof action);
    action.kind = kind;
    action.call = count;
    action.user = &calls;
    action.release = release;
    return action;
}

static void immediate_and_deferred(void)
{
    hg_class class_;
    hg_class_settings settings;
    hg_class_statistics statistics;
    uint32_t kind;
    memset(&settings, 0, sizeof settings);
    settings.room = UINT32_MAX;
    CHECK(hg_class_new(service, "huge", &settings, &class_, &error) == HG_INVALID);
    OK(hg_class_new(service, "deferred", NULL, &class_, &error));
    for (kind = HG_ACTION_IMMEDIATE; kind <= HG_ACTION_DEFERRED; kind++) {
        hg_action action = calling(kind);
        hg_timer timer;
        hg_timer_status status;
        hg_arm arm = hg_arm_every(MS);
        bool cancelled = false;
        const uint64_t before = __atomic_load_n(&calls, __ATOMIC_SEQ_CST);
        const uint64_t gone = __atomic_load_n(&released, __ATOMIC_SEQ_CST);
        action.class_ = class_;
        OK(hg_timer_new(owner, NULL, &action, &timer, &error));
        OK(hg_timer_arm(timer, &arm, &error));
        wait_for(&calls, before + 3);
        OK(hg_timer_look(timer, &status, &error));
        CHECK(status.armed && status.fired >= 3 && status.next_ns > 0);
        OK(hg_timer_cancel(timer, HG_CANCEL_ALL, &cancelled, &error));
        CHECK(cancelled);
        OK(hg_timer_cancel(timer, HG_CANCEL_CURRENT, &cancelled, &error));
        CHECK(!cancelled && hg_timer_cancel(timer, 9, NULL, &error) == HG_INVALID);
        OK(hg_timer_free(timer, &error));
        wait_for(&released, gone + 1);
        CHECK(hg_timer_arm(timer, &arm, &error) == HG_STALE);
        CHECK(hg_timer_free(timer, &error) == HG_STALE);
    }
    OK(hg_class_look(class_, &statistics, &error));
    CHECK(statistics.ran >= 3);
    OK(hg_class_free(class_, &error));
    CHECK(early == 0);
}

static void messages(void)
{
    hg_port port;
    hg_action action;
    hg_timer timer;
    hg_message message;
    hg_arm arm = hg_arm_after(MS);
    struct pollfd waiting;
    OK(hg_port_new(4, &port, &error));
    memset(&action, 0, sizeof action);
    action.kind = HG_ACTION_SEND;
    action.port = port;
    action.tag = 77;
    OK(hg_timer_new(owner, NULL, &action, &timer, &error));
    CHECK(hg_port_try_receive(port, &message, &error) == HG_EMPTY);
    CHECK(hg_port_receive(port, 1000, &message, &error) == HG_TIMEOUT);
    OK(hg_timer_arm(timer, &arm, &error));
    waiting.fd = hg_port_fd(port);
    waiting.events = POLLIN;
    CHECK(waiting.fd >= 0 && poll(&waiting, 1, 60000) == 1);
    OK(hg_port_receive(port, UINT64_MAX, &message, &error));
    CHECK(message.tag == 77 && message.expiration.now_ns >= message.expiration.expiry_ns);
    CHECK(hg_port_lost(port) == 0);
    OK(hg_timer_free(timer, &error));
    OK(hg_port_free(port, &error));
    CHECK(hg_port_fd(port) == -1 && hg_port_new(0, &port, &error) == HG_INVALID);
    CHECK(hg_port_new((1 << 24) + 1, &port, &error) == HG_INVALID && strstr(error.text, "16777216"));
    CHECK(hg_port_new(UINT32_MAX, &port, &error) == HG_INVALID);
}

static void wakes(void)
{
    int round;
    hg_thread thread;
    hg_action action;
    hg_timer timer;
    hg_timer_status status;
    hg_arm arm = hg_arm_after(2 * MS);
    OK(hg_thread_current(&thread, &error));
    memset(&action, 0, sizeof action);
    action.kind = HG_ACTION_WAKE;
    action.thread = thread;
    OK(hg_timer_new(owner, NULL, &action, &timer, &error));
    OK(hg_timer_arm(timer, &arm, &error));
    do {
        hg_park((uint64_t)(60 * S));
        OK(hg_timer_look(timer, &status, &error));
    } while (status.armed);
    OK(hg_unpark(thread, &error));
    hg_park(UINT64_MAX);
    OK(hg_timer_free(timer, &error));
    /* What waits within the library takes no waking away: it starts threads, and waits for them. */
    for (round = 0; round < 20; round++) {
        hg_service other;
        const uint64_t begun = hg_now();
        OK(hg_unpark(thread, &error));
        OK(hg_service_start(NULL, &other, &error));
        OK(hg_service_free(other, &error));
        hg_park((uint64_t)(100 * S));
        CHECK(hg_now() - begun < (uint64_t)(90 * S));
    }
    /* One that was taken is gone. */
    {
        const uint64_t begun = hg_now_ordered();
        hg_park((uint64_t)(2 * MS));
        CHECK(hg_now_ordered() >= begun + (uint64_t)(2 * MS));
    }
    OK(hg_thread_free(thread, &error));
    CHECK(hg_unpark(thread, &error) == HG_STALE);
}

static void *cancels(void *user)
{
    hg_timer timer;
    bool cancelled = false;
    timer.handle = *(uint64_t *)user;
    while (!cancelled) { /* The sleep may not have begun. */
        hg_sleep_for(5 * MS, NULL, NULL, NULL);
        CHECK(hg_timer_cancel(timer, HG_CANCEL_ALL, &cancelled, NULL) == HG_OK);
    }
    return NULL;
}

static void a_sleep_on_a_timer_is_cancelled(void)
{
    hg_timer timer;
    pthread_t other;
    const uint64_t begun = hg_now_ordered();
    OK(hg_timer_new(owner, NULL, NULL, &timer, &error));
    OK(hg_timer_sleep_for(timer, 2 * MS, &error));
    CHECK(hg_now_ordered() >= begun + (uint64_t)(2 * MS));
    CHECK(pthread_create(&other, NULL, cancels, &timer.handle) == 0);
    CHECK(hg_timer_sleep_for(timer, 600 * S, &error) == HG_CANCELLED);
    pthread_join(other, NULL);
    OK(hg_timer_terminate(timer, &error));
    CHECK(hg_timer_sleep_until(timer, 0, &error) == HG_TERMINATED);
    OK(hg_timer_free(timer, &error));
}

static void free_itself(const hg_expiration *expiration, void *user)
{
    hg_timer timer;
    (void)expiration;
    timer.handle = __atomic_load_n(&own_timer, __ATOMIC_SEQ_CST);
    CHECK(hg_timer_free(timer, NULL) == HG_OK);
    CHECK(hg_timer_free(timer, NULL) == HG_STALE);
    __atomic_fetch_add((uint64_t *)user, 1, __ATOMIC_SEQ_CST);
}

static void an_action_frees_its_own_timer(void)
{
    const uint64_t before = __atomic_load_n(&calls, __ATOMIC_SEQ_CST);
    const uint64_t gone = __atomic_load_n(&released, __ATOMIC_SEQ_CST);
    hg_action action = calling(HG_ACTION_IMMEDIATE);
    hg_timer timer;
    hg_arm arm = hg_arm_after(MS);
    action.call = free_itself;
    OK(hg_timer_new(owner, NULL, &action, &timer, &error));
    __atomic_store_n(&own_timer, timer.handle, __ATOMIC_SEQ_CST);
    OK(hg_timer_arm(timer, &arm, &error));
    wait_for(&calls, before + 1);
    wait_for(&released, gone + 1);
}

static void bad_input(void)
{
    const uint64_t gone = __atomic_load_n(&released, __ATOMIC_SEQ_CST);
    hg_action action = calling(HG_ACTION_IMMEDIATE);
    hg_timer_settings settings;
    hg_timer timer;
    hg_owner none = { 0 };
    hg_arm arm = hg_arm_at(-1);
    memset(&settings, 0, sizeof settings);
    /* What a call-back was given is released whatever fails. */
    CHECK(hg_timer_new(none, NULL, &action, &timer, &error) == HG_NULL);
    CHECK(hg_timer_new(owner, NULL, &action, NULL, &error) == HG_NULL);
    action.kind = 42;
    CHECK(hg_timer_new(owner, NULL, &action, &timer, &error) == HG_INVALID);
    action.kind = HG_ACTION_DEFERRED;
    CHECK(hg_timer_new(owner, NULL, &action, &timer, &error) == HG_NULL);
    action.kind = HG_ACTION_IMMEDIATE;
    action.call = NULL;
    CHECK(hg_timer_new(owner, NULL, &action, &timer, &error) == HG_NULL);
    CHECK(__atomic_load_n(&released, __ATOMIC_SEQ_CST) == gone + 5);
    settings.base = 9;
    CHECK(hg_timer_new(owner, &settings, NULL, &timer, &error) == HG_INVALID);
    settings.base = HG_BASE_TAI;
    settings.on_engine = true;
    settings.engine = 5;
    CHECK(hg_timer_new(owner, &settings, NULL, &timer, &error) == HG_INVALID);
    settings.engine = 0;
    OK(hg_timer_new(owner, &settings, NULL, &timer, &error));
    CHECK(hg_timer_arm(timer, &arm, &error) == HG_INVALID);
    arm = hg_arm_every(-5);
    CHECK(hg_timer_arm(timer, &arm, &error) == HG_INVALID);
    CHECK(hg_timer_arm(timer, NULL, &error) == HG_NULL);
    OK(hg_timer_free(timer, &error));
}

/* The service's threads are not in a child. */
static void a_child_is_told(void)
{
    hg_timer timer;
    hg_arm arm = hg_arm_after(S);
    pid_t child;
    int ended = -1;
    OK(hg_timer_new(owner, NULL, NULL, &timer, &error));
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        const bool told = hg_timer_arm(timer, &arm, NULL) == HG_FORKED
            && hg_timer_free(timer, NULL) == HG_FORKED && hg_now() > 0;
        _exit(told ? 0 : 1);
    }
    CHECK(waitpid(child, &ended, 0) == child && ended == 0);
    OK(hg_timer_free(timer, &error));
}

static uint64_t own_owner, own_service;

static void free_everything(const hg_expiration *expiration, void *user)
{
    hg_owner owner_;
    hg_service service_;
    (void)expiration;
    owner_.handle = __atomic_load_n(&own_owner, __ATOMIC_SEQ_CST);
    service_.handle = __atomic_load_n(&own_service, __ATOMIC_SEQ_CST);
    CHECK(hg_service_free(service_, NULL) == HG_OK && hg_owner_free(owner_, NULL) == HG_OK);
    __atomic_fetch_add((uint64_t *)user, 1, __ATOMIC_SEQ_CST);
}

/* The last of a service may go in an action of its own: nobody waits for himself. */
static void an_action_frees_everything(void)
{
    uint32_t kind;
    for (kind = HG_ACTION_IMMEDIATE; kind <= HG_ACTION_DEFERRED; kind++) {
        const uint64_t before = __atomic_load_n(&calls, __ATOMIC_SEQ_CST);
        const uint64_t gone = __atomic_load_n(&released, __ATOMIC_SEQ_CST);
        hg_action action = calling(kind);
        hg_class class_;
        hg_service other;
        hg_owner owner_;
        hg_timer timer;
        const hg_arm arm = hg_arm_after(MS);
        OK(hg_service_start(NULL, &other, &error));
        OK(hg_owner_new(other, "itself", &owner_, &error));
        OK(hg_class_new(other, "itself", NULL, &class_, &error));
        action.call = free_everything;
        action.class_ = class_;
        OK(hg_timer_new(owner_, NULL, &action, &timer, &error));
        OK(hg_class_free(class_, &error));
        __atomic_store_n(&own_owner, owner_.handle, __ATOMIC_SEQ_CST);
        __atomic_store_n(&own_service, other.handle, __ATOMIC_SEQ_CST);
        OK(hg_timer_arm(timer, &arm, &error));
        wait_for(&calls, before + 1);
        CHECK(hg_timer_arm(timer, &arm, &error) == HG_TERMINATED);
        OK(hg_timer_free(timer, &error));
        wait_for(&released, gone + 1);
    }
}

/* hg_arm_every(0) was once and at once. */
static void a_period_that_is_none(void)
{
    hg_timer timer;
    hg_timer_status status;
    hg_arm arm = hg_arm_every(0);
    OK(hg_timer_new(owner, NULL, NULL, &timer, &error));
    CHECK(hg_timer_arm(timer, &arm, &error) == HG_INVALID && strstr(error.text, "period of 0"));
    arm = hg_arm_every(-5);
    CHECK(hg_timer_arm(timer, &arm, &error) == HG_INVALID && strstr(error.text, "period of -5"));
    OK(hg_timer_look(timer, &status, &error));
    CHECK(!status.armed && status.fired == 0);
    OK(hg_timer_free(timer, &error));
}

/* A period of 1 ns: other timers have their turn, no expiry is forgotten, and the service tells its
 * resolution and its latest look as if nothing were. */
static void a_short_period_leaves_the_engine_time(void)
{
    hg_service own;
    hg_owner its;
    hg_timer timer, past;
    hg_timer_status status;
    hg_service_statistics before, statistics;
    hg_arm arm = hg_arm_every(1), long_ago = hg_arm_at(1);
    uint64_t begun, wall;
    OK(hg_service_start(NULL, &own, &error));
    OK(hg_service_look(own, 0, &before, &error));
    OK(hg_owner_new(own, "short", &its, &error));
    OK(hg_timer_new(its, NULL, NULL, &timer, &error));
    OK(hg_timer_new(its, NULL, NULL, &past, &error));
    OK(hg_timer_arm(past, &long_ago, &error));
    OK(hg_timer_sleep_for(past, MS, &error));
    OK(hg_service_look(own, 0, &statistics, &error));
    CHECK(statistics.precise == before.precise && statistics.latest_ns < hg_now() / 2);
    begun = hg_now();
    OK(hg_timer_arm(timer, &arm, &error));
    OK(hg_sleep_for(50 * MS, NULL, NULL, &error));
    OK(hg_timer_look(timer, &status, &error));
    wall = hg_now() - begun;
    /* Two looks in 100 us at most. */
    CHECK(status.fired > 0 && status.fired <= wall / 100000 * 2 + 2);
    CHECK(status.fired + status.overruns <= wall);
    OK(hg_owner_free(its, &error));
    OK(hg_service_free(own, &error));
}

/* RT-Mach's clock devices: a resolution within a skew, timers at ticks, none early. */
static void a_clock_device_ticks(void)
{
    hg_clock_device clock;
    hg_device_timer once, often;
    hg_device_expiry expiry;
    uint64_t actual = 0, from, last = 0;
    int found = 0, tries;
    CHECK(strcmp(hg_clock_device_name(0), "baseline") == 0 && hg_clock_device_name(99) == NULL);
    CHECK(hg_clock_device_open("sundial", &clock, &error) == HG_INVALID && strstr(error.text, "baseline"));
    OK(hg_clock_device_open(NULL, &clock, &error));
    CHECK(hg_clock_device_set_resolution(clock, 1, 0, &actual, &error) == HG_INVALID);
    OK(hg_clock_device_set_resolution(clock, MS, 50000, &actual, &error));
    CHECK(actual >= MS - 50000 && actual <= MS + 50000);
    OK(hg_device_timer_new(clock, 7, &once, &error));
    OK(hg_device_timer_new(clock, 8, &often, &error));
    from = hg_now();
    OK(hg_device_timer_arm(clock, once, from + 5 * MS, 0, &error));
    OK(hg_device_timer_arm(clock, often, from + 2 * MS, 2 * MS, &error));
    /* A tick may have come meanwhile; the next one is not there at once. */
    for (tries = 0; hg_clock_device_wait(clock, hg_now(), &error) != HG_TIMEOUT; tries++) {
        CHECK(tries < 100);
    }
    while (found < 4) {
        hg_status status = hg_clock_device_wait(clock, UINT64_MAX, &error);
        CHECK(status == HG_OK || status == HG_INTERRUPTED);
        while ((status = hg_clock_device_expired(clock, &expiry, &error)) == HG_OK) {
            CHECK(expiry.tick_ns >= (uint64_t)expiry.expiry_ns && expiry.tick_ns >= last);
            CHECK(expiry.tick_ns <= hg_now() && expiry.tag == (expiry.timer.handle == once.handle ? 7 : 8));
            last = expiry.tick_ns;
            found++;
        }
        CHECK(status == HG_EMPTY);
    }
    CHECK(hg_clock_device_now(clock) >= last);
    OK(hg_device_timer_cancel(clock, often, true, &error));
    OK(hg_device_timer_free(clock, often, &error));
    CHECK(hg_device_timer_arm(clock, often, from, 0, &error) == HG_STALE);
    OK(hg_clock_device_kick(clock));
    OK(hg_clock_device_free(clock, &error));
    CHECK(hg_clock_device_now(clock) == 0);
    CHECK(hg_clock_device_kick(clock) == HG_STALE);
}

/* Timers of the service bound to a tick that was asked for. */
static void a_service_on_a_tick(void)
{
    hg_service own;
    hg_owner its;
    hg_timer timer;
    hg_service_settings settings;
    hg_service_statistics statistics;
    memset(&settings, 0, sizeof settings);
    settings.tick_ns = MS;
    OK(hg_service_start(&settings, &own, &error));
    OK(hg_owner_new(own, "tick", &its, &error));
    OK(hg_timer_new(its, NULL, NULL, &timer, &error));
    OK(hg_timer_sleep_for(timer, 50 * MS, &error));
    OK(hg_timer_sleep_for(timer, 2 * MS, &error));
    OK(hg_service_look(own, 0, &statistics, &error));
    CHECK(!statistics.precise && statistics.ticks_skipped >= 48);
    OK(hg_owner_free(its, &error));
    OK(hg_service_free(own, &error));
}

int main(void)
{
    hg_service_settings settings;
    hg_service_statistics statistics;
    hg_timer last;
    hg_arm arm = hg_arm_after(S);
    memset(&settings, 0, sizeof settings);
    settings.device = 88;
    CHECK(hg_service_start(&settings, &service, &error) == HG_INVALID);
    settings.device = HG_DEVICE_SLEEP;
    settings.pinned = true;
    settings.cpu = 1023;
    CHECK(hg_service_start(&settings, &service, &error) == HG_INVALID && strstr(error.text, "[1023]"));
    settings.pinned = false;
    settings.engines = UINT32_MAX;
    CHECK(hg_service_start(&settings, &service, &error) == HG_INVALID && strstr(error.text, "1024"));
    OK(hg_service_start(NULL, &service, &error));
    OK(hg_owner_new(service, "test", &owner, &error));
    immediate_and_deferred();
    messages();
    wakes();
    a_sleep_on_a_timer_is_cancelled();
    an_action_frees_its_own_timer();
    an_action_frees_everything();
    bad_input();
    a_period_that_is_none();
    a_short_period_leaves_the_engine_time();
    a_clock_device_ticks();
    a_service_on_a_tick();
    a_child_is_told();
    OK(hg_service_look(service, 0, &statistics, &error));
    CHECK(statistics.created >= 5 && statistics.fired >= 5);
    CHECK(hg_service_look(service, 7, &statistics, &error) == HG_INVALID);
    /* Everything of an owner ends with it; the service's handle may go before. */
    OK(hg_timer_new(owner, NULL, NULL, &last, &error));
    OK(hg_service_free(service, &error));
    CHECK(hg_owner_new(service, NULL, &owner, &error) == HG_STALE);
    OK(hg_owner_free(owner, &error));
    CHECK(hg_timer_arm(last, &arm, &error) == HG_TERMINATED);
    OK(hg_timer_free(last, &error));
    CHECK(hg_owner_terminate(owner, &error) == HG_STALE);
    return 0;
}
