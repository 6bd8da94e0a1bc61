// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "graph/npy.h"
#include "tests/gtest_shim.h"

#include <string.h>
#include <unistd.h>

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

MUSTER_TEST (npy, reads_strings_without_what_fills_them_up)
{
  static const guint32 text[] = {0xe9, 0x1f600, 'a', 0}; /* two of two characters */
  g_autoptr (GBytes) bytes = npy ("{'descr': '|S3', 'fortran_order': False, 'shape': (2, 2), }\n",
                                  "ab\0abc\0\0\0a\0b", 12);
  g_autoptr (GBytes) unicode =
      npy ("{'descr': '<U2', 'fortran_order': False, 'shape': (2,), }\n", text, sizeof text);
  g_autoptr (GError) error = NULL;

  g_autoptr (MusterTensor) a = muster_npy_read (bytes, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  g_autoptr (MusterTensor) b = muster_npy_read (unicode, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_EXPECT_EQ (muster_tensor_dims (a)[1], 2);
  static const MusterString wanted[] = {{"ab", 2}, {"abc", 3}, {"", 0}, {"a\0b", 3}};
  for (gint64 i = 0; i < 4; i++) {
    const MusterString found = muster_tensor_string (a, i);
    MUSTER_EXPECT_MEMEQ (found.data, found.size, wanted[i].data, wanted[i].size);
  }
  const MusterString first = muster_tensor_string (b, 0), second = muster_tensor_string (b, 1);
  MUSTER_EXPECT_MEMEQ (first.data, first.size, "\xc3\xa9\xf0\x9f\x98\x80", 6);
  MUSTER_EXPECT_MEMEQ (second.data, second.size, "a", 1);
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

MUSTER_TEST (npy, refuses_strings_that_do_not_fit_their_shape)
{
  static const struct {
    const char *descr, *shape, *word;
  } cases[] = {
      {"|S0", "(4611686018427387904,)", "element type"},
      {"|S", "(3,)", "element type"},
      {">U1", "(3,)", "element type"},
      {"|S99999999999999999999", "(1,)", "element type"},
      {"|S4", "(4,)", "its shape"},
      {"|S2", "(4611686018427387904, 4)", "its shape"},
      {"<U1", "(3,)", "Unicode"},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autofree char *header = g_strdup_printf (
        "{'descr': '%s', 'fortran_order': False, 'shape': %s, }\n", cases[i].descr, cases[i].shape);
    g_autoptr (GBytes) bytes = npy (header, "\0\xd8\0\0abcdefgh", 12);
    expect_refused (bytes, cases[i].word);
  }
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

MUSTER_TEST (npy, an_array_stays_as_it_is_when_its_file_is_overwritten)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *path = g_build_filename (muster_test_tmpdir (), "x.npy", NULL);
  float values[2] = {1, 2};
  g_autoptr (GBytes) whole =
      npy ("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", values, sizeof values);
  MUSTER_ASSERT_TRUE (g_file_set_contents (path, g_bytes_get_data (whole, NULL),
                                           (gssize)g_bytes_get_size (whole), &error));
  g_autoptr (MusterTensor) tensor = muster_npy_load (path, &error);
  MUSTER_ASSERT_NO_ERROR (error);

  MUSTER_ASSERT_TRUE (truncate (path, 0) == 0); /* as a writer begins, in place */

  MUSTER_EXPECT_TRUE (memcmp (muster_tensor_data (tensor), values, sizeof values) == 0);
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
