// SPDX-License-Identifier: Apache-2.0
/* The nodes that keep positions: the variables, and a task's steps. */
#include "train/position/position_step_private.h"

#include "train/position/position_private.h"

static void
begin (MusterPositionNodes *self, const char *op, const char *name, const char *const *inputs)
{
  muster_graph_builder_node (self->builder, op, name);
  muster_graph_builder_device (self->builder, self->device);
  for (; inputs != NULL && *inputs != NULL; inputs++)
    muster_graph_builder_input (self->builder, *inputs);
}
#define INPUTS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void
attr_type (MusterPositionNodes *self, const char *name, MusterDType type)
{
  muster_graph_builder_attr_type (self->builder, name, type);
}

/* Takes value. */
static void
constant (MusterPositionNodes *self, const char *name, MusterTensor *value)
{
  muster_graph_builder_constant (self->builder, name, value);
  muster_graph_builder_device (self->builder, self->device);
  muster_tensor_unref (value);
}

static void
placeholder (MusterPositionNodes *self, const char *name)
{
  muster_graph_builder_placeholder (self->builder, name, MUSTER_INT64, 0, NULL);
  muster_graph_builder_device (self->builder, self->device);
}

/* --- variables --- */

/* The first three are those that a job with a fixed number of tasks has too. */
static const char *const dealt_variables[] = {MUSTER_POSITION_DONE,      MUSTER_POSITION_HOLD,
                                              MUSTER_POSITION_OVER,      MUSTER_POSITION_SLOT_BEGUN,
                                              MUSTER_POSITION_SLOT_DONE, MUSTER_POSITION_NEXT,
                                              MUSTER_POSITION_TAKEN,     NULL};

const char *const *
muster_position_variables (gboolean is_dealt, gsize *n)
{
  static const char *const fixed[] = {MUSTER_POSITION_BEGUN, MUSTER_POSITION_DONE,
                                      MUSTER_POSITION_HOLD, MUSTER_POSITION_OVER, NULL};
  *n = (is_dealt ? G_N_ELEMENTS (dealt_variables) : G_N_ELEMENTS (fixed)) - 1;
  return is_dealt ? dealt_variables : fixed;
}

const char *const *
muster_position_dealt_variables (void)
{
  return dealt_variables + 3;
}

/* Adds the handle of a scalar that no saver knows, and that has no value at first. */
static void
handle (MusterPositionNodes *self, const char *name, const char *device)
{
  muster_graph_builder_node (self->builder, "VarHandleOp", name);
  muster_graph_builder_device (self->builder, device);
  attr_type (self, "dtype", MUSTER_INT64);
  muster_graph_builder_attr_shape (self->builder, "shape", 0, NULL);
  muster_graph_builder_attr_string (self->builder, "container", "");
  muster_graph_builder_attr_string (self->builder, "shared_name", name);
}

/* Adds a resource variable with TensorFlow's names. Takes initial. */
static void
variable_of_shape (MusterPositionNodes *self, const char *name, MusterTensor *initial,
                   const gint64 *dims)
{
  g_autofree char *value = g_strconcat (name, "/initial_value", NULL);
  g_autofree char *assign = g_strconcat (name, "/Assign", NULL);
  g_autofree char *read = g_strconcat (name, "/Read/ReadVariableOp", NULL);

  begin (self, "VarHandleOp", name, NULL);
  attr_type (self, "dtype", MUSTER_INT64);
  muster_graph_builder_attr_shape (self->builder, "shape", muster_tensor_n_dims (initial), dims);
  muster_graph_builder_attr_string (self->builder, "container", "");
  muster_graph_builder_attr_string (self->builder, "shared_name", name);
  constant (self, value, initial);
  begin (self, "AssignVariableOp", assign, INPUTS (name, value));
  attr_type (self, "dtype", MUSTER_INT64);
  begin (self, "ReadVariableOp", read, INPUTS (name));
  attr_type (self, "dtype", MUSTER_INT64);
}

