// SPDX-License-Identifier: Apache-2.0
#include "graph/tensor.h"

#include <string.h>

#include "base/budget_private.h"
#include "base/error.h"
#include "graph/tensor_private.h"
#include "tests/gtest_shim.h"

#define DIMS(...) ((const gint64[]){__VA_ARGS__})

MUSTER_TEST (shape, counts_its_elements)
{
  MUSTER_EXPECT_EQ (muster_shape_n_elements (0, NULL), 1);
  MUSTER_EXPECT_EQ (muster_shape_n_elements (2, DIMS (3, 4)), 12);
  MUSTER_EXPECT_EQ (muster_shape_n_elements (2, DIMS (3, 0)), 0);
  MUSTER_EXPECT_EQ (muster_shape_n_elements (2, DIMS (3, -1)), -1);
  MUSTER_EXPECT_EQ (muster_shape_n_elements (2, DIMS (0, -1)), -1);
  MUSTER_EXPECT_EQ (muster_shape_n_elements (2, DIMS ((gint64)1 << 32, (gint64)1 << 31)), -1);
  MUSTER_EXPECT_EQ (muster_shape_n_elements (3, DIMS (G_MAXINT64, 2, 0)), -1);
  MUSTER_EXPECT_EQ (muster_shape_n_elements (-1, NULL), -1);
}

static void
expect_shape (int n_dims, const gint64 *dims, const char *wanted)
{
  g_autofree char *text = muster_shape_to_string (n_dims, dims);
  MUSTER_EXPECT_STREQ (text, wanted);
}

MUSTER_TEST (shape, reads_well)
{
  expect_shape (2, DIMS (64, 128), "[64,128]");
  expect_shape (0, NULL, "[]");
  expect_shape (2, DIMS (-1, 10), "[?,10]");
  expect_shape (-1, NULL, "<unknown>");
}

MUSTER_TEST (tensor, holds_what_its_maker_wrote)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_INT32, 2, DIMS (2, 3));
  gint32 *data = muster_tensor_data_mutable (tensor);
  for (int i = 0; i < 6; i++)
    data[i] = i * i;
  MUSTER_EXPECT_EQ ((int)muster_tensor_dtype (tensor), MUSTER_INT32);
  MUSTER_EXPECT_EQ (muster_tensor_n_dims (tensor), 2);
  MUSTER_EXPECT_EQ (muster_tensor_dims (tensor)[1], 3);
  MUSTER_EXPECT_EQ (muster_tensor_n_elements (tensor), 6);
  MUSTER_EXPECT_EQ (muster_tensor_n_bytes (tensor), 24u);
  MUSTER_EXPECT_EQ (((const gint32 *)muster_tensor_data (tensor))[5], 25);
}

MUSTER_TEST (tensor, reports_its_shape_with_its_length)
{
  g_autoptr (MusterTensor) matrix = muster_tensor_new (MUSTER_FLOAT, 2, DIMS (3, 4));
  g_autoptr (MusterTensor) scalar = muster_tensor_new_float (1);
  int n_dims = -1;
  g_autofree gint64 *shape = muster_tensor_shape (matrix, &n_dims);
  MUSTER_ASSERT_EQ (n_dims, 2);
  MUSTER_EXPECT_MEMEQ (shape, sizeof (gint64) * 2, DIMS (3, 4), sizeof (gint64) * 2);
  MUSTER_EXPECT_NULL (muster_tensor_shape (scalar, &n_dims));
  MUSTER_EXPECT_EQ (n_dims, 0);
}

MUSTER_TEST (tensor, is_aligned_at_every_size)
{
  for (gint64 n = 0; n < 3000; n += n < 200 ? 1 : 100) {
    g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_UINT8, 1, &n);
    guint8 *data = muster_tensor_data_mutable (tensor);
    MUSTER_ASSERT_NOT_NULL (data);
    MUSTER_EXPECT_EQ ((guintptr)data % (n <= 64 ? 16 : 64), 0u);
    memset (data, 0xab, (gsize)n);
  }
}

