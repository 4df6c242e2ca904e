// The course beside the panels: text, questions and answers on the left (on a phone below), the lesson's panel covered until a guess
// is given. kCourse is put in front of it by web/course.mjs.
'use strict';

// Views of lessons whose panel, or whose settings, are not in a page.
const kViews = {
  bugs: 'panel=distribution_lab&distribution_lab/lesson=rejection&distribution_lab/bug=B38',
  honest: 'panel=distribution_lab&distribution_lab/bug=B04&distribution_lab/samples=1000',
};
const viewOf = ({name, panel}) => kViews[name] || `panel=${panel}&${panel}/lesson=${name}`;

// "0.7", ".7", "7/10"; NaN for any other text.
function answerValue(text) {
  const parts = text.trim().split('/').map(part => /^-?(\d+\.?\d*|\.\d+)(e-?\d+)?$/i.test(part.trim()) ? Number(part) : NaN);
  return parts.length === 1 ? parts[0] : parts.length === 2 && parts[1] !== 0 ? parts[0] / parts[1] : NaN;
}

const course = (() => {
  const make = (tag, properties = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  };
  const pane = make('aside', {id: 'course', hidden: true}), cover = make('div', {id: 'cover', hidden: true});
  const open = make('button', {id: 'course-open', textContent: 'Course', onclick: () => show(0)});
  document.body.append(pane, cover, open);
  const guessed = new Set();  // lessons
  // Keys typed here are not for the panels, whose window takes Backspace and Tab for itself. This comes before it.
  for (const type of ['keydown', 'keypress', 'keyup'])
    addEventListener(type, event => pane.contains(event.target) && event.stopImmediatePropagation(), true);

  function reveal(number) {
    guessed.add(number);
    cover.hidden = true;
  }

  function exerciseOf(exercise, i, number) {
    const said = make('output'), answer = make('input', {type: 'text', inputMode: 'decimal', autocomplete: 'off', ariaLabel: `Answer to question ${i + 1}`});
    const check = event => {
      event.preventDefault();
      const value = answerValue(answer.value);
      if (Number.isNaN(value)) {
        said.textContent = 'Expected a number or a fraction, as 0.7 or 7/10.';
        return;
      }
      const right = Math.abs(value - exercise.value) <= exercise.tolerance;
      said.className = right ? 'right' : 'wrong';
      said.textContent = right ? `Right. draftproof ${exercise.command} prints it.` : `Not yet. Hint: ${exercise.hint}.`;
      reveal(number);
    };
    return make('li', {}, make('span', {innerHTML: exercise.question}),
                make('form', {onsubmit: check}, answer, make('button', {textContent: 'Check'})), said);
  }

  function show(number) {
    const lesson = kCourse[number];
    const chosen = make('select', {ariaLabel: 'Lesson', onchange: () => show(Number(chosen.value))},
                        ...kCourse.map(({title}, i) => make('option', {value: i, textContent: title, selected: i === number})));
    const step = (text, to) => make('button', {textContent: text, disabled: !kCourse[to], onclick: () => show(to)});
    pane.replaceChildren(
        make('nav', {}, chosen, step('Back', number - 1), step('Next', number + 1), make('button', {textContent: 'Close', onclick: hide})),
        make('h1', {textContent: lesson.title}), make('div', {innerHTML: lesson.text}), make('h2', {textContent: 'Questions'}),
        make('div', {innerHTML: lesson.before}),
        make('p', {textContent: `These numbers are everybody's. Your own, and a code that a teacher can check: draftproof lesson ${number + 1} --new 7.`}),
        make('ol', {}, ...lesson.exercises.map((exercise, i) => exerciseOf(exercise, i, number))),
        make('div', {innerHTML: lesson.paper}));
    cover.replaceChildren(make('p', {textContent: 'Guess first: an answer to one of the questions, right or wrong, shows the picture.'}),
                          make('button', {textContent: 'Show it without a guess', onclick: () => reveal(number)}));
    cover.hidden = guessed.has(number);
    pane.hidden = false;
    open.hidden = true;
    pane.scrollTop = 0;
    document.body.classList.add('course');
    location.hash = viewOf(lesson);
  }

  function hide() {
    pane.hidden = cover.hidden = true;
    open.hidden = false;
    document.body.classList.remove('course');
  }

  const wanted = Number(new URLSearchParams(location.search).get('course'));
  if (kCourse[wanted - 1]) show(wanted - 1);
  return {show, hide};
})();
