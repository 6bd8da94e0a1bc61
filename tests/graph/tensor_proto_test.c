// SPDX-License-Identifier: Apache-2.0
#include "graph/tensor_proto_private.h"

#include <string.h>

#include "base/budget_private.h"
#include "base/error.h"
#include "base/protowire_private.h"
#include "tests/gtest_shim.h"

#define DIMS(...) ((const gint64[]){__VA_ARGS__})

static MusterTensor *
read_proto (const char *bytes, gsize size, GError **error)
{
  return muster_tensor_proto_read (bytes, size, NULL, error);
}

/* The start of a TensorProto: dtype, and a vector of n (up to 127). */
static GByteArray *
vector_of (MusterDType dtype, guint8 n)
{
  GByteArray *out = g_byte_array_new ();
  const guint8 shape[] = {0x12, 2, 8, n};
  muster_proto_put_uint (out, 1, dtype);
  muster_proto_put_bytes (out, 2, shape, sizeof shape);
  return out;
}

/* The typed fields, as TensorFlow's tensor.proto numbers them: two elements of each type, as single
 * fields and packed, and the elements' bytes. */
typedef struct {
  MusterDType dtype;
  const char *name;
  gsize single_size, packed_size, data_size;
  const char *single, *packed, *data;
} TypedCase;

#define CASE(dtype, single, packed, data)                                                          \
  {                                                                                                \
    dtype, #dtype, sizeof single - 1, sizeof packed - 1, sizeof data - 1, single, packed, data     \
  }

/* clang-format off */
static const TypedCase typed_cases[] = {
    CASE (MUSTER_FLOAT, "\x2d\0\0\x80\x3f\x2d\0\0\0\xc0", "\x2a\x08\0\0\x80\x3f\0\0\0\xc0", "\0\0\x80\x3f\0\0\0\xc0"),
    CASE (MUSTER_DOUBLE, "\x31\0\0\0\0\0\0\xf0\x3f\x31\0\0\0\0\0\0\0\xc0",
          "\x32\x10\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0", "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0"),
    CASE (MUSTER_INT32, "\x38\5\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",
          "\x3a\x0b\5\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", "\5\0\0\0\xff\xff\xff\xff"),
    CASE (MUSTER_UINT8, "\x38\5\x38\xff\1", "\x3a\3\5\xff\1", "\5\xff"),
    CASE (MUSTER_INT16, "\x38\5\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",
          "\x3a\x0b\5\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", "\5\0\xff\xff"),
    CASE (MUSTER_INT8, "\x38\5\x38\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",
          "\x3a\x0b\5\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", "\5\xff"),
    CASE (MUSTER_UINT16, "\x38\5\x38\xff\xff\3", "\x3a\4\5\xff\xff\3", "\5\0\xff\xff"),
    CASE (MUSTER_COMPLEX64,
          "\x4d\0\0\x80\x3f\x4d\0\0\0\xc0\x4d\0\0\0\0\x4d\0\0\x80\x3f",
          "\x4a\x10\0\0\x80\x3f\0\0\0\xc0\0\0\0\0\0\0\x80\x3f", "\0\0\x80\x3f\0\0\0\xc0\0\0\0\0\0\0\x80\x3f"),
    CASE (MUSTER_INT64, "\x50\5\x50\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1",
          "\x52\x0b\5\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1", "\5\0\0\0\0\0\0\0\xfe\xff\xff\xff\xff\xff\xff\xff"),
    CASE (MUSTER_BOOL, "\x58\0\x58\2", "\x5a\2\0\2", "\0\1"),
    CASE (MUSTER_COMPLEX128,
          "\x61\0\0\0\0\0\0\xf0\x3f\x61\0\0\0\0\0\0\0\xc0\x61\0\0\0\0\0\0\0\0\x61\0\0\0\0\0\0\xf0\x3f",
          "\x62\x20\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xf0\x3f",
          "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\0\xc0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\xf0\x3f"),
    CASE (MUSTER_HALF, "\x68\x80\x78\x68\x80\x80\3", "\x6a\5\x80\x78\x80\x80\3", "\x00\x3c\0\xc0"),
    CASE (MUSTER_BFLOAT16, "\x68\x80\x7f\x68\x80\x80\3", "\x6a\5\x80\x7f\x80\x80\3", "\x80\x3f\0\xc0"),
    CASE (MUSTER_UINT32, "\x80\1\5\x80\1\xff\xff\xff\xff\x0f", "\x82\1\6\5\xff\xff\xff\xff\x0f", "\5\0\0\0\xff\xff\xff\xff"),
    CASE (MUSTER_UINT64, "\x88\1\5\x88\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\1",
          "\x8a\1\x0b\5\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", "\5\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"),
};
/* clang-format on */

