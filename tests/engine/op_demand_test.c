// SPDX-License-Identifier: Apache-2.0
/* Small graphs that ask for outputs of hundreds of megabytes and far more: each step is refused,
 * and nothing near that is taken on the way. */
#include "tests/engine/fixture.h"

#include <stdio.h>
#include <sys/resource.h>

/* What an op may allocate here, and what the process may have beyond what it has: an allocation
 * that nobody asked the budget about ends the process. */
#define MAX_OP  ((guint64)16 << 20)
#define MAX_ALL ((guint64)256 << 20)

/* The values that a node may name as its inputs. */
static void
add_text (MusterGraphBuilder *b, const char *name, const char *text)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new_string (text);
  muster_graph_builder_constant (b, name, tensor);
}

static void
add_ints (MusterGraphBuilder *b, const char *name, MusterDType dtype, int n_dims,
          const gint64 *dims, const gint64 *values)
{
  g_autoptr (MusterTensor) tensor = muster_tensor_new (dtype, n_dims, dims);
  for (gint64 i = 0; i < muster_tensor_n_elements (tensor); i++)
    if (dtype == MUSTER_INT64)
      ((gint64 *)muster_tensor_data_mutable (tensor))[i] = values[i];
    else
      ((gint32 *)muster_tensor_data_mutable (tensor))[i] = (gint32)values[i];
  muster_graph_builder_constant (b, name, tensor);
}

static void
add_fill (MusterGraphBuilder *b, const char *name, const char *dims, const char *value,
          MusterDType dtype)
{
  muster_graph_builder_node (b, "Fill", name);
  muster_graph_builder_input (b, dims);
  muster_graph_builder_input (b, value);
  muster_graph_builder_attr_type (b, "T", dtype);
  muster_graph_builder_attr_type (b, "index_type", MUSTER_INT32);
}

#define HUGE_N ((gint64)1 << 40)

static void
add_values (MusterGraphBuilder *b)
{
  g_autofree char *long_text = g_strnfill (10000, 'a');
  static const gint64 one[] = {1}, none[] = {0};
  add_text (b, "text", long_text);
  add_text (b, "short", "b");
  add_text (b, "nothing", "");
  add_text (b, "letter", "a");
  add_constant (b, "float", 1.5f);
  add_ints (b, "zero", MUSTER_INT32, 0, NULL, (const gint64[]){0});
  add_ints (b, "axis", MUSTER_INT32, 1, one, (const gint64[]){0});
  add_ints (b, "one", MUSTER_INT32, 0, NULL, (const gint64[]){1});
  add_ints (b, "long", MUSTER_INT32, 0, NULL, (const gint64[]){10000});
  add_ints (b, "n", MUSTER_INT32, 0, NULL, (const gint64[]){1000000000});
  add_ints (b, "many", MUSTER_INT32, 1, one, (const gint64[]){30000});
  add_ints (b, "million", MUSTER_INT32, 1, one, (const gint64[]){1000000});
  add_ints (b, "column", MUSTER_INT32, 1, (const gint64[]){2}, (const gint64[]){1000000, 1});
  add_ints (b, "row", MUSTER_INT32, 1, (const gint64[]){2}, (const gint64[]){1, 1000000});
  add_ints (b, "huge", MUSTER_INT64, 1, one, (const gint64[]){HUGE_N});
  add_ints (b, "huge_scalar", MUSTER_INT64, 0, NULL, (const gint64[]){HUGE_N});
  add_ints (b, "zero64", MUSTER_INT64, 0, NULL, (const gint64[]){0});
  add_ints (b, "one64", MUSTER_INT64, 0, NULL, (const gint64[]){1});
  add_ints (b, "index", MUSTER_INT64, 1, one, (const gint64[]){0});
  add_ints (b, "indices", MUSTER_INT64, 2, (const gint64[]){1, 1}, (const gint64[]){0});
  add_ints (b, "pads", MUSTER_INT64, 2, (const gint64[]){1, 2}, (const gint64[]){0, HUGE_N});
  add_ints (b, "huge_shape", MUSTER_INT64, 1, (const gint64[]){2}, (const gint64[]){HUGE_N, 3});
  add_ints (b, "no_rows", MUSTER_INT64, 2, (const gint64[]){0, 2}, none);
  add_ints (b, "no_values", MUSTER_INT64, 1, none, none);
  add_ints (b, "empty", MUSTER_INT32, 2, (const gint64[]){HUGE_N, 0}, none);
  add_fill (b, "texts", "many", "text", MUSTER_STRING);
  add_fill (b, "floats", "million", "float", MUSTER_FLOAT);
  add_fill (b, "tall", "column", "float", MUSTER_FLOAT);
  add_fill (b, "wide", "row", "float", MUSTER_FLOAT);
  add_fill (b, "places", "million", "zero", MUSTER_INT32);
}

