// SPDX-License-Identifier: Apache-2.0
#include "engine/run/signature.h"

#include <stdlib.h>
#include <string.h>

/* The number of an argument's tensors: one, an int attribute's value, or the length of a list of
 * types. */
typedef enum { ONE, COUNTED, LISTED } Many;

typedef struct {
  char *name; /* (owned) */
  Many many;
  gboolean is_ref;
  MusterDType dtype; /* INVALID: given by attr */
  int attr;          /* index of the type attribute, or -1 */
  char *many_attr;   /* (owned) (nullable) of COUNTED and LISTED */
  gint64 minimum;    /* of COUNTED and LISTED: how many tensors there are at least */
} Arg;

typedef struct {
  char *name;           /* (owned) */
  guint32 allowed;      /* bit n: dtype n */
  MusterDType fallback; /* the default; INVALID: none */
} TypeAttr;

/* An attribute without a type. */
typedef struct {
  char *name;        /* (owned) */
  gboolean is_false; /* the only value that the kernel computes with */
  gint64 minimum;    /* of a number of tensors, or the length of a list of types */
} PlainAttr;

struct _MusterSignature {
  const MusterOp *op;
  GArray *inputs;  /* (owned) of Arg */
  GArray *outputs; /* (owned) of Arg */
  GArray *attrs;   /* (owned) of TypeAttr */
  GArray *plain;   /* (owned) of PlainAttr */
};

/* Attributes that change no result here, so that any op may have any value of them. */
static const char *const without_effect[] = {
    "use_locking",      /* an update is never seen half done */
    "validate_indices", /* of a gather: indices are always checked */
    "allowed_devices",  /* of a variable's handle: it is on the one device */
    "debug_name",       /* of a variable's handle, for messages of TensorFlow's own */
    "grad_a",           /* of a product: which gradient it is, for kernels of other devices */
    "grad_b",           "grad_x",
    "grad_y",           "hashed_output", /* of a cross: the type of the output says it */
    "sorted",          /* of the largest elements: without it, any order will do */
    "sparse_gradient", /* for Python, which makes the gradient's nodes */
    "description",     /* of a summary: for the Python that writes metadata */
    "display_name",     "labels",
};

#define BIT(dtype) (1u << (dtype))
/* The dtypes of "any". Only ops with "all" take handles. */
#define ANY_VALUE (~(BIT (MUSTER_RESOURCE) | BIT (MUSTER_VARIANT)))
#define MAX_ATTRS 8
/* The maximum number of outputs given by an int attribute, unless the node has as many inputs;
 * otherwise a graph of a few bytes could allocate any amount of memory. Lists of types need no
 * limit, as they are as long as their outputs are many. */
#define MAX_UNLISTED 65536

static const struct {
  const char *name;
  guint32 dtypes;
} sets[] = {
    {"any", ANY_VALUE},
    {"all", ~0u},
    {"integer", BIT (MUSTER_INT8) | BIT (MUSTER_INT16) | BIT (MUSTER_INT32) | BIT (MUSTER_INT64) |
                    BIT (MUSTER_UINT8) | BIT (MUSTER_UINT16) | BIT (MUSTER_UINT32) |
                    BIT (MUSTER_UINT64)},
    {"float", BIT (MUSTER_HALF) | BIT (MUSTER_BFLOAT16) | BIT (MUSTER_FLOAT) | BIT (MUSTER_DOUBLE)},
    {"real", BIT (MUSTER_INT8) | BIT (MUSTER_INT16) | BIT (MUSTER_INT32) | BIT (MUSTER_INT64) |
                 BIT (MUSTER_UINT8) | BIT (MUSTER_UINT16) | BIT (MUSTER_UINT32) |
                 BIT (MUSTER_UINT64) | BIT (MUSTER_HALF) | BIT (MUSTER_BFLOAT16) |
                 BIT (MUSTER_FLOAT) | BIT (MUSTER_DOUBLE)},
    {"number", BIT (MUSTER_INT8) | BIT (MUSTER_INT16) | BIT (MUSTER_INT32) | BIT (MUSTER_INT64) |
                   BIT (MUSTER_UINT8) | BIT (MUSTER_UINT16) | BIT (MUSTER_UINT32) |
                   BIT (MUSTER_UINT64) | BIT (MUSTER_HALF) | BIT (MUSTER_BFLOAT16) |
                   BIT (MUSTER_FLOAT) | BIT (MUSTER_DOUBLE) | BIT (MUSTER_COMPLEX64) |
                   BIT (MUSTER_COMPLEX128)},
};