MUSTER_TEST (tensor, comes_as_a_scalar)
{
  g_autoptr (MusterTensor) f = muster_tensor_new_float (1.5f);
  g_autoptr (MusterTensor) i = muster_tensor_new_int32 (-7);
  g_autoptr (MusterTensor) l = muster_tensor_new_int64 (G_MAXINT64);
  g_autoptr (MusterTensor) b = muster_tensor_new_bool (42);
  g_autoptr (MusterTensor) s = muster_tensor_new_string ("text");
  MUSTER_EXPECT_EQ (*(const float *)muster_tensor_data (f), 1.5f);
  MUSTER_EXPECT_EQ (*(const gint32 *)muster_tensor_data (i), -7);
  MUSTER_EXPECT_EQ (*(const gint64 *)muster_tensor_data (l), G_MAXINT64);
  MUSTER_EXPECT_EQ (*(const guint8 *)muster_tensor_data (b), 1);
  MUSTER_EXPECT_EQ (muster_tensor_n_dims (s), 0);
  const MusterString string = muster_tensor_string (s, 0);
  MUSTER_EXPECT_MEMEQ (string.data, string.size, "text", 4);
  MUSTER_EXPECT_NULL (muster_tensor_data (s));
  MUSTER_EXPECT_EQ (muster_tensor_n_bytes (s), 0u);
}

static void
expect_refused (MusterDType dtype, int n_dims, const gint64 *dims, int code)
{
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_NULL (muster_tensor_try_new (dtype, n_dims, dims, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, code);
}

MUSTER_TEST (tensor, refuses_sizes_that_cannot_be)
{
  gint64 many[MUSTER_MAX_DIMS + 1];
  for (guint i = 0; i < G_N_ELEMENTS (many); i++)
    many[i] = 1;
  expect_refused (MUSTER_STRING, 0, NULL, MUSTER_ERROR_INVALID_ARGUMENT);
  expect_refused ((MusterDType)77, 0, NULL, MUSTER_ERROR_INVALID_ARGUMENT);
  expect_refused (MUSTER_RESOURCE, 0, NULL, MUSTER_ERROR_INVALID_ARGUMENT);
  expect_refused (MUSTER_FLOAT, 1, DIMS (-1), MUSTER_ERROR_INVALID_ARGUMENT);
  expect_refused (MUSTER_FLOAT, 1, DIMS (G_MAXINT64 / 2), MUSTER_ERROR_INVALID_ARGUMENT);
  expect_refused (MUSTER_FLOAT, MUSTER_MAX_DIMS + 1, many, MUSTER_ERROR_INVALID_ARGUMENT);
  expect_refused (MUSTER_UINT8, 1, DIMS ((gint64)1 << 61), MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_autoptr (MusterTensor) most = muster_tensor_try_new (MUSTER_FLOAT, MUSTER_MAX_DIMS, many, NULL);
  MUSTER_EXPECT_EQ (muster_tensor_n_dims (most), MUSTER_MAX_DIMS);
}

MUSTER_TEST (tensor, copies_data_whose_size_agrees)
{
  g_autoptr (GError) error = NULL;
  const float values[] = {1, 2, 3};
  g_autoptr (MusterTensor) tensor =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, DIMS (3), values, sizeof values, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_MEMEQ (muster_tensor_data (tensor), 12, values, 12);
  MUSTER_EXPECT_NULL (
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, DIMS (4), values, sizeof values, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "16 bytes, not 12");
}

static GBytes *
some_bytes (gsize size)
{
  guint8 *bytes = g_malloc (size);
  for (gsize i = 0; i < size; i++)
    bytes[i] = (guint8)(i * 3);
  return g_bytes_new_take (bytes, size);
}

MUSTER_TEST (tensor, is_a_view_over_aligned_bytes)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = some_bytes (800);
  const void *data = g_bytes_get_data (bytes, NULL);
  g_autoptr (MusterTensor) view =
      muster_tensor_new_from_bytes (MUSTER_DOUBLE, 1, DIMS (100), bytes, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_PTR_EQ (muster_tensor_data (view), data);
  g_clear_pointer (&bytes, g_bytes_unref);
  MUSTER_EXPECT_EQ (((const guint8 *)muster_tensor_data (view))[1], 3);
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (view));
  g_autoptr (GBytes) out = muster_tensor_to_bytes (view);
  MUSTER_EXPECT_PTR_EQ (g_bytes_get_data (out, NULL), data);
}

MUSTER_TEST (tensor, copies_bytes_that_are_not_aligned)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GBytes) bytes = some_bytes (801);
  g_autoptr (GBytes) odd = g_bytes_new_from_bytes (bytes, 1, 800);
  g_autoptr (MusterTensor) tensor =
      muster_tensor_new_from_bytes (MUSTER_DOUBLE, 1, DIMS (100), odd, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ ((guintptr)muster_tensor_data (tensor) % 8, 0u);
  MUSTER_EXPECT_MEMEQ (muster_tensor_data (tensor), 800, g_bytes_get_data (odd, NULL), 800);
  MUSTER_EXPECT_TRUE (muster_tensor_is_exclusive (tensor));
  MUSTER_EXPECT_NULL (muster_tensor_new_from_bytes (MUSTER_DOUBLE, 1, DIMS (99), odd, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

/* Both small ones, whose elements lie in the tensor, and ones with a buffer. */
static void
expect_exclusive_only_when_alone (gint64 n)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_FLOAT, 1, &n);
  MUSTER_EXPECT_TRUE (muster_tensor_is_exclusive (tensor));
  muster_tensor_ref (tensor);
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (tensor));
  muster_tensor_unref (tensor);
  MUSTER_EXPECT_TRUE (muster_tensor_is_exclusive (tensor));

  GBytes *bytes = muster_tensor_to_bytes (tensor);
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (tensor));
  g_bytes_unref (bytes);
  MUSTER_EXPECT_TRUE (muster_tensor_is_exclusive (tensor));

  MusterTensor *column = muster_tensor_reshape (tensor, 2, DIMS (n, 1));
  MusterTensor *row = muster_tensor_reshape (column, 2, DIMS (1, n));
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (tensor));
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (column));
  muster_tensor_unref (tensor);
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (row));
  muster_tensor_unref (column);
  MUSTER_EXPECT_TRUE (muster_tensor_is_exclusive (row));
  bytes = muster_tensor_to_bytes (row);
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (row));
  g_bytes_unref (bytes);
  ((float *)muster_tensor_data_mutable (row))[n - 1] = 1;
  muster_tensor_unref (row);
}

