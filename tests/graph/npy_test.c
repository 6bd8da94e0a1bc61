// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "graph/npy.h"
#include "tests/gtest_shim.h"

#include <string.h>

/* A .npy file of version 1, its header padded as NumPy pads it. */
static GBytes *
npy (const char *header, const void *data, gsize size)
{
  GByteArray *bytes = g_byte_array_new ();
  gsize length = strlen (header);
  guint8 head[10] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, length & 255, length >> 8};
  g_byte_array_append (bytes, head, sizeof head);
  g_byte_array_append (bytes, (const guint8 *)header, length);
  g_byte_array_append (bytes, data, size);
  return g_byte_array_free_to_bytes (bytes);
}

MUSTER_TEST (npy, reads_dtype_shape_and_elements)
{
  float values[6] = {1, 2, 3, 4, 5, 6};
  g_autoptr (GBytes) bytes =
      npy ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", values, sizeof values);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterTensor) tensor = muster_npy_read (bytes, &error);

  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_tensor_dtype (tensor), MUSTER_FLOAT);
  MUSTER_ASSERT_EQ (muster_tensor_n_dims (tensor), 2);
  MUSTER_EXPECT_EQ (muster_tensor_dims (tensor)[0], 2);
  MUSTER_EXPECT_EQ (muster_tensor_dims (tensor)[1], 3);
  MUSTER_EXPECT_MEMEQ (muster_tensor_data (tensor), muster_tensor_n_bytes (tensor), values,
                       sizeof values);
}

MUSTER_TEST (npy, reads_a_scalar_and_a_vector)
{
  gint64 value = 7;
  g_autoptr (GBytes) scalar =
      npy ("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n", &value, sizeof value);
  g_autoptr (GBytes) vector =
      npy ("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }\n", &value, sizeof value);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterTensor) a = muster_npy_read (scalar, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) b = muster_npy_read (vector, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (muster_tensor_n_dims (a), 0);
  MUSTER_EXPECT_EQ (muster_tensor_n_dims (b), 1);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (b), 7);
}

static void
expect_refused (GBytes *bytes, const char *word)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) tensor = muster_npy_read (bytes, &error);
  MUSTER_EXPECT_NULL (tensor);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_TRUE (error != NULL && g_utf8_validate (error->message, -1, NULL));
  if (error != NULL && strstr (error->message, word) == NULL)
    MUSTER_FAIL ("'%s' doesn't say '%s'", error->message, word);
}

MUSTER_TEST (npy, refuses_what_it_cannot_hold_and_says_what_that_is)
{
  float values[6] = {0};
  g_autoptr (GBytes) objects =
      npy ("{'descr': '|O', 'fortran_order': False, 'shape': (6,), }\n", values, sizeof values);
  g_autoptr (GBytes) fortran =
      npy ("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n", values, sizeof values);
  g_autoptr (GBytes) large =
      npy ("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }\n", values, sizeof values);
  g_autoptr (GBytes) negative =
      npy ("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }\n", values, sizeof values);
  g_autoptr (GBytes) huge =
      npy ("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }\n",
           values, sizeof values);

  g_autoptr (GBytes) no_text = npy (
      "{'descr': '\xff\xfe', 'fortran_order': False, 'shape': (6,), }\n", values, sizeof values);

  expect_refused (objects, "|O");
  expect_refused (no_text, "unsupported element type");
  expect_refused (fortran, "Fortran");
  expect_refused (large, "");
  expect_refused (negative, "shape");
  expect_refused (huge, "");
}

MUSTER_TEST (npy, a_file_truncated_anywhere_is_refused)
{
  float values[2] = {1, 2};
  g_autoptr (GBytes) whole =
      npy ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", values, sizeof values);

  for (gsize n = 0; n < g_bytes_get_size (whole); n++) {
    g_autoptr (GBytes) part = g_bytes_new (g_bytes_get_data (whole, NULL), n);
    expect_refused (part, "");
  }
}

MUSTER_TEST (npy, names_the_file_that_is_not_there)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) tensor = muster_npy_load ("nowhere/x.npy", &error);
  MUSTER_EXPECT_NULL (tensor);
  MUSTER_EXPECT_ERROR (error, G_FILE_ERROR, G_FILE_ERROR_NOENT);
}

MUSTER_TEST (npy, writes_what_it_reads)
{
  static const gint64 dims[] = {2, 3, 1};
  static const gint16 values[] = {1, 2, 3, 4, 5, 6};

  for (int n_dims = 0; n_dims <= 3; n_dims++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) header = muster_npy_header (MUSTER_INT16, n_dims, dims, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    const gsize n = n_dims == 0 ? 1 : n_dims == 1 ? 2 : 6, start = g_bytes_get_size (header);
    MUSTER_EXPECT_EQ (start % 64, 0);
    GByteArray *file = g_bytes_unref_to_array (g_steal_pointer (&header));
    g_byte_array_append (file, (const guint8 *)values, n * sizeof *values);
    g_autoptr (GBytes) bytes = g_byte_array_free_to_bytes (file);

    g_autoptr (MusterTensor) tensor = muster_npy_read (bytes, &error);

    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (muster_tensor_dtype (tensor), MUSTER_INT16);
    MUSTER_EXPECT_MEMEQ (muster_tensor_dims (tensor), (gsize)muster_tensor_n_dims (tensor) * 8,
                         dims, (gsize)n_dims * 8);
    MUSTER_EXPECT_MEMEQ (muster_tensor_data (tensor), muster_tensor_n_bytes (tensor), values,
                         n * sizeof *values);
  }
}

MUSTER_TEST (npy, writes_no_type_that_numpy_lacks)
{
  static const MusterDType types[] = {MUSTER_STRING, MUSTER_BFLOAT16, MUSTER_INVALID};

  for (gsize i = 0; i < G_N_ELEMENTS (types); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (GBytes) header = muster_npy_header (types[i], 0, NULL, &error);
    MUSTER_EXPECT_TRUE (header == NULL);
    MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_UNIMPLEMENTED));
  }
}