static void
arg_clear (gpointer data)
{
  Arg *arg = data;
  g_free (arg->name);
  g_free (arg->many_attr);
}

static void
type_attr_clear (gpointer data)
{
  g_free (((TypeAttr *)data)->name);
}

static void
plain_attr_clear (gpointer data)
{
  g_free (((PlainAttr *)data)->name);
}

static guint32
find_set (const char *name)
{
  for (gsize i = 0; i < G_N_ELEMENTS (sets); i++)
    if (g_str_equal (sets[i].name, name))
      return sets[i].dtypes;
  return 0;
}

/* Alone, "float" is a set; among others, it is the dtype. */
static guint32
read_set (const MusterOp *op, const char *text, MusterDType *first)
{
  guint32 dtypes = find_set (text);
  *first = MUSTER_INVALID;
  if (dtypes != 0)
    return dtypes;
  g_auto (GStrv) names = g_strsplit (text, "|", -1);
  for (char **name = names; *name != NULL; name++) {
    const MusterDType dtype = muster_dtype_from_name (*name);
    const guint32 found = dtype > MUSTER_INVALID && dtype < 32 ? BIT (dtype) : find_set (*name);
    if (found == 0)
      g_error ("op %s: invalid dtype '%s' of an attribute", op->name, *name);
    if (name == names)
      *first = dtype;
    dtypes |= found;
  }
  return dtypes;
}

static void
read_plain_attr (MusterSignature *self, const char *word)
{
  const gsize length = strcspn (word, "=>");
  const char *rest = word + length;
  const gboolean is_false = g_str_equal (rest, "=false");
  const gboolean has_minimum = g_str_has_prefix (rest, ">=") && g_ascii_isdigit (rest[2]);
  if (*rest != '\0' && !is_false && !has_minimum)
    g_error ("op %s: invalid attribute '%s' (use NAME, NAME=false or NAME>=NUMBER)", self->op->name,
             word);
  const PlainAttr attr = {.name = g_strndup (word, length),
                          .is_false = is_false,
                          .minimum = has_minimum ? g_ascii_strtoll (rest + 2, NULL, 10) : 1};
  g_array_append_val (self->plain, attr);
}

static void
read_attributes (MusterSignature *self)
{
  g_auto (GStrv) words =
      g_strsplit (self->op->attributes != NULL ? self->op->attributes : "", " ", -1);
  for (char **word = words; *word != NULL; word++) {
    char *colon = strchr (*word, ':');
    if (**word == '\0')
      continue;
    if (colon == NULL) {
      read_plain_attr (self, *word);
      continue;
    }
    *colon = '\0';
    TypeAttr attr = {.name = g_strdup (*word)};
    attr.allowed = read_set (self->op, colon + 1, &attr.fallback);
    g_array_append_val (self->attrs, attr);
  }
  if (self->attrs->len > MAX_ATTRS)
    g_error ("op %s has more than %d type attributes", self->op->name, MAX_ATTRS);
}

static int
find_attr (const MusterSignature *self, const char *name)
{
  for (guint i = 0; i < self->attrs->len; i++)
    if (g_str_equal (g_array_index (self->attrs, TypeAttr, i).name, name))
      return (int)i;
  return -1;
}

static const PlainAttr *
find_plain (const MusterSignature *self, const char *name)
{
  for (guint i = 0; i < self->plain->len; i++)
    if (g_str_equal (g_array_index (self->plain, PlainAttr, i).name, name))
      return &g_array_index (self->plain, PlainAttr, i);
  return NULL;
}

