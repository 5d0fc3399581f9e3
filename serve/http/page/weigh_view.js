// Strength of the citations: study designs as badges, and counts by design and year.

import { counted, make } from "./dom.js";

// Strongest design first, in the order of cluster/study_design.
const DESIGNS = {
  guideline: "guideline", meta_analysis: "meta-analysis", systematic_review: "systematic review",
  randomised_trial: "randomised trial", clinical_trial: "clinical trial", cohort: "cohort study",
  case_control: "case-control study", cross_sectional: "cross-sectional study", case_report: "case report",
  review: "review", animal: "animal study", in_vitro: "in vitro study", other: "",
};
const ORDER = Object.keys(DESIGNS);
const STRONG = ORDER.indexOf("clinical_trial");

/** Compare two citations by study design, the strongest first. */
export const byDesign = (one, other) => ORDER.indexOf(one.design) - ORDER.indexOf(other.design);

/** Return a badge such as "animal study, mice", or "" if the study design is unknown. */
export function designBadge(cited) {
  const words = DESIGNS[cited?.design] ?? "";
  if (!words) return "";
  const people = cited.subjects.includes("people");
  const subjects = people ? [] : cited.subjects.filter((subject) => !words.includes(subject));
  const strong = ORDER.indexOf(cited.design) <= STRONG;
  return make("span", { className: strong ? "design strong" : "design", textContent: [words, ...subjects].join(", ") });
}

function bars(title, counts) {
  const most = Math.max(1, ...counts.map(([, count]) => count));
  return make("figure", { className: "counts" }, make("figcaption", { textContent: title }),
    make("div", { className: "bars" }, ...counts.flatMap(([name, count]) => {
      const bar = make("div", { className: "bar" });
      bar.style.width = `${(count / most) * 100}%`;
      return [make("span", { textContent: name }), make("div", { className: "track", "aria-hidden": "true" }, bar), make("span", { className: "ms", textContent: count })];
    })));
}

/** Return the numbers of citations by study design and by year, if known. */
export function countsView({ evidence_by: by, citations }) {
  if (!by || citations.length < 2) return "";
  const designs = Object.entries(by.design).map(([name, count]) => [DESIGNS[name] || "not known", count]);
  const years = Object.entries(by.year);
  const known = (counts, unknown) => counts.some(([name]) => name !== unknown);
  return make("div", { className: "two" },
    known(designs, "not known") ? bars(`Study designs of the ${counted(citations.length, "article")} found`, designs) : "",
    known(years, "unknown") ? bars("By year", years) : "");
}
