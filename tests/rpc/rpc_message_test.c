// SPDX-License-Identifier: Apache-2.0
#include "rpc/messages/rpc_message.h"

#include "base/protowire.h"
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
