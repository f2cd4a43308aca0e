/* Sleeping, and what ends it. */
#define _DEFAULT_SOURCE
#include <hourglass.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "check.h"

static hg_interrupt stop = HG_INTERRUPT_INIT;
static hg_interrupt on_signal = HG_INTERRUPT_INIT;

static void never_early(void)
{
    hg_error error;
    hg_slept slept;
    int round;
    for (round = 0; round < 50; round++) {
        const uint64_t deadline = hg_now_ordered() + (uint64_t)(round * 20 * US);
        OK(hg_sleep_until(deadline, NULL, &slept, &error));
        CHECK(hg_now_ordered() >= deadline && slept.woke_ns >= deadline);
        CHECK(slept.deadline_ns == deadline && !slept.interrupted);
    }
    OK(hg_sleep_until(0, NULL, &slept, NULL));
    CHECK(slept.delay == HG_DELAY_ALREADY_PAST && slept.kernel_ns == 0);
    OK(hg_sleep_for(0, NULL, NULL, NULL));
    OK(hg_sleep_ticks(1000, NULL, &slept, &error));
}

static void *later(void *unused)
{
    (void)unused;
    hg_sleep_for(5 * MS, NULL, NULL, NULL);
    hg_interrupt_set(&stop);
    return NULL;
}

static void an_interrupt_ends_a_sleep(void)
{
    hg_error error;
    hg_slept slept;
    pthread_t other;
    const uint64_t begun = hg_now_ordered();
    CHECK(pthread_create(&other, NULL, later, NULL) == 0);
    CHECK(hg_sleep_for((uint64_t)(600 * S), &stop, &slept, &error) == HG_INTERRUPTED);
    CHECK(slept.interrupted && hg_now_ordered() - begun < (uint64_t)(60 * S));
    pthread_join(other, NULL);
    /* It stays set. */
    CHECK(hg_interrupt_is_set(&stop));
    CHECK(hg_sleep_for((uint64_t)(600 * S), &stop, NULL, NULL) == HG_INTERRUPTED);
    CHECK(hg_interrupt_clear(&stop) && !hg_interrupt_clear(&stop));
    OK(hg_sleep_for(1000, &stop, NULL, &error));
}

static void a_signal_ends_a_sleep(void)
{
    hg_error error;
    OK(hg_interrupt_on_signal(&on_signal, SIGUSR1, &error));
    raise(SIGUSR1);
    CHECK(hg_sleep_for((uint64_t)(600 * S), &on_signal, NULL, &error) == HG_INTERRUPTED);
    CHECK(hg_interrupt_on_signal(&on_signal, SIGKILL, &error) == HG_INVALID);
    CHECK(strstr(error.text, "9") && hg_interrupt_on_signal(NULL, SIGUSR1, &error) == HG_NULL);
}

static hg_sleeper shared;

static void *sleeps_long(void *result)
{
    hg_status status;
    do { /* The other thread may have it at that moment. */
        status = hg_sleeper_for(shared, (uint64_t)(600 * S), NULL, NULL);
    } while (status == HG_BUSY);
    *(hg_status *)result = status;
    return NULL;
}

