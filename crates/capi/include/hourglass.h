/*
 * hourglass.h: time and real-time scheduling on Linux, for C (C99) and C++ (C++11).
 *
 * Conventions, for every function unless it says otherwise
 *
 *   Threads    may be called from any thread, at the same time as anything else.
 *   Signals    must not be called from a signal handler. Those that may say "Signals: safe".
 *   Errors     hg_status is HG_OK (0) or a kind. `error` may be NULL; if it is not, it is written when
 *              the answer is not HG_OK, and left alone otherwise. It is the caller's own memory.
 *   Results    an address that a result is written to must not be NULL where the text does not say that
 *              it may; HG_NULL then, and nothing was done. Results are written only with HG_OK, but for
 *              `slept`, which is written by every sleep that took place.
 *   Memory     what is made with a function of this file is freed with the one of this file that its
 *              text names, and with nothing else. Nothing that a function returns by value, and no text
 *              that it returns, is to be freed. No function keeps an address that it was given, but
 *              where the text says so.
 *   Handles    are numbers in a struct of their own: {0} is no handle. One that was freed, or never was
 *              made, is answered with HG_STALE; nothing is freed while a call on it goes on: HG_BUSY.
 *   Times      are nanoseconds. A uint64_t of them without further words is on CLOCK_MONOTONIC.
 *   Call-backs run on the thread that the text names. They must return: neither longjmp, nor
 *              pthread_exit, nor a C++ exception may leave them. `user` is handed to them as it is, and
 *              `release`, if not NULL, is called with it exactly once, when no call-back will be called
 *              with it any more; also if the function that was given it fails.
 *   fork       a child must not use what its parent made, but for reading the clock; where that can be
 *              told the answer is HG_FORKED.
 */
