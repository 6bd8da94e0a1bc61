// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterVariable is a named variable of a master, with or without a value. Values are immutable: an
 * assignment replaces the tensor, so a snapshot of a model is a reference for each variable
 * (docs/decisions/0004). An update in place happens only if nobody else references the tensor.
 * Reference-counted; any thread; one lock each. Reference variables (VariableV2) and resource
 * variables (VarHandleOp) differ only in is_resource, which selects the texts of errors. */

typedef struct _MusterVariable MusterVariable;

MusterVariable *muster_variable_ref (MusterVariable *self);
void muster_variable_unref (MusterVariable *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterVariable, muster_variable_unref)

const char *muster_variable_name (MusterVariable *self);
const char *muster_variable_container (MusterVariable *self);
MusterDType muster_variable_dtype (MusterVariable *self);

/* The declared shape: its rank, -1 if unknown, and its sizes (borrowed; -1: unknown). TensorFlow's
 * Assign compares the first value with it. */
int muster_variable_shape (MusterVariable *self, const gint64 **dims);

/* The value (transfer full), or NULL if it has none. */
MusterTensor *muster_variable_read (MusterVariable *self);
gboolean muster_variable_is_initialized (MusterVariable *self);

/* Replaces the value; NULL removes it. */
void muster_variable_assign (MusterVariable *self, MusterTensor *value);

/* Replaces the value if it still is old; else FALSE. */
gboolean muster_variable_replace (MusterVariable *self, const MusterTensor *old,
                                  MusterTensor *value);

/* Starts an update: locks the variable and returns the value's elements for writing, copied first
 * if the tensor is referenced elsewhere; NULL (and no lock) if there is no value. Shape and dtype
 * can't change. muster_variable_end_update () ends it. Lock several variables with
 * muster_variables_begin_update (), which takes the locks in a fixed order (by address). */
void *muster_variable_begin_update (MusterVariable *self);
void muster_variable_end_update (MusterVariable *self);

/* The same for code that processes all elements anyway. If a copy is necessary it isn't made: *from
 * is the old elements until the update ends (NULL: none). The caller must copy all of them, ideally
 * block by block just before each block's update. The first step after a snapshot then passes over
 * the memory once instead of twice. */
void *muster_variable_begin_rewrite (MusterVariable *self, const void **from);
gboolean muster_variables_begin_rewrite (MusterVariable *const *variables, int n, void **data,
                                         const void **from);

gboolean muster_variables_begin_update (MusterVariable *const *variables, int n, void **data);
void muster_variables_end_update (MusterVariable *const *variables, int n);

/* Sets FAILED_PRECONDITION, in TensorFlow's words, for a variable of either kind without a value.
 */
void muster_variable_set_uninitialized (MusterVariable *self, GError **error);
/* The same for ops other than ReadVariableOp: for a resource variable TensorFlow returns NOT_FOUND,
 * and its optimizers INTERNAL. */
void muster_variable_set_not_found (MusterVariable *self, GError **error);
/* After an update that couldn't begin: the same, or RESOURCE_EXHAUSTED if there was no memory for
 * the copy. */
void muster_variable_set_not_updated (MusterVariable *self, GError **error);
void muster_variable_set_invalid (MusterVariable *self, GError **error);

/* The value during an update, for its shape; borrowed. */
MusterTensor *muster_variable_peek (MusterVariable *self);

G_END_DECLS
