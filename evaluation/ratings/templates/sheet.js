// Keeps the ratings of each person in this browser, and hands them over as a file.
(() => {
  "use strict";
  const main = document.querySelector("main");
  const rater = document.getElementById("rater");
  const answers = document.getElementById("answers");
  const status = document.getElementById("status");
  const download = document.getElementById("download");
  const radios = [...answers.querySelectorAll("input[type=radio]")];
  const name = () => rater.value.trim();
  const place = () => `citeray ratings ${main.dataset.sheet} ${name()}`;
  let ratings = {};
  let kept = true;

  function load() {
    ratings = {};
    try {
      ratings = JSON.parse(localStorage.getItem(place())) ?? {};
    } catch {
      kept = false;
    }
  }

  function keep() {
    try {
      localStorage.setItem(place(), JSON.stringify(ratings));
    } catch {
      kept = false;
    }
  }

  function show() {
    for (const radio of radios) {
      const { answer, criterion } = radio.dataset;
      radio.checked = ratings[answer]?.[criterion] === Number(radio.value);
    }
    answers.disabled = download.disabled = !name();
    tell();
  }

  function tell() {
    const given = Object.values(ratings).reduce((sum, own) => sum + Object.keys(own).length, 0);
    const lost = kept ? "" : "; this browser keeps nothing, so download them before you close the page";
    status.textContent = `${given} of ${main.dataset.ratings} ratings given${lost}`;
  }

  rater.addEventListener("input", () => {
    load();
    show();
  });
  answers.addEventListener("change", ({ target }) => {
    const { answer, criterion } = target.dataset;
    ratings[answer] = { ...ratings[answer], [criterion]: Number(target.value) };
    keep();
    tell();
  });
  download.addEventListener("click", () => {
    const content = { sheet: main.dataset.sheet, rater: name(), ratings };
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([JSON.stringify(content, null, 1)], { type: "application/json" }));
    link.download = `ratings-${name().toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-")}.json`;
    link.click();
  });
  // A browser that restores the page restores the name as well.
  load();
  show();
})();
