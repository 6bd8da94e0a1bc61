// SPDX-License-Identifier: Apache-2.0
/* Reads S3's XML answers: errors, lists of objects, lists of uploads. Depth and sizes are
 * bounded, because the answer may come from anybody. */
#include "checkpoint/s3/s3_xml_private.h"

#include "base/error.h"

#include <string.h>

/* S3's answers nest four deep. */
#define DEPTH_MAX 16

typedef struct {
  MusterS3Xml *xml;
  guint depth;
  char *names[DEPTH_MAX]; /* (owned) of the open elements, without a namespace */
  GString *text;          /* of the innermost one */
  gboolean is_encoded;    /* names in the list are percent-encoded */
} Parser;

static void
on_start (GMarkupParseContext *context G_GNUC_UNUSED, const char *name,
          const char **attributes G_GNUC_UNUSED, const char **values G_GNUC_UNUSED, gpointer data,
          GError **error)
{
  Parser *self = data;
  const char *colon = strchr (name, ':');
  if (self->depth == DEPTH_MAX) {
    g_set_error (error, G_MARKUP_ERROR, G_MARKUP_ERROR_INVALID_CONTENT,
                 "elements nest deeper than %d", DEPTH_MAX);
    return;
  }
  name = colon != NULL ? colon + 1 : name;
  if (self->xml->root == NULL)
    self->xml->root = g_strdup (name);
  self->names[self->depth++] = g_strdup (name);
  if (strcmp (name, "Upload") == 0)
    g_ptr_array_add (self->xml->uploads, g_new0 (MusterS3Pending, 1));
  g_string_truncate (self->text, 0);
}

static void
on_text (GMarkupParseContext *context G_GNUC_UNUSED, const char *text, gsize size, gpointer data,
         GError **error G_GNUC_UNUSED)
{
  g_string_append_len (((Parser *)data)->text, text, (gssize)size);
}

static MusterS3Pending *
last_upload (Parser *self)
{
  return self->xml->uploads->pdata[self->xml->uploads->len - 1];
}

static gboolean
take_upload (Parser *self, const char *name, const char *text)
{
  MusterS3Pending *upload = last_upload (self);
  char **field = strcmp (name, "Key") == 0         ? &upload->key
                 : strcmp (name, "UploadId") == 0  ? &upload->id
                 : strcmp (name, "Initiated") == 0 ? &upload->initiated
                                                   : NULL;
  if (field == NULL || *field != NULL)
    return FALSE;
  *field = g_strdup (text);
  return TRUE;
}

static gboolean
take_listed (Parser *self, const char *parent, const char *name, const char *text)
{
  if (strcmp (parent, "Upload") == 0)
    return take_upload (self, name, text);
  if (strcmp (parent, "Contents") == 0 && strcmp (name, "Key") == 0) {
    g_ptr_array_add (self->xml->keys, g_strdup (text));
    return TRUE;
  }
  if (strcmp (parent, "CommonPrefixes") == 0 && strcmp (name, "Prefix") == 0) {
    g_ptr_array_add (self->xml->prefixes, g_strdup (text));
    return TRUE;
  }
  return FALSE;
}

/* Returns the field of an element that an answer has once. Code and message count in an Error
 * only. */
static char **
find_field (MusterS3Xml *xml, const char *parent, const char *name)
{
  const gboolean is_of_error = strcmp (parent, "Error") == 0;
  const struct {
    const char *name;
    char **field;
  } fields[] = {
      {"NextContinuationToken", &xml->next_token},
      {"NextKeyMarker", &xml->next_key_marker},
      {"NextUploadIdMarker", &xml->next_upload_marker},
      {"UploadId", &xml->upload_id},
      {"ETag", &xml->etag},
      {"Code", is_of_error ? &xml->code : NULL},
      {"Message", is_of_error ? &xml->message : NULL},
      {"Region", is_of_error ? &xml->region : NULL},
      {"AccessKeyId", &xml->access_key_id},
      {"SecretAccessKey", &xml->secret_access_key},
      {"SessionToken", &xml->session_token},
      {"Expiration", &xml->expiration},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (fields); i++)
    if (strcmp (fields[i].name, name) == 0)
      return fields[i].field;
  return NULL;
}

