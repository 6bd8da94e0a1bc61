// SPDX-License-Identifier: Apache-2.0
/* Lookup tables: HashTable, which is initialised once, and the mutable ones, in versions 1 and 2.
 */
#include "engine/kernels/common/text.h"
#include "engine/kernels/state/state_op_tables.h"
#include "engine/resources/lookup_text.h"

#include <string.h>

static gboolean
table_fits (gpointer data, const MusterNode *node, GError **error)
{
  const MusterLookupTable *table = data;
  const MusterDType key = muster_node_dtype (node, "key_dtype", MUSTER_INVALID);
  const MusterDType value = muster_node_dtype (node, "value_dtype", MUSTER_INVALID);
  if (key == muster_lookup_table_key_dtype (table) &&
      value == muster_lookup_table_value_dtype (table))
    return TRUE;
  g_autofree char *name = muster_node_string (node, "shared_name");
  return muster_invalid (
      error, "Conflicting key/value dtypes %s->%s with %s-%s for table %s", muster_dtype_name (key),
      muster_dtype_name (value), muster_dtype_name (muster_lookup_table_key_dtype (table)),
      muster_dtype_name (muster_lookup_table_value_dtype (table)), name != NULL ? name : "");
}

static void
table_free (gpointer data)
{
  muster_lookup_table_free (data);
}

static const MusterResourceType table_type = {
    .kind = "tensorflow::lookup::LookupInterface", .fits = table_fits, .free = table_free};

/* Reads the kind of table that the node requests; the caller frees container. */
static gboolean
read_kind (MusterKernel *k, const char *name, MusterLookupKind *kind, char **container,
           GError **error)
{
  const MusterNode *node = muster_kernel_node (k);
  *container = muster_node_string (node, "container");
  *kind = (MusterLookupKind){.is_mutable = strstr (node->kind->op, "Mutable") != NULL,
                             .has_rows = strstr (node->kind->op, "OfTensors") != NULL,
                             .is_dense = strstr (node->kind->op, "Dense") != NULL,
                             .key_dtype = muster_node_dtype (node, "key_dtype", MUSTER_INVALID),
                             .value_dtype = muster_node_dtype (node, "value_dtype", MUSTER_INVALID),
                             .container = *container != NULL && **container != '\0' ? *container
                                                                                    : "localhost",
                             .name = name};
  if (!muster_lookup_kind_is_known (kind)) {
    g_autofree char *key = g_ascii_strup (muster_dtype_name (kind->key_dtype), -1);
    g_autofree char *value = g_ascii_strup (muster_dtype_name (kind->value_dtype), -1);
    return muster_invalid (error,
                           "No OpKernel was registered to support Op '%s' used by {{node %s}} with "
                           "these attrs: [key_dtype=DT_%s, value_dtype=DT_%s]",
                           node->kind->op, node->name, key, value);
  }
  if (!kind->has_rows && !kind->is_dense)
    return TRUE;
  gint64 dims[MUSTER_MAX_DIMS];
  const int n_dims = muster_node_attr (node, "value_shape") != NULL
                         ? muster_node_shape (node, "value_shape", dims, MUSTER_MAX_DIMS)
                         : 0;
  kind->has_rows = n_dims != 0 || !kind->is_dense;
  if (!kind->has_rows)
    return TRUE;
  if (n_dims == 1 && dims[0] >= 0 && dims[0] <= G_MAXINT32) {
    kind->n_row = dims[0];
    return TRUE;
  }
  g_autofree char *shape =
      n_dims <= MUSTER_MAX_DIMS ? muster_shape_to_string (n_dims, dims) : g_strdup ("<unknown>");
  return muster_invalid (error,
                         kind->is_dense ? "Empty value must be a scalar or a vector, got shape %s"
                                        : "Default value must be a vector, got shape %s",
                         shape);
}

