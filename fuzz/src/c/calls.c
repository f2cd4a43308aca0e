/* Calls of the C interface, which and with what an input says: each answers by its code, and none crashes, hangs, is a
 * defect of the library (HG_PANIC) or changes errno. Sleeps are short; nothing here gets a real-time policy. */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <hourglass.h>
#include <string.h>

#include "frames.h"

enum { SLOTS = 3, MARK = 4242 };

static hg_error error;
static uint64_t answers;

static uint64_t number(void)
{
    static const uint64_t hard[] = { 1, UINT32_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, UINT64_MAX };
    uint64_t whole = 0;
    int byte;
    const uint8_t kind = next();
    switch (kind % 8) {
    case 0: return 0;
    case 1: return hard[next() % 5];
    case 2: return hg_now() + next() * UINT64_C(1000);
    case 3: return hg_now() - next() * UINT64_C(1000);
    case 4: return next() * UINT64_C(1000000);
    case 5: return UINT64_MAX - next();
    case 6:
        for (byte = 0; byte < 8; byte++) {
            whole = whole << 8 | next();
        }
        return whole;
    default: return next();
    }
}

/* A length that is slept, at most 128 us. */
static uint64_t brief(void) { return next() * UINT64_C(500); }

static bool rarely(void) { return next() % 16 == 15; }

#define OR_NULL(address) (rarely() ? NULL : (address))

static hg_error *told;

/* What is no failure has no text. */
static void judge(hg_status status, const char *call)
{
    if (errno != MARK) {
        FAIL("%s: errno became %d", call, errno);
    }
    if (status == HG_PANIC || strcmp(hg_status_name(status), "unknown") == 0) {
        FAIL("%s: %d: %s", call, status, told ? error.text : "");
    }
    if (told && status != HG_OK
        && (error.kind != status || (status >= HG_NULL && error.text[0] == 0) || !memchr(error.text, 0, sizeof error.text))) {
        FAIL("%s: returns %d, the error is %d: %.256s", call, status, error.kind, error.text);
    }
    if (told && status == HG_OK && error.kind != -1) {
        FAIL("%s: the error was changed without one", call);
    }
    answers = answers * 31 + (uint64_t)status;
}

/* `E` is the address of an error, or none. */
#define E (error.kind = -1, error.text[0] = 0, told = OR_NULL(&error))
#define CALL(call) (told = NULL, errno = MARK, judge((call), #call))

/* Handles of a kind: what was made, what was freed, and what never was either. */
#define HANDLES(type, name, made, freed)                                                           \
    static type name##_slots[SLOTS];                                                               \
    static type *name(void)                                                                        \
    {                                                                                              \
        static type forged;                                                                        \
        if (rarely()) {                                                                            \
            forged.handle = number();                                                              \
            return &forged;                                                                        \
        }                                                                                          \
        return &name##_slots[next() % SLOTS];                                                      \
    }                                                                                              \
    static void free_##name(void) { type *one = name(); CALL(freed); }                             \
    static void new_##name(void)                                                                   \
    {                                                                                              \
        type *one = &name##_slots[next() % SLOTS];                                                 \
        told = NULL;                                                                               \
        (void)(freed);                                                                             \
        made                                                                                       \
    }                                                                                              \
    static void end_##name(void)                                                                   \
    {                                                                                              \
        size_t slot;                                                                               \
        length = at = 0;                                                                           \
        for (slot = 0; slot < SLOTS; slot++) {                                                     \
            type *one = &name##_slots[slot];                                                       \
            (void)(freed);                                                                         \
            one->handle = 0;                                                                       \
        }                                                                                          \
    }

static hg_interrupt interrupt = HG_INTERRUPT_INIT;

static void sleeper_settings(hg_sleep_settings *settings)
{
    *settings = next() & 1 ? hg_sleep_defaults() : hg_sleep_precise();
    switch (next() % 9) {
    case 0: settings->policy = (uint32_t)number(); break;
    case 1: settings->hz = (uint32_t)number(); break;
    case 2: settings->per_sleep_ns = number(); break;
    case 3: settings->share_ppm = (uint32_t)number(); break;
    case 4: settings->quantile_ppm = (uint32_t)number(); break;
    case 5: settings->of_wait_ppm = (uint32_t)number(); break;
    case 6: settings->seed_ns = number(); break;
    case 7: settings->sample_every = (uint32_t)number(); break;
    default: break;
    }
}

