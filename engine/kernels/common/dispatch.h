// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/run/kernel.h"

G_BEGIN_DECLS

/* What all kernels share: the types used for arithmetic, and outputs of untrusted shape.
 *
 * Arithmetic exists for five types: float, double, int32, int64 and uint64. The others are computed
 * in a wider one of these (half and bfloat16 in float, small integers and bool in int64) and
 * converted back, which wraps as their own arithmetic would. A kernel is written once for a "wide"
 * type, as a macro, and is in a table of these functions. Complex numbers have no wide type; their
 * loops come after the others in a table. */

typedef enum {
  MUSTER_F32,
  MUSTER_F64,
  MUSTER_I32,
  MUSTER_I64,
  MUSTER_U64,
  MUSTER_N_WIDE, /* none; this entry is NULL in a table of loops */
  MUSTER_C64,
  MUSTER_C128,
  MUSTER_N_LOOPS, /* entries of a table */
} MusterWide;

/* Instantiates X (suffix, C type) for each wide type, or for the floating ones. */
#define MUSTER_FLOAT_TYPES(X) X (f32, float) X (f64, double)
#define MUSTER_INT_TYPES(X)   X (i32, gint32) X (i64, gint64) X (u64, guint64)
#define MUSTER_WIDE_TYPES(X)  MUSTER_FLOAT_TYPES (X) MUSTER_INT_TYPES (X)

#define MUSTER_COMPLEX_TYPES(X) X (c64, float complex) X (c128, double complex)

/* A table of name##_f32 and so on, in MusterWide's order: of the wide types, of the floating ones,
 * of each with complex numbers, of complex numbers only. */
#define MUSTER_WIDE_TABLE(name)                                                                    \
  {                                                                                                \
    name##_f32, name##_f64, name##_i32, name##_i64, name##_u64, NULL, NULL, NULL                   \
  }
#define MUSTER_FLOAT_TABLE(name)                                                                   \
  {                                                                                                \
    name##_f32, name##_f64, NULL, NULL, NULL, NULL, NULL, NULL                                     \
  }
#define MUSTER_NUMBER_TABLE(name)                                                                  \
  {                                                                                                \
    name##_f32, name##_f64, name##_i32, name##_i64, name##_u64, NULL, name##_c64, name##_c128      \
  }
#define MUSTER_ANALYTIC_TABLE(name)                                                                \
  {                                                                                                \
    name##_f32, name##_f64, NULL, NULL, NULL, NULL, name##_c64, name##_c128                        \
  }
#define MUSTER_COMPLEX_TABLE(name)                                                                 \
  {                                                                                                \
    NULL, NULL, NULL, NULL, NULL, NULL, name##_c64, name##_c128                                    \
  }

/* An elementwise loop's input and output may be the same memory; otherwise they mustn't overlap. */
#define MUSTER_IVDEP _Pragma ("GCC ivdep")

/* The wide type of a dtype; MUSTER_N_WIDE for one without arithmetic (string, complex). */
MusterWide muster_wide (MusterDType dtype);
gboolean muster_dtype_is_wide (MusterDType dtype); /* it is a wide type */

/* A dtype's index in a table of loops: that of its wide or complex type. */
MusterWide muster_loop_index (MusterDType dtype);
gboolean muster_dtype_is_complex (MusterDType dtype);
/* float of complex64, double of complex128. */
MusterDType muster_complex_part (MusterDType dtype);

/* Convert n elements to and from the wide type. */
void muster_widen (MusterDType dtype, const void *from, gint64 n, void *to);
void muster_narrow (MusterDType dtype, const void *from, gint64 n, void *to);

/* An input in its wide type: the input itself, or a converted copy (transfer full). NULL with an
 * error if there is no wide type or not enough memory. */
MusterTensor *muster_wide_input (MusterKernel *k, int i, GError **error);
/* A tensor in the wide type of output i, to be filled; muster_wide_end () converts it and sets the
 * output. */
MusterTensor *muster_wide_output (MusterKernel *k, int i, int n_dims, const gint64 *dims,
                                  GError **error);
gboolean muster_wide_end (MusterKernel *k, int i, MusterTensor *wide, /* (transfer full) */
                          GError **error);

/* Like muster_wide_input () and muster_wide_output (), for kernels with loops for complex numbers,
 * which aren't converted. */
MusterTensor *muster_number_input (MusterKernel *k, int i, GError **error);
MusterTensor *muster_number_output (MusterKernel *k, int i, int n_dims, const gint64 *dims,
                                    GError **error);

/* A tensor's elements as blocks of size bytes, for kernels that move elements without reading them.
 * A string tensor is an array of MusterString. */
