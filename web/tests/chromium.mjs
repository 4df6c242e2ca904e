// Drives headless Chromium over its debugging pipe: no package is needed.
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

export class Chromium {
  constructor() {
    this.profile = mkdtempSync(join(tmpdir(), 'draftproof-chromium-'));
    this.process = spawn('chromium', ['--headless=new', '--no-sandbox', '--use-gl=angle', '--use-angle=swiftshader',
                                      '--enable-unsafe-swiftshader', '--user-data-dir=' + this.profile, '--remote-debugging-pipe',
                                      '--disable-background-networking', 'about:blank'],
                         {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    this.calls = new Map();
    this.listeners = new Map();  // by session
    this.count = 0;
    let rest = '';
    this.process.stdio[4].setEncoding('utf8').on('data', text => {
      const parts = (rest + text).split('\0');
      rest = parts.pop();
      for (const part of parts) this.receive(JSON.parse(part));
    });
  }
  receive(message) {
    if (message.id) {
      const {resolve, reject} = this.calls.get(message.id);
      this.calls.delete(message.id);
      message.error ? reject(new Error(message.error.message)) : resolve(message.result);
    } else if (this.listeners.has(message.sessionId)) {
      this.listeners.get(message.sessionId)(message.method, message.params);
    }
  }
  call(method, params = {}, sessionId = undefined) {
    const id = ++this.count;
    return new Promise((resolve, reject) => {
      this.calls.set(id, {resolve, reject});
      this.process.stdio[3].write(JSON.stringify({id, method, params, sessionId}) + '\0');
    });
  }
  end() {
    this.process.kill();
    this.process.on('exit', () => rmSync(this.profile, {recursive: true, force: true, maxRetries: 5}));
  }
}

export const wait = ms => new Promise(resolve => setTimeout(resolve, ms));

// A tab with the page in it. `errors`: of the console, and uncaught ones; `requests`: addresses that were asked for.
export class Page {
  static async open(chromium, url, {width = 1280, height = 800, density = 1, mobile = false} = {}) {
    const page = new Page();
    page.errors = [];
    page.requests = [];
    const {targetId} = await chromium.call('Target.createTarget', {url: 'about:blank'});
    const {sessionId} = await chromium.call('Target.attachToTarget', {targetId, flatten: true});
    page.call = (method, params) => chromium.call(method, params, sessionId);
    page.close = () => chromium.call('Target.closeTarget', {targetId});
    chromium.listeners.set(sessionId, (method, params) => {
      if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type))
        page.errors.push(params.args.map(argument => argument.value ?? argument.description).join(' '));
      if (method === 'Runtime.exceptionThrown') page.errors.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === 'Log.entryAdded' && params.entry.level === 'error') page.errors.push(params.entry.text);
      if (method === 'Network.requestWillBeSent') page.requests.push(params.request.url);
    });
    for (const domain of ['Page', 'Runtime', 'Network', 'Log']) await page.call(domain + '.enable');
    await page.call('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: density, mobile});
    if (mobile) await page.call('Emulation.setTouchEmulationEnabled', {enabled: true});
    page.density = density;
    await page.call('Page.navigate', {url});
    await page.until('typeof frames !== "undefined" && frames.count > 12', 60000);
    return page;
  }
  async run(expression) {
    const {result, exceptionDetails} = await this.call('Runtime.evaluate', {expression, returnByValue: true, awaitPromise: true});
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  async until(condition, timeout_ms = 30000) {
    const end = Date.now() + timeout_ms;
    while (!await this.run(condition)) {
      if (Date.now() > end) throw new Error('waited ' + timeout_ms + ' ms for ' + condition + '; ' + this.errors.join('; '));
      await wait(50);
    }
  }
  text(name, panel) {
    return this.run(`Module.ccall('draftproof_${name}', 'string', ['string'], ['${panel}'])`);
  }
  async snapshot(panel) {
    return JSON.parse(await this.text('snapshot', panel));
  }
  // Waits until the panel shows what its controls ask for.
  async settled(panel, timeout_ms = 60000) {
    const from = await this.run('frames.count');
    await this.until(`frames.count > ${from} + 3 && Module.ccall('draftproof_state', 'string', ['string'], ['${panel}']) !== 'busy'`, timeout_ms);
    const state = await this.text('state', panel);
    if (state !== 'idle') throw new Error(panel + ': ' + state);
  }
  // The place of a control, in CSS pixels.
  async place(control) {
    const rect = JSON.parse(await this.run(`Module.ccall('draftproof_controls', 'string', [], [])`))[control];
    if (!rect) throw new Error('no control ' + control + ' is drawn');
    return rect.map(x => x / this.density);
  }
  async mouse(type, x, y) {
    await this.call('Input.dispatchMouseEvent', {type, x, y, button: type === 'mouseMoved' ? 'none' : 'left', buttons: type === 'mouseReleased' ? 0 : 1, clickCount: 1});
    await this.nextFrames(2);
  }
  async nextFrames(count) {
    const from = await this.run('frames.count');
    await this.until(`frames.count >= ${from} + ${count}`);
  }
  async click(control) {
    const [left, top, right, bottom] = await this.place(control);
    const x = (left + right) / 2, y = (top + bottom) / 2;
    for (const type of ['mouseMoved', 'mousePressed', 'mouseReleased']) await this.mouse(type, x, y);
  }
  // Drags a slider from one share of its track to another, in steps.
  async drag(control, from, to, steps = 8) {
    const [left, top, right, bottom] = await this.place(control);
    const y = (top + bottom) / 2, at = share => left + share * (right - left);
    await this.mouse('mouseMoved', at(from), y);
    await this.mouse('mousePressed', at(from), y);
    for (let i = 1; i <= steps; ++i) {
      await this.call('Input.dispatchMouseEvent', {type: 'mouseMoved', x: at(from + (to - from) * i / steps), y, button: 'left', buttons: 1});
      await this.nextFrames(2);
    }
    await this.mouse('mouseReleased', at(to), y);
  }
  async picture() {
    return Buffer.from((await this.call('Page.captureScreenshot', {format: 'png'})).data, 'base64');
  }
}
