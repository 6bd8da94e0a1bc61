// SPDX-License-Identifier: Apache-2.0
/* What an operation allocates stays within the process's limit of memory. Every op of the registry
 * is run, in the cases that TensorFlow recorded, with inputs that were made large in several ways,
 * and with a limit below what they take. What is measured is what malloc () has given out: the
 * account can't see what it misses. */
#include "base/memory_account_private.h"
#include "engine/run/registry.h"
#include "engine/run/slots.h"
#include "engine/session/local_master.h"
#include "engine/session/op_tables.h"
#include "graph/buffer_pool_private.h"
#include "graph/tensor_private.h"
#include "tests/engine/golden.h"

#include <malloc.h>
#include <stdlib.h>

/* --- malloc (), measured --- */

static gssize live; /* atomic */
static gssize peak; /* atomic */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define IS_MEASURED FALSE
#else
#define IS_MEASURED TRUE

extern void *__libc_malloc (size_t size);
extern void *__libc_calloc (size_t n, size_t size);
extern void *__libc_realloc (void *memory, size_t size);
extern void *__libc_memalign (size_t alignment, size_t size);
extern void __libc_free (void *memory);

static void
add_live (gpointer memory, int sign)
{
  const gssize now =
      __atomic_add_fetch (&live, sign * (gssize)malloc_usable_size (memory), __ATOMIC_RELAXED);
  gssize most = __atomic_load_n (&peak, __ATOMIC_RELAXED);
  while (now > most &&
         !__atomic_compare_exchange_n (&peak, &most, now, TRUE, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
    ;
}

void *
malloc (size_t size)
{
  void *memory = __libc_malloc (size);
  add_live (memory, 1);
  return memory;
}

void *
calloc (size_t n, size_t size)
{
  void *memory = __libc_calloc (n, size);
  add_live (memory, 1);
  return memory;
}

/* Both blocks are there while one is copied. */
void *
realloc (void *memory, size_t size)
{
  const gsize before = malloc_usable_size (memory);
  void *moved = __libc_realloc (memory, size);
  if (moved == NULL && size > 0)
    return NULL;
  add_live (moved, 1);
  __atomic_sub_fetch (&live, before, __ATOMIC_RELAXED);
  return moved;
}

void *
memalign (size_t alignment, size_t size)
{
  void *memory = __libc_memalign (alignment, size);
  add_live (memory, 1);
  return memory;
}

void *
aligned_alloc (size_t alignment, size_t size)
{
  return memalign (alignment, size);
}

int
posix_memalign (void **memory, size_t alignment, size_t size)
{
  *memory = memalign (alignment, size);
  return *memory != NULL ? 0 : ENOMEM;
}

void
free (void *memory)
{
  add_live (memory, -1);
  __libc_free (memory);
}
#endif

/* --- large inputs --- */

/* The bytes of a large input, what may be taken beside the inputs, and what may be missed: other
 * threads' small amounts (base/memory_account_private.h), errors, what malloc () rounds up. */
#define LARGE ((gsize)512 << 10)
#define ROOM  ((gsize)192 << 10)
#define SLACK ((gsize)96 << 10)
#define A_LOT ((gsize)16 << 10)

/* How often to repeat an input, so that it is LARGE. */
static gint64
n_times (const MusterTensor *x)
{
  return (gint64)(LARGE / MAX (muster_tensor_n_stored (x), 16));
}

static gboolean
can_repeat (const MusterTensor *x)
{
  const MusterDType dtype = muster_tensor_dtype (x);
  return muster_tensor_n_dims (x) > 0 && muster_tensor_n_elements (x) > 0 &&
         (dtype == MUSTER_STRING || muster_dtype_size (dtype) > 0);
}

/* n times along an axis. */
static MusterTensor *
repeat (const MusterTensor *x, int axis, gint64 n)
{
  gint64 dims[MUSTER_MAX_DIMS], n_before = 1, n_block = 1;
  const int n_dims = muster_tensor_n_dims (x);
  const gboolean is_string = muster_tensor_dtype (x) == MUSTER_STRING;
  const gsize size =
      is_string ? sizeof (MusterString) : muster_dtype_size (muster_tensor_dtype (x));
  for (int d = 0; d < n_dims; d++) {
    dims[d] = muster_tensor_dims (x)[d];
    *(d < axis ? &n_before : &n_block) *= dims[d];
  }
  dims[axis] *= n;
  const gsize block = (gsize)n_block * size;
  const guint8 *from =
      is_string ? (gconstpointer)muster_tensor_strings (x) : muster_tensor_data (x);
  g_autofree guint8 *all = g_malloc ((gsize)(n_before * n) * block + 1);
  for (gint64 i = 0; i < n_before * n; i++)
    memcpy (all + (gsize)i * block, from + (gsize)(i / n) * block, block);
  if (is_string)
    return muster_tensor_new_strings (n_dims, dims, (const MusterString *)(gpointer)all);
  return muster_tensor_new_from_data (muster_tensor_dtype (x), n_dims, dims, all,
                                      (gsize)(n_before * n) * block, NULL);
}

/* Strings that are that much longer. */
static MusterTensor *
lengthen (const MusterTensor *x)
{
  const gint64 n = muster_tensor_n_elements (x);
  g_autofree MusterString *strings = g_new0 (MusterString, n + 1);
  g_autoptr (GPtrArray) texts = g_ptr_array_new_with_free_func (g_free);
  for (gint64 i = 0; i < n; i++) {
    const MusterString own = muster_tensor_string (x, i);
    const gsize times = own.size > 0 ? LARGE / (gsize)n / own.size + 1 : 0;
    char *text = g_malloc (times * own.size + 1);
    for (gsize j = 0; j < times; j++)
      memcpy (text + j * own.size, own.data, own.size);
    g_ptr_array_add (texts, text);
    strings[i] = (MusterString){text, times * own.size};
  }
  return muster_tensor_new_strings (muster_tensor_n_dims (x), muster_tensor_dims (x), strings);
}

/* With a large number in one place: a size, an index, a count. */
static MusterTensor *
with_number (const MusterTensor *x, gint64 place, gint64 number)
{
  MusterTensor *copy = muster_tensor_new_from_data (
      muster_tensor_dtype (x), muster_tensor_n_dims (x), muster_tensor_dims (x),
      muster_tensor_data (x), muster_tensor_n_bytes (x), NULL);
  if (muster_tensor_dtype (x) == MUSTER_INT32)
    ((gint32 *)muster_tensor_data_mutable (copy))[place] = (gint32)number;
  else
    ((gint64 *)muster_tensor_data_mutable (copy))[place] = number;
  return copy;
}

#define N_NUMBERS 4
#define NUMBER    (1 << 17)

typedef enum { ROWS, FIRST_AXIS, LAST_AXIS, LONGER, NUMBERS, N_WAYS = NUMBERS + N_NUMBERS } Way;

/* (transfer full); NULL if the input can't be made large that way. like (nullable): whose first
 * axis it must share, to be repeated as often. */
static MusterTensor *
enlarge (const MusterTensor *x, Way way, const MusterTensor *like)
{
  const MusterDType dtype = muster_tensor_dtype (x);
  const int n_dims = muster_tensor_n_dims (x);
  const gboolean is_int = dtype == MUSTER_INT32 || dtype == MUSTER_INT64;
  if (way == LONGER)
    return dtype == MUSTER_STRING ? lengthen (x) : NULL;
  if (way >= NUMBERS)
    return is_int && way - NUMBERS < muster_tensor_n_elements (x)
               ? with_number (x, way - NUMBERS, NUMBER)
               : NULL;
  if (!can_repeat (x) || (way == LAST_AXIS && n_dims == 1))
    return NULL;
  if (way == ROWS)
    return like != NULL && muster_tensor_dims (like)[0] == muster_tensor_dims (x)[0]
               ? repeat (x, 0, n_times (like))
               : NULL;
  return repeat (x, way == FIRST_AXIS ? 0 : n_dims - 1, n_times (x));
}

/* --- the ops, each tried in its cases --- */

typedef struct {
  const MusterOp *op;
  guint n_cases; /* that it was tried in */
  gsize largest; /* what it has taken in one of them */
} Watched;

/* An op is tried in more cases until it has taken a lot. */
#define ENOUGH_CASES 2
#define MAX_CASES    1000

static GHashTable *watched; /* name to Watched */

static void
try_op (MusterKernel *k, Watched *self, const char *what)
{
  g_autoptr (GError) error = NULL;
  muster_buffer_pool_empty ();
  muster_memory_set_limit (muster_memory_used_in_all () + ROOM);
  const gssize before = __atomic_load_n (&live, __ATOMIC_RELAXED);
  __atomic_store_n (&peak, before, __ATOMIC_RELAXED);
  k->budget = (MusterBudget){.limit = (gsize)1 << 40};
  (void)self->op->compute (k, &error);
  muster_budget_clear (&k->budget);
  muster_memory_set_limit (0);
  const gsize taken = (gsize)(__atomic_load_n (&peak, __ATOMIC_RELAXED) - before);
  self->largest =
      MAX (self->largest, muster_error_is (error, MUSTER_ERROR_RESOURCE_EXHAUSTED) ? ROOM : taken);
  if (taken > ROOM + SLACK)
    MUSTER_FAIL (
        "%s, %s, has taken %" G_GSIZE_FORMAT " bytes, with a limit of %" G_GSIZE_FORMAT ": %s",
        self->op->name, what, taken, ROOM, error != NULL ? error->message : "it succeeded");
}

/* The value of an input, also of a variable (transfer full); NULL if it has none. */
static MusterTensor *
value_of (MusterKernel *k, guint32 i)
{
  const MusterSlot *slot = muster_kernel_input_slot (k, (int)i);
  if (k->inputs[i] != NULL)
    return muster_tensor_ref (k->inputs[i]);
  return slot->kind == MUSTER_SLOT_REF || slot->kind == MUSTER_SLOT_RESOURCE
             ? muster_variable_read (slot->value)
             : NULL;
}

static void
set_value (MusterKernel *k, guint32 i, MusterTensor *value)
{
  if (k->inputs[i] != NULL)
    k->inputs[i] = value;
  else if (value != NULL)
    muster_variable_assign (muster_kernel_variable (k, (int)i), value);
}

/* The one among the inputs whose rows are to be repeated; others may have as many. */
static const MusterTensor *
find_rows (const GPtrArray *values)
{
  const MusterTensor *most = NULL;
  for (guint i = 0; i < values->len; i++) {
    const MusterTensor *x = values->pdata[i];
    if (x != NULL && can_repeat (x) &&
        (most == NULL || muster_tensor_n_stored (x) > muster_tensor_n_stored (most)))
      most = x;
  }
  return most;
}

/* Leaves the kernel as it was. */
static void
undo (MusterKernel *k, const GPtrArray *values, MusterTensor *const *inputs, guint32 n_held)
{
  for (guint32 i = 0; i < k->node->n_outputs; i++)
    muster_slot_clear (muster_kernel_output_slot (k, (int)i));
  for (; k->n_held > n_held; k->n_held--)
    muster_tensor_unref (k->held[k->n_held - 1]);
  k->has_random = FALSE;
  memcpy (k->inputs, inputs, k->node->n_inputs * sizeof *inputs);
  for (guint32 i = 0; i < k->node->n_inputs; i++)
    set_value (k, i, values->pdata[i]);
}

/* With input `only` made large, or all of them. */
static gboolean
try_way (MusterKernel *k, Watched *self, Way way, int only)
{
  static const char *const names[] = {"with more rows", "repeated", "widened", "lengthened",
                                      "with a large number"};
  const guint32 n = k->node->n_inputs, n_held = k->n_held;
  g_autofree MusterTensor **inputs = g_memdup2 (k->inputs, n * sizeof *inputs);
  g_autoptr (GPtrArray) values =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  g_autoptr (GPtrArray) large =
      g_ptr_array_new_with_free_func ((GDestroyNotify)muster_tensor_unref);
  for (guint32 i = 0; i < n; i++)
    g_ptr_array_add (values, value_of (k, i));
  const MusterTensor *rows = find_rows (values);
  for (guint32 i = 0; i < n; i++) {
    const MusterTensor *value = values->pdata[i];
    const gboolean changes = value != NULL && (only < 0 || (guint32)only == i);
    MusterTensor *changed = changes ? enlarge (value, way, rows) : NULL;
    if (changed == NULL)
      continue;
    set_value (k, i, changed);
    g_ptr_array_add (large, changed);
    if (k->inputs[i] != NULL)
      g_ptr_array_add (large, muster_tensor_ref (changed)); /* it isn't written in place */
  }
  g_autofree char *what = g_strdup_printf ("input %d %s", only, names[MIN (way, NUMBERS)]);
  if (large->len > 0)
    try_op (k, self, what);
  undo (k, values, inputs, n_held);
  return large->len > 0;
}

/* What may wait has tests of its own. */
static gboolean
is_tried_at_all (const Watched *self)
{
  return strstr (self->op->name, "Queue") == NULL && strstr (self->op->name, "Accumulator") == NULL;
}

static gboolean
is_tried (const Watched *self)
{
  return self->n_cases < (self->largest < A_LOT ? MAX_CASES : ENOUGH_CASES) &&
         is_tried_at_all (self);
}

static gboolean
watch (MusterKernel *k, GError **error)
{
  Watched *self = g_hash_table_lookup (watched, k->node->op->name);
  const int n = (int)k->node->n_inputs;
  if (is_tried (self)) {
    gboolean was_large = FALSE;
    for (int way = 0; way < N_WAYS; way++)
      for (int only = -1; only < MIN (n, 8) && (n > 1 || only < 0); only++)
        was_large = try_way (k, self, (Way)way, only) || was_large;
    self->n_cases += was_large;
  }
  k->budget = (MusterBudget){.limit = (gsize)1 << 40};
  return self->op->compute (k, error);
}

static void
watch_all (void)
{
  muster_op_tables_register ();
  g_autoptr (GPtrArray) names = muster_op_names ();
  MusterOp *table = g_new0 (MusterOp, names->len + 1); /* the registry's from here on */
  watched = g_hash_table_new (g_str_hash, g_str_equal);
  for (guint i = 0; i < names->len; i++) {
    Watched *self = g_new0 (Watched, 1);
    self->op = muster_op_find_entry (names->pdata[i])->op;
    table[i] = *self->op;
    table[i].compute = watch;
    g_hash_table_insert (watched, names->pdata[i], self);
  }
  muster_op_register (table);
}

/* --- the cases --- */

static void
run_step (MusterSession *session, const MusterProtoField *field)
{
  g_auto (Step) step;
  step_init (&step);
  read_step (field, &step);
  g_autofree MusterTensor **fetched = g_new0 (MusterTensor *, step.fetches->len + 1);
  (void)golden_run (session, &step, fetched, NULL);
  for (guint i = 0; i < step.fetches->len; i++)
    muster_tensor_unref (fetched[i]);
}

static void
run_case (const MusterProtoField *message)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  MusterProtoField field;
  g_autoptr (MusterSession) session = NULL;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number == 2) {
      g_autoptr (GBytes) bytes = g_bytes_new (field.data, field.size);
      g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
      g_autoptr (MusterMaster) master = muster_local_master_new ();
      session = muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
    }
    if (field.number == 3 && session != NULL)
      run_step (session, &field);
  }
}