static void
variable (MusterPositionNodes *self, const char *name, MusterTensor *initial)
{
  variable_of_shape (self, name, initial, muster_tensor_dims (initial));
}

static MusterTensor *
filled (gint64 n, gint64 value)
{
  MusterTensor *tensor = muster_tensor_new (MUSTER_INT64, 1, &n);
  gint64 *numbers = muster_tensor_data_mutable (tensor);
  for (gint64 i = 0; i < n; i++)
    numbers[i] = value;
  return tensor;
}

/* Adds a scalar variable and an op that sets it to the value fed to NAME/value. */
static void
settable (MusterPositionNodes *self, const char *name, const char *set, gint64 initial)
{
  g_autofree char *value = g_strconcat (name, "/value", NULL);

  variable (self, name, muster_tensor_new_int64 (initial));
  placeholder (self, value);
  begin (self, "AssignVariableOp", set, INPUTS (name, value));
  attr_type (self, "dtype", MUSTER_INT64);
}

/* A dealt model has what a job with a fixed number of tasks has done as that job saved it, whatever
 * their number: a checkpoint of that job restores it. A new job has done nothing as one task. */
static void
add_dealt_variables (MusterPositionNodes *self)
{
  static const gint64 any_number = -1;
  variable_of_shape (self, MUSTER_POSITION_DONE, filled (1, 0), &any_number);
  variable (self, MUSTER_POSITION_SLOT_BEGUN, filled (self->n_tasks, 0));
  variable (self, MUSTER_POSITION_SLOT_DONE, filled (self->n_tasks, 0));
  variable (self, MUSTER_POSITION_NEXT, muster_tensor_new_int64 (0));
  variable (self, MUSTER_POSITION_TAKEN, filled (self->n_tasks, MUSTER_POSITION_NOTHING));
}

static void
add_variables (MusterPositionNodes *self)
{
  if (self->is_dealt) {
    add_dealt_variables (self);
  } else {
    variable (self, MUSTER_POSITION_BEGUN, filled (self->n_tasks, 0));
    variable (self, MUSTER_POSITION_DONE, filled (self->n_tasks, 0));
  }
  /* No task steps before the chief allows it. */
  settable (self, MUSTER_POSITION_HOLD, MUSTER_POSITION_SET_HOLD, MUSTER_POSITION_WAIT);
  settable (self, MUSTER_POSITION_OVER, MUSTER_POSITION_SET_OVER, 0);
}

/* --- what every step begins with --- */

static const char *
begun_of (const MusterPositionNodes *self)
{
  return self->is_dealt ? MUSTER_POSITION_SLOT_BEGUN : MUSTER_POSITION_BEGUN;
}

static void
gather (MusterPositionNodes *self, const char *name, const char *counts, const char *after)
{
  begin (self, "ResourceGather", name, INPUTS (counts, "muster/task", after));
  attr_type (self, "dtype", MUSTER_INT64);
  attr_type (self, "Tindices", MUSTER_INT64);
  muster_graph_builder_attr_int (self->builder, "batch_dims", 0);
  muster_graph_builder_attr_bool (self->builder, "validate_indices", TRUE);
}

/* Adds a check that fails unless the two are equal. */
static void
check (MusterPositionNodes *self, const char *name, const char *is, const char *should_be)
{
  static const MusterDType types[] = {MUSTER_STRING, MUSTER_INT64, MUSTER_STRING, MUSTER_INT64,
                                      MUSTER_INT64};
  g_autofree char *equal = g_strconcat (name, "/is_equal", NULL);

  begin (self, "Equal", equal, INPUTS (is, should_be));
  attr_type (self, "T", MUSTER_INT64);
  begin (self, "Assert", name,
         INPUTS (equal, "muster/step/what", "muster/task", "muster/step/why", is, should_be));
  muster_graph_builder_attr_types (self->builder, "T", types, G_N_ELEMENTS (types));
  muster_graph_builder_attr_int (self->builder, "summarize", 3);
}

