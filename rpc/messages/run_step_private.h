// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rope_private.h"
#include "graph/step.h"

G_BEGIN_DECLS

/* Codecs of RunStep and RunCallable, for clients (encode requests, decode responses) and servers
 * (the reverse). They are hand-written, since these messages are frequent and their tensors may be
 * large. A decoded request is one allocation with its names; its tensors may be views of the
 * message's bytes. Sizes and UTF-8 are checked; errors are INVALID_ARGUMENT, or
 * RESOURCE_EXHAUSTED over the limit of memory. */

/* A step request. A decoded one owns its arrays; one to be encoded borrows everything. */
typedef struct {
  const char *session_handle;
  MusterStep step;         /* RunStep: without a deadline */
  gint64 timeout_us;       /* RunStep: in the step's options; 0: none */
  const char *partial_run; /* RunStep: (nullable) the partial run that the step is a part of */
  gboolean store_errors_in_response_body; /* RunStep */
  gint64 request_id;
  gint64 callable;           /* RunCallable: the handle */
  MusterTensor **bare_feeds; /* RunCallable: n_bare_feeds, in the callable's order */
  gsize n_bare_feeds;
  gsize n_counted; /* bytes of a decoded one, in the process's memory */
} MusterStepRequest;

MusterStepRequest *muster_step_request_decode_run (GBytes *message, GError **error);
MusterStepRequest *muster_step_request_decode_callable (GBytes *message, GError **error);
void muster_step_request_free (MusterStepRequest *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterStepRequest, muster_step_request_free)

/* What a fetch's name lacks: "x" is sent as "x:0", since TensorFlow never answers a step that
 * fetches a variable's value by the first. */
const char *muster_step_fetch_suffix (const char *name);

/* Append a message to a rope. FALSE with RESOURCE_EXHAUSTED, and nothing appended, if the tensors
 * don't fit into one message: a few bytes of repeated strings may encode to gigabytes. */

gboolean muster_step_request_encode_run (const MusterStepRequest *self, MusterRope *out,
                                         GError **error);
gboolean muster_step_request_encode_callable (const MusterStepRequest *self, MusterRope *out,
                                              GError **error);

/* Encode a step's response: tensors in the order of the fetches, metadata (nullable) as bytes, or
 * an error in the body. */
gboolean muster_step_response_encode_run (MusterRope *out, const char *const *fetches,
                                          MusterTensor *const *tensors, gsize n, GBytes *metadata,
                                          GError **error);
void muster_step_response_encode_error (MusterRope *out, const GError *failed);
gboolean muster_step_response_encode_callable (MusterRope *out, MusterTensor *const *tensors,
                                               gsize n, GBytes *metadata, GError **error);

/* Sets tensors[n_fetches] (transfer full) in the order of fetches. An error in the body becomes
 * *error. INTERNAL if the response lacks a fetch or has another tensor. */
gboolean muster_step_response_decode_run (GBytes *message, const char *const *fetches,
                                          gsize n_fetches, MusterTensor **tensors,
                                          GBytes **metadata, GError **error);
gboolean muster_step_response_decode_callable (GBytes *message, gsize n_fetches,
                                               MusterTensor **tensors, GBytes **metadata,
                                               GError **error);

G_END_DECLS
