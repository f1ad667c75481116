#include "tests/sim/keys.h"

#include <string.h>

#include "tests/sim/toy.h"

static bool sim_signature(const vd_public_key *key, const void *message, size_t size,
                          uint8_t signature[VD_SIGNATURE_SIZE]) {
    vd_hash both[2];
    if (!vd_hash_tagged("sim/message", message, size, &both[0]))
        return false;
    memcpy(both[1].b, key->b, VD_KEY_SIZE);
    if (!vd_hash_tagged("sim/signature", both, sizeof both, &both[1]))
        return false;
    memcpy(signature, both, VD_SIGNATURE_SIZE);
    return true;
}

static vd_status sign_by_hash(void *user, const void *message, size_t size,
                              uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    vd_public_key key;
    memcpy(&key, user, sizeof key);
    return sim_signature(&key, message, size, signature) ? VD_OK
                                                         : vd_fail(err, VD_ERR_LOCAL, "no hash");
}

/* Replaces vd_signature_verify (see keys.h). */
vd_status __wrap_vd_signature_verify(const vd_public_key *key, const void *message, size_t size,
                                     const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err);

vd_status __wrap_vd_signature_verify(const vd_public_key *key, const void *message, size_t size,
                                     const uint8_t signature[VD_SIGNATURE_SIZE], vd_err *err) {
    uint8_t expected[VD_SIGNATURE_SIZE];
    vd_status status = vd_public_key_check(key, err);
    if (status != VD_OK)
        return status;
    if (!sim_signature(key, message, size, expected))
        return vd_fail(err, VD_ERR_LOCAL, "no hash");
    return memcmp(signature, expected, sizeof expected) == 0
               ? VD_OK
               : vd_fail(err, VD_ERR_PEER, "the signature is not by this key over these bytes");
}

/* Keys exist as long as the program, so that signers may point to them. */
vd_key *sim_key(uint32_t number) {
    enum { KEYS = 128 };
    static vd_public_key known[KEYS];
    vd_hash hash;
    vd_key *key;
    sim_need(number < KEYS, "more keys than there are");
    sim_need(vd_hash_tagged("sim/key", &number, sizeof number, &hash), "no hash");
    hash.b[VD_KEY_SIZE - 1] &= 0x3f; /* an encoded key must be below the field's prime */
    memcpy(known[number].b, hash.b, VD_KEY_SIZE);
    while (vd_public_key_check(&known[number], NULL) != VD_OK)
        known[number].b[0]++; /* until it is a point on the curve */
    sim_need(vd_key_elsewhere(&known[number], sign_by_hash, &known[number], &key, NULL) == VD_OK,
             "no key");
    return key;
}
