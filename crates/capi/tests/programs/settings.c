/* Settings that cannot be meant: each struct that a function takes, one field of it wrong at a time. HG_INVALID, and
 * the text names the field. As they begin, the same structs are taken. Source: "reserved fields are 0" of the header. */
#define _DEFAULT_SOURCE
#include <hourglass.h>
#include <string.h>

#include "check.h"

/* Everything at hand for a call; each row begins with a fresh one. */
typedef struct given {
    hg_sleep_settings sleep;
    hg_scheduling scheduling;
    hg_watch_settings watch;
    hg_handler_settings handler;
    hg_service_settings service;
    hg_class_settings class_;
    hg_action action;
    hg_timer_settings timer;
    hg_arm arm;
    hg_periodic_settings periodic;
    hg_loop_spec loop;
    hg_request request;
} given;

static hg_error error;
static hg_service service;
static hg_owner owner;
static hg_timer timer;

static bool last(hg_job *job, void *user)
{
    (void)job;
    (void)user;
    return false;
}

static hg_verdict resume(const hg_fault *fault, void *user)
{
    hg_verdict verdict;
    (void)fault;
    (void)user;
    memset(&verdict, 0, sizeof verdict);
    return verdict;
}

static hg_status sleeper(const given *with)
{
    hg_sleeper made;
    const hg_status status = hg_sleeper_new(&with->sleep, &made, &error);
    if (status == HG_OK) {
        OK(hg_sleeper_free(made, &error));
    }
    return status;
}

static hg_status watch(const given *with)
{
    const hg_status status = hg_watch_begin(&with->watch, &error);
    if (status == HG_OK) {
        OK(hg_watch_end(&error));
    }
    return status;
}

static hg_status watch_set(const given *with)
{
    hg_status status = hg_watch_begin(NULL, &error);
    if (status == HG_OK) {
        status = hg_watch_set(&with->watch, &error);
        OK(hg_watch_end(NULL));
    }
    return status;
}

static hg_status handler(const given *with)
{
    hg_watched self;
    hg_handler made;
    hg_status status = hg_watch_begin(NULL, &error);
    if (status != HG_OK) {
        return status;
    }
    OK(hg_watch_thread(&self, &error));
    status = hg_handler_install(self, &with->handler, resume, NULL, NULL, &made, &error);
    if (status == HG_OK) {
        OK(hg_handler_free(made, NULL));
    }
    OK(hg_watched_free(self, NULL));
    OK(hg_watch_end(NULL));
    return status;
}

static hg_status start_service(const given *with)
{
    hg_service made;
    const hg_status status = hg_service_start(&with->service, &made, &error);
    if (status == HG_OK) {
        OK(hg_service_free(made, &error));
    }
    return status;
}

static hg_status class_(const given *with)
{
    hg_class made;
    const hg_status status = hg_class_new(service, "class", &with->class_, &made, &error);
    if (status == HG_OK) {
        OK(hg_class_free(made, &error));
    }
    return status;
}

static hg_status make_timer(const given *with)
{
    hg_timer made;
    const hg_status status = hg_timer_new(owner, &with->timer, &with->action, &made, &error);
    if (status == HG_OK) {
        OK(hg_timer_free(made, &error));
    }
    return status;
}

static hg_status arm(const given *with) { return hg_timer_arm(timer, &with->arm, &error); }

static hg_status periodic(const given *with)
{
    hg_periodic made;
    const hg_status status = hg_periodic_start(&with->periodic, last, NULL, NULL, &made, &error);
    if (status == HG_OK) {
        OK(hg_periodic_free(made, &error));
    }
    return status;
}

static hg_status loop(const given *with)
{
    hg_loop made;
    hg_recording recording;
    const hg_status status = hg_loop_start(&with->loop, &made, &error);
    if (status == HG_OK) {
        OK(hg_loop_finish(made, &recording, &error));
        OK(hg_recording_free(recording, &error));
    }
    return status;
}