static void
expect_data (const TypedCase *test, const char *field, gsize field_size)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) proto = vector_of (test->dtype, 2);
  g_byte_array_append (proto, (const guint8 *)field, (guint)field_size);
  MUSTER_TRACE ("%s", test->name);
  g_autoptr (MusterTensor) tensor =
      muster_tensor_proto_read (proto->data, proto->len, NULL, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_tensor_dims (tensor)[0], 2);
  MUSTER_EXPECT_MEMEQ (muster_tensor_data (tensor), muster_tensor_n_bytes (tensor), test->data,
                       test->data_size);
}

MUSTER_TEST (tensor_proto, reads_typed_values_of_every_dtype_single_and_packed)
{
  for (guint i = 0; i < G_N_ELEMENTS (typed_cases); i++) {
    expect_data (&typed_cases[i], typed_cases[i].single, typed_cases[i].single_size);
    expect_data (&typed_cases[i], typed_cases[i].packed, typed_cases[i].packed_size);
  }
}

MUSTER_TEST (tensor_proto, reads_tensor_content_of_every_dtype)
{
  for (guint i = 0; i < G_N_ELEMENTS (typed_cases); i++) {
    g_autoptr (GByteArray) content = g_byte_array_new ();
    muster_proto_put_bytes (content, 4, typed_cases[i].data, typed_cases[i].data_size);
    expect_data (&typed_cases[i], (const char *)content->data, content->len);
  }
}

MUSTER_TEST (tensor_proto, repeats_the_last_value)
{
  for (guint i = 0; i < G_N_ELEMENTS (typed_cases); i++) {
    const TypedCase *test = &typed_cases[i];
    const gsize size = test->data_size / 2;
    g_autoptr (GError) error = NULL;
    g_autoptr (GByteArray) proto = vector_of (test->dtype, 7);
    g_byte_array_append (proto, (const guint8 *)test->packed, (guint)test->packed_size);
    g_autoptr (MusterTensor) tensor =
        muster_tensor_proto_read (proto->data, proto->len, NULL, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    const guint8 *data = muster_tensor_data (tensor);
    MUSTER_TRACE ("%s", test->name);
    MUSTER_EXPECT_MEMEQ (data, size, test->data, size);
    for (gsize j = 1; j < 7; j++)
      MUSTER_EXPECT_MEMEQ (data + j * size, size, test->data + size, size);
  }
}

MUSTER_TEST (tensor_proto, means_zeros_where_there_is_no_value)
{
  for (guint i = 0; i < G_N_ELEMENTS (typed_cases); i++) {
    const guint8 zeros[7 * 16] = {0};
    g_autoptr (GByteArray) proto = vector_of (typed_cases[i].dtype, 7);
    g_autoptr (MusterTensor) tensor =
        muster_tensor_proto_read (proto->data, proto->len, NULL, NULL);
    MUSTER_ASSERT_NOT_NULL (tensor);
    MUSTER_EXPECT_MEMEQ (muster_tensor_data (tensor), muster_tensor_n_bytes (tensor), zeros,
                         7 * muster_dtype_size (typed_cases[i].dtype));
  }
}

MUSTER_TEST (tensor_proto, reads_strings)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) two =
      read_proto ("\x08\7\x12\4\x12\2\x08\3\x42\3a\0b\x42\1c", 16, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterString first = muster_tensor_string (two, 0);
  const MusterString last = muster_tensor_string (two, 2);
  MUSTER_EXPECT_MEMEQ (first.data, first.size, "a\0b", 3);
  MUSTER_EXPECT_MEMEQ (last.data, last.size, "c", 1);
  g_autoptr (MusterTensor) none = read_proto ("\x08\7\x12\4\x12\2\x08\3", 8, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_tensor_string (none, 2).size, 0u);
}

