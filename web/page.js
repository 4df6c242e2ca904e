// What the page does around the program: it loads it, gives each panel a Web Worker with a second instance, and knows addresses, files,
// the clipboard and downloads. The program calls Module.draftproof; it is called as Module._draftproof_... (web/main.cpp, instances.cpp).
'use strict';

// In one file, both are in the page as base64 (web/one_file.cmake); in a folder, they lie beside it.
const glueInside = document.getElementById('glue');
const glueText = glueInside ? new TextDecoder().decode(Uint8Array.from(atob(glueInside.textContent), c => c.charCodeAt(0))) : '';
const glueUrl = glueText ? URL.createObjectURL(new Blob([glueText], {type: 'text/javascript'}))
                         : new URL('draftproof.js', document.baseURI).href;
async function compiledProgram() {
  const inside = document.getElementById('wasm');
  if (inside) return WebAssembly.compile(Uint8Array.from(atob(inside.textContent), c => c.charCodeAt(0)));
  const answer = await fetch('draftproof.wasm');
  if (!answer.ok) throw new Error('draftproof.wasm: ' + answer.status + ' ' + answer.statusText);
  return WebAssembly.compile(await answer.arrayBuffer());  // any server will do, whatever type it gives the file
}

function say(text) {
  document.getElementById('message').textContent = text;
}

// --- Second instances -------------------------------------------------------------------------------------------------

const kPatience_ms = 250;  // for an answer that nobody wants any more; then its instance is ended
let program = null;        // the compiled module, shared by all instances
const opened = [];         // files that the person opened: {path, bytes}

// Runs in the Web Worker: answers to {place, bytes} are {answer, bytes, text}.
function secondInstance() {
  self.onmessage = first => {
    const {program, glueText, glueUrl, opened} = first.data;
    const waiting = [];
    const addFile = ({path, bytes}) => self.Module.FS.writeFile(path, bytes);
    self.Module = {
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(program, imports).then(instance => done(instance, program));
        return {};
      },
      draftproof: {publish: (answer, bytes, text) => self.postMessage({answer, bytes, text}, [bytes.buffer])},
      onRuntimeInitialized() {
        // main() runs next.
        setTimeout(() => {
          opened.forEach(addFile);
          const answerTo = ({data}) => {
            if (data.file) return addFile(data.file);
            self.Module.HEAPU8.set(data.bytes, self.Module._draftproof_arena());
            self.Module._draftproof_compute(data.place);
          };
          self.onmessage = answerTo;
          waiting.forEach(answerTo);
        });
      },
    };
    self.onmessage = message => waiting.push(message);
    if (glueText) (0, eval)(glueText);  // a Web Worker of a page from disk may load nothing, not even what the page made
    else importScripts(glueUrl);
  };
}
const workerUrl = URL.createObjectURL(new Blob(['(' + secondInstance + ')()'], {type: 'text/javascript'}));

class Second {
  constructor(place) {
    this.place = place;
    this.begin();
  }
  begin() {
    this.running = false;
    this.next = null;
    this.worker = new Worker(workerUrl);
    this.worker.onmessage = ({data}) => this.take(data);
    this.worker.onerror = event => this.take({answer: 2, bytes: new Uint8Array(0), text: event.message || 'the Web Worker failed'});
    this.worker.postMessage({program, glueText, glueUrl, opened});
  }
  ask(bytes) {
    if (!this.running) return this.send(bytes);
    this.next = bytes;
    clearTimeout(this.patience);
    this.patience = setTimeout(() => {
      if (!this.next) return;
      const newest = this.next;
      this.worker.terminate();
      this.begin();
      this.send(newest);
    }, kPatience_ms);
  }
  send(bytes) {
    this.running = true;
    this.next = null;
    this.worker.postMessage({place: this.place, bytes});
  }
  take({answer, bytes, text}) {
    const ended = answer !== 0;
    if (ended) this.running = false;
    const begin_ms = performance.now();
    Module.HEAPU8.set(bytes, Module._draftproof_arena());
    Module.ccall('draftproof_take', null, ['number', 'number', 'number', 'string'], [this.place, answer, this.next ? 1 : 0, text]);
    frames.slowest_take_ms = Math.max(frames.slowest_take_ms, performance.now() - begin_ms);
    if (ended && this.next) this.send(this.next);
  }
  stop() {
    clearTimeout(this.patience);
    this.worker.terminate();
    this.begin();
  }
}
const seconds = new Map();

// --- The page ---------------------------------------------------------------------------------------------------------

const given = new URLSearchParams(location.search);
const dark = given.has('theme') ? given.get('theme') !== 'light' : !matchMedia('(prefers-color-scheme: light)').matches;
document.body.classList.toggle('light', !dark);
let address = '';
const frames = {count: 0, first_ms: 0, slowest_build_ms: 0, slowest_take_ms: 0, build_ms: 0};  // for the tests

let pictureWanted = '';

