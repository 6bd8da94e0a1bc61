// SPDX-License-Identifier: Apache-2.0
/* The element types: names, sizes, and conversions of half and bfloat16. */
#include "graph/dtype.h"

#include <string.h>

typedef struct {
  MusterDType dtype;
  guint8 size;
  const char *name;
} DTypeRow;

static const DTypeRow rows[] = {
    {MUSTER_FLOAT, 4, "float"},
    {MUSTER_DOUBLE, 8, "double"},
    {MUSTER_INT32, 4, "int32"},
    {MUSTER_UINT8, 1, "uint8"},
    {MUSTER_INT16, 2, "int16"},
    {MUSTER_INT8, 1, "int8"},
    {MUSTER_STRING, 0, "string"},
    {MUSTER_COMPLEX64, 8, "complex64"},
    {MUSTER_INT64, 8, "int64"},
    {MUSTER_BOOL, 1, "bool"},
    {MUSTER_BFLOAT16, 2, "bfloat16"},
    {MUSTER_UINT16, 2, "uint16"},
    {MUSTER_COMPLEX128, 16, "complex128"},
    {MUSTER_HALF, 2, "half"},
    {MUSTER_RESOURCE, 0, "resource"},
    {MUSTER_VARIANT, 0, "variant"},
    {MUSTER_UINT32, 4, "uint32"},
    {MUSTER_UINT64, 8, "uint64"},
};

/* Every dtype's row + 1, by number; 0 where there is none. */
static const guint8 row_of[] = {
    [MUSTER_FLOAT] = 1,       [MUSTER_DOUBLE] = 2,  [MUSTER_INT32] = 3,     [MUSTER_UINT8] = 4,
    [MUSTER_INT16] = 5,       [MUSTER_INT8] = 6,    [MUSTER_STRING] = 7,    [MUSTER_COMPLEX64] = 8,
    [MUSTER_INT64] = 9,       [MUSTER_BOOL] = 10,   [MUSTER_BFLOAT16] = 11, [MUSTER_UINT16] = 12,
    [MUSTER_COMPLEX128] = 13, [MUSTER_HALF] = 14,   [MUSTER_RESOURCE] = 15, [MUSTER_VARIANT] = 16,
    [MUSTER_UINT32] = 17,     [MUSTER_UINT64] = 18,
};

static const DTypeRow *
find_row (int dtype)
{
  if (dtype <= 0 || dtype >= (int)G_N_ELEMENTS (row_of) || row_of[dtype] == 0)
    return NULL;
  return &rows[row_of[dtype] - 1];
}

gsize
muster_dtype_size (MusterDType dtype)
{
  const DTypeRow *row = find_row (dtype);
  return row != NULL ? row->size : 0;
}

static const char *const ref_names[] = {
    "float_ref",      "double_ref",    "int32_ref",    "uint8_ref",   "int16_ref",    "int8_ref",
    "string_ref",     "complex64_ref", "int64_ref",    "bool_ref",    "bfloat16_ref", "uint16_ref",
    "complex128_ref", "half_ref",      "resource_ref", "variant_ref", "uint32_ref",   "uint64_ref",
};

/* TensorFlow's types that muster can't hold, by number: for messages. */
static const char *const foreign_names[] = {
    [11] = "qint8",
    [12] = "quint8",
    [13] = "qint32",
    [15] = "qint16",
    [16] = "quint16",
    [24] = "float8_e5m2",
    [25] = "float8_e4m3fn",
    [26] = "float8_e4m3fnuz",
    [27] = "float8_e4m3b11fnuz",
    [28] = "float8_e5m2fnuz",
    [29] = "int4",
    [30] = "uint4",
    [31] = "int2",
    [32] = "uint2",
};

static const char *
foreign_name (int dtype)
{
  const gboolean is_known = dtype > 0 && dtype < (int)G_N_ELEMENTS (foreign_names);
  return is_known && foreign_names[dtype] != NULL ? foreign_names[dtype] : "unknown";
}

const char *
muster_dtype_name (MusterDType dtype)
{
  const DTypeRow *row = find_row (dtype);
  if (row != NULL)
    return row->name;
  row = (int)dtype > MUSTER_REF ? find_row ((int)dtype - MUSTER_REF) : NULL;
  return row != NULL ? ref_names[row - rows] : foreign_name ((int)dtype);
}

MusterDType
muster_dtype_from_name (const char *name)
{
  g_return_val_if_fail (name != NULL, 0);
  for (guint i = 0; i < G_N_ELEMENTS (rows); i++) {
    if (strcmp (rows[i].name, name) == 0)
      return rows[i].dtype;
    if (strcmp (ref_names[i], name) == 0)
      return (MusterDType)(rows[i].dtype + MUSTER_REF);
  }
  return MUSTER_INVALID;
}

gboolean
muster_dtype_is_supported (MusterDType dtype)
{
  const DTypeRow *row = find_row (dtype);
  return row != NULL && dtype != MUSTER_RESOURCE && dtype != MUSTER_VARIANT;
}

static float
float_of_bits (guint32 bits)
{
  float value;
  memcpy (&value, &bits, sizeof value);
  return value;
}

static guint32
bits_of_float (float value)
{
  guint32 bits;
  memcpy (&bits, &value, sizeof bits);
  return bits;
}

float
muster_half_to_float (guint16 bits)
{
  const guint32 sign = (guint32)(bits & 0x8000) << 16;
  const guint32 exponent = bits >> 10 & 0x1f;
  const guint32 fraction = bits & 0x3ff;
  if (exponent == 0x1f)
    return float_of_bits (sign | 0x7f800000u | fraction << 13);
  if (exponent != 0)
    return float_of_bits (sign | (exponent + 112) << 23 | fraction << 13);
  const float tiny = (float)fraction * 0x1p-24f; /* zero or subnormal */
  return sign != 0 ? -tiny : tiny;
}

/* Rounds value to its top bits, to nearest, ties to even, removing drop bits. */
static guint32
round_off (guint32 value, guint drop)
{
  const guint32 half = 1u << (drop - 1);
  const guint32 odd = value >> drop & 1;
  return (value + half - 1 + odd) >> drop;
}

guint16
muster_half_from_float (float value)
{
  const guint32 bits = bits_of_float (value);
  const guint16 sign = (guint16)(bits >> 16 & 0x8000);
  const guint32 magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    return (guint16)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff)); /* NaN */
  if (magnitude >= 0x477ff000u)
    return sign | 0x7c00; /* rounds to infinity */
  if (magnitude >= 0x38800000u)
    return (guint16)(sign | round_off (magnitude - (112u << 23), 13));
  if (magnitude < 0x33000000u)
    return sign; /* less than half of the smallest subnormal */
  const guint32 fraction = (magnitude & 0x7fffffu) | 0x800000u;
  return (guint16)(sign | round_off (fraction, 126 - (magnitude >> 23)));
}

float
muster_bfloat16_to_float (guint16 bits)
{
  return float_of_bits ((guint32)bits << 16);
}

guint16
muster_bfloat16_from_float (float value)
{
  const guint32 bits = bits_of_float (value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return (guint16)(bits >> 16 | 0x40); /* NaN stays one */
  return (guint16)round_off (bits, 16);
}
