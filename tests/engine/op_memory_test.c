// SPDX-License-Identifier: Apache-2.0
/* What an operation allocates comes from its budget. Every op of the registry is run, in the cases
 * that TensorFlow recorded, with a byte less than its outputs take. */
#include "engine/run/registry.h"
#include "engine/run/slots.h"
#include "engine/session/local_master.h"
#include "engine/session/op_tables.h"
#include "graph/graph_builder.h"
#include "tests/engine/golden.h"

/* --- ops that make no output from their budget, and why --- */

typedef enum {
  NONE,
  PROXIES,  /* outputs are memory that is there: they run on no budget at all, too */
  IS_SMALL, /* a number or two, whatever the inputs are: never more than SMALL bytes */
} Reason;

#define SMALL 8

static const struct {
  const char *op;
  Reason reason;
} exceptions[] = {
    {"AccumulatorNumAccumulated", IS_SMALL},
    {"AccumulatorTakeGradient", PROXIES},
    {"CheckNumerics", PROXIES},
    {"CheckNumericsV2", PROXIES},
    {"Const", PROXIES},
    {"DestroyTemporaryVariable", PROXIES},
    {"EnsureShape", PROXIES},
    {"ExpandDims", PROXIES},
    {"GuaranteeConst", PROXIES},
    {"Identity", PROXIES},
    {"IdentityN", PROXIES},
    {"LookupTableSize", IS_SMALL},
    {"LookupTableSizeV2", IS_SMALL},
    {"Merge", IS_SMALL}, /* which input it passes on */
    {"Placeholder", PROXIES},
    {"PlaceholderV2", PROXIES},
    {"PlaceholderWithDefault", PROXIES},
    {"PreventGradient", PROXIES},
    {"QueueDequeue", PROXIES},
    {"QueueDequeueV2", PROXIES},
    {"QueueIsClosed", IS_SMALL},
    {"QueueIsClosedV2", IS_SMALL},
    {"QueueSize", IS_SMALL},
    {"QueueSizeV2", IS_SMALL},
    {"ReadVariableOp", PROXIES},
    {"RefMerge", IS_SMALL},
    {"Reshape", PROXIES},
    {"ResourceAccumulatorNumAccumulated", IS_SMALL},
    {"ResourceAccumulatorTakeGradient", PROXIES},
    {"Snapshot", PROXIES},
    {"SparseAccumulatorTakeGradient", PROXIES},
    {"Squeeze", PROXIES},
    {"StatelessRandomGetAlg", IS_SMALL},
    {"StopGradient", PROXIES},
    {"Switch", PROXIES},
};

/* --- the ops, each with an eye on it --- */

typedef struct {
  const MusterOpEntry *entry; /* the registry's own, whose place another has taken */
  const MusterOp *op;         /* in it */
  gsize limited;              /* invocations that were refused */
  gsize n_seen;               /* invocations in all */
  gsize largest;              /* bytes that one of them made */
  guint in_case;              /* invocations in this run of a case */
  Reason reason;
} Watched;

static GHashTable *watched; /* name to Watched */

/* Which invocation of which op has so little, and what came of it; NULL while they are measured. */
static struct {
  Watched *op;
  guint invocation;
  gsize budget;
  gboolean was_run, was_refused;
  char *said; /* (owned) (nullable) */
} limited;

/* What the ops of a case have made. */
typedef struct {
  Watched *op;
  guint invocation;
  gsize n_bytes;
} Made;
static GArray *made; /* of Made */

static gconstpointer
memory_of (const MusterTensor *tensor)
{
  if (tensor == NULL)
    return NULL;
  return muster_tensor_dtype (tensor) == MUSTER_STRING
             ? (gconstpointer)muster_tensor_strings (tensor)
             : muster_tensor_data (tensor);
}

