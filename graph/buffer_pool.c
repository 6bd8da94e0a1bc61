// SPDX-License-Identifier: Apache-2.0
/* Buffers for tensors, kept by size class when they are freed, because a training allocates the
 * same sizes in each step. Every buffer is counted in the process's memory account first. */
#include "graph/buffer_pool_private.h"

#include "base/error.h"
#include "base/memory_account_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Sizes are grouped into classes, four to a power of two, so that a reused buffer is at most a
 * quarter too large; of large ones, 32 to a power of two: there are fewer of them, and a message
 * with a tensor is hardly larger than the tensor. */
#define FEW_BITS  2
#define MANY_BITS 5
#define N_CLASSES (64 << MANY_BITS)

/* Allocating a terabyte can't succeed; a sanitizer's allocator ends the process on such a request.
 */
#define BUFFER_MAX ((gsize)1 << 40)

#if defined(__SANITIZE_ADDRESS__)
/* Keeping buffers would hide a use after free. */
#define POOL_LIMIT_MAX ((gsize)0)
#else
#define POOL_LIMIT_MAX ((gsize)8 << 30)
#endif

/* Buffers from this size use large pages: getting a gigabyte in pages of 4 KiB takes longer than
 * reading it from a file. At most a fraction of the buffer is wasted. */
#define LARGE_FROM ((gsize)8 << 20)
#define LARGE_PAGE ((gsize)2 << 20)

/* A list in the buffers themselves: with a node of its own, each buffer would cost another
 * allocation, and the pair of calls half as much time again (15 ns to 37 ns). */
typedef struct _Free Free;
struct _Free {
  Free *next;
};

static GMutex lock;
static Free *kept[N_CLASSES]; /* guarded by lock */
static gsize kept_bytes;      /* guarded by lock */

/* The smallest class that holds size; *rounded is its size. */
static guint
class_of (gsize size, gsize *rounded)
{
  const gsize wanted = MAX (size, MUSTER_BUFFER_ALIGNMENT * 4);
  const guint power = 63 - (guint)__builtin_clzll (wanted);
  const guint bits = wanted < LARGE_FROM ? FEW_BITS : MANY_BITS;
  const gsize step = (gsize)1 << (power - bits);
  const gsize n_steps = (wanted + step - 1) >> (power - bits); /* 2^bits to 2^(bits + 1) */
  *rounded = n_steps * step;
  if (n_steps == (gsize)2 << bits)
    return (power + 1) << MANY_BITS;
  return (power << MANY_BITS) + (guint)(n_steps - ((gsize)1 << bits));
}

gsize
muster_buffer_pool_limit (void)
{
  static gsize limit;
  if (g_once_init_enter (&limit)) {
    muster_memory_set_reserve (muster_buffer_pool_empty);
    const gsize memory = (gsize)MAX (sysconf (_SC_PHYS_PAGES), 0) * (gsize)sysconf (_SC_PAGESIZE);
    g_once_init_leave (&limit, MIN (memory / 8, POOL_LIMIT_MAX) + 1);
  }
  return limit - 1;
}

static gpointer
allocate (gsize size)
{
  gpointer buffer = NULL;
  if (size < LARGE_FROM)
    return aligned_alloc (MUSTER_BUFFER_ALIGNMENT, size);
  if (posix_memalign (&buffer, LARGE_PAGE, size) != 0)
    return NULL;
  (void)madvise (buffer, size, MADV_HUGEPAGE); /* where there are none, small ones do */
  return buffer;
}

/* A kept buffer of that class, or NULL. */
static gpointer
take_kept (guint index, gsize rounded)
{
  g_mutex_lock (&lock);
  Free *found = kept[index];
  if (found != NULL) {
    kept[index] = found->next;
    kept_bytes -= rounded;
  }
  g_mutex_unlock (&lock);
  return found;
}

/* A new buffer, which has been counted with its rounded size. */
static gpointer
allocate_counted (gsize size, gsize rounded)
{
  /* The exact size if nothing is kept, so that the sanitizer detects accesses beyond it. */
  const gsize exact = (size + MUSTER_BUFFER_ALIGNMENT - 1) & ~(gsize)(MUSTER_BUFFER_ALIGNMENT - 1);
  gpointer buffer = allocate (POOL_LIMIT_MAX == 0 ? exact : rounded);
  if (buffer == NULL)
    muster_memory_release (MUSTER_MEMORY_TENSORS, rounded);
  return buffer;
}

gpointer
muster_buffer_alloc (gsize size)
{
  if (size >= BUFFER_MAX)
    return NULL;
  gsize rounded;
  const guint index = class_of (size, &rounded);
  gpointer found = take_kept (index, rounded);
  if (found != NULL)
    return found;
  muster_memory_add (MUSTER_MEMORY_TENSORS, rounded);
  return allocate_counted (size, rounded);
}

static gpointer
fail (gsize size, GError **error)
{
  muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
               "not enough memory for a tensor of %" G_GSIZE_FORMAT " bytes", size);
  return NULL;
}

gpointer
muster_buffer_try_alloc (gsize size, GError **error)
{
  if (size >= BUFFER_MAX)
    return fail (size, error);
  gsize rounded;
  const guint index = class_of (size, &rounded);
  gpointer buffer = take_kept (index, rounded);
  if (buffer != NULL)
    return buffer;
  if (!muster_memory_take (MUSTER_MEMORY_TENSORS, rounded, error))
    return NULL;
  buffer = allocate_counted (size, rounded);
  return buffer != NULL ? buffer : fail (size, error);
}

void
muster_buffer_free (gpointer buffer, gsize size)
{
  if (buffer == NULL)
    return;
  const gsize limit = muster_buffer_pool_limit ();
  gsize rounded;
  const guint index = class_of (size, &rounded);
  g_mutex_lock (&lock);
  const gboolean keep = rounded <= limit && kept_bytes <= limit - rounded;
  if (keep) {
    Free *entry = buffer;
    entry->next = kept[index];
    kept[index] = entry;
    kept_bytes += rounded;
  }
  g_mutex_unlock (&lock);
  if (keep)
    return;
  free (buffer);
  muster_memory_release (MUSTER_MEMORY_TENSORS, rounded);
}

void
muster_buffer_pool_empty (void)
{
  Free *all[N_CLASSES];
  g_mutex_lock (&lock);
  memcpy (all, kept, sizeof all);
  memset (kept, 0, sizeof kept);
  const gsize n_bytes = kept_bytes;
  kept_bytes = 0;
  g_mutex_unlock (&lock);
  for (guint i = 0; i < N_CLASSES; i++)
    while (all[i] != NULL) {
      Free *next = all[i]->next;
      free (all[i]);
      all[i] = next;
    }
  muster_memory_release (MUSTER_MEMORY_TENSORS, n_bytes);
}

gsize
muster_buffer_pool_size (void)
{
  g_mutex_lock (&lock);
  const gsize size = kept_bytes;
  g_mutex_unlock (&lock);
  return size;
}
