/* The clock: the inline reads against the library's own, bounds, scales, sources, shared pages. */
#define _DEFAULT_SOURCE
#include <hourglass.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static uint64_t kernel_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Reads in turn, inline and by the call, while another thread draws new lines: never backwards. */
static volatile int done;

static void *redraw(void *unused)
{
    (void)unused;
    while (!__atomic_load_n(&done, __ATOMIC_ACQUIRE)) {
        hg_wall_reference wall = { hg_now(), 0, 5 };
        hg_wall_set(&wall, NULL);
        hg_clock_maintain();
    }
    hg_wall_release();
    return NULL;
}

static void both_reads_are_one_clock(void)
{
    pthread_t other;
    uint64_t last = hg_now_ordered(), inline_reads = 0;
    int round;
    CHECK(pthread_create(&other, NULL, redraw, NULL) == 0);
    for (round = 0; round < 200000; round++) {
        const uint64_t calls = hg_now_ordered_call();
        const uint64_t own = hg_now_ordered();
        hg_bounds bounds = hg_now_bounded_ordered();
        CHECK(calls >= last && own >= calls);
        CHECK(bounds.earliest_ns <= bounds.latest_ns && bounds.latest_ns >= own);
        inline_reads += hg_page_read_(hg_clock_page_v1, false, &last);
        last = own;
    }
    __atomic_store_n(&done, 1, __ATOMIC_RELEASE);
    pthread_join(other, NULL);
    printf("%llu of 200000 reads were inline\n", (unsigned long long)inline_reads);
}

static void the_time_is_the_kernels(void)
{
    int round;
    for (round = 0; round < 1000; round++) {
        const uint64_t before = kernel_ns(CLOCK_MONOTONIC);
        const hg_bounds bounds = hg_now_bounded_ordered();
        const uint64_t after = kernel_ns(CLOCK_MONOTONIC);
        CHECK(bounds.latest_ns >= before && bounds.earliest_ns <= after);
        CHECK(bounds.status <= HG_CLOCK_FAILED_OVER && bounds.reserved == 0);
    }
    CHECK(hg_is_after((hg_bounds){ 10, 20, 0, 0 }, 9) && !hg_is_after((hg_bounds){ 10, 20, 0, 0 }, 10));
    CHECK(hg_is_before((hg_bounds){ 10, 20, 0, 0 }, 21));
    CHECK(hg_recent() <= hg_now_ordered());
}

static void scales_and_ticks(void)
{
    hg_error error;
    hg_scale_time time;
    hg_elapsed elapsed;
    hg_ticks first, second;
    const uint64_t before = kernel_ns(CLOCK_REALTIME);
    OK(hg_now_on(HG_SCALE_REALTIME, &time, &error));
    CHECK(time.ns + (int64_t)time.error_ns + 1000 >= (int64_t)before);
    CHECK(time.ns - (int64_t)time.error_ns - 1000 <= (int64_t)kernel_ns(CLOCK_REALTIME));
    OK(hg_now_on(HG_SCALE_BOOTTIME, &time, &error));
    CHECK(hg_now_on(17, &time, &error) == HG_INVALID && strstr(error.text, "HG_SCALE_"));
    first = hg_clock_ticks();
    second = hg_clock_ticks();
    if (hg_clock_elapsed(first, second, &elapsed, &error) == HG_OK) {
        CHECK(elapsed.ns >= -1000 && elapsed.ns < S);
        OK(hg_clock_elapsed(second, first, &elapsed, &error));
        CHECK(elapsed.ns <= 1000);
    }
    second.epoch += 1000;
    CHECK(hg_clock_elapsed(first, second, &elapsed, &error) == HG_MIXED_TICKS);
}

