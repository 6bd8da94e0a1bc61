// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* Reads "NAME=VALUE" or "NAME=@FILE.npy" for a tensor of graph. VALUE is JSON: a number, true, a
 * string or nested lists of one of these, read as the dtype that the graph gives NAME; text that
 * isn't JSON is a string. *name (transfer full) gets NAME. INVALID_ARGUMENT says what is wrong with
 * it. */
MusterTensor *muster_cli_read_feed (MusterGraph *graph, const char *argument, char **name,
                                    GError **error);

/* A tensor as JSON: nested lists of numbers or strings; complex numbers as [real, imaginary]. For a
 * builder. */
void muster_cli_tensor_json (JsonBuilder *builder, const MusterTensor *tensor);

G_END_DECLS