/* inputs are apart by blanks; so are the attributes, KIND:NAME=VALUE, the kinds t (a dtype), i, b,
 * s, T (one dtype, as a list) and S (a shape of one size). */
typedef struct {
  const char *op, *inputs, *attributes;
} Demand;

static MusterDType
dtype_of (const char *name)
{
  for (int dtype = 1; dtype < 24; dtype++)
    if (g_str_equal (muster_dtype_name ((MusterDType)dtype), name))
      return (MusterDType)dtype;
  g_error ("no dtype %s", name);
}

static void
add_attribute (MusterGraphBuilder *b, const char *text)
{
  g_auto (GStrv) halves = g_strsplit (text + 2, "=", 2);
  const char *name = halves[0], *value = halves[1];
  MusterDType dtype;
  gint64 size;
  switch (text[0]) {
  case 't':
    muster_graph_builder_attr_type (b, name, dtype_of (value));
    return;
  case 'T':
    dtype = dtype_of (value);
    muster_graph_builder_attr_types (b, name, &dtype, 1);
    return;
  case 'i':
    muster_graph_builder_attr_int (b, name, g_ascii_strtoll (value, NULL, 10));
    return;
  case 'b':
    muster_graph_builder_attr_bool (b, name, value[0] == '1');
    return;
  case 'S':
    size = g_ascii_strtoll (value, NULL, 10);
    muster_graph_builder_attr_shape (b, name, 1, &size);
    return;
  default:
    muster_graph_builder_attr_string (b, name, value);
  }
}

static void
add_demand (MusterGraphBuilder *b, const Demand *demand, const char *name)
{
  g_auto (GStrv) inputs = g_strsplit (demand->inputs, " ", -1);
  g_auto (GStrv) attributes = g_strsplit (demand->attributes, " ", -1);
  muster_graph_builder_node (b, demand->op, name);
  for (char **input = inputs; *input != NULL; input++)
    if (**input != '\0')
      muster_graph_builder_input (b, *input);
  for (char **attribute = attributes; *attribute != NULL; attribute++)
    if (**attribute != '\0')
      add_attribute (b, *attribute);
}