static gpointer
make_table (const char *name, gpointer user_data, GError **error)
{
  MusterLookupKind kind;
  g_autofree char *container = NULL;
  if (!read_kind (user_data, name, &kind, &container, error))
    return NULL;
  if (!kind.is_dense)
    return muster_lookup_table_new (&kind);
  const MusterDenseSpec spec = {
      .empty_key = muster_kernel_input (user_data, 0),
      .deleted_key = muster_kernel_input (user_data, 1),
      .value_dtype = kind.value_dtype,
      .n_row = kind.has_rows ? kind.n_row : 1,
      .n_buckets = muster_kernel_attr_int (user_data, "initial_num_buckets", 1 << 17),
      .max_load = muster_kernel_attr_float (user_data, "max_load_factor", 0.8f)};
  MusterDenseTable *dense = muster_dense_table_new (&spec, muster_kernel_budget (user_data), error);
  return dense != NULL ? muster_lookup_table_new_dense (&kind, dense) : NULL;
}

static gboolean
compute_table (MusterKernel *k, GError **error)
{
  return muster_kernel_output_resource (k, 0, &table_type, make_table, error);
}

static void
append_dtype (GString *text, MusterDType dtype, const char *before)
{
  g_string_append_printf (text, "%s%s", before, muster_dtype_name (dtype));
}

/* Appends the signature with these dtypes in TensorFlow's notation. */
static void
append_signature (GString *text, const MusterKernel *k, MusterDType key, MusterDType value,
                  gboolean has_value, gboolean has_output)
{
  const gboolean is_reference = !g_str_has_suffix (muster_kernel_node (k)->kind->op, "V2");
  g_string_append (text, is_reference ? "string_ref" : "resource");
  if (key != MUSTER_INVALID)
    append_dtype (text, key, ", ");
  if (has_value)
    append_dtype (text, value, ", ");
  g_string_append (text, "->");
  if (has_output)
    append_dtype (text, value, "");
}

/* The table of input 0. Its keys must have the dtype of input 1, and its values that of input 2, if
 * any. */
static MusterLookupTable *
table_of (MusterKernel *k, gboolean has_output, GError **error)
{
  MusterLookupTable *table = muster_kernel_resource (k, 0, &table_type, error);
  if (table == NULL)
    return NULL;
  const gboolean has_value = muster_kernel_n_inputs (k) > 2;
  const MusterDType key = muster_tensor_dtype (muster_kernel_input (k, 1));
  const MusterDType value =
      has_value ? muster_tensor_dtype (muster_kernel_input (k, 2)) : MUSTER_INVALID;
  const MusterDType own_key = muster_lookup_table_key_dtype (table);
  const MusterDType own_value = muster_lookup_table_value_dtype (table);
  if (key == own_key && (!has_value || value == own_value))
    return table;
  g_autoptr (GString) text = g_string_new ("Signature mismatch, have: ");
  append_signature (text, k, key, value, has_value, has_output);
  g_string_append (text, " expected: ");
  append_signature (text, k, own_key, own_value, has_value, has_output);
  muster_invalid (error, "%s", text->str);
  return NULL;
}

static gboolean
compute_find (MusterKernel *k, GError **error)
{
  MusterLookupTable *table = table_of (k, TRUE, error);
  MusterTensor *found = table != NULL ? muster_lookup_table_find (table, muster_kernel_input (k, 1),
                                                                  muster_kernel_input (k, 2),
                                                                  muster_kernel_budget (k), error)
                                      : NULL;
  if (found == NULL)
    return FALSE;
  muster_kernel_set_output (k, 0, found);
  return TRUE;
}

static gboolean
compute_insert (MusterKernel *k, GError **error)
{
  MusterLookupTable *table = table_of (k, FALSE, error);
  return table != NULL &&
         muster_lookup_table_insert (table, muster_kernel_input (k, 1), muster_kernel_input (k, 2),
                                     muster_kernel_budget (k), error);
}

static gboolean
compute_remove (MusterKernel *k, GError **error)
{
  MusterLookupTable *table = table_of (k, FALSE, error);
  return table != NULL && muster_lookup_table_remove (table, muster_kernel_input (k, 1), error);
}

static gboolean
compute_import (MusterKernel *k, GError **error)
{
  MusterLookupTable *table = table_of (k, FALSE, error);
  return table != NULL &&
         muster_lookup_table_import (table, muster_kernel_input (k, 1), muster_kernel_input (k, 2),
                                     muster_kernel_budget (k), error);
}

