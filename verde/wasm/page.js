"use strict";
// Used by verify.html, onto which a verdict is dropped, and by a verdict's page, which has one.
const LIMIT = 360 << 20; // largest verdict in bytes: as many as were tried (docs/pages.md)
const OUTCOME = {
    0: ["This verdict holds", "good"],
    6: ["This verdict does not hold", "bad"],
    8: ["This verifier cannot decide it", "wait"],
    1: ["The verifier failed", "wait"],
};
const get = (id) => document.getElementById(id);
const bytesOf = (id) => Uint8Array.from(atob(get(id).textContent.trim()), (c) => c.charCodeAt(0));
let worker = null, module = null, clock = 0;

function show(code, said, story) {
    const [text, mood] = OUTCOME[code] ?? OUTCOME[1];
    clearInterval(clock);
    get("outcome").textContent = text;
    get("outcome").className = `outcome ${mood}`;
    get("said").textContent = said;
    get("story").textContent = story.join("\n");
    get("result").dataset.code = code;
    get("result").hidden = false;
}

async function unpack() {
    const packed = new Blob([bytesOf("module")]).stream();
    return new Response(packed.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
}

async function decide(name, verdict) {
    const began = performance.now(), story = [];
    const seconds = () => ((performance.now() - began) / 1000).toFixed(1);
    const progress = (text) => (get("progress").textContent = `${name}: ${text}`);
    const now = () => progress(`${story.at(-1) ?? "Checking signatures."} ${seconds()} s`);
    worker?.terminate();
    clearInterval(clock);
    get("result").hidden = true;
    if (verdict.byteLength > LIMIT) {
        show(1, `It has ${verdict.byteLength} bytes, and this page reads at most ${LIMIT}. ` +
            "`verde verify` decides larger ones.", story);
        return;
    }
    clock = setInterval(now, 100);
    now();
    try {
        module ??= await unpack();
    } catch (error) {
        show(1, `This browser cannot unpack the verifier: ${error.message}`, story);
        return;
    }
    const source = URL.createObjectURL(new Blob([get("worker").textContent]));
    worker = new Worker(source);
    worker.onerror = (event) => show(1, `The verifier stopped: ${event.message}`, story);
    worker.onmessage = ({ data }) => {
        if (data.line !== undefined) {
            story.push(data.line);
            return;
        }
        show(data.code, data.said, story);
        progress(`decided in ${seconds()} s.`);
        worker.terminate();
        URL.revokeObjectURL(source);
    };
    worker.postMessage({ module, verdict }, [verdict]);
}

const read = async (file) => file && decide(file.name, await file.arrayBuffer());

function dropping(area) {
    const over = (on) => (event) => {
        event.preventDefault();
        area.classList.toggle("over", on);
    };
    addEventListener("dragover", over(true));
    addEventListener("dragleave", over(false));
    addEventListener("drop", (event) => {
        over(false)(event);
        read(event.dataTransfer.files[0]);
    });
    get("file").onchange = () => read(get("file").files[0]);
}

function holding(holder) {
    const name = holder.dataset.name;
    get("again").onclick = () => decide(name, bytesOf("verdict").buffer);
    get("save").onclick = () => {
        const link = document.createElement("a");
        link.href = URL.createObjectURL(new Blob([bytesOf("verdict")]));
        link.download = name;
        link.click();
    };
}

if (get("drop")) dropping(get("drop"));
else holding(get("verdict"));
