"use strict";
// The verifier runs in this worker, so that the page can show its progress. Text is passed as
// addresses of bytes; no floating-point numbers are passed.
onmessage = ({ data }) => {
    let memory;
    const text = (at) => {
        const bytes = new Uint8Array(memory.buffer, at >>> 0);
        return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
    };
    const none = () => 52; // "no such function": libc must not reach files
    try {
        const { exports } = new WebAssembly.Instance(new WebAssembly.Module(data.module), {
            page: { tell: (at) => postMessage({ line: text(at) }) },
            wasi_snapshot_preview1: { fd_close: none, fd_seek: none, fd_write: none },
        });
        memory = exports.memory;
        exports._initialize();
        const at = exports.reserve(data.verdict.byteLength) >>> 0;
        if (at === 0) throw new Error("the verdict does not fit into its memory");
        new Uint8Array(memory.buffer).set(new Uint8Array(data.verdict), at);
        const seed = crypto.getRandomValues(new Uint32Array(1))[0];
        const code = exports.decide(data.verdict.byteLength, seed);
        postMessage({ code, said: text(exports.said()) });
    } catch (error) {
        postMessage({ code: 1, said: `This browser cannot run the verifier on it: ${error.message}` });
    }
};
