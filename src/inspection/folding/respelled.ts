/**
 * Spellings of letters that a reader takes for the letters and that no normalization form knows: small capitals and
 * enclosed letters. And characters that stand for letters, or for nothing, only to some readers: HTML entities, tag
 * characters, private use, lone surrogates. The former are always read so; the latter are read both ways.
 */

import { memoized } from './memoize.ts'

const smallCapitals = 'ᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpꞯqʀrꜱsᴛtᴜuᴠvᴡwʏyᴢz'

/** The 26 regional indicators: a pair of them is a flag, more are read as letters. */
const firstRegional = 0x1f1e6
export const isRegional = (codePoint: number): boolean => codePoint >= firstRegional && codePoint < firstRegional + 26

/** The first letter's code point of a row from A to Z, and whether they are capitals. */
const rows: readonly (readonly [number, string])[] = [
  [0x249c, 'a'],
  [0x1f110, 'A'],
  [0x1f150, 'A'],
  [0x1f170, 'A'],
  [firstRegional, 'A'],
]

/** By code point the letter that it is read as. Circled and squared letters are folded by their compatibility form. */
export const respelled: ReadonlyMap<number, string> = new Map([
  ...Array.from(
    { length: smallCapitals.length / 2 },
    (_, index) => [smallCapitals.charCodeAt(2 * index), smallCapitals.charAt(2 * index + 1)] as const,
  ),
  ...rows.flatMap(([first, letter]) =>
    Array.from(
      { length: 26 },
      (_, index) => [first + index, String.fromCharCode(letter.charCodeAt(0) + index)] as const,
    ),
  ),
])

const anyRespelled = /[ᴀ-ᴢʀɢɪɴʙʜʟʏꜰꜱꞯ⒜-⒵\u{1f110}-\u{1f129}\u{1f150}-\u{1f169}\u{1f170}-\u{1f189}\u{1f1e6}-\u{1f1ff}]/u

/** The text with letters in place of what is read as them. */
export function respell(text: string): string {
  if (!anyRespelled.test(text)) return text
  let plain = ''
  for (const character of text) plain += respelled.get(character.codePointAt(0) ?? 0) ?? character
  return plain
}

/** Begins what may be read in two ways: `&`, tag characters, and what some readers leave out. */
export const ambiguous = /[&\u{e0020}-\u{e007e}\p{Co}\p{Cs}\p{Cn}]/u

const leftOutByOthers = /[\p{Co}\p{Cs}\p{Cn}]/u

/** Private use, surrogates without their other half, noncharacters and code points that are not assigned. */
export const isIgnoredByOthers = memoized(
  (codePoint): boolean => leftOutByOthers.test(String.fromCodePoint(codePoint)),
  0x10000,
)

/** The ASCII character that a tag character hides; null of any other. */
export const tagged = (codePoint: number): number | null =>
  codePoint >= 0xe0020 && codePoint <= 0xe007e ? codePoint - 0xe0000 : null

interface Entity {
  readonly codePoint: number
  /** In UTF-16 units. */
  readonly length: number
}

