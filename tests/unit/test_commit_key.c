/* Ed25519 keys and signatures, key files, certificates, pins. */
#include "verde/commit/commit.h"

#include "commit_vectors.h"

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void make_dir(void) {
    strcpy(dir, "/tmp/verde-key-XXXXXX");
    cr_assert(mkdtemp(dir));
}

static const char *in_dir(const char *name) {
    static char path[256];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    return path;
}

static void remove_dir(void) {
    static const char *names[] = {"k/key.pem", "k/key.pub", "k/tls.crt", "k", "pem", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        (void)!remove(in_dir(names[i]));
}

static void unhex(const char *hex, void *bytes, size_t size) {
    cr_assert(vd_unhex(hex, bytes, size), "%s", hex);
}

static vd_key *key_of_seed(const char *hex) {
    uint8_t seed[32];
    vd_key *key;
    unhex(hex, seed, sizeof seed);
    cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
    return key;
}

/* RFC 8032 section 7.1, tests 1 to 3. */
static const struct {
    const char *seed, *public, *message, *signature;
} rfc8032[] = {
    {"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
     "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
     "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e06522490155"
     "5fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"},
    {"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
     "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
     "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"
     "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"},
    {"c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
     "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
     "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac"
     "18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"},
};

Test(key, rfc8032_vectors) {
    for (size_t i = 0; i < sizeof rfc8032 / sizeof *rfc8032; i++) {
        vd_key *key = key_of_seed(rfc8032[i].seed);
        vd_public_key public, expected;
        uint8_t message[2], signature[64], wanted[64];
        unhex(rfc8032[i].public, expected.b, 32);
        unhex(rfc8032[i].message, message, i);
        unhex(rfc8032[i].signature, wanted, 64);
        vd_key_public(key, &public);
        cr_expect(memcmp(public.b, expected.b, 32) == 0);
        cr_assert(vd_sign(key, message, i, signature, NULL) == VD_OK);
        cr_expect(memcmp(signature, wanted, 64) == 0);
        cr_expect(vd_verify(&public, message, i, signature));
        cr_expect(vd_public_key_check(&public, NULL) == VD_OK);
        vd_key_destroy(key);
    }
    vd_key_destroy(NULL);
}

Test(key, every_flipped_bit_of_a_signature_key_or_message_is_refused) {
    vd_key *key = key_of_seed(rfc8032[0].seed);
    vd_public_key public;
    uint8_t message[8] = "verdict", signature[64];
    vd_key_public(key, &public);
    cr_assert(vd_sign(key, message, 8, signature, NULL) == VD_OK);
    struct {
        uint8_t *bytes;
        size_t size;
    } part[] = {{message, 8}, {signature, 64}, {public.b, 32}};
    for (size_t p = 0; p < 3; p++)
        for (size_t bit = 0; bit < part[p].size * 8; bit += p == 0 ? 1 : 5) {
            part[p].bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
            cr_expect(!vd_verify(&public, message, 8, signature), "%zu %zu", p, bit);
            part[p].bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
    cr_expect(vd_verify(&public, message, 8, signature));
    cr_expect(!vd_verify(&public, message, 7, signature));
    cr_expect(!vd_verify(&public, NULL, 0, signature));
    vd_key_destroy(key);
}

Test(key, generated_keys_differ_and_sign) {
    vd_key *a, *b;
    vd_public_key pa, pb;
    uint8_t signature[64];
    cr_assert(vd_key_generate(&a, NULL) == VD_OK && vd_key_generate(&b, NULL) == VD_OK);
    vd_key_public(a, &pa);
    vd_key_public(b, &pb);
    cr_expect(memcmp(&pa, &pb, sizeof pa) != 0);
    cr_assert(vd_sign(a, "m", 1, signature, NULL) == VD_OK);
    cr_expect(vd_verify(&pa, "m", 1, signature) && !vd_verify(&pb, "m", 1, signature));
    vd_key_destroy(a);
    vd_key_destroy(b);
}

/* The TLS server of the same thread would take an error left in the queue for its own. */
Test(key, a_refused_signature_leaves_no_error_in_the_queue) {
    vd_public_key public = {{2}}; /* some y */
    uint8_t signature[64];
    memset(signature, 0xff, sizeof signature);
    vd_err err = {0};
    cr_expect(vd_signature_verify(&public, "m", 1, signature, &err) == VD_ERR_PEER);
    vd_key *key;
    cr_expect(vd_key_load("tests/vectors/commit_notes.txt", &key, &err) == VD_ERR_USAGE);
    cr_expect(ERR_peek_error() == 0);
}

/* ---- small order ---- */

static bool openssl_accepts(const vd_public_key *key, const uint8_t *message, size_t size,
                            const uint8_t signature[64]) {
    EVP_PKEY *pkey = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key->b, 32);
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    cr_assert(pkey && EVP_DigestVerifyInit(ctx, NULL, NULL, NULL, pkey) == 1);
    bool accepted = EVP_DigestVerify(ctx, signature, 64, message, size) == 1;
    EVP_MD_CTX_free(ctx);
    EVP_PKEY_free(pkey);
    return accepted;
}

/* With R the neutral element and S = 0, S*B = R + h*A holds whenever the key's order divides h. */
Test(key, of_small_order_lets_openssl_accept_a_signature_by_nobody) {
    FILE *file = vector_open("commit_small_order.txt");
    static const uint8_t forged[64] = {1};
    vector_line line;
    int keys = 0;
    for (; vector_next(file, &line); keys++) {
        vd_public_key key;
        unhex(line.value, key.b, 32);
        int order = atoi(line.key), accepted = 0;
        for (uint8_t message = 0; message < 128; message++) {
            accepted += openssl_accepts(&key, &message, 1, forged);
            cr_assert(!vd_verify(&key, &message, 1, forged));
        }
        cr_expect(order == 1 ? accepted == 128 : accepted > 0 && accepted < 256 / order,
                  "%s: %d of 128", line.value, accepted);
        vd_err err = {0};
        cr_expect(vd_public_key_check(&key, &err) == VD_ERR_PEER && err.text[0], "%s", line.value);
    }
    fclose(file);
    cr_expect(keys == 14, "%d", keys);
}

Test(key, y_of_p_and_above_is_not_canonical) {
    for (int sign = 0; sign < 2; sign++)
        for (int low = 0; low < 256; low++) {
            vd_public_key key;
            vd_err err = {0};
            memset(key.b, 0xff, sizeof key.b);
            key.b[0] = (uint8_t)low;
            key.b[31] = sign ? 0xff : 0x7f;
            vd_status status = vd_public_key_check(&key, &err);
            cr_expect((low < 0xed) != (strstr(err.text, "canonical") != NULL), "%d", low);
            cr_expect(low < 0xec || status == VD_ERR_PEER, "%d", low); /* 0xec: -1, of order 2 */
            err.text[0] = 0;
            key.b[17] = 0xfe;
            cr_expect(vd_public_key_check(&key, &err) == VD_OK || strstr(err.text, "curve"), "%s",
                      err.text);
        }
}

/* ---- the curve ---- */

/* OpenSSL decodes the key when it verifies, and refuses one that is no point like a wrong
 * signature. Whether these y belong to points was computed by hand with Euler's criterion. */
Test(key, of_no_point_of_the_curve_is_refused_wherever_one_is_read) {
    static const struct {
        uint8_t y;
        bool on_curve;
    } small[] = {{2, false}, {3, true}, {4, true}, {5, true}, {6, true}, {7, false}, {8, false}};
    for (size_t i = 0; i < sizeof small / sizeof *small; i++)
        for (int sign = 0; sign < 2; sign++) {
            vd_public_key key = {{small[i].y}}, read;
            char hex[2 * VD_KEY_SIZE + 1];
            vd_err err = {0};
            key.b[31] = sign ? 0x80 : 0;
            vd_hex(key.b, VD_KEY_SIZE, hex);
            const vd_status expected = small[i].on_curve ? VD_OK : VD_ERR_PEER;
            cr_expect(vd_public_key_check(&key, &err) == expected, "%d: %s", small[i].y, err.text);
            cr_expect(small[i].on_curve == !strstr(err.text, "no point of the curve"), "%s",
                      err.text);
            cr_expect(vd_public_key_read(hex, &read, NULL) == expected);
        }
}

Test(key, of_each_key_that_is_made_is_a_point_of_the_curve) {
    for (uint8_t i = 0; i < 200; i++) {
        uint8_t seed[32] = {i};
        vd_key *key;
        vd_public_key public;
        cr_assert(vd_key_from_seed(seed, &key, NULL) == VD_OK);
        vd_key_public(key, &public);
        cr_expect(vd_public_key_check(&public, NULL) == VD_OK, "%d", i);
        vd_key_destroy(key);
    }
}

Test(key, has_64_digits) {
    static const char *const others[] = {
        "", "d7", "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f7075111a",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f70751",
        "D75A980182B10AB7D54BFED3C964073A0EE172F3DAA62325AF021A68F707511A"};
    vd_public_key key;
    vd_err err = {0};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        cr_expect(vd_public_key_read(others[i], &key, &err) == VD_ERR_PEER &&
                      strstr(err.text, "64"),
                  "%s", others[i]);
    cr_expect(vd_public_key_read(rfc8032[0].public, &key, &err) == VD_OK);
}

Test(key, of_a_later_type_is_told_from_none) {
    static const char *const later[] = {"ml-dsa-65:00ff", "x:0", "ed-448:d75a9801"};
    static const char *const none[] = {":00ff", "d75a:9801", "ml-dsa-65:", "ML:00",
                                       "ml:0G", "ml:00 ",    "m l:00"};
    vd_public_key key;
    vd_err err = {0};
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        cr_expect(vd_public_key_read(later[i], &key, &err) == VD_ERR_VERSION, "%s", later[i]);
    cr_expect_str_eq(err.text, "a key of type ed-448; this verde reads keys of Ed25519, 64 digits");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        cr_expect(vd_public_key_read(none[i], &key, NULL) == VD_ERR_PEER, "%s", none[i]);
}

/* ---- signatures at the edges ---- */

Test(key, signatures_count_by_the_equation_without_a_cofactor_and_no_small_order) {
    FILE *file = vector_open("commit_ed25519.txt");
    vector_line line;
    int counts = 0, refused = 0;
    while (vector_next(file, &line)) {
        char flags[200], key_hex[65], signature_hex[129], message[100];
        vd_public_key key;
        uint8_t signature[64];
        cr_assert(sscanf(line.value, "%199s %64s %128s %99[^\n]", flags, key_hex, signature_hex,
                         message) == 4);
        unhex(key_hex, key.b, sizeof key.b);
        unhex(signature_hex, signature, sizeof signature);
        const bool expected = strcmp(line.key, "counts") == 0;
        vd_err err = {0};
        cr_expect((vd_signature_verify(&key, message, strlen(message), signature, &err) == VD_OK) ==
                      expected,
                  "%s %s", flags, signature_hex);
        cr_expect(expected || err.status == VD_ERR_PEER, "%s", err.text);
        counts += expected;
        refused += !expected;
    }
    fclose(file);
    cr_expect(counts == 43 && refused == 123, "%d and %d", counts, refused);
}

/* A signature with S + L in place of S gives the same point, so it would be a second valid
 * signature. */
Test(key, signatures_with_s_of_l_and_above_are_refused) {
    static const uint8_t l[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,       0xd6,
                                  0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10};
    vd_public_key key;
    uint8_t signature[64];
    unsigned carry = 0;
    unhex(rfc8032[1].public, key.b, 32);
    unhex(rfc8032[1].signature, signature, 64);
    cr_expect(vd_verify(&key, "\x72", 1, signature));
    for (int i = 0; i < 32; i++, carry >>= 8)
        signature[32 + i] = (uint8_t)(carry += (unsigned)signature[32 + i] + l[i]);
    cr_expect(!vd_verify(&key, "\x72", 1, signature));
}

/* ---- files ---- */

TestSuite(key_file, .init = make_dir, .fini = remove_dir);

static vd_key *save_new(void) {
    vd_key *key;
    vd_err err = {0};
    cr_assert(vd_key_generate(&key, NULL) == VD_OK);
    cr_assert(vd_key_save(key, in_dir("k"), &err) == VD_OK, "%s", err.text);
    return key;
}

Test(key_file, loads_as_the_key_that_was_saved) {
    vd_key *key = save_new(), *loaded;
    vd_public_key a, b;
    vd_err err = {0};
    struct stat info;
    cr_assert(vd_key_load(in_dir("k/key.pem"), &loaded, &err) == VD_OK, "%s", err.text);
    vd_key_public(key, &a);
    vd_key_public(loaded, &b);
    cr_expect(memcmp(&a, &b, sizeof a) == 0);
    cr_expect(stat(in_dir("k/key.pem"), &info) == 0 && (info.st_mode & 0777) == 0600);
    char hex[66];
    vd_hex(a.b, 32, hex);
    strcat(hex, "\n");
    vd_buf text = {0};
    cr_assert(vd_read_file(in_dir("k/key.pub"), 100, &text, NULL) == VD_OK);
    cr_expect(text.size == 65 && memcmp(text.data, hex, 65) == 0);
    vd_buf_free(&text);
    vd_key_destroy(key);
    vd_key_destroy(loaded);
}

Test(key_file, an_identity_is_never_overwritten) {
    vd_key *key = save_new(), *other;
    vd_buf before = {0}, after = {0};
    vd_err err = {0};
    cr_assert(vd_read_file(in_dir("k/key.pem"), 1000, &before, NULL) == VD_OK);
    cr_assert(vd_read_file(in_dir("k/key.pub"), 1000, &before, NULL) == VD_OK);
    cr_assert(vd_key_generate(&other, NULL) == VD_OK);
    cr_expect(vd_key_save(other, in_dir("k"), &err) == VD_ERR_USAGE);
    cr_expect(strstr(err.text, in_dir("k/key.pem")), "%s", err.text);
    cr_assert(vd_read_file(in_dir("k/key.pem"), 1000, &after, NULL) == VD_OK);
    cr_assert(vd_read_file(in_dir("k/key.pub"), 1000, &after, NULL) == VD_OK);
    cr_expect(before.size == after.size && memcmp(before.data, after.data, after.size) == 0);
    vd_buf_free(&before);
    vd_buf_free(&after);
    vd_key_destroy(key);
    vd_key_destroy(other);
}

static void expect_unloadable(const char *reason) {
    vd_key *key = (vd_key *)dir;
    vd_err err = {0};
    cr_expect(vd_key_load(in_dir("pem"), &key, &err) == VD_ERR_USAGE && !key);
    cr_expect(strstr(err.text, in_dir("pem")) && strstr(err.text, reason), "%s", err.text);
}

static void write_pem(EVP_PKEY *pkey, const EVP_CIPHER *cipher, const char *password) {
    FILE *file = fopen(in_dir("pem"), "w");
    cr_assert(file && PEM_write_PKCS8PrivateKey(file, pkey, cipher, password,
                                                password ? (int)strlen(password) : 0, NULL, NULL));
    fclose(file);
}

/* An encrypted key must not make a daemon ask for a password on a terminal. */
Test(key_file, other_files_are_refused, .timeout = 20) {
    vd_key *key = key_of_seed(rfc8032[0].seed);
    expect_unloadable("No such file");
    write_pem(vd_key_evp(key), EVP_aes_128_cbc(), "secret");
    expect_unloadable("unencrypted");
    EVP_PKEY *p256 = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    EVP_PKEY *x25519 = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
    write_pem(p256, NULL, NULL);
    expect_unloadable("Ed25519");
    write_pem(x25519, NULL, NULL);
    expect_unloadable("Ed25519");
    EVP_PKEY_free(p256);
    EVP_PKEY_free(x25519);
    FILE *file = fopen(in_dir("pem"), "w");
    cr_assert(PEM_write_PUBKEY(file, vd_key_evp(key)));
    fclose(file);
    expect_unloadable("private key");
    cr_assert(truncate(in_dir("pem"), 40) == 0);
    expect_unloadable("PEM");
    cr_assert(truncate(in_dir("pem"), 0) == 0);
    expect_unloadable("PEM");
    cr_assert(truncate(in_dir("pem"), 1 << 20) == 0);
    expect_unloadable("too large");
    vd_key_destroy(key);
}

static X509 *read_certificate(void) {
    FILE *file = fopen(in_dir("k/tls.crt"), "r");
    cr_assert(file);
    X509 *cert = PEM_read_X509(file, NULL, NULL, NULL);
    fclose(file);
    cr_assert(cert);
    return cert;
}

Test(key_file, the_certificate_is_for_this_host_and_ten_years) {
    vd_key *key = save_new();
    X509 *cert = read_certificate();
    cr_expect(X509_get_version(cert) == X509_VERSION_3);
    cr_expect(X509_verify(cert, vd_key_evp(key)) == 1);
    cr_expect(EVP_PKEY_eq(X509_get0_pubkey(cert), vd_key_evp(key)) == 1);
    cr_expect(X509_check_host(cert, "localhost", 0, 0, NULL) == 1);
    cr_expect(X509_check_ip_asc(cert, "127.0.0.1", 0) == 1);
    cr_expect(X509_check_ip_asc(cert, "::1", 0) == 1);
    cr_expect(X509_check_ip_asc(cert, "127.0.0.2", 0) == 0);
    cr_expect(X509_check_host(cert, "example.org", 0, 0, NULL) == 0);
    int days, seconds;
    cr_assert(ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(cert)));
    cr_expect(days >= 3651 && days <= 3653, "%d", days);
    cr_expect(X509_cmp_current_time(X509_get0_notBefore(cert)) < 0);
    X509_free(cert);
    vd_key_destroy(key);
}