static const Demand demands[] = {
    /* texts: 300 MB of 10 KB */
    {"StringJoin", "texts short", "i:N=2 s:separator=-"},
    {"StringLower", "texts", ""},
    {"StringUpper", "texts", "s:encoding=utf-8"},
    {"StringStrip", "texts", ""},
    {"EncodeBase64", "texts", "b:pad=1"},
    {"DecodeBase64", "texts", ""},
    {"Substr", "texts zero long", "t:T=int32"},
    {"ReduceJoin", "texts axis", ""},
    {"StaticRegexReplace", "texts", "s:pattern=a s:rewrite=bbb"},
    {"StaticRegexReplace", "texts",
     "s:pattern=a s:rewrite=\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0"},
    {"RegexReplace", "texts short short", ""},
    {"AsString", "floats", "t:T=float i:width=10000"},
    {"AsString", "texts", "t:T=string i:width=10000"},
    {"SerializeTensor", "texts", "t:T=string"},
    {"TensorSummary", "texts", "t:T=string"},
    {"StringFormat", "texts", "T:T=string i:summarize=-1"},
    {"StringSplit", "texts nothing", ""},
    {"StringSplitV2", "texts letter", ""},
    {"DecodeRaw", "texts", "t:out_type=uint8"},
    {"ScalarSummary", "texts tags_values", "t:T=float"},
    {"DecodeCSV", "texts nothing", "T:OUT_TYPE=string"},
    /* numbers */
    {"Fill", "huge short", "t:T=string t:index_type=int64"},
    {"Fill", "huge float", "t:T=float t:index_type=int64"},
    {"Tile", "floats huge", "t:T=float t:Tmultiples=int64"},
    {"BroadcastTo", "float huge", "t:T=float t:Tidx=int64"},
    {"Range", "zero64 huge_scalar one64", "t:Tidx=int64"},
    {"LinSpace", "float float n", "t:T=float t:Tidx=int32"},
    {"OneHot", "places n float float", "t:T=float t:TI=int32"},
    {"Pad", "floats pads", "t:T=float t:Tpaddings=int64"},
    {"PadV2", "floats pads float", "t:T=float t:Tpaddings=int64"},
    {"RandomUniform", "huge", "t:dtype=float t:T=int64"},
    {"TruncatedNormal", "huge", "t:dtype=float t:T=int64"},
    {"Multinomial", "wide n", "t:T=float t:output_dtype=int64"},
    {"ScatterNd", "indices one_float huge", "t:T=float t:Tindices=int64"},
    {"SparseToDense", "index huge one_float float", "t:T=float t:Tindices=int64"},
    {"UnsortedSegmentSum", "one_float index n", "t:T=float t:Tindices=int64 t:Tnumsegments=int32"},
    {"Bincount", "places n floats", "t:T=float"},
    {"Diag", "floats", "t:T=float"},
    {"MatrixDiag", "floats", "t:T=float"},
    {"MatMul", "tall wide", "t:T=float"},
    {"AddV2", "tall wide", "t:T=float"},
    {"Less", "tall wide", "t:T=float"},
    {"GatherV2", "wide places zero", "t:Tparams=float t:Tindices=int32 t:Taxis=int32"},
    {"Gather", "wide places", "t:Tparams=float t:Tindices=int32"},
    {"HistogramFixedWidth", "floats range n", "t:T=float t:dtype=int32"},
    {"StridedSliceGrad", "huge index index index float",
     "t:T=float t:Index=int64 i:shrink_axis_mask=1"},
    {"UniformCandidateSampler", "no_rows",
     "i:num_true=2 i:num_sampled=1000000000000 b:unique=0 i:range_max=5"},
    {"LearnedUnigramCandidateSampler", "no_rows",
     "i:num_true=2 i:num_sampled=1 b:unique=0 i:range_max=2000000000"},
    {"SparseFillEmptyRows", "no_rows no_values huge_shape zero64", "t:T=int64"},
    {"SparseToSparseSetOperation", "no_rows no_values huge_shape no_rows no_values huge_shape",
     "t:T=int64 s:set_operation=union"},
    {"SetSize", "no_rows no_values huge_shape", "t:T=int64"},
    {"ParseTensor", "proto", "t:out_type=float"},
    {"SparseTensorDenseMatMul", "no_rows no_floats huge_shape three_wide", "t:T=float"},
    {"DynamicPartition", "one_float axis", "t:T=float i:num_partitions=65536"},
};