/* Counts one for the task. */
static void
count (MusterPositionNodes *self, const char *name, const char *what, const char *const *after)
{
  begin (self, "AssignAddVariableOp", name, INPUTS (what, "muster/step/one_hot"));
  for (; *after != NULL; after++)
    muster_graph_builder_input (self->builder, *after);
  attr_type (self, "dtype", MUSTER_INT64);
}

static void
add_inputs (MusterPositionNodes *self)
{
  placeholder (self, "muster/task");
  placeholder (self, MUSTER_POSITION_PLACEHOLDER);
  constant (self, "muster/step/what", muster_tensor_new_string (MUSTER_POSITION_REFUSED));
  constant (self, "muster/step/why",
            muster_tensor_new_string ("whose position is another than that of the step (another "
                                      "process runs as the same task, or did just now):"));
  constant (self, "muster/step/one", muster_tensor_new_int64 (1));
  constant (self, "muster/step/zero", muster_tensor_new_int64 (0));
  constant (self, "muster/step/n_tasks", muster_tensor_new_int32 ((gint32)self->n_tasks));
  begin (self, "OneHot", "muster/step/one_hot",
         INPUTS ("muster/task", "muster/step/n_tasks", "muster/step/one", "muster/step/zero"));
  attr_type (self, "T", MUSTER_INT64);
  attr_type (self, "TI", MUSTER_INT64);
  muster_graph_builder_attr_int (self->builder, "axis", -1);
}

/* Adds a check that fails while the chief restores the model. */
static void
check_open (MusterPositionNodes *self, const char *name, const char *after)
{
  static const MusterDType types[] = {MUSTER_STRING, MUSTER_INT64, MUSTER_STRING};
  g_autofree char *restoring = g_strconcat (name, "/is_restoring", NULL);
  g_autofree char *open = g_strconcat (name, "/is_open", NULL);

  begin (self, "VarIsInitializedOp", restoring, INPUTS (MUSTER_POSITION_RESTORING, after));
  begin (self, "LogicalNot", open, INPUTS (restoring));
  begin (self, "Assert", name,
         INPUTS (open, "muster/step/what", "muster/task", "muster/step/why_restoring"));
  muster_graph_builder_attr_types (self->builder, "T", types, G_N_ELEMENTS (types));
  muster_graph_builder_attr_int (self->builder, "summarize", 3);
}

/* A step that has begun goes on: the chief waits for it. */
static void
take_fence_off (MusterPositionNodes *self, const char *name, const char *count)
{
  constant (self, "muster/step/fence", muster_tensor_new_int64 (MUSTER_POSITION_FENCED));
  begin (self, "FloorMod", name, INPUTS (count, "muster/step/fence"));
  attr_type (self, "T", MUSTER_INT64);
}

/* A task's last step has ended, whoever counts it as done, and no restore is under way: not before
 * the step is counted, so that a refused one changes nothing, nor after it. */
static void
add_fenced_beginning (MusterPositionNodes *self)
{
  handle (self, MUSTER_POSITION_RESTORING, self->device);
  constant (self, "muster/step/why_restoring",
            muster_tensor_new_string ("since the chief restores the model"));
  check_open (self, "muster/step/is_whole", NULL);
  gather (self, "muster/step/ended", MUSTER_POSITION_DONE, NULL);
  check (self, "muster/step/is_settled", "muster/step/ended", "muster/position");
  count (self, "muster/step/begin", MUSTER_POSITION_BEGUN,
         INPUTS ("^muster/step/is_next", "^muster/step/is_settled", "^muster/step/is_whole"));
  check_open (self, "muster/step/is_whole_still", "^muster/step/begin");
}

/* Counters are updated as whole variables, since TensorFlow updates single elements without a lock.
 * A task's position is checked before the update, so that a stray process changes nothing, and
 * after it, so that at most one of two concurrent ones writes. */
