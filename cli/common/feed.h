// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/graph.h"

#include <json-glib/json-glib.h>

G_BEGIN_DECLS

/* Reads "NAME=VALUE" or "NAME=@FILE.npy" for a tensor of graph. VALUE is JSON: a number, true, a
 * string or nested lists of one of these, converted to the dtype of NAME in the graph; text that
 * isn't JSON is a string. Of a file, only the rows FIRST:END of rows (nullable: all), like a Python
 * slice: both are optional. *name (transfer full) becomes NAME as "x:0". INVALID_ARGUMENT and
 * NOT_FOUND describe the mistake. (transfer full) */
MusterTensor *muster_cli_read_feed (MusterGraph *graph, const char *argument, const char *rows,
                                    char **name, GError **error);

/* Adds an element to a builder: a number, true or false, a string, or [real, imaginary]; a number
 * without a JSON form is a string, "nan". */
void muster_cli_element_json (JsonBuilder *builder, const MusterTensor *tensor, gint64 i);
/* Adds a tensor as nested lists of elements. */
void muster_cli_tensor_json (JsonBuilder *builder, const MusterTensor *tensor);

G_END_DECLS
