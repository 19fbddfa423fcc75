// Sphinx's own scores, apart from examples and research: they come after the guide and the classes.
const LATER = /^(gallery\/|paper|reproduction|research|results\/)/;
var Scorer = {
  score: ([docname, title, anchor, description, score]) => (LATER.test(docname) ? score / 20 : score),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 30,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
