// SPDX-License-Identifier: Apache-2.0
/* The process's account of memory, by use. Threads count small changes for themselves; a limit
 * is checked on the sum, before memory is taken (docs/architecture.md). */
#include "base/memory_account_private.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log_private.h"

#include <malloc.h>

/* A thread counts up to this much on its own. An addition to a counter that all threads share
 * takes as long as a small tensor's allocation. */
#define BATCH ((gssize)16 << 10)

typedef struct {
  gssize pending[MUSTER_N_MEMORY_USES];
  gsize refused;     /* bytes that would fit if others released theirs */
  gboolean is_known; /* its end will be noticed */
} Local;

static _Thread_local Local local;

static gssize used[MUSTER_N_MEMORY_USES]; /* atomic */
static gssize in_all;                     /* atomic: their sum */
static gsize limit;                       /* atomic */
static gsize freed;                       /* atomic: bytes since malloc () gave some back */
static guint64 n_refused;                 /* atomic */
static void (*reserve) (void);            /* atomic */

const char *
muster_memory_use_name (MusterMemoryUse use)
{
  static const char *const names[] = {"tensors", "graphs", "resources", "messages", "operations"};
  G_STATIC_ASSERT (G_N_ELEMENTS (names) == MUSTER_N_MEMORY_USES);
  return names[use];
}

void
muster_memory_set_limit (guint64 n_bytes)
{
  __atomic_store_n (&limit, (gsize)MIN (n_bytes, (guint64)G_MAXSSIZE), __ATOMIC_RELAXED);
}

guint64
muster_memory_limit (void)
{
  return __atomic_load_n (&limit, __ATOMIC_RELAXED);
}

void
muster_memory_set_reserve (void (*free_reserve) (void))
{
  __atomic_store_n (&reserve, free_reserve, __ATOMIC_RELEASE);
}

/* malloc () keeps freed memory for the threads that it was freed by. Others get more from the
 * system, until the process has far more than it uses: so it gives that back each time that this
 * fraction of the limit has been freed. */
#define FREED_SHARE 8

static __attribute__ ((noinline)) void
note_freed (gsize n_bytes, gsize most)
{
  if (__atomic_add_fetch (&freed, n_bytes, __ATOMIC_RELAXED) >= most / FREED_SHARE &&
      __atomic_exchange_n (&freed, 0, __ATOMIC_RELAXED) >= most / FREED_SHARE)
    (void)malloc_trim (0);
}

static void
change (MusterMemoryUse use, gssize by)
{
  const gsize most = __atomic_load_n (&limit, __ATOMIC_RELAXED);
  (void)__atomic_add_fetch (&used[use], by, __ATOMIC_RELAXED);
  (void)__atomic_add_fetch (&in_all, by, __ATOMIC_RELAXED);
  if (by < 0 && most > 0)
    note_freed ((gsize)-by, most);
}

static void
count_rest (gpointer data)
{
  Local *self = data;
  for (guint i = 0; i < MUSTER_N_MEMORY_USES; i++)
    change (i, self->pending[i]);
  *self = (Local){0};
}

/* So that what a thread has counted isn't lost when it ends. */
static __attribute__ ((noinline)) void
make_known (void)
{
  static GPrivate end_of_thread = G_PRIVATE_INIT (count_rest);
  local.is_known = TRUE;
  g_private_set (&end_of_thread, &local);
}

static void
count (MusterMemoryUse use, gssize by)
{
  if (G_UNLIKELY (!local.is_known))
    make_known ();
  const gssize pending = local.pending[use] + by;
  const gboolean is_small = -BATCH < pending && pending < BATCH;
  local.pending[use] = is_small ? pending : 0;
  if (!is_small)
    change (use, pending);
}

void
muster_memory_add (MusterMemoryUse use, gsize n_bytes)
{
  count (use, (gssize)n_bytes);
}

void
muster_memory_release (MusterMemoryUse use, gsize n_bytes)
{
  count (use, -(gssize)n_bytes);
}

/* Large amounts are compared and counted at once: two threads don't take the same bytes, and a
 * request that doesn't fit takes nothing from others for a moment. */
