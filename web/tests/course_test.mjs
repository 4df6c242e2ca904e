// The course beside the panels: text, questions and answers, and a picture that waits for a guess.
import {writeFileSync} from 'node:fs';
import {join} from 'node:path';
import {Page, wait} from './chromium.mjs';

const answer = (page, number, text) => page.run(`(() => {
  const item = document.querySelectorAll('#course li')[${number - 1}];
  item.querySelector('input').value = ${JSON.stringify(text)};
  item.querySelector('form').requestSubmit();
  return item.querySelector('output').textContent;
})()`);
const covered = page => page.run('!document.getElementById("cover").hidden');

export async function courseTests(chromium, site, pictures, test, expect, expectQuiet) {
  await test('All eight lessons stand beside their panels, and the answers of the course are right', async () => {
    const page = await Page.open(chromium, site + '?course=1');
    const lessons = await page.run('kCourse.map(({title, name, panel, exercises}) => ({title, name, panel, answers: exercises.map(({value}) => value)}))');
    expect(lessons.length === 8, `there are ${lessons.length} lessons`);
    for (const [i, {title, name, panel, answers}] of lessons.entries()) {
      await page.run(`course.show(${i})`);
      expect(await page.run('document.querySelector("#course h1").textContent') === title, 'the title is not ' + title);
      for (const part of ['Question.', 'See.', 'Paper.'])
        expect((await page.run('document.getElementById("course").textContent')).includes(part), `lesson ${i + 1} has no ${part}`);
      const hash = await page.run('location.hash');
      expect(['bugs', 'honest'].includes(name) || hash.includes(panel), `lesson ${i + 1} shows ${hash}`);
      expect(await covered(page), `the picture of lesson ${i + 1} is shown before a guess`);
      const said = [];
      for (const [e, value] of answers.entries()) said.push(await answer(page, e + 1, String(value)));
      expect(said.every(text => text.startsWith('Right. draftproof ')), `lesson ${i + 1} says ${said.join(' / ')}`);
    }
    expectQuiet(page);
    await page.close();
  });
  await test('A wrong guess shows the picture and a hint, a text that is no number neither', async () => {
    const page = await Page.open(chromium, site + '?course=2');
    expect((await answer(page, 1, 'half')).startsWith('Expected a number'), 'a word is taken for an answer');
    expect(await covered(page), 'a word shows the picture');
    const hint = await answer(page, 1, '0.31');
    expect(hint.startsWith('Not yet. Hint: '), 'it says ' + hint);
    expect(!await covered(page), 'the picture is still hidden');
    for (const [text, right] of [['7/10', true], ['.7', true], ['7/0', false], ['', false]])
      expect((await answer(page, 1, text)).startsWith('Right') === right, `${text} is ${right ? 'wrong' : 'right'}`);
    await page.run('course.show(2)');
    expect(await covered(page), 'a guess in one lesson shows the picture of another');
    await page.run('document.querySelector("#cover button").click()');
    expect(!await covered(page), 'it is not shown without a guess');
    await page.run('course.show(1)');
    expect(!await covered(page), 'what was guessed once is asked again');
    await page.close();
  });
  await test('What is typed into an answer stays there, Backspace too', async () => {
    const page = await Page.open(chromium, site + '?course=2');
    await page.run('document.querySelector("#course input").focus()');
    for (const digit of '0.77') await page.call('Input.dispatchKeyEvent', {type: 'char', text: digit, key: digit});
    for (const type of ['rawKeyDown', 'keyUp'])
      await page.call('Input.dispatchKeyEvent', {type, key: 'Backspace', code: 'Backspace', windowsVirtualKeyCode: 8});
    const typed = await page.run('document.querySelector("#course input").value');
    expect(typed === '0.7', 'it holds ' + typed);
    await page.close();
  });
  for (const [width, height] of [[1280, 800], [390, 844]])
    await test(`Text, picture and questions are side by side, or on a phone one below the other, ${width} x ${height}`, async () => {
      const page = await Page.open(chromium, site + '?course=2', {width, height});
      await answer(page, 1, '0.7');
      await wait(300);
      const [pane, canvas] = await page.run(`['course', 'canvas'].map(id => {
        const {left, top, right, bottom} = document.getElementById(id).getBoundingClientRect();
        return {left, top, right, bottom};
      })`);
      const apart = width > 800 ? canvas.left >= pane.right : canvas.bottom <= pane.top;
      expect(apart, `they overlap: ${JSON.stringify([pane, canvas])}`);
      for (const {left, top, right, bottom} of [pane, canvas])
        expect(left >= 0 && top >= 0 && right <= width + 0.5 && bottom <= height + 0.5 && right - left > 300 && bottom - top > 300, 'one is cut or too small');
      const cut = await page.run(`[...document.querySelectorAll('#course *')].filter(e => e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0 && getComputedStyle(e).display !== 'inline').map(e => e.tagName + ' ' + e.textContent.slice(0, 40))`);
      expect(cut.length === 0, 'cut: ' + cut.join('; '));
      writeFileSync(join(pictures, `course_${width}.png`), await page.picture());
      await page.close();
    });
}
