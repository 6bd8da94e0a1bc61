// SPDX-License-Identifier: Apache-2.0
/* Reads TF_CONFIG: the cluster, in lists or with indices, this task, and the masters. An error
 * names the field. */
#include "base/files/json_text_private.h"
#include "rpc/address_private.h"
#include "session/cluster/cluster_spec_private.h"

#include <json-glib/json-glib.h>
#include <stdlib.h>
#include <string.h>

#define MOST_NESTING 16
#define EXAMPLE                                                                                    \
  "{\"cluster\": {\"chief\": [\"HOST:PORT\"], \"worker\": [\"HOST:PORT\"]}, "                      \
  "\"task\": {\"type\": \"worker\", \"index\": 0}}"

gboolean
muster_tf_config_error (GError **error, const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  /* a name may contain bytes from an escape */
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "TF_CONFIG%s", valid);
}

/* A string, or NULL. */
static const char *
string_of (JsonNode *node)
{
  return node != NULL && JSON_NODE_HOLDS_VALUE (node) &&
                 json_node_get_value_type (node) == G_TYPE_STRING
             ? json_node_get_string (node)
             : NULL;
}

/* A number, or one written as a string, as some launchers do. */
static gboolean
read_index (JsonNode *node, guint *index)
{
  const char *text = string_of (node);
  guint64 number = 0;
  if (text != NULL) {
    if (!g_ascii_string_to_unsigned (text, 10, 0, MUSTER_MOST_TASKS, &number, NULL))
      return FALSE;
  } else if (JSON_NODE_HOLDS_VALUE (node) && json_node_get_value_type (node) == G_TYPE_INT64) {
    number = (guint64)json_node_get_int (node);
  } else {
    return FALSE;
  }
  *index = (guint)MIN (number, MUSTER_MOST_TASKS + 1);
  return number <= MUSTER_MOST_TASKS;
}

/* --- the cluster --- */

static gboolean
add_task (MusterClusterSpec *self, const char *job, guint index, JsonNode *node, GError **error)
{
  const char *address = string_of (node);
  g_autofree char *host = NULL;
  g_autoptr (GError) wrong = NULL;
  guint16 port;

  if (address == NULL)
    return muster_tf_config_error (error, ": \"%s\" in \"cluster\" must be a list of \"HOST:PORT\"",
                                   job);
  if (!muster_address_parse (address, &host, &port, &wrong))
    return muster_tf_config_error (error, ": %s:%u in \"cluster\": %s", job, index, wrong->message);
  if (self->tasks->len >= MUSTER_MOST_TASKS)
    return muster_tf_config_error (error, ": the cluster has more than %d tasks",
                                   MUSTER_MOST_TASKS);
  MusterClusterTask task = {g_strdup (job), index, g_strdup (address)};
  g_array_append_val (self->tasks, task);
  return TRUE;
}

static gboolean
add_list (MusterClusterSpec *self, const char *job, JsonArray *list, GError **error)
{
  for (guint i = 0; i < json_array_get_length (list); i++)
    if (!add_task (self, job, i, json_array_get_element (list, i), error))
      return FALSE;
  return TRUE;
}

static int
compare_indices (gconstpointer a, gconstpointer b)
{
  const MusterClusterTask *first = a, *second = b;
  return (first->index > second->index) - (first->index < second->index);
}

/* Sorts a job's tasks, the last ones. */
static gboolean
order_tasks (MusterClusterSpec *self, guint from, GError **error)
{
  MusterClusterTask *tasks = (MusterClusterTask *)self->tasks->data;
  if (self->tasks->len > from)
    qsort (tasks + from, self->tasks->len - from, sizeof *tasks, compare_indices);
  for (guint i = from; i + 1 < self->tasks->len; i++)
    if (tasks[i].index == tasks[i + 1].index)
      return muster_tf_config_error (error, ": %s:%u is in \"cluster\" twice", tasks[i].job,
                                     tasks[i].index);
  return TRUE;
}

/* {"1": "HOST:PORT"}: only some tasks are known, or they are out of order. */
static gboolean
add_sparse (MusterClusterSpec *self, const char *job, JsonObject *object, GError **error)
{
  g_autoptr (GList) names = json_object_get_members (object);
  const guint from = self->tasks->len;
  for (GList *name = names; name != NULL; name = name->next) {
    guint64 index;
    if (!g_ascii_string_to_unsigned (name->data, 10, 0, MUSTER_MOST_TASKS, &index, NULL))
      return muster_tf_config_error (error, ": \"%s\" in \"cluster\": '%s' isn't a task index", job,
                                     (char *)name->data);
    if (!add_task (self, job, (guint)index, json_object_get_member (object, name->data), error))
      return FALSE;
  }
  return order_tasks (self, from, error);
}

/* A job is part of a device's name. */
static gboolean
is_job_name (const char *name)
{
  if (!g_ascii_isalpha (*name))
    return FALSE;
  for (; *name; name++)
    if (!g_ascii_isalnum (*name) && *name != '_')
      return FALSE;
  return TRUE;
}

