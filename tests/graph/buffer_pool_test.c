// SPDX-License-Identifier: Apache-2.0
#include "base/memory_account_private.h"
#include "graph/buffer_pool_private.h"

#include <string.h>

#include "tests/gtest_shim.h"

MUSTER_TEST (buffer_pool, gives_aligned_memory_of_the_size_asked_for)
{
  for (gsize size = 1; size < 1 << 22; size = size * 5 / 4 + 1) {
    guint8 *buffer = muster_buffer_alloc (size);
    MUSTER_ASSERT_NOT_NULL (buffer);
    MUSTER_EXPECT_EQ ((guintptr)buffer % MUSTER_BUFFER_ALIGNMENT, 0u);
    memset (buffer, 0xee, size);
    muster_buffer_free (buffer, size);
  }
  muster_buffer_free (NULL, 100);
}

MUSTER_TEST (buffer_pool, hands_a_freed_buffer_on)
{
#if defined(__SANITIZE_ADDRESS__)
  MUSTER_SKIP ("nothing is kept under this sanitizer");
#else
  gpointer first = muster_buffer_alloc (3000000);
  memset (first, 1, 3000000);
  muster_buffer_free (first, 3000000);
  MUSTER_EXPECT_GE (muster_buffer_pool_size (), 3000000u);
  gpointer second = muster_buffer_alloc (2900000);
  MUSTER_EXPECT_PTR_EQ (second, first);
  muster_buffer_free (second, 2900000);
#endif
}

/* A message is hardly larger than the tensor in it, and shouldn't count for a quarter more. */
MUSTER_TEST (buffer_pool, counts_little_more_than_a_large_size)
{
  for (gsize size = ((gsize)8 << 20) + 1; size < (gsize)1 << 32; size = size / 5 * 6 + 7) {
    const guint64 before = muster_memory_used (MUSTER_MEMORY_TENSORS);
    gpointer buffer = muster_buffer_alloc (size);
    const guint64 counted = muster_memory_used (MUSTER_MEMORY_TENSORS) - before;
    MUSTER_EXPECT_GE (counted, size);
    MUSTER_EXPECT_LE (counted, size + size / 32);
    muster_buffer_free (buffer, size);
    muster_buffer_pool_empty ();
  }
}

MUSTER_TEST (buffer_pool, keeps_a_bounded_amount)
{
  enum { N = 40 };
  const gsize size = (gsize)1 << 28; /* 10 GiB, of pages never touched but for the first */
  gpointer buffers[N];
  for (guint i = 0; i < N; i++)
    buffers[i] = muster_buffer_alloc (size);
  for (guint i = 0; i < N; i++)
    muster_buffer_free (buffers[i], size);
  MUSTER_EXPECT_LE (muster_buffer_pool_limit (), (gsize)8 << 30);
  MUSTER_EXPECT_LE (muster_buffer_pool_size (), muster_buffer_pool_limit ());
}

MUSTER_TEST (buffer_pool, refuses_what_cannot_be)
{
  MUSTER_EXPECT_NULL (muster_buffer_alloc (G_MAXSIZE));
  MUSTER_EXPECT_NULL (muster_buffer_alloc (G_MAXSIZE / 2));
}

static gpointer
churn (gpointer data)
{
  const guint8 mark = (guint8)GPOINTER_TO_UINT (data);
  for (guint i = 0; i < 20000; i++) {
    const gsize size = 600 + i % 3 * 1000;
    guint8 *buffer = muster_buffer_alloc (size);
    memset (buffer, mark, size);
    if (buffer[size - 1] != mark)
      return GUINT_TO_POINTER (1);
    muster_buffer_free (buffer, size);
  }
  return NULL;
}

MUSTER_TEST (buffer_pool, serves_threads)
{
  GThread *threads[4];
  for (guint i = 0; i < 4; i++)
    threads[i] = g_thread_new ("churn", churn, GUINT_TO_POINTER (i + 1));
  for (guint i = 0; i < 4; i++)
    MUSTER_EXPECT_NULL (g_thread_join (threads[i]));
}