/* --- ops that take little with any of these inputs, and why --- */

static const char passes_on[] =
    " Assign AssignVariableOp CheckNumerics CheckNumericsV2 Const DestroyTemporaryVariable "
    "EnsureShape ExpandDims GuaranteeConst Identity IdentityN Merge Placeholder PlaceholderV2 "
    "PlaceholderWithDefault PreventGradient ReadVariableOp RefMerge RefSwitch Reshape Snapshot "
    "Squeeze StopGradient Switch ";
static const char in_place[] = " CountUpTo ResourceCountUpTo ";
/* A shape, a number, a truth, a handle, an error. */
static const char small[] =
    " AddSparseToTensorsMap Assert BroadcastArgs BroadcastGradientArgs ConcatOffset "
    "DestroyResourceOp DisableCopyOnRead "
    "HashTable HashTableV2 IsVariableInitialized LookupTableRemoveV2 LookupTableSize "
    "LookupTableSizeV2 MutableHashTable MutableHashTableOfTensors MutableHashTableOfTensorsV2 "
    "MutableHashTableV2 NoOp Rank Shape ShapeN Size StatelessRandomGetAlg "
    "StatelessRandomGetKeyCounter StatelessRandomGetKeyCounterAlg Timestamp VarHandleOp "
    "VarIsInitializedOp Variable VariableShape VariableV2 ";
