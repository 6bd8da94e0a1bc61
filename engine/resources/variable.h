// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterVariable is a named place on the master that holds a tensor or nothing. A value is
 * immutable: an assignment swaps the tensor, so a snapshot of the model is a reference per variable
 * (docs/decisions/0004). An update happens in place only while nobody else holds the tensor.
 * Counted; any thread; one lock each. Reference variables (VariableV2) and resource variables
 * (VarHandleOp) are the same thing; is_resource tells which words an error uses. */

typedef struct _MusterVariable MusterVariable;

MusterVariable *muster_variable_ref (MusterVariable *self);
void muster_variable_unref (MusterVariable *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterVariable, muster_variable_unref)

const char *muster_variable_name (MusterVariable *self);
const char *muster_variable_container (MusterVariable *self);
MusterDType muster_variable_dtype (MusterVariable *self);

/* The shape that the variable was declared with: its rank, -1 if unknown, and its sizes (borrowed;
 * -1: unknown). What TensorFlow's Assign compares the first value with. */
int muster_variable_shape (MusterVariable *self, const gint64 **dims);

/* The present value (transfer full), or NULL if it has none. */
MusterTensor *muster_variable_read (MusterVariable *self);
gboolean muster_variable_is_initialized (MusterVariable *self);

/* Swaps the value in; NULL takes it away. */
void muster_variable_assign (MusterVariable *self, MusterTensor *value);

/* Begins an update: takes the lock and returns the value's elements for writing, copied first where
 * somebody else holds the tensor; NULL (and no lock) if there is no value. Shape and dtype can't
 * change. commit ends it. Lock more than one variable with muster_variables_begin_update, which
 * takes the locks in one order for all (address). */
void *muster_variable_begin_update (MusterVariable *self);
void muster_variable_end_update (MusterVariable *self);

/* The same for who goes over all elements anyway: what must be copied first isn't, and *from is
 * where it lies until the update ends (NULL: the elements are there). All of it is to be copied by
 * then, best block by block, each just before it is updated: a model's memory is gone over once and
 * not twice in the first step after a snapshot. */
void *muster_variable_begin_rewrite (MusterVariable *self, const void **from);
gboolean muster_variables_begin_rewrite (MusterVariable *const *variables, int n, void **data,
                                         const void **from);

gboolean muster_variables_begin_update (MusterVariable *const *variables, int n, void **data);
void muster_variables_end_update (MusterVariable *const *variables, int n);

/* Sets FAILED_PRECONDITION in TensorFlow's words for a variable without a value, whichever kind it
 * is. */
void muster_variable_set_uninitialized (MusterVariable *self, GError **error);
/* The same for whoever isn't ReadVariableOp: TensorFlow's other ops say NOT_FOUND of a resource
 * variable, and its optimizers INTERNAL. */
void muster_variable_set_not_found (MusterVariable *self, GError **error);
void muster_variable_set_invalid (MusterVariable *self, GError **error);

/* The value while an update is under way: for its shape; borrowed. */
MusterTensor *muster_variable_peek (MusterVariable *self);

G_END_DECLS