MUSTER_TEST (tensor, is_exclusive_only_when_nobody_else_has_its_memory)
{
  expect_exclusive_only_when_alone (3);
  expect_exclusive_only_when_alone (100);
  expect_exclusive_only_when_alone (100000);
}

MUSTER_TEST (tensor, knows_who_shares_its_memory_across_two_reshapes)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new (MUSTER_FLOAT, 1, DIMS (100));
  MusterTensor *column = muster_tensor_reshape (tensor, 2, DIMS (100, 1));
  g_autoptr (MusterTensor) row = muster_tensor_reshape (column, 2, DIMS (1, 100));
  muster_tensor_unref (column);
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (row));
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (tensor));
}

MUSTER_TEST (tensor, shares_memory_when_reshaped)
{
  g_autoptr (GBytes) bytes = some_bytes (24);
  g_autoptr (MusterTensor) tensor =
      muster_tensor_new_from_bytes (MUSTER_INT32, 1, DIMS (6), bytes, NULL);
  g_autoptr (MusterTensor) other = muster_tensor_reshape (tensor, 2, DIMS (2, 3));
  MUSTER_EXPECT_PTR_EQ (muster_tensor_data (other), muster_tensor_data (tensor));
  MUSTER_EXPECT_EQ (muster_tensor_dims (other)[0], 2);
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (other));
  g_autoptr (MusterTensor) strings = muster_tensor_new_strv ((const char *[]){"a", "b", NULL});
  g_autoptr (MusterTensor) column = muster_tensor_reshape (strings, 2, DIMS (2, 1));
  const MusterString second = muster_tensor_string (column, 1);
  MUSTER_EXPECT_MEMEQ (second.data, second.size, "b", 1);
}

MUSTER_TEST (tensor, copies_strings_with_anything_in_them)
{
  const MusterString given[] = {{"a\0b", 3}, {"", 0}, {"\xff", 1}, {NULL, 0}};
  g_autoptr (MusterTensor) tensor = muster_tensor_new_strings (2, DIMS (2, 2), given);
  for (gint64 i = 0; i < 4; i++) {
    const MusterString string = muster_tensor_string (tensor, i);
    MUSTER_EXPECT_MEMEQ (string.data, string.size, given[i].size > 0 ? given[i].data : "",
                         given[i].size);
  }
  g_autoptr (GBytes) bytes = muster_tensor_to_bytes (tensor);
  MUSTER_EXPECT_EQ (g_bytes_get_size (bytes), 0u);
}