HANDLES(hg_sleeper, sleeper, {
    hg_sleep_settings settings;
    sleeper_settings(&settings);
    CALL(hg_sleeper_new(OR_NULL(&settings), OR_NULL(one), E));
}, hg_sleeper_free(*one, E))
static const char *device_name(void)
{
    static const char *const names[] = { "baseline", "timerfd", "posix", "rtc", "", "\xff", "none" };
    return names[next() % 7];
}

HANDLES(hg_clock_device, device, {
    CALL(hg_clock_device_open(OR_NULL(device_name()), OR_NULL(one), E));
}, hg_clock_device_free(*one, E))
HANDLES(hg_service, service, {
    hg_service_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.engines = next() & 1;
    settings.device = next() % 3;
    settings.tick_ns = next() & 1 ? number() : 0;
    CALL(hg_service_start(OR_NULL(&settings), OR_NULL(one), E));
}, hg_service_free(*one, E))
HANDLES(hg_owner, owner, { CALL(hg_owner_new(*service(), OR_NULL("owner"), OR_NULL(one), E)); },
        hg_owner_free(*one, E))
HANDLES(hg_port, port, { CALL(hg_port_new((uint32_t)number() & 0x81ff, OR_NULL(one), E)); }, hg_port_free(*one, E))
HANDLES(hg_thread, thread, { CALL(hg_thread_current(OR_NULL(one), E)); }, hg_thread_free(*one, E))
HANDLES(hg_watched, watched, { CALL(hg_watch_thread(OR_NULL(one), E)); }, hg_watched_free(*one, E))
static void timer_settings(hg_timer_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    settings->base = next() % 5;
    settings->on_engine = rarely();
    settings->engine = (uint32_t)number();
}

static void choose_action(hg_action *action)
{
    static const uint32_t kinds[] = { HG_ACTION_NOTHING, 1, HG_ACTION_SEND, HG_ACTION_IMMEDIATE, HG_ACTION_FAULT, 6 };
    memset(action, 0, sizeof *action);
    action->kind = kinds[next() % 6];
    action->tag = number();
    action->port = *port();
    action->thread = *thread();
    action->watched = *watched();
}

HANDLES(hg_timer, timer, {
    hg_timer_settings settings;
    hg_action action;
    timer_settings(&settings);
    choose_action(&action);
    CALL(hg_timer_new(*owner(), OR_NULL(&settings), OR_NULL(&action), OR_NULL(one), E));
}, hg_timer_free(*one, E))
HANDLES(hg_recording, recording, { (void)one; }, hg_recording_free(*one, E))

static void clock_calls(void)
{
    hg_scale_time scale;
    hg_elapsed elapsed;
    hg_clock_event events[4];
    hg_trust trust;
    size_t count;
    hg_ticks one = hg_clock_ticks(), other = hg_clock_ticks();
    hg_wall_reference said;
    const hg_bounds bounds = next() & 1 ? hg_now_bounded() : hg_now_bounded_ordered();
    if (bounds.earliest_ns > bounds.latest_ns) {
        FAIL("bounds out of order");
    }
    other.count = number();
    said.monotonic_ns = number();
    said.wall_ns = (int64_t)number();
    said.error_ns = number();
    switch (next() % 9) {
    case 0: CALL(hg_now_on((int32_t)number(), OR_NULL(&scale), E)); break;
    case 1: CALL(hg_clock_elapsed(one, other, OR_NULL(&elapsed), E)); break;
    case 2: CALL(hg_wall_set(OR_NULL(&said), E)); break;
    case 3: CALL(hg_wall_steer(OR_NULL(&said), E)); break;
    case 4: CALL(hg_clock_events(OR_NULL(events), next() % 5 * (next() & 1), OR_NULL(&count), E)); break;
    case 5: (void)hg_clock_count((uint32_t)number()), (void)hg_wall(), hg_wall_release(); break;
    case 6: (void)hg_clock_maintain(); break;
    case 7: CALL(hg_clock_examine(OR_NULL(&trust), E)); break;
    default: (void)hg_source_name((int32_t)number()), CALL(hg_check_abi_of((uint32_t)number(), E)); break;
    }
}

static hg_page page;

