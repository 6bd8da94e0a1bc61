// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/error.h"
#include "base/protowire.h"
#include "graph/tensor_proto.h"
#include "rpc/messages/run_step.h"

G_BEGIN_DECLS

/* The numbers of the fields, and what request and response share. */

enum {
  RUN_STEP_SESSION_HANDLE = 1,
  RUN_STEP_FEED = 2,
  RUN_STEP_FETCH = 3,
  RUN_STEP_TARGET = 4,
  RUN_STEP_OPTIONS = 5,
  RUN_STEP_PARTIAL_RUN_HANDLE = 6,
  RUN_STEP_STORE_ERRORS = 7,
  RUN_STEP_REQUEST_ID = 8,

  RUN_CALLABLE_SESSION_HANDLE = 1,
  RUN_CALLABLE_HANDLE = 2,
  RUN_CALLABLE_FEED = 3,
  RUN_CALLABLE_REQUEST_ID = 4,

  STEP_RESPONSE_TENSOR = 1,
  STEP_RESPONSE_METADATA = 2,
  STEP_RESPONSE_STATUS_CODE = 3,
  STEP_RESPONSE_STATUS_TEXT = 4,
};

/* A NamedTensorProto's two fields, still as bytes within the message. */
typedef struct {
  const char *name; /* (not owned) not NUL-terminated */
  gsize name_size;
  const guint8 *tensor; /* (not owned) */
  gsize tensor_size;
} MusterNamedTensor;

/* FALSE where field is no NamedTensorProto with a name in UTF-8. */
gboolean muster_named_tensor_read (const MusterProtoField *field, MusterNamedTensor *out);
void muster_named_tensor_put (MusterRope *out, guint32 number, const char *name,
                              MusterTensor *tensor);

/* TRUE for a field of bytes that hold UTF-8 without a NUL. */
gboolean muster_field_is_text (const MusterProtoField *field);

/* The field's bytes, shared with message. */
GBytes *muster_field_to_bytes (GBytes *message, const MusterProtoField *field);

gboolean muster_field_refuse (const char *what, const char *why, GError **error);

G_END_DECLS
