/* The inline reads of a page, by the processor's own counter. With ALONE it needs no library: the test bed `aarch64`
 * compiles it for a processor for which there is none. */
#define _DEFAULT_SOURCE
#include <hourglass.h>

#include "check.h"

#ifdef HG_COUNTER_
#ifdef ALONE
static uint32_t generation = UINT32_MAX;
static uint64_t own_page[64];
const uint64_t *const hg_clock_page_v1 = own_page;
static void begin(void) { own_page[HG_PAGE_GENERATION_AT_] = (uint64_t)(uintptr_t)&generation; }
#else
static void begin(void) { (void)hg_now(); }
#endif

static void the_counter_goes_on(void)
{
    const uint64_t begun = hg_counter_ordered_();
    uint64_t last = begun;
    int round;
    for (round = 0; round < 100000; round++) {
        const uint64_t now = hg_counter_ordered_();
        CHECK(now - last < UINT64_C(1) << 63);
        last = now;
    }
    CHECK(last != begun && hg_counter_() - begun < UINT64_C(1) << 63);
}

/* A page made by hand: what the inline read computes is what the layout says. */
static void the_page_is_read_as_it_is_written(void)
{
    static uint64_t page[64];
    const unsigned shift = 60;
    const uint64_t mult = UINT64_C(1) << 59; /* half a nanosecond a tick */
    uint64_t before, after, ns = 7, *slot = page + 40;
    hg_bounds bounds;
    int round;
    page[8] = 1 << 2 | 2; /* the second slot, by an even turn */
    slot[0] = HG_COUNTER_ | (uint64_t)shift << 16 | (uint64_t)HG_CLOCK_STEADY << 24 | UINT64_C(9) << 32;
    slot[1] = before = hg_counter_ordered_();
    slot[2] = UINT64_C(1) << 50;
    slot[3] = mult;
    slot[4] = 1000;
    slot[5] = 100;
    slot[6] = UINT64_C(1) << 31; /* half a nanosecond a nanosecond */
    CHECK(hg_page_read_(page, true, &ns));
    after = hg_counter_ordered_();
    CHECK(ns >= 1000 && ns <= 1000 + (after - before) / 2);
    CHECK(hg_page_read_bounded_(page, true, &bounds));
    after = hg_counter_ordered_();
    CHECK(bounds.status == HG_CLOCK_STEADY && bounds.earliest_ns < bounds.latest_ns);
    ns = bounds.earliest_ns / 2 + bounds.latest_ns / 2;
    CHECK(bounds.latest_ns - ns >= 101 && bounds.latest_ns - ns <= 103 + (after - before) / 4);
    /* The kernel's clock is of another generation than the page's line, then of the same one. */
    slot[7] = 2;
    page[9] = 1 - page[8]; /* an odd one, which no clock has */
    CHECK(hg_page_read_(page, true, &ns) && !hg_page_read_bounded_(page, true, &bounds));
    for (round = 0; round < 1000; round++) {
        const uint32_t generation = hg_generation_();
        /* The same difference, of an earlier turn and an earlier generation. */
        page[9] = (page[8] - 2) << 32 | (uint32_t)(generation - (uint32_t)page[8]);
        CHECK(!hg_page_read_bounded_(page, true, &bounds));
        page[9] = page[8] << 32 | (uint32_t)(generation - (uint32_t)page[8]);
        if (hg_page_read_bounded_(page, true, &bounds)) {
            break;
        }
    }
    CHECK(round < 1000);
    /* Nothing says that it holds. */
    slot[7] = 1;
    page[9] = 1 - page[8];
    CHECK(hg_page_read_(page, true, &ns) && !hg_page_read_bounded_(page, true, &bounds));
    slot[7] = 0;
    /* A writer switches. */
    page[8] |= 1;
    CHECK(!hg_page_read_(page, false, &ns) && !hg_page_read_bounded_(page, false, &bounds));
    page[8] &= ~UINT64_C(1);
    /* Past its validity, and before its base. */
    slot[2] = 0;
    CHECK(!hg_page_read_(page, false, &ns) && !hg_page_read_bounded_(page, false, &bounds));
    slot[2] = UINT64_C(1) << 50;
    slot[1] = hg_counter_() + (UINT64_C(1) << 40);
    CHECK(!hg_page_read_(page, false, &ns) && !hg_page_read_bounded_(page, false, &bounds));
    /* Another counter. */
    slot[1] = before;
    slot[0] = (slot[0] & ~UINT64_C(0xffff)) | HG_SOURCE_HPET;
    CHECK(!hg_page_read_(page, false, &ns) && !hg_page_read_bounded_(page, false, &bounds));
}

int main(void)
{
    begin();
    the_counter_goes_on();
    the_page_is_read_as_it_is_written();
    return 0;
}
#else
int main(void) { return 0; }
#endif