/* The bytes of outputs that are in none of the inputs' memory. */
static gsize
measure_outputs (MusterKernel *k, gconstpointer *inputs)
{
  gsize n_bytes = 0;
  for (guint32 i = 0; i < k->node->n_outputs; i++) {
    const MusterSlot *slot = muster_kernel_output_slot (k, (int)i);
    gboolean is_new = slot->kind == MUSTER_SLOT_TENSOR;
    for (guint32 j = 0; is_new && j < k->node->n_inputs; j++)
      is_new = inputs[j] == NULL || memory_of (slot->value) != inputs[j];
    if (is_new)
      n_bytes += muster_tensor_n_stored (slot->value);
  }
  return n_bytes;
}

/* In the place of every op. */
static gboolean
watch (MusterKernel *k, GError **error)
{
  Watched *self = g_hash_table_lookup (watched, k->node->op->name);
  const guint invocation = self->in_case++;
  const gboolean is_limited = limited.op == self && limited.invocation == invocation;
  g_autofree gconstpointer *inputs = g_new0 (gconstpointer, k->node->n_inputs + 1);
  g_autoptr (GError) own = NULL;
  for (guint32 i = 0; i < k->node->n_inputs; i++)
    inputs[i] = memory_of (k->inputs[i]);
  if (is_limited)
    k->budget.limit = limited.budget;
  const gboolean ok = self->op->compute (k, &own);
  if (is_limited) {
    limited.was_run = TRUE;
    limited.was_refused = !ok && muster_error_is (own, MUSTER_ERROR_RESOURCE_EXHAUSTED);
    g_free (limited.said);
    limited.said = g_strdup (own != NULL ? own->message : "nothing");
  } else if (ok && limited.op == NULL) {
    const Made one = {self, invocation, measure_outputs (k, inputs)};
    self->n_seen++;
    self->largest = MAX (self->largest, one.n_bytes);
    g_array_append_val (made, one);
  }
  if (own != NULL)
    g_propagate_error (error, g_steal_pointer (&own));
  return ok;
}

static void
watch_all (void)
{
  muster_op_tables_register ();
  g_autoptr (GPtrArray) names = muster_op_names ();
  MusterOp *table = g_new0 (MusterOp, names->len + 1); /* the registry's from here on */
  watched = g_hash_table_new (g_str_hash, g_str_equal);
  made = g_array_new (FALSE, FALSE, sizeof (Made));
  for (guint i = 0; i < names->len; i++) {
    Watched *self = g_new0 (Watched, 1);
    self->entry = muster_op_find_entry (names->pdata[i]);
    self->op = self->entry->op;
    table[i] = *self->op;
    table[i].compute = watch;
    g_hash_table_insert (watched, names->pdata[i], self);
  }
  muster_op_register (table);
}

/* --- the cases --- */

static MusterSession *
open_case (const MusterProtoField *message)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == 2) {
      g_autoptr (GBytes) bytes = g_bytes_new (field.data, field.size);
      g_autoptr (MusterGraph) graph = muster_graph_new (bytes);
      g_autoptr (MusterMaster) master = muster_local_master_new ();
      return muster_master_create_session (master, graph, NULL, MUSTER_WAIT_FOREVER, NULL, NULL);
    }
  return NULL;
}

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

/* All steps, or those up to the invocation that is limited. */
static void
run_steps (const MusterProtoField *message)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  MusterProtoField field;
  g_autoptr (MusterSession) session = open_case (message);
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, watched);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    ((Watched *)value)->in_case = 0;
  while (session != NULL && !limited.was_run && muster_proto_read_field (&reader, &field))
    if (field.number == 3)
      run_step (session, &field);
}

static char *
name_of (const MusterProtoField *message)
{
  MusterProtoReader reader = muster_proto_reader (message->data, message->size);
  MusterProtoField field;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == 1)
      return field_text (&field);
  return g_strdup ("?");
}

static void
fail_case (const MusterProtoField *message, const Made *one, const char *what)
{
  g_autofree char *name = name_of (message);
  MUSTER_FAIL ("%s: %s, whose outputs take %" G_GSIZE_FORMAT " bytes, %s: %s", name,
               one->op->op->name, one->n_bytes, what,
               limited.said != NULL ? limited.said : "it wasn't run again");
}

/* The case again, in which that invocation has a byte too little; or nothing, which is enough for
 * what only passes on. */
