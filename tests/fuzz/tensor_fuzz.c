// SPDX-License-Identifier: Apache-2.0
/* TensorProto, read as a copy and as a view, then used. */
#include "graph/tensor_proto_private.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static void
use (MusterTensor *tensor)
{
  gsize sum = muster_tensor_n_bytes (tensor);
  g_autofree char *text = muster_tensor_to_string (tensor, 20);
  g_autofree char *shape =
      muster_shape_to_string (muster_tensor_n_dims (tensor), muster_tensor_dims (tensor));
  g_autoptr (GBytes) bytes = muster_tensor_to_bytes (tensor);
  g_assert_cmpuint (g_bytes_get_size (bytes), ==, sum);
  g_assert_true (g_utf8_validate (text, -1, NULL));
  sum += strlen (shape);
  gsize size;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  for (gsize i = 0; i < size; i += 1 + size / 64)
    sum += data[i];
  if (muster_tensor_dtype (tensor) != MUSTER_STRING)
    return;
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++) {
    const MusterString string = muster_tensor_string (tensor, i);
    g_autofree char *copy = g_strndup (string.data, string.size);
    sum += strlen (copy);
    if (i > 1000)
      break;
  }
}

const gsize muster_fuzz_n_picks = 0;

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL, same_error = NULL;
  g_autoptr (GBytes) owner = g_bytes_new_static (data, size);
  g_autoptr (MusterTensor) copy = muster_tensor_proto_read (data, size, NULL, &error);
  g_autoptr (MusterTensor) view = muster_tensor_proto_read (data, size, owner, &same_error);
  g_assert_true ((copy == NULL) == (error != NULL));
  g_assert_true ((view == NULL) == (same_error != NULL));
  g_assert_true ((copy == NULL) == (view == NULL));
  if (copy == NULL)
    return 0;
  g_assert_true (muster_tensor_equal (copy, view));
  use (copy);
  use (view);
  if (muster_tensor_n_elements (copy) > 100000)
    return 0;
  g_autoptr (GBytes) written = muster_tensor_proto_write (view);
  g_autoptr (MusterTensor) back = muster_tensor_proto_read (
      g_bytes_get_data (written, NULL), g_bytes_get_size (written), written, &error);
  g_assert_no_error (error);
  g_assert_true (muster_tensor_equal (back, copy));
  return 0;
}

static void
seed_dtype (MusterDType dtype, gint64 n)
{
  const gint64 dims[] = {n, 2};
  g_autoptr (MusterTensor) tensor = muster_tensor_try_new (dtype, 2, dims, NULL);
  if (tensor == NULL)
    return;
  memset (muster_tensor_data_mutable (tensor), 1, muster_tensor_n_bytes (tensor));
  g_autoptr (GBytes) written = muster_tensor_proto_write (tensor);
  muster_fuzz_seed (NULL, g_bytes_get_data (written, NULL), g_bytes_get_size (written));
}

void
muster_fuzz_seeds (void)
{
  /* Typed fields: whole, fewer than elements, strings, and strings as content. */
  static const char *const typed[] = {
      "\x08\1\x12\4\x12\2\x08\2\x2a\x08"
      "abcdefgh",
      "\x08\2\x12\4\x12\2\x08\2\x32\x08"
      "abcdefgh",
      "\x08\3\x12\4\x12\2\x08\3\x3a\2\5\6",
      "\x08\x06\x12\4\x12\2\x08\3\x3a\1\5",
      "\x08\7\x12\4\x12\2\x08\3\x42\3abc\x42\1z",
      "\x08\7\x12\4\x12\2\x08\2\x22\5\1\2abc",
      "\x08\x08\x12\4\x12\2\x08\2\x4a\x10"
      "abcdefghijklmnop",
      "\x08\x09\x12\4\x12\2\x08\3\x52\2\5\6",
      "\x08\x0a\x12\4\x12\2\x08\3\x58\1\x58\2",
      "\x08\x13\x12\x08\x12\2\x08\2\x12\2\x08\2\x6a\3\5\6\7",
      "\x08\x16\x12\4\x12\2\x08\3\x82\1\1\5",
      "\x08\x17\x12\4\x12\2\x08\3\x88\1\5",
  };
  for (gsize i = 0; i < G_N_ELEMENTS (typed); i++)
    muster_fuzz_seed (NULL, typed[i], strlen (typed[i]));
  for (int dtype = 1; dtype < 24; dtype++)
    seed_dtype ((MusterDType)dtype, 3);
  seed_dtype (MUSTER_FLOAT, 600); /* large enough for a view */
}
