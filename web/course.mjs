// Makes the course of the page: node course.mjs COURSE SCRIPT FILE. COURSE is docs/course; the lessons, their exercises and answers
// become a constant in front of SCRIPT (web/course.js).
import {readFileSync, writeFileSync} from 'node:fs';
import {join} from 'node:path';

const [folder, script, file] = process.argv.slice(2);

// course.toml: tables of texts and numbers, a key a line.
function lessonsOf(toml) {
  const lessons = [];
  let table = null;
  for (const line of toml.split('\n')) {
    const [, key, value] = line.match(/^(\w+) = (.*)$/) || [];
    if (line === '[[lesson]]') lessons.push(table = {exercises: []});
    else if (line === '[[lesson.exercise]]') lessons.at(-1).exercises.push(table = {});
    else if (key) table[key] = JSON.parse(value);
    else if (line && !line.startsWith('#')) throw new Error('course.toml: ' + line + ' is no table, key or comment');
  }
  return lessons;
}

const escaped = text => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
const inline = text => escaped(text).replace(/`([^`]+)`/g, '<code>$1</code>').replace(/\*\*([^*]+)\*\*/g, '<b>$1</b>').replace(/\*([^*]+)\*/g, '<i>$1</i>')
                           .replace(/\[([^\]]+)\]\([^)]+\)/g, '$1');
const block = text => text.startsWith('    ') ? '<pre>' + escaped(text.replace(/^ {4}/gm, '')) + '</pre>' : '<p>' + inline(text.replace(/\n */g, ' ')) + '</p>';

function valueOf(answer) {
  const [numerator, denominator = 1] = answer.split('/').map(Number);
  return numerator / denominator;
}

const lessons = lessonsOf(readFileSync(join(folder, 'course.toml'), 'utf8')).map(lesson => {
  const [title, ...blocks] = readFileSync(join(folder, lesson.file), 'utf8').trim().split(/\n\n+/);
  const begin = blocks.indexOf('## Exercises'), questions = blocks.slice(begin + 1).filter(text => !/^\*\*Paper/.test(text));
  const listed = questions.find(text => text.startsWith('1. ')).split(/\n(?=\d\. )/).map(text => inline(text.replace(/^\d\. /, '').replace(/\n */g, ' ')));
  if (begin < 0 || listed.length !== lesson.exercises.length) throw new Error(lesson.file + ': expected as many exercises as course.toml has');
  return {
    name: lesson.name, panel: lesson.panel, title: title.slice(2),
    text: blocks.slice(0, begin).map(block).join(''),
    before: questions.filter(text => !text.startsWith('1. ')).map(block).join(''),
    paper: blocks.filter(text => /^\*\*Paper/.test(text)).map(block).join(''),
    exercises: lesson.exercises.map(({answer, tolerance, hint, command}, i) => ({question: listed[i], value: valueOf(answer), tolerance, hint, command})),
  };
});
const constant = JSON.stringify(lessons).replace(/[^\x20-\x7e]/g, c => '\\u' + c.charCodeAt(0).toString(16).padStart(4, '0')).replace(/</g, '\\u003c');
writeFileSync(file, `const kCourse = ${constant};\n${readFileSync(script, 'utf8')}`);
