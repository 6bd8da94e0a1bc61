// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * MUSTER_ERROR:
 *
 * The domain of muster's errors, whose codes are [error@Error].
 */
#define MUSTER_ERROR (muster_error_quark ())

/**
 * MusterError:
 * @MUSTER_ERROR_CANCELLED: another client ended the step, or the master is stopping
 * @MUSTER_ERROR_UNKNOWN: a failure of no known kind
 * @MUSTER_ERROR_INVALID_ARGUMENT: fix the request: the error names what is wrong with it
 * @MUSTER_ERROR_DEADLINE_EXCEEDED: the time ran out; the text says what took it
 * @MUSTER_ERROR_NOT_FOUND: what the request names doesn't exist
 * @MUSTER_ERROR_ALREADY_EXISTS: what the request creates exists already
 * @MUSTER_ERROR_PERMISSION_DENIED: the caller's role doesn't suffice: fix the token or certificate
 * @MUSTER_ERROR_RESOURCE_EXHAUSTED: request less, or raise the limit that the error names
 * @MUSTER_ERROR_FAILED_PRECONDITION: initialise, or wait; for a chief: another one holds the model
 * @MUSTER_ERROR_ABORTED: the master lost this session: create another
 * @MUSTER_ERROR_OUT_OF_RANGE: the job is over, or an input has no more data
 * @MUSTER_ERROR_UNIMPLEMENTED: do without: this master doesn't offer it
 * @MUSTER_ERROR_INTERNAL: a fault in the master
 * @MUSTER_ERROR_UNAVAILABLE: no answer: retry later
 * @MUSTER_ERROR_DATA_LOSS: a file is damaged: use the checkpoint before
 * @MUSTER_ERROR_UNAUTHENTICATED: fix the token or certificate
 *
 * muster's own errors, in one domain, %MUSTER_ERROR. The codes have the numbers of gRPC's and
 * TensorFlow's, so that a status on the wire converts by a checked cast. GIO's errors (files, local
 * cancellation) pass through with a prefix. A call cancelled by its own #GCancellable fails with
 * %G_IO_ERROR_CANCELLED; %MUSTER_ERROR_CANCELLED comes from a master, for a step that another
 * client ended. Not ready is a result, not an error (docs/decisions/0001, docs/decisions/0008).
 * Decide by the code, never by the text.
 */
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

/**
 * muster_error_quark:
 *
 * The domain of muster's errors.
 *
 * Returns: the quark
 */
GQuark muster_error_quark (void);

/**
 * muster_error_name:
 * @code: a code of #MusterError, or 0
 *
 * The code's name for messages, such as "deadline exceeded".
 *
 * Returns: the name; "ok" for 0, "unknown" for any other number
 */
const char *muster_error_name (int code);

/**
 * muster_error_from_wire:
 * @code: a status of gRPC or TensorFlow
 *
 * Converts a number from the wire.
 *
 * Returns: 1 to 16 stay, any other is %MUSTER_ERROR_UNKNOWN
 */
MusterError muster_error_from_wire (int code);

/**
 * muster_error_to_wire:
 * @error: any error
 *
 * The wire's number for any error.
 *
 * Returns: the code of a muster error; 1 for %G_IO_ERROR_CANCELLED, 4 for a store that can't be
 *   reached, 5 for a missing file, 7 for one without read permission, 8 for a full disk, else 2
 */
int muster_error_to_wire (const GError *error);

/**
 * muster_fail: (skip)
 * @code: its code
 * @format: a format like printf's
 * @...: its arguments
 *
 * Sets *@error to a formatted text. Always returns %FALSE: `return muster_fail (…)`.
 *
 * Returns: %FALSE
 */
gboolean muster_fail (GError **error, MusterError code, const char *format, ...)
    G_GNUC_PRINTF (3, 4);

/**
 * muster_error_is:
 * @error: (nullable): any error
 * @code: a code
 *
 * Tests an error's domain and code.
 *
 * Returns: %TRUE if @error is a muster error with that code
 */
gboolean muster_error_is (const GError *error, MusterError code);

G_END_DECLS
