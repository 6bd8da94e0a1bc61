// SPDX-License-Identifier: Apache-2.0
#include "rpc/messages/rpc_message_private.h"

#include "base/protowire_private.h"
#include "graph/buffer_pool_private.h"
#include "tests/gtest_shim.h"

#include <string.h>

G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRpcMessage, muster_rpc_message_free)

/* More than what is copied into a rope's other pieces. */
#define PIECE 8192

/* Text, number, and a field too large to look at, in pieces that a field lies across. */
static MusterRpcMessage *
message_in_pieces (void)
{
  g_autoptr (GByteArray) all = g_byte_array_new ();
  g_autofree char *filler = g_strnfill (PIECE - 10, 'f');
  muster_proto_put_string (all, 1, filler);
  muster_proto_put_string (all, 2, "over the seam");
  muster_proto_put_uint (all, 3, 1234567);
  muster_proto_put_double (all, 4, 0.5);
  muster_proto_put_float (all, 5, 0.5);
  muster_proto_put_string (all, 6, filler);
  muster_proto_put_string (all, 7, "last");
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) first = g_bytes_new (all->data, PIECE);
  g_autoptr (GBytes) second = g_bytes_new (all->data + PIECE, all->len - PIECE);
  muster_rope_append (&rope, first);
  muster_rope_append (&rope, second);
  return muster_rpc_message_new (&rope);
}

static gboolean
is_text (const MusterRpcField *field, const char *text)
{
  return field->data != NULL && field->size == strlen (text) &&
         memcmp (field->data, text, field->size) == 0;
}

MUSTER_TEST (RpcMessage, shows_fields_over_the_seams_of_its_pieces)
{
  g_autoptr (MusterRpcMessage) message = message_in_pieces ();
  MusterRpcReader reader;
  MusterRpcField field;
  muster_rpc_reader_init (&reader, message);

  MUSTER_ASSERT_TRUE (muster_rpc_reader_next (&reader, &field));
  MUSTER_EXPECT_EQ (field.size, PIECE - 10);
  MUSTER_EXPECT_NULL (field.data);
  MUSTER_ASSERT_TRUE (muster_rpc_reader_next (&reader, &field));
  MUSTER_EXPECT_EQ (field.number, 2u);
  MUSTER_EXPECT_TRUE (is_text (&field, "over the seam"));
  MUSTER_ASSERT_TRUE (muster_rpc_reader_next (&reader, &field));
  MUSTER_EXPECT_EQ (field.value, 1234567u);
  for (guint number = 4; number <= 6; number++) {
    MUSTER_ASSERT_TRUE (muster_rpc_reader_next (&reader, &field));
    MUSTER_EXPECT_EQ (field.number, number);
  }
  MUSTER_ASSERT_TRUE (muster_rpc_reader_next (&reader, &field));
  MUSTER_EXPECT_TRUE (is_text (&field, "last"));
  MUSTER_EXPECT_FALSE (muster_rpc_reader_next (&reader, &field));
  MUSTER_EXPECT_FALSE (reader.is_malformed);
}

static gboolean
is_malformed (const void *data, gsize size)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (GBytes) bytes = g_bytes_new (data, size);
  muster_rope_append (&rope, bytes);
  g_autoptr (MusterRpcMessage) message = muster_rpc_message_new (&rope);
  MusterRpcReader reader;
  MusterRpcField field;
  muster_rpc_reader_init (&reader, message);
  while (muster_rpc_reader_next (&reader, &field))
    ;
  return reader.is_malformed;
}