static gboolean
compute_export (MusterKernel *k, GError **error)
{
  MusterTensor *keys, *values;
  MusterLookupTable *table = muster_kernel_resource (k, 0, &table_type, error);
  if (table == NULL)
    return FALSE;
  const MusterDType key = muster_kernel_output_dtype (k, 0);
  const MusterDType value = muster_kernel_output_dtype (k, 1);
  if (key != muster_lookup_table_key_dtype (table) ||
      value != muster_lookup_table_value_dtype (table))
    return muster_invalid (error, "Signature mismatch, have: %s, %s expected: %s, %s",
                           muster_dtype_name (key), muster_dtype_name (value),
                           muster_dtype_name (muster_lookup_table_key_dtype (table)),
                           muster_dtype_name (muster_lookup_table_value_dtype (table)));
  if (!muster_lookup_table_export (table, &keys, &values, muster_kernel_budget (k), error))
    return FALSE;
  muster_kernel_set_output (k, 0, keys);
  muster_kernel_set_output (k, 1, values);
  return TRUE;
}

static gboolean
compute_size (MusterKernel *k, GError **error)
{
  MusterLookupTable *table = muster_kernel_resource (k, 0, &table_type, error);
  if (table == NULL)
    return FALSE;
  muster_kernel_set_output (k, 0, muster_tensor_new_int64 (muster_lookup_table_size (table)));
  return TRUE;
}

static gboolean
check_vector (MusterKernel *k, int i, const char *what, GError **error)
{
  if (muster_tensor_n_dims (muster_kernel_input (k, i)) == 1)
    return TRUE;
  g_autofree char *shape = muster_shape_text (muster_kernel_input (k, i));
  return muster_invalid (error, "%s must be a vector, but received shape%s", what, shape);
}

static gboolean
compute_initialize (MusterKernel *k, GError **error)
{
  MusterLookupTable *table = muster_kernel_resource (k, 0, &table_type, error);
  if (table == NULL || !muster_lookup_table_check_static (table, error) ||
      table_of (k, FALSE, error) == NULL || !check_vector (k, 1, "Keys", error) ||
      !check_vector (k, 2, "Values", error))
    return FALSE;
  MusterTensor *keys = muster_kernel_input (k, 1), *values = muster_kernel_input (k, 2);
  const gint64 n_keys = muster_tensor_n_elements (keys);
  const gint64 n_values = muster_tensor_n_elements (values);
  if (n_keys != n_values)
    return muster_invalid (
        error, "Keys and values must have the same size %" G_GINT64_FORMAT " vs %" G_GINT64_FORMAT,
        n_keys, n_values);
  return muster_lookup_table_import (table, keys, values, muster_kernel_budget (k), error);
}

/* The file's name, or NULL with an error. */
static char *
filename_of (MusterKernel *k, GError **error)
{
  MusterTensor *name = muster_kernel_input (k, 1);
  if (muster_tensor_n_dims (name) != 0) {
    g_autofree char *shape = muster_shape_text (name);
    muster_invalid (error, "filename should be a single string, but got %s", shape);
    return NULL;
  }
  const MusterString text = muster_tensor_string (name, 0);
  if (text.size == 0 || memchr (text.data, '\0', text.size) != NULL) {
    muster_invalid (error, "%s",
                    text.size == 0 ? "filename cannot be empty."
                                   : "filename cannot have a NUL character.");
    return NULL;
  }
  return muster_kernel_copy_name (k, text, error);
}