/* They read or write files, or their texts and shapes can't be made larger so simply; their outputs
 * are tried in op_memory_test. */
static const char not_tried[] =
    " DiagPart ImageSummary InitializeTableFromTextFile LookupTableExport LookupTableExportV2 "
    "MergeSummary MutableDenseHashTableV2 ParseTensor SparseTensorDenseAdd "
    "SparseToSparseSetOperation TemporaryVariable ";

static gboolean
has (const char *names, const char *name)
{
  g_autofree char *word = g_strdup_printf (" %s ", name);
  return strstr (names, word) != NULL;
}

static void
check_op (const Watched *self)
{
  const char *name = self->op->name;
  const gboolean is_small = has (passes_on, name) || has (in_place, name) || has (small, name) ||
                            has (not_tried, name) || !is_tried_at_all (self);
  if (is_small && self->largest >= A_LOT)
    MUSTER_FAIL ("%s isn't small: %" G_GSIZE_FORMAT " bytes", name, self->largest);
  if (!is_small && self->largest < A_LOT)
    MUSTER_FAIL ("%s has never taken much in %u cases; it needs one in tests/engine/record_*.py, "
                 "or a reason here",
                 name, self->n_cases);
}

MUSTER_TEST (op, takes_no_more_of_the_process_than_the_limit_of_memory_leaves)
{
  if (!IS_MEASURED)
    MUSTER_SKIP ("the sanitizer has a malloc () of its own");
  watch_all ();
  MUSTER_EXPECT_GT (golden_run_all (run_case), 1000);
  g_autoptr (GPtrArray) names = muster_op_names ();
  for (guint i = 0; i < names->len; i++)
    check_op (g_hash_table_lookup (watched, names->pdata[i]));
}
