/* This file answers requests about blobs: how far an upload is, and chunks of it. */
#include "verde/provide/internal.h"

static json_t *describe(const vd_upload_place *p) {
    json_t *out = json_pack("{sI sb so}", "have", (json_int_t)p->have, "complete", p->complete,
                            "size", p->size < 0 ? json_null() : json_integer(p->size));
    if (out && p->hashing)
        json_object_set_new(out, "hashed", json_integer((json_int_t)p->hashed));
    return out;
}

static void tell_fate(const vd_daemon *daemon, const char *hash, vd_chunk_fate fate,
                      const vd_upload_place *place, vd_response *response) {
    switch (fate) {
    case VD_CHUNK_TAKEN: vd_reply(response, 200, describe(place)); break;
    case VD_CHUNK_ELSEWHERE:
        vd_reply(response, 409,
                 json_pack("{ss sI}", "error",
                           "a chunk must begin where the upload has come to, "
                           "and not go beyond its size",
                           "have", (json_int_t)place->have));
        break;
    case VD_CHUNK_OTHER_SIZE:
        vd_reply(response, 409,
                 json_pack("{ss sI sI}", "error",
                           "the size of a blob stays what its first chunk said; what has come of "
                           "it stays too",
                           "have", (json_int_t)place->have, "size", (json_int_t)place->size));
        break;
    case VD_CHUNK_WRONG:
        vd_reply_error(response, 422, "the bytes do not have the hash %s: all of them are dropped",
                       hash);
        break;
    case VD_CHUNK_DISK_FULL:
        vd_reply_error(response, 507,
                       "this provider's disk is full; what it has of the blob stays");
        break;
    case VD_CHUNK_TOO_MANY:
        vd_reply_error(response, 413, "the limit of a client is %lld blobs",
                       (long long)daemon->options.limits.client_blobs);
        break;
    case VD_CHUNK_OVER_QUOTA:
        vd_reply_error(response, 413,
                       "the limit of a client is %lld bytes, of blobs and results of jobs together",
                       (long long)daemon->options.limits.client_bytes);
        break;
    }
}

static void get_blob(vd_daemon *daemon, const char *client, const vd_route *route,
                     vd_response *response) {
    vd_upload_place place;
    vd_chunk_fate fate;
    vd_err err = {0};
    if (vd_uploads_find(&daemon->uploads, client, route->id, &fate, &place, &err) == VD_OK)
        tell_fate(daemon, route->id, fate, &place, response);
    else
        vd_reply_trouble(daemon, response, &err);
}

static void put_chunk(vd_daemon *daemon, const char *client, const vd_route *route,
                      const vd_request *request, vd_response *response) {
    const vd_chunk chunk = {client,      route->id,     route->size,
                            route->from, request->body, request->body_size};
    vd_chunk_fate fate;
    vd_upload_place place;
    vd_err err = {0};
    if (chunk.size == 0 || chunk.count == 0) {
        vd_reply_error(response, 400, "neither a blob nor a chunk is empty");
        return;
    }
    atomic_fetch_add(&daemon->bytes_in, (long long)chunk.count);
    const vd_quota quota = {daemon->options.limits.client_bytes,
                            daemon->options.limits.client_blobs};
    if (vd_uploads_put(&daemon->uploads, &chunk, &quota, vd_unix_time(), &fate, &place, &err) ==
        VD_OK)
        tell_fate(daemon, route->id, fate, &place, response);
    else
        vd_reply_trouble(daemon, response, &err);
}

void vd_serve_blob(vd_daemon *daemon, const char *client, const vd_route *route,
                   const vd_request *request, vd_response *response) {
    if (route->is_get)
        get_blob(daemon, client, route, response);
    else
        put_chunk(daemon, client, route, request, response);
}