/* A TensorProto of a dozen bytes: 2^28 floats, all the same. */
static void
add_quiesce (MusterGraphBuilder *b)
{
  static const char whole[] = "\x08\1\x12\x08\x12\6\x08\x80\x80\x80\x80\1\x2a\4\0\0\x80\x3f";
  const MusterString string = {whole, sizeof whole - 1};
  g_autoptr (MusterTensor) message = muster_tensor_new_strings (0, NULL, &string);
  const float values[] = {0, 1, 2};
  g_autoptr (MusterTensor) one =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, (const gint64[]){1}, values, 4, NULL);
  g_autoptr (MusterTensor) range =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, (const gint64[]){2}, values, 8, NULL);
  g_autoptr (MusterTensor) none =
      muster_tensor_new_from_data (MUSTER_FLOAT, 1, (const gint64[]){0}, values, 0, NULL);
  g_autoptr (MusterTensor) three =
      muster_tensor_new_from_data (MUSTER_FLOAT, 2, (const gint64[]){3, 1}, values, 12, NULL);
  muster_graph_builder_constant (b, "proto", message);
  muster_graph_builder_constant (b, "one_float", one);
  muster_graph_builder_constant (b, "range", range);
  muster_graph_builder_constant (b, "no_floats", none);
  muster_graph_builder_constant (b, "three_wide", three);
  add_fill (b, "tags_values", "many", "float", MUSTER_FLOAT);
}

static MusterMaster *
bounded_master (void)
{
  return muster_local_master_new_with (NULL, MAX_OP);
}

/* From here on larger allocations fail; not under a sanitizer, whose own are larger. */
static void
bound_memory (void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  unsigned long n_pages = 0;
  FILE *file = fopen ("/proc/self/statm", "r");
  MUSTER_ASSERT_TRUE (file != NULL && fscanf (file, "%lu", &n_pages) == 1);
  fclose (file);
  struct rlimit limit;
  getrlimit (RLIMIT_AS, &limit);
  limit.rlim_cur = (rlim_t)n_pages * 4096 + MAX_ALL;
  setrlimit (RLIMIT_AS, &limit);
#endif
}

static void
expect_refused (MusterSession *session, const char *fetch, const char *what)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterTensor) made = run_one (session, NULL, NULL, fetch, &error);
  MUSTER_TRACE ("%s", what);
  MUSTER_EXPECT_NULL (made);
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}

MUSTER_TEST (SmallGraph, that_asks_for_too_much_is_refused)
{
  g_autoptr (MusterMaster) master = bounded_master ();
  bound_memory ();
  for (gsize i = 0; i < G_N_ELEMENTS (demands); i++) {
    g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
    add_values (b);
    add_quiesce (b);
    add_demand (b, &demands[i], "asked");
    g_autoptr (MusterSession) session = open_session (master, b);
    expect_refused (session, "asked:0", demands[i].op);
  }
}

MUSTER_TEST (SmallGraph, that_tiles_two_joined_strings_is_refused)
{
  static const Demand joined = {"StringJoin", "text text", "i:N=2"};
  static const Demand packed = {"Pack", "joined short", "i:N=2 t:T=string i:axis=0"};
  static const Demand tiled = {"Tile", "packed million", "t:T=string t:Tmultiples=int32"};
  g_autoptr (MusterMaster) master = bounded_master ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_values (b);
  add_demand (b, &joined, "joined");
  add_demand (b, &packed, "packed");
  add_demand (b, &tiled, "asked");
  g_autoptr (MusterSession) session = open_session (master, b);
  bound_memory ();
  expect_refused (session, "asked:0", "Tile");
}

/* What is kept for each output is more than the bytes that ask for it. */
MUSTER_TEST (SmallGraph, that_lists_very_many_outputs_is_refused)
{
  enum { N = 20000 };
  g_autofree MusterDType *dtypes = g_new (MusterDType, N);
  g_autoptr (MusterMaster) master = bounded_master ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_values (b);
  muster_graph_builder_node (b, "DecodeCSV", "asked");
  muster_graph_builder_input (b, "nothing");
  for (int i = 0; i < N; i++) {
    dtypes[i] = MUSTER_STRING;
    muster_graph_builder_input (b, "nothing");
  }
  muster_graph_builder_attr_types (b, "OUT_TYPE", dtypes, N);
  g_autoptr (MusterSession) session = open_session (master, b);
  expect_refused (session, "asked:0", "DecodeCSV");
}

