// Tests of the page in headless Chromium against the program: node page_test.mjs FOLDER ONE_FILE PROGRAM PICTURES (./draftproof web --test).
import {execFileSync} from 'node:child_process';
import {createReadStream, existsSync, mkdirSync, statSync, writeFileSync} from 'node:fs';
import {createServer} from 'node:http';
import {dirname, join} from 'node:path';
import {Chromium, Page, wait} from './chromium.mjs';
import {courseTests} from './course_test.mjs';

const [folder, oneFile, program, pictures] = process.argv.slice(2);
const kPanels = ['distribution_lab', 'acceptance_decay', 'tree_explorer', 'speedup_by_batch', 'serving_timeline', 'speculate', 'heads'];
mkdirSync(pictures, {recursive: true});
let failures = 0;

async function test(name, body) {
  const begin = Date.now();
  try {
    const note = await body();
    console.log(`ok    ${name}${note ? ': ' + note : ''} (${Date.now() - begin} ms)`);
  } catch (error) {
    ++failures;
    console.log(`FAIL  ${name}: ${error.message}`);
  }
}
function expect(holds, otherwise) {
  if (!holds) throw new Error(otherwise);
}
const native = args => JSON.parse(execFileSync(program, args, {maxBuffer: 1 << 28, stdio: ['ignore', 'pipe', 'inherit']}));

// The leaves in which two documents differ. Times are measured, and a path names a folder.
function differences(a, b, where = '', found = []) {
  if (ignoreTimes && /(_ns|_ms|_s|_share|per_second|speedup|overhead_ratio)$/.test(where)) return found;
  if (a !== null && b !== null && typeof a === 'object' && typeof b === 'object') {
    for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) differences(a[key], b[key], where + '/' + key, found);
  } else {
    ++leaves;
    // A file of the program's own lies elsewhere.
    const own = typeof a === 'string' && typeof b === 'string' && a.match(/^(ngram:\d+:)?\/?share\/draftproof\/(.*)/);
    const equal = own ? b.startsWith(own[1] ?? '') && b.endsWith(own[2]) : Object.is(a, b);
    if (!equal) found.push(`${where}: ${JSON.stringify(a)} here, ${JSON.stringify(b)} by the program`);
  }
  return found;
}
let leaves = 0, ignoreTimes = false;
function expectEqual(here, there) {
  leaves = 0;
  const found = differences(here, there);
  expect(found.length === 0, `${found.length} of ${leaves} leaves differ; ` + found.slice(0, 3).join('; '));
  return `${leaves} leaves equal`;
}
function expectQuiet(page, own) {
  expect(page.errors.length === 0, 'on the console: ' + page.errors.slice(0, 3).join('; '));
  const others = page.requests.filter(url => !own.some(prefix => url.startsWith(prefix)));
  expect(others.length === 0, 'asks for ' + others.join(', '));
}

const server = createServer((request, answer) => {
  const path = join(folder, new URL(request.url, 'http://x').pathname.replace(/\/$/, '/index.html'));
  if (!existsSync(path) || !statSync(path).isFile()) return answer.writeHead(404).end();
  answer.writeHead(200, {'Content-Type': path.endsWith('.html') ? 'text/html' : path.endsWith('.js') ? 'text/javascript' : 'application/octet-stream'});
  createReadStream(path).pipe(answer);
});
await new Promise(resolve => server.listen(0, '127.0.0.1', resolve));
const site = `http://127.0.0.1:${server.address().port}/`;
const chromium = new Chromium();
const ownFiles = [site, 'blob:', 'data:', 'file://' + oneFile];