static gboolean
try_take (MusterMemoryUse use, gsize n_bytes, gsize most)
{
  if (n_bytes > most)
    return FALSE;
  const gssize room = (gssize)(most - n_bytes);
  gssize sum = __atomic_load_n (&in_all, __ATOMIC_RELAXED);
  if (n_bytes < (gsize)BATCH) {
    if (sum <= room)
      count (use, (gssize)n_bytes);
    return sum <= room;
  }
  do {
    if (sum > room)
      return FALSE;
  } while (!__atomic_compare_exchange_n (&in_all, &sum, sum + (gssize)n_bytes, TRUE,
                                         __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  (void)__atomic_add_fetch (&used[use], (gssize)n_bytes, __ATOMIC_RELAXED);
  return TRUE;
}

static gboolean
free_reserve (void)
{
  void (*func) (void) = __atomic_load_n (&reserve, __ATOMIC_ACQUIRE);
  if (func != NULL)
    func ();
  return func != NULL;
}

static void
log_refusal (gsize n_bytes, gsize most)
{
  static MusterLogLimit messages;
  char left_out[MUSTER_LOG_COUNT_SIZE];
  if (!muster_log_bounded (G_LOG_LEVEL_MESSAGE, &messages, left_out))
    return;
  g_autofree char *wanted = muster_format_size (n_bytes);
  muster_log (G_LOG_LEVEL_MESSAGE, "limit", "MUSTER_LIMIT", "memory", "MUSTER_MAX",
              MUSTER_LOG_INT (most), "MUSTER_BYTES", MUSTER_LOG_INT (n_bytes), "MUSTER_LEFT_OUT",
              left_out, "MESSAGE",
              "refused %s: the limit of memory is reached; raise it with --max-memory", wanted);
}

static gboolean
refuse (gsize n_bytes, gsize most, GError **error)
{
  __atomic_fetch_add (&n_refused, 1, __ATOMIC_RELAXED);
  local.refused = n_bytes <= most ? n_bytes : 0;
  log_refusal (n_bytes, most);
  g_autofree char *all = muster_format_size (most);
  g_autofree char *wanted = muster_format_size (n_bytes);
  g_autoptr (GString) uses = g_string_new (NULL);
  for (guint i = 0; i < MUSTER_N_MEMORY_USES; i++) {
    g_autofree char *size = muster_format_size (muster_memory_used (i));
    g_string_append_printf (uses, "%s%s %s", i > 0 ? ", " : "", muster_memory_use_name (i), size);
  }
  return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                      "over the limit of memory (%s; requested: %s; in use: %s); raise it with "
                      "--max-memory",
                      all, wanted, uses->str);
}

gboolean
muster_memory_take (MusterMemoryUse use, gsize n_bytes, GError **error)
{
  const gsize most = __atomic_load_n (&limit, __ATOMIC_RELAXED);
  if (most == 0 || n_bytes == 0) {
    muster_memory_add (use, n_bytes);
    return TRUE;
  }
  return try_take (use, n_bytes, most) || (free_reserve () && try_take (use, n_bytes, most)) ||
         refuse (n_bytes, most, error);
}

/* A sum of what threads have counted up to now, which may be below what one has released. */
static guint64
read_counter (const gssize *counter)
{
  return (guint64)MAX (__atomic_load_n (counter, __ATOMIC_RELAXED), 0);
}

guint64
muster_memory_used (MusterMemoryUse use)
{
  return read_counter (&used[use]);
}

guint64
muster_memory_used_in_all (void)
{
  return read_counter (&in_all);
}

gsize
muster_memory_left (void)
{
  const guint64 most = muster_memory_limit ();
  return most == 0 ? G_MAXSIZE : (gsize)(most - MIN (muster_memory_used_in_all (), most));
}

gsize
muster_memory_refused_here (void)
{
  return local.refused;
}

void
muster_memory_forget_refused (void)
{
  local.refused = 0;
}

guint64
muster_memory_n_refused (void)
{
  return __atomic_load_n (&n_refused, __ATOMIC_RELAXED);
}
