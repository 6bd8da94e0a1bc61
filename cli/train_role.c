// SPDX-License-Identifier: Apache-2.0
#include "cli/train_role.h"

#include "base/error.h"
#include "cli/wrong.h"

#include <json-glib/json-glib.h>
#include <string.h>

#define MOST_TASKS   100000
#define MOST_NESTING 16
#define EXAMPLE                                                                                    \
  "as {\"cluster\": {\"chief\": [\"HOST:PORT\"], \"worker\": [\"HOST:PORT\"]}, "                   \
  "\"task\": {\"type\": \"worker\", \"index\": 0}}"

/* What TF_CONFIG says. */
typedef struct {
  char *type; /* (owned) */
  gint64 index;
  guint n_chiefs;
  guint n_workers;
  char *master; /* (owned) (nullable) */
} Config;

static void
config_clear (Config *self)
{
  g_free (self->type);
  g_free (self->master);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Config, config_clear)

void
muster_train_role_clear (MusterTrainRole *self)
{
  g_clear_pointer (&self->task, g_free);
  g_clear_pointer (&self->master, g_free);
}

/* --- TF_CONFIG --- */

/* The parser calls itself for what is nested. */
static gboolean
is_flat (const char *text)
{
  guint depth = 0;
  for (; *text != '\0' && depth <= MOST_NESTING; text++) {
    depth += *text == '{' || *text == '[';
    depth -= depth > 0 && (*text == '}' || *text == ']');
  }
  return depth <= MOST_NESTING;
}

/* One object and nothing beside it: of several values the parser takes the last, and leaks the
 * others. What never ends is left to it. */
static gboolean
is_one_object (const char *text)
{
  guint depth = 0;
  gboolean in_string = FALSE;
  text += strspn (text, " \t\r\n");
  if (*text != '{')
    return FALSE;
  for (; *text != '\0'; text++) {
    if (in_string && *text == '\\' && text[1] != '\0')
      text++;
    else if (*text == '"')
      in_string = !in_string;
    else if (!in_string)
      depth = *text == '{' ? depth + 1 : *text == '}' ? depth - 1 : depth;
    if (depth == 0)
      return text[1 + strspn (text + 1, " \t\r\n")] == '\0';
  }
  return TRUE;
}

static JsonObject *
object_in (JsonObject *object, const char *name)
{
  JsonNode *node = object == NULL ? NULL : json_object_get_member (object, name);
  return node != NULL && JSON_NODE_HOLDS_OBJECT (node) ? json_node_get_object (node) : NULL;
}

/* A string, or NULL. */
static const char *
string_in (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);
  return node != NULL && JSON_NODE_HOLDS_VALUE (node) &&
                 json_node_get_value_type (node) == G_TYPE_STRING
             ? json_node_get_string (node)
             : NULL;
}

/* A number, also where it was written as a string, as some launchers do; below 0: neither. */
static gint64
number_in (JsonObject *object, const char *name)
{
  JsonNode *node = json_object_get_member (object, name);
  const char *text = node == NULL ? NULL : string_in (object, name);
  guint64 number;
  if (text != NULL)
    return g_ascii_string_to_unsigned (text, 10, 0, MOST_TASKS, &number, NULL) ? (gint64)number
                                                                               : -1;
  return node != NULL && JSON_NODE_HOLDS_VALUE (node) &&
                 json_node_get_value_type (node) == G_TYPE_INT64
             ? json_node_get_int (node)
             : -1;
}

/* How many tasks a job of the cluster has, and the first one's address; FALSE where it is neither a
 * list of addresses nor absent. */
static gboolean
read_job (JsonObject *cluster, const char *job, guint *n, const char **first, GError **error)
{
  JsonNode *node = cluster == NULL ? NULL : json_object_get_member (cluster, job);
  *n = 0;
  *first = NULL;
  if (node == NULL)
    return TRUE;
  JsonArray *list = JSON_NODE_HOLDS_ARRAY (node) ? json_node_get_array (node) : NULL;
  for (guint i = 0; list != NULL && i < json_array_get_length (list); i++) {
    JsonNode *item = json_array_get_element (list, i);
    if (!JSON_NODE_HOLDS_VALUE (item) || json_node_get_value_type (item) != G_TYPE_STRING)
      list = NULL;
    else if (i == 0)
      *first = json_node_get_string (item);
  }
  if (list == NULL)
    return muster_cli_wrong (error, "TF_CONFIG: \"%s\" in \"cluster\" is no list of \"HOST:PORT\"",
                             job);
  *n = json_array_get_length (list);
  return TRUE;
}

static char *
target_of (const char *address)
{
  return strstr (address, "://") != NULL ? g_strdup (address)
                                         : g_strconcat ("grpc://", address, NULL);
}

static gboolean
read_cluster (Config *self, JsonObject *root, GError **error)
{
  JsonObject *cluster = object_in (root, "cluster");
  const char *chief, *master, *worker, *ps, *session = string_in (root, "session_master");
  guint n_masters, n_ps;
  if (cluster == NULL && json_object_has_member (root, "cluster"))
    return muster_cli_wrong (error, "TF_CONFIG: \"cluster\" is no object: write it " EXAMPLE);
  if (!read_job (cluster, "chief", &self->n_chiefs, &chief, error) ||
      !read_job (cluster, "master", &n_masters, &master, error) ||
      !read_job (cluster, "worker", &self->n_workers, &worker, error) ||
      !read_job (cluster, "ps", &n_ps, &ps, error))
    return FALSE;
  if (session != NULL && *session != '\0')
    self->master = target_of (session);
  else if (master != NULL || n_ps == 1)
    self->master = target_of (master != NULL ? master : ps);
  return TRUE;
}