static hg_status reserve(const given *with) { return hg_reserve_check(0, &with->request, &error); }

static void begin(given *with)
{
    static hg_sleep_settings waiting;
    memset(with, 0, sizeof *with);
    waiting = with->sleep = hg_sleep_defaults();
    with->arm = hg_arm_after(S);
    with->periodic.period_ns = (uint64_t)MS;
    with->periodic.waiting = &waiting;
    with->loop.period_ns = (uint64_t)MS;
    with->loop.records = 16;
    with->request.budget_ns = (uint64_t)MS;
    with->request.period_ns = (uint64_t)(10 * MS);
}

/* `wrong` is a statement about `with`; `word` is in the text. */
#define REFUSED(call, wrong, word)                                                                 \
    do {                                                                                           \
        given with_;                                                                               \
        given *with = &with_;                                                                      \
        hg_status status_;                                                                         \
        begin(with);                                                                               \
        wrong;                                                                                     \
        memset(&error, 0, sizeof error);                                                           \
        status_ = call(with);                                                                      \
        if (status_ != HG_INVALID || !strstr(error.text, word)) {                                  \
            fprintf(stderr, "%s:%d: %s: %s: %s: %s\n", __FILE__, __LINE__, #call, #wrong,          \
                    hg_status_name(status_), error.text);                                          \
            refused = false;                                                                       \
        }                                                                                          \
    } while (0)

/* A policy within other settings. */
#define SCHEDULING(call, where)                                                                    \
    do {                                                                                           \
        REFUSED(call, where.reserved[6] = 1, "`reserved` of hg_scheduling");                       \
        REFUSED(call, where.policy = 7, "policy");                                                 \
        REFUSED(call, (where.policy = HG_POLICY_FIFO, where.priority = 0), "priority");            \
        REFUSED(call, (where.policy = HG_POLICY_RR, where.priority = 100), "priority");            \
        REFUSED(call, (where.policy = HG_POLICY_OTHER, where.priority = 20), "priority");          \
    } while (0)

#define TAKEN(call)                                                                                \
    do {                                                                                           \
        given with;                                                                                \
        begin(&with);                                                                              \
        OK(call(&with));                                                                           \
    } while (0)