static void
run_limited (const MusterProtoField *message, const Made *one)
{
  const gboolean must_fail = one->op->reason == NONE && one->n_bytes > 0;
  limited.op = one->op;
  limited.invocation = one->invocation;
  limited.budget = must_fail ? one->n_bytes - 1 : 0;
  run_steps (message);
  one->op->limited += limited.was_refused;
  if (must_fail && !limited.was_refused)
    fail_case (message, one, "wasn't refused a byte less");
  if (one->op->reason == PROXIES && (limited.was_refused || !limited.was_run))
    fail_case (message, one, "needs a budget, though it only passes on");
  g_clear_pointer (&limited.said, g_free);
  memset (&limited, 0, sizeof limited);
}

/* The first invocation of its op that has made something, or of all if none has. */
static gboolean
is_wanted (const GArray *list, guint i)
{
  const Made *one = &g_array_index (list, Made, i);
  for (guint j = 0; j < list->len; j++) {
    const Made *other = &g_array_index (list, Made, j);
    if (other->op == one->op && j != i &&
        (j < i ? other->n_bytes > 0 || one->n_bytes == 0 : other->n_bytes > 0 && one->n_bytes == 0))
      return FALSE;
  }
  return TRUE;
}

static void
run_case (const MusterProtoField *message)
{
  g_array_set_size (made, 0);
  run_steps (message);
  g_autoptr (GArray) all = g_array_copy (made);
  for (guint i = 0; i < all->len; i++)
    if (is_wanted (all, i))
      run_limited (message, &g_array_index (all, Made, i));
}

/* --- cases that aren't recorded --- */

static void
put_step (GByteArray *message, const char *fetch, const char *target)
{
  g_autoptr (GByteArray) step = g_byte_array_new (), named = g_byte_array_new ();
  muster_proto_put_string (named, 1, fetch);
  if (fetch != NULL)
    muster_proto_put_bytes (step, 2, named->data, named->len);
  muster_proto_put_string (step, 3, target);
  muster_proto_put_bytes (message, 3, step->data, step->len);
}

/* Runs a target (nullable) first, then a fetch. */
static void
run_own_case (const char *name, MusterGraphBuilder *builder, const char *target, const char *fetch)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GByteArray) message = g_byte_array_new ();
  g_autoptr (MusterGraph) graph = muster_graph_builder_end (builder, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  GBytes *bytes = muster_graph_bytes (graph);
  muster_proto_put_string (message, 1, name);
  muster_proto_put_bytes (message, 2, g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  if (target != NULL)
    put_step (message, NULL, target);
  put_step (message, fetch, NULL);
  run_case (&(MusterProtoField){.data = message->data, .size = message->len});
}

static void
run_timestamp (void)
{
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  muster_graph_builder_node (b, "Timestamp", "now");
  run_own_case ("Timestamp", b, NULL, "now:0");
}

static void
add_strings (MusterGraphBuilder *b, const char *name, const char *text, gboolean is_vector)
{
  const char *const texts[] = {text, NULL};
  g_autoptr (MusterTensor) tensor =
      is_vector ? muster_tensor_new_strv (texts) : muster_tensor_new_string (text);
  muster_graph_builder_constant (b, name, tensor);
}

static void
run_restore (void)
{
  static const char *const inputs[] = {"prefix", "names", "slices", "values"};
  const MusterDType dtype = MUSTER_FLOAT;
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "saved", NULL);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  g_autoptr (MusterTensor) values = muster_tensor_new (MUSTER_FLOAT, 2, (const gint64[]){50, 2});
  memset (muster_tensor_data_mutable (values), 0, muster_tensor_n_bytes (values));
  add_strings (b, "prefix", prefix, FALSE);
  add_strings (b, "names", "v", TRUE);
  add_strings (b, "slices", "", TRUE);
  muster_graph_builder_constant (b, "values", values);
  for (int is_save = 0; is_save < 2; is_save++) {
    muster_graph_builder_node (b, is_save ? "SaveV2" : "RestoreV2", is_save ? "save" : "restore");
    for (int i = 0; i < 3 + is_save; i++)
      muster_graph_builder_input (b, inputs[i]);
    muster_graph_builder_attr_types (b, "dtypes", &dtype, 1);
  }
  run_own_case ("RestoreV2", b, "save", "restore:0");
}