function download(name, blob) {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function open(path, bytes) {
  opened.push({path, bytes});
  Module.FS.writeFile(path, bytes);
  for (const second of seconds.values()) second.worker.postMessage({file: {path, bytes}});
  Module.ccall('draftproof_open', null, ['string'], [path]);
}

var Module = {
  canvas: document.getElementById('canvas'),
  print: text => console.log(text),
  printErr: text => console.error(text),
  instantiateWasm(imports, done) {
    compiledProgram()
      .then(module => {
        program = module;
        return WebAssembly.instantiate(module, imports);
      })
      .then(instance => done(instance, program))
      .catch(error => say('The program could not be loaded: ' + error.message));
    return {};
  },
  onRuntimeInitialized() {
    setTimeout(() => {  // main() runs first
      const begun = Module.ccall('draftproof_begin', 'number', ['number', 'number', 'string'],
                                 [dark ? 1 : 0, devicePixelRatio, given.get('only') || '']);
      if (begun < 0) return;
      goTo();
      addEventListener('hashchange', goTo);
      setInterval(keepAddress, 300);
    });
  },
  draftproof: {
    ask(place, bytes) {
      if (!seconds.has(place)) seconds.set(place, new Second(place));
      seconds.get(place).ask(bytes);
    },
    stop(place) {
      if (seconds.has(place)) seconds.get(place).stop();
    },
    copy(text) {
      Module.draftproof.copied = text;
      if (navigator.clipboard) navigator.clipboard.writeText(text).catch(() => say(''));
    },
    save(name, contents) {
      if (name.endsWith('.png')) pictureWanted = name;
      else download(name, new Blob([contents], {type: name.endsWith('.csv') ? 'text/csv' : 'text/plain'}));
    },
    fail(text) {
      say('draftproof ended: ' + text);
    },
    frameDone(build_ms) {
      if (pictureWanted) {  // now, while the canvas still has what was drawn
        const name = pictureWanted;
        pictureWanted = '';
        Module.canvas.toBlob(blob => download(name, blob));
      }
      if (frames.count++ === 0) {
        frames.first_ms = performance.now();
        say('');
      }
      frames.build_ms += build_ms;
      frames.slowest_build_ms = Math.max(frames.slowest_build_ms, build_ms);
    },
    frames,
  },
};

function goTo() {
  const wanted = location.hash.slice(1);
  if (wanted !== address) Module.ccall('draftproof_go_to', null, ['string'], [wanted]);
}
function keepAddress() {
  if (frames.count < 10) return;  // what was asked for is being taken over
  const now = Module.ccall('draftproof_address', 'string', [], []);
  if (now === address) return;
  address = now;
  try {
    history.replaceState(null, '', now ? '#' + now : location.pathname + location.search);
  } catch (error) {  // some browsers refuse it for a file
  }
}

addEventListener('dragover', event => event.preventDefault());
addEventListener('drop', async event => {
  event.preventDefault();
  for (const file of event.dataTransfer.files) open('/' + file.name, new Uint8Array(await file.arrayBuffer()));
});
addEventListener('paste', event => {
  if (Module.calledRun && Module._draftproof_wants_text()) Module.ccall('draftproof_paste', null, ['string'], [event.clipboardData.getData('text')]);
});
Module.canvas.addEventListener('contextmenu', event => event.preventDefault());

// A finger is the mouse with its button down; two scroll. (Emscripten's GLFW does not know where touches are.)
let scrolledFrom = null;
for (const type of ['touchstart', 'touchmove', 'touchend', 'touchcancel'])
  Module.canvas.addEventListener(type, event => {
    event.preventDefault();
    event.stopImmediatePropagation();
    const touch = event.touches[0] || event.changedTouches[0];
    const at = {clientX: touch.clientX, clientY: touch.clientY, screenX: touch.screenX, screenY: touch.screenY, button: 0, bubbles: true};
    const send = name => Module.canvas.dispatchEvent(new MouseEvent(name, at));
    if (event.touches.length > 1) {
      if (scrolledFrom === null) send('mouseup');
      else Module.canvas.dispatchEvent(new WheelEvent('wheel', {...at, deltaY: scrolledFrom - touch.clientY}));
      scrolledFrom = touch.clientY;
      return;
    }
    if (type === 'touchstart') Module.canvas.focus();
    if (type !== 'touchend' && type !== 'touchcancel') send('mousemove');
    if (type === 'touchstart') send('mousedown');
    if (event.touches.length === 0) {
      send('mouseup');
      scrolledFrom = null;
    }
  }, {capture: true, passive: false});

if (typeof WebAssembly !== 'object') {
  say('This browser has no WebAssembly; ./draftproof dash shows the same panels in a window.');
} else if (!document.createElement('canvas').getContext('webgl2')) {
  say('This browser has no WebGL 2; ./draftproof dash shows the same panels in a window, and --json prints their numbers.');
} else {
  const script = document.createElement('script');
  script.src = glueUrl;
  script.onerror = () => say('draftproof.js could not be loaded.');
  document.body.append(script);
}