MUSTER_TEST (tensor, keeps_a_string_that_fills_it_once)
{
  g_autofree char *text = g_strnfill (1 << 20, 'x');
  g_autofree MusterString *strings = g_new (MusterString, 5000);
  for (int i = 0; i < 5000; i++)
    strings[i] = (MusterString){text, 1 << 20}; /* 5 GB if each were kept */
  g_autoptr (MusterTensor) tensor = muster_tensor_new_strings (1, DIMS (5000), strings);
  const MusterString last = muster_tensor_string (tensor, 4999);
  MUSTER_EXPECT_EQ (last.size, 1u << 20);
  MUSTER_EXPECT_EQ (last.data[last.size - 1], 'x');
}

MUSTER_TEST (tensor, of_strings_that_are_too_many_or_too_long_is_refused)
{
  g_autoptr (GError) error = NULL;
  const MusterString far[] = {{"", G_MAXSIZE / 2}, {"", G_MAXSIZE / 4}, {"", G_MAXSIZE / 2}};
  const MusterString large[] = {{"", (gsize)1 << 41}};
  MUSTER_EXPECT_NULL (muster_tensor_try_new_strings (NULL, 1, DIMS (3), far, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_clear_error (&error);
  MUSTER_EXPECT_NULL (muster_tensor_try_new_strings (NULL, 1, DIMS (1), large, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_clear_error (&error);
  MUSTER_EXPECT_NULL (muster_tensor_try_new_strings (NULL, 1, DIMS (-1), far, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
}

MUSTER_TEST (tensor, takes_what_it_stores_from_a_budget)
{
  g_autoptr (GError) error = NULL;
  const MusterString given[] = {{"abc", 3}, {"de", 2}};
  const gsize size = 2 * sizeof (MusterString) + 5;
  MusterBudget budget = {.limit = size + 24};
  g_autoptr (MusterTensor) strings =
      muster_tensor_try_new_strings (&budget, 1, DIMS (2), given, &error);
  g_autoptr (MusterTensor) numbers =
      muster_tensor_try_new_within (&budget, MUSTER_FLOAT, 1, DIMS (6), &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (muster_tensor_n_stored (strings), size);
  MUSTER_EXPECT_EQ (muster_tensor_n_stored (numbers), 24u);
  MUSTER_EXPECT_EQ (muster_tensor_strings (strings)[1].size, 2u);
  MUSTER_EXPECT_NULL (muster_tensor_try_new_within (&budget, MUSTER_BOOL, 0, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}

MUSTER_TEST (tensor, equals_one_of_the_same_bits)
{
  const float nans[] = {0.0f / 0.0f, -0.0f};
  const float zeros[] = {0.0f / 0.0f, 0.0f};
  g_autoptr (MusterTensor) a =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, DIMS (2), nans, 8, NULL);
  g_autoptr (MusterTensor) b =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, DIMS (2), nans, 8, NULL);
  g_autoptr (MusterTensor) c =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, DIMS (2), zeros, 8, NULL);
  g_autoptr (MusterTensor) d = muster_tensor_reshape (a, 2, DIMS (2, 1));
  g_autoptr (MusterTensor) e =
      muster_tensor_new_from_data (MUSTER_INT32, 1, DIMS (2), nans, 8, NULL);
  MUSTER_EXPECT_TRUE (muster_tensor_equal (a, a));
  MUSTER_EXPECT_TRUE (muster_tensor_equal (a, b));
  MUSTER_EXPECT_FALSE (muster_tensor_equal (a, c));
  MUSTER_EXPECT_FALSE (muster_tensor_equal (a, d));
  MUSTER_EXPECT_FALSE (muster_tensor_equal (a, e));
  g_autoptr (MusterTensor) s = muster_tensor_new_strv ((const char *[]){"ab", "c", NULL});
  g_autoptr (MusterTensor) t = muster_tensor_new_strv ((const char *[]){"ab", "c", NULL});
  g_autoptr (MusterTensor) u = muster_tensor_new_strv ((const char *[]){"a", "bc", NULL});
  MUSTER_EXPECT_TRUE (muster_tensor_equal (s, t));
  MUSTER_EXPECT_FALSE (muster_tensor_equal (s, u));
}

static void
expect_text (MusterTensor *taken, gint64 limit, const char *wanted)
{
  g_autoptr (MusterTensor) tensor = taken;
  g_autofree char *text = muster_tensor_to_string (tensor, limit);
  MUSTER_EXPECT_STREQ (text, wanted);
}

static MusterTensor *
counting (MusterDType dtype, int n_dims, const gint64 *dims)
{
  MusterTensor *tensor = muster_tensor_new (dtype, n_dims, dims);
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++)
    ((gint32 *)muster_tensor_data_mutable (tensor))[i] = (gint32)i + 1;
  return tensor;
}

MUSTER_TEST (tensor, prints_for_people)
{
  expect_text (muster_tensor_new_float (0.1f), 9, "0.1");
  expect_text (muster_tensor_new_float (16777216.0f), 9, "16777216");
  expect_text (muster_tensor_new_float (1.0f / 0.0f), 9, "inf");
  expect_text (muster_tensor_new_bool (TRUE), 9, "true");
  expect_text (muster_tensor_new_int64 (G_MININT64), 9, "-9223372036854775808");
  expect_text (counting (MUSTER_INT32, 1, DIMS (5)), 3, "[1, 2, 3, …]");
  expect_text (counting (MUSTER_INT32, 1, DIMS (3)), 3, "[1, 2, 3]");
  expect_text (counting (MUSTER_INT32, 2, DIMS (2, 2)), 9, "[[1, 2], [3, 4]]");
  expect_text (counting (MUSTER_INT32, 2, DIMS (2, 2)), 3, "[[1, 2], [3, …]]");
  expect_text (counting (MUSTER_INT32, 2, DIMS (3, 2)), 2, "[[1, 2], …]");
  expect_text (counting (MUSTER_INT32, 2, DIMS (3, 0)), 2, "[]");
  expect_text (muster_tensor_new_strv ((const char *[]){"größe", "a\"b", "\xff", NULL}), 9,
               "[\"größe\", \"a\\x22b\", \"\\xff\"]");
}

static gpointer
count_up_and_down (gpointer data)
{
  MusterTensor *tensor = data;
  for (int i = 0; i < 20000; i++) {
    g_autoptr (MusterTensor) mine = muster_tensor_ref (tensor);
    g_autoptr (GBytes) bytes = muster_tensor_to_bytes (mine);
  }
  return NULL;
}

MUSTER_TEST (tensor, is_counted_by_many_threads)
{
  g_autoptr (MusterTensor) tensor = counting (MUSTER_INT32, 1, DIMS (1000));
  GThread *threads[4];
  for (guint i = 0; i < 4; i++)
    threads[i] = g_thread_new ("count", count_up_and_down, tensor);
  for (guint i = 0; i < 4; i++)
    g_thread_join (threads[i]);
  MUSTER_EXPECT_TRUE (muster_tensor_is_exclusive (tensor));
}

MUSTER_TEST (tensor, is_boxed)
{
  MusterTensor *tensor = muster_tensor_new_float (1);
  gpointer copy = g_boxed_copy (MUSTER_TYPE_TENSOR, tensor);
  MUSTER_EXPECT_PTR_EQ (copy, tensor);
  g_boxed_free (MUSTER_TYPE_TENSOR, copy);
  muster_tensor_unref (tensor);
  muster_tensor_unref (NULL);
}

static void
count_release (gpointer user_data)
{
  ++*(int *)user_data;
}

MUSTER_TEST (tensor, borrows_its_callers_memory_until_the_last_reference)
{
  float lent[6] = {0, 1, 2, 3, 4, 5};
  int n_released = 0;
  g_autoptr (GError) error = NULL;
  MusterTensor *tensor = muster_tensor_new_borrowed (
      MUSTER_FLOAT, 2, DIMS (2, 3), lent, sizeof lent, count_release, &n_released, &error);
  MUSTER_ASSERT_TRUE (tensor != NULL);
  MUSTER_EXPECT_TRUE (muster_tensor_data (tensor) == lent);
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (tensor));
  MusterTensor *column = muster_tensor_reshape (tensor, 1, DIMS (6));
  MUSTER_EXPECT_FALSE (muster_tensor_is_exclusive (column));
  muster_tensor_unref (tensor);
  MUSTER_EXPECT_EQ (n_released, 0);
  muster_tensor_unref (column);
  MUSTER_EXPECT_EQ (n_released, 1);
}

MUSTER_TEST (tensor, that_is_borrowed_is_kept_as_a_copy)
{
  float lent[6] = {0, 1, 2, 3, 4, 5};
  int n_released = 0;
  g_autoptr (MusterTensor) tensor = muster_tensor_new_borrowed (
      MUSTER_FLOAT, 2, DIMS (2, 3), lent, sizeof lent, count_release, &n_released, NULL);
  g_autoptr (MusterTensor) column = muster_tensor_reshape (tensor, 1, DIMS (6));
  g_autoptr (MusterTensor) kept = muster_tensor_keep (tensor);
  g_autoptr (MusterTensor) kept_column = muster_tensor_keep (column);
  g_autoptr (MusterTensor) again = muster_tensor_keep (kept);
  g_autoptr (GBytes) bytes = muster_tensor_to_bytes (tensor);
  MUSTER_EXPECT_TRUE (again == kept);
  lent[5] = 50;
  MUSTER_EXPECT_EQ (((const float *)muster_tensor_data (kept))[5], 5);
  MUSTER_EXPECT_EQ (((const float *)muster_tensor_data (kept_column))[5], 5);
  MUSTER_EXPECT_EQ (((const float *)g_bytes_get_data (bytes, NULL))[5], 5);
  MUSTER_EXPECT_EQ (muster_tensor_n_dims (kept_column), 1);
}

MUSTER_TEST (tensor, borrows_only_what_it_can_use)
{
  char lent[12] = {0};
  int n_released = 0;
  g_autoptr (GError) error = NULL;
  MUSTER_EXPECT_TRUE (muster_tensor_new_borrowed (MUSTER_FLOAT, 1, DIMS (4), lent, sizeof lent,
                                                  count_release, &n_released, &error) == NULL);
  MUSTER_EXPECT_TRUE (muster_error_is (error, MUSTER_ERROR_INVALID_ARGUMENT));
  MUSTER_EXPECT_EQ (n_released, 0);
  g_autoptr (MusterTensor) untold =
      muster_tensor_new_borrowed (MUSTER_INT8, 1, DIMS (12), lent, sizeof lent, NULL, NULL, NULL);
  MUSTER_EXPECT_TRUE (muster_tensor_data (untold) == lent);
  char *odd = lent + ((guintptr)lent % 4 == 1 ? 2 : 1);
  odd += (guintptr)odd % 4 == 0;
  g_autoptr (MusterTensor) copy = muster_tensor_new_borrowed (MUSTER_FLOAT, 1, DIMS (2), odd, 8,
                                                              count_release, &n_released, NULL);
  MUSTER_EXPECT_TRUE (copy != NULL && muster_tensor_data (copy) != odd);
  MUSTER_EXPECT_EQ (n_released, 1);
}

MUSTER_TEST (tensor, takes_strings_of_any_bytes_from_bindings)
{
  g_autoptr (GBytes) texts = g_bytes_new_static ("a\0bccc", 6);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) tensor =
      muster_tensor_new_packed_strings (2, DIMS (2, 2), texts, DIMS (1, 3, 3, 6), 4, &error);
  MUSTER_ASSERT_TRUE (tensor != NULL);
  MUSTER_EXPECT_EQ (muster_tensor_string (tensor, 1).size, 2u);
  MUSTER_EXPECT_EQ (memcmp (muster_tensor_string (tensor, 1).data, "\0b", 2), 0);
  MUSTER_EXPECT_EQ (muster_tensor_string (tensor, 2).size, 0u);
  g_autofree gint64 *ends = NULL;
  gsize n_ends = 0;
  g_autoptr (GBytes) again = muster_tensor_pack_strings (tensor, &ends, &n_ends);
  MUSTER_EXPECT_TRUE (g_bytes_equal (again, texts));
  MUSTER_EXPECT_EQ (n_ends, 4u);
  MUSTER_EXPECT_EQ (ends[1], 3);
}

MUSTER_TEST (tensor, refuses_strings_that_end_nowhere)
{
  g_autoptr (GBytes) texts = g_bytes_new_static ("abc", 3);
  MUSTER_EXPECT_TRUE (muster_tensor_new_packed_strings (1, DIMS (2), texts, DIMS (2, 1), 2, NULL) ==
                      NULL);
  MUSTER_EXPECT_TRUE (muster_tensor_new_packed_strings (1, DIMS (2), texts, DIMS (2, 4), 2, NULL) ==
                      NULL);
  MUSTER_EXPECT_TRUE (muster_tensor_new_packed_strings (1, DIMS (3), texts, DIMS (2, 3), 2, NULL) ==
                      NULL);
}
