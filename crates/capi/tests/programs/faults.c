/* A thread's own deadlines, its handler, regions and safepoints. */
#define _DEFAULT_SOURCE
#include <hourglass.h>
#include <pthread.h>
#include <string.h>

#include "check.h"

static uint64_t told, released;

static hg_verdict entry(const hg_fault *fault, void *user)
{
    hg_verdict verdict;
    memset(&verdict, 0, sizeof verdict);
    (void)user;
    if (fault->handled_ns < fault->deadline_ns || fault->stopped_ns < fault->deadline_ns) {
        return verdict; /* early: told stays where it is, and the test fails */
    }
    if (__atomic_add_fetch(&told, 1, __ATOMIC_SEQ_CST) >= 2) {
        verdict.kind = HG_VERDICT_END;
    } else {
        verdict.changes = HG_CHANGE_DEADLINE_IN;
        verdict.deadline_ns = MS;
    }
    return verdict;
}

static void release(void *user)
{
    __atomic_fetch_add((uint64_t *)user, 1, __ATOMIC_SEQ_CST);
}

static void *watched(void *result)
{
    hg_error error;
    hg_watch_settings settings;
    hg_watched self;
    hg_handler handler;
    hg_handled handled;
    hg_watch_state state;
    hg_ending ending;
    bool ahead = false;
    hg_status status;
    memset(&settings, 0, sizeof settings);
    CHECK(hg_watch_arm_in(MS, &error) == HG_INVALID && strstr(error.text, "hg_watch_begin"));
    settings.strength = 7;
    CHECK(hg_watch_begin(&settings, &error) == HG_INVALID);
    settings.strength = HG_STRENGTH_SUSPEND;
    status = hg_watch_begin(&settings, &error);
    if (status == HG_EXHAUSTED) {
        printf("skipped: %s\n", error.text);
        *(int *)result = 1;
        return NULL;
    }
    OK(status);
    CHECK(hg_watch_begin(&settings, &error) == HG_BUSY);
    OK(hg_watch_thread(&self, &error));
    OK(hg_handler_install(self, NULL, entry, &released, release, &handler, &error));
    {
        hg_handler second;
        const uint64_t gone = __atomic_load_n(&released, __ATOMIC_SEQ_CST);
        CHECK(hg_handler_install(self, NULL, entry, &released, release, &second, &error) == HG_BUSY);
        CHECK(__atomic_load_n(&released, __ATOMIC_SEQ_CST) == gone + 1);
        CHECK(hg_handler_install(self, NULL, NULL, NULL, NULL, &second, &error) == HG_NULL);
    }
    /* One that is met, and a series. */
    OK(hg_watch_begin_job_in((uint64_t)(600 * S), &error));
    OK(hg_watch_end_job(&ending, &error));
    CHECK(ending.was_job && !ending.missed && ending.next_deadline_ns == 0);
    OK(hg_watch_begin_jobs(hg_now() + (uint64_t)(600 * S), 7 * S, &error));
    OK(hg_watch_end_job(&ending, &error));
    CHECK(ending.next_deadline_ns == ending.deadline_ns + (uint64_t)(7 * S));
    OK(hg_watch_disarm(&ahead, &error));
    CHECK(ahead && hg_watch_arm_budget(0, &error) == HG_INVALID);
    CHECK(hg_watch_begin_jobs(5, 0, &error) == HG_INVALID);
    CHECK(hg_defer_leave(&error) == HG_INVALID);
    /* One that passes in a region is acted upon when that is left. */
    hg_defer_enter();
    hg_defer_enter();
    OK(hg_watch_begin_job_in(MS, &error));
    OK(hg_sleep_for(3 * MS, NULL, NULL, &error));
    OK(hg_defer_leave(&error));
    CHECK(__atomic_load_n(&told, __ATOMIC_SEQ_CST) == 0);
    OK(hg_defer_leave(&error));
    /* At once, unless a host kept the signal from this thread until then. */
    while (__atomic_load_n(&told, __ATOMIC_SEQ_CST) < 1) {
        let_signals_in();
    }
    /* The second one ends the thread. */
    while (hg_safepoint() == HG_OK) {
        let_signals_in();
    }
    CHECK(hg_safepoint() == HG_ENDED && hg_watch_arm_in(S, &error) == HG_ENDED);
    OK(hg_watch_look(&state, &error));
    CHECK(state.faults == 2 && state.untold == 0 && state.deadline_ns == UINT64_MAX);
    OK(hg_handler_look(handler, &handled, &error));
    CHECK(handled.faults == 2);
    OK(hg_handler_free(handler, &error));
    CHECK(hg_handler_look(handler, &handled, &error) == HG_STALE);
    OK(hg_watch_end(&error));
    CHECK(hg_watch_end(&error) == HG_INVALID);
    /* Watched no more. */
    CHECK(hg_handler_install(self, NULL, entry, &released, release, &handler, &error) == HG_STALE);
    CHECK(hg_watched_fault(self, 0, &ahead, &error) == HG_OK && !ahead);
    OK(hg_watched_free(self, &error));
    CHECK(hg_watched_fault(self, 0, NULL, &error) == HG_STALE);
    return NULL;
}

