// SPDX-License-Identifier: Apache-2.0
/* Constructs complex numbers and extracts their parts. Their arithmetic is with that of the other
 * dtypes. */
#include "engine/kernels/math/complex.h"
#include "engine/kernels/math/math_op_tables.h"

#include <tgmath.h>

#define PARTS(name, EXPR)                                                                          \
  MUSTER_LOOP1 (name, c64, float complex, float, EXPR)                                             \
  MUSTER_LOOP1 (name, c128, double complex, double, EXPR)                                          \
  static gboolean name (MusterKernel *k, GError **error)                                           \
  {                                                                                                \
    static const MusterLoop1 loops[] = MUSTER_COMPLEX_TABLE (name);                                \
    return take_part (k, loops, error);                                                            \
  }

/* Two attributes give the width; TensorFlow has kernels only if they agree. */
static gboolean
check_widths (MusterDType whole, MusterDType part, GError **error)
{
  if (muster_complex_part (whole) == part)
    return TRUE;
  return muster_invalid (error, "The parts of a %s are %s, not %s", muster_dtype_name (whole),
                         muster_dtype_name (muster_complex_part (whole)), muster_dtype_name (part));
}

static gboolean
take_part (MusterKernel *k, const MusterLoop1 *loops, GError **error)
{
  return check_widths (muster_tensor_dtype (muster_kernel_input (k, 0)),
                       muster_kernel_output_dtype (k, 0), error) &&
         muster_compute1 (k, loops, error);
}

PARTS (compute_real_part, creal (a))
PARTS (compute_imaginary_part, cimag (a))
PARTS (compute_angle, carg (a))
PARTS (compute_magnitude, fabs (a))

MUSTER_LOOP2 (join, f32, float, float complex, CMPLXF (a, b))
MUSTER_LOOP2 (join, f64, double, double complex, CMPLX (a, b))

static gboolean
compute_join (MusterKernel *k, GError **error)
{
  static const MusterLoop2 loops[] = MUSTER_FLOAT_TABLE (join);
  return check_widths (muster_kernel_output_dtype (k, 0),
                       muster_tensor_dtype (muster_kernel_input (k, 0)), error) &&
         muster_compute2 (k, loops, error);
}

MUSTER_LOOP1 (conjugate, c64, float complex, float complex, conj (a))
MUSTER_LOOP1 (conjugate, c128, double complex, double complex, conj (a))
static const MusterLoop1 conjugate_loops[] = MUSTER_COMPLEX_TABLE (conjugate);

static gboolean
compute_conjugate (MusterKernel *k, GError **error)
{
  return muster_compute1 (k, conjugate_loops, error);
}

void
muster_conjugate (MusterDType dtype, gint64 n, const void *x, void *out)
{
  muster_run_loop1 (conjugate_loops, dtype, dtype, n, x, out);
}

#define PART   "input:T -> output:Tout"
#define PART_T "T:complex64|complex128 Tout:float|double"

const MusterOp muster_complex_ops[] = {
    {"Complex", "real:T, imag:T -> out:Tout", "T:float|double Tout:complex64|complex128",
     compute_join, 0},
    {"Real", PART, PART_T, compute_real_part, 0},
    {"Imag", PART, PART_T, compute_imaginary_part, 0},
    {"Angle", PART, PART_T, compute_angle, 0},
    {"ComplexAbs", "x:T -> y:Tout", PART_T, compute_magnitude, 0},
    {"Conj", "input:T -> output:T", "T:complex64|complex128", compute_conjugate, MUSTER_OP_FORWARD},
    {NULL, NULL, NULL, NULL, 0},
};
