/* The host runtime: aligned memory and a thread pool behind hfreg_context, one shared object for a process.
 *
 * A pool of n threads has n - 1 workers; the calling thread takes part. Workers spin for a moment after a loop, because
 * the next one mostly follows at once, then sleep on a futex. Whoever wakes them keeps them off its own processor, where
 * the system likes to put them, and where they would wait for it while it waits for them. A loop that starts while the pool is busy (a nested loop,
 * or another caller) runs on its own thread alone: that is always right, and never waits for anybody. */
#include "hfreg/kernel.h"
#include <stdatomic.h>

#define EXPORT __attribute__((visibility("default")))
#define SPINS 20000 /* about 0.2 ms: the time between two loops of one kernel, and between two kernels of a model */
#define PATIENCE 200 /* turns before a thread that waits for others gives its processor away: one may need it */
#define KEPT_BLOCKS 16
#define MAX_PROCESSORS 1024

/* From the C library of the process. */
extern int posix_memalign(void **block, unsigned long alignment, unsigned long bytes);
extern void free(void *block);
extern void *calloc(unsigned long count, unsigned long bytes);
extern int pthread_create(unsigned long *thread, const void *attributes, void *(*function)(void *), void *argument);
extern int pthread_join(unsigned long thread, void **result);
extern long syscall(long number, ...);

#if defined(__x86_64__)
#define SYS_FUTEX 202
#define SYS_SCHED_YIELD 24
#define SYS_GETTID 186
#define SYS_SCHED_SETAFFINITY 203
#define SYS_SCHED_GETAFFINITY 204
#define SYS_GETCPU 309
#define pause_cpu() __builtin_ia32_pause()
#elif defined(__aarch64__) || defined(__riscv)
#define SYS_FUTEX 98
#define SYS_SCHED_SETAFFINITY 122
#define SYS_SCHED_GETAFFINITY 123
#define SYS_SCHED_YIELD 124
#define SYS_GETCPU 168
#define SYS_GETTID 178
#define pause_cpu() atomic_signal_fence(memory_order_seq_cst)
#endif
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129

typedef struct {
    struct hfreg_pool *pool;
    unsigned long thread;
    atomic_int id; /* the system's number of the thread, 0 until it runs */
} hfreg_worker;

typedef struct hfreg_pool {
    /* The current loop. Written by its owner while no worker is inside (`inside` is 0). */
    hfreg_task task;
    void *context;
    uint8_t *closure;
    int end, step;    /* a thread takes `step` indices at a time */
    atomic_int next;  /* the next index to run */
    atomic_int error; /* the first error of a task */

    atomic_int busy;           /* a loop is running */
    atomic_int inside;         /* workers that may touch the loop */
    atomic_uint generation;    /* odd while a loop is open to workers; a futex */
    atomic_int sleepers;
    atomic_int stop;
    unsigned avoided; /* the processor that the workers keep off, plus 1 */
    /* Freed blocks that the next call takes again: fresh ones from the system cost a page fault for each page. */
    _Atomic(void *) kept[KEPT_BLOCKS];
    int count;
    hfreg_worker workers[];
} hfreg_pool;

static void run_tasks(hfreg_pool *pool) {
    for (;;) {
        int first = atomic_fetch_add(&pool->next, pool->step);
        for (int i = first; i < first + pool->step; i++) {
            if (i >= pool->end || atomic_load_explicit(&pool->error, memory_order_relaxed)) return;
            int error = pool->task(pool->context, i, pool->closure);
            if (error) atomic_store(&pool->error, error);
        }
    }
}

/* Wait for the generation to leave `seen`. */
static unsigned await(hfreg_pool *pool, unsigned seen) {
    for (int i = 0; i < SPINS; i++) {
        unsigned now = atomic_load(&pool->generation);
        if (now != seen) return now;
        pause_cpu();
    }
    atomic_fetch_add(&pool->sleepers, 1);
    while (atomic_load(&pool->generation) == seen) syscall(SYS_FUTEX, &pool->generation, FUTEX_WAIT_PRIVATE, seen, 0, 0, 0);
    atomic_fetch_sub(&pool->sleepers, 1);
    return atomic_load(&pool->generation);
}

/* Keep the workers off the caller's processor, if it may use another one. Only the owner of the loop is here. */
static void make_room(hfreg_pool *pool) {
    unsigned long processors[MAX_PROCESSORS / 64] = {0}, others = 0;
    unsigned here = 0;
    if (syscall(SYS_GETCPU, &here, 0, 0) || here >= MAX_PROCESSORS || here + 1 == pool->avoided) return;
    if (syscall(SYS_SCHED_GETAFFINITY, 0, sizeof processors, processors) <= 0) return;
    processors[here / 64] &= ~(1ul << here % 64);
    for (int i = 0; i < MAX_PROCESSORS / 64; i++) others |= processors[i];
    for (int i = 0; others && i < pool->count; i++) {
        int id = atomic_load(&pool->workers[i].id);
        if (id) syscall(SYS_SCHED_SETAFFINITY, id, sizeof processors, processors);
    }
    pool->avoided = here + 1;
}

static void announce(hfreg_pool *pool) {
    if (atomic_load(&pool->sleepers)) make_room(pool);
    atomic_fetch_add(&pool->generation, 1);
    if (atomic_load(&pool->sleepers)) syscall(SYS_FUTEX, &pool->generation, FUTEX_WAKE_PRIVATE, 0x7fffffff, 0, 0, 0);
}

