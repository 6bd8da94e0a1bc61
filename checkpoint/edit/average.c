// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/edit/average_private.h"

#include <math.h>
#include <string.h>

static double
get_float (const void *at)
{
  float value;
  memcpy (&value, at, sizeof value);
  return value;
}

static double
get_double (const void *at)
{
  double value;
  memcpy (&value, at, sizeof value);
  return value;
}

static double
get_half (const void *at)
{
  guint16 bits;
  memcpy (&bits, at, sizeof bits);
  return muster_half_to_float (bits);
}

static double
get_bfloat16 (const void *at)
{
  guint16 bits;
  memcpy (&bits, at, sizeof bits);
  return muster_bfloat16_to_float (bits);
}

static void
put_float (double value, void *at)
{
  const float rounded = (float)value;
  memcpy (at, &rounded, sizeof rounded);
}

static void
put_double (double value, void *at)
{
  memcpy (at, &value, sizeof value);
}

/* Rounds to odd: the last bit is set if anything was lost, so that rounding further gives the
 * same as rounding the double at once. Rounding to nearest twice may not. */
static float
to_odd (double value)
{
  float rounded = (float)value;
  guint32 bits;
  if (isnan (value) || (double)rounded == value)
    return rounded;
  memcpy (&bits, &rounded, sizeof bits);
  if (fabs ((double)rounded) > fabs (value))
    bits--;
  bits |= 1;
  memcpy (&rounded, &bits, sizeof bits);
  return rounded;
}

static void
put_half (double value, void *at)
{
  const guint16 bits = muster_half_from_float (to_odd (value));
  memcpy (at, &bits, sizeof bits);
}

static void
put_bfloat16 (double value, void *at)
{
  const guint16 bits = muster_bfloat16_from_float (to_odd (value));
  memcpy (at, &bits, sizeof bits);
}

static const struct {
  MusterDType dtype;
  gsize size; /* of a real number */
  double (*get) (const void *at);
  void (*put) (double value, void *at);
} types[] = {
    {MUSTER_FLOAT, 4, get_float, put_float},     {MUSTER_DOUBLE, 8, get_double, put_double},
    {MUSTER_HALF, 2, get_half, put_half},        {MUSTER_BFLOAT16, 2, get_bfloat16, put_bfloat16},
    {MUSTER_COMPLEX64, 4, get_float, put_float}, {MUSTER_COMPLEX128, 8, get_double, put_double},
};

/* Returns G_N_ELEMENTS (types) for another type. */
static gsize
find (MusterDType dtype)
{
  gsize i = 0;
  while (i < G_N_ELEMENTS (types) && types[i].dtype != dtype)
    i++;
  return i;
}

gboolean
muster_average_has (MusterDType dtype)
{
  return find (dtype) < G_N_ELEMENTS (types);
}

gsize
muster_average_size (MusterDType dtype)
{
  return types[find (dtype)].size;
}

void
muster_average_add (MusterDType dtype, const void *numbers, gsize n, double *sums)
{
  const gsize type = find (dtype), size = types[type].size;
  for (gsize i = 0; i < n; i++)
    sums[i] += types[type].get ((const char *)numbers + i * size);
}

void
muster_average_round (MusterDType dtype, const double *sums, gsize n, double by, void *numbers)
{
  const gsize type = find (dtype), size = types[type].size;
  for (gsize i = 0; i < n; i++)
    types[type].put (sums[i] / by, (char *)numbers + i * size);
}
