// SPDX-License-Identifier: Apache-2.0
#include "graph/dtype.h"

#include <math.h>

#include "tests/gtest_shim.h"

MUSTER_TEST (dtype, has_tensorflows_sizes)
{
  static const struct {
    MusterDType dtype;
    gsize size;
  } cases[] = {{MUSTER_FLOAT, 4},       {MUSTER_DOUBLE, 8},    {MUSTER_INT32, 4},
               {MUSTER_UINT8, 1},       {MUSTER_INT16, 2},     {MUSTER_INT8, 1},
               {MUSTER_STRING, 0},      {MUSTER_COMPLEX64, 8}, {MUSTER_INT64, 8},
               {MUSTER_BOOL, 1},        {MUSTER_BFLOAT16, 2},  {MUSTER_UINT16, 2},
               {MUSTER_COMPLEX128, 16}, {MUSTER_HALF, 2},      {MUSTER_RESOURCE, 0},
               {MUSTER_VARIANT, 0},     {MUSTER_UINT32, 4},    {MUSTER_UINT64, 8}};
  for (guint i = 0; i < G_N_ELEMENTS (cases); i++)
    MUSTER_EXPECT_EQ (muster_dtype_size (cases[i].dtype), cases[i].size);
  MUSTER_EXPECT_EQ (muster_dtype_size (MUSTER_INVALID), 0u);
  MUSTER_EXPECT_EQ (muster_dtype_size ((MusterDType)(MUSTER_FLOAT + MUSTER_REF)), 0u);
  MUSTER_EXPECT_EQ (muster_dtype_size ((MusterDType)-1), 0u);
  MUSTER_EXPECT_EQ (muster_dtype_size ((MusterDType)G_MAXINT), 0u);
}

MUSTER_TEST (dtype, has_a_name_and_is_found_by_it)
{
  for (int dtype = 1; dtype < 124; dtype++) {
    const char *name = muster_dtype_name ((MusterDType)dtype);
    if (muster_dtype_from_name (name) != MUSTER_INVALID)
      MUSTER_EXPECT_EQ ((int)muster_dtype_from_name (name), dtype);
    else
      MUSTER_EXPECT_FALSE (muster_dtype_is_supported ((MusterDType)dtype));
  }
  MUSTER_EXPECT_STREQ (muster_dtype_name (MUSTER_INT32), "int32");
  MUSTER_EXPECT_STREQ (muster_dtype_name ((MusterDType)101), "float_ref");
  MUSTER_EXPECT_STREQ (muster_dtype_name ((MusterDType)123), "uint64_ref");
  MUSTER_EXPECT_STREQ (muster_dtype_name ((MusterDType)11), "qint8"); /* for messages alone */
  MUSTER_EXPECT_STREQ (muster_dtype_name ((MusterDType)24), "float8_e5m2");
  MUSTER_EXPECT_STREQ (muster_dtype_name ((MusterDType)29), "int4");
  MUSTER_EXPECT_STREQ (muster_dtype_name (MUSTER_INVALID), "unknown");
  MUSTER_EXPECT_STREQ (muster_dtype_name ((MusterDType)G_MININT), "unknown");
  MUSTER_EXPECT_EQ ((int)muster_dtype_from_name ("floaty"), MUSTER_INVALID);
}

MUSTER_TEST (dtype, knows_what_a_tensor_can_hold)
{
  MUSTER_EXPECT_TRUE (muster_dtype_is_supported (MUSTER_STRING));
  MUSTER_EXPECT_TRUE (muster_dtype_is_supported (MUSTER_COMPLEX128));
  MUSTER_EXPECT_FALSE (muster_dtype_is_supported (MUSTER_RESOURCE));
  MUSTER_EXPECT_FALSE (muster_dtype_is_supported (MUSTER_VARIANT));
  MUSTER_EXPECT_FALSE (muster_dtype_is_supported (MUSTER_INVALID));
  MUSTER_EXPECT_FALSE (muster_dtype_is_supported ((MusterDType)101));
}

MUSTER_TEST (half, goes_to_float_and_back_for_every_bit_pattern)
{
  for (guint bits = 0; bits <= G_MAXUINT16; bits++) {
    const float value = muster_half_to_float ((guint16)bits);
    if (isnan (value))
      MUSTER_EXPECT_TRUE (isnan (muster_half_to_float (muster_half_from_float (value))));
    else
      MUSTER_EXPECT_EQ (muster_half_from_float (value), bits);
  }
}

MUSTER_TEST (half, rounds_to_the_nearest_and_ties_to_even)
{
  MUSTER_EXPECT_EQ (muster_half_to_float (0x3c00), 1.0f);
  MUSTER_EXPECT_EQ (muster_half_to_float (0x7bff), 65504.0f);
  MUSTER_EXPECT_EQ (muster_half_to_float (0x0001), 0x1p-24f);
  MUSTER_EXPECT_EQ (muster_half_from_float (65504.0f), 0x7bff);
  MUSTER_EXPECT_EQ (muster_half_from_float (65519.0f), 0x7bff);
  MUSTER_EXPECT_EQ (muster_half_from_float (65520.0f), 0x7c00);
  MUSTER_EXPECT_EQ (muster_half_from_float (-1e10f), 0xfc00);
  MUSTER_EXPECT_EQ (muster_half_from_float (1 + 0x1p-11f), 0x3c00);     /* tie, down */
  MUSTER_EXPECT_EQ (muster_half_from_float (1 + 3 * 0x1p-11f), 0x3c02); /* tie, up */
  MUSTER_EXPECT_EQ (muster_half_from_float (1 + 0x1.01p-11f), 0x3c01);
  MUSTER_EXPECT_EQ (muster_half_from_float (0x1p-25f), 0); /* tie with 0 */
  MUSTER_EXPECT_EQ (muster_half_from_float (0x1.8p-25f), 1);
  MUSTER_EXPECT_EQ (muster_half_from_float (0x1.ffcp-15f), 0x0400); /* up to normal */
  MUSTER_EXPECT_EQ (muster_half_from_float (0x1p-40f), 0);
  MUSTER_EXPECT_EQ (muster_half_from_float (-0.0f), 0x8000);
}

MUSTER_TEST (bfloat16, is_the_top_of_a_float)
{
  for (guint bits = 0; bits <= G_MAXUINT16; bits++) {
    const float value = muster_bfloat16_to_float ((guint16)bits);
    if (!isnan (value))
      MUSTER_EXPECT_EQ (muster_bfloat16_from_float (value), bits);
    else
      MUSTER_EXPECT_TRUE (isnan (muster_bfloat16_to_float (muster_bfloat16_from_float (value))));
  }
  MUSTER_EXPECT_EQ (muster_bfloat16_from_float (1.0f), 0x3f80);
  MUSTER_EXPECT_EQ (muster_bfloat16_from_float (1 + 0x1p-8f), 0x3f80);
  MUSTER_EXPECT_EQ (muster_bfloat16_from_float (1 + 3 * 0x1p-8f), 0x3f82);
  MUSTER_EXPECT_EQ (muster_bfloat16_from_float (G_MAXFLOAT), 0x7f80);
}