static void *work(void *argument) {
    hfreg_worker *own = argument;
    hfreg_pool *pool = own->pool;
    unsigned seen = 0;
    atomic_store(&own->id, (int)syscall(SYS_GETTID));
    while (!atomic_load(&pool->stop)) {
        seen = await(pool, seen);
        if (!(seen & 1)) continue;
        atomic_fetch_add(&pool->inside, 1);
        if (atomic_load(&pool->generation) == seen) run_tasks(pool); /* still open: the owner waits for `inside` */
        atomic_fetch_sub(&pool->inside, 1);
    }
    return 0;
}

static int run_alone(void *context, hfreg_task task, int first, int count, uint8_t *closure) {
    for (int i = first; i < first + count; i++) {
        int error = task(context, i, closure);
        if (error) return error;
    }
    return 0;
}

static int parallel_for(hfreg_context *context, hfreg_task task, int first, int count, uint8_t *closure) {
    hfreg_pool *pool = context->state;
    int idle = 0;
    if (count < 2 || !pool || !pool->count || !atomic_compare_exchange_strong(&pool->busy, &idle, 1))
        return run_alone(context, task, first, count, closure);
    pool->task = task;
    pool->context = context;
    pool->closure = closure;
    pool->end = first + count;
    pool->step = count / (8 * (pool->count + 1)) > 1 ? count / (8 * (pool->count + 1)) : 1;
    atomic_store(&pool->error, 0);
    atomic_store(&pool->next, first);
    announce(pool); /* odd: open */
    run_tasks(pool);
    atomic_fetch_add(&pool->generation, 1); /* even: closed, nobody enters any more */
    for (int turns = 0; atomic_load(&pool->inside); turns++) {
        if (turns < PATIENCE) pause_cpu();
        else syscall(SYS_SCHED_YIELD);
    }
    int error = atomic_load(&pool->error);
    atomic_store(&pool->busy, 0);
    return error;
}

/* A block has a header of one cache line in front of it, which holds its size. */
#define HEADER 64

static uint64_t *size_of(void *block) { return (uint64_t *)((char *)block - HEADER); }

static void *allocate(hfreg_context *context, uint64_t bytes) {
    hfreg_pool *pool = context->state;
    bytes = (bytes + 4095) & ~(uint64_t)4095;
    for (int i = 0; pool && i < KEPT_BLOCKS; i++) {
        void *block = atomic_exchange(&pool->kept[i], 0), *none = 0;
        if (!block) continue;
        if (*size_of(block) >= bytes && *size_of(block) <= 2 * bytes + 65536) return block;
        if (!atomic_compare_exchange_strong(&pool->kept[i], &none, block)) free((char *)block - HEADER);
    }
    void *start = 0;
    if (posix_memalign(&start, 64, bytes + HEADER)) return 0;
    void *block = (char *)start + HEADER;
    *size_of(block) = bytes;
    return block;
}

static void release(hfreg_context *context, void *block) {
    hfreg_pool *pool = context->state;
    if (!block) return;
    for (int i = 0; pool && i < KEPT_BLOCKS; i++) {
        void *none = 0;
        if (atomic_compare_exchange_strong(&pool->kept[i], &none, block)) return;
    }
    free((char *)block - HEADER);
}

/* A context and the message of the call that it is for. */
typedef struct {
    hfreg_context context;
    char message[320];
} hfreg_call_context;

static void report(hfreg_context *context, const char *message) {
    char *kept = ((hfreg_call_context *)context)->message;
    int i = 0;
    for (; message[i] && i < 319; i++) kept[i] = message[i];
    kept[i] = 0;
}

EXPORT const uint32_t hfreg_runtime_abi = HFREG_KERNEL_ABI;
EXPORT const uint32_t hfreg_call_context_size = sizeof(hfreg_call_context);

EXPORT void hfreg_call_context_init(hfreg_call_context *call, hfreg_pool *pool) {
    call->context = (hfreg_context){sizeof(hfreg_context), 0, pool, allocate, release, parallel_for, report};
    call->message[0] = 0;
}

/* A pool in which loops run on up to `threads` threads, the caller's included; NULL when memory or threads ran out. */
EXPORT hfreg_pool *hfreg_pool_create(int32_t threads) {
    int workers = threads > 1 ? threads - 1 : 0;
    hfreg_pool *pool = calloc(1, sizeof(hfreg_pool) + (unsigned long)workers * sizeof(hfreg_worker));
    if (!pool) return 0;
    for (; pool->count < workers; pool->count++) {
        hfreg_worker *next = &pool->workers[pool->count];
        next->pool = pool;
        if (pthread_create(&next->thread, 0, work, next)) break;
    }
    return pool;
}

/* End the workers. No loop may be running. */
EXPORT void hfreg_pool_destroy(hfreg_pool *pool) {
    atomic_store(&pool->stop, 1);
    atomic_fetch_add(&pool->generation, 2); /* still even: nothing to run */
    syscall(SYS_FUTEX, &pool->generation, FUTEX_WAKE_PRIVATE, 0x7fffffff, 0, 0, 0);
    for (int i = 0; i < pool->count; i++) pthread_join(pool->workers[i].thread, 0);
    for (int i = 0; i < KEPT_BLOCKS; i++)
        if (pool->kept[i]) free((char *)pool->kept[i] - HEADER);
    free(pool);
}
