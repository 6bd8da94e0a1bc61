// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Finds out why a server doesn't answer at HOST:PORT, without gRPC and its retries: resolves the
 * name, connects, and waits for the HTTP/2 settings that every gRPC server sends first, or for TLS.
 */

/* The stage that was reached. */
typedef enum {
  MUSTER_REACH_NOT_RESOLVED, /* the name has no address, or the name service didn't answer */
  MUSTER_REACH_REFUSED,      /* connection refused: nothing listens on the port */
  MUSTER_REACH_NO_ROUTE,     /* unreachable, or another error of connect () */
  MUSTER_REACH_NO_TCP,       /* connecting timed out */
  MUSTER_REACH_SILENT,       /* connected, but no HTTP/2 settings came: stopped or hung */
  MUSTER_REACH_NOT_HTTP2,    /* the answer isn't HTTP/2, as from HTTP/1 */
  MUSTER_REACH_TLS_FAILED,   /* only one side uses TLS */
  MUSTER_REACH_NO_MASTER,    /* gRPC answers, but has no MasterService */
  MUSTER_REACH_NO_WORD, /* gRPC answers, but its MasterService doesn't, or the connection broke */
  MUSTER_REACH_ANSWERS,
} MusterReach;

typedef struct {
  MusterReach stage;
  char *resolved;    /* (owned) (nullable) the numeric address that was tried */
  gint64 connect_us; /* duration of connecting; -1 if it wasn't tried */
  char *text; /* (owned) one line for messages: "name chief -> 10.1.2.3, TCP connected in 1 ms, ..."
               */
} MusterDiagnosis;

/* Sets *out, to be freed with muster_diagnosis_clear (). Of several addresses, the one that got
 * furthest is reported. With tls, the first record of a TLS handshake counts as an answer. Returns
 * by deadline_us (on muster_system_clock ()), or soon after a cancellation, with what was found by
 * then. Any thread. */
void muster_diagnose (const char *address, gboolean tls, gint64 deadline_us,
                      GCancellable *cancellable, MusterDiagnosis *out);

/* The same, then calls a method of the MasterService that every master answers at once; any status
 * counts as an answer. (TensorFlow's master lists its devices only when its whole cluster is up.)
 * Without TLS and tokens, like the tasks of a cluster. */
void muster_diagnose_master (const char *address, gint64 deadline_us, GCancellable *cancellable,
                             MusterDiagnosis *out);

void muster_diagnosis_clear (MusterDiagnosis *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterDiagnosis, muster_diagnosis_clear)

G_END_DECLS
