/* A controller that keeps a loop of its own at 1 kHz: would a reservation be granted, was each step done in
 * its half millisecond, and what did the scheduler do to the loop meanwhile? */
#include <hourglass.h>
#include <inttypes.h>
#include <stdio.h>

enum { STEPS = 200 };
static const uint64_t PERIOD_NS = 1000000, DEADLINE_NS = 500000;

struct plant {
    double position, speed, error_sum;
};

/* One step of a PI controller that holds a cart at 1.0. */
static void step(struct plant *plant)
{
    const double dt = 0.001, error = 1.0 - plant->position;
    plant->error_sum += error * dt;
    plant->speed += (40.0 * error + 2.0 * plant->error_sum - 12.0 * plant->speed) * dt;
    plant->position += plant->speed * dt;
}

/* Runs on the handler's thread while the loop may stand: it neither allocates nor prints. */
static hg_verdict too_late(const hg_fault *fault, void *user)
{
    hg_verdict go_on = { 0 };
    (void)fault;
    __atomic_fetch_add((uint64_t *)user, 1, __ATOMIC_RELAXED);
    return go_on;
}

static int failed(const char *what, const hg_error *error)
{
    fprintf(stderr, "%s: %s: %s\n", what, hg_status_name(error->kind), error->text);
    return 1;
}

int main(void)
{
    hg_error error;
    hg_request request = { 0 };
    request.budget_ns = DEADLINE_NS / 2;
    request.period_ns = PERIOD_NS;
    request.deadline_ns = DEADLINE_NS;
    if (hg_reserve_check(0, &request, &error) == HG_OK) {
        printf("the kernel would reserve 0.25 ms in every millisecond\n");
    } else {
        printf("no reservation: %s\n", error.text);
    }

    uint64_t faults = 0;
    hg_watched self;
    hg_handler handler;
    if (hg_watch_begin(NULL, &error) != HG_OK || hg_watch_thread(&self, &error) != HG_OK
        || hg_handler_install(self, NULL, too_late, &faults, NULL, &handler, &error) != HG_OK) {
        return failed("watching", &error);
    }
    hg_loop_spec spec = { 0 };
    hg_loop loop;
    spec.name = "control";
    spec.period_ns = PERIOD_NS;
    spec.deadline_ns = DEADLINE_NS;
    spec.records = 4 * STEPS;
    if (hg_loop_start(&spec, &loop, &error) != HG_OK) {
        return failed("recording", &error);
    }

    struct plant plant = { 0 };
    uint64_t due = hg_now() + PERIOD_NS;
    for (int number = 0; number < STEPS; number++, due += PERIOD_NS) {
        if (hg_sleep_until(due, NULL, NULL, &error) != HG_OK) {
            return failed("sleeping", &error);
        }
        hg_watch_begin_job_at(due + DEADLINE_NS, NULL);
        hg_loop_begin_due(loop, due);
        step(&plant);
        hg_loop_end(loop);
        hg_watch_end_job(NULL, NULL);
    }

    hg_recording recording;
    hg_recording_summary found;
    if (hg_loop_finish(loop, &recording, &error) != HG_OK
        || hg_recording_look(recording, &found, &error) != HG_OK
        || hg_recording_free(recording, &error) != HG_OK) {
        return failed("the recording", &error);
    }
    hg_handler_free(handler, NULL);
    hg_watched_free(self, NULL);
    hg_watch_end(NULL);
    printf("%" PRIu64 " steps in time, %" PRIu64 " late (the handler was told of %" PRIu64
           "), %" PRIu64 " lost\n",
           found.deadlines.hit, found.deadlines.missed, faults, found.deadlines.lost);
    printf("%" PRIu64 " gaps, the longest %" PRIu64 " ns; the cart stands at %.3f\n", found.gaps,
           found.gap_max_ns, plant.position);
    return found.deadlines.completed == STEPS ? 0 : 1;
}
