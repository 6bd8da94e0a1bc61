// SPDX-License-Identifier: Apache-2.0
/* A server's tokens: the file with its roles, and the search, which compares hashes. */
#include "rpc/tokens_private.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <string.h>

#define MAX_TOKEN  ((gsize)4096)
#define MAX_TOKENS 1000
/* Of the file: comments, roles, and whitespace that an editor may add. */
#define MAX_FILE   ((gsize)1 << 20)
#define HASHED     "sha256:"
#define HASH_BYTES 32

typedef struct {
  guint8 hash[HASH_BYTES];
  MusterRole role;
  guint line;
} Token;

struct _MusterTokens {
  gatomicrefcount refs;
  GArray *items; /* (owned) (element-type Token) */
};

static const EVP_MD *
sha256 (void)
{
  static EVP_MD *md; /* fetched once: EVP_sha256 () is fetched for each digest */
  if (g_once_init_enter (&md))
    g_once_init_leave (&md, EVP_MD_fetch (NULL, "SHA256", NULL));
  return md;
}

static void
hash_token (const char *token, gsize size, guint8 hash[HASH_BYTES])
{
  int is_done = EVP_Digest (token, size, hash, NULL, sha256 (), NULL);
  g_assert (is_done == 1);
}

/* --- the file --- */

/* A line of the file, without whitespace around it. */
typedef struct {
  const char *path;
  const char *text;
  gsize size;
  guint number;
} Line;

static gboolean
bad_line (const Line *line, const char *why, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the token file '%s', line %u, %s",
                      line->path, line->number, why);
}

static void
strip (Line *line)
{
  while (line->size > 0 && g_ascii_isspace (*line->text)) {
    line->text++;
    line->size--;
  }
  while (line->size > 0 && g_ascii_isspace (line->text[line->size - 1]))
    line->size--;
}

/* The role of that name, in lower case only; MUSTER_ROLE_NONE. *is_meant: in any case. */
static MusterRole
find_role (const char *name, gsize size, gboolean *is_meant)
{
  static const MusterRole roles[] = {MUSTER_ROLE_READ, MUSTER_ROLE_RUN, MUSTER_ROLE_ADMIN};
  *is_meant = FALSE;
  for (gsize i = 0; i < G_N_ELEMENTS (roles); i++) {
    const char *known = muster_role_name (roles[i]);
    if (strlen (known) != size || g_ascii_strncasecmp (name, known, size) != 0)
      continue;
    *is_meant = TRUE;
    return memcmp (name, known, size) == 0 ? roles[i] : MUSTER_ROLE_NONE;
  }
  return MUSTER_ROLE_NONE;
}

/* Takes the role before the line's first blank. A line of one word is an administrator's token: a
 * misspelt role must not become one. */
static gboolean
take_role (Line *line, MusterRole *role, GError **error)
{
  gsize n = 0;
  gboolean is_meant;
  while (n < line->size && !g_ascii_isspace (line->text[n]))
    n++;
  *role = find_role (line->text, n, &is_meant);
  if (n == line->size && is_meant)
    return bad_line (line, "has a role without a token", error);
  if (n == line->size) {
    *role = MUSTER_ROLE_ADMIN;
    return TRUE;
  }
  if (*role == MUSTER_ROLE_NONE)
    return bad_line (line, "has an unknown role before the blank (use read, run or admin)", error);
  line->text += n;
  line->size -= n;
  strip (line);
  return TRUE;
}

static gboolean
is_hashed (const Line *line)
{
  return line->size >= strlen (HASHED) && memcmp (line->text, HASHED, strlen (HASHED)) == 0;
}

/* "SHA256:", "sha-256=" and the like: taken for a token, it would be one that everybody may read.
 */
static gboolean
looks_hashed (const Line *line)
{
  gsize i = strlen ("sha");
  if (line->size <= i || g_ascii_strncasecmp (line->text, "sha", i) != 0)
    return FALSE;
  i += line->text[i] == '-' || line->text[i] == '_';
  const gsize digits = i;
  while (i < line->size && g_ascii_isdigit (line->text[i]))
    i++;
  return i > digits && i < line->size && strchr (":=-_$", line->text[i]) != NULL;
}

static gboolean
read_hash (const Line *line, guint8 hash[HASH_BYTES], GError **error)
{
  const char *digits = line->text + strlen (HASHED);
  gboolean is_good = line->size == strlen (HASHED) + (gsize)2 * HASH_BYTES;
  for (gsize i = 0; is_good && i < HASH_BYTES; i++) {
    int high = g_ascii_xdigit_value (digits[2 * i]);
    int low = g_ascii_xdigit_value (digits[2 * i + 1]);
    is_good = high >= 0 && low >= 0;
    hash[i] = (guint8)(high * 16 + low);
  }
  return is_good || bad_line (line, "is invalid (use " HASHED " and 64 hexadecimal digits)", error);
}