static void
add_beginning (MusterPositionNodes *self)
{
  add_inputs (self);
  gather (self, "muster/step/before", begun_of (self), NULL);
  check (self, "muster/step/is_next", "muster/step/before", "muster/position");
  if (self->has_fence)
    add_fenced_beginning (self);
  else
    count (self, "muster/step/begin", begun_of (self), INPUTS ("^muster/step/is_next"));
  gather (self, "muster/step/after", begun_of (self), "^muster/step/begin");
  if (self->has_fence)
    take_fence_off (self, "muster/step/counted", "muster/step/after");
  begin (self, "AddV2", "muster/step/next", INPUTS ("muster/position", "muster/step/one"));
  attr_type (self, "T", MUSTER_INT64);
  check (self, MUSTER_POSITION_BEGUN_STEP,
         self->has_fence ? "muster/step/counted" : "muster/step/after", "muster/step/next");
  if (self->has_fence)
    muster_graph_builder_input (self->builder, "^muster/step/is_whole_still");
}

/* --- how they end --- */

static void
read_hold (MusterPositionNodes *self, const char *name, const char *after)
{
  begin (self, "ReadVariableOp", name, INPUTS (MUSTER_POSITION_HOLD, after));
  attr_type (self, "dtype", MUSTER_INT64);
}

/* What stands in for a reset where each task has a master of its own (position_fence.c). */
static void
add_fence (MusterPositionNodes *self)
{
  begin (self, "AssignVariableOp", MUSTER_POSITION_SET_RESTORING,
         INPUTS (MUSTER_POSITION_RESTORING, "muster/step/one"));
  attr_type (self, "dtype", MUSTER_INT64);
  begin (self, "DestroyResourceOp", MUSTER_POSITION_CLEAR_RESTORING,
         INPUTS (MUSTER_POSITION_RESTORING));
  muster_graph_builder_attr_bool (self->builder, "ignore_lookup_error", TRUE);
  begin (self, "VarIsInitializedOp", "muster/restoring/is_set", INPUTS (MUSTER_POSITION_RESTORING));
  constant (self, "muster/begun/fenced", filled (self->n_tasks, MUSTER_POSITION_FENCED));
  begin (self, "AssignAddVariableOp", MUSTER_POSITION_RAISE_FENCE,
         INPUTS (MUSTER_POSITION_BEGUN, "muster/begun/fenced"));
  attr_type (self, "dtype", MUSTER_INT64);
  count (self, MUSTER_POSITION_FORGET, MUSTER_POSITION_DONE, INPUTS (NULL));
}

/* A mark at the task's own master, which is there as long as its process lives. */
static void
add_mark (MusterPositionNodes *self)
{
  static const char own[] = "/device:CPU:0";
  MusterTensor *one = muster_tensor_new_int64 (1);
  handle (self, MUSTER_POSITION_MARK, own);
  muster_graph_builder_constant (self->builder, "muster/mark/value", one);
  muster_graph_builder_device (self->builder, own);
  muster_tensor_unref (one);
  muster_graph_builder_node (self->builder, "AssignVariableOp", MUSTER_POSITION_SET_MARK);
  muster_graph_builder_device (self->builder, own);
  muster_graph_builder_input (self->builder, MUSTER_POSITION_MARK);
  muster_graph_builder_input (self->builder, "muster/mark/value");
  attr_type (self, "dtype", MUSTER_INT64);
  muster_graph_builder_node (self->builder, "VarIsInitializedOp", "muster/mark/is_set");
  muster_graph_builder_device (self->builder, own);
  muster_graph_builder_input (self->builder, MUSTER_POSITION_MARK);
}

static void
add_fixed_end (MusterPositionNodes *self, const char *train)
{
  if (self->has_fence) {
    add_fence (self);
    add_mark (self);
  }
  count (self, "muster/step/done", MUSTER_POSITION_DONE,
         INPUTS ("^" MUSTER_POSITION_BEGUN_STEP, train));
  read_hold (self, "muster/step/held", "^muster/step/done");
}

