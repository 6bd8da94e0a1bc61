// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* muster's own errors are in one domain. The codes have the numbers of gRPC's and TensorFlow's, so
 * that a status on the wire converts by a checked cast. GIO's errors (files, local cancellation)
 * pass through with a prefix. A call cancelled by its own GCancellable fails with
 * G_IO_ERROR_CANCELLED; MUSTER_ERROR_CANCELLED comes from a master, for a step that another client
 * ended. Not ready is a result, not an error (docs/decisions/0001, docs/decisions/0008). */

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

/* The code's name for messages, such as "deadline exceeded"; "unknown" for any other number. */
const char *muster_error_name (int code);

/* Converts a number from the wire: 1 to 16 stay, any other is MUSTER_ERROR_UNKNOWN. */
MusterError muster_error_from_wire (int code);

/* The wire's number for any GError: MUSTER_ERROR's own, 1 for G_IO_ERROR_CANCELLED, 5 for a missing
 * file, 7 for one without read permission, 8 for a full disk, else 2. */
int muster_error_to_wire (const GError *error);

/**
 * muster_fail: (skip)
 * Sets *error (nullable) to a text formatted like printf's. Always returns FALSE: return
 * muster_fail (…).
 */
gboolean muster_fail (GError **error, MusterError code, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

/* TRUE if error (nullable) is a MUSTER_ERROR with that code. */
gboolean muster_error_is (const GError *error, MusterError code);

G_END_DECLS