/* A watch ends with its thread, whatever was armed. */
static void *leaves(void *unused)
{
    (void)unused;
    if (hg_watch_begin(NULL, NULL) == HG_OK) {
        hg_watch_arm_in(20 * US, NULL);
        hg_watch_arm_budget((uint64_t)S, NULL);
    }
    hg_sleep_for(1000, NULL, NULL, NULL);
    return NULL;
}

static uint64_t freed, own;

/* A handler that takes itself away does not wait for its own end. */
static hg_verdict frees_itself(const hg_fault *fault, void *user)
{
    hg_handler handler;
    hg_verdict verdict;
    (void)fault;
    memset(&verdict, 0, sizeof verdict);
    handler.handle = __atomic_load_n(&own, __ATOMIC_SEQ_CST);
    if (hg_handler_free(handler, NULL) == HG_OK && hg_handler_free(handler, NULL) == HG_STALE) {
        __atomic_fetch_add((uint64_t *)user, 1, __ATOMIC_SEQ_CST);
    }
    return verdict;
}

static void *watched_once(void *unused)
{
    hg_error error;
    hg_watched self;
    hg_handler handler;
    const uint64_t gone = __atomic_load_n(&released, __ATOMIC_SEQ_CST);
    (void)unused;
    if (hg_watch_begin(NULL, &error) != HG_OK) {
        CHECK(error.kind == HG_EXHAUSTED);
        return NULL;
    }
    OK(hg_watch_thread(&self, &error));
    OK(hg_handler_install(self, NULL, frees_itself, &freed, NULL, &handler, &error));
    __atomic_store_n(&own, handler.handle, __ATOMIC_SEQ_CST);
    CHECK(hg_watched_fault(self, 0, NULL, &error) == HG_OK);
    while (__atomic_load_n(&freed, __ATOMIC_SEQ_CST) < 1) {
        hg_sleep_for(100 * US, NULL, NULL, NULL);
    }
    CHECK(hg_handler_free(handler, &error) == HG_STALE);
    /* There is room for another one, as soon as that one has left. */
    while (hg_handler_install(self, NULL, entry, &released, release, &handler, &error) == HG_BUSY) {
        hg_sleep_for(100 * US, NULL, NULL, NULL);
    }
    OK(hg_handler_free(handler, &error));
    CHECK(__atomic_load_n(&released, __ATOMIC_SEQ_CST) > gone);
    OK(hg_watched_free(self, &error));
    OK(hg_watch_end(&error));
    return NULL;
}

int main(void)
{
    pthread_t thread;
    int skipped = 0, round;
    for (round = 0; round < 50; round++) {
        CHECK(pthread_create(&thread, NULL, leaves, NULL) == 0);
        pthread_join(thread, NULL);
    }
    CHECK(hg_safepoint() == HG_OK);
    CHECK(pthread_create(&thread, NULL, watched, &skipped) == 0);
    pthread_join(thread, NULL);
    CHECK(skipped || released == 3);
    CHECK(pthread_create(&thread, NULL, watched_once, NULL) == 0);
    pthread_join(thread, NULL);
    return 0;
}