/* The next deal, which no other step gets. */
static void
draw (MusterPositionNodes *self, const char *name, const char *const *after)
{
  begin (self, "ResourceCountUpTo", name, INPUTS (MUSTER_POSITION_NEXT));
  for (; *after != NULL; after++)
    muster_graph_builder_input (self->builder, *after);
  attr_type (self, "T", MUSTER_INT64);
  muster_graph_builder_attr_int (self->builder, "limit", G_MAXINT64);
}

/* Ends a step that has after as its last part, puts the tensor deal in the slot's hand, and then
 * counts it as done. No other step writes that element. */
static void
add_dealt_end (MusterPositionNodes *self, const char *prefix, const char *deal,
               const char *const *after)
{
  g_autofree char *take = g_strconcat (prefix, "/take", NULL);
  g_autofree char *after_take = g_strconcat ("^", take, NULL);
  g_autofree char *done = g_strconcat (prefix, "/done", NULL);
  g_autofree char *after_done = g_strconcat ("^", done, NULL);
  g_autofree char *held = g_strconcat (prefix, "/held", NULL);

  begin (self, "ResourceScatterUpdate", take, INPUTS (MUSTER_POSITION_TAKEN, "muster/task", deal));
  for (; *after != NULL; after++)
    muster_graph_builder_input (self->builder, *after);
  attr_type (self, "dtype", MUSTER_INT64);
  attr_type (self, "Tindices", MUSTER_INT64);
  count (self, done, MUSTER_POSITION_SLOT_DONE, INPUTS (after_take));
  read_hold (self, held, after_done);
}

/* What a slot has in hand changes only between its begun and done. So it is what a step at this
 * position trains, if it is read after both and they are equal: had it changed since, begun would
 * have, and the master would refuse the step. */
static void
add_settled_read (MusterPositionNodes *self)
{
  begin (self, "ReadVariableOp", "muster/taken/settled",
         INPUTS (MUSTER_POSITION_TAKEN, "^" MUSTER_POSITION_SLOT_BEGUN "/Read/ReadVariableOp",
                 "^" MUSTER_POSITION_SLOT_DONE "/Read/ReadVariableOp"));
  attr_type (self, "dtype", MUSTER_INT64);
}

/* A step that trains and draws, one that only trains, and one that only draws. */
static void
add_dealt_ends (MusterPositionNodes *self, const char *train)
{
  const char *const *trained = INPUTS ("^" MUSTER_POSITION_BEGUN_STEP, train);
  const char *const *begun = INPUTS ("^" MUSTER_POSITION_BEGUN_STEP);
  draw (self, "muster/step/dealt", trained);
  add_dealt_end (self, "muster/step", "muster/step/dealt", trained);
  constant (self, "muster/last/dealt", muster_tensor_new_int64 (MUSTER_POSITION_NOTHING));
  add_dealt_end (self, "muster/last", "muster/last/dealt", trained);
  draw (self, "muster/draw/dealt", begun);
  add_dealt_end (self, "muster/draw", "muster/draw/dealt", begun);
  add_settled_read (self);
}

/* --- all --- */

static void
add_init (MusterPositionNodes *self, const char *init_op)
{
  g_autoptr (GPtrArray) ops = g_ptr_array_new_with_free_func (g_free);
  gsize n;
  const char *const *variables = muster_position_variables (self->is_dealt, &n);
  g_ptr_array_add (ops, g_strdup (init_op));
  for (gsize i = 0; i < n; i++)
    g_ptr_array_add (ops, g_strconcat (variables[i], "/Assign", NULL));
  g_ptr_array_add (ops, NULL);
  muster_graph_builder_group (self->builder, MUSTER_POSITION_INIT_OP,
                              (const char *const *)ops->pdata);
}

void
muster_position_add_nodes (MusterPositionNodes *self, const char *init_op)
{
  g_autofree char *train = g_strconcat ("^", self->train_op, NULL);

  add_variables (self);
  add_beginning (self);
  if (self->is_dealt)
    add_dealt_ends (self, train);
  else
    add_fixed_end (self, train);
  if (init_op != NULL)
    add_init (self, init_op);
}