const numeric = /^&#(?:[xX]0{0,16}([0-9a-fA-F]{1,6})|0{0,16}([0-9]{1,7}));?/
const named = /^&([A-Za-z]{2,14});/
const unfinished = /^&(?:$|#$|#[xX]?[0-9a-fA-F]{0,24}$|[A-Za-z]{1,14}$)/
/** How often the `&` of an entity may be an entity itself: `&amp;#98;`. */
const mostNested = 3
/** As long as the longest entity that is read. */
export const longestEntity = 28 * (mostNested + 1)

/**
 * The character that an HTML entity at the beginning of a text stands for, however often it was encoded; `open` where
 * more of the text decides.
 */
export function entityAt(text: string, ended: boolean, nested = 0): Entity | 'open' | null {
  const outer = singleEntityAt(text, ended)
  if (outer === null || outer === 'open' || outer.codePoint !== 0x26 || nested === mostNested) return outer
  const inner = entityAt(`&${text.slice(outer.length)}`, ended, nested + 1)
  if (inner === null || inner === 'open') return inner ?? outer
  return { codePoint: inner.codePoint, length: outer.length - 1 + inner.length }
}

function singleEntityAt(text: string, ended: boolean): Entity | 'open' | null {
  if (!ended && unfinished.test(text)) return 'open'
  const number = numeric.exec(text)
  if (number !== null) {
    const codePoint = number[1] === undefined ? Number(number[2]) : Number.parseInt(number[1], 16)
    return codePoint > 0 && codePoint <= 0x10ffff ? { codePoint, length: number[0].length } : null
  }
  const name = named.exec(text)
  const codePoint = name === null ? null : codePointOf(name[1] ?? '')
  return name === null || codePoint === null ? null : { codePoint, length: name[0].length }
}

const entityMarks: Readonly<Record<string, string>> = {
  ...{ grave: '\u0300', acute: '\u0301', circ: '\u0302', tilde: '\u0303', macr: '\u0304', breve: '\u0306' },
  ...{
    dot: '\u0307',
    uml: '\u0308',
    ring: '\u030a',
    dblac: '\u030b',
    caron: '\u030c',
    cedil: '\u0327',
    ogon: '\u0328',
  },
}
/** Letters of other alphabets: double-struck, Fraktur, script. */
const styles: ReadonlySet<string> = new Set(['opf', 'fr', 'scr'])
const others: Readonly<Record<string, string>> = {
  ...{ amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', shy: '\u00ad', szlig: 'ß', aelig: 'æ' },
  ...{ AElig: 'Æ', oslash: 'ø', Oslash: 'Ø', eth: 'ð', thorn: 'þ', inodot: 'ı', imath: 'ı', oelig: 'œ', OElig: 'Œ' },
  ...{ period: '.', comma: ',', colon: ':', semi: ';', excl: '!', quest: '?', num: '#', dollar: '$', percnt: '%' },
  ...{ lpar: '(', rpar: ')', ast: '*', plus: '+', sol: '/', bsol: '\\', equals: '=', commat: '@', lowbar: '_' },
  ...{
    lsqb: '[',
    rsqb: ']',
    lcub: '{',
    rcub: '}',
    verbar: '|',
    hyphen: '\u2010',
    dash: '\u2010',
    Tab: '\t',
    NewLine: '\n',
  },
  ...{ zwj: '\u200d', zwnj: '\u200c', lrm: '\u200e', rlm: '\u200f', NoBreak: '\u2060', ZeroWidthSpace: '\u200b' },
  ...{ ensp: '\u2002', emsp: '\u2003', thinsp: '\u2009', hairsp: '\u200a', fflig: 'ﬀ', filig: 'ﬁ', fllig: 'ﬂ' },
}

/** The entities of HTML whose name is a letter with its mark or style, and common signs. */
function codePointOf(name: string): number | null {
  const other = Object.hasOwn(others, name) ? others[name] : undefined
  if (other !== undefined) return other.codePointAt(0) ?? null
  const [letter, rest] = [name.charAt(0), name.slice(1)]
  if (styles.has(rest)) return letter.charCodeAt(0)
  const mark = Object.hasOwn(entityMarks, rest) ? entityMarks[rest] : undefined
  return mark === undefined ? null : ((letter + mark).normalize('NFC').codePointAt(0) ?? null)
}

/** A text as those read it who know entities and tag characters, and to whom private use says nothing. */
export function decoded(text: string): string {
  let plain = ''
  for (let at = 0; at < text.length; ) {
    const codePoint = text.codePointAt(at) ?? 0
    const entity = codePoint === 0x26 ? entityAt(text.slice(at, at + longestEntity), true) : null
    const length = codePoint > 0xffff ? 2 : 1
    if (entity !== null && entity !== 'open') {
      plain += String.fromCodePoint(entity.codePoint)
      at += entity.length
      continue
    }
    if (!isIgnoredByOthers(codePoint)) plain += String.fromCodePoint(tagged(codePoint) ?? codePoint)
    at += length
  }
  return plain
}
