/**
 * Measures what the detectors find and what they take for something else, on labelled texts beside the repository: `bun
 * test/load/costs/detection-rates.ts`. Personal data: precision and recall by type, a found stretch counting where it
 * overlaps a labelled one. Personal data and secrets: in how many harmless texts they find something. Prompt injection:
 * for thresholds, the share of attacks that is found and of harmless requests that is taken for one, apart for the even
 * texts, which the signals were made by, and the odd ones, which were not looked at.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { injectionMatcher } from '../../../src/inspection/detectors/injection/injection-matcher.ts'
import {
  type PersonalDataType,
  personalDataDetector,
} from '../../../src/inspection/detectors/personal-data/personal-data.ts'
import { secretDetector } from '../../../src/inspection/detectors/secrets/secret-patterns.ts'
import { matcherOf } from '../../../src/inspection/detectors/text-matcher.ts'
import { injectionSentences } from '../../../src/inspection/testing/injection-sentences.ts'
import { defaultThreshold } from '../../../src/policies/kinds/prompt-injection.ts'

const data = ['../../../../shared/data'].map((path) => resolve(import.meta.dir, path)).find((path) => existsSync(path))

interface Labelled {
  text: string
  spans: { entity_type: string; value: string; start: number; end: number }[]
}

const labels: Readonly<Record<PersonalDataType, string>> = {
  email: 'EMAIL_ADDRESS',
  phone: 'PHONE_NUMBER',
  card: 'CREDIT_CARD',
  iban: 'IBAN_CODE',
  ssn: 'US_SSN',
  ip: 'IP_ADDRESS',
  date_of_birth: 'DATE_TIME',
}

const percent = (part: number, whole: number): string => (whole === 0 ? '–' : `${((100 * part) / whole).toFixed(1)} %`)
const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null

function readArray(folder: string, name: string): unknown[] {
  const parsed: unknown = JSON.parse(readFileSync(join(folder, name), 'utf8'))
  return Array.isArray(parsed) ? parsed : []
}

const isLabelled = (value: unknown): value is Labelled => isObject(value) && Array.isArray(value.spans)

function personalDataRates(folder: string): void {
  const texts = readArray(folder, 'pii/labelled-texts.json').filter(isLabelled)
  console.log(
    `\nPersonal data in ${texts.length} texts\n| type | labelled | found | precision | recall |\n|---|---|---|---|---|`,
  )
  for (const type of Object.keys(labels) as PersonalDataType[]) {
    const matcher = matcherOf(personalDataDetector([type]))
    let [labelled, recalled, found, right] = [0, 0, 0, 0]
    for (const { text, spans } of texts) {
      const wanted = spans.filter(({ entity_type: entity }) => entity === labels[type])
      const matches = matcher.matches(text)
      labelled += wanted.length
      found += matches.length
      recalled += wanted.filter((span) =>
        matches.some((match) => match.start < span.end && span.start < match.end),
      ).length
      right += matches.filter((match) => wanted.some((span) => match.start < span.end && span.start < match.end)).length
    }
    console.log(`| ${type} | ${labelled} | ${found} | ${percent(right, found)} | ${percent(recalled, labelled)} |`)
  }
}

const strings = (value: unknown): string[] => {
  if (typeof value === 'string') return [value]
  if (!isObject(value)) return []
  const { user_input: input, mutated_prompt: prompt, turns } = value
  return [input, prompt, ...(Array.isArray(turns) ? turns : [])].filter((text) => typeof text === 'string')
}

/** What is found in requests that hold neither personal data nor credentials. */
function harmlessFindings(folder: string): void {
  const texts = ['over-blocking.json', 'benign-multi-turn.json'].flatMap((file) =>
    readArray(folder, `prompts/${file}`).flatMap(strings),
  )
  const detectors = {
    pii: personalDataDetector(['email', 'phone', 'card', 'iban', 'ssn', 'ip']),
    secrets: secretDetector(),
  }
  for (const [name, detector] of Object.entries(detectors)) {
    const { matches } = matcherOf(detector)
    console.log(
      `\n${name}: ${texts.filter((text) => matches(text).length > 0).length} of ${texts.length} harmless texts`,
    )
  }
}

function injectionRates(folder: string): void {
  const { report } = injectionMatcher(defaultThreshold)
  const thresholds = [0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
  console.log(`\nPrompt injection (default threshold ${defaultThreshold}): share of texts at or above each threshold`)
  console.log(
    `| set | half | texts | ${thresholds.join(' | ')} |\n|---|---|---|${thresholds.map(() => '---|').join('')}`,
  )
  for (const [name, file] of [
    ['attack: jailbreaks', 'jailbreaks.json'],
    ['attack: injections', 'prompt-injections.json'],
    ['harmless: sounds risky', 'over-blocking.json'],
    ['harmless: questions', 'benign-multi-turn.json'],
  ] as const) {
    const scores = readArray(folder, `prompts/${file}`)
      .flatMap(strings)
      .map((text) => report(text).score)
    for (const [half, odd] of [
      ['made by', 0],
      ['held out', 1],
    ] as const) {
      const part = scores.filter((_, index) => index % 2 === odd)
      const shares = thresholds.map((threshold) =>
        percent(part.filter((score) => score >= threshold - 1e-9).length, part.length),
      )
      console.log(`| ${name} | ${half} | ${part.length} | ${shares.join(' | ')} |`)
    }
  }
}

/** The project's own sentences: the rules were made by them, so they show what is covered, not how much is missed. */
function languageRates(): void {
  const { report } = injectionMatcher(defaultThreshold)
  const isFound = (text: string) => report(text).score >= defaultThreshold - 1e-9
  console.log(
    '\nPrompt injection in other languages, own sentences\n| language | attempts found | harmless found |\n|---|---|---|',
  )
  for (const [language, { attempts, harmless }] of Object.entries(injectionSentences)) {
    const [found, wrong] = [attempts, harmless].map((texts) => percent(texts.filter(isFound).length, texts.length))
    console.log(`| ${language} | ${found} | ${wrong} |`)
  }
}

languageRates()
if (data === undefined) console.log('The labelled texts are absent: nothing is measured')
else {
  personalDataRates(data)
  harmlessFindings(data)
  injectionRates(data)
}