int main(void)
{
    bool refused = true;
    OK(hg_service_start(NULL, &service, &error));
    OK(hg_owner_new(service, "owner", &owner, &error));
    OK(hg_timer_new(owner, NULL, NULL, &timer, &error));

    REFUSED(sleeper, memset(&with->sleep, 0, sizeof with->sleep), "all zero");
    REFUSED(sleeper, with->sleep.reserved = 1, "`reserved` of hg_sleep_settings");
    REFUSED(sleeper, with->sleep.policy = 4, "policy");
    REFUSED(sleeper, with->sleep.policy = HG_SLEEP_THESIS, "hz");
    REFUSED(sleeper, with->sleep.quantile_ppm = 1000001, "quantile_ppm");
    REFUSED(sleeper, with->sleep.ends_when = 2, "ends_when");

    REFUSED(watch, with->watch.strength = 3, "strength");
    REFUSED(watch, with->watch.signal = 9, "signal");
    REFUSED(watch, with->watch.signal = -1, "signal");
    REFUSED(watch_set, with->watch.strength = 3, "strength");

    REFUSED(handler, with->handler.reserved[2] = 1, "`reserved` of hg_handler_settings");
    SCHEDULING(handler, with->handler.scheduling);
    SCHEDULING(handler, with->handler.demoted);

    REFUSED(start_service, with->service.reserved[0] = 1, "`reserved` of hg_service_settings");
    REFUSED(start_service, with->service.engines = 1000000, "engines");
    REFUSED(start_service, with->service.device = 5, "device");
    REFUSED(start_service, with->service.tick_ns = UINT64_MAX, "tick_ns");
    SCHEDULING(start_service, with->service.scheduling);

    REFUSED(class_, with->class_.reserved[1] = 1, "`reserved` of hg_class_settings");
    REFUSED(class_, with->class_.room = (1 << 24) + 1, "room");
    SCHEDULING(class_, with->class_.scheduling);

    REFUSED(make_timer, with->action.reserved = 1, "`reserved` of hg_action");
    REFUSED(make_timer, with->action.kind = 6, "kind");
    REFUSED(make_timer, with->timer.reserved[1] = 1, "`reserved` of hg_timer_settings");
    REFUSED(make_timer, with->timer.reserved_too = 1, "`reserved` of hg_timer_settings");
    REFUSED(make_timer, with->timer.base = 99, "base");
    REFUSED(make_timer, (with->timer.on_engine = true, with->timer.engine = 1), "engine");

    REFUSED(arm, with->arm.reserved[4] = 1, "`reserved` of hg_arm");
    REFUSED(arm, with->arm.expiry_ns = -1, "expiry");
    REFUSED(arm, with->arm.period_ns = -1, "period");
    REFUSED(arm, with->arm.slack_ns = -1, "slack");

    REFUSED(periodic, with->periodic.reserved[3] = 1, "`reserved` of hg_periodic_settings");
    REFUSED(periodic, with->periodic.handler.reserved[0] = 1, "`reserved` of hg_handler_settings");
    REFUSED(periodic, with->periodic.watch.strength = 3, "strength");
    REFUSED(periodic, ((hg_sleep_settings *)with->periodic.waiting)->reserved = 1,
            "`reserved` of hg_sleep_settings");
    REFUSED(periodic, with->periodic.period_ns = 0, "period_ns");
    REFUSED(periodic, with->periodic.hertz = 1000, "hertz");
    REFUSED(periodic, with->periodic.on_overrun = 3, "on_overrun");
    REFUSED(periodic, with->periodic.period_ns = UINT64_MAX, "period_ns");
    REFUSED(periodic, with->periodic.deadline_ns = UINT64_MAX, "deadline_ns");
    REFUSED(periodic, with->periodic.phase_ns = UINT64_MAX, "phase_ns");
    REFUSED(periodic, with->periodic.budget_ns = UINT64_MAX, "budget_ns");
    REFUSED(periodic, with->periodic.epoch_ns = UINT64_MAX, "epoch_ns");
    REFUSED(periodic, with->periodic.scheduling.policy = HG_POLICY_IDLE, "HG_POLICY_IDLE");
    SCHEDULING(periodic, with->periodic.scheduling);

    REFUSED(loop, with->loop.reserved[0] = 1, "`reserved` of hg_loop_spec");
    REFUSED(loop, with->loop.period_ns = 0, "period");
    REFUSED(loop, with->loop.period_ns = UINT64_MAX, "period_ns");
    REFUSED(loop, with->loop.deadline_ns = UINT64_MAX, "deadline_ns");
    REFUSED(loop, with->loop.gap_ns = UINT64_MAX, "gap_ns");

    REFUSED(reserve, with->request.reserved[1] = 1, "`reserved` of hg_request");
    REFUSED(reserve, with->request.budget_ns = 0, "budget");
    REFUSED(reserve, with->request.period_ns = 0, "period");
    REFUSED(reserve, with->request.budget_ns = UINT64_MAX, "budget_ns");
    REFUSED(reserve, with->request.period_ns = UINT64_MAX, "period_ns");
    REFUSED(reserve, with->request.deadline_ns = UINT64_MAX, "deadline_ns");

    CHECK(refused);
    TAKEN(sleeper);
    TAKEN(start_service);
    TAKEN(class_);
    TAKEN(make_timer);
    TAKEN(arm);
    TAKEN(periodic);
    TAKEN(loop);
    OK(hg_timer_free(timer, &error));
    OK(hg_owner_free(owner, &error));
    OK(hg_service_free(service, &error));
    return 0;
}
