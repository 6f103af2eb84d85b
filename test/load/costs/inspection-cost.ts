/**
 * What inspection costs for one piece of a stream, as ratios to passing it through no rule: with 10 and 400 terms,
 * personal data, secrets and all of these; and what building and reading large things takes. `bun
 * test/load/costs/inspection-cost.ts`
 */
import { Channel } from '../../../src/inspection/channel.ts'
import type { Detector } from '../../../src/inspection/detectors/detector.ts'
import { personalDataDetector } from '../../../src/inspection/detectors/personal-data/personal-data.ts'
import { secretDetector } from '../../../src/inspection/detectors/secrets/secret-patterns.ts'
import { termDetector } from '../../../src/inspection/detectors/terms/term-detector.ts'
import { matcherOf } from '../../../src/inspection/detectors/text-matcher.ts'
import type { InspectionRule } from '../../../src/inspection/rule.ts'
import { words } from '../rig/words.ts'

const prose =
  'The quick answer is that a stream of tokens, as most models send it, has a handful of characters in each piece; ' +
  'numbers such as 42 or 2026, names, and now and then a line break follow.\n'
const pieces = prose.repeat(20).match(/.{1,5}/gs) ?? []

const plain = { caseSensitive: false, homoglyphs: false, wordBoundaries: false }
const rule = (detector: Detector): InspectionRule => ({
  policyId: 'measured',
  kind: 'term-filter',
  reasonCode: 'policy.term_filter',
  matcher: matcherOf(detector),
  action: 'redact',
  enforced: true,
  replacement: ({ label }) => `[${label}]`,
})

const personal = personalDataDetector(['email', 'phone', 'card', 'iban', 'ssn', 'ip', 'date_of_birth'])
const sets: readonly (readonly [string, readonly InspectionRule[]])[] = [
  ['no rule', []],
  ['10 terms', [rule(termDetector(words(10), 'TERM', plain))]],
  ['400 terms', [rule(termDetector(words(400), 'TERM', plain))]],
  [
    '400 terms, word boundaries and homoglyphs',
    [rule(termDetector(words(400), 'TERM', { ...plain, wordBoundaries: true, homoglyphs: true }))],
  ],
  ['personal data, all types', [rule(personal)]],
  ['secrets', [rule(secretDetector())]],
]
const all = [...sets, ['all of these', sets.flatMap(([, rules]) => rules)] as const]

/** Milliseconds of processor time, which says more than the clock where others compute too. */
const spent = (): number => {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1000
}

/** Nanoseconds for one piece: the best of several rounds. */
function costOf(rules: readonly InspectionRule[], kind: 'content' | 'tool_arguments'): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 25; round++) {
    const from = spent()
    for (let times = 0; times < 5; times++) {
      const channel = new Channel(rules, { kind, role: null, place: '' }, [])
      for (const piece of pieces) channel.push(piece)
      channel.end()
    }
    best = Math.min(best, ((spent() - from) * 1e6) / 5 / pieces.length)
  }
  return best
}

/** What a relay does at the least with a piece: reads it from its frame and writes it again. */
function frameCost(): number {
  let best = Number.POSITIVE_INFINITY
  for (let round = 0; round < 25; round++) {
    const from = spent()
    for (let times = 0; times < 5; times++) {
      for (const piece of pieces) JSON.parse(JSON.stringify({ choices: [{ index: 0, delta: { content: piece } }] }))
    }
    best = Math.min(best, ((spent() - from) * 1e6) / 5 / pieces.length)
  }
  return best
}

const frame = frameCost()
console.log(`One piece of five characters; parsing and writing its frame = 1.00 (${frame.toFixed(0)} ns)`)
console.log('| rules | content | tool arguments |\n|---|---|---|')
for (const [name, rules] of all) {
  const [content, tools] = [costOf(rules, 'content'), costOf(rules, 'tool_arguments')]
  console.log(`| ${name} | ${(content / frame).toFixed(2)} | ${(tools / frame).toFixed(2)} |`)
}

const timed = <Value>(name: string, work: () => Value): Value => {
  const from = spent()
  const value = work()
  console.log(`${name}: ${(spent() - from).toFixed(0)} ms`)
  return value
}
const many = words(100_000)
const large = timed('100 000 terms built', () => matcherOf(termDetector(many, 'TERM', plain)))
const megabyte = prose.repeat(Math.ceil(2 ** 20 / prose.length))
timed('1 MiB through 100 000 terms', () => large.matches(megabyte))
timed('1 MiB through 400 terms', () => sets[2]?.[1][0]?.matcher.matches(megabyte))
timed('1 MiB through personal data', () => sets[4]?.[1][0]?.matcher.matches(megabyte))
timed('1 MiB through secrets', () => sets[5]?.[1][0]?.matcher.matches(megabyte))
