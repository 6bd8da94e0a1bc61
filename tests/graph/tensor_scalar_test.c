// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"
#include "graph/tensor.h"
#include "tests/gtest_shim.h"

#include <string.h>

static MusterTensor *
scalar (MusterDType dtype, const void *value)
{
  MusterTensor *tensor = muster_tensor_new (dtype, 0, NULL);
  memcpy (muster_tensor_data_mutable (tensor), value, muster_dtype_size (dtype));
  return tensor;
}

/* As an integer and as a real number; asked by type. */
static void
expect_number (MusterDType dtype, const void *value, gint64 integer, double real)
{
  g_autoptr (MusterTensor) tensor = scalar (dtype, value);
  gint64 got = -77;
  double number = -77;
  MUSTER_TRACE ("%s", muster_dtype_name (dtype));
  MUSTER_EXPECT_TRUE (muster_tensor_get_int64 (tensor, &got, NULL));
  MUSTER_EXPECT_EQ (integer, got);
  MUSTER_EXPECT_TRUE (muster_tensor_get_double (tensor, &number, NULL));
  MUSTER_EXPECT_EQ (real, number);
}

MUSTER_TEST (TensorScalar, every_integer_type_reads_as_its_number)
{
  expect_number (MUSTER_INT8, &(gint8){-8}, -8, -8);
  expect_number (MUSTER_INT16, &(gint16){-16}, -16, -16);
  expect_number (MUSTER_INT32, &(gint32){G_MININT32}, G_MININT32, G_MININT32);
  expect_number (MUSTER_INT64, &(gint64){-64}, -64, -64);
  expect_number (MUSTER_UINT8, &(guint8){255}, 255, 255);
  expect_number (MUSTER_UINT16, &(guint16){65535}, 65535, 65535);
  expect_number (MUSTER_UINT32, &(guint32){G_MAXUINT32}, G_MAXUINT32, G_MAXUINT32);
  expect_number (MUSTER_UINT64, &(guint64){64}, 64, 64);
  expect_number (MUSTER_BOOL, &(guint8){1}, 1, 1);
}

MUSTER_TEST (TensorScalar, every_real_type_reads_as_a_double_and_not_as_an_integer)
{
  const guint16 half = muster_half_from_float (1.5f), brain = muster_bfloat16_from_float (1.5f);
  const struct {
    MusterDType dtype;
    const void *value;
  } cases[] = {{MUSTER_FLOAT, &(float){1.5f}},
               {MUSTER_DOUBLE, &(double){1.5}},
               {MUSTER_HALF, &half},
               {MUSTER_BFLOAT16, &brain}};
  for (gsize i = 0; i < G_N_ELEMENTS (cases); i++) {
    g_autoptr (MusterTensor) tensor = scalar (cases[i].dtype, cases[i].value);
    g_autoptr (GError) error = NULL;
    double number = 0;
    gint64 integer = 7;
    MUSTER_EXPECT_TRUE (muster_tensor_get_double (tensor, &number, NULL));
    MUSTER_EXPECT_EQ (1.5, number);
    MUSTER_EXPECT_FALSE (muster_tensor_get_int64 (tensor, &integer, &error));
    MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
    MUSTER_EXPECT_EQ (7, integer);
  }
}

MUSTER_TEST (TensorScalar, a_number_that_no_int64_holds_is_refused)
{
  g_autoptr (MusterTensor) tensor = scalar (MUSTER_UINT64, &(guint64){G_MAXUINT64});
  gint64 integer = 7;
  double number = 0;
  MUSTER_EXPECT_FALSE (muster_tensor_get_int64 (tensor, &integer, NULL));
  MUSTER_EXPECT_EQ (7, integer);
  MUSTER_EXPECT_TRUE (muster_tensor_get_double (tensor, &number, NULL));
  MUSTER_EXPECT_EQ (18446744073709551616.0, number);
}

MUSTER_TEST (TensorScalar, a_string_reads_as_a_copy)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_string ("digits");
  g_autofree char *text = NULL;
  MUSTER_EXPECT_TRUE (muster_tensor_get_string (tensor, &text, NULL));
  MUSTER_EXPECT_STREQ ("digits", text);
}

MUSTER_TEST (TensorScalar, a_string_with_a_nul_in_it_is_refused_rather_than_truncated)
{
  const MusterString string = {"a\0b", 3};
  g_autoptr (MusterTensor) tensor = muster_tensor_new_strings (0, NULL, &string);
  g_autoptr (GError) error = NULL;
  char *text = NULL;
  MUSTER_EXPECT_FALSE (muster_tensor_get_string (tensor, &text, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT);
  MUSTER_EXPECT_NULL (text);
}

MUSTER_TEST (TensorScalar, one_element_of_any_rank_is_enough_and_several_are_refused_by_shape)
{
  const gint64 one[] = {1, 1}, two[] = {2};
  const gint64 values[] = {5, 6};
  g_autoptr (MusterTensor) single =
      muster_tensor_new_from_data (MUSTER_INT64, 2, one, values, sizeof values[0], NULL);
  g_autoptr (MusterTensor) pair =
      muster_tensor_new_from_data (MUSTER_INT64, 1, two, values, sizeof values, NULL);
  g_autoptr (GError) error = NULL;
  gint64 integer = 0;
  MUSTER_EXPECT_TRUE (muster_tensor_get_int64 (single, &integer, NULL));
  MUSTER_EXPECT_EQ (5, integer);
  MUSTER_EXPECT_FALSE (muster_tensor_get_int64 (pair, &integer, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "'int64' and shape [2]");
}