static gboolean
check_token (const Line *line, GError **error)
{
  if (line->size > MAX_TOKEN)
    return bad_line (line, "is too long: the limit is 4096 bytes", error);
  for (gsize i = 0; i < line->size; i++)
    if (!g_ascii_isgraph (line->text[i]))
      return bad_line (line, "must be printable ASCII without blanks", error);
  return !looks_hashed (line) ||
         bad_line (line, "looks like a hash (use " HASHED " and 64 hexadecimal digits)", error);
}

/* own is as in muster_tokens_read (). */
static gboolean
read_line (MusterTokens *self, Line *line, MusterSecret *own, GError **error)
{
  Token token = {.line = line->number};
  if (!take_role (line, &token.role, error))
    return FALSE;
  if (own != NULL && self->items->len > 0) {
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "the token file '%s' must contain one line, a client's token", line->path);
  }
  if (self->items->len >= MAX_TOKENS)
    return bad_line (line, "is one too many: the limit is 1000 tokens", error);
  if (is_hashed (line)) {
    if (own != NULL)
      return bad_line (line, "is the hash of a token: a client needs the token itself", error);
    if (!read_hash (line, token.hash, error))
      return FALSE;
  } else {
    if (!check_token (line, error))
      return FALSE;
    hash_token (line->text, line->size, token.hash);
    if (own != NULL)
      *own = (MusterSecret){g_strndup (line->text, line->size), line->size};
  }
  g_array_append_val (self->items, token);
  return TRUE;
}

static gboolean
read_lines (MusterTokens *self, const char *path, const MusterSecret *file, MusterSecret *own,
            GError **error)
{
  const char *at = file->text, *end = file->text + file->size;
  for (guint number = 1; at < end; number++) {
    const char *stop = memchr (at, '\n', (gsize)(end - at));
    stop = stop != NULL ? stop : end;
    Line line = {path, at, (gsize)(stop - at), number};
    strip (&line);
    if (line.size > 0 && *line.text != '#' && !read_line (self, &line, own, error))
      return FALSE;
    at = stop + 1;
  }
  if (self->items->len > 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the token file '%s' is empty", path);
}

MusterTokens *
muster_tokens_read (const char *path, MusterSecret *own, GError **error)
{
  const MusterSecretFile file = {path, "the token file", MAX_FILE, TRUE};
  g_auto (MusterSecret) text = {0};
  g_auto (MusterSecret) found = {0};
  if (!muster_secret_read (&text, &file, error))
    return NULL;
  g_autoptr (MusterTokens) self = g_new0 (MusterTokens, 1);
  g_atomic_ref_count_init (&self->refs);
  self->items = g_array_new (FALSE, FALSE, sizeof (Token));
  if (!read_lines (self, path, &text, own != NULL ? &found : NULL, error))
    return NULL;
  if (own != NULL) {
    *own = found;
    found = (MusterSecret){0};
  }
  return g_steal_pointer (&self);
}

MusterTokens *
muster_tokens_ref (MusterTokens *self)
{
  g_atomic_ref_count_inc (&self->refs);
  return self;
}

void
muster_tokens_unref (MusterTokens *self)
{
  if (self == NULL || !g_atomic_ref_count_dec (&self->refs))
    return;
  g_array_unref (self->items);
  g_free (self);
}

gsize
muster_tokens_size (const MusterTokens *self)
{
  return self->items->len;
}

gboolean
muster_tokens_equal (const MusterTokens *self, const MusterTokens *other)
{
  if (self == NULL || other == NULL || self->items->len != other->items->len)
    return self == other;
  for (guint i = 0; i < self->items->len; i++) {
    const Token *one = &g_array_index (self->items, Token, i);
    const Token *another = &g_array_index (other->items, Token, i);
    if (one->role != another->role || memcmp (one->hash, another->hash, HASH_BYTES) != 0)
      return FALSE;
  }
  return TRUE;
}

MusterRole
muster_tokens_find (const MusterTokens *self, const char *token, gsize size, guint *line,
                    guint64 *mark)
{
  MusterRole found = MUSTER_ROLE_NONE;
  guint8 hash[HASH_BYTES];
  if (size > MAX_TOKEN)
    return found;
  hash_token (token, size, hash);
  for (guint i = 0; i < self->items->len; i++) {
    const Token *item = &g_array_index (self->items, Token, i);
    if (CRYPTO_memcmp (item->hash, hash, HASH_BYTES) != 0 || item->role <= found)
      continue;
    found = item->role;
    if (line != NULL)
      *line = item->line;
    if (mark != NULL)
      memcpy (mark, hash, sizeof *mark);
  }
  return found;
}