static void sources(void)
{
    hg_error error;
    size_t count = 0;
    hg_clock_event events[64];
    const uint64_t before = hg_now_ordered();
    OK(hg_clock_set_source(HG_SOURCE_OS, &error));
    CHECK(hg_clock_source() == HG_SOURCE_OS);
    CHECK(hg_now_ordered() >= before);
    CHECK(hg_clock_set_source(HG_SOURCE_HPET, &error) == HG_UNSUPPORTED);
    CHECK(strstr(error.text, "hpet") && hg_clock_source() == HG_SOURCE_OS);
    CHECK(hg_clock_set_source(-1, &error) == HG_INVALID);
    CHECK(hg_clock_set_source(0, &error) == HG_INVALID && hg_clock_set_source(99, &error) == HG_INVALID);
    OK(hg_clock_events(events, 64, &count, &error));
    CHECK(count >= 1 && hg_clock_count(HG_EVENT_BY_HAND) >= 1 && hg_clock_count(99) == 0);
    CHECK(events[count - 1].kind == HG_EVENT_BY_HAND && events[count - 1].text[0] != '\0');
    OK(hg_clock_events(NULL, 0, &count, &error));
    CHECK(hg_clock_events(NULL, 1, &count, &error) == HG_NULL);
    CHECK(strcmp(hg_source_name(HG_SOURCE_TSC), "tsc") == 0);
}

/* On a machine that is not synchronised, by a time that is set here. */
static void utc(void)
{
    hg_error error;
    hg_utc_wait wait;
    hg_bounds bounds;
    uint32_t i, inline_reads = 0;
    hg_interrupt set = HG_INTERRUPT_INIT;
    hg_wall_reference said = { 0, 1000 * S, 1000000 };
    const hg_utc unknown = { INT64_MIN, INT64_MAX, HG_WALL_UNKNOWN, 0 };
    hg_utc begun, now;
    uint64_t read_ns;
    said.monotonic_ns = hg_now_ordered();
    OK(hg_wall_set(&said, &error));
    read_ns = hg_now_ordered();
    begun = hg_utc_bounded();
    CHECK(begun.status == HG_WALL_BY_HAND && begun.earliest_ns < 1000 * (int64_t)S + (int64_t)S);
    CHECK(begun.latest_ns - begun.earliest_ns >= 2000000);
    OK(hg_utc_wait_until_past(begun.latest_ns, UINT64_MAX, NULL, &wait, &error));
    CHECK(wait.error_ns >= 1000000 && wait.last.earliest_ns > begun.latest_ns);
    CHECK(hg_now_ordered() - read_ns >= 2000000);
    now = hg_utc_bounded();
    CHECK(hg_utc_is_before(begun, now) == HG_BEFORE_YES && hg_utc_is_before(now, begun) == HG_BEFORE_NO);
    CHECK(hg_utc_is_before(now, now) == HG_BEFORE_UNKNOWN);
    CHECK(hg_utc_is_before(unknown, now) == HG_BEFORE_UNKNOWN);
    OK(hg_utc_wait_until_past(0, 0, NULL, NULL, NULL));
    CHECK(hg_utc_wait_until_past(now.latest_ns, 1000, NULL, &wait, &error) == HG_TIMEOUT);
    hg_interrupt_set(&set);
    CHECK(hg_utc_wait_until_past(INT64_MAX - 1, UINT64_MAX, &set, &wait, &error) == HG_INTERRUPTED);
    hg_wall_release();
    now = hg_utc_bounded();
    for (i = 0; i < 100000; i++) {
        /* The call between two inline reads says the same, until the kernel's next tick. */
        const hg_utc before = hg_utc_bounded(), called = hg_utc_bounded_call();
        hg_utc after;
        if (!hg_utc_read_(&after)) {
            continue;
        }
        inline_reads++;
        CHECK(before.status != called.status || called.status != after.status
              || (before.earliest_ns <= called.latest_ns && called.earliest_ns <= after.latest_ns));
    }
    /* As the bounded read itself, but for the ticks. */
    CHECK(inline_reads > 1000 || !hg_page_read_bounded_(hg_clock_page_v1, false, &bounds));
    CHECK(now.status <= HG_WALL_SYNCHRONISED);
    CHECK(now.status != HG_WALL_UNKNOWN || hg_utc_wait_until_past(0, 0, NULL, NULL, NULL) == HG_UNSUPPORTED);
}

