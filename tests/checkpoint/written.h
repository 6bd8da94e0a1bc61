// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_writer.h"

G_BEGIN_DECLS

/* For programs that write checkpoints for a test in Python to read: what fails ends the program. */

void written_check (GError *error);
MusterBundleWriter *written_begin (const char *directory, const char *name);
/* Takes the tensor; slice may be NULL. */
void written_add (MusterBundleWriter *writer, const char *name, const char *slice,
                  MusterTensor *tensor);
/* Takes the writer. */
void written_finish (MusterBundleWriter *writer);

/* int32, first, first + 1, … */
MusterTensor *written_counting (gint64 rows, gint64 columns, gint32 first);

G_END_DECLS