typedef struct {
  const guint8 *data; /* (not owned) */
  gsize size;
} MusterElements;

MusterElements muster_elements (const MusterTensor *tensor);

/* Memory for the elements of a new tensor. begin zeroes it (an empty string is zero); end sets
 * output i. begin_unset is for who sets each element: only strings are zeroed. */
typedef struct {
  MusterDType dtype;
  int n_dims;
  gint64 dims[MUSTER_MAX_DIMS];
  gint64 n;
  gsize size;
  guint8 *data;
  MusterTensor *tensor;  /* (owned) (nullable) */
  MusterString *strings; /* (owned) (nullable) */
} MusterResult;

gboolean muster_result_begin (MusterResult *self, MusterKernel *k, MusterDType dtype, int n_dims,
                              const gint64 *dims, GError **error);
gboolean muster_result_begin_unset (MusterResult *self, MusterKernel *k, MusterDType dtype,
                                    int n_dims, const gint64 *dims, GError **error);
gboolean muster_result_end (MusterResult *self, MusterKernel *k, int i, GError **error);
/* The same for a tensor that isn't an output (transfer full). */
MusterTensor *muster_result_end_tensor (MusterResult *self, MusterKernel *k, GError **error);
void muster_result_clear (MusterResult *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterResult, muster_result_clear)

/* Sets INVALID_ARGUMENT. Always returns FALSE. */
gboolean muster_invalid (GError **error, const char *format, ...) G_GNUC_PRINTF (2, 3);

/* The shape as text, (transfer full). */
char *muster_shape_text (const MusterTensor *tensor);

/* Makes 1 of every true element of a tensor of bools that was copied from other bytes. */
void muster_make_bools (MusterTensor *tensor);

gboolean muster_same_shape (const MusterTensor *a, const MusterTensor *b);

/* TRUE if input i is a scalar; a scalar or a vector of one element, where TensorFlow allows that; a
 * vector. name is for the error. */
gboolean muster_check_scalar (MusterKernel *k, int i, const char *name, GError **error);
gboolean muster_check_one (MusterKernel *k, int i, const char *name, GError **error);
gboolean muster_check_vector (MusterKernel *k, int i, const char *name, GError **error);

/* Updates a variable of strings, which can't be changed in place: change gets the value and a copy
 * of its strings to overwrite; again if another step has assigned a value in between. */
gboolean muster_change_strings (MusterKernel *k, MusterVariable *variable,
                                gboolean (*change) (MusterTensor *value, guint8 *strings,
                                                    gpointer user_data, GError **error),
                                gpointer user_data, GError **error);

/* Checks the dtype of a variable, which a resource handle doesn't contain. */
gboolean muster_check_variable_dtype (MusterVariable *variable, MusterDType dtype, GError **error);

/* Converts an axis, which may be negative to count from the end. FALSE with an error outside
 * [-n_dims, n_dims). */
gboolean muster_check_axis (gint64 axis, int n_dims, int *result, GError **error);

/* Element i of a tensor of indices: of int64, int32, int16, int8 or uint8. */
gint64 muster_int_at (const MusterTensor *tensor, gint64 i);

/* The elements of such a tensor, for loops over them: all but one are NULL. */
typedef struct {
  const gint64 *wide;           /* (not owned) */
  const gint32 *narrow;         /* (not owned) */
  const gint16 *shorts;         /* (not owned) */
  const gint8 *bytes;           /* (not owned) */
  const guint8 *unsigned_bytes; /* (not owned) */
} MusterInts;

MusterInts muster_ints (const MusterTensor *tensor);

static inline gint64
muster_ints_at (const MusterInts *self, gint64 i)
{
  return self->narrow != NULL   ? self->narrow[i]
         : self->wide != NULL   ? self->wide[i]
         : self->shorts != NULL ? self->shorts[i]
         : self->bytes != NULL  ? self->bytes[i]
                                : self->unsigned_bytes[i];
}

/* Sets element i of a tensor of int64, int32 or int16. */
void muster_put_int (MusterTensor *tensor, gint64 i, gint64 value);

/* Element i of a tensor of a wide type. */
double muster_double_at (const MusterTensor *wide, gint64 i);

/* The product of dims[from..to). */
gint64 muster_dims_product (const gint64 *dims, int from, int to);

/* A kernel's tensors come from its budget: muster_kernel_output () and similar functions. */
#pragma GCC poison muster_tensor_new muster_tensor_new_strings muster_tensor_try_new

/* Whether there is room to sort n items of size bytes, which copies them; the copy counts until the
 * kernel ends. */
gboolean muster_kernel_may_sort (MusterKernel *k, gint64 n, gsize size, GError **error);

G_END_DECLS
