// Makes the page in one file that opens from disk: node one_file.mjs FOLDER FILE. FOLDER has index.html, page.js, course.js,
// draftproof.js and draftproof.wasm. The last two are packed by gzip, and their bytes stand in the page as characters of windows-1252, one each but
// for those that a page cannot hold: "=" stands before them, and 64 is added. (Base64 would make them a third larger.) page.js unpacks.
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {gzipSync} from 'node:zlib';

const [folder, file] = process.argv.slice(2);
const text = name => readFileSync(join(folder, name), 'latin1');
// The end of a line is one character to a page, whatever it was; "<" might begin the end of the script.
const kEscaped = [...'\0\r<='].map(character => character.charCodeAt(0));

function packed(name) {
  const bytes = [];
  for (const byte of gzipSync(readFileSync(join(folder, name)), {level: 9}))
    kEscaped.includes(byte) ? bytes.push('='.charCodeAt(0), byte + 64) : bytes.push(byte);
  return Buffer.from(bytes).toString('latin1');
}

const parts = {glue: 'draftproof.js', wasm: 'draftproof.wasm'};
const program = Object.entries(parts).map(([id, name]) => `<script type="text/plain" id="${id}">${packed(name)}</script>\n`).join('');
let page = text('index.html');
for (const [from, to] of [['<meta charset="utf-8">', '<meta charset="windows-1252">'],
                          ['<!-- one file: the program -->\n', program],
                          ...['page.js', 'course.js'].map(name => [`<script src="${name}"></script>`, `<script>\n${text(name)}</script>`])]) {
  if (!page.includes(from)) throw new Error(`index.html has no ${from}`);
  page = page.replace(from, () => to);
}
writeFileSync(file, page, 'latin1');
