// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/**
 * MusterDType:
 * @MUSTER_INVALID: no type
 * @MUSTER_FLOAT: 32-bit floating point
 * @MUSTER_DOUBLE: 64-bit floating point
 * @MUSTER_INT32: 32-bit integer
 * @MUSTER_UINT8: 8-bit integer without a sign
 * @MUSTER_INT16: 16-bit integer
 * @MUSTER_INT8: 8-bit integer
 * @MUSTER_STRING: bytes of any length
 * @MUSTER_COMPLEX64: two 32-bit floating point numbers
 * @MUSTER_INT64: 64-bit integer
 * @MUSTER_BOOL: one byte, 0 or 1
 * @MUSTER_BFLOAT16: the upper half of a 32-bit floating point number
 * @MUSTER_UINT16: 16-bit integer without a sign
 * @MUSTER_COMPLEX128: two 64-bit floating point numbers
 * @MUSTER_HALF: 16-bit floating point
 * @MUSTER_RESOURCE: a handle of something on the master; no tensor holds it
 * @MUSTER_VARIANT: anything else; no tensor holds it
 * @MUSTER_UINT32: 32-bit integer without a sign
 * @MUSTER_UINT64: 64-bit integer without a sign
 * @MUSTER_REF: added to a value type
 *
 * The element types, with the numbers of TensorFlow's DataType. A reference type is its value type
 * + 100.
 */
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
  MUSTER_REF = 100,
} MusterDType;

/**
 * muster_dtype_size:
 * @dtype: a type
 *
 * The size of an element.
 *
 * Returns: bytes; 0 for strings, resources and types that muster doesn't support
 */
gsize muster_dtype_size (MusterDType dtype);

/**
 * muster_dtype_name:
 * @dtype: a type, also a reference
 *
 * The type's name: "float", "int32", "string", "float_ref".
 *
 * Returns: the name; "unknown" for another number
 */
const char *muster_dtype_name (MusterDType dtype);

/**
 * muster_dtype_from_name:
 * @name: a name
 *
 * Finds the type with that name ([func@dtype_name]).
 *
 * Returns: the type, or %MUSTER_INVALID
 */
MusterDType muster_dtype_from_name (const char *name);

/**
 * muster_dtype_is_supported:
 * @dtype: a type
 *
 * Tests whether a [struct@Tensor] can hold elements of that type: all except RESOURCE, VARIANT and
 * references.
 *
 * Returns: %TRUE if it can
 */
gboolean muster_dtype_is_supported (MusterDType dtype);

/**
 * muster_half_to_float:
 * @bits: an element of %MUSTER_HALF
 *
 * Converts a float16, which is stored as its 16 bits and computed as float.
 *
 * Returns: its value
 */
float muster_half_to_float (guint16 bits);

/**
 * muster_half_from_float:
 * @value: a number
 *
 * Rounds to a float16.
 *
 * Returns: its 16 bits
 */
guint16 muster_half_from_float (float value);

/**
 * muster_bfloat16_to_float:
 * @bits: an element of %MUSTER_BFLOAT16
 *
 * Converts a bfloat16, which is stored as its 16 bits and computed as float.
 *
 * Returns: its value
 */
float muster_bfloat16_to_float (guint16 bits);

/**
 * muster_bfloat16_from_float:
 * @value: a number
 *
 * Rounds to a bfloat16.
 *
 * Returns: its 16 bits
 */
guint16 muster_bfloat16_from_float (float value);

G_END_DECLS