static gint64
minimum_of (const MusterSignature *self, const char *many_attr)
{
  const PlainAttr *plain = find_plain (self, many_attr);
  return plain != NULL ? plain->minimum : 1;
}

/* A type attribute that isn't listed may be anything. */
static int
attr_index (MusterSignature *self, const char *name)
{
  const int found = find_attr (self, name);
  if (found >= 0)
    return found;
  if (self->attrs->len == MAX_ATTRS)
    g_error ("op %s has more than %d type attributes", self->op->name, MAX_ATTRS);
  TypeAttr attr = {.name = g_strdup (name), .allowed = ANY_VALUE};
  g_array_append_val (self->attrs, attr);
  return (int)self->attrs->len - 1;
}

/* "T", "float", "&T", "N*T", "*Tlist". */
static void
read_type (MusterSignature *self, Arg *arg, const char *text)
{
  const char *star = strchr (text, '*');
  arg->attr = -1;
  if (star == text) {
    arg->many = LISTED;
    arg->many_attr = g_strdup (text + 1);
    arg->attr = find_attr (self, arg->many_attr);
    arg->minimum = minimum_of (self, arg->many_attr);
    return;
  }
  if (star != NULL) {
    arg->many = COUNTED;
    arg->many_attr = g_strndup (text, (gsize)(star - text));
    arg->minimum = minimum_of (self, arg->many_attr);
    text = star + 1;
  }
  arg->is_ref = *text == '&';
  text += arg->is_ref ? 1 : 0;
  if (*text == '\0')
    g_error ("op %s: '%s' has no type", self->op->name, arg->name);
  arg->dtype = muster_dtype_from_name (text);
  if (arg->dtype == MUSTER_INVALID)
    arg->attr = attr_index (self, text);
}

static void
read_args (MusterSignature *self, const char *text, GArray *args)
{
  g_auto (GStrv) parts = g_strsplit (text, ",", -1);
  for (char **part = parts; *part != NULL; part++) {
    g_strstrip (*part);
    if (**part == '\0')
      continue;
    char *colon = strchr (*part, ':');
    if (colon == NULL)
      g_error ("op %s: invalid argument '%s' (use NAME:TYPE)", self->op->name, *part);
    *colon = '\0';
    Arg arg = {.name = g_strdup (g_strstrip (*part))};
    read_type (self, &arg, g_strstrip (colon + 1));
    g_array_append_val (args, arg);
  }
}

MusterSignature *
muster_signature_new (const MusterOp *op)
{
  MusterSignature *self = g_new0 (MusterSignature, 1);
  self->op = op;
  self->inputs = g_array_new (FALSE, TRUE, sizeof (Arg));
  self->outputs = g_array_new (FALSE, TRUE, sizeof (Arg));
  self->attrs = g_array_new (FALSE, TRUE, sizeof (TypeAttr));
  self->plain = g_array_new (FALSE, TRUE, sizeof (PlainAttr));
  g_array_set_clear_func (self->inputs, arg_clear);
  g_array_set_clear_func (self->outputs, arg_clear);
  g_array_set_clear_func (self->attrs, type_attr_clear);
  g_array_set_clear_func (self->plain, plain_attr_clear);
  read_attributes (self);
  const char *arrow = strstr (op->signature, "->");
  if (arrow == NULL)
    g_error ("op %s: its signature has no '->'", op->name);
  g_autofree char *inputs = g_strndup (op->signature, (gsize)(arrow - op->signature));
  read_args (self, inputs, self->inputs);
  read_args (self, arrow + 2, self->outputs);
  return self;
}

void
muster_signature_free (MusterSignature *self)
{
  if (self == NULL)
    return;
  g_array_unref (self->inputs);
  g_array_unref (self->outputs);
  g_array_unref (self->attrs);
  g_array_unref (self->plain);
  g_free (self);
}

void
muster_resolved_init (MusterResolved *self)
{
  self->inputs = g_byte_array_new ();
  self->outputs = g_byte_array_new ();
  self->value = MUSTER_INVALID;
}