static void
add_numbers (MusterGraphBuilder *b, const char *name, MusterDType dtype, gint64 n)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new (dtype, 1, &n);
  for (gint64 i = 0; i < n && dtype == MUSTER_INT64; i++)
    ((gint64 *)muster_tensor_data_mutable (tensor))[i] = i;
  muster_graph_builder_constant (b, name, tensor);
}

/* What run_restore () saved, for a vocabulary of its size. */
static void
run_warm_start (void)
{
  static const char *const inputs[] = {"prefix", "name", "rows", "columns", "none"};
  g_autofree char *prefix = g_build_filename (muster_test_tmpdir (), "saved", NULL);
  g_autofree char *words = g_build_filename (muster_test_tmpdir (), "words", NULL);
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  MUSTER_ASSERT_TRUE (g_file_set_contents (words, "a\nb\nc\nd\ne\nf\ng\nh\n", -1, NULL));
  add_strings (b, "prefix", prefix, FALSE);
  add_strings (b, "name", "v", FALSE);
  add_strings (b, "words", words, FALSE);
  add_numbers (b, "rows", MUSTER_INT64, 50);
  add_numbers (b, "columns", MUSTER_INT64, 0);
  add_numbers (b, "none", MUSTER_FLOAT, 0);
  muster_graph_builder_node (b, "LoadAndRemapMatrix", "matrix");
  for (gsize i = 0; i < G_N_ELEMENTS (inputs); i++)
    muster_graph_builder_input (b, inputs[i]);
  muster_graph_builder_attr_int (b, "num_rows", 50);
  muster_graph_builder_attr_int (b, "num_cols", 2);
  muster_graph_builder_node (b, "GenerateVocabRemapping", "lines");
  muster_graph_builder_input (b, "words");
  muster_graph_builder_input (b, "words");
  muster_graph_builder_attr_int (b, "num_new_vocab", 8);
  run_own_case ("warm start", b, "lines", "matrix:0");
}

/* --- every op --- */

/* TRUE if it has no outputs but handles and references. */
static gboolean
makes_no_tensor (const MusterOp *op)
{
  const char *at = strstr (op->signature, "->");
  for (at = strchr (at, ':'); at != NULL; at = strchr (at + 1, ':'))
    if (at[1] != '&' && !g_str_has_prefix (at + 1, "resource"))
      return FALSE;
  return TRUE;
}

static void
check_op (const Watched *self)
{
  if (self->reason == PROXIES && self->limited > 0)
    MUSTER_FAIL ("%s doesn't only pass on", self->op->name);
  if (self->reason == IS_SMALL && self->largest > SMALL)
    MUSTER_FAIL ("%s isn't small: %" G_GSIZE_FORMAT " bytes", self->op->name, self->largest);
  if (self->reason == NONE && self->limited == 0 && !makes_no_tensor (self->op))
    MUSTER_FAIL ("%s was never refused its outputs in %" G_GSIZE_FORMAT
                 " invocations; it needs a case in tests/engine/record_*.py, or a reason here",
                 self->op->name, self->n_seen);
}

MUSTER_TEST (op, is_refused_outputs_that_are_larger_than_its_budget)
{
  watch_all ();
  for (gsize i = 0; i < G_N_ELEMENTS (exceptions); i++) {
    Watched *self = g_hash_table_lookup (watched, exceptions[i].op);
    MUSTER_ASSERT_TRUE (self != NULL);
    self->reason = exceptions[i].reason;
  }
  MUSTER_EXPECT_GT (golden_run_all (run_case), 1000);
  run_timestamp ();
  run_restore ();
  run_warm_start ();
  g_autoptr (GPtrArray) names = muster_op_names ();
  for (guint i = 0; i < names->len; i++)
    check_op (g_hash_table_lookup (watched, names->pdata[i]));
}
