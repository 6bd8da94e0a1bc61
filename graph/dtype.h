// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* The element types, with the numbers of TensorFlow's DataType. A reference type is its value type
 * + 100. */
typedef enum {
  MUSTER_INVALID = 0,
  MUSTER_FLOAT = 1,
  MUSTER_DOUBLE = 2,
  MUSTER_INT32 = 3,
  MUSTER_UINT8 = 4,
  MUSTER_INT16 = 5,
  MUSTER_INT8 = 6,
  MUSTER_STRING = 7,
  MUSTER_COMPLEX64 = 8,
  MUSTER_INT64 = 9,
  MUSTER_BOOL = 10,
  MUSTER_BFLOAT16 = 14,
  MUSTER_UINT16 = 17,
  MUSTER_COMPLEX128 = 18,
  MUSTER_HALF = 19,
  MUSTER_RESOURCE = 20,
  MUSTER_VARIANT = 21,
  MUSTER_UINT32 = 22,
  MUSTER_UINT64 = 23,
  MUSTER_REF = 100, /* added to a value type */
} MusterDType;

/* Bytes of an element; 0 for strings, resources and types that muster doesn't support. */
gsize muster_dtype_size (MusterDType dtype);

/* "float", "int32", "string", "float_ref"; "unknown" for another number. */
const char *muster_dtype_name (MusterDType dtype);

/* The dtype with that name (muster_dtype_name ()), or MUSTER_INVALID. */
MusterDType muster_dtype_from_name (const char *name);

/* TRUE for the types that a MusterTensor can hold: all of the above except RESOURCE, VARIANT and
 * references. */
gboolean muster_dtype_is_supported (MusterDType dtype);

/* float16 and bfloat16 are stored as their 16 bits and computed as float. */
float muster_half_to_float (guint16 bits);
guint16 muster_half_from_float (float value);
float muster_bfloat16_to_float (guint16 bits);
guint16 muster_bfloat16_from_float (float value);

G_END_DECLS