MUSTER_TEST (tensor_proto, reads_strings_from_tensor_content)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) three =
      read_proto ("\x08\7\x12\4\x12\2\x08\3\x22\7\3\0\1a\0bc", 17, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  const MusterString first = muster_tensor_string (three, 0);
  const MusterString last = muster_tensor_string (three, 2);
  MUSTER_EXPECT_MEMEQ (first.data, first.size, "a\0b", 3);
  MUSTER_EXPECT_EQ (muster_tensor_string (three, 1).size, 0u);
  MUSTER_EXPECT_MEMEQ (last.data, last.size, "c", 1);
}

MUSTER_TEST (tensor_proto, reads_a_scalar_without_a_shape)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) tensor = read_proto ("\x08\3\x3a\1\x2a", 5, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_tensor_n_dims (tensor), 0);
  MUSTER_EXPECT_EQ (*(const gint32 *)muster_tensor_data (tensor), 42);
}

static void
expect_code (const char *bytes, gsize size, MusterError code, const char *why)
{
  g_autoptr (GError) error = NULL;
  MUSTER_TRACE ("%s", why);
  MUSTER_EXPECT_NULL (read_proto (bytes, size, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, code, why);
}

static void
expect_refused (const char *bytes, gsize size, const char *why)
{
  expect_code (bytes, size, MUSTER_ERROR_INVALID_ARGUMENT, why);
}

MUSTER_TEST (tensor_proto, says_what_is_wrong)
{
  expect_refused ("", 0, "type");
  expect_refused ("\x08\x14", 2, "resource (20)");
  expect_refused ("\x08\x65", 2, "float_ref (101)");
  expect_refused ("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 11, "type");
  expect_refused ("\x08\1\x12\2\x18\1", 6, "unknown");
  expect_refused ("\x08\1\x12\x0d\x12\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 17,
                  "invalid shape");
  expect_refused ("\x08\1\x12\4\x12\2\x08\2\x22\4abcd", 14, "8 bytes, not 4");
  expect_refused ("\x08\x08\x4d\0\0\x80\x3f", 7, "complex");
  expect_refused ("\x08\1\x2a\3abc", 7, "malformed");
  expect_refused ("\x08\7\x22\1x", 5, "lengths");
  expect_refused ("\x08\7\x22\2\0\2", 6, "follow");
  expect_refused ("\x08\7\x22\3\3xy", 7, "truncated");
  expect_refused ("\x08\1\x12\4\x12\2\x08", 7, "malformed");
}

MUSTER_TEST (tensor_proto, believes_large_claims_only_up_to_a_bound)
{
  /* 2^40 floats, and as many strings, from a dozen bytes */
  expect_code ("\x08\1\x12\x09\x12\7\x08\x80\x80\x80\x80\x80\x20", 13,
               MUSTER_ERROR_RESOURCE_EXHAUSTED, "fill in");
  expect_code ("\x08\7\x12\x09\x12\7\x08\x80\x80\x80\x80\x80\x20\x42\1x", 16,
               MUSTER_ERROR_RESOURCE_EXHAUSTED, "fill in");
}

/* Written out again each of them would stand there in full. */
MUSTER_TEST (tensor_proto, counts_a_repeated_string_as_often_as_it_stands_there)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) proto = g_byte_array_new ();
  g_autofree char *text = g_strnfill (1 << 20, 'x');
  g_byte_array_append (proto, (const guint8 *)"\x08\7\x12\5\x12\3\x08\xb8\x17", 9); /* 3000 */
  muster_proto_put_bytes (proto, 8, text, 1 << 20);

  MUSTER_EXPECT_NULL (muster_tensor_proto_read (proto->data, proto->len, NULL, &error));

  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}

