// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * MusterReach:
 * @MUSTER_REACH_NOT_RESOLVED: the name has no address, or the name service didn't answer
 * @MUSTER_REACH_REFUSED: connection refused: nothing listens on the port
 * @MUSTER_REACH_NO_ROUTE: unreachable, or another error of connect ()
 * @MUSTER_REACH_NO_TCP: connecting timed out
 * @MUSTER_REACH_SILENT: connected, but no HTTP/2 settings came: stopped or hung
 * @MUSTER_REACH_NOT_HTTP2: the answer isn't HTTP/2, as from HTTP/1
 * @MUSTER_REACH_TLS_FAILED: only one side uses TLS
 * @MUSTER_REACH_NO_MASTER: gRPC answers, but has no MasterService
 * @MUSTER_REACH_NO_WORD: gRPC answers, but its MasterService doesn't, or the connection broke
 * @MUSTER_REACH_ANSWERS: the server answers
 *
 * The stage that was reached on the way to a server.
 */
typedef enum {
  MUSTER_REACH_NOT_RESOLVED,
  MUSTER_REACH_REFUSED,
  MUSTER_REACH_NO_ROUTE,
  MUSTER_REACH_NO_TCP,
  MUSTER_REACH_SILENT,
  MUSTER_REACH_NOT_HTTP2,
  MUSTER_REACH_TLS_FAILED,
  MUSTER_REACH_NO_MASTER,
  MUSTER_REACH_NO_WORD,
  MUSTER_REACH_ANSWERS,
} MusterReach;

/**
 * MusterDiagnosis:
 * @stage: how far it got
 * @resolved: the numeric address that was tried (owned, nullable)
 * @connect_us: the duration of connecting in microseconds; -1 if it wasn't tried
 * @text: one line for messages: "name chief -> 10.1.2.3, TCP connected in 1 ms, ..." (owned)
 *
 * Why a server doesn't answer at HOST:PORT, found without gRPC and its retries: by resolving the
 * name, connecting, and waiting for the HTTP/2 settings that every gRPC server sends first, or for
 * TLS.
 */
typedef struct {
  MusterReach stage;
  char *resolved;
  gint64 connect_us;
  char *text;
} MusterDiagnosis;

#define MUSTER_TYPE_DIAGNOSIS (muster_diagnosis_get_type ())
GType muster_diagnosis_get_type (void);

/**
 * muster_diagnose:
 * @address: HOST:PORT or unix:/PATH
 * @tls: whether the first record of a TLS handshake counts as an answer
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 * @out: where the result goes, to be freed with [method@Diagnosis.clear]
 *
 * Finds out why a server doesn't answer. Of several addresses, the one that got furthest is
 * reported. Returns by @deadline_us, or soon after a cancellation, with what was found by then. Any
 * thread.
 */
void muster_diagnose (const char *address, gboolean tls, gint64 deadline_us,
                      GCancellable *cancellable, MusterDiagnosis *out);

/**
 * muster_diagnose_master:
 * @address: HOST:PORT or unix:/PATH
 * @deadline_us: the instant of g_get_monotonic_time () by which it returns; 0: now;
 *   %MUSTER_WAIT_FOREVER: no limit
 * @cancellable: (nullable): cancels the call
 * @out: where the result goes, to be freed with [method@Diagnosis.clear]
 *
 * Does the same, then calls a method of the MasterService that every master answers at once; any
 * status counts as an answer. (TensorFlow's master lists its devices only when its whole cluster is
 * up.) Without TLS and tokens, like the tasks of a cluster.
 */
void muster_diagnose_master (const char *address, gint64 deadline_us, GCancellable *cancellable,
                             MusterDiagnosis *out);

/**
 * muster_diagnosis_clear:
 * @self: a diagnosis
 *
 * Frees what a diagnosis contains, and empties it.
 */
void muster_diagnosis_clear (MusterDiagnosis *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterDiagnosis, muster_diagnosis_clear)

G_END_DECLS