static gboolean
compute_initialize_from_text (MusterKernel *k, GError **error)
{
  g_autofree char *delimiter = muster_node_string (muster_kernel_node (k), "delimiter");
  if (delimiter != NULL && strlen (delimiter) != 1)
    return muster_invalid (error, "delimiter should be only 1 char");
  MusterLookupTable *table = muster_kernel_resource (k, 0, &table_type, error);
  if (table == NULL || !muster_lookup_table_check_static (table, error))
    return FALSE;
  g_autofree char *filename = filename_of (k, error);
  if (filename == NULL || !muster_kernel_check_path (k, filename, error))
    return FALSE;
  const MusterLookupText text = {.filename = filename,
                                 .vocab_size = muster_kernel_attr_int (k, "vocab_size", -1),
                                 .delimiter = delimiter != NULL ? delimiter[0] : '\t',
                                 .key_index = muster_kernel_attr_int (k, "key_index", -2),
                                 .value_index = muster_kernel_attr_int (k, "value_index", -1),
                                 .offset = muster_kernel_attr_int (k, "offset", 0)};
  if (MIN (text.key_index, text.value_index) < MUSTER_LOOKUP_WHOLE_LINE ||
      MAX (text.key_index, text.value_index) > G_MAXINT32)
    return muster_invalid (error, "key_index and value_index should be columns, or -1 or -2");
  return muster_lookup_table_fill_from_text (table, &text, muster_kernel_storage (k),
                                             muster_kernel_cancellable (k),
                                             muster_kernel_budget (k), error);
}

#define S         (MUSTER_OP_STATEFUL | MUSTER_OP_RESOURCE)
#define R         (MUSTER_OP_READER | MUSTER_OP_RESOURCE)
#define REF       "table_handle:&string"
#define NAMED     "container shared_name use_node_name_sharing"
#define TABLE     NAMED " key_dtype value_dtype"
#define LINES     "key_index value_index vocab_size delimiter offset"
#define HANDLE    "table_handle:resource"
#define FIND      ", keys:Tin, default_value:Tout -> values:Tout"
#define INSERT    ", keys:Tin, values:Tout ->"
#define FILL      ", keys:Tkey, values:Tval ->"
#define TEXT      ", filename:string ->"
#define EXPORT    " -> keys:Tkeys, values:Tvalues"
#define SIZE      " -> size:int64"
#define ANY_IN    "Tin:any Tout:any"
#define ANY_KEY   "Tkey:any Tval:any"
#define DENSE     "empty_key:key_dtype, deleted_key:key_dtype -> "
#define DENSE_KEY "key_dtype:int32|int64|string"
#define ANY_OUT   "Tkeys:any Tvalues:any"

const MusterOp muster_lookup_ops[] = {
    {"HashTable", " -> " REF, TABLE, compute_table, R},
    {"HashTableV2", " -> " HANDLE, TABLE, compute_table, R},
    {"MutableHashTable", " -> " REF, TABLE, compute_table, R},
    {"MutableHashTableV2", " -> " HANDLE, TABLE, compute_table, R},
    {"MutableHashTableOfTensors", " -> " REF, TABLE " value_shape", compute_table, R},
    {"MutableHashTableOfTensorsV2", " -> " HANDLE, TABLE " value_shape", compute_table, R},
    {"MutableDenseHashTableV2", DENSE HANDLE,
     DENSE_KEY " " NAMED " value_dtype value_shape initial_num_buckets max_load_factor",
     compute_table, R},
    {"InitializeTable", REF FILL, ANY_KEY, compute_initialize, S},
    {"InitializeTableV2", HANDLE FILL, ANY_KEY, compute_initialize, S},
    {"InitializeTableFromTextFile", REF TEXT, LINES, compute_initialize_from_text, S},
    {"InitializeTableFromTextFileV2", HANDLE TEXT, LINES, compute_initialize_from_text, S},
    {"LookupTableFind", REF FIND, ANY_IN, compute_find, R},
    {"LookupTableFindV2", HANDLE FIND, ANY_IN, compute_find, R},
    {"LookupTableInsert", REF INSERT, ANY_IN, compute_insert, S},
    {"LookupTableInsertV2", HANDLE INSERT, ANY_IN, compute_insert, S},
    {"LookupTableImport", REF INSERT, ANY_IN, compute_import, S},
    {"LookupTableImportV2", HANDLE INSERT, ANY_IN, compute_import, S},
    {"LookupTableExport", REF EXPORT, ANY_OUT, compute_export, R},
    {"LookupTableExportV2", HANDLE EXPORT, ANY_OUT, compute_export, R},
    {"LookupTableSize", REF SIZE, "", compute_size, R},
    {"LookupTableSizeV2", HANDLE SIZE, "", compute_size, R},
    {"LookupTableRemoveV2", HANDLE ", keys:Tin ->", "Tin:any", compute_remove, S},
    {NULL, NULL, NULL, NULL, 0},
};
