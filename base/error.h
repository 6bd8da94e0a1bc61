// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Errors: one domain for muster's own verdicts, its codes numbered like gRPC's and TensorFlow's, so
 * that a status crosses the wire as a checked cast. GIO's errors (files, local cancellation) pass
 * through with a prefix: a call cancelled by its own GCancellable is G_IO_ERROR_CANCELLED, while
 * MUSTER_ERROR_CANCELLED is what a master says of a step that somebody else ended. Not ready is a
 * result, not an error (docs/decisions/0001, docs/decisions/0008). */

#define MUSTER_ERROR (muster_error_quark ())

typedef enum {
  MUSTER_ERROR_CANCELLED = 1,
  MUSTER_ERROR_UNKNOWN = 2,
  MUSTER_ERROR_INVALID_ARGUMENT = 3,
  MUSTER_ERROR_DEADLINE_EXCEEDED = 4,
  MUSTER_ERROR_NOT_FOUND = 5,
  MUSTER_ERROR_ALREADY_EXISTS = 6,
  MUSTER_ERROR_PERMISSION_DENIED = 7,
  MUSTER_ERROR_RESOURCE_EXHAUSTED = 8,
  MUSTER_ERROR_FAILED_PRECONDITION = 9,
  MUSTER_ERROR_ABORTED = 10,
  MUSTER_ERROR_OUT_OF_RANGE = 11,
  MUSTER_ERROR_UNIMPLEMENTED = 12,
  MUSTER_ERROR_INTERNAL = 13,
  MUSTER_ERROR_UNAVAILABLE = 14,
  MUSTER_ERROR_DATA_LOSS = 15,
  MUSTER_ERROR_UNAUTHENTICATED = 16,
} MusterError;

GQuark muster_error_quark (void);

/* The code's name as people read it, "deadline exceeded"; "unknown" for a number outside the list.
 */
const char *muster_error_name (int code);

/* A number from the wire as a code: 1..16 stay, anything else is MUSTER_ERROR_UNKNOWN. */
MusterError muster_error_from_wire (int code);

/* The wire's number for any GError: MUSTER_ERROR's own, 1 for G_IO_ERROR_CANCELLED, 5 for a file
 * that isn't there, 7 for one that may not be read, 8 for a full disk, else 2. */
int muster_error_to_wire (const GError *error);

/**
 * muster_fail: (skip)
 * Sets *error (nullable), with words as printf's. Always FALSE: return muster_fail (…).
 */
gboolean muster_fail (GError **error, MusterError code, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

/* TRUE if error (nullable) is MUSTER_ERROR with that code. */
gboolean muster_error_is (const GError *error, MusterError code);

G_END_DECLS
