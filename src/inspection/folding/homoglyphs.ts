/**
 * Letters that look like Latin ones, by the letter they are taken for: what one meets in evaded word lists (after
 * Unicode TR 39's confusables, reduced to the scripts in everyday use). Full-width, mathematical and enclosed forms
 * are not here: compatibility folding already turns those.
 */
const lookalikes: Readonly<Record<string, string>> = {
  a: 'аɑα',
  b: 'вЬьƅ',
  c: 'сϲƈ',
  d: 'ԁɗđ',
  e: 'еєҽɛ',
  f: 'ƒ',
  g: 'ɡցǥ',
  h: 'һհнħ',
  i: 'іıɩιӏ',
  j: 'јϳ',
  k: 'кκƙ',
  l: 'ⅼӀłǀ',
  m: 'м',
  n: 'пոη',
  o: 'оοօσøө',
  p: 'рρ',
  q: 'ԛզ',
  r: 'гᴦɾ',
  s: 'ѕʂ',
  t: 'тτŧ',
  u: 'υսʋ',
  v: 'ѵν',
  w: 'ԝшѡω',
  x: 'хχ×',
  y: 'уүγ',
  z: 'ᴢʐ',
  A: 'АΑ',
  B: 'ВΒ',
  C: 'СϹ',
  E: 'ЕΕ',
  H: 'НΗ',
  I: 'ІΙ',
  J: 'Ј',
  K: 'КΚ',
  M: 'МΜ',
  N: 'Ν',
  O: 'ОΟØ',
  P: 'РΡ',
  S: 'Ѕ',
  T: 'ТΤ',
  X: 'ХΧ',
  Y: 'УΥҮ',
  Z: 'Ζ',
}

/** The Latin letter that a character is taken for; absent where it is taken for none. */
export const homoglyphs: ReadonlyMap<string, string> = new Map(
  Object.entries(lookalikes).flatMap(([latin, others]) => [...others].map((other) => [other, latin] as const)),
)