void
muster_resolved_clear (MusterResolved *self)
{
  g_clear_pointer (&self->inputs, g_byte_array_unref);
  g_clear_pointer (&self->outputs, g_byte_array_unref);
}

/* The node being resolved. */
typedef struct {
  const MusterSignature *signature;
  MusterGraph *graph; /* (nullable) for errors about inputs */
  const MusterNode *node;
  const guint8 *given;
  gsize n_given;
  MusterDType types[MAX_ATTRS];
} Resolving;

static gboolean
allowed (const TypeAttr *attr, int dtype)
{
  return dtype > 0 && dtype < 32 && (attr->allowed & BIT (dtype)) != 0;
}

static gboolean
refuse_dtype (const Resolving *r, const TypeAttr *attr, MusterDType dtype, GError **error)
{
  g_autoptr (GString) list = g_string_new (NULL);
  for (int i = 1; i < 24; i++)
    if (allowed (attr, i) && !g_str_equal (muster_dtype_name (i), "unknown"))
      g_string_append_printf (list, "%s%s", list->len > 0 ? ", " : "", muster_dtype_name (i));
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "Value for attr '%s' of %s is not in the list of allowed values: %s\n\t; NodeDef: "
      "{{node %s}}; Op '%s'",
      attr->name, muster_dtype_name (dtype), list->str, r->node->name, r->node->kind->op);
}

static gboolean
refuse_count (const Resolving *r, const Arg *arg, gint64 count, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "%s for attr '%s' of %" G_GINT64_FORMAT
                      " must be at least minimum %" G_GINT64_FORMAT
                      "\n\t; NodeDef: {{node %s}}; Op '%s'",
                      arg->many == LISTED ? "Length" : "Value", arg->many_attr, count, arg->minimum,
                      r->node->name, r->node->kind->op);
}

/* The number of an argument's tensors in this node. */
static gboolean
count_of (const Resolving *r, const Arg *arg, gint64 *count, GError **error)
{
  *count = 1;
  if (arg->many == ONE)
    return TRUE;
  const Tensorflow__AttrValue *value = muster_node_attr (r->node, arg->many_attr);
  if (arg->many == COUNTED && value != NULL && value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_I)
    *count = value->i;
  else if (arg->many == LISTED && value != NULL &&
           value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST)
    *count = value->list != NULL ? (gint64)value->list->n_type : 0;
  else
    *count = G_MAXINT64;
  if (*count < arg->minimum)
    return refuse_count (r, arg, *count, error);
  if (*count <= (gint64)MAX (r->node->n_input, MAX_UNLISTED) ||
      (arg->many == LISTED && *count != G_MAXINT64))
    return TRUE;
  return muster_fail (
      error, MUSTER_ERROR_INVALID_ARGUMENT,
      "Node '%s' (op '%s'): attr '%s', the number of '%s', is missing or out of range",
      r->node->name, r->node->kind->op, arg->many_attr, arg->name);
}

/* Infers the type attributes that the node lacks from the dtypes of its inputs. */
static void
infer_types (Resolving *r)
{
  gsize at = 0;
  for (guint i = 0; i < r->signature->inputs->len && at < r->n_given; i++) {
    const Arg *arg = &g_array_index (r->signature->inputs, Arg, i);
    gint64 count;
    if (!count_of (r, arg, &count, NULL))
      return;
    if (arg->many != LISTED && arg->attr >= 0 && count > 0 && r->types[arg->attr] == MUSTER_INVALID)
      r->types[arg->attr] = r->given[at] % MUSTER_REF;
    at += (gsize)count;
  }
}

static gboolean
is_list_attr (const Resolving *r, guint attr)
{
  for (int side = 0; side < 2; side++) {
    const GArray *args = side == 0 ? r->signature->inputs : r->signature->outputs;
    for (guint i = 0; i < args->len; i++) {
      const Arg *arg = &g_array_index (args, Arg, i);
      if (arg->many == LISTED && arg->attr == (int)attr)
        return TRUE;
    }
  }
  return FALSE;
}

