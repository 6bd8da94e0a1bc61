// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_origin_private.h"

#include <string.h>

/* Maximum length of a page's text in an error. */
#define TITLE_MAX 100

/* "x-amz-…", which no other server has. */
static gboolean
has_s3_header (const MusterHttpAnswer *answer)
{
  GHashTableIter iter;
  gpointer name;
  g_hash_table_iter_init (&iter, answer->headers);
  while (g_hash_table_iter_next (&iter, &name, NULL))
    if (g_str_has_prefix (name, "x-amz-"))
      return TRUE;
  return FALSE;
}

static gboolean
is_page (const MusterHttpAnswer *answer)
{
  const char *type = muster_http_header (answer, "content-type");
  return type != NULL && (g_ascii_strncasecmp (type, "text/html", 9) == 0 ||
                          g_ascii_strncasecmp (type, "application/xhtml", 17) == 0);
}

gboolean
muster_s3_is_of_object (const MusterHttpAnswer *answer)
{
  return has_s3_header (answer) ||
         (muster_http_header (answer, "etag") != NULL && !is_page (answer));
}

static const char *
code_of_status (long status)
{
  switch (status) {
  case 401:
  case 403:
    return "AccessDenied";
  case 412:
    return "PreconditionFailed";
  case 416:
    return "InvalidRange";
  case 501:
    return "NotImplemented";
  default:
    return NULL;
  }
}

const char *
muster_s3_code_of (const MusterHttpAnswer *answer, const MusterS3Xml *xml)
{
  if (answer->outcome != MUSTER_HTTP_ANSWERED)
    return NULL;
  if (xml != NULL && (g_strcmp0 (xml->root, "Error") == 0 ||
                      g_strcmp0 (xml->root, "ErrorResponse") == 0)) /* the token service's */
    return xml->code;
  if (answer->text->len > 0 || !has_s3_header (answer))
    return NULL;
  if ((answer->status == 301 || answer->status == 307) &&
      muster_http_header (answer, "x-amz-bucket-region") != NULL)
    return "PermanentRedirect";
  return code_of_status (answer->status);
}

/* Returns TRUE if the response has the bytes from the requested one on. */
static gboolean
is_part (const MusterHttpAnswer *answer, guint64 from)
{
  const char *range = muster_http_header (answer, "content-range");
  g_autofree char *wanted = g_strdup_printf ("bytes %" G_GUINT64_FORMAT "-", from);
  return answer->status == 206 && range != NULL && g_str_has_prefix (range, wanted);
}

gboolean
muster_s3_is_done (const MusterS3Request *request, guint64 from, const MusterHttpAnswer *answer,
                   const MusterS3Xml *xml)
{
  if (answer->status / 100 != 2)
    return FALSE;
  if (request->root != NULL)
    return xml != NULL && g_strcmp0 (xml->root, request->root) == 0;
  if (strcmp (request->method, "DELETE") == 0)
    return answer->status == 204 || has_s3_header (answer);
  if (request->sink != NULL)
    return muster_s3_is_of_object (answer) && is_part (answer, from);
  if (strcmp (request->method, "HEAD") == 0)
    return muster_s3_is_of_object (answer) && muster_http_header (answer, "content-length") != NULL;
  return has_s3_header (answer) ||
         (muster_http_header (answer, "etag") != NULL && answer->text->len == 0);
}

/* The title of a page, or the first line of a text. (transfer full) (nullable) */
static char *
find_title (const char *text)
{
  const char *begin = strcasestr (text, "<title"), *end;
  begin = begin != NULL ? strchr (begin, '>') : NULL;
  if (begin != NULL)
    end = strchrnul (++begin, '<');
  else if (*text == '<')
    return NULL;
  else
    end = (begin = text) + strcspn (text, "\r\n");
  char *title = g_strstrip (g_strndup (begin, (gsize)MIN (end - begin, TITLE_MAX)));
  if (*title == '\0')
    g_clear_pointer (&title, g_free);
  return title;
}

/* Leaves out what follows a '?', which may be confidential. */
static void
add (GString *text, const char *what, const char *value)
{
  if (value != NULL)
    g_string_append_printf (text, "%s%s '%.*s'", text->len > 0 ? ", " : "", what,
                            (int)strcspn (value, "?"), value);
}

char *
muster_s3_describe_origin (const MusterHttpAnswer *answer)
{
  GString *text = g_string_new (NULL);
  g_autofree char *title = find_title (answer->text->str);
  add (text, "server", muster_http_header (answer, "server"));
  add (text, "redirect to", muster_http_header (answer, "location"));
  add (text, "page", title);
  return g_string_free (text, FALSE);
}
