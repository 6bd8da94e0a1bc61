// SPDX-License-Identifier: Apache-2.0
/* The fields of a message in pieces, each of which is as many bytes as the first byte says: as of
 * the same message in one. */
#include "base/protowire_private.h"
#include "rpc/messages/rpc_message_private.h"
#include "tests/fuzz/fuzz.h"

#include <grpc/byte_buffer.h>
#include <grpc/slice.h>
#include <string.h>

const gsize muster_fuzz_n_picks = 1;

static MusterRpcMessage *
in_pieces (const guint8 *data, gsize size, gsize piece)
{
  g_autoptr (GArray) slices = g_array_new (FALSE, FALSE, sizeof (grpc_slice));
  for (gsize at = 0; at < size; at += piece) {
    grpc_slice slice =
        grpc_slice_from_copied_buffer ((const char *)data + at, MIN (piece, size - at));
    g_array_append_val (slices, slice);
  }
  MusterRpcMessage *message =
      grpc_raw_byte_buffer_create ((grpc_slice *)(gpointer)slices->data, slices->len);
  for (guint i = 0; i < slices->len; i++)
    grpc_slice_unref (g_array_index (slices, grpc_slice, i));
  return message;
}

static void
expect_same (const MusterProtoField *whole, const MusterRpcField *field)
{
  g_assert_cmpuint (field->number, ==, whole->number);
  g_assert_cmpuint (field->type, ==, whole->type);
  if (field->type == MUSTER_WIRE_VARINT)
    g_assert_cmpuint (field->value, ==, whole->value);
  if (field->type != MUSTER_WIRE_BYTES)
    return;
  g_assert_cmpuint (field->size, ==, whole->size);
  g_assert_true ((field->data != NULL) == (field->size <= MUSTER_RPC_PEEK));
  if (field->data != NULL)
    g_assert_true (memcmp (field->data, whole->data, field->size) == 0);
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  if (size < 1)
    return 0;
  MusterRpcMessage *message = in_pieces (data + 1, size - 1, (gsize)data[0] + 1);
  MusterProtoReader contiguous = muster_proto_reader (data + 1, size - 1);
  MusterProtoField whole;
  MusterRpcReader reader;
  MusterRpcField field;
  muster_rpc_reader_init (&reader, message);
  while (muster_proto_read_field (&contiguous, &whole)) {
    g_assert_true (muster_rpc_reader_next (&reader, &field));
    expect_same (&whole, &field);
  }
  g_assert_false (muster_rpc_reader_next (&reader, &field));
  g_assert_true (reader.is_malformed == !muster_proto_at_end (&contiguous));
  muster_rpc_message_free (message);
  return 0;
}

void
muster_fuzz_seeds (void)
{
  g_autoptr (GByteArray) all = g_byte_array_new ();
  g_autofree char *large = g_strnfill (MUSTER_RPC_PEEK + 1, 'x');
  muster_proto_put_string (all, 1, "a handle");
  muster_proto_put_string (all, 3, "fetch:0");
  muster_proto_put_uint (all, 7, 1);
  muster_proto_put_double (all, 8, 1);
  muster_proto_put_float (all, 9, 1);
  muster_proto_put_string (all, 2, large);
  for (guint8 piece = 0; piece < 20; piece += 3)
    muster_fuzz_seed (&piece, all->data, all->len);
}