static void utc_keeper(void)
{
    hg_error error;
    hg_utc_keeper keeper;
    hg_utc_source source;
    hg_status found;
    OK(hg_utc_keeper_start(&keeper, &error));
    found = hg_utc_keeper_look(keeper, &source, &error);
    if (found == HG_OK) {
        CHECK(source.name[0] != 0 && source.at_ns <= hg_now_ordered());
        CHECK(hg_utc_bounded().status == HG_WALL_SYNCHRONISED);
    } else {
        CHECK(found == HG_UNSUPPORTED && strstr(error.text, "chronyd: ") != NULL);
    }
    OK(hg_utc_keeper_free(keeper, &error));
    CHECK(hg_utc_keeper_look(keeper, &source, &error) == HG_STALE);
}

static void wall(void)
{
    hg_error error;
    hg_wall_reference said = { 0, 5000, 7 };
    hg_wall_time time;
    said.monotonic_ns = hg_now_ordered();
    OK(hg_wall_set(&said, &error));
    time = hg_wall();
    CHECK(time.status == HG_WALL_BY_HAND && time.ns >= 5000 - 1000 && time.ns < 5000 + S);
    CHECK(time.error_ns >= 7 && time.error_ns < S);
    hg_wall_release();
    CHECK(hg_wall().status <= HG_WALL_SYNCHRONISED);
    CHECK(hg_wall_set(NULL, &error) == HG_NULL && hg_wall_steer(NULL, NULL) == HG_NULL);
}

static void pages(void)
{
    hg_error error;
    hg_page page;
    hg_page_writer writer;
    int32_t fd = -1;
    int file[2];
    uint64_t ns;
    OK(hg_clock_share(&fd, &error));
    OK(hg_page_open(fd, &page, &error));
    close(fd);
    ns = hg_now_ordered();
    CHECK(hg_page_now_ordered(&page) + 500 * MS > ns && hg_page_now(&page) < ns + 10 * S);
    CHECK(hg_page_now_bounded(&page).latest_ns > 0);
    OK(hg_page_writer_of(&page, &writer, &error));
    CHECK(writer.pid == (uint64_t)getpid());
    OK(hg_page_close(&page, &error));
    CHECK(hg_page_now(&page) == 0 && hg_page_now_bounded(&page).latest_ns == 0);
    CHECK(hg_page_close(&page, &error) == HG_STALE);
    CHECK(hg_page_writer_of(&page, &writer, &error) == HG_STALE);
    CHECK(hg_page_now(NULL) == 0 && hg_page_open(-1, &page, &error) == HG_INVALID);
    /* A file that is no page, and one that is not open. */
    CHECK(pipe(file) == 0 && hg_page_open(file[0], &page, &error) == HG_PAGE);
    CHECK(strstr(error.text, "hg_clock_share"));
    close(file[0]);
    CHECK(hg_page_open(file[0], &page, &error) == HG_OS && error.os_errno == 9 /* EBADF */);
}

int main(void)
{
    hg_error error;
    hg_hardware hardware;
    hg_trust trust;
    OK(hg_check_abi(&error));
    CHECK(hg_abi_version() == HG_ABI_VERSION && hg_version()[0] != '\0');
    CHECK(hg_check_abi_of(HG_ABI_VERSION + 1, &error) == HG_OTHER_VERSION && error.text[0] != '\0');
    the_time_is_the_kernels();
    both_reads_are_one_clock();
    scales_and_ticks();
    wall();
    utc();
    utc_keeper();
    OK(hg_clock_examine(&trust, &error));
    CHECK(trust.reason[0] != '\0');
    sources();
    pages();
    OK(hg_hardware_look(&hardware, &error));
    CHECK(hardware.hpet == HG_HPET_USABLE || hardware.hpet_reason[0] != '\0');
    return 0;
}