static gboolean
read_config (Config *self, const char *text, GError **error)
{
  g_autoptr (JsonParser) parser = json_parser_new ();
  g_autoptr (GError) malformed = NULL;
  if (!is_flat (text))
    return muster_cli_wrong (error, "TF_CONFIG is nested deeper than %d: write it " EXAMPLE,
                             MOST_NESTING);
  if (!is_one_object (text))
    return muster_cli_wrong (error,
                             "TF_CONFIG is no JSON object, or more than one: write it " EXAMPLE);
  if (!json_parser_load_from_data (parser, text, -1, &malformed))
    return muster_cli_wrong (error, "TF_CONFIG is no JSON (%s): write it " EXAMPLE,
                             malformed->message);
  JsonNode *node = json_parser_get_root (parser);
  if (node == NULL || !JSON_NODE_HOLDS_OBJECT (node))
    return muster_cli_wrong (error, "TF_CONFIG is no JSON object: write it " EXAMPLE);
  JsonObject *root = json_node_get_object (node), *task = object_in (root, "task");
  const char *type = task == NULL ? NULL : string_in (task, "type");
  if (task == NULL && json_object_has_member (root, "task"))
    return muster_cli_wrong (error, "TF_CONFIG: \"task\" is no object: write it " EXAMPLE);
  if (task != NULL && type == NULL)
    return muster_cli_wrong (error, "TF_CONFIG: \"task\" has no \"type\": write it " EXAMPLE);
  self->type = g_strdup (task == NULL ? "" : type);
  self->index =
      task == NULL || !json_object_has_member (task, "index") ? 0 : number_in (task, "index");
  if (self->index < 0 || self->index > MOST_TASKS)
    return muster_cli_wrong (error, "TF_CONFIG: \"index\" in \"task\" is no number of a task");
  return read_cluster (self, root, error);
}

static gboolean
take_config (MusterTrainRole *self, const Config *config, GError **error)
{
  const gint64 i = config->index;
  const gboolean is_chief = strcmp (config->type, "chief") == 0;
  self->n_tasks = MAX (config->n_chiefs + config->n_workers, 1);
  self->master = g_strdup (config->master);
  if (*config->type == '\0')
    return TRUE; /* no task: it is alone */
  if (!is_chief && strcmp (config->type, "worker") != 0)
    return muster_cli_wrong (error,
                             "TF_CONFIG: this task is '%s:%" G_GINT64_FORMAT
                             "': train runs the chief and "
                             "workers; `muster serve` serves where the variables live",
                             config->type, i);
  if (i >= (is_chief ? config->n_chiefs : config->n_workers))
    return muster_cli_wrong (error,
                             "TF_CONFIG: this task is %s:%" G_GINT64_FORMAT
                             ", but the cluster has %u of that "
                             "name",
                             config->type, i, is_chief ? config->n_chiefs : config->n_workers);
  if (is_chief && i > 0)
    return muster_cli_wrong (
        error, "TF_CONFIG: a job has one chief, and this is chief:%" G_GINT64_FORMAT, i);
  self->index = (guint)i + (is_chief ? 0 : config->n_chiefs);
  self->is_worker = self->index > 0;
  g_free (self->task);
  self->task = g_strdup_printf ("%s:%" G_GINT64_FORMAT, config->type, i);
  return TRUE;
}

/* --- the command's line --- */

static gboolean
take_task (MusterTrainRole *self, const char *task, GError **error)
{
  guint64 number = 0;
  gboolean is_worker = g_str_has_prefix (task, "worker:");
  if (strcmp (task, "chief") != 0 && strcmp (task, "chief:0") != 0 &&
      !(is_worker &&
        g_ascii_string_to_unsigned (task + strlen ("worker:"), 10, 0, MOST_TASKS, &number, NULL)))
    return muster_cli_wrong (error, "--task='%s' is neither chief:0 nor worker:N, N from 0", task);
  self->is_worker = is_worker;
  self->index = is_worker ? (guint)number + 1 : 0;
  if (self->index >= self->n_tasks)
    return muster_cli_wrong (
        error, "--task=%s needs --tasks=%u or more: the chief is one, worker:0 the second", task,
        self->index + 1);
  g_free (self->task);
  self->task = g_strdup (is_worker ? task : "chief:0");
  return TRUE;
}

gboolean
muster_train_role_read (MusterTrainRole *self, const char *task, int n_tasks, const char *master,
                        const char *tf_config, GError **error)
{
  g_auto (Config) config = {0};
  g_auto (MusterTrainRole) role = {.n_tasks = 1, .task = g_strdup ("chief:0")};
  if (n_tasks < 0 || n_tasks > MOST_TASKS)
    return muster_cli_wrong (error, "--tasks=%d: give the number of chief and workers together",
                             n_tasks);
  if (tf_config != NULL && *tf_config != '\0' &&
      (!read_config (&config, tf_config, error) ||
       (task == NULL && !take_config (&role, &config, error))))
    return FALSE;
  if (task != NULL) {
    role.master = g_strdup (config.master);
    role.n_tasks = n_tasks > 0 ? (guint)n_tasks : MAX (config.n_chiefs + config.n_workers, 1);
    if (!take_task (&role, task, error))
      return FALSE;
  } else if (n_tasks > 0) {
    role.n_tasks = (guint)n_tasks;
    if (role.index >= role.n_tasks)
      return muster_cli_wrong (error, "--tasks=%d: this is task %u of TF_CONFIG", n_tasks,
                               role.index + 1);
  }
  if (master != NULL) {
    g_free (role.master);
    role.master = g_strdup (master);
  }
  *self = role;
  role = (MusterTrainRole){0};
  return TRUE;
}