MUSTER_TEST (tensor_proto, draws_on_what_several_tensors_may_expand_to_together)
{
  static const char four[] = "\x08\1\x12\4\x12\2\x08\4"; /* floats */
  g_autoptr (GError) error = NULL;
  gsize budget = 40;
  for (int i = 0; i < 2; i++) {
    g_autoptr (MusterTensor) tensor =
        muster_tensor_proto_read_within (four, sizeof four - 1, NULL, &budget, &error);
    MUSTER_ASSERT_NO_ERROR (error);
  }
  MUSTER_EXPECT_EQ (budget, 8u);
  MUSTER_EXPECT_NULL (
      muster_tensor_proto_read_within (four, sizeof four - 1, NULL, &budget, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  MUSTER_EXPECT_EQ (budget, 8u);
}

MUSTER_TEST (tensor_proto, refuses_too_many_dimensions)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) shape = g_byte_array_new ();
  g_autoptr (GByteArray) proto = g_byte_array_new ();
  for (int i = 0; i < 255; i++)
    muster_proto_put_bytes (shape, 2, "\x08\1", 2);
  muster_proto_put_uint (proto, 1, MUSTER_FLOAT);
  muster_proto_put_bytes (proto, 2, shape->data, shape->len);
  MUSTER_EXPECT_NULL (muster_tensor_proto_read (proto->data, proto->len, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

static MusterTensor *
ramp (gint64 n)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_FLOAT, 2, DIMS (n, 1));
  float *data = muster_tensor_data_mutable (tensor);
  for (gint64 i = 0; i < n; i++)
    data[i] = (float)i;
  return tensor;
}

MUSTER_TEST (tensor_proto, comes_back_as_it_was_written)
{
  MusterTensor *tensors[] = {
      muster_tensor_new_float (1.5f),
      ramp (0),
      ramp (3),
      ramp (100000),
      muster_tensor_new_string ("text"),
      muster_tensor_new_strv ((const char *[]){"a", "", "c", NULL}),
  };
  for (guint i = 0; i < G_N_ELEMENTS (tensors); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterTensor) tensor = tensors[i];
    g_autoptr (GBytes) bytes = muster_tensor_proto_write (tensor);
    gsize size;
    gconstpointer data = g_bytes_get_data (bytes, &size);
    g_autoptr (MusterTensor) back = muster_tensor_proto_read (data, size, bytes, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (muster_tensor_equal (tensor, back));
  }
}

MUSTER_TEST (tensor_proto, has_the_bytes_that_tensorflow_writes)
{
  g_autoptr (MusterTensor) vector =
      muster_tensor_new_from_data (MUSTER_INT32, 2, DIMS (2, 0), NULL, 0, NULL);
  g_autoptr (GBytes) empty = muster_tensor_proto_write (vector);
  const char wanted_empty[] = "\x08\3\x12\6\x12\2\x08\2\x12\0";
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (empty, NULL), g_bytes_get_size (empty), wanted_empty,
                       sizeof wanted_empty - 1);
  g_autoptr (MusterTensor) scalar = muster_tensor_new_int32 (7);
  g_autoptr (GBytes) seven = muster_tensor_proto_write (scalar);
  const char wanted_seven[] = "\x08\3\x12\0\x22\4\7\0\0\0";
  MUSTER_EXPECT_MEMEQ (g_bytes_get_data (seven, NULL), g_bytes_get_size (seven), wanted_seven,
                       sizeof wanted_seven - 1);
}