/* Verifies as a client does that trusts exactly this certificate. */
Test(key_file, the_certificate_verifies_when_it_is_the_trusted_one) {
    vd_key *key = save_new();
    X509 *cert = read_certificate();
    X509_STORE *store = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    cr_assert(X509_STORE_add_cert(store, cert) && X509_STORE_CTX_init(ctx, store, cert, NULL));
    X509_STORE_CTX_set_purpose(ctx, X509_PURPOSE_SSL_SERVER);
    cr_assert(X509_VERIFY_PARAM_set1_ip_asc(X509_STORE_CTX_get0_param(ctx), "127.0.0.1"));
    int verified = X509_verify_cert(ctx);
    cr_expect(verified == 1, "%s", X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx)));
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(store);
    X509_free(cert);
    vd_key_destroy(key);
}

/* The expected pin comes from: openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary |
 * base64 */
Test(key, pin_is_the_hash_of_the_spki_that_openssl_writes) {
    vd_key *key = key_of_seed(rfc8032[0].seed);
    vd_public_key public;
    vd_key_public(key, &public);
    uint8_t *der = NULL;
    int size = i2d_PUBKEY(vd_key_evp(key), &der);
    vd_hash hash;
    cr_assert(size == 44 && vd_hash_tagged(NULL, der, 44, &hash));
    char *digest = vd_base64(hash.b, 32), expected[80], pin[64];
    snprintf(expected, sizeof expected, "sha256//%s", digest);
    cr_expect(vd_public_key_pin(&public, pin));
    cr_expect_str_eq(pin, expected);
    free(digest);
    OPENSSL_free(der);
    vd_key_destroy(key);
}