static void
take (Parser *self, const char *parent, const char *name, const char *text)
{
  if (take_listed (self, parent, name, text))
    return;
  char **field = find_field (self->xml, parent, name);
  if (field != NULL && *field == NULL)
    *field = g_strdup (text);
  else if (strcmp (name, "IsTruncated") == 0)
    self->xml->is_truncated = strcmp (text, "true") == 0;
  else if (strcmp (name, "EncodingType") == 0)
    self->is_encoded = strcmp (text, "url") == 0;
}

static void
on_end (GMarkupParseContext *context G_GNUC_UNUSED, const char *name G_GNUC_UNUSED, gpointer data,
        GError **error G_GNUC_UNUSED)
{
  Parser *self = data;
  g_autofree char *ended = self->names[--self->depth];
  take (self, self->depth > 0 ? self->names[self->depth - 1] : "", ended, self->text->str);
  g_string_truncate (self->text, 0);
}

/* Decodes as in a form: '+' is a space. A name that isn't encoded properly stays as it is. */
static char *
decode (char *name)
{
  g_autofree char *encoded = name;
  g_strdelimit (encoded, "+", ' ');
  char *decoded = g_uri_unescape_string (encoded, NULL);
  return decoded != NULL ? decoded : g_steal_pointer (&encoded);
}

static void
decode_all (MusterS3Xml *xml)
{
  for (guint i = 0; i < xml->keys->len; i++)
    xml->keys->pdata[i] = decode (xml->keys->pdata[i]);
  for (guint i = 0; i < xml->prefixes->len; i++)
    xml->prefixes->pdata[i] = decode (xml->prefixes->pdata[i]);
  for (guint i = 0; i < xml->uploads->len; i++) {
    MusterS3Pending *upload = xml->uploads->pdata[i];
    if (upload->key != NULL)
      upload->key = decode (upload->key);
  }
  if (xml->next_key_marker != NULL)
    xml->next_key_marker = decode (xml->next_key_marker);
}

static void
pending_free (gpointer data)
{
  MusterS3Pending *self = data;
  g_free (self->key);
  g_free (self->id);
  g_free (self->initiated);
  g_free (self);
}

MusterS3Xml *
muster_s3_xml_parse (const char *text, gsize size, GError **error)
{
  static const GMarkupParser functions = {
      .start_element = on_start, .end_element = on_end, .text = on_text};
  g_autoptr (GError) why = NULL;
  g_autoptr (MusterS3Xml) xml = g_new0 (MusterS3Xml, 1);
  Parser self = {.xml = xml, .text = g_string_new (NULL)};
  xml->keys = g_ptr_array_new_with_free_func (g_free);
  xml->prefixes = g_ptr_array_new_with_free_func (g_free);
  xml->uploads = g_ptr_array_new_with_free_func (pending_free);
  GMarkupParseContext *context =
      g_markup_parse_context_new (&functions, G_MARKUP_TREAT_CDATA_AS_TEXT, &self, NULL);
  const gboolean is_whole = g_markup_parse_context_parse (context, text, (gssize)size, &why) &&
                            g_markup_parse_context_end_parse (context, &why);
  g_markup_parse_context_free (context);
  g_string_free (self.text, TRUE);
  while (self.depth > 0)
    g_free (self.names[--self.depth]);
  if (!is_whole) {
    muster_fail (error, MUSTER_ERROR_INTERNAL, "the answer isn't the XML of S3: %s", why->message);
    return NULL;
  }
  if (self.is_encoded)
    decode_all (xml);
  return g_steal_pointer (&xml);
}

void
muster_s3_xml_free (MusterS3Xml *self)
{
  if (self == NULL)
    return;
  g_ptr_array_unref (self->keys);
  g_ptr_array_unref (self->prefixes);
  g_ptr_array_unref (self->uploads);
  char *const texts[] = {self->root,
                         self->next_token,
                         self->next_key_marker,
                         self->next_upload_marker,
                         self->upload_id,
                         self->etag,
                         self->code,
                         self->message,
                         self->region,
                         self->access_key_id,
                         self->session_token,
                         self->expiration,
                         self->secret_access_key};
  for (gsize i = 0; i < G_N_ELEMENTS (texts); i++)
    g_free (texts[i]);
  g_free (self);
}
