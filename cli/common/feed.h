// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* Reads "NAME=VALUE" or "NAME=@FILE.npy" for a tensor of graph. VALUE is JSON: a number, true, a
 * string or nested lists of one of these, read as the dtype that the graph gives NAME; text that
 * isn't JSON is a string. Of a file only the rows FIRST:END, where rows (nullable: all) says so, as
 * Python slices: either may be missing. *name (transfer full) gets NAME as "x:0".
 * INVALID_ARGUMENT and NOT_FOUND say what is wrong with it. (transfer full) */
MusterTensor *muster_cli_read_feed (MusterGraph *graph, const char *argument, const char *rows,
                                    char **name, GError **error);

/* An element for a builder: a number, true or false, a string, or [real, imaginary]; what JSON has
 * no number for is a string, "nan". */
void muster_cli_element_json (JsonBuilder *builder, const MusterTensor *tensor, gint64 i);
/* A tensor: nested lists of those. */
void muster_cli_tensor_json (JsonBuilder *builder, const MusterTensor *tensor);

G_END_DECLS