MUSTER_TEST (tensor_proto, goes_out_by_reference_when_large)
{
  g_auto (MusterRope) rope = MUSTER_ROPE_INIT;
  g_autoptr (MusterTensor) tensor = ramp (100000);
  muster_proto_put_string (muster_rope_tail (&rope), 1, "name");
  muster_tensor_proto_put (&rope, 2, tensor);
  muster_proto_put_uint (muster_rope_tail (&rope), 3, 9);

  GPtrArray *pieces = muster_rope_pieces (&rope);
  MUSTER_ASSERT_EQ (pieces->len, 3u);
  MUSTER_EXPECT_PTR_EQ (g_bytes_get_data (g_ptr_array_index (pieces, 1), NULL),
                        muster_tensor_data (tensor));

  g_autoptr (GBytes) flat = muster_rope_flatten (&rope);
  MusterProtoReader reader =
      muster_proto_reader (g_bytes_get_data (flat, NULL), g_bytes_get_size (flat));
  MusterProtoField field;
  MUSTER_EXPECT_TRUE (muster_proto_read_field (&reader, &field));
  MUSTER_ASSERT_TRUE (muster_proto_read_field (&reader, &field));
  g_autoptr (MusterTensor) back = muster_tensor_proto_read (field.data, field.size, flat, NULL);
  MUSTER_ASSERT_NOT_NULL (back);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (back, tensor));
  MUSTER_ASSERT_TRUE (muster_proto_read_field (&reader, &field));
  MUSTER_EXPECT_EQ (field.value, 9u);
}

MUSTER_TEST (tensor_proto, is_a_view_where_the_content_is_large_and_aligned)
{
  g_autoptr (MusterTensor) tensor = ramp (100000);
  g_autoptr (GBytes) bytes = muster_tensor_proto_write (tensor);
  gsize size;
  const guint8 *data = g_bytes_get_data (bytes, &size);
  const gsize head = size - 400000;
  for (gsize shift = 0; shift < 8; shift++) {
    guint8 *moved = g_malloc (size + shift);
    memcpy (moved + shift, data, size);
    g_autoptr (GBytes) owner = g_bytes_new_take (moved, size + shift);
    g_autoptr (MusterTensor) back = muster_tensor_proto_read (moved + shift, size, owner, NULL);
    const gboolean is_view = muster_tensor_data (back) == moved + shift + head;
    MUSTER_EXPECT_EQ (is_view, (shift + head) % 4 == 0);
    g_clear_pointer (&owner, g_bytes_unref);
    MUSTER_EXPECT_TRUE (muster_tensor_equal (back, tensor));
  }
}

MUSTER_TEST (tensor_proto, never_reads_past_a_truncation)
{
  for (guint i = 0; i < G_N_ELEMENTS (typed_cases); i++) {
    g_autoptr (GByteArray) proto = vector_of (typed_cases[i].dtype, 2);
    g_byte_array_append (proto, (const guint8 *)typed_cases[i].packed,
                         (guint)typed_cases[i].packed_size);
    for (gsize size = 0; size < proto->len; size++) {
      g_autofree guint8 *cut = g_memdup2 (proto->data, size); /* so that a sanitizer sees its end */
      g_autoptr (GError) error = NULL;
      g_autoptr (MusterTensor) tensor = muster_tensor_proto_read (cut, size, NULL, &error);
      MUSTER_EXPECT_TRUE ((tensor == NULL) == (error != NULL));
    }
  }
}

MUSTER_TEST (tensor_proto, is_written_within_a_budget_or_not_at_all)
{
  g_autoptr (GError) error = NULL;
  const char *const texts[] = {"one", "", "three", NULL};
  g_autoptr (MusterTensor) strings = muster_tensor_new_strv (texts);
  g_autoptr (MusterTensor) numbers = ramp (7);
  MusterTensor *tensors[] = {strings, numbers};
  for (gsize i = 0; i < G_N_ELEMENTS (tensors); i++) {
    MusterBudget exact = {.limit = muster_tensor_proto_size (tensors[i])};
    MusterBudget less = {.limit = exact.limit - 1};
    g_autoptr (GBytes) whole = muster_tensor_proto_write (tensors[i]);
    g_autoptr (GBytes) bytes = muster_tensor_proto_try_write (tensors[i], &exact, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_TRUE (g_bytes_equal (bytes, whole));
    MUSTER_EXPECT_NULL (muster_tensor_proto_try_write (tensors[i], &less, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
    g_clear_error (&error);
  }
}