/* A few bytes in a node say that it has 65,536 outputs, and a plan keeps something for each. */
MUSTER_TEST (SmallGraph, whose_nodes_say_that_they_have_very_many_outputs_is_refused)
{
  static const Demand unpack = {"Unpack", "axis", "t:T=int32 i:num=65536"};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = bounded_master ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  const char *target = "all";
  add_values (b);
  for (int i = 0; i < 300; i++) {
    g_autofree char *name = g_strdup_printf ("unpack%d", i);
    add_demand (b, &unpack, name);
  }
  muster_graph_builder_node (b, "NoOp", "all");
  for (int i = 0; i < 300; i++) {
    g_autofree char *name = g_strdup_printf ("^unpack%d", i);
    muster_graph_builder_input (b, name);
  }
  g_autoptr (MusterSession) session = open_session (master, b);
  const MusterStep step = {.targets = &target, .n_targets = 1, .deadline_us = test_deadline ()};
  MUSTER_EXPECT_FALSE (muster_session_run (session, &step, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
}

/* GRegex would change the case of what isn't UTF-8, beyond its end. */
MUSTER_TEST (SmallGraph, whose_rewrite_asks_for_more_than_groups_is_refused)
{
  static const Demand replace = {"StaticRegexReplace", "byte", "s:pattern=[^a] s:rewrite=\\U\\0"};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = bounded_master ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  add_text (b, "byte", "\xfc");
  add_demand (b, &replace, "asked");
  g_autoptr (MusterSession) session = open_session (master, b);
  g_autoptr (MusterTensor) made = run_one (session, NULL, NULL, "asked:0", &error);
  MUSTER_EXPECT_NULL (made);
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "Invalid rewrite: ");
}

/* Each element takes room in the queue, even one of no bytes; first, there is no end of them. */
MUSTER_TEST (SmallGraph, that_enqueues_without_end_is_refused_and_leaves_nothing_behind)
{
  static const Demand queue = {"FIFOQueueV2", "", "T:component_types=int32 i:capacity=-1"};
  static const Demand put = {"QueueEnqueueManyV2", "queue empty", "T:Tcomponents=int32"};
  static const Demand size = {"QueueSizeV2", "queue", ""};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = bounded_master ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  const char *target = "put";
  add_values (b);
  add_demand (b, &queue, "queue");
  add_demand (b, &put, "put");
  add_demand (b, &size, "size");
  g_autoptr (MusterSession) session = open_session (master, b);
  const MusterStep step = {.targets = &target, .n_targets = 1, .deadline_us = test_deadline ()};
  MUSTER_EXPECT_FALSE (muster_session_run (session, &step, NULL, NULL, NULL, &error));
  MUSTER_EXPECT_ERROR (error, MUSTER_ERROR, MUSTER_ERROR_RESOURCE_EXHAUSTED);
  g_autoptr (MusterTensor) n = run_one (session, NULL, NULL, "size:0", NULL);
  MUSTER_ASSERT_NOT_NULL (n);
  MUSTER_EXPECT_EQ (*(const gint32 *)muster_tensor_data (n), 0);
}

/* What a failed assertion says goes over the wire as a header. */
MUSTER_TEST (SmallGraph, that_asserts_with_a_long_text_gets_a_short_error)
{
  static const Demand no = {"Less", "float float", "t:T=float"};
  static const Demand check = {"Assert", "no texts", "T:T=string i:summarize=-1"};
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) master = bounded_master ();
  g_autoptr (MusterGraphBuilder) b = muster_graph_builder_new ();
  const char *target = "check";
  add_values (b);
  add_demand (b, &no, "no");
  add_demand (b, &check, "check");
  g_autoptr (MusterSession) session = open_session (master, b);
  const MusterStep step = {.targets = &target, .n_targets = 1, .deadline_us = test_deadline ()};
  MUSTER_EXPECT_FALSE (muster_session_run (session, &step, NULL, NULL, NULL, &error));
  EXPECT_SAYS (error, MUSTER_ERROR_INVALID_ARGUMENT, "assertion failed:");
  MUSTER_EXPECT_LT (strlen (error->message), 10000u);
}
