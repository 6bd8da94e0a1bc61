// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/manager.h"

G_BEGIN_DECLS

/* For who keeps options beyond a call: replaces the pointers by copies (feeds' tensors, the saver
 * and a table of names are referenced; the functions' data remain the caller's). */
void muster_prepare_options_own (MusterPrepareOptions *self);

/* Frees what muster_prepare_options_own () has copied. */
void muster_prepare_options_clear (MusterPrepareOptions *self);

G_END_DECLS
