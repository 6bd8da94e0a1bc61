// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/protowire_private.h"
#include "graph/tensor_proto_private.h"
#include "rpc/messages/run_step_private.h"

G_BEGIN_DECLS

/* The field numbers, and what request and response share. */

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

  NAMED_TENSOR_NAME = 1,
  NAMED_TENSOR_TENSOR = 2,

  STEP_RESPONSE_TENSOR = 1,
  STEP_RESPONSE_METADATA = 2,
  STEP_RESPONSE_STATUS_CODE = 3,
  STEP_RESPONSE_STATUS_TEXT = 4,
};

G_END_DECLS