try {
  const page = await Page.open(chromium, site);
  await test('The page draws its first frame from a static server', async () => {
    expectQuiet(page, ownFiles);
    return Math.round(await page.run('frames.first_ms')) + ' ms after navigation';
  });
  await test('The page opens from disk as one file', async () => {
    const disk = await Page.open(chromium, 'file://' + oneFile + '?only=distribution_lab');
    await disk.settled('distribution_lab');
    expect((await disk.snapshot('distribution_lab')).p.length > 0, 'nothing was computed');
    expectQuiet(disk, ownFiles);
    const first = Math.round(await disk.run('frames.first_ms'));
    await disk.close();
    return first + ' ms after navigation';
  });
  // Where the program has SmolLM2, these two begin with it, and it lies beside the page.
  const withModel = existsSync(join(dirname(program), 'share/draftproof/models/SmolLM2-135M-Instruct.gguf')) ? ['speculate', 'heads'] : [];
  for (const panel of kPanels)
    await test(`The numbers of ${panel} are those of the program`, async () => {
      const one = await Page.open(chromium, site + '?only=' + panel);
      try {
        if (withModel.includes(panel)) {
          await one.settled(panel);
          await one.click(panel + '/SmolLM2');
          await one.until('modelFiles.length === 2', 60000);
        }
        await one.settled(panel, 300000);
        ignoreTimes = ['speculate', 'serving_timeline'].includes(panel);  // of the machine
        expectQuiet(one, ownFiles);
        return expectEqual(await one.snapshot(panel), native(['dash', '--panel', panel, '--json']).panels[panel]);
      } finally {
        ignoreTimes = false;
        await one.close();
      }
    });
  await test('A bug that the distribution lab shows is that of the program', async () => {
    const one = await Page.open(chromium, site + '?only=distribution_lab#distribution_lab/bug=B38');
    await one.settled('distribution_lab');
    const shown = await one.snapshot('distribution_lab');
    const command = await one.text('command', 'distribution_lab');
    await one.close();
    expect(/--bug B38/.test(command), 'the command is ' + command);
    const printed = JSON.parse(execFileSync('bash', ['-c', command.replace(/^draftproof/, '"$0"') + ' --json', program]));
    return expectEqual(shown.counts, printed.counts);
  });
  await test('A slider that is dragged gives what the copied command gives, and no frame waits for it', async () => {
    await page.call('Page.bringToFront');
    await page.click('menu/Distribution lab');
    await page.settled('distribution_lab');
    await page.run('frames.slowest_build_ms = frames.slowest_take_ms = 0');
    await page.drag('distribution_lab/temperature', 0.25, 0.5, 10);
    const build = await page.run('frames.slowest_build_ms'), take = await page.run('frames.slowest_take_ms');
    await page.settled('distribution_lab');
    await page.click('distribution_lab/Copy command');
    const command = await page.run('Module.draftproof.copied');
    expect(/--temperature/.test(command), 'copied was ' + command);
    const printed = JSON.parse(execFileSync('bash', ['-c', command.replace(/^draftproof/, '"$0"') + ' --json', program]));
    const shown = await page.snapshot('distribution_lab');
    const keys = ['p', 'q', 'residual', 'counts', 'expected', 'total_variation', 'acceptance', 'mean_accepted'];
    const pick = document => Object.fromEntries(keys.map(key => [key, document[key]]));
    const note = expectEqual(pick(shown), pick(printed));
    expect(build < 20 && take < 20, `a frame was built in ${build} ms, an answer taken in ${take} ms`);
    return `${note}; slowest frame built in ${build.toFixed(1)} ms, slowest answer taken in ${take.toFixed(1)} ms`;
  });
  await test('A panel is saved as SVG, as it stands there', async () => {
    await page.call('Page.bringToFront');
    await page.click('distribution_lab/svg');
    await page.until('Module.draftproof.saved && Module.draftproof.saved.name === "distribution_lab.svg"');
    const svg = await page.run('Module.draftproof.saved.contents');
    const [error, texts] = await page.run(`(() => {
      const read = new DOMParser().parseFromString(Module.draftproof.saved.contents, 'image/svg+xml');
      return [read.querySelector('parsererror')?.textContent, [...read.querySelectorAll('text')].map(text => text.textContent)];
    })()`);
    expect(!error, error);
    for (const text of ['probability', 'Rows as given: drag the tops', 'temperature'])
      expect(texts.includes(text), `has no text ${text} but ${texts.slice(0, 20).join(', ')}`);
    writeFileSync(join(pictures, 'distribution_lab.svg'), svg);
    return `${texts.length} texts, ${svg.length} bytes`;
  });
  await test('An address gives the view again', async () => {
    await wait(500);
    const address = await page.run('location.href');
    expect(/temperature=/.test(address), 'the address is ' + address);
    const again = await Page.open(chromium, address);
    await again.settled('distribution_lab');
    const note = expectEqual(await again.snapshot('distribution_lab'), await page.snapshot('distribution_lab'));
    await again.close();
    return note + ', ' + address.slice(site.length);
  });
  await test('A finger on a slider moves it', async () => {
    const phone = await Page.open(chromium, site + '?only=distribution_lab', {width: 390, height: 844, density: 2, mobile: true});
    await phone.settled('distribution_lab');
    const before = (await phone.snapshot('distribution_lab')).parameters.temperature;
    const [left, top, right, bottom] = await phone.place('distribution_lab/temperature');
    const y = (top + bottom) / 2, at = share => [{x: left + share * (right - left), y}];
    await phone.call('Input.dispatchTouchEvent', {type: 'touchStart', touchPoints: at(0.25)});
    await phone.nextFrames(3);
    for (const share of [0.4, 0.6, 0.7]) {
      await phone.call('Input.dispatchTouchEvent', {type: 'touchMove', touchPoints: at(share)});
      await phone.nextFrames(3);
    }
    await phone.call('Input.dispatchTouchEvent', {type: 'touchEnd', touchPoints: []});
    await phone.settled('distribution_lab');
    const after = (await phone.snapshot('distribution_lab')).parameters.temperature;
    expectQuiet(phone, ownFiles);
    await phone.close();
    expect(after > 1.5, `temperature was ${before} and is ${after}`);
    return `temperature ${before} to ${after.toFixed(2)}`;
  });
  await test('The keyboard changes a number', async () => {
    await page.call('Page.bringToFront');
    const key = async (type, key, windowsVirtualKeyCode, text) => {
      await page.call('Input.dispatchKeyEvent', {type, key, code: key === 'Control' ? 'ControlLeft' : key, windowsVirtualKeyCode, text});
      await page.nextFrames(2);
    };
    await key('rawKeyDown', 'Control', 17);
    await page.click('distribution_lab/temperature');
    await key('keyUp', 'Control', 17);
    for (const digit of '2.5') await key('char', digit, digit.charCodeAt(0), digit);
    await key('rawKeyDown', 'Enter', 13);
    await key('keyUp', 'Enter', 13);
    await page.settled('distribution_lab');
    const temperature = (await page.snapshot('distribution_lab')).parameters.temperature;
    expect(temperature === 2.5, `2.5 was typed, temperature is ${temperature}`);
  });
  await courseTests(chromium, site, pictures, test, expect, tab => expectQuiet(tab, ownFiles));
  for (const theme of ['dark', 'light'])
    for (const [width, height] of [[1280, 800], [390, 844]])
      await test(`A picture, ${theme}, ${width} pixels wide`, async () => {
        const seen = await Page.open(chromium, `${site}?theme=${theme}#panel=distribution_lab`, {width, height});
        await seen.settled('distribution_lab');
        const file = join(pictures, `${theme}_${width}.png`);
        writeFileSync(file, await seen.picture());
        expectQuiet(seen, ownFiles);
        await seen.close();
        expect(statSync(file).size > 10000, 'it is blank');
        return file;
      });
  await test('Nothing was said on the console', async () => expectQuiet(page, ownFiles));
} finally {
  chromium.end();
  server.close();
}
console.log(failures ? `${failures} tests failed` : 'all tests passed');
process.exitCode = failures ? 1 : 0;