MUSTER_TEST (RpcMessage, says_where_it_is_malformed)
{
  MUSTER_EXPECT_FALSE (is_malformed ("", 0));
  MUSTER_EXPECT_FALSE (is_malformed ("\x0a\x01x", 3));
  MUSTER_EXPECT_TRUE (is_malformed ("\x0a", 1));
  MUSTER_EXPECT_TRUE (is_malformed ("\x0a\x02x", 3));
  MUSTER_EXPECT_TRUE (is_malformed ("\x09x", 2));
  MUSTER_EXPECT_TRUE (is_malformed ("\x0b", 1));     /* a group */
  MUSTER_EXPECT_TRUE (is_malformed ("\x02\x00", 2)); /* field 0 */
  MUSTER_EXPECT_TRUE (is_malformed ("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11));
}

/* --- bytes --- */

/* Fields number one inside another, around content, in pieces that end anywhere. */
static GBytes *
nest (GBytes *content, guint depth, const char *before)
{
  g_autoptr (GBytes) inside = g_bytes_ref (content);
  for (guint i = 0; i < depth; i++) {
    g_autoptr (GByteArray) outside = g_byte_array_new ();
    muster_proto_put_string (outside, 1, before);
    muster_proto_put_bytes (outside, 2, g_bytes_get_data (inside, NULL), g_bytes_get_size (inside));
    g_bytes_unref (inside);
    inside = g_byte_array_free_to_bytes (g_steal_pointer (&outside));
  }
  return g_steal_pointer (&inside);
}

static MusterRpcMessage *
cut (GBytes *whole, gsize piece)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  const gsize size = g_bytes_get_size (whole);
  for (gsize at = 0; at < size; at += piece) {
    g_autoptr (GBytes) part = g_bytes_new_from_bytes (whole, at, MIN (piece, size - at));
    muster_rope_append (&rope, part);
  }
  return muster_rpc_message_new (&rope);
}

/* Where the content lies in the bytes of the message; *is_counted as they say. */
static guintptr
place_of_content (gsize n, guint depth, const char *before, gboolean *is_counted)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) content = g_bytes_new_take (g_strnfill (n, 'c'), n);
  g_autoptr (GBytes) whole = nest (content, depth, before);
  g_autoptr (MusterRpcMessage) message = cut (whole, 5000);
  g_autoptr (GBytes) bytes = muster_rpc_message_take_bytes (message, is_counted, &error);
  MUSTER_EXPECT_NULL (error);
  MUSTER_EXPECT_TRUE (bytes != NULL && g_bytes_equal (bytes, whole));
  return bytes != NULL ? (guintptr)g_bytes_get_data (bytes, NULL) + g_bytes_get_size (bytes) - n
                       : 1;
}

MUSTER_TEST (RpcMessage, aligns_what_is_most_of_it)
{
  for (guint depth = 2; depth <= 3; depth++)
    for (guint n = 0; n < 70; n++) {
      g_autofree char *before = g_strnfill (n, 'b');
      gboolean is_counted = FALSE;
      MUSTER_EXPECT_EQ (
          place_of_content (100000, depth, before, &is_counted) % MUSTER_BUFFER_ALIGNMENT, 0u);
      MUSTER_EXPECT_TRUE (is_counted);
    }
}

MUSTER_TEST (RpcMessage, keeps_no_buffer_of_a_small_one_nor_of_one_that_is_no_step)
{
  gboolean is_counted = TRUE;
  (void)place_of_content (60000, 3, "small", &is_counted);
  MUSTER_EXPECT_FALSE (is_counted);
  is_counted = TRUE;
  (void)place_of_content (100000, 1, "a graph, say", &is_counted);
  MUSTER_EXPECT_FALSE (is_counted);
}

/* Whatever a message says of its fields, its bytes are what it is. */
MUSTER_TEST (RpcMessage, keeps_the_bytes_of_a_malformed_one)
{
  g_autoptr (GBytes) content = g_bytes_new_take (g_strnfill (100000, '\x12'), 100000);
  g_autoptr (GBytes) whole = nest (content, 3, "before");
  for (gsize size = g_bytes_get_size (whole); size > 90000; size -= 997) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) part = g_bytes_new_from_bytes (whole, 0, size);
    g_autoptr (MusterRpcMessage) message = cut (part, 5000);
    g_autoptr (GBytes) bytes = muster_rpc_message_take_bytes (message, NULL, &error);
    MUSTER_EXPECT_NULL (error);
    MUSTER_EXPECT_TRUE (bytes != NULL && g_bytes_equal (bytes, part));
  }
}

MUSTER_TEST (RpcMessage, reads_the_fields_of_a_field)
{
  g_autoptr (GBytes) content = g_bytes_new_take (g_strnfill (20000, 'c'), 20000);
  g_autoptr (GBytes) whole = nest (content, 2, "before");
  g_autoptr (MusterRpcMessage) message = cut (whole, 3000);
  MusterRpcReader reader;
  MusterRpcField field;
  muster_rpc_reader_init (&reader, message);
  for (guint level = 0; level < 2; level++) {
    MUSTER_ASSERT_TRUE (muster_rpc_reader_next (&reader, &field));
    MUSTER_EXPECT_TRUE (is_text (&field, "before"));
    MUSTER_ASSERT_TRUE (muster_rpc_reader_next (&reader, &field));
    MUSTER_EXPECT_EQ (field.number, 2u);
    muster_rpc_reader_enter (&reader, &field);
  }
  MUSTER_EXPECT_EQ (field.size, 20000u);
}
