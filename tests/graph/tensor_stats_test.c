// SPDX-License-Identifier: Apache-2.0
#include "graph/tensor_stats.h"

#include "tests/gtest_shim.h"

#include <math.h>
#include <string.h>

static MusterTensor *
tensor_of (MusterDType dtype, gint64 n, const void *data)
{
  GError *error = NULL;
  MusterTensor *tensor = muster_tensor_new_from_data (dtype, 1, &n, data,
                                                      (gsize)n * muster_dtype_size (dtype), &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return tensor;
}

static MusterTensorStats
stats_of (MusterTensor *tensor)
{
  MusterTensorStats stats;
  muster_tensor_stats (tensor, &stats);
  muster_tensor_unref (tensor);
  return stats;
}

MUSTER_TEST (TensorStats, of_the_finite_ones_and_how_many_are_not)
{
  const float values[] = {1, NAN, -3, 0, INFINITY, -INFINITY, 5, -0.0f, -3};
  const MusterTensorStats stats = stats_of (tensor_of (MUSTER_FLOAT, 9, values));
  MUSTER_EXPECT_EQ (stats.n, 9);
  MUSTER_EXPECT_EQ (stats.n_nan, 1);
  MUSTER_EXPECT_EQ (stats.n_inf, 2);
  MUSTER_EXPECT_EQ (stats.n_zero, 2);
  MUSTER_EXPECT_EQ (stats.min_at, 2);
  MUSTER_EXPECT_EQ (stats.max_at, 6);
  MUSTER_EXPECT_EQ (stats.min, -3.0);
  MUSTER_EXPECT_EQ (stats.max, 5.0);
  MUSTER_EXPECT_EQ (stats.mean, 0.0);
  MUSTER_EXPECT_NEAR (stats.std, sqrt (44.0 / 6), 1e-12);
}

/* More than a block, and a mean so far from zero that a sum of squares would have lost the rest. */
MUSTER_TEST (TensorStats, keep_their_digits_over_many)
{
  const gint64 n = 10001;
  g_autofree double *values = g_new (double, n);
  for (gint64 i = 0; i < n; i++)
    values[i] = 1e9 + (double)(i % 2);
  values[n - 1] = 1e9 + 7;
  const MusterTensorStats stats = stats_of (tensor_of (MUSTER_DOUBLE, n, values));
  double mean = 0, squares = 0;
  for (gint64 i = 0; i < n; i++)
    mean += (values[i] - 1e9) / (double)n;
  for (gint64 i = 0; i < n; i++)
    squares += pow (values[i] - 1e9 - mean, 2) / (double)n;
  MUSTER_EXPECT_NEAR (stats.mean, 1e9 + mean, 1e-6);
  MUSTER_EXPECT_NEAR (stats.std, sqrt (squares), 1e-6);
  MUSTER_EXPECT_EQ (stats.max_at, n - 1);
  MUSTER_EXPECT_EQ (stats.min_at, 0);
}

MUSTER_TEST (TensorStats, of_every_type_of_number)
{
  static const MusterDType dtypes[] = {MUSTER_INT8,  MUSTER_UINT8,  MUSTER_INT16, MUSTER_UINT16,
                                       MUSTER_INT32, MUSTER_UINT32, MUSTER_INT64, MUSTER_UINT64};
  for (gsize d = 0; d < G_N_ELEMENTS (dtypes); d++) {
    guint8 bytes[3 * 8] = {0};
    const gsize size = muster_dtype_size (dtypes[d]);
    bytes[0] = 4, bytes[size] = 1, bytes[2 * size] = 7;
    const MusterTensorStats stats = stats_of (tensor_of (dtypes[d], 3, bytes));
    MUSTER_TRACE ("%s", muster_dtype_name (dtypes[d]));
    MUSTER_EXPECT_EQ (stats.min_at, 1);
    MUSTER_EXPECT_EQ (stats.max_at, 2);
    MUSTER_EXPECT_EQ (stats.mean, 4.0);
  }
  const guint16 half[] = {muster_half_from_float (1.5f), muster_half_from_float (-2.5f)},
                bfloat[] = {muster_bfloat16_from_float (1.5f), muster_bfloat16_from_float (-2.5f)};
  MUSTER_EXPECT_EQ (stats_of (tensor_of (MUSTER_HALF, 2, half)).mean, -0.5);
  MUSTER_EXPECT_EQ (stats_of (tensor_of (MUSTER_BFLOAT16, 2, bfloat)).mean, -0.5);
  const float complex64[] = {3, -4, 0, 0};
  const double complex128[] = {0, 0, -6, 8};
  MUSTER_EXPECT_EQ (stats_of (tensor_of (MUSTER_COMPLEX64, 2, complex64)).max, 5.0);
  MUSTER_EXPECT_EQ (stats_of (tensor_of (MUSTER_COMPLEX128, 2, complex128)).max, 10.0);
  MUSTER_EXPECT_EQ (stats_of (tensor_of (MUSTER_COMPLEX128, 2, complex128)).n_zero, 1);
}

MUSTER_TEST (TensorStats, of_bools_strings_and_nothing)
{
  const guint8 bools[] = {1, 0, 1};
  const MusterString strings[] = {{"four", 4}, {"", 0}, {"sevenup", 7}};
  const gint64 three = 3;
  MusterTensorStats stats = stats_of (tensor_of (MUSTER_BOOL, 3, bools));
  MUSTER_EXPECT_EQ (stats.n_true, 2);
  stats = stats_of (muster_tensor_new_strings (1, &three, strings));
  MUSTER_EXPECT_EQ (stats.n, 3);
  MUSTER_EXPECT_EQ (stats.shortest, 0u);
  MUSTER_EXPECT_EQ (stats.longest, 7u);
  MUSTER_EXPECT_EQ (stats.total, 11u);
  stats = stats_of (tensor_of (MUSTER_FLOAT, 0, ""));
  MUSTER_EXPECT_EQ (stats.min_at, -1);
  MUSTER_EXPECT_TRUE (isnan (stats.mean) && isnan (stats.std) && isnan (stats.max));
}

static MusterTensorDifference
difference_of (MusterTensor *a, MusterTensor *b)
{
  MusterTensorDifference difference;
  muster_tensor_difference (a, b, &difference);
  muster_tensor_unref (a);
  muster_tensor_unref (b);
  return difference;
}

MUSTER_TEST (TensorDifference, how_many_and_how_far)
{
  const float a[] = {1, 2, NAN, 0}, b[] = {1, 2.5f, NAN, -0.0f}, c[] = {NAN, 2, NAN, 0},
              d[] = {INFINITY, 2, NAN, 0};
  MusterTensorDifference it =
      difference_of (tensor_of (MUSTER_FLOAT, 4, a), tensor_of (MUSTER_FLOAT, 4, a));
  MUSTER_EXPECT_EQ (it.n, 4);
  MUSTER_EXPECT_EQ (it.n_differ, 0);
  MUSTER_EXPECT_EQ (it.first, -1);
  it = difference_of (tensor_of (MUSTER_FLOAT, 4, a), tensor_of (MUSTER_FLOAT, 4, b));
  MUSTER_EXPECT_EQ (it.n_differ, 2); /* the zeros' bits differ */
  MUSTER_EXPECT_EQ (it.first, 1);
  MUSTER_EXPECT_EQ (it.max_abs, 0.5);
  MUSTER_EXPECT_FALSE (it.nan);
  it = difference_of (tensor_of (MUSTER_FLOAT, 4, a), tensor_of (MUSTER_FLOAT, 4, c));
  MUSTER_EXPECT_EQ (it.n_differ, 1);
  MUSTER_EXPECT_TRUE (it.nan);
  it = difference_of (tensor_of (MUSTER_FLOAT, 4, a), tensor_of (MUSTER_FLOAT, 4, d));
  MUSTER_EXPECT_TRUE (isinf (it.max_abs));
}

/* Beyond 2^53, doubles lose them. */
MUSTER_TEST (TensorDifference, of_large_integers_is_exact)
{
  const gint64 a[] = {G_GINT64_CONSTANT (1) << 60, G_MININT64},
               b[] = {(G_GINT64_CONSTANT (1) << 60) + 1, G_MININT64 + 3};
  const guint64 c[] = {G_MAXUINT64, 1}, d[] = {G_MAXUINT64 - 2, 1};
  MusterTensorDifference it =
      difference_of (tensor_of (MUSTER_INT64, 1, a), tensor_of (MUSTER_INT64, 1, b));
  MUSTER_EXPECT_EQ (it.max_abs, 1.0);
  it = difference_of (tensor_of (MUSTER_INT64, 2, b), tensor_of (MUSTER_INT64, 2, a));
  MUSTER_EXPECT_EQ (it.max_abs, 3.0);
  it = difference_of (tensor_of (MUSTER_UINT64, 2, c), tensor_of (MUSTER_UINT64, 2, d));
  MUSTER_EXPECT_EQ (it.max_abs, 2.0);
  const gint64 least = G_MININT64, most = G_MAXINT64;
  it = difference_of (tensor_of (MUSTER_INT64, 1, &least), tensor_of (MUSTER_INT64, 1, &most));
  MUSTER_EXPECT_EQ (it.max_abs, (double)G_MAXUINT64);
}

/* Of one magnitude, and yet apart. */
MUSTER_TEST (TensorDifference, of_complex_numbers_and_strings)
{
  const double a[] = {3, 4}, b[] = {-3, 4};
  const float e[] = {0, 1}, f[] = {0, -1};
  const MusterString x[] = {{"a", 1}, {"b", 1}}, y[] = {{"a", 1}, {"bb", 2}};
  const gint64 two = 2;
  MusterTensorDifference it =
      difference_of (tensor_of (MUSTER_COMPLEX128, 1, a), tensor_of (MUSTER_COMPLEX128, 1, b));
  MUSTER_EXPECT_EQ (it.max_abs, 6.0);
  it = difference_of (tensor_of (MUSTER_COMPLEX64, 1, e), tensor_of (MUSTER_COMPLEX64, 1, f));
  MUSTER_EXPECT_EQ (it.max_abs, 2.0);
  it = difference_of (muster_tensor_new_strings (1, &two, x),
                      muster_tensor_new_strings (1, &two, y));
  MUSTER_EXPECT_EQ (it.n_differ, 1);
  MUSTER_EXPECT_EQ (it.first, 1);
}

MUSTER_TEST (TensorElement, a_long_string_is_truncated)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autoptr (MusterTensor) tensor = muster_tensor_new_string ("0123456789");
  muster_tensor_append_element (text, tensor, 0, 4);
  MUSTER_EXPECT_STREQ (text->str, "\"0123\"… (10 bytes)");
  g_string_truncate (text, 0);
  muster_tensor_append_element (text, tensor, 0, G_MAXSIZE);
  MUSTER_EXPECT_STREQ (text->str, "\"0123456789\"");
}