#ifndef HOURGLASS_H
#define HOURGLASS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define HG_ALIGNED_(bytes) alignas(bytes)
extern "C" {
#else
#define HG_ALIGNED_(bytes) __attribute__((aligned(bytes)))
#endif

/* The version of this interface. The shared library is libhourglass.so.1 for it. */
#define HG_ABI_VERSION 1

/* ---- Errors -------------------------------------------------------------------------------- */

typedef int32_t hg_status;

enum {
    HG_OK = 0,
    /* What may happen and is no failure. */
    HG_INTERRUPTED = 1, /* a sleep was ended before its deadline */
    HG_TIMEOUT = 2,     /* nothing came within the limit */
    HG_EMPTY = 3,       /* there is nothing now */
    HG_ENDED = 4,       /* a deadline handler ended this thread: return from it */
    /* The caller's mistakes. */
    HG_NULL = 10,          /* an address or a handle is null */
    HG_STALE = 11,         /* a handle was freed, or never was made */
    HG_INVALID = 12,       /* a value cannot be meant */
    HG_BUSY = 13,          /* somebody uses it now */
    HG_WRONG_THREAD = 14,  /* it belongs to another thread */
    HG_OTHER_VERSION = 15, /* header and library, or page and library, do not fit */
    /* What the machine refuses. */
    HG_PERMISSION = 20,  /* a privilege is missing; the text says which line grants it */
    HG_EXHAUSTED = 21,   /* no memory, descriptors, signals or places are left */
    HG_UNSUPPORTED = 22, /* this machine has no such thing */
    HG_OS = 23,          /* something else; os_errno says what */
    /* States of things. */
    HG_FORKED = 30,     /* it belongs to the parent process */
    HG_CANCELLED = 31,  /* a sleep's timer was cancelled or armed anew */
    HG_TERMINATED = 32, /* a timer or its owner was terminated */
    HG_CLOCK_SET = 33,  /* the timer's clock was set */
    HG_PAGE = 40,       /* the file is no calibration page of this machine */
    HG_MIXED_TICKS = 41, /* the ticks are of different sources */
    /* Defects. */
    HG_PANIC = 50 /* of this library, or of a thread of it: please report it */
};

/* Bytes of a text within a struct, its terminating zero included. */
#define HG_TEXT 256

typedef struct hg_error {
    hg_status kind;
    int32_t os_errno;   /* as errno(3), or 0 */
    char text[HG_TEXT]; /* a sentence: what, and what to do about it */
} hg_error;

/* A status as a word, for logs. Signals: safe. */
const char *hg_status_name(hg_status status);

/* The library's own HG_ABI_VERSION. Signals: safe. */
uint32_t hg_abi_version(void);

/* The library's version, as "0.1.0". Signals: safe. */
const char *hg_version(void);

/* HG_OTHER_VERSION if a program compiled with interface `header` must not use this library. */
hg_status hg_check_abi_of(uint32_t header, hg_error *error);

/* The same for this header: to be called first where the library is loaded at run time. */
static inline hg_status hg_check_abi(hg_error *error)
{
    return hg_check_abi_of(HG_ABI_VERSION, error);
}

/* ---- The clock ----------------------------------------------------------------------------- */

/* What a bound rests on. */
enum {
    HG_CLOCK_OS = 0,         /* the kernel's clock serves */
    HG_CLOCK_SETTLING = 1,   /* a counter serves, calibrated over less than a second: wide bounds */
    HG_CLOCK_STEADY = 2,     /* a counter serves, calibrated */
    HG_CLOCK_FAILED_OVER = 3 /* a counter was found wanting; the kernel's clock serves since */
};

/* A time between two others: CLOCK_MONOTONIC was not before the one nor after the other when the clock
 * was read. */
typedef struct hg_bounds {
    uint64_t earliest_ns;
    uint64_t latest_ns;
    uint32_t status; /* HG_CLOCK_* */
    uint32_t reserved;
} hg_bounds;

/* The calibration page of this process' clock: 64 words that a thread of the process writes, with a
 * sequence lock. Its layout is version 1, which the symbol's name says; nobody reads it but the functions
 * below. */
extern const uint64_t *const hg_clock_page_v1;

/* The same reads by a call: what the inline ones fall back to. Signals: safe. */
uint64_t hg_now_call(void);
uint64_t hg_now_ordered_call(void);
hg_bounds hg_now_bounded_call(void);
hg_bounds hg_now_bounded_ordered_call(void);

/* Words of a page, and of the slot that counts. */
enum {
    HG_PAGE_RECENT_ = 6,
    HG_PAGE_TURN_ = 8,
    HG_PAGE_SLOT_ = 16,
    HG_PAGE_SLOT_WORDS_ = 24,
    HG_SLOT_META_ = 0,
    HG_SLOT_BASE_TICKS_ = 1,
    HG_SLOT_VALID_FOR_ = 2,
    HG_SLOT_MULT_ = 3,
    HG_SLOT_BASE_NS_ = 4,
    HG_SLOT_BOUND_NS_ = 5,
    HG_SLOT_GROWTH_ = 6
};

#if defined(__SIZEOF_INT128__) && defined(__x86_64__)
#define HG_COUNTER_ 2u /* HG_SOURCE_TSC */
static inline uint64_t hg_counter_(void) { return __builtin_ia32_rdtsc(); }
static inline uint64_t hg_counter_ordered_(void)
{
    unsigned int cpu;
    return __builtin_ia32_rdtscp(&cpu);
}
#elif defined(__SIZEOF_INT128__) && defined(__aarch64__)
#define HG_COUNTER_ 3u /* HG_SOURCE_CNTVCT */
static inline uint64_t hg_counter_(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
static inline uint64_t hg_counter_ordered_(void)
{
    uint64_t ticks;
    __asm__ volatile("isb\n\tmrs %0, cntvct_el0" : "=r"(ticks) : : "memory");
    return ticks;
}
#endif

/* Thread sanitizers do not know fences; there every load is one that acquires. */
#if defined(__SANITIZE_THREAD__)
#define HG_NO_FENCES_ 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HG_NO_FENCES_ 1
#endif
#endif

static inline uint64_t hg_load_(const uint64_t *word)
{
#ifdef HG_NO_FENCES_
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
#else
    return __atomic_load_n(word, __ATOMIC_RELAXED);
#endif
}

static inline void hg_fence_(void)
{
#ifndef HG_NO_FENCES_
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
#endif
}

#ifdef HG_COUNTER_
/* What the page says now, exactly as the library computes it; false if it does not simply say. */
static inline bool hg_page_read_(const uint64_t *page, bool ordered, uint64_t *ns)
{
    const uint64_t turn = __atomic_load_n(page + HG_PAGE_TURN_, __ATOMIC_ACQUIRE);
    const uint64_t *slot = page + HG_PAGE_SLOT_ + ((turn >> 1) & 1) * HG_PAGE_SLOT_WORDS_;
    const uint64_t meta = hg_load_(slot + HG_SLOT_META_);
    const uint64_t base_ticks = hg_load_(slot + HG_SLOT_BASE_TICKS_);
    const uint64_t valid_for = hg_load_(slot + HG_SLOT_VALID_FOR_);
    const uint64_t mult = hg_load_(slot + HG_SLOT_MULT_);
    const uint64_t base_ns = hg_load_(slot + HG_SLOT_BASE_NS_);
    uint64_t ahead;
    if (__builtin_expect((meta & 0xffff) != HG_COUNTER_, 0)) {
        return false;
    }
    ahead = (ordered ? hg_counter_ordered_() : hg_counter_()) - base_ticks;
    hg_fence_();
    if (__builtin_expect((turn & 1) != 0 || hg_load_(page + HG_PAGE_TURN_) != turn, 0)
        || __builtin_expect(ahead > valid_for, 0)) {
        return false;
    }
    {
        __extension__ typedef unsigned __int128 wide;
        *ns = base_ns + (uint64_t)(((wide)ahead * mult) >> ((meta >> 16) & 63));
    }
    return true;
}

/* The same with the bound on its error. */
static inline bool hg_page_read_bounded_(const uint64_t *page, bool ordered, hg_bounds *bounds)
{
    const uint64_t turn = __atomic_load_n(page + HG_PAGE_TURN_, __ATOMIC_ACQUIRE);
    const uint64_t *slot = page + HG_PAGE_SLOT_ + ((turn >> 1) & 1) * HG_PAGE_SLOT_WORDS_;
    const uint64_t meta = hg_load_(slot + HG_SLOT_META_);
    const uint64_t base_ticks = hg_load_(slot + HG_SLOT_BASE_TICKS_);
    const uint64_t valid_for = hg_load_(slot + HG_SLOT_VALID_FOR_);
    const uint64_t mult = hg_load_(slot + HG_SLOT_MULT_);
    const uint64_t base_ns = hg_load_(slot + HG_SLOT_BASE_NS_);
    const uint64_t bound_ns = hg_load_(slot + HG_SLOT_BOUND_NS_);
    const uint64_t growth = hg_load_(slot + HG_SLOT_GROWTH_);
    uint64_t ahead, elapsed, error, ns;
    if (__builtin_expect((meta & 0xffff) != HG_COUNTER_, 0)) {
        return false;
    }
    ahead = (ordered ? hg_counter_ordered_() : hg_counter_()) - base_ticks;
    hg_fence_();
    if (__builtin_expect((turn & 1) != 0 || hg_load_(page + HG_PAGE_TURN_) != turn, 0)
        || __builtin_expect(ahead > valid_for, 0)) {
        return false;
    }
    {
        __extension__ typedef unsigned __int128 wide;
        elapsed = (uint64_t)(((wide)ahead * mult) >> ((meta >> 16) & 63));
    }
    ns = base_ns + elapsed;
    error = bound_ns + ((elapsed * growth) >> 32) + 1;
    bounds->earliest_ns = ns > error ? ns - error : 0;
    bounds->latest_ns = ns + error < ns ? UINT64_MAX : ns + error;
    bounds->status = (uint32_t)((meta >> 24) & 0xff);
    bounds->reserved = 0;
    return true;
}
#else
static inline bool hg_page_read_(const uint64_t *page, bool ordered, uint64_t *ns)
{
    (void)page, (void)ordered, (void)ns;
    return false;
}
static inline bool hg_page_read_bounded_(const uint64_t *page, bool ordered, hg_bounds *bounds)
{
    (void)page, (void)ordered, (void)bounds;
    return false;
}
#endif

/* The time, ns on CLOCK_MONOTONIC. It never goes backwards, whatever serves. Unordered: the processor
 * may read the counter some tens of nanoseconds before or after the instructions around it.
 * No call, no lock, no allocation, but now and then one read that calibrates (some 10 us).
 * Signals: safe. */
static inline uint64_t hg_now(void)
{
    uint64_t ns;
    return __builtin_expect(hg_page_read_(hg_clock_page_v1, false, &ns), 1) ? ns : hg_now_call();
}

/* The time after all earlier instructions: never before a time that this or another thread read
 * before. Signals: safe. */
static inline uint64_t hg_now_ordered(void)
{
    uint64_t ns;
    return __builtin_expect(hg_page_read_(hg_clock_page_v1, true, &ns), 1) ? ns : hg_now_ordered_call();
}

/* The time between two bounds; unordered. Signals: safe. */
static inline hg_bounds hg_now_bounded(void)
{
    hg_bounds bounds;
    return __builtin_expect(hg_page_read_bounded_(hg_clock_page_v1, false, &bounds), 1)
        ? bounds
        : hg_now_bounded_call();
}

/* The same after all earlier instructions. Signals: safe. */
static inline hg_bounds hg_now_bounded_ordered(void)
{
    hg_bounds bounds;
    return __builtin_expect(hg_page_read_bounded_(hg_clock_page_v1, true, &bounds), 1)
        ? bounds
        : hg_now_bounded_ordered_call();
}

/* The last time that anybody published, by hg_clock_maintain or a calibration: one load, and as old as
 * that. Signals: safe. */
static inline uint64_t hg_recent(void)
{
    const uint64_t ns = __atomic_load_n(hg_clock_page_v1 + HG_PAGE_RECENT_, __ATOMIC_ACQUIRE);
    return ns != 0 ? ns : hg_now();
}

/* Whether `ns` has passed for certain. */
static inline bool hg_is_after(hg_bounds bounds, uint64_t ns) { return bounds.earliest_ns > ns; }

/* Whether `ns` is still to come for certain. */
static inline bool hg_is_before(hg_bounds bounds, uint64_t ns) { return bounds.latest_ns < ns; }

/* The counter that serves. Ticks of two epochs do not mix. */
typedef struct hg_ticks {
    uint64_t count;
    uint32_t epoch;
    uint32_t reserved;
} hg_ticks;

typedef struct hg_elapsed {
    int64_t ns;        /* negative if the second reading is the earlier one */
    uint64_t error_ns; /* bound on the error of the rate over that time */
} hg_elapsed;

/* Reads the counter, unordered. Signals: safe. */
hg_ticks hg_clock_ticks(void);

/* The time between two readings at the rate of CLOCK_MONOTONIC_RAW, which nobody slews.
 * Errors: HG_MIXED_TICKS. Signals: safe. */
hg_status hg_clock_elapsed(hg_ticks first, hg_ticks second, hg_elapsed *elapsed, hg_error *error);

/* The kernel's scales. */
enum {
    HG_SCALE_MONOTONIC = 0,
    HG_SCALE_MONOTONIC_RAW = 1,
    HG_SCALE_REALTIME = 2, /* since 1970 */
    HG_SCALE_TAI = 3,      /* since 1970 */
    HG_SCALE_BOOTTIME = 4  /* goes on in suspend */
};

typedef struct hg_scale_time {
    int64_t ns;        /* since the scale's beginning */
    uint64_t error_ns; /* holds unless somebody set that clock since the last calibration */
    uint32_t status;   /* HG_CLOCK_* */
    uint32_t reserved;
} hg_scale_time;

/* The time on a scale of the kernel. Errors: HG_INVALID. Signals: safe. */
hg_status hg_now_on(int32_t scale, hg_scale_time *time, hg_error *error);

/* Who vouches for wall-clock time. */
enum {
    HG_WALL_UNKNOWN = 0,      /* nobody */
    HG_WALL_SYNCHRONISED = 1, /* the kernel's synchroniser */
    HG_WALL_BY_HAND = 2,      /* it was set by hg_wall_set */
    HG_WALL_STEERED = 3       /* it is steered by hg_wall_steer */
};

typedef struct hg_wall_time {
    int64_t ns;        /* since 1970 */
    uint64_t error_ns; /* bound on the error against UTC; UINT64_MAX if nobody vouches for it */
    uint32_t status;   /* HG_WALL_* */
    uint32_t reserved;
} hg_wall_time;

/* What an external reference says: then, on hg_now's scale, it was that time, to within that error. */
typedef struct hg_wall_reference {
    uint64_t monotonic_ns;
    int64_t wall_ns;
    uint64_t error_ns;
} hg_wall_reference;

/* Wall-clock time. Signals: safe. */
hg_wall_time hg_wall(void);

/* Sets wall-clock time of this process' clock, not of the kernel. It may step. */
hg_status hg_wall_set(const hg_wall_reference *reference, hg_error *error);

/* Steers it by a reference that comes every some seconds: errors up to 128 ms are slewed away. */
hg_status hg_wall_steer(const hg_wall_reference *reference, hg_error *error);

/* Lets the kernel say again what it is. */
void hg_wall_release(void);

/* What is read. */
enum {
    HG_SOURCE_OS = 1,     /* CLOCK_MONOTONIC */
    HG_SOURCE_TSC = 2,    /* the x86 time-stamp counter */
    HG_SOURCE_CNTVCT = 3, /* the aarch64 generic timer */
    HG_SOURCE_HPET = 4    /* the High Precision Event Timer; not for this process' clock */
};

/* The source that serves: HG_SOURCE_*. May wait for a calibration, some 10 us. */
int32_t hg_clock_source(void);

/* Changes it by hand, without a step: times read so far stay valid, ticks do not.
 * Errors: HG_UNSUPPORTED if it cannot be read here, HG_INVALID. */
hg_status hg_clock_set_source(int32_t source, hg_error *error);

/* A source's name, as `hourglass clocks` writes it. Signals: safe. */
const char *hg_source_name(int32_t source);

typedef struct hg_maintained {
    uint64_t next_ns; /* when to call again, from now */
    bool drawn;       /* whether the clock was calibrated */
    uint8_t reserved[7];
} hg_maintained;

/* Calibrates if that is due, at most some tens of microseconds; then no reader has to. A program that
 * cannot bear a reader's 10 us now and then calls this from a thread of its own. */
hg_maintained hg_clock_maintain(void);

typedef struct hg_trust {
    bool trusted;
    uint8_t reserved[7];
    char reason[HG_TEXT];
} hg_trust;

/* Gathers the whole evidence about the source, offsets between CPUs included, and leaves it if anything
 * speaks against it. 0.1 s, in threads on the CPUs that the caller may run on. */
hg_status hg_clock_examine(hg_trust *trust, hg_error *error);

/* What may happen to a clock. */
enum {
    HG_EVENT_OTHER = 0,
    HG_EVENT_ADOPTED = 1,
    HG_EVENT_BY_HAND = 2,
    HG_EVENT_KERNEL_CHANGED_SOURCE = 3,
    HG_EVENT_RESIDUAL = 4,
    HG_EVENT_NEGATIVE_STEP = 5,
    HG_EVENT_STUCK = 6,
    HG_EVENT_UNSUPPORTED = 7,
    HG_EVENT_PRIOR_CONTRADICTED = 8,
    HG_EVENT_UNTRUSTED = 9,
    HG_EVENT_SUSPENDED = 10,
    HG_EVENT_CPUS_CHANGED = 11,
    HG_EVENT_VM_CHANGED = 12,
    HG_EVENT_REFERENCE_SLEWED = 13,
    HG_EVENT_RATE_CORRECTED = 14,
    HG_EVENT_WALL_SET = 15
};

typedef struct hg_clock_event {
    uint64_t at_ns;
    uint32_t kind; /* HG_EVENT_* */
    uint32_t reserved;
    char text[HG_TEXT];
} hg_clock_event;

/* How often something happened: HG_EVENT_*, else 0. */
uint64_t hg_clock_count(uint32_t kind);

/* The latest events, oldest first, as many as there is room for; `count` is how many there are.
 * `events` may be NULL without room. */
hg_status hg_clock_events(hg_clock_event *events, size_t room, size_t *count, hg_error *error);

/* ---- A clock in shared memory -------------------------------------------------------------- */

/* A page that another process keeps. Do not copy it: what was copied is not closed with it, and its
 * words are gone then. */
typedef struct hg_page {
    const uint64_t *words;
    uint64_t handle;
    uint32_t counter; /* HG_SOURCE_*, if it is read by this processor's counter */
    uint32_t reserved;
} hg_page;

typedef struct hg_page_writer {
    uint64_t pid;          /* in the writer's own namespace */
    uint64_t heartbeat_ns; /* when it last wrote */
    uint64_t events;       /* how many it counted */
    bool expired;          /* it died, stopped, or is not maintained: readers get CLOCK_MONOTONIC */
    uint8_t reserved[7];
} hg_page_writer;

/* A descriptor by which other processes read this process' clock (pass it over a socket, or by
 * inheritance). To be closed by close(2); the page stays while anybody has it open.
 * Errors: HG_EXHAUSTED; HG_INVALID on a kernel before 5.1. */
hg_status hg_clock_share(int32_t *fd, hg_error *error);

/* Opens a page. `fd` may be closed afterwards. To be closed with hg_page_close.
 * Errors: HG_PAGE for a file that is none, or one whose time is of another machine or time namespace;
 * HG_OTHER_VERSION; HG_UNSUPPORTED for one of another processor, or drawn over a counter that cannot be
 * read here; HG_OS for a descriptor that is not open. */
hg_status hg_page_open(int32_t fd, hg_page *page, hg_error *error);

/* The same reads by a call; 0 for a page that is closed. Signals: safe. */
uint64_t hg_page_now_call(const hg_page *page);
uint64_t hg_page_now_ordered_call(const hg_page *page);
hg_bounds hg_page_now_bounded_call(const hg_page *page);

/* The time by that page; as hg_now. 0 if `page` is NULL or closed. Signals: safe. */
static inline uint64_t hg_page_now(const hg_page *page)
{
    uint64_t ns;
    return page && page->words && page->counter && hg_page_read_(page->words, false, &ns)
        ? ns
        : hg_page_now_call(page);
}

/* As hg_now_ordered. Signals: safe. */
static inline uint64_t hg_page_now_ordered(const hg_page *page)
{
    uint64_t ns;
    return page && page->words && page->counter && hg_page_read_(page->words, true, &ns)
        ? ns
        : hg_page_now_ordered_call(page);
}

/* As hg_now_bounded. Signals: safe. */
static inline hg_bounds hg_page_now_bounded(const hg_page *page)
{
    hg_bounds bounds;
    return page && page->words && page->counter && hg_page_read_bounded_(page->words, false, &bounds)
        ? bounds
        : hg_page_now_bounded_call(page);
}

/* What is known of who writes it. Errors: HG_STALE. */
hg_status hg_page_writer_of(const hg_page *page, hg_page_writer *writer, hg_error *error);

/* Closes it; reads of `page` give 0 from then on. No thread may read it meanwhile. Errors: HG_STALE. */
hg_status hg_page_close(hg_page *page, hg_error *error);

/* ---- Sleeping ------------------------------------------------------------------------------ */

/* Ends sleeps. It lies in the caller's memory (HG_INTERRUPT_INIT, or all zero), aligned to 64 bytes, and
 * stays there while anything may use it. */
typedef struct hg_interrupt {
    HG_ALIGNED_(64) uint32_t word[16];
} hg_interrupt;

#define HG_INTERRUPT_INIT { { 0 } }

/* Ends the sleeps in progress that it was given to and every later one, until hg_interrupt_clear.
 * Errors: HG_NULL, HG_INVALID if it is not aligned. Signals: safe. */
hg_status hg_interrupt_set(const hg_interrupt *interrupt);

/* Lets sleeps last again; whether it was set. Signals: safe. */
bool hg_interrupt_clear(const hg_interrupt *interrupt);

/* Whether it is set. Signals: safe. */
bool hg_interrupt_is_set(const hg_interrupt *interrupt);

/* Lets a signal set it, which has no other effect from then on. The interrupt must stay until the process
 * ends. Errors: HG_INVALID for a signal that cannot be caught, does not exist, or tells of a defect. */
hg_status hg_interrupt_on_signal(const hg_interrupt *interrupt, int32_t signal, hg_error *error);

/* Why a sleep ended after its deadline. */
enum {
    HG_DELAY_NONE = 0,         /* it did not, by more than 1 us */
    HG_DELAY_ALREADY_PAST = 1, /* the deadline had passed when it was asked for */
    HG_DELAY_WOKEN_LATE = 2,   /* the kernel woke the thread late */
    HG_DELAY_PREEMPTED = 3,    /* the CPU was given to somebody else */
    HG_DELAY_STALLED = 4       /* an interrupt, the firmware, or a hypervisor */
};

typedef struct hg_slept {
    uint64_t deadline_ns;
    uint64_t woke_ns; /* the reading that ended it; never before the deadline unless interrupted */
    uint64_t kernel_ns;
    uint64_t spin_ns;
    uint64_t margin_ns;
    uint64_t longest_step_ns;
    uint32_t delay; /* HG_DELAY_* */
    bool interrupted;
    uint8_t reserved[3];
} hg_slept;

/* Sleeps until a time on hg_now's scale, precisely: most of it in the kernel, the rest spinning, by a
 * margin that each thread learns. `interrupt` may be NULL, and is not kept; `slept` may be NULL.
 * Not a cancellation point. Allocates with a thread's first sleep only.
 * HG_INTERRUPTED if `interrupt` ended it, or was set before. Errors: HG_INVALID. */
hg_status hg_sleep_until(uint64_t deadline_ns, const hg_interrupt *interrupt, hg_slept *slept,
                         hg_error *error);

/* Sleeps so long from now; the rest as hg_sleep_until. */
hg_status hg_sleep_for(uint64_t length_ns, const hg_interrupt *interrupt, hg_slept *slept,
                       hg_error *error);

/* Sleeps until the clock's counter has counted so many ticks from now; the rest as hg_sleep_until. */
hg_status hg_sleep_ticks(uint64_t count, const hg_interrupt *interrupt, hg_slept *slept,
                         hg_error *error);

/* How the time until the deadline is spent. */
enum {
    HG_SLEEP_LEARNED = 0,     /* in the kernel until a learnt margin, then spinning */
    HG_SLEEP_KERNEL_ONLY = 1, /* late by the kernel's wake-up, at least CPU time */
    HG_SLEEP_SPIN_ONLY = 2,   /* a whole CPU */
    HG_SLEEP_THESIS = 3       /* all but a tick of the scheduler in the kernel, as the thesis has it */
};

/* Which reading of the clock ends a sleep. */
enum {
    HG_ENDS_REACHED = 0,       /* hg_now_ordered is at the deadline */
    HG_ENDS_SURELY_REACHED = 1 /* so is the earliest time that it may be */
};

typedef struct hg_sleep_settings {
    uint32_t policy;            /* HG_SLEEP_* */
    uint32_t hz;                /* ticks a second, for HG_SLEEP_THESIS */
    uint64_t per_sleep_ns;      /* CPU time that a sleep may take */
    uint32_t share_ppm;         /* and so much of the time slept, parts per million */
    uint32_t quantile_ppm;      /* which share of the wake-ups the margin covers, parts per million */
    uint64_t least_spin_ns;     /* what may be spun however much the kernel charges */
    uint64_t longest_margin_ns; /* at most 500,000 are ever learnt */
    uint64_t seed_ns;           /* what the kernel is thought to be late by at first */
    uint32_t sample_every;      /* of so many sleeps that would be spun, one waits */
    uint32_t ends_when;         /* HG_ENDS_* */
} hg_sleep_settings;

/* What hg_sleep_until sleeps by. Signals: safe. */
hg_sleep_settings hg_sleep_defaults(void);

/* A sleeper with settings of its own. One thread at a time sleeps by it. */
typedef struct hg_sleeper {
    uint64_t handle;
} hg_sleeper;

/* Makes one. `settings` may be NULL. To be freed with hg_sleeper_free.
 * Errors: HG_INVALID, HG_EXHAUSTED. */
hg_status hg_sleeper_new(const hg_sleep_settings *settings, hg_sleeper *sleeper, hg_error *error);

/* As hg_sleep_until, hg_sleep_for and hg_sleep_ticks. `slept` may be NULL.
 * Errors: HG_STALE, HG_BUSY if another thread sleeps by it. */
hg_status hg_sleeper_until(hg_sleeper sleeper, uint64_t deadline_ns, hg_slept *slept, hg_error *error);
hg_status hg_sleeper_for(hg_sleeper sleeper, uint64_t length_ns, hg_slept *slept, hg_error *error);
hg_status hg_sleeper_ticks(hg_sleeper sleeper, uint64_t count, hg_slept *slept, hg_error *error);

/* Ends its sleep and every later one, until hg_sleeper_clear. Errors: HG_STALE. Signals: safe. */
hg_status hg_sleeper_interrupt(hg_sleeper sleeper);

/* Lets its sleeps last again; whether there was an interrupt. Signals: safe. */
bool hg_sleeper_clear(hg_sleeper sleeper);

/* The margin that a sleep of that length would have here and now; 0 if none was learnt. */
uint64_t hg_sleeper_margin(hg_sleeper sleeper, uint64_t length_ns);

/* Frees it. Errors: HG_STALE, HG_BUSY while a thread sleeps by it. */
hg_status hg_sleeper_free(hg_sleeper sleeper, hg_error *error);

#ifdef __cplusplus
}
#endif

#endif
