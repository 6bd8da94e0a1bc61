// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* Why does nobody answer at HOST:PORT? Looks the name up, connects, and waits for the HTTP/2
 * settings with which every gRPC server begins, or for TLS, beside gRPC and without its retries. */

/* How far it came. */
typedef enum {
  MUSTER_REACH_NOT_RESOLVED, /* no address for the name, or no answer from the name service */
  MUSTER_REACH_REFUSED,      /* the machine is there, but nobody listens on the port */
  MUSTER_REACH_NO_ROUTE,     /* unreachable, or another error of connecting */
  MUSTER_REACH_NO_TCP,       /* connecting never came to an end */
  MUSTER_REACH_SILENT,       /* connected, but HTTP/2 settings never came: stopped, or stuck */
  MUSTER_REACH_NOT_HTTP2,    /* something else came: HTTP/1 */
  MUSTER_REACH_TLS_FAILED,   /* one side speaks TLS, and the other doesn't */
  MUSTER_REACH_NO_MASTER,    /* gRPC answers, but there is no MasterService */
  MUSTER_REACH_NO_WORD,      /* gRPC is there, but its MasterService says nothing, or breaks off */
  MUSTER_REACH_ANSWERS,
} MusterReach;

typedef struct {
  MusterReach stage;
  char *resolved;    /* (owned) (nullable) the address that was tried, as a number */
  gint64 connect_us; /* how long connecting took; -1 if it didn't come to that */
  char *text; /* (owned) a line for people: "name chief -> 10.1.2.3, TCP connected in 1 ms, ..." */
} MusterDiagnosis;

/* Fills *out, which is to be cleared. Of several addresses the one that came furthest is told. With
 * tls the first record of a TLS handshake counts as an answer. Waits until deadline_us (on
 * muster_system_clock ()) at most, and comes back soon after a cancellation, with what was found
 * until then. Any thread may call. */
void muster_diagnose (const char *address, gboolean tls, gint64 deadline_us,
                      GCancellable *cancellable, MusterDiagnosis *out);

/* The same, and then asks the MasterService there for something that no master keeps waiting:
 * whatever it says is an answer. (TensorFlow's waits for its whole cluster before it lists its
 * devices.) Without TLS and tokens, as the tasks of a cluster are. */
void muster_diagnose_master (const char *address, gint64 deadline_us, GCancellable *cancellable,
                             MusterDiagnosis *out);

void muster_diagnosis_clear (MusterDiagnosis *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterDiagnosis, muster_diagnosis_clear)

G_END_DECLS
