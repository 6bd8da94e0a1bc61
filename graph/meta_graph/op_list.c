// SPDX-License-Identifier: Apache-2.0
#include "graph/graph_nodes_private.h"
#include "graph/meta_graph/op_list_private.h"
#include "graph/proto/op_def.pb-c.h"

#include <string.h>

gboolean
muster_op_list_init (MusterOpList *self, const ProtobufCBinaryData *meta_info, MusterArena *arena,
                     GError **error)
{
  const Tensorflow__MetaInfoDef *def =
      muster_unpack (&tensorflow__meta_info_def__descriptor, meta_info->data, meta_info->len, arena,
                     "meta graph's info", error);
  if (def == NULL)
    return FALSE;
  self->ops = g_hash_table_new (g_str_hash, g_str_equal);
  for (gsize i = 0; def->stripped_op_list != NULL && i < def->stripped_op_list->n_op; i++)
    g_hash_table_insert (self->ops, def->stripped_op_list->op[i]->name,
                         def->stripped_op_list->op[i]);
  return TRUE;
}

void
muster_op_list_clear (MusterOpList *self)
{
  g_clear_pointer (&self->ops, g_hash_table_unref);
}

static gboolean
is_same_message (const ProtobufCMessage *a, const ProtobufCMessage *b)
{
  g_autoptr (GBytes) left = muster_pack (a);
  g_autoptr (GBytes) right = muster_pack (b);
  return g_bytes_equal (left, right);
}

gboolean
muster_op_list_is_default (const MusterOpList *self, const Tensorflow__NodeDef *node,
                           const Tensorflow__NodeDef__AttrEntry *attr)
{
  const Tensorflow__OpDef *op = g_hash_table_lookup (self->ops, node->op);
  for (gsize i = 0; op != NULL && attr->value != NULL && i < op->n_attr; i++) {
    const Tensorflow__OpDef__AttrDef *def = op->attr[i];
    if (strcmp (def->name, attr->key) == 0)
      return def->default_value != NULL &&
             is_same_message (&def->default_value->base, &attr->value->base);
  }
  return FALSE;
}

static const Tensorflow__AttrValue *
attr_of (const Tensorflow__NodeDef *node, const char *name)
{
  return muster_attr_find (node->attr, node->n_attr, name);
}

/* Returns the number of inputs that an argument stands for. */
static gint64
n_inputs (const Tensorflow__NodeDef *node, const Tensorflow__OpDef__ArgDef *arg)
{
  if (*arg->number_attr != '\0') {
    const Tensorflow__AttrValue *n = attr_of (node, arg->number_attr);
    return n != NULL && n->value_case == TENSORFLOW__ATTR_VALUE__VALUE_I ? n->i : 0;
  }
  if (*arg->type_list_attr == '\0')
    return 1;
  const Tensorflow__AttrValue *list = attr_of (node, arg->type_list_attr);
  return list != NULL && list->value_case == TENSORFLOW__ATTR_VALUE__VALUE_LIST
             ? (gint64)list->list->n_type
             : 0;
}

static MusterDType
dtype_of (const Tensorflow__NodeDef *node, const Tensorflow__OpDef__ArgDef *arg, gsize i)
{
  if (*arg->type_list_attr != '\0')
    return (MusterDType)attr_of (node, arg->type_list_attr)->list->type[i];
  if (*arg->type_attr != '\0') {
    const Tensorflow__AttrValue *type = attr_of (node, arg->type_attr);
    return type != NULL && type->value_case == TENSORFLOW__ATTR_VALUE__VALUE_TYPE
               ? (MusterDType)type->type
               : MUSTER_INVALID;
  }
  return (MusterDType)arg->type;
}

MusterDType
muster_op_list_input_dtype (const MusterOpList *self, const Tensorflow__NodeDef *node, gsize input)
{
  const Tensorflow__OpDef *op = g_hash_table_lookup (self->ops, node->op);
  for (gsize i = 0; op != NULL && i < op->n_input_arg; i++) {
    const gint64 n = n_inputs (node, op->input_arg[i]);
    if (n < 0)
      return MUSTER_INVALID;
    if (input < (gsize)n)
      return dtype_of (node, op->input_arg[i], input);
    input -= (gsize)n;
  }
  return MUSTER_INVALID;
}
