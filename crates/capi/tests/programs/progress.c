/* Progress: what the header writes. Told by HOURGLASS_PROGRESS to write for others, it leaves a job at 30 of
 * 120 there and waits for its input to end. */
#define _DEFAULT_SOURCE
#include <hourglass.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"

static hg_error error;

static uint64_t word(const hg_progress_page *page, int index)
{
    return __atomic_load_n(page->words + index, __ATOMIC_ACQUIRE);
}

static void jobs(void)
{
    hg_progress_page page, second;
    OK(hg_progress_open(&page, &error));
    CHECK(word(&page, HG_PROGRESS_JOB_) == 0 && hg_progress_next_release(&page, 5) == 0);
    hg_progress(&page, 3, 10);
    CHECK(word(&page, HG_PROGRESS_JOB_) == 2 && word(&page, HG_PROGRESS_DONE_) == 3);
    hg_progress(&page, 10, 10);
    CHECK(word(&page, HG_PROGRESS_JOB_) == 2 && word(&page, HG_PROGRESS_TOTAL_) == 10);
    /* What was done is followed by the next job. */
    hg_progress(&page, 1, 10);
    CHECK(word(&page, HG_PROGRESS_JOB_) == 4 && word(&page, HG_PROGRESS_DONE_) == 1);
    /* A total of 0 states nothing: neither an end nor a begin. */
    hg_progress(&page, 0, 0);
    hg_progress(&page, 7, 0);
    CHECK(word(&page, HG_PROGRESS_DONE_) == 1 && word(&page, HG_PROGRESS_TOTAL_) == 10);
    hg_progress(&page, 2, 10);
    CHECK(word(&page, HG_PROGRESS_JOB_) == 4 && word(&page, HG_PROGRESS_DONE_) == 2);
    uint64_t before = hg_now_ordered();
    hg_progress_begin(&page);
    CHECK(word(&page, HG_PROGRESS_JOB_) == 6 && word(&page, HG_PROGRESS_DONE_) == 0);
    /* As close as two readings of the clock. */
    CHECK(word(&page, HG_PROGRESS_BEGUN_) + 1000 > before);
    CHECK(word(&page, HG_PROGRESS_BEGUN_) < hg_now_ordered() + 1000);
    /* The grid, which the monitor tells. */
    __atomic_store_n(page.words + HG_PROGRESS_FIRST_, 100, __ATOMIC_RELEASE);
    __atomic_store_n(page.words + HG_PROGRESS_PERIOD_, 70, __ATOMIC_RELEASE);
    CHECK(hg_progress_next_release(&page, 0) == 100 && hg_progress_next_release(&page, 99) == 100);
    CHECK(hg_progress_next_release(&page, 100) == 170 && hg_progress_next_release(&page, 171) == 240);
    OK(hg_progress_open(&second, &error));
    OK(hg_progress_close(&second, &error));
    OK(hg_progress_close(&page, &error));
    /* Closed: it does nothing, and is told. */
    hg_progress(&page, 1, 2);
    hg_progress_begin(&page);
    hg_progress(NULL, 1, 2);
    CHECK(hg_progress_next_release(&page, 0) == 0);
    CHECK(hg_progress_close(&page, &error) == HG_STALE && hg_progress_open(NULL, &error) == HG_NULL);
}

static void bad_pages(void)
{
    hg_progress_page page;
    CHECK(setenv("HOURGLASS_PROGRESS", "/nowhere/page", 1) == 0);
    CHECK(hg_progress_open(&page, &error) == HG_PAGE && strstr(error.text, "/nowhere/page"));
    CHECK(unsetenv("HOURGLASS_PROGRESS") == 0);
}

int main(void)
{
    if (getenv("HOURGLASS_PROGRESS")) {
        hg_progress_page page;
        char rest[8];
        OK(hg_progress_open(&page, &error));
        hg_progress(&page, 30, 120);
        printf("told\n");
        fflush(stdout);
        CHECK(read(0, rest, sizeof rest) == 0);
        hg_progress(&page, 120, 120);
        OK(hg_progress_close(&page, &error));
        return 0;
    }
    jobs();
    bad_pages();
    return 0;
}