static gboolean
read_types (Resolving *r, GError **error)
{
  gboolean all_there = TRUE;
  const GArray *attrs = r->signature->attrs;
  for (guint i = 0; i < attrs->len; i++) {
    r->types[i] =
        muster_node_dtype (r->node, g_array_index (attrs, TypeAttr, i).name, MUSTER_INVALID);
    all_there = all_there && r->types[i] != MUSTER_INVALID;
  }
  if (!all_there)
    infer_types (r);
  for (guint i = 0; i < attrs->len; i++) {
    const TypeAttr *attr = &g_array_index (attrs, TypeAttr, i);
    if (r->types[i] == MUSTER_INVALID)
      r->types[i] = attr->fallback;
    if (r->types[i] == MUSTER_INVALID && is_list_attr (r, i))
      continue;
    if (r->types[i] == MUSTER_INVALID) {
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "No attr named '%s' in NodeDef (op '%s'):\n\t [[{{node %s}}]]",
                          attr->name, r->node->kind->op, r->node->name);
    }
    if (!allowed (attr, (int)r->types[i]))
      return refuse_dtype (r, attr, r->types[i], error);
  }
  return TRUE;
}

static gboolean
append_list (const Resolving *r, const Arg *arg, GByteArray *out, GError **error)
{
  static const TypeAttr anything = {.name = (char *)"type list", .allowed = ANY_VALUE};
  const Tensorflow__AttrValue *value = muster_node_attr (r->node, arg->many_attr);
  const TypeAttr *attr =
      arg->attr >= 0 ? &g_array_index (r->signature->attrs, TypeAttr, arg->attr) : &anything;
  for (gsize i = 0; value->list != NULL && i < value->list->n_type; i++) {
    const int dtype = value->list->type[i];
    if (!allowed (attr, dtype))
      return refuse_dtype (r, attr, (MusterDType)dtype, error);
    const guint8 byte = (guint8)dtype;
    g_byte_array_append (out, &byte, 1);
  }
  return TRUE;
}

static gboolean
append_args (const Resolving *r, const GArray *args, GByteArray *out, GError **error)
{
  g_byte_array_set_size (out, 0);
  for (guint i = 0; i < args->len; i++) {
    const Arg *arg = &g_array_index (args, Arg, i);
    gint64 count;
    if (!count_of (r, arg, &count, error))
      return FALSE;
    if (arg->many == LISTED) {
      if (!append_list (r, arg, out, error))
        return FALSE;
      continue;
    }
    const MusterDType dtype = arg->attr >= 0 ? r->types[arg->attr] : arg->dtype;
    const guint8 byte = (guint8)((int)dtype + (arg->is_ref ? MUSTER_REF : 0));
    if (count == 0)
      continue; /* out may have no data yet */
    guint before = out->len;
    g_byte_array_set_size (out, before + (guint)count);
    memset (out->data + before, byte, (gsize)count);
  }
  return TRUE;
}

static gboolean
check_inputs (const Resolving *r, const GByteArray *wanted, GError **error)
{
  if (r->n_given != wanted->len) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "Node '%s' (op '%s') takes %u inputs (%s), but has %" G_GSIZE_FORMAT,
                        r->node->name, r->node->kind->op, wanted->len, r->signature->op->signature,
                        r->n_given);
  }
  for (guint i = 0; i < wanted->len; i++) {
    /* A value input may be given a reference, which is read; a reference input must get one. */
    if (r->given[i] == wanted->data[i] || r->given[i] == wanted->data[i] + MUSTER_REF)
      continue;
    g_autofree char *input = muster_graph_input_text (r->graph, r->node, i);
    return muster_fail (
        error, MUSTER_ERROR_INVALID_ARGUMENT,
        "Input %u of node %s was passed %s from %s incompatible with expected %s. (op "
        "'%s')",
        i, r->node->name, muster_dtype_name (r->given[i]), input,
        muster_dtype_name (wanted->data[i]), r->node->kind->op);
  }
  return TRUE;
}