static void page_calls(void)
{
    hg_page_writer writer;
    int32_t fd = -1;
    switch (next() % 5) {
    case 0:
        CALL(hg_clock_share(OR_NULL(&fd), E));
        if (!page.words) {
            CALL(hg_page_open(fd, OR_NULL(&page), E));
        }
        if (fd >= 0) {
            (void)close(fd);
        }
        break;
    case 1: CALL(hg_page_open(-(int32_t)(number() & 0x7fffffff), OR_NULL(&page), E)); break;
    case 2: (void)hg_page_now(OR_NULL(&page)), (void)hg_page_now_ordered(&page); break;
    case 3: (void)hg_page_now_bounded(OR_NULL(&page)), CALL(hg_page_writer_of(OR_NULL(&page), OR_NULL(&writer), E)); break;
    default: CALL(hg_page_close(OR_NULL(&page), E)); break;
    }
}

static void sleep_calls(void)
{
    hg_slept slept;
    switch (next() % 12) {
    case 0: CALL(hg_interrupt_set(OR_NULL(&interrupt))); break;
    case 1: (void)hg_interrupt_clear(OR_NULL(&interrupt)), (void)hg_interrupt_is_set(OR_NULL(&interrupt)); break;
    case 2: CALL(hg_sleep_for(brief(), OR_NULL(&interrupt), OR_NULL(&slept), E)); break;
    case 3: CALL(hg_sleep_until(hg_now() + brief(), NULL, OR_NULL(&slept), E)); break;
    case 4: new_sleeper(); break;
    case 5: CALL(hg_sleeper_for(*sleeper(), brief(), OR_NULL(&slept), E)); break;
    case 6: CALL(hg_sleeper_until(*sleeper(), hg_now() + brief(), OR_NULL(&slept), E)); break;
    case 7: CALL(hg_sleeper_interrupt(*sleeper())); break;
    case 8: (void)hg_sleeper_clear(*sleeper()), (void)hg_sleeper_margin(*sleeper(), number()); break;
    case 9: CALL(hg_sleeper_take_slack(*sleeper(), E)); break;
    case 10: CALL(hg_sleeper_ticks(*sleeper(), 0, OR_NULL(&slept), E)); break;
    default: free_sleeper(); break;
    }
}

static hg_device_timer device_timer;

static void device_calls(void)
{
    uint64_t actual;
    hg_device_expiry expiry;
    switch (next() % 10) {
    case 0: case 1: new_device(); break;
    case 2: CALL(hg_clock_device_set_resolution(*device(), number(), number(), OR_NULL(&actual), E)); break;
    case 3: CALL(hg_clock_device_wait(*device(), brief(), E)); break;
    case 4: CALL(hg_clock_device_kick(*device())), (void)hg_clock_device_now(*device()); break;
    case 5: CALL(hg_device_timer_new(*device(), number(), OR_NULL(&device_timer), E)); break;
    case 6: CALL(hg_device_timer_arm(*device(), device_timer, number(), number(), E)); break;
    case 7: CALL(hg_device_timer_cancel(*device(), device_timer, next() & 1, E)); break;
    case 8: CALL(hg_clock_device_expired(*device(), OR_NULL(&expiry), E)); break;
    default: if (next() & 1) { free_device(); } else { CALL(hg_device_timer_free(*device(), device_timer, E)); } break;
    }
}

static void service_calls(void)
{
    hg_service_statistics statistics;
    hg_timer_status status;
    hg_message message;
    hg_arm arm = hg_arm_at((int64_t)number());
    bool cancelled;
    switch (next() % 20) {
    case 0: if (next() % 4 == 0) { new_service(); } break;
    case 1: CALL(hg_service_look(*service(), (uint32_t)number(), OR_NULL(&statistics), E)); break;
    case 2: if (rarely()) { free_service(); } break;
    case 3: new_owner(); break;
    case 4: CALL(hg_owner_terminate(*owner(), E)); break;
    case 5: free_owner(); break;
    case 6: new_port(); break;
    case 7: (void)hg_port_fd(*port()), (void)hg_port_lost(*port()); break;
    case 8: CALL(hg_port_try_receive(*port(), OR_NULL(&message), E)); break;
    case 9: CALL(hg_port_receive(*port(), brief(), OR_NULL(&message), E)); break;
    case 10: free_port(); break;
    case 11: new_thread(); break;
    case 12: CALL(hg_unpark(*thread(), E)), hg_park(brief()); break;
    case 13: free_thread(); break;
    case 14: new_timer(); break;
    case 15:
    case 16:
        arm.relative = next() & 1;
        arm.period_ns = next() & 1 ? (int64_t)number() : 0;
        arm.slack_ns = next() & 1 ? (int64_t)number() : 0;
        arm.has_priority = rarely();
        arm.priority = next();
        CALL(hg_timer_arm(*timer(), OR_NULL(&arm), E));
        break;
    case 17: CALL(hg_timer_cancel(*timer(), (uint32_t)number(), OR_NULL(&cancelled), E)); break;
    case 18: CALL(hg_timer_look(*timer(), OR_NULL(&status), E)); break;
    default: if (next() & 1) { free_timer(); } else { CALL(hg_timer_terminate(*timer(), E)); } break;
    }
}

