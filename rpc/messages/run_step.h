// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/rope.h"
#include "graph/tensor.h"

G_BEGIN_DECLS

/* The codecs of RunStep and RunCallable, used by the client (encode a request, decode a response)
 * and by the server (the other way round): by hand, since they are hot and a tensor in them may be
 * large. A decoded request is one allocation, names included; its tensors may be views over the
 * message's bytes. Sizes and UTF-8 are checked; errors are INVALID_ARGUMENT. */

/* What a step is asked. A decoded one owns its arrays; one that is to be encoded borrows
 * everything. */
typedef struct {
  const char *session_handle;
  const char **feed_names; /* n_feeds; NULL in RunCallable, whose feeds are bare tensors in the
                              callable's order */
  MusterTensor **feeds;    /* n_feeds */
  gsize n_feeds;
  const char **fetches; /* n_fetches */
  gsize n_fetches;
  const char **targets; /* n_targets */
  gsize n_targets;
  GBytes *options;                /* (nullable) RunOptions as they came */
  const char *partial_run_handle; /* (nullable) */
  gboolean store_errors_in_response_body;
  gint64 request_id;
  gint64 callable; /* RunCallable: the handle */
} MusterStepRequest;

MusterStepRequest *muster_step_request_decode_run (GBytes *message, GError **error);
MusterStepRequest *muster_step_request_decode_callable (GBytes *message, GError **error);
void muster_step_request_free (MusterStepRequest *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterStepRequest, muster_step_request_free)

/* FALSE with RESOURCE_EXHAUSTED for tensors that no message holds together. To be asked before they
 * are encoded: a few bytes of strings may be written out as many gigabytes. */
gboolean muster_step_tensors_fit (MusterTensor *const *tensors, gsize n, GError **error);

void muster_step_request_encode_run (const MusterStepRequest *self, MusterRope *out);
void muster_step_request_encode_callable (const MusterStepRequest *self, MusterRope *out);

/* What a step answers: tensors in the order of the fetches, metadata as bytes, or an error in the
 * body. */
void muster_step_response_encode_run (MusterRope *out, const char *const *fetches,
                                      MusterTensor *const *tensors, gsize n, GBytes *metadata,
                                      const GError *error);
void muster_step_response_encode_callable (MusterRope *out, MusterTensor *const *tensors, gsize n,
                                           GBytes *metadata);

/* Fills tensors[n_fetches] (transfer full) in the order of fetches. An error in the body becomes
 * *error. A response that lacks a fetch, or has one not asked for, is INTERNAL. */
gboolean muster_step_response_decode_run (GBytes *message, const char *const *fetches,
                                          gsize n_fetches, MusterTensor **tensors,
                                          GBytes **metadata, GError **error);
gboolean muster_step_response_decode_callable (GBytes *message, gsize n_fetches,
                                               MusterTensor **tensors, GBytes **metadata,
                                               GError **error);

G_END_DECLS