static gboolean
counts_tensors (const GArray *args, const char *name)
{
  for (guint i = 0; i < args->len; i++)
    if (g_strcmp0 (g_array_index (args, Arg, i).many_attr, name) == 0)
      return TRUE;
  return FALSE;
}

gboolean
muster_signature_has (const MusterSignature *self, const char *name)
{
  if (find_attr (self, name) >= 0 || find_plain (self, name) != NULL ||
      counts_tensors (self->inputs, name) || counts_tensors (self->outputs, name))
    return TRUE;
  for (gsize i = 0; i < G_N_ELEMENTS (without_effect); i++)
    if (g_str_equal (without_effect[i], name))
      return TRUE;
  return FALSE;
}

/* An attribute that the kernel wouldn't read could change the result, as one of a later TensorFlow.
 * TensorFlow, too, refuses what it doesn't know, but for names that begin with an underscore. */
static gboolean
check_attributes (const Resolving *r, GError **error)
{
  const MusterNodeKind *kind = r->node->kind;
  for (gsize i = 0; i < kind->n_attr; i++) {
    const char *name = kind->attr[i]->key;
    const Tensorflow__AttrValue *value = kind->attr[i]->value;
    const PlainAttr *plain = find_plain (r->signature, name);
    if (plain != NULL && plain->is_false && value != NULL &&
        value->value_case == TENSORFLOW__ATTR_VALUE__VALUE_B && value->b)
      return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED,
                          "attr '%s' of node '%s' (op '%s') is true, which muster's own engine "
                          "doesn't support; use TensorFlow's runtime (--master=tensorflow)",
                          name, r->node->name, kind->op);
    if (plain == NULL && name[0] != '_' && !muster_signature_has (r->signature, name))
      return muster_fail (
          error, MUSTER_ERROR_INVALID_ARGUMENT,
          "NodeDef mentions attr '%s' not in Op<name=%s>; NodeDef: {{node %s}}. "
          "muster's own engine doesn't know it; use TensorFlow's runtime if that does "
          "(--master=tensorflow)",
          name, kind->op, r->node->name);
  }
  return TRUE;
}

static MusterDType
value_dtype (const Resolving *r)
{
  static const char *const names[] = {"dtype", "T"};
  for (gsize n = 0; n < G_N_ELEMENTS (names); n++)
    for (guint i = 0; i < r->signature->attrs->len; i++)
      if (g_str_equal (g_array_index (r->signature->attrs, TypeAttr, i).name, names[n]))
        return r->types[i] != MUSTER_RESOURCE ? r->types[i] : MUSTER_INVALID;
  return MUSTER_INVALID;
}

gboolean
muster_signature_resolve (const MusterSignature *self, MusterGraph *graph, const MusterNode *node,
                          const GByteArray *given, MusterResolved *resolved, GError **error)
{
  Resolving r = {
      .signature = self, .graph = graph, .node = node, .given = given->data, .n_given = given->len};
  if (!check_attributes (&r, error) || !read_types (&r, error) ||
      !append_args (&r, self->inputs, resolved->inputs, error) ||
      !check_inputs (&r, resolved->inputs, error) ||
      !append_args (&r, self->outputs, resolved->outputs, error))
    return FALSE;
  resolved->value = value_dtype (&r);
  return TRUE;
}

gboolean
muster_signature_outputs (const MusterSignature *self, const MusterNode *node, GByteArray *dtypes)
{
  Resolving r = {.signature = self, .node = node};
  g_byte_array_set_size (dtypes, 0);
  return read_types (&r, NULL) && append_args (&r, self->outputs, dtypes, NULL);
}

gboolean
muster_signature_inputs (const MusterSignature *self, const MusterNode *node, GByteArray *dtypes)
{
  Resolving r = {.signature = self, .node = node};
  g_byte_array_set_size (dtypes, 0);
  return read_types (&r, NULL) && append_args (&r, self->inputs, dtypes, NULL);
}
