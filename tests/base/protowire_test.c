// SPDX-License-Identifier: Apache-2.0
#include "base/protowire_private.h"

#include "tests/gtest_shim.h"

static gboolean
read_one (const void *data, gsize size, MusterProtoField *field)
{
  MusterProtoReader reader = muster_proto_reader (data, size);
  return muster_proto_read_field (&reader, field);
}

MUSTER_TEST (protowire, writes_varints_as_protobuf_does)
{
  static const struct {
    guint64 value;
    gsize size;
    const char *bytes;
  } cases[] = {
      {0, 1, "\x00"},
      {1, 1, "\x01"},
      {127, 1, "\x7f"},
      {128, 2, "\x80\x01"},
      {300, 2, "\xac\x02"},
      {G_MAXUINT32, 5, "\xff\xff\xff\xff\x0f"},
      {G_MAXUINT64, 10, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"},
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (GByteArray) out = g_byte_array_new ();
    guint64 back = 42;
    muster_proto_put_varint (out, cases[i].value);
    MUSTER_EXPECT_MEMEQ (out->data, out->len, cases[i].bytes, cases[i].size);
    MUSTER_EXPECT_EQ (muster_proto_varint_size (cases[i].value), cases[i].size);
    MusterProtoReader reader = muster_proto_reader (out->data, out->len);
    MUSTER_EXPECT_TRUE (muster_proto_read_varint (&reader, &back));
    MUSTER_EXPECT_EQ (back, cases[i].value);
    MUSTER_EXPECT_TRUE (muster_proto_at_end (&reader));
  }
}

MUSTER_TEST (protowire, refuses_varints_that_do_not_end)
{
  guint64 value = 42;
  MusterProtoReader cut = muster_proto_reader ("\x80\x80", 2);
  MUSTER_EXPECT_FALSE (muster_proto_read_varint (&cut, &value));
  MusterProtoReader eleven =
      muster_proto_reader ("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11);
  MUSTER_EXPECT_FALSE (muster_proto_read_varint (&eleven, &value));
  MUSTER_EXPECT_EQ (value, 42u);
}

MUSTER_TEST (protowire, reads_every_wire_type)
{
  MusterProtoField field;
  MUSTER_EXPECT_TRUE (read_one ("\x08\x96\x01", 3, &field));
  MUSTER_EXPECT_EQ (field.number, 1u);
  MUSTER_EXPECT_EQ (field.value, 150u);
  MUSTER_EXPECT_TRUE (read_one ("\x11\1\2\3\4\5\6\7\x88", 9, &field));
  MUSTER_EXPECT_EQ (field.number, 2u);
  MUSTER_EXPECT_EQ (field.value, 0x8807060504030201u);
  MUSTER_EXPECT_TRUE (read_one ("\x1a\3abc", 5, &field));
  MUSTER_EXPECT_MEMEQ (field.data, field.size, "abc", 3);
  MUSTER_EXPECT_TRUE (read_one ("\x25\1\2\3\xf4", 5, &field));
  MUSTER_EXPECT_EQ (field.value, 0xf4030201u);
}

MUSTER_TEST (protowire, stays_before_what_is_malformed)
{
  static const struct {
    const char *bytes;
    gsize size;
  } cases[] = {
      {"\x08", 1},               /* no value */
      {"\x08\x80", 2},           /* half a varint */
      {"\x09\1\2\3\4\5\6\7", 8}, /* seven of eight bytes */
      {"\x0d\1\2\3", 4},         /* three of four bytes */
      {"\x0a\5abcd", 6},         /* longer than what is left */
      {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11},
      {"\x0b\x0c", 2},                     /* a group */
      {"\x0c", 1},                         /* a group's end */
      {"\x0e", 1},                         /* no such wire type */
      {"\x00\x01", 2},                     /* field 0 */
      {"\xf8\xff\xff\xff\xff\x01\x01", 7}, /* a number beyond 32 bits */
  };
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++) {
    MusterProtoReader reader = muster_proto_reader (cases[i].bytes, cases[i].size);
    MusterProtoField field;
    MUSTER_TRACE ("case %u", i);
    MUSTER_EXPECT_FALSE (muster_proto_read_field (&reader, &field));
    MUSTER_EXPECT_FALSE (muster_proto_at_end (&reader));
  }
}

MUSTER_TEST (protowire, ends_well_where_nothing_is_left)
{
  MusterProtoReader reader = muster_proto_reader ("\x08\x01", 2);
  MusterProtoField field;
  MUSTER_EXPECT_TRUE (muster_proto_read_field (&reader, &field));
  MUSTER_EXPECT_FALSE (muster_proto_read_field (&reader, &field));
  MUSTER_EXPECT_TRUE (muster_proto_at_end (&reader));
  MusterProtoReader empty = muster_proto_reader (NULL, 0);
  MUSTER_EXPECT_FALSE (muster_proto_read_field (&empty, &field));
  MUSTER_EXPECT_TRUE (muster_proto_at_end (&empty));
}

MUSTER_TEST (protowire, writes_fields)
{
  g_autoptr (GByteArray) out = g_byte_array_new ();
  muster_proto_put_uint (out, 1, 150);
  muster_proto_put_uint (out, 2, 0);
  muster_proto_put_string (out, 3, "abc");
  muster_proto_put_string (out, 4, "");
  muster_proto_put_string (out, 5, NULL);
  muster_proto_put_bytes (out, 6, NULL, 0);
  muster_proto_put_head (out, 16, 300);
  const char wanted[] = "\x08\x96\x01\x1a\3abc\x32\0\x82\x01\xac\x02";
  MUSTER_EXPECT_MEMEQ (out->data, out->len, wanted, sizeof wanted - 1);
}