static gboolean
read_cluster (MusterClusterSpec *self, JsonNode *node, GError **error)
{
  if (node == NULL)
    return TRUE;
  if (!JSON_NODE_HOLDS_OBJECT (node))
    return muster_tf_config_error (error, ": \"cluster\" must be an object; use " EXAMPLE);
  JsonObject *cluster = json_node_get_object (node);
  g_autoptr (GList) jobs = json_object_get_members (cluster);
  for (GList *job = jobs; job != NULL; job = job->next) {
    JsonNode *tasks = json_object_get_member (cluster, job->data);
    gboolean is_good;
    if (!is_job_name (job->data))
      return muster_tf_config_error (error, ": invalid job name '%s'", (char *)job->data);
    if (JSON_NODE_HOLDS_ARRAY (tasks))
      is_good = add_list (self, job->data, json_node_get_array (tasks), error);
    else if (JSON_NODE_HOLDS_OBJECT (tasks))
      is_good = add_sparse (self, job->data, json_node_get_object (tasks), error);
    else
      is_good = muster_tf_config_error (
          error, ": \"%s\" in \"cluster\" must be a list of \"HOST:PORT\"", (char *)job->data);
    if (!is_good)
      return FALSE;
  }
  return TRUE;
}

/* --- the rest --- */

static gboolean
read_task (MusterClusterSpec *self, JsonNode *node, GError **error)
{
  if (node == NULL)
    return TRUE;
  if (!JSON_NODE_HOLDS_OBJECT (node))
    return muster_tf_config_error (error, ": \"task\" must be an object; use " EXAMPLE);
  JsonObject *task = json_node_get_object (node);
  const char *type = string_of (json_object_get_member (task, "type"));
  JsonNode *index = json_object_get_member (task, "index");
  if (type == NULL || !is_job_name (type))
    return muster_tf_config_error (error, ": \"task\" has no \"type\"; use " EXAMPLE);
  if (index != NULL && !read_index (index, &self->index))
    return muster_tf_config_error (error, ": \"index\" in \"task\" isn't a task index");
  self->job = g_strdup (type);
  return TRUE;
}

/* TensorFlow's protocols other than gRPC aren't supported. */
static gboolean
check_layer (JsonNode *node, GError **error)
{
  const char *layer = string_of (node);
  if (node == NULL || JSON_NODE_HOLDS_NULL (node) ||
      (layer != NULL && (!*layer || g_str_equal (layer, "grpc"))))
    return TRUE;
  return muster_tf_config_error (error, ": unsupported \"rpc_layer\" '%s' (use \"grpc\")",
                                 layer != NULL ? layer : "not a string");
}

/* The addresses beside the cluster: they may be absent. */
static gboolean
read_target (JsonObject *root, const char *name, char **target, GError **error)
{
  JsonNode *node = json_object_get_member (root, name);
  if (node == NULL || JSON_NODE_HOLDS_NULL (node))
    return TRUE;
  *target = g_strdup (string_of (node));
  return *target != NULL || muster_tf_config_error (error, ": \"%s\" must be a string", name);
}

/* Names of machines, without ports. */
static gboolean
read_admitted (MusterClusterSpec *self, JsonNode *node, GError **error)
{
  JsonArray *names =
      node != NULL && JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
  if (node == NULL || JSON_NODE_HOLDS_NULL (node))
    return TRUE;
  for (guint i = 0; names != NULL && i < json_array_get_length (names); i++) {
    const char *name = string_of (json_array_get_element (names, i));
    if (name == NULL || *name == '\0' || strchr (name, ':') != NULL)
      return muster_tf_config_error (error, ": \"admit\" must be a list of machines' names");
    g_ptr_array_add (self->admitted, g_strdup (name));
  }
  return names != NULL ||
         muster_tf_config_error (error, ": \"admit\" must be a list of machines' names");
}

static gboolean
read_root (MusterClusterSpec *self, JsonObject *root, GError **error)
{
  return read_target (root, "session_master", &self->session_master, error) &&
         read_target (root, "coordinator", &self->coordinator, error) &&
         read_admitted (self, json_object_get_member (root, "admit"), error) &&
         check_layer (json_object_get_member (root, "rpc_layer"), error) &&
         read_cluster (self, json_object_get_member (root, "cluster"), error) &&
         read_task (self, json_object_get_member (root, "task"), error);
}

gboolean
muster_cluster_spec_read (MusterClusterSpec *self, const char *text, GError **error)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autoptr (GError) malformed = NULL;
  if (!g_utf8_validate (text, -1, NULL))
    return muster_tf_config_error (error, " isn't UTF-8; use " EXAMPLE);
  if (!muster_json_is_flat (text, MOST_NESTING))
    return muster_tf_config_error (error, " is nested deeper than %d; use " EXAMPLE, MOST_NESTING);
  if (!muster_json_is_one_object (text))
    return muster_tf_config_error (error, " must be one JSON object; use " EXAMPLE);
  if (!json_parser_load_from_data (parser, text, -1, &malformed)) {
    /* the text may end in half a character */
    g_autofree char *why = g_utf8_make_valid (malformed->message, -1);
    return muster_tf_config_error (error, " isn't valid JSON (%s); use " EXAMPLE, why);
  }
  JsonNode *node = json_parser_get_root (parser);
  if (node == NULL || !JSON_NODE_HOLDS_OBJECT (node))
    return muster_tf_config_error (error, " must be a JSON object; use " EXAMPLE);
  return read_root (self, json_node_get_object (node), error);
}