static void sleepers(void)
{
    hg_error error;
    hg_sleeper none = { 0 }, again;
    hg_sleep_settings settings = hg_sleep_defaults();
    hg_status result = -1;
    pthread_t other;
    int tries;
    OK(hg_sleeper_new(NULL, &shared, &error));
    OK(hg_sleeper_for(shared, 100 * US, NULL, &error));
    CHECK(pthread_create(&other, NULL, sleeps_long, &result) == 0);
    /* One thread at a time; nobody frees it meanwhile. */
    for (tries = 0; hg_sleeper_for(shared, 1, NULL, &error) != HG_BUSY; tries++) {
        CHECK(tries < 10000);
        hg_sleep_for(MS, NULL, NULL, NULL);
    }
    CHECK(strstr(error.text, "each thread"));
    CHECK(hg_sleeper_free(shared, &error) == HG_BUSY);
    OK(hg_sleeper_interrupt(shared));
    pthread_join(other, NULL);
    CHECK(result == HG_INTERRUPTED && hg_sleeper_clear(shared));
    OK(hg_sleeper_free(shared, &error));
    /* And used after that. */
    CHECK(hg_sleeper_for(shared, 1, NULL, &error) == HG_STALE && strstr(error.text, "freed"));
    CHECK(hg_sleeper_interrupt(shared) == HG_STALE && !hg_sleeper_clear(shared));
    CHECK(hg_sleeper_free(shared, &error) == HG_STALE);
    CHECK(hg_sleeper_take_slack(shared, &error) == HG_STALE);
    CHECK(hg_sleeper_hold_idle_latency(shared, 0, &error) == HG_STALE);
    settings.policy = HG_SLEEP_KERNEL_ONLY;
    OK(hg_sleeper_new(&settings, &again, &error));
    CHECK(again.handle != shared.handle && hg_sleeper_for(shared, 1, NULL, NULL) == HG_STALE);
    OK(hg_sleeper_until(again, hg_now() + 1000, NULL, &error));
    (void)hg_sleeper_margin(again, MS);
    OK(hg_sleeper_take_slack(again, &error));
    CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == 1);
    OK(hg_sleeper_until(again, hg_now() + 1000 * 1000, NULL, &error));
    CHECK(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0) == 1);
    if (hg_sleeper_hold_idle_latency(again, 1000, &error) != HG_OK) {
        CHECK(error.os_errno != 0 && error.text[0] != '\0');
    }
    OK(hg_sleeper_ticks(again, 1000, NULL, &error));
    OK(hg_sleeper_free(again, &error));
    CHECK(hg_sleeper_for(none, 1, NULL, &error) == HG_NULL);
    CHECK(hg_sleep_frugal().quantile_ppm < settings.quantile_ppm);
    settings = hg_sleep_precise();
    CHECK(settings.quantile_ppm == 999000 && settings.per_sleep_ns == UINT64_MAX);
    OK(hg_sleeper_new(&settings, &again, &error));
    OK(hg_sleeper_for(again, 100 * US, NULL, &error));
    OK(hg_sleeper_free(again, &error));
    settings.policy = 44;
    CHECK(hg_sleeper_new(&settings, &again, &error) == HG_INVALID && error.kind == HG_INVALID);
    /* What the header says of the settings. */
    for (int row = 0; row < 3; row++) {
        settings = hg_sleep_defaults();
        if (row == 0) {
            settings.quantile_ppm = 1000001;
        } else if (row == 1) {
            settings.reserved = 1;
        } else {
            memset(&settings, 0, sizeof settings);
        }
        CHECK(hg_sleeper_new(&settings, &again, &error) == HG_INVALID && error.kind == HG_INVALID);
    }

    CHECK(hg_sleeper_new(NULL, NULL, &error) == HG_NULL && strstr(error.text, "sleeper"));
}

static int asked;

static void *asks(void *sleeper)
{
    while (!__atomic_load_n(&asked, __ATOMIC_ACQUIRE)) {
        hg_sleeper other;
        other.handle = *(uint64_t *)sleeper;
        CHECK(hg_sleeper_margin(other, 20 * US) == 0);
    }
    return NULL;
}

/* Whoever asks for a sleeper's margin is not in the way of the thread that sleeps by it. */
static void a_margin_is_its_own_threads(void)
{
    hg_error error;
    hg_sleeper sleeper;
    pthread_t other;
    int round;
    OK(hg_sleeper_new(NULL, &sleeper, &error));
    OK(hg_sleeper_for(sleeper, 1, NULL, &error));
    CHECK(pthread_create(&other, NULL, asks, &sleeper.handle) == 0);
    for (round = 0; round < 3000; round++) {
        OK(hg_sleeper_for(sleeper, 20 * US, NULL, &error));
        (void)hg_sleeper_margin(sleeper, 20 * US);
    }
    __atomic_store_n(&asked, 1, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    OK(hg_sleeper_free(sleeper, &error));
}

static void an_interrupt_has_to_be_aligned(void)
{
    char *memory = malloc(256);
    char *wrong;
    hg_error error;
    CHECK(memory);
    wrong = (char *)(((uintptr_t)memory + 63) / 64 * 64 + 8);
    CHECK(hg_interrupt_set((hg_interrupt *)(void *)wrong) == HG_INVALID);
    CHECK(hg_sleep_for(1, (hg_interrupt *)(void *)wrong, NULL, &error) == HG_INVALID);
    CHECK(strstr(error.text, "64"));
    CHECK(hg_interrupt_set(NULL) == HG_NULL && !hg_interrupt_is_set(NULL));
    free(memory);
}

int main(void)
{
    never_early();
    an_interrupt_ends_a_sleep();
    a_signal_ends_a_sleep();
    sleepers();
    a_margin_is_its_own_threads();
    an_interrupt_has_to_be_aligned();
    return 0;
}
