// SPDX-License-Identifier: Apache-2.0
#include "base/rope_private.h"

#include <string.h>

#include "tests/gtest_shim.h"

MUSTER_TEST (rope, is_empty_at_first)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) flat = muster_rope_flatten (&rope);
  MUSTER_EXPECT_EQ (muster_rope_size (&rope), 0u);
  MUSTER_EXPECT_EQ (muster_rope_pieces (&rope)->len, 0u);
  MUSTER_EXPECT_EQ (g_bytes_get_size (flat), 0u);
}

MUSTER_TEST (rope, keeps_order_and_holds_large_pieces_by_reference)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) large = g_bytes_new_take (g_strnfill (100000, 'L'), 100000);
  g_autoptr (GBytes) small = g_bytes_new_static ("small", 5);
  g_byte_array_append (muster_rope_tail (&rope), (const guint8 *)"head", 4);
  muster_rope_append (&rope, large);
  muster_rope_append (&rope, small);
  g_byte_array_append (muster_rope_tail (&rope), (const guint8 *)"tail", 4);
  MUSTER_EXPECT_EQ (muster_rope_size (&rope), 100013u);

  GPtrArray *pieces = muster_rope_pieces (&rope);
  MUSTER_ASSERT_EQ (pieces->len, 3u);
  MUSTER_EXPECT_PTR_EQ (g_bytes_get_data (g_ptr_array_index (pieces, 1), NULL),
                        g_bytes_get_data (large, NULL));
  g_autoptr (GBytes) last = g_bytes_ref (g_ptr_array_index (pieces, 2));
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (last, NULL), g_bytes_get_size (last), "smalltail", 9);

  g_autoptr (GBytes) flat = muster_rope_flatten (&rope);
  const char *bytes = g_bytes_get_data (flat, NULL);
  MUSTER_ASSERT_EQ (g_bytes_get_size (flat), 100013u);
  MUSTER_EXPECT_MEMEQ (bytes, 5, "headL", 5);
  MUSTER_EXPECT_MEMEQ (bytes + 100003, 10, "Lsmalltail", 10);
}

MUSTER_TEST (rope, gives_one_piece_uncopied)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) large = g_bytes_new_take (g_strnfill (100000, 'L'), 100000);
  muster_rope_append (&rope, large);
  g_autoptr (GBytes) flat = muster_rope_flatten (&rope);
  MUSTER_EXPECT_PTR_EQ (g_bytes_get_data (flat, NULL), g_bytes_get_data (large, NULL));
}

MUSTER_TEST (rope, can_be_written_on_after_a_read_and_after_a_clear)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_byte_array_append (muster_rope_tail (&rope), (const guint8 *)"one", 3);
  (void)muster_rope_pieces (&rope);
  g_byte_array_append (muster_rope_tail (&rope), (const guint8 *)"two", 3);
  g_autoptr (GBytes) flat = muster_rope_flatten (&rope);
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (flat, NULL), g_bytes_get_size (flat), "onetwo", 6);
  muster_rope_clear (&rope);
  MUSTER_EXPECT_EQ (muster_rope_size (&rope), 0u);
  g_byte_array_append (muster_rope_tail (&rope), (const guint8 *)"x", 1);
  MUSTER_EXPECT_EQ (muster_rope_size (&rope), 1u);
}

/* Of three pieces of these sizes, out of the same bytes. */
static void
put_pieces (MusterRope *rope, const guint8 *bytes, const gsize *sizes)
{
  for (gsize i = 0; i < 3; bytes += sizes[i++]) {
    g_autoptr (GBytes) piece = g_bytes_new (bytes, sizes[i]);
    muster_rope_append (rope, piece);
  }
}

MUSTER_TEST (rope, is_equal_to_one_of_other_pieces)
{
  guint8 bytes[9000];
  for (gsize i = 0; i < sizeof bytes; i++)
    bytes[i] = (guint8)(i % 251);
  g_auto (MusterRope) one = MUSTER_ROPE_INIT, same = MUSTER_ROPE_INIT, other = MUSTER_ROPE_INIT,
                      shorter = MUSTER_ROPE_INIT, none = MUSTER_ROPE_INIT, empty = MUSTER_ROPE_INIT;
  put_pieces (&one, bytes, (const gsize[]){3000, 3000, 3000});
  put_pieces (&same, bytes, (const gsize[]){5000, 10, 3990});
  put_pieces (&shorter, bytes, (const gsize[]){5000, 10, 3989});
  bytes[8999]++;
  put_pieces (&other, bytes, (const gsize[]){5000, 10, 3990});
  MUSTER_EXPECT_TRUE (muster_rope_equal (&one, &same));
  MUSTER_EXPECT_FALSE (muster_rope_equal (&one, &other));
  MUSTER_EXPECT_FALSE (muster_rope_equal (&one, &shorter));
  MUSTER_EXPECT_FALSE (muster_rope_equal (&one, &none));
  MUSTER_EXPECT_TRUE (muster_rope_equal (&none, &empty));
}
