// The page around the program: loads it, gives each panel a Web Worker with a second instance, and handles addresses, files,
// the clipboard and downloads. The program calls Module.draftproof; it is called as Module._draftproof_... (web/main.cpp, instances.cpp).
'use strict';

// The program is draftproof.js and draftproof.wasm. They lie beside the page, or are inside it, packed by web/one_file.mjs.
let glueText = '';  // where it is inside
let glueUrl = new URL('draftproof.js', document.baseURI).href;

async function unpacked(element) {
  const byteOf = new Uint8Array(0x10000);
  const characters = new TextDecoder('windows-1252').decode(Uint8Array.from({length: 256}, (none, byte) => byte));
  for (let byte = 0; byte < 256; ++byte) byteOf[characters.charCodeAt(byte)] = byte;
  const text = element.textContent;
  const packed = new Uint8Array(text.length);
  let size = 0;
  for (let i = 0; i < text.length; ++i)
    packed[size++] = text[i] === '=' ? byteOf[text.charCodeAt(++i)] - 64 : byteOf[text.charCodeAt(i)];
  const bytes = new Blob([packed.subarray(0, size)]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(bytes).arrayBuffer();
}

async function compiledProgram() {
  const inside = document.getElementById('wasm');
  if (inside) return WebAssembly.compile(await unpacked(inside));
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

// Files of the language model: loaded on request, from beside the page or from the person's own disk, and read where they lie
// by the instances that compute with them.
const kModelFiles = {
  'SmolLM2-135M-Instruct.gguf': {folder: '/share/draftproof/models', bytes: 98362432},
  'eagle3.gguf': {folder: '/share/draftproof/experiments/heads/smollm2-eagle3', bytes: 5771328},
};
const modelFiles = [];  // {name, folder, data}

// Runs in the Web Worker: answers to {place, bytes} are {answer, bytes, text}.
function secondInstance() {
  self.onmessage = first => {
    const {program, glueText, glueUrl, opened, modelFiles} = first.data;
    const waiting = [], expressions = [];
    const addFile = ({path, bytes}) => self.Module.FS.writeFile(path, bytes);
    self.Module = {
      instantiateWasm(imports, done) {
        WebAssembly.instantiate(program, imports).then(instance => done(instance, program));
        return {};
      },
      draftproof: {
        publish: (answer, bytes, text) => self.postMessage({answer, bytes, text}, [bytes.buffer]),
        // Tokenizers' expressions (web/pre_tokenizer_browser.cpp), written for PCRE2. Not all browsers know (?i:...): its letters
        // are written out, the long s with its capital, as case folding has it.
        expression(pattern) {
          const either = letter => '[' + letter + letter.toUpperCase() + (letter === 's' ? '\\u017f' : '') + ']';
          const written = pattern.replace(/\\x\{/g, '\\u{')
                              .replace(/\(\?i:([^()]*)\)/g, (all, inner) => '(?:' + inner.replace(/[a-z]/g, either) + ')');
          try {
            return expressions.push(new RegExp(written, 'gu')) - 1;
          } catch (error) {
            return -1;
          }
        },
        matches(expression, utf8) {
          const characters = new TextDecoder('utf-8', {ignoreBOM: true}).decode(utf8);
          const ends = [];
          let at = 0, place = 0;
          const bytesUntil = end => {
            for (; at < end; ++at) {
              const unit = characters.charCodeAt(at);
              // Each half of a pair stands for two of its four bytes.
              place += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit < 0xe000) ? 2 : 3;
            }
            return place;
          };
          for (const match of characters.matchAll(expressions[expression]))
            if (match[0].length > 0) ends.push(bytesUntil(match.index), bytesUntil(match.index + match[0].length));
          return ends;
        },
      },
      onRuntimeInitialized() {
        // main() runs next.
        setTimeout(() => {
          const {FS} = self.Module;
          for (const {name, folder, data} of modelFiles) {
            FS.mkdirTree(folder);
            FS.mount(FS.filesystems.WORKERFS, {blobs: [{name, data}]}, folder);
          }
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
    this.worker.postMessage({program, glueText, glueUrl, opened, modelFiles});
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
    const ended = answer === 1 || answer === 2;  // not a snapshot, not progress
    if (ended) this.running = false;
    const begin_ms = performance.now();
    Module.HEAPU8.set(bytes, Module._draftproof_arena());
    Module.ccall('draftproof_take', null, ['number', 'number', 'number', 'string'], [this.place, answer, this.next ? 1 : 0, text]);
    frames.slowest_take_ms = Math.max(frames.slowest_take_ms, performance.now() - begin_ms);
    if (ended && this.next) this.send(this.next);
  }
  stop() {
    this.end();
    this.begin();
  }
  end() {
    clearTimeout(this.patience);
    this.worker.terminate();
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

// Makes the language model's files known; the panels begin again with them.
function addModelFiles(files) {
  for (const file of files) {
    const known = kModelFiles[file.name];
    const expected = Object.entries(kModelFiles).map(([name, {bytes}]) => `${name} (${bytes} bytes)`).join(' or ');
    if (!known || file.size !== known.bytes)
      return tell(`${file.name} has ${file.size} bytes and is not a file that the page runs; expected ${expected}, as ./draftproof fetch smollm2 puts them into build/models and experiments/heads/smollm2-eagle3`);
  }
  for (const file of files) {
    const {folder} = kModelFiles[file.name];
    if (modelFiles.some(({name}) => name === file.name)) continue;
    modelFiles.push({name: file.name, folder, data: file});
    Module.FS.mkdirTree(folder);
    Module.FS.writeFile(folder + '/' + file.name, '');  // the page itself only asks whether it is there
  }
  for (const second of seconds.values()) second.end();
  seconds.clear();
  Module._draftproof_begin_again();
}
function tell(text) {
  Module.ccall('draftproof_tell', null, ['string'], [text]);
}
const besideThePage = (document.body.dataset.models || '').split(' ').filter(name => name);
async function loadModel() {
  if (besideThePage.length === 0) {
    const picker = document.createElement('input');
    Object.assign(picker, {type: 'file', multiple: true, accept: '.gguf'});
    picker.onchange = () => addModelFiles(picker.files);
    picker.click();
    return;
  }
  try {
    const files = [];
    for (const name of besideThePage) {
      tell('loading ' + name);
      const answer = await fetch(name);
      if (!answer.ok) throw new Error(name + ': ' + answer.status + ' ' + answer.statusText);
      files.push(new File([await answer.blob()], name));
    }
    tell('');
    addModelFiles(files);
  } catch (error) {
    tell('The language model could not be loaded: ' + error.message);
  }
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
    loadModel,
    copy(text) {
      Module.draftproof.copied = text;
      if (navigator.clipboard) navigator.clipboard.writeText(text).catch(() => say(''));
    },
    save(name, contents) {
      Module.draftproof.saved = {name, contents};
      if (name.endsWith('.png')) pictureWanted = name;
      else download(name, new Blob([contents], {type: name.endsWith('.csv') ? 'text/csv' : name.endsWith('.svg') ? 'image/svg+xml' : 'text/plain'}));
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

let seen = '';  // the hash that was taken over, or written, last
function goTo() {
  seen = location.hash;
  const wanted = seen.slice(1);
  if (wanted !== address) Module.ccall('draftproof_go_to', null, ['string'], [wanted]);
}
function keepAddress() {
  if (frames.count < 10 || location.hash !== seen) return;  // what was asked for is being taken over
  const now = Module.ccall('draftproof_address', 'string', [], []);
  if (now === address) return;
  address = now;
  try {
    history.replaceState(null, '', now ? '#' + now : location.pathname + location.search);
    seen = location.hash;
  } catch (error) {  // some browsers refuse it for a file
  }
}

addEventListener('dragover', event => event.preventDefault());
addEventListener('drop', async event => {
  event.preventDefault();
  const files = [...event.dataTransfer.files], ofModel = files.filter(({name}) => name.endsWith('.gguf'));
  if (ofModel.length > 0) addModelFiles(ofModel);
  for (const file of files)
    if (!ofModel.includes(file)) open('/' + file.name, new Uint8Array(await file.arrayBuffer()));
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

// A function that makes a vector and drops it.
const kVectors = Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 10, 9, 1, 7, 0, 65, 0, 253, 15, 26, 11);
if (typeof WebAssembly !== 'object') {
  say('This browser has no WebAssembly; ./draftproof dash shows the same panels in a window.');
} else if (!WebAssembly.validate(kVectors)) {
  say('This browser\'s WebAssembly has no vectors of 128 bits (Safari has them since 16.4); ./draftproof dash shows the same panels in a window.');
} else if (!document.createElement('canvas').getContext('webgl2')) {
  say('This browser has no WebGL 2; ./draftproof dash shows the same panels in a window, and --json prints their numbers.');
} else {
  start().catch(error => say('The program inside this page could not be unpacked: ' + error.message));
}

async function start() {
  const inside = document.getElementById('glue');
  if (inside) {
    glueText = new TextDecoder().decode(await unpacked(inside));
    glueUrl = URL.createObjectURL(new Blob([glueText], {type: 'text/javascript'}));
  }
  const script = document.createElement('script');
  script.src = glueUrl;
  script.onerror = () => say('draftproof.js could not be loaded.');
  document.body.append(script);
}