static void watch_calls(void)
{
    hg_watch_settings settings;
    hg_watch_state state;
    hg_ending ending;
    uint64_t faults, untold;
    bool ahead;
    memset(&settings, 0, sizeof settings);
    switch (next() % 14) {
    case 0: CALL(hg_watch_begin(OR_NULL(&settings), E)); break;
    case 1: CALL(hg_watch_set(OR_NULL(&settings), E)); break;
    case 2: CALL(hg_watch_end(E)); break;
    case 3: new_watched(); break;
    case 4: CALL(hg_watch_arm_at(number(), E)); break;
    case 5: CALL(hg_watch_arm_in(number(), E)); break;
    case 6: CALL(hg_watch_disarm(OR_NULL(&ahead), E)); break;
    case 7: CALL(hg_watch_arm_budget(number(), E)), CALL(hg_watch_disarm_budget(E)); break;
    case 8: CALL(hg_watch_begin_job_in(number(), E)); break;
    case 9: CALL(hg_watch_begin_jobs(number(), number(), E)); break;
    case 10: CALL(hg_watch_end_job(OR_NULL(&ending), E)); break;
    case 11: CALL(hg_watch_look(OR_NULL(&state), E)), CALL(hg_safepoint()); break;
    case 12: CALL(hg_watched_faults(*watched(), OR_NULL(&faults), OR_NULL(&untold), E)); break;
    default: free_watched(); break;
    }
}

static hg_span span;

static void other_calls(void)
{
    hg_request request;
    hg_witness_view view;
    hg_loss loss;
    hg_recording_summary summary;
    hg_interval intervals[2];
    size_t count;
    hg_hardware hardware;
    hg_progress_page progress;
    memset(&request, 0, sizeof request);
    request.budget_ns = number();
    request.period_ns = number();
    request.deadline_ns = number();
    switch (next() % 10) {
    case 0: CALL(hg_reserve_check((uint32_t)number(), OR_NULL(&request), E)); break;
    case 1: CALL(hg_witness_open(OR_NULL(&view), E)); break;
    case 2: span = hg_witness_begin(); break;
    case 3: CALL(hg_witness_end(OR_NULL(&span), OR_NULL(&loss), E)); break;
    case 4: CALL(hg_witness_detach(OR_NULL(&span), E)); break;
    case 5: CALL(hg_witness_attach(OR_NULL(&span), E)); break;
    case 6: CALL(hg_recording_look(*recording(), OR_NULL(&summary), E)); break;
    case 7: CALL(hg_recording_intervals(*recording(), number(), OR_NULL(intervals), next() % 3, OR_NULL(&count), E)); break;
    case 8:
        CALL(hg_progress_open(&progress, E));
        hg_progress(&progress, number(), number());
        (void)hg_progress_next_release(&progress, number());
        CALL(hg_progress_close(OR_NULL(&progress), NULL));
        (void)hg_progress_close(&progress, NULL);
        break;
    default: if (rarely()) { CALL(hg_hardware_look(OR_NULL(&hardware), E)); } free_recording(); break;
    }
}

/* As after the start, so that an input says the same when it is tried alone. */
static void end_all(void)
{
    end_timer(), end_owner(), end_port(), end_thread(), end_service(), end_device();
    end_watched(), end_sleeper(), end_recording();
    (void)hg_watch_end(NULL), (void)hg_page_close(&page, NULL), (void)hg_interrupt_clear(&interrupt);
    memset(&page, 0, sizeof page), memset(&span, 0, sizeof span), memset(&device_timer, 0, sizeof device_timer);
    hg_wall_release();
}

int main(void)
{
    static void (*const calls[])(void) = { clock_calls, page_calls, sleep_calls, device_calls, service_calls,
                                           service_calls, watch_calls, other_calls };
    enum { MOST = 128 };
    end_with_parent();
    for (;;) {
        int left = MOST;
        take();
        answers = 0;
        while (at < length && left-- > 0) {
            calls[next() % (sizeof calls / sizeof *calls)]();
        }
        end_all();
        answer(answers);
    }
}
